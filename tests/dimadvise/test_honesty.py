"""Every oddity is said of vectors that have it; of vectors that have none it is said what they are
not trained for.
"""

import numpy as np
import pytest

from dimadvise.honesty import (
    Sample,
    looks_packed,
    nested_or_not,
    oddities,
    refuse_packed_bits,
    split_share,
)
from dimadvise.transform import moments_of
from dimadvise.vectors import in_memory
from repro.types import InputError

RNG = np.random.default_rng(0)
PLAIN = RNG.normal(size=(2000, 20)).astype(np.float32)
UNIT = PLAIN / np.linalg.norm(PLAIN, axis=1, keepdims=True)
TWO = UNIT + 4 * (np.arange(2000) % 2)[:, None] * np.eye(1, 20)
STEPS = np.linspace(-3, 3, 2000, dtype=np.float32)[:, None] * np.eye(1, 20, dtype=np.float32)


def said(X, Q=None, similarity="cosine"):
    X = X.astype(np.float32)
    moments, foreign = moments_of([X], unit=True), Q is not None
    queries, own = (Q, np.full(len(Q), -1)) if foreign else (X[:100], np.arange(100))
    sample = Sample(X, queries, own)
    return list(oddities(sample, moments, similarity=similarity, foreign=foreign))


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


def test_where_all_rows_lie_matters_to_no_distance():
    shifted = UNIT + 1
    for similarity, expected in (("cosine", True), ("ip", True), ("l2", False)):
        odd = said(shifted, similarity=similarity)
        assert any("All rows point one way" in line for line in odd) == expected


def test_lengths_that_are_said_to_differ_are_told_apart_in_print():
    lengths = np.where(np.arange(2000) < 40, 1.5, 1)[:, None]  # Nine in ten are of one length
    (line,) = (line for line in said(UNIT * lengths) if "not of one length" in line)
    assert "(from 1 to 1.5)" in line


def repeated(count):
    return np.vstack([UNIT[: 1000 - count], UNIT[:count]]), None


def stretched(deviation):
    return UNIT * (1 + deviation * PLAIN[:, :1]), None


def shared(part):
    return UNIT + np.sqrt(part / (1 - part)) * np.eye(1, 20), None


def moved(distance):
    return UNIT, UNIT[:200] + np.sqrt(distance) * np.eye(1, 20)


def grouped(part):
    """Two groups, apart along a direction in which each has a twentieth of its variance."""
    apart = np.sqrt(part / (1 - part) / 20)
    return UNIT + apart * (2 * (np.arange(2000) % 2)[:, None] - 1) * np.eye(1, 20), None


def drifting(part):
    return UNIT + np.sqrt(part / (1 - part) / 3) * STEPS, None


def falling(factor):
    return UNIT * factor ** np.arange(20), None


def still(deviation):
    return UNIT * np.r_[np.ones(19), deviation], None


@pytest.mark.parametrize(
    ("made", "below", "above", "words"),
    [
        (repeated, 8, 12, "sampled rows repeat another"),
        (stretched, 0.008, 0.012, "Rows are not of one length"),
        (shared, 0.27, 0.33, "All rows point one way"),
        (moved, 0.08, 0.12, "Queries are unlike documents"),
        (grouped, 0.76, 0.84, "Rows fall into two groups"),
        (drifting, 0.04, 0.06, "Parts of the file differ"),
        (falling, 0.96, 0.95, "The vectors look trained to be cut"),  # They find 0.09 and 0.13 more
        (still, 1.3e-3, 0.7e-3, "hardly vary"),
        (lambda rows: (UNIT[: int(rows)], None), 41, 39, "follow chance too"),
    ],
)
def test_it_is_said_from_the_share_on_that_is_stated(made, below, above, words):
    for amount, expected in ((below, False), (above, True)):
        assert any(words in line for line in said(*made(amount))) == expected


def test_distances_are_in_deviations_and_last_columns_are_the_last():
    # By 0.5 in each of twenty columns, whose variances sum to 1
    odd = " ".join(said(UNIT, UNIT[:200] + 0.5))
    assert "the means lie 2.2 deviations apart" in odd
    weights = np.repeat([1.0, 0.1], 10)
    assert any("look trained to be cut" in line for line in said(UNIT * weights))


def test_of_few_rows_and_few_queries_chance_is_not_called_a_difference():
    """By chance a tenth of the variance lies between tenths of 90 rows, and eight queries as
    far.
    """
    wide = np.random.default_rng(1).normal(size=(900, 200))
    for start in range(0, 800, 100):
        some = wide[start : start + 90]
        odd = " ".join(said(some, wide[start + 90 : start + 98]))
        assert "Parts of the file" not in odd and "Queries are unlike" not in odd


def test_nothing_is_odd_about_plain_vectors_and_those_made_to_be_cut_are_known():
    (only,) = said(UNIT, UNIT[:100])
    assert only.startswith("The vectors do not look trained to be cut")
    steep = (PLAIN * 0.7 ** np.arange(20)).astype(np.float32)
    assert nested_or_not(Sample(steep, steep[:100], np.arange(100)), "cosine").startswith(
        "The vectors look trained to be cut"
    )
    # A cut explains what it does of known distributions
    assert split_share(np.sort(RNG.normal(size=100_000)))[0] == pytest.approx(2 / np.pi, abs=0.01)
    assert split_share(np.linspace(0, 1, 10_000))[0] == pytest.approx(0.75, abs=0.001)
    assert split_share(np.r_[np.zeros(300), np.ones(700)]) == (pytest.approx(1), 0.3)


def bits_of(means, rho=0.3):
    """Signs of 512 numbers that share one cause, packed."""
    shared = RNG.normal(size=(1500, 1)) * RNG.normal(size=512)
    numbers = rho * shared + RNG.normal(size=(1500, 512)) + means
    return np.packbits(numbers > 0, axis=1)


def rounded(X, kind):
    return np.clip(X.round(), np.iinfo(kind).min, np.iinfo(kind).max).astype(kind)


@pytest.mark.parametrize(
    "X",
    [
        bits_of(0),
        bits_of(RNG.normal(size=512) / 2),
        bits_of(RNG.normal(size=512) / 2).view(np.int8),
        bits_of(RNG.normal(size=512), rho=0.6),
        bits_of(1),
    ],
)
def test_packed_bits_are_noticed(X):
    assert looks_packed(X.astype(np.float32))
    with pytest.raises(InputError, match=r"looks like packed bits, eight to each of its 64 bytes"):
        refuse_packed_bits(in_memory(X))
    refuse_packed_bits(in_memory(X.astype(np.float32)))  # As it was told, these are numbers
    refuse_packed_bits(in_memory(X[:50]))  # Too few to tell


@pytest.mark.parametrize("spread", [2, 10, 25, 40, 50, 70])
@pytest.mark.parametrize("middle", [0, 30, 64, 100, 128])
def test_numbers_of_eight_bits_are_not_taken_for_packed_bits(spread, middle):
    numbers = middle + spread * RNG.normal(size=(1500, 40)) + 10 * RNG.normal(size=40)
    as_sift_has_them = spread * RNG.exponential(size=(1500, 40))
    for values, kind in (
        (numbers, np.uint8),
        (numbers - 128, np.int8),
        (as_sift_has_them, np.uint8),
    ):
        X = rounded(values, kind)
        assert not looks_packed(X.astype(np.float32)), kind
        refuse_packed_bits(in_memory(X))
