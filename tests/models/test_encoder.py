import numpy as np
import pandas as pd
import pytest
import torch

from repro.models import Pooler, SentenceEncoder, pooling
from repro.models.encoder import STATE_BUDGET
from repro.models.packing import pack_by_tokens
from repro.types import InputError


@pytest.fixture
def encoder(tiny):
    return SentenceEncoder.load(tiny, dim=8)


@pytest.fixture
def texts(sentences):
    """Short and long, equal ones apart from each other, one that is cut, one that is empty."""
    long = " ".join(sentences[:12])
    return [*sentences[:20], long, "", sentences[3], sentences[0], *sentences[20:30], sentences[3]]


@pytest.mark.parametrize("budget", [1, 16, 200, 10_000])
def test_every_row_is_packed_once_and_no_batch_is_over_budget(budget):
    lengths = np.random.default_rng(0).integers(1, 30, 100)
    batches = list(pack_by_tokens(lengths, budget))
    assert sorted(np.concatenate(batches).tolist()) == list(range(100))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * lengths[batch].max() <= budget
        assert lengths[batch].max() == lengths[batch[0]]
    assert list(pack_by_tokens([], budget)) == []
    halves = [4] * 6 + [3] * 6  # A batch that is half full ends where the length changes
    assert [len(batch) for batch in pack_by_tokens(halves, 40)] == [6, 6]
    # Six of 25: too few to travel alone
    assert [len(batch) for batch in pack_by_tokens(halves, 100)] == [12]


@pytest.mark.parametrize("name", pooling.NAMES)
def test_packed_batches_equal_one_by_one(name, tiny, texts, monkeypatch):
    monkeypatch.setitem(STATE_BUDGET, "cpu", 200 * 32)  # Several batches
    encoder = SentenceEncoder.load(tiny, dim=8, pooling=name)
    for readout, dim in (("pooler", 8), ("encoder", 32)):
        X = encoder.encode(texts, readout=readout)
        assert (X.shape, X.dtype) == ((len(texts), dim), np.float32)
        single = np.vstack([encoder.encode([text], readout=readout) for text in texts])
        np.testing.assert_allclose(X, single, atol=1e-5)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    np.testing.assert_allclose(
        encoder.encode(texts, readout="encoder", normalize=True),
        unit,
        atol=1e-6,
    )
    # The pooler reads h
    np.testing.assert_allclose(encoder.encode(texts), encoder.pooler.project(X), atol=1e-6)


def test_equal_texts_are_encoded_once_and_get_the_same_bytes(encoder, texts):
    X = encoder.encode(texts)
    first = {}
    for i, text in enumerate(texts):
        assert X[i].tobytes() == X[first.setdefault(text, i)].tobytes()
    assert encoder.texts_encoded == len(first) < len(texts)
    encoder.backbone.tokenizer.no_truncation()
    lengths = [len(found.ids) for found in encoder.backbone.tokenizer.encode_batch(list(first))]
    assert encoder.texts_truncated == sum(length > 48 for length in lengths) > 0


def test_the_number_of_threads_moves_no_byte(encoder, texts, monkeypatch):
    monkeypatch.setitem(STATE_BUDGET, "cpu", 60 * 32)
    one = encoder.encode_layers(texts)
    torch.set_num_threads(3)
    try:
        several = encoder.encode_layers(texts)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(1)
    assert one.tobytes() == several.tobytes()


def test_encoding_draws_no_dropout_and_restores_the_mode(encoder, texts):
    encoder.train()
    first, second = encoder.encode(texts), encoder.encode(texts)
    assert first.tobytes() == second.tobytes()
    assert encoder.training and encoder.backbone.training


# Readouts and layers


