"""What the advisor chose, exported and evaluated on sentences it has not seen, keeps what was
promised.
"""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file

from repro import data
from repro.evaluation.stats import percentiles, spearman_draws
from repro.evaluation.sts import prefix_cosines
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
            f"advise --encoder {encoder} --retain {retain} --methods pca --output "
            f"{folder} {options}"
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
    # for everyone else: two tensors, and a note that says what to do with them
    tensors, encoder = (
        load_file(folder / "reducer.safetensors"),
        SentenceEncoder.load(note["encoder"]),
    )
    assert encoder.pooling == note["pooling"] and note["formula"] == "y = (x / |x|) @ matrix + bias"
    wanted = [encoder.n_layers] if layer is None else [layer, encoder.n_layers]
    layers = encoder.encode_layers(texts, wanted)
    full = unit_rows(layers[-1])  # as it is published
    states = unit_rows(full if layer is None else layers[0])
    np.testing.assert_allclose(
        exported,
        unit_rows(states @ tensors["matrix"] + tensors["bias"]),
        atol=1e-5,
    )

    kept = share_kept(full, exported, pairs)
    assert kept.high >= retain, f"promised {retain}, kept {kept}"
    # the check can fail: as many numbers of the same states, but of the directions that vary least
    centred = states - states.mean(0)
    least = centred @ np.linalg.svd(centred, full_matrices=False)[2][-note["dim"] :].T
    assert share_kept(full, least, pairs).high < retain


def test_what_the_reducer_knows_is_kept_and_another_encoder_warned_of(
    repro,
    tiny,
    tmp_path,
    advised,
):
    folder, _, note = advised(tiny, 0.5, DEV)
    assert note["layer"] is None and note["encoder"] == tiny
    line = f"export --reducer {folder} --output {tmp_path}/model"
    wrong = {"--layer 1": "layer 2 of 2", "--pooling mean": "cls pooling"}
    wrong["--final-norm all"] = "the encoder as it is"
    for more, fitted in wrong.items():
        assert f"{more}: the reducer was fitted on {fitted}" in repro(f"{line} {more}", ends=2).err
        assert not (tmp_path / "model").exists()
    assert not repro(f"{line} --layer 2").err
    SentenceEncoder.load(tiny).save(tmp_path / "other")
    moved = repro(f"export --reducer {folder} --encoder {tmp_path}/other --output {tmp_path}/moved")
    assert f"warning: the reducer was fitted on {tiny}" in moved.err
    (folder / "reducer.json").write_text("{", encoding="utf-8")
    assert (
        "not valid JSON"
        in repro(f"export --reducer {folder} --output {tmp_path}/again", ends=2).err
    )


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
