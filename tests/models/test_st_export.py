import numpy as np
import pytest

from repro.models import SentenceEncoder
from repro.models.st_export import export_folder
from repro.models.st_modules import load_modules
from repro.reducers import make_reducer
from repro.reducers.export import linear_form
from repro.types import InputError

TEXTS = ["a dog sleeps on the mat", "the cook thanked the driver", "why did the teacher leave the old town so early?"]
sentence_transformers = pytest.importorskip("sentence_transformers")


def theirs(folder, texts=TEXTS):
    return sentence_transformers.SentenceTransformer(str(folder), device="cpu").encode(texts)


@pytest.mark.parametrize("pooling", ["cls", "mean", "last"])
@pytest.mark.parametrize("activation", ["tanh", "identity"])
def test_encoder_and_pooler_give_equal_outputs(tiny, tmp_path, pooling, activation):
    encoder = SentenceEncoder.load(tiny, dim=12, pooling=pooling, activation=activation, seed=1)
    expected = encoder.encode(TEXTS)
    folder = export_folder(encoder, tmp_path / "out")
    np.testing.assert_allclose(theirs(folder), expected, atol=1e-5)
    if pooling != "last":  # and our own reader of such folders agrees
        np.testing.assert_allclose(load_modules(folder).encode(TEXTS), expected, atol=1e-5)


def test_a_shallow_encoder_is_written_without_its_upper_blocks(tiny, tmp_path):
    expected = SentenceEncoder.load(tiny, pooling="mean").encode(TEXTS, layer=1)
    folder = export_folder(SentenceEncoder.load(tiny, pooling="mean", dim=4), tmp_path / "out", layer=1)
    np.testing.assert_allclose(theirs(folder), expected, atol=1e-5)
    assert SentenceEncoder.load(str(folder)).n_layers == 1


def test_a_reducer_brings_its_mean_along(tiny, tmp_path, sentences):
    encoder = SentenceEncoder.load(tiny, pooling="mean")
    reducer = make_reducer("pca", 8).fit(encoder.encode(sentences[:200]))
    form = linear_form(reducer, 6)
    folder = export_folder(encoder, tmp_path / "out", reducer=(form.matrix, form.bias), normalize=True)
    expected = reducer.transform(encoder.encode(TEXTS))[:, :6]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(theirs(folder), expected, atol=1e-5)


def test_the_first_numbers_alone(tiny, tmp_path):
    encoder = SentenceEncoder.load(tiny, pooling="cls")
    folder = export_folder(encoder, tmp_path / "plain", dim=5)
    np.testing.assert_allclose(theirs(folder), encoder.encode(TEXTS)[:, :5], atol=1e-5)
    encoder = SentenceEncoder.load(tiny, dim=12, seed=2)
    folder = export_folder(encoder, tmp_path / "pooled", dim=5)
    np.testing.assert_allclose(theirs(folder), encoder.encode(TEXTS)[:, :5], atol=1e-5)


def test_what_cannot_be_said_in_a_folder_is_refused(tiny, tmp_path, decoders):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("mine")
    out = tmp_path / "out"
    square = (np.eye(7), np.zeros(7))
    qwen = decoders["qwen2"]
    for call, words in (
        (lambda: export_folder(SentenceEncoder.load(tiny), tmp_path / "full"), "nothing is overwritten"),
        (lambda: export_folder(SentenceEncoder.load(tiny, pooling="avg_first_last"), out), "no avg_first_last pooling"),
        (lambda: export_folder(SentenceEncoder.load(tiny), out, layer=0), "at least one block"),
        (lambda: export_folder(SentenceEncoder.load(tiny), out, dim=99), "dim is 99: expected 1 to 32"),
        (lambda: export_folder(SentenceEncoder.load(tiny), out, reducer=square), "takes 7 numbers"),
        (lambda: export_folder(SentenceEncoder.load(qwen, bidirectional=True), out), "both ways"),
        (lambda: export_folder(SentenceEncoder.load(qwen), out, layer=1), "final norm"),
    ):
        with pytest.raises(InputError, match=words):
            call()
    assert not out.exists()


def test_a_decoder_is_written_where_its_states_pass_the_norm(decoders, tmp_path):
    encoder = SentenceEncoder.load(decoders["llama"], pooling="mean", final_norm="all")
    expected = encoder.encode(TEXTS, layer=1)
    np.testing.assert_allclose(theirs(export_folder(encoder, tmp_path / "out", layer=1)), expected, atol=1e-5)
