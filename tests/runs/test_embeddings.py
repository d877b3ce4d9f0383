import numpy as np
import pytest

from repro.models import SentenceEncoder
from repro.runs.embeddings import TextTable, encode_once, encode_tasks
from repro.sets import LabelledTexts
from repro.store import Store
from repro.types import InputError


def test_texts_are_encoded_once_and_then_looked_up(tiny, sentences):
    encoder = SentenceEncoder.load(tiny)
    texts = [*sentences[:20], *sentences[:5]]
    table, hit = encode_once(lambda: encoder, "id", texts, Store())
    assert (hit, encoder.texts_encoded) == (False, 20)
    np.testing.assert_array_equal(table[texts], encoder.encode(texts, readout="encoder"))

    def never():
        raise AssertionError("encoded again")

    again, hit = encode_once(never, "id", reversed(texts[::-1]), Store())
    assert hit
    np.testing.assert_array_equal(again[texts[3:7]], table[texts[3:7]])


def test_another_encoder_or_another_text_is_encoded(tiny, sentences):
    encoder = SentenceEncoder.load(tiny)
    store = Store()
    encode_once(lambda: encoder, "id", sentences[:5], store)
    assert not encode_once(lambda: encoder, "other", sentences[:5], store)[1]
    assert not encode_once(lambda: encoder, "id", sentences[:6], store)[1]
    assert encode_once(lambda: encoder, "id", sentences[:5], store)[1]


def test_a_damaged_matrix_is_made_again(tiny, sentences):
    encoder = SentenceEncoder.load(tiny)
    store = Store()
    table, _ = encode_once(lambda: encoder, "id", sentences[:5], store)
    (path,) = store.home.glob("embeddings/*/h.npy")
    path.write_bytes(path.read_bytes()[:-4] + b"abcd")
    again, hit = encode_once(lambda: encoder, "id", sentences[:5], store)
    assert not hit
    np.testing.assert_array_equal(again.X, table.X)


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
