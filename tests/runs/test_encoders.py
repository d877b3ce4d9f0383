import numpy as np
import pytest

from repro.models import SentenceEncoder
from repro.runs.encoders import TextTable, encode_layers_once, encode_once, encode_tasks
from repro.sets import LabelledTexts
from repro.store import Store
from repro.types import InputError


def never():
    raise AssertionError("encoded again")


def test_texts_are_encoded_once_and_then_looked_up(tiny, sentences):
    encoder, store = SentenceEncoder.load(tiny), Store()
    texts = [*sentences[:20], *sentences[:5]]
    table = encode_once(lambda: encoder, "id", texts, store)
    assert encoder.texts_encoded == 20
    np.testing.assert_array_equal(table[texts], encoder.encode(texts, readout="encoder"))
    again = encode_once(never, "id", reversed(texts[::-1]), store)
    np.testing.assert_array_equal(again[texts[3:7]], table[texts[3:7]])
    for identity, wanted in (("other", texts), ("id", texts[:6])):
        with pytest.raises(AssertionError):
            encode_once(never, identity, wanted, store)


def test_a_table_projects_and_names_what_it_does_not_hold():
    table = TextTable({"a": 0, "b": 1}, np.eye(2))
    np.testing.assert_array_equal(table.map(lambda X: 2 * X)[["b", "a"]], [[0, 2], [2, 0]])
    with pytest.raises(InputError, match="'c' was not encoded with the others"):
        table[["a", "c"]]


def test_a_task_that_was_encoded_before_is_found_again(tiny, sentences):
    def task(*texts):
        return {"test": LabelledTexts("t", "local", "test", texts, np.array(["x"] * len(texts)))}

    encoder, store = SentenceEncoder.load(tiny), Store()
    first = {"a": task(*sentences[:6])}
    made = []

    def make():
        made.append(encoder)
        return encoder

    encode_tasks(make, "id", first, store)
    both = encode_tasks(make, "id", first | {"b": task(*sentences[4:9]), "c": task(*sentences[2:5])}, store)
    assert encoder.texts_encoded == 6 + 5 + 3
    assert len(made) == 2  # once a call, whatever the number of tasks
    assert both.X.shape == (9, encoder.hidden_dim)
    np.testing.assert_array_equal(both[sentences[:9]], encoder.encode(sentences[:9], readout="encoder"))


def test_all_layers_come_from_one_pass_and_some_are_read_out_of_them(tiny, sentences):
    encoder, store = SentenceEncoder.load(tiny, pooling="mean"), Store()
    texts = [*sentences[:9], *sentences[:3]]
    table = encode_layers_once(lambda: encoder, "id", texts, store)
    assert (encoder.texts_encoded, table.layers, table.hidden_dim) == (9, (0, 1, 2), 32)
    for layer in table.layers:
        np.testing.assert_array_equal(table.at(layer)[texts], encoder.encode(texts, layer=layer, readout="encoder"))
        np.testing.assert_array_equal(table.at(layer, 5)[texts], table.at(layer)[texts][:, :5])

    some = encode_layers_once(never, "id", texts, store, layers=[0, 2])
    assert some.layers == (0, 2)
    np.testing.assert_array_equal(some.at(2)[texts], table.at(2)[texts])


def test_layers_that_are_not_there_are_named(tiny, sentences):
    encoder, store = SentenceEncoder.load(tiny), Store()
    one = encode_layers_once(lambda: encoder, "id", sentences[:4], store, layers=[1])
    for layer, dim, message in (
        (2, None, "layer 2 was not read: the table holds 1"),
        (1, 33, "dim is 33: expected 1 to 32"),
    ):
        with pytest.raises(InputError, match=message):
            one.at(layer, dim)
    for wrong in ([], [1, 1], [-1]):
        with pytest.raises(InputError, match="ascending from 0"):
            encode_layers_once(never, "id", sentences[:4], store, layers=wrong)
    encode_layers_once(lambda: encoder, "id", sentences[:4], store)
    with pytest.raises(InputError, match="layer 7 of an encoder of 2"):
        encode_layers_once(never, "id", sentences[:4], store, layers=[1, 7])
