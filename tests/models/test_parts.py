"""What follows the pooling in a published folder is part of the encoder, in every verb."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from repro.models import SentenceEncoder
from repro.models.st_export import export_folder
from repro.reducers import make_reducer
from repro.reducers.export import linear_form
from repro.rows import read_rows
from repro.types import InputError

TEXTS = ["a dog sleeps on the mat", "the cook thanked the driver", "why did the teacher leave the old town so early?"]
sentence_transformers = pytest.importorskip("sentence_transformers")


def theirs(folder, texts=TEXTS):
    return sentence_transformers.SentenceTransformer(str(folder), device="cpu").encode(list(texts))


@pytest.fixture(scope="module")
def exported(tiny, sentences, tmp_path_factory):
    """A mean-pooled encoder, PCA to 6 and Normalize, with a prompt of its own."""
    encoder = SentenceEncoder.load(tiny, pooling="mean")
    form = linear_form(make_reducer("pca", 6).fit(encoder.encode(sentences[:200])), 6)
    folder = tmp_path_factory.mktemp("exported") / "model"
    encoder = SentenceEncoder.load(tiny, pooling="mean", prompt="query: ")
    return str(export_folder(encoder, folder, reducer=(form.matrix, form.bias), normalize=True))


def test_an_exported_encoder_is_read_back_with_all_its_parts(exported):
    encoder = SentenceEncoder.load(exported, prompt=None)
    assert (encoder.dim, encoder.hidden_dim, encoder.prompt) == (6, 32, "query: ")
    np.testing.assert_allclose(encoder.encode(TEXTS), theirs(exported), atol=1e-5)
    assert encoder.encode(TEXTS, readout="encoder").shape == (3, 32)
    assert SentenceEncoder.load(exported, dim=5).dim == 5, "a training reads the network"
    assert SentenceEncoder.load(exported, pooling="cls").pooler is None, "nothing was made for these states"


def test_what_was_read_is_saved_and_exported_again(exported, tmp_path):
    encoder = SentenceEncoder.load(exported, prompt=None)
    encoder.save(tmp_path / "saved")
    X = SentenceEncoder.load(str(tmp_path / "saved"), prompt="query: ").encode(TEXTS)
    assert X.tobytes() == encoder.encode(TEXTS).tobytes()
    folder = export_folder(encoder, tmp_path / "again", dim=4, normalize=True)
    short = X[:, :4] / np.linalg.norm(X[:, :4], axis=1, keepdims=True)
    np.testing.assert_allclose(theirs(folder), short, atol=1e-5)


def test_encode_and_evaluate_read_all_parts(repro, exported, tmp_path):
    texts, output, rows = tmp_path / "texts.txt", tmp_path / "X.npy", tmp_path / "rows.parquet"
    texts.write_text("\n".join(TEXTS))
    code, out, err = repro("encode", "--encoder", exported, "--texts", texts, "--output", output)
    assert code == 0 and "3 x 6 float32" in out, err
    np.testing.assert_allclose(np.load(output), theirs(exported), atol=1e-5)
    code, _, err = repro("evaluate", "--encoder", exported, "--data", "stsb", "--source", "microworld", "--rows", rows)
    assert code == 0, err
    (row,) = read_rows(rows).itertuples()
    assert row.dim == 6 and "prompt 'query: '" in row.setting


def test_advice_is_fitted_on_what_the_encoder_gives_and_exported_behind_it(repro, exported, tmp_path):
    advice, model = tmp_path / "advice", tmp_path / "model"
    code, _, err = repro(
        "advise",
        "--encoder",
        exported,
        "--texts",
        "stsb",
        "--source",
        "microworld",
        "--retain",
        0.3,
        "--reducers",
        "pca",
        "--dims",
        3,
        "--output",
        advice,
    )
    assert code == 0, err
    note = json.loads((advice / "reducer.json").read_text())
    assert (note["input_dim"], note["dim"], note["prompt"], note["compared_by"]) == (6, 3, "query: ", "cosine")
    assert repro("export", "--reducer", advice, "--output", model)[0] == 0
    X = theirs(model)
    assert X.shape == (3, 3)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(SentenceEncoder.load(str(model), prompt=None).encode(TEXTS), X, atol=1e-5)


def test_minilm_gives_rows_of_length_1_as_it_is_published_and_its_states_as_they_were():
    encoder = SentenceEncoder.load("all-MiniLM-L6-v2")
    X, h = encoder.encode(TEXTS), encoder.encode(TEXTS, readout="encoder")
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, atol=1e-6)
    assert np.linalg.norm(h, axis=1).min() > 2
    np.testing.assert_array_equal(h, SentenceEncoder.load("all-MiniLM-L6-v2", dim=8).encode(TEXTS, readout="encoder"))


PROMPTS = {"prompts": {"query": "query: ", "passage": "passage: "}, "default_prompt_name": "passage"}


@pytest.mark.parametrize(
    ("asked", "prompt"), [(None, "passage: "), ("query", "query: "), ("", ""), ("search for: ", "search for: ")]
)
def test_a_prompt_is_a_name_or_a_text(asked, prompt, tiny, tmp_path):
    folder = Path(shutil.copytree(tiny, tmp_path / "prompted"))
    (folder / "config_sentence_transformers.json").write_text(json.dumps(PROMPTS))
    encoder = SentenceEncoder.load(str(folder), pooling="mean", prompt=asked)
    plain = SentenceEncoder.load(tiny, pooling="mean")
    np.testing.assert_array_equal(encoder.encode(TEXTS), plain.encode([prompt + text for text in TEXTS]))
    assert SentenceEncoder.load(str(folder)).prompt == "", "a page reads the states of the texts alone"


def test_a_prompt_that_cannot_be_meant_is_refused(tiny, tmp_path, repro):
    folder = Path(shutil.copytree(tiny, tmp_path / "prompted"))
    (folder / "config_sentence_transformers.json").write_text(json.dumps(PROMPTS))
    code, _, err = repro("evaluate", "--encoder", folder, "--data", "stsb", "--prompt", "qeury")
    assert code == 2 and "prompt 'qeury'" in err and "names query, passage" in err
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode": "mean", "include_prompt": false}')
    with pytest.raises(InputError, match="leaves a prompt's tokens out"):
        SentenceEncoder.load(str(folder), prompt="query")
    code, _, err = repro("encode", "--encoder", "glove", "--texts", "stsb", "--output", "X.npy", "--prompt", "a: ")
    assert code == 2 and "glove is made whole" in err


def test_a_reducer_whose_bytes_changed_is_refused(repro, tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 32)) * np.geomspace(1, 1e-3, 32)
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    assert repro("advise", "--embeddings", tmp_path / "X.npy", "--output", tmp_path / "advice")[0] == 0
    weights = tmp_path / "advice" / "reducer.safetensors"
    content = bytearray(weights.read_bytes())
    content[-9] ^= 1
    weights.write_bytes(content)
    arguments = ("export", "--reducer", tmp_path / "advice", "--output", tmp_path / "model", "--encoder", "repro-tiny")
    code, _, err = repro(*arguments)
    assert code == 2 and "reducer.safetensors has changed since it was written" in err
    weights.write_bytes(b"no weights")
    (tmp_path / "advice" / "reducer.json").write_text("{}")
    code, _, err = repro(*arguments)
    assert code == 2 and "cannot be read" in err
