"""Every oddity is said of vectors that have it; of vectors that have none it is said what they are not trained for."""

import numpy as np
import pytest

from dimadvise.honesty import nested_or_not, oddities, split_share
from dimadvise.transform import moments_of

RNG = np.random.default_rng(0)
PLAIN = RNG.normal(size=(2000, 20)).astype(np.float32)
UNIT = PLAIN / np.linalg.norm(PLAIN, axis=1, keepdims=True)
TWO = UNIT + 4 * (np.arange(2000) % 2)[:, None] * np.eye(1, 20)
STEPS = np.linspace(-3, 3, 2000, dtype=np.float32)[:, None] * np.eye(1, 20, dtype=np.float32)


def said(X, Q=None, similarity="cosine"):
    X = X.astype(np.float32)
    moments, foreign = moments_of([X], unit=True), Q is not None
    queries, own = (Q, np.full(len(Q), -1)) if foreign else (X[:100], np.arange(100))
    return oddities(X, queries, own, moments, similarity=similarity, foreign=foreign)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (UNIT[:30], "fitted on 30 rows, and follow chance too"),
        (np.vstack([UNIT[:1000], UNIT[:1000]]), "50 % of 2,000 sampled rows repeat another"),
        (UNIT * np.r_[np.ones(18), 0, 1e-6], "2 of 20 columns hardly vary"),
        (PLAIN, "Rows are not of one length"),
        (np.vstack([UNIT, 0 * UNIT[:3]]), "3 of 2,003 sampled rows are zero"),
        (UNIT + 1, "All rows point one way: their mean holds 9"),
        (UNIT + 0.5 * STEPS, "Parts of the file differ"),
        (TWO, "Rows fall into two groups along their first component, 50 %"),
    ],
)
def test_what_is_odd_is_said(X, words):
    assert any(words in line for line in said(X))


def test_queries_unlike_documents_and_lengths_that_make_similarities_one():
    assert any("Queries are unlike documents" in line for line in said(UNIT, UNIT[:200] + 0.5))
    assert any("rank alike" in line for line in said(UNIT, similarity="ip"))


def test_nothing_is_odd_about_plain_vectors_and_those_made_to_be_cut_are_known():
    (only,) = said(UNIT, UNIT[:100])
    assert only.startswith("The vectors do not look trained to be cut")
    steep = (PLAIN * 0.7 ** np.arange(20)).astype(np.float32)
    assert nested_or_not(steep, steep[:100], np.arange(100), "cosine").startswith("The vectors look trained to be cut")
    # a cut explains what it does of known distributions
    assert split_share(np.sort(RNG.normal(size=100_000)))[0] == pytest.approx(2 / np.pi, abs=0.01)
    assert split_share(np.linspace(0, 1, 10_000))[0] == pytest.approx(0.75, abs=0.001)
    assert split_share(np.r_[np.zeros(300), np.ones(700)]) == (pytest.approx(1), 0.3)
