"""What the advisor chose, exported and evaluated on sentences it has not seen, keeps what was
promised.
"""

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from dimadvise.inputs import case_of, encoder_digest
from dimadvise.request import Request
from repro import data
from repro.evaluation.stats import percentiles, spearman_draws
from repro.evaluation.sts import prefix_cosines
from repro.manifests import sealed
from repro.models import SentenceEncoder
from repro.types import unit_rows

sentence_transformers = pytest.importorskip("sentence_transformers")
MINILM = "all-MiniLM-L6-v2"
DEV = "--texts stsb --source microworld --split dev --dims 16"


@pytest.fixture
def advised(repro, tmp_path):
    """Ask for advice; the folder, what was said, and the note beside the reducer."""

    def ask(encoder, retain, options):
        folder = tmp_path / "advice"
        told = repro(
            f"advise --encoder {encoder} --retain {retain} --methods pca --output {folder} "
            f"{options}"
        )
        return folder, told.out, json.loads((folder / "reducer.json").read_text(encoding="utf-8"))

    return ask


def share_kept(full, short, pairs):
    """Share of the full-size Spearman with its 95 % interval over these pairs."""
    half = len(pairs)
    cosines = [prefix_cosines(X[:half], X[half:], [X.shape[1]])[0] for X in (full, short)]
    drawn = spearman_draws(cosines, pairs.scores, seed=0)
    return percentiles(
        float(drawn.value[1] / drawn.value[0]),
        drawn.draws[:, 1] / drawn.draws[:, 0],
    )


@pytest.mark.parametrize(
    ("retain", "layer", "asked"),
    [(0.9, None, "--dims 128 64 32"), (0.6, 5, "--dims 64 --layers 5 --levels float32")],
)
def test_what_was_chosen_keeps_its_promise_on_other_sentences(
    repro,
    write,
    tmp_path,
    advised,
    retain,
    layer,
    asked,
):
    dev = data.take(data.load("stsb", split="dev", source="microworld"), 120)
    lines = [f"{a}\t{b}\t{s}" for a, b, s in zip(dev.texts1, dev.texts2, dev.scores, strict=True)]
    graded = write("graded.tsv", "sentence1\tsentence2\tscore", *lines)
    folder, text, note = advised(MINILM, retain, f"--texts {graded} {asked}")
    assert (
        note["layer"] == layer
        and note["dim"] < note["input_dim"] == 384
        and note["encoder"] == MINILM
    )
    assert f"repro export --reducer {folder} --output NEW_FOLDER" in text
    assert not repro(f"export --reducer {folder} --output {tmp_path}/model").err
    pairs = data.take(data.load("stsb", split="test", source="microworld"), 80)
    texts = list(data.texts_of(pairs))
    exported = sentence_transformers.SentenceTransformer(f"{tmp_path}/model", device="cpu").encode(
        texts
    )
    # For everyone else: two tensors, and a note that says what to do with them
    tensors, encoder = (
        load_file(folder / "reducer.safetensors"),
        SentenceEncoder.load(note["encoder"]),
    )
    assert encoder.pooling == note["pooling"] and note["formula"] == "y = (x / |x|) @ matrix + bias"
    wanted = [encoder.n_layers] if layer is None else [layer, encoder.n_layers]
    layers = encoder.encode_layers(texts, wanted)
    full = unit_rows(layers[-1])  # As it is published
    states = unit_rows(full if layer is None else layers[0])
    np.testing.assert_allclose(
        exported,
        unit_rows(states @ tensors["matrix"] + tensors["bias"]),
        atol=1e-5,
    )

    kept = share_kept(full, exported, pairs)
    assert kept.high >= retain, f"promised {retain}, kept {kept}"
    # The check can fail: as many numbers of the same states, but of the directions that vary least
    centred = states - states.mean(0)
    least = centred @ np.linalg.svd(centred, full_matrices=False)[2][-note["dim"] :].T
    assert share_kept(full, least, pairs).high < retain


def test_what_the_reducer_knows_is_kept(repro, tiny, tmp_path, advised):
    folder, _, note = advised(tiny, 0.5, DEV)
    assert note["layer"] is None and note["encoder"] == tiny
    line = f"export --reducer {folder} --output {tmp_path}/model"
    wrong = {"--layer 1": "layer 2 of 2", "--pooling mean": "cls pooling"}
    wrong["--final-norm all"] = "the encoder as it is"
    for more, fitted in wrong.items():
        assert f"{more}: the reducer was fitted on {fitted}" in repro(f"{line} {more}", ends=2).err
        assert not (tmp_path / "model").exists()
    assert not repro(f"{line} --layer 2").err
    (folder / "reducer.json").write_text("{", encoding="utf-8")
    assert (
        "not valid JSON"
        in repro(f"export --reducer {folder} --output {tmp_path}/again", ends=2).err
    )