@pytest.mark.parametrize("name", ["mean", "avg_first_last"])
def test_an_early_stop_equals_that_layer_of_a_full_run(name, tiny, texts):
    encoder = SentenceEncoder.load(tiny, pooling=name)
    full = encoder.encode_layers(texts)
    assert full.shape == (3, len(texts), 32) and encoder.encode_layers([]).shape == (3, 0, 32)
    if name == "avg_first_last":  # Of the first block, not the embeddings
        mean = SentenceEncoder.load(tiny, pooling="mean").encode_layers(texts)
        np.testing.assert_allclose(full[2], (mean[1] + mean[2]) / 2, atol=1e-6)
    for layer in (0, 1, 2):
        encoder.backbone.blocks_run = 0
        np.testing.assert_allclose(encoder.encode(texts, layer=layer), full[layer], atol=1e-6)
        # One batch
        assert encoder.backbone.blocks_run == (max(layer, 1) if name == "avg_first_last" else layer)
    np.testing.assert_allclose(encoder.encode_layers(texts, [1, 0]), full[[1, 0]], atol=1e-6)


def test_a_column_is_read_by_place_whatever_its_rows_are_called(encoder):
    """`frame.sample(frac=1)["text"]` keeps the old numbers of its rows."""
    texts = ["one cat", "two dogs", "three birds"]
    X = encoder.encode(texts)
    for places in ([2, 0, 1], [5, 6, 7], ["a", "b", "c"]):
        column = pd.Series(texts, index=places)
        np.testing.assert_array_equal(encoder.encode(column), X)
        np.testing.assert_array_equal(
            encoder.encode_layers(column)[-1], encoder.encode(texts, readout="encoder")
        )
    np.testing.assert_array_equal(encoder.encode(text for text in texts), X)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"a": 1}, "dict"),
        ({"a", "b"}, "set"),
        (pd.DataFrame({"text": ["a", "b"]}), "DataFrame"),
        (np.array([["a"], ["b"]]), "ndarray"),
        (None, "NoneType"),
        (5, "int"),
    ],
)
def test_what_is_no_sequence_of_texts_is_refused(encoder, given, kind):
    with pytest.raises(TypeError, match=f"texts is of type {kind}: expected a sequence of strings"):
        encoder.encode(given)
    with pytest.raises(TypeError, match=r"texts\[1\] is float: expected a string"):
        encoder.encode(pd.Series(["a", np.nan]))


@pytest.mark.parametrize("layer", [1.0, 0.5, True, "1"])
def test_a_layer_is_a_whole_number(encoder, layer):
    with pytest.raises(InputError, match=f"layer {layer!r} of .*: expected 0"):
        encoder.encode(["a"], layer=layer)
    with pytest.raises(InputError, match=r"layers is \[\]: expected one layer or more"):
        encoder.encode_layers(["a"], [])


@pytest.mark.parametrize("length", [-1, 0, 1, 2])
def test_a_length_that_leaves_no_token_of_a_text_is_refused(encoder, length):
    with pytest.raises(InputError, match=f"max_length is {length}: .* expected 3 or more"):
        encoder.backbone.tokenize(["one", "two"], length)
    encoder.backbone.max_length = length
    with pytest.raises(InputError, match=f"max_length is {length}: .* adds 2 tokens"):
        encoder.encode(["one", "two"])


def test_what_is_changed_by_hand_is_what_is_saved(encoder, tmp_path):
    texts = ["one cat", "two dogs"]
    encoder.pooler.activation = "identity"
    encoder.save(tmp_path / "saved")
    X = encoder.encode(texts)
    loaded = SentenceEncoder.load(tmp_path / "saved")  # A path, as `save` takes
    assert loaded.pooler.settings["activation"] == "identity"
    np.testing.assert_array_equal(loaded.encode(texts), X)
    encoder.pooler.linear = torch.nn.Linear(32, 5)
    encoder.save(tmp_path / "saved")
    loaded = SentenceEncoder.load(tmp_path / "saved")
    assert loaded.dim == 5
    np.testing.assert_array_equal(loaded.encode(texts), encoder.encode(texts))


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "manifest.json"])
def test_a_file_that_is_not_ours_is_not_overwritten(encoder, tmp_path, name):
    (tmp_path / name).write_text("{}" if name.endswith("json") else "mine")
    before = (tmp_path / name).read_bytes()
    (tmp_path / "thesis.txt").write_text("mine too")
    with pytest.raises(InputError, match=f"{name} was written by no `save` .* give another folder"):
        encoder.save(tmp_path)
    assert (tmp_path / name).read_bytes() == before
    (tmp_path / name).unlink()
    encoder.save(tmp_path)
    encoder.save(tmp_path)  # Over what was saved before
    assert (tmp_path / "thesis.txt").read_text() == "mine too"
    assert SentenceEncoder.load(tmp_path).dim == 8


