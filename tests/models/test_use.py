"""The Universal Sentence Encoder: rows as its authors give them, and no other file than the known
ones.
"""

import numpy as np
import pytest

from repro import data
from repro.evaluation.sts import sts_spearman
from repro.models import use
from repro.models.use import UniversalSentenceEncoder
from repro.types import InputError


@pytest.fixture(scope="module")
def encoder():
    return UniversalSentenceEncoder()


def test_equal_texts_have_equal_rows_of_length_one(encoder):
    X = encoder.encode(["a man plays a guitar", "stocks fell on monday", "a man plays a guitar"])
    assert X.shape == (3, 512) and X.dtype == np.float32 and np.array_equal(X[0], X[2])
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, rtol=1e-5)


def test_its_score_on_real_pairs_is_the_published_one(encoder, real_data):
    pairs = data.load("stsb", split="test", source="local", limit=300)
    X, Y = encoder.encode(pairs.texts1), encoder.encode(pairs.texts2)
    assert sts_spearman(X, Y, pairs.scores) == pytest.approx(0.80, abs=0.05)


def test_other_files_are_refused(monkeypatch):
    monkeypatch.setitem(use.FILES, "sp.model", "0" * 64)
    with pytest.raises(InputError, match=r"sp\.model is not the file of version 0\.2\.1"):
        use.use_identity()
