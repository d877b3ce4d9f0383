"""WordLlama: rows as its package gives them, and no other file than the known ones."""

import numpy as np
import pytest
from tokenizers import Tokenizer
from wordllama.inference import WordLlamaInference

from repro.config import profile
from repro.models import wordllama
from repro.models.wordllama import WORDLLAMA, WordLlama
from repro.runs.encoders import load_encoders
from repro.store import Store
from repro.types import InputError

TEXTS = ["a man plays a guitar", "Stocks fell on Monday, by 3 %.", "naïve 東京 🙂", "one two " * 60]


@pytest.fixture(scope="module")
def encoder():
    return WordLlama()


def test_rows_are_those_of_the_package(encoder):
    paths = wordllama.package_files()
    tokenizer = Tokenizer.from_file(str(paths[wordllama.TOKENIZER]))
    theirs = WordLlamaInference(encoder.vectors, tokenizer).embed(TEXTS)
    np.testing.assert_allclose(encoder.encode(TEXTS), theirs, rtol=0, atol=1e-6)


def test_a_text_has_the_same_row_in_any_company(encoder):
    alone = np.concatenate([encoder.encode([text]) for text in TEXTS])
    assert np.array_equal(encoder.encode([*TEXTS, *TEXTS[::-1]]), [*alone, *alone[::-1]])
    assert alone.shape == (4, 256) and alone.dtype == np.float32


def test_a_text_without_a_token_is_refused(encoder):
    with pytest.raises(InputError, match=r"'' has no token for wordllama-256"):
        encoder.encode(["a", ""])


def test_it_is_loaded_by_its_name(tmp_path):
    (named,) = load_encoders([WORDLLAMA], profile("embedded"), Store(tmp_path))
    assert named.name == "wordllama-256" and isinstance(named.make(), WordLlama)


def test_other_files_are_refused(monkeypatch):
    monkeypatch.setitem(wordllama.FILES, wordllama.TOKENIZER, "0" * 64)
    with pytest.raises(InputError, match=r"config\.json is not the file of version 0\.4\.0"):
        wordllama.wordllama_identity()