def test_a_head_that_does_not_fit_says_what_it_takes(encoder):
    wide = r"states have shape \(2, 64\): expected \(n, 32\)"
    with pytest.raises(InputError, match=wide):
        encoder.pooler.project(np.ones((2, 64)))
    encoder.pooling = "cls+mean"
    assert encoder.hidden_dim == 64
    assert encoder.encode(["a", "b"], readout="encoder").shape == (2, 64)
    with pytest.raises(InputError, match=wide):
        encoder.encode(["a", "b"])
    with pytest.raises(InputError, match="hidden_dim is -1"):
        Pooler(-1, 8)


def test_weights_in_another_precision_give_embeddings_all_the_same(encoder):
    X = encoder.encode(["one cat", "two dogs"])
    Y = encoder.double().encode(["one cat", "two dogs"])
    assert Y.dtype == np.float32
    np.testing.assert_allclose(Y, X, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "message"),
    [(None, "the network is None"), (5, "the network is 5")],
)
def test_what_names_no_network_is_refused(name, message):
    with pytest.raises(InputError, match=message):
        SentenceEncoder.load(name)
    with pytest.raises(InputError, match=r"pooling is \['cls'\]: expected a name"):
        SentenceEncoder.load("repro-tiny", pooling=["cls"])


def test_what_cannot_be_encoded_is_named_and_unknown_options_list_the_known(encoder, tiny):
    with pytest.raises(TypeError, match=r"texts\[2\] is bytes"):
        encoder.encode(["one", "two", b"bytes", "four"])
    with pytest.raises(InputError, match=r"'\\ud800', half of a character"):
        encoder.encode(["one \ud800"])
    with pytest.raises(TypeError, match="texts is one string"):
        encoder.encode("hello")
    for layer in (-1, 3):
        with pytest.raises(
            InputError,
            match=rf"layer {layer} of .*: expected 0 \(embedding output\) to 2",
        ):
            encoder.encode(["a"], layer=layer)
    with pytest.raises(InputError, match="unknown readout 'cls': choose one of encoder, pooler"):
        encoder.encode(["a"], readout="cls")
    with pytest.raises(
        InputError,
        match=r"unknown pooling 'first': choose one of cls, mean, last, max, .*, avg_first_last",
    ):
        SentenceEncoder.load(tiny, pooling="first")
    with pytest.raises(
        InputError, match="unknown pooling 'avg_first_last': choose one of cls, mean"
    ):
        SentenceEncoder.load(tiny, pooling="cls+avg_first_last")


@pytest.mark.parametrize("dim", [None, 5, 80])
def test_save_and_load_round_trip(tiny, texts, tmp_path, dim):
    encoder = SentenceEncoder.load(tiny, dim=dim, pooling="mean", activation="identity", seed=4)
    encoder.backbone.max_length = 20
    encoder.save(tmp_path / "saved")
    loaded = SentenceEncoder.load(str(tmp_path / "saved"))
    assert (loaded.pooling, loaded.dim, loaded.backbone.max_length) == ("mean", encoder.dim, 20)
    assert loaded.encode(texts).tobytes() == encoder.encode(texts).tobytes()
    assert loaded.texts_truncated > 0
    again = SentenceEncoder.load(str(tmp_path / "saved"), dim=3, pooling="cls")
    assert (again.dim, again.pooling) == (3, "cls")
    assert {path.suffix for path in (tmp_path / "saved").iterdir()} == {".json", ".safetensors"}, (
        "nothing pickled"
    )