def test_a_reducer_is_put_behind_the_encoder_that_it_was_fitted_on_alone(
    repro,
    tiny,
    tmp_path,
    advised,
):
    trained, moved = tmp_path / "trained", tmp_path / "moved"
    shutil.copytree(tiny, trained)
    folder, _, note = advised(trained, 0.5, DEV)
    line = f"export --reducer {folder}"
    shutil.copytree(trained, moved)
    assert not repro(f"{line} --encoder {moved} --output {tmp_path}/copy").err
    weights = load_file(trained / "model.safetensors")
    name = next(iter(weights))
    save_file({**weights, name: weights[name] + 1}, trained / "model.safetensors")
    for encoder in ("", f"--encoder {trained}"):
        refused = repro(f"{line} {encoder} --output {tmp_path}/out", ends=2).err
        assert f"was fitted on {trained} ({note['encoder_digest']})" in refused
        assert f"{trained} is another encoder" in refused and "advise anew" in refused
        assert not (tmp_path / "out").exists()


def test_a_network_that_is_written_to_while_it_is_loaded_is_refused(
    repro,
    tiny,
    tmp_path,
    advised,
    monkeypatch,
):
    """Its embeddings would stand beside the digest of other files."""
    trained = shutil.copytree(tiny, tmp_path / "trained")
    folder, _, _ = advised(trained, 0.5, DEV)
    config, load = json.loads((trained / "config.json").read_text()), SentenceEncoder.load
    others = iter((0.1, 0.2))

    def loaded_before_it_is_written(name, **how):
        network = load(name, **how)
        other = json.dumps(config | {"layer_norm_eps": next(others)})
        (trained / "config.json").write_text(other)
        return network

    monkeypatch.setattr(SentenceEncoder, "load", loaded_before_it_is_written)
    exporting = f"export --reducer {folder} --output {tmp_path}/out"
    for command in (exporting, f"advise --encoder {trained} --output {tmp_path}/out {DEV}"):
        assert "was written to while it was read: begin again" in repro(command, ends=2).err
        assert not (tmp_path / "out").exists()


def test_an_advice_that_keeps_no_digest_of_its_encoder_is_exported_with_a_warning(
    repro,
    tiny,
    tmp_path,
    advised,
):
    folder, _, note = advised(tiny, 0.5, DEV)
    for unknown in (["seal", "encoder_digest"], ["encoder"]):
        for key in unknown:
            del note[key]
        (folder / "reducer.json").write_text(json.dumps(sealed(note)), encoding="utf-8")
        output = tmp_path / f"without_{unknown[-1]}"
        said = repro(f"export --reducer {folder} --encoder {tiny} --output {output}").err
        assert "cannot be checked" in said and said.count("warning:") == 1


def test_a_folder_with_the_name_of_a_network_is_not_taken_for_it(tiny, tmp_path, monkeypatch):
    shutil.copytree(tiny, tmp_path / "repro-tiny")
    monkeypatch.chdir(tmp_path)
    seen = {}
    for name in ("repro-tiny", "./repro-tiny"):
        request = Request(encoder=name, texts="stsb", source="microworld", split="dev")
        seen[name] = case_of(request, None).origin
    shipped, folder = seen.values()
    assert shipped["encoder"] == "repro-tiny" and folder["encoder"] == f"{tmp_path}/repro-tiny"
    assert shipped["encoder_digest"] == encoder_digest("repro-tiny") != folder["encoder_digest"]
    assert folder["encoder_digest"] == encoder_digest(tiny)


def test_a_cut_decoder_is_exported_with_the_norm_that_is_asked_for(repro, decoders, tmp_path):
    llama = decoders["llama"]
    line = f"export --encoder {llama} --layer 1 --pooling mean --output {tmp_path}/model"
    assert "give --final-norm all" in repro(line, ends=2).err and not (tmp_path / "model").exists()
    repro(f"{line} --final-norm all")
    texts = ["a dog sleeps", "the cook thanked the driver"]
    encoder = SentenceEncoder.load(llama, pooling="mean", final_norm="all")
    expected = encoder.encode(texts, layer=1)
    exported = sentence_transformers.SentenceTransformer(f"{tmp_path}/model", device="cpu")
    np.testing.assert_allclose(exported.encode(texts), expected, atol=1e-5)
