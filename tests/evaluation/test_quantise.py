"""Codes: errors within half a step, bytes counted, search among packed codes equal to search among
decoded ones.
"""

import numpy as np
import pytest

from repro.evaluation.quantise import (
    affordable_dim,
    dequantise,
    fit_codebook,
    prepare_queries,
    quantise,
    vector_bytes,
)
from repro.types import InputError, unit_rows
from shown_code import on_page

SEARCH = on_page("beyond_quantisation", "by_numbers", "by_bits")
SEARCH["DECODED"] = 3000  # Several blocks
RNG = np.random.default_rng(0)
SCALES = np.geomspace(0.01, 100, 37)
X = (RNG.normal(size=(300, 37)) * SCALES + 3 * SCALES).astype(np.float32)
Q = X[:5] + RNG.normal(size=(5, 37)).astype(np.float32) * SCALES.astype(np.float32)


@pytest.mark.parametrize(("level", "bits"), [("int8", 8), ("int4", 4)])
def test_integer_levels_err_by_half_a_step_at_most(level, bits):
    book = fit_codebook(X, level)
    error = np.abs(dequantise(quantise(X, book), book) - X)
    assert (error <= book.step / 2 * (1 + 1e-3)).all()
    assert error.max(axis=0) == pytest.approx(book.step / 2, rel=0.2), (
        "a step is as long as the range demands, no less"
    )
    assert book.step == pytest.approx((X.max(0) - X.min(0)) / (2**bits - 1), rel=1e-5)
    # The error of an even spread over a step: its square is a twelfth of the step's
    if level == "int8":
        assert (error**2).mean(0) == pytest.approx(book.step**2 / 12, rel=0.4)
    # Numbers beyond the range go to its end
    far, ends = (
        np.stack([X.max(0) + 10 * SCALES, X.min(0) - 10 * SCALES]),
        np.stack([X.max(0), X.min(0)]),
    )
    assert dequantise(quantise(far, book), book) == pytest.approx(ends, rel=1e-4, abs=1e-4)
    # A constant dimension is kept exactly
    constant = np.column_stack([np.full(9, 0.3), RNG.normal(size=9)])
    book = fit_codebook(constant, level)
    assert dequantise(quantise(constant, book), book)[:, 0] == pytest.approx(
        np.full(9, 0.3),
        abs=1e-7,
    )


def test_signs_of_symmetric_data_turn_with_it():
    half = RNG.normal(size=(50, 12))
    both = np.concatenate([half, -half])
    book = fit_codebook(both, "binary")
    assert book.offset == pytest.approx(np.zeros(12), abs=1e-7)
    S = dequantise(quantise(both, book), book)
    assert set(np.unique(S)) == {-1, 1} and np.array_equal(S[:50], -S[50:])
    assert np.array_equal(S[:50], np.sign(half))
    # Shifted data has the same codes: the mean is taken off
    shifted = fit_codebook(both + 5, "binary")
    assert np.array_equal(quantise(both + 5, shifted), quantise(both, book))


def test_a_bit_is_set_where_a_number_lies_above_the_mean_and_only_there():
    whole = RNG.integers(-2, 3, size=(50, 12)).astype(np.float32)
    both = np.concatenate([whole, -whole])  # Of mean 0, which many of them are
    codes = quantise(both, fit_codebook(both, "binary"))
    np.testing.assert_array_equal(codes, np.packbits(both > 0, axis=1))
    constant = np.column_stack([np.full(9, 0.5), RNG.normal(size=9)])
    assert (quantise(constant, fit_codebook(constant, "binary")) < 128).all()


def test_queries_are_floats_less_the_mean_of_bits_alone():
    for level in ("float32", "float16", "int8", "int4"):
        np.testing.assert_array_equal(prepare_queries(Q, fit_codebook(X, level)), Q)
    found = prepare_queries(Q, fit_codebook(X, "binary"))
    np.testing.assert_allclose(found, Q - X.mean(0, dtype=np.float64), atol=1e-4)


def test_float16_holds_its_largest_number_and_none_beyond():
    book = fit_codebook(X[:, :1], "float16")
    assert quantise(np.array([[65504.0], [-65504.0]]), book).tolist() == [[65504.0], [-65504.0]]
    with pytest.raises(InputError, match="X holds 65536: float16 ends at 65504"):
        quantise(np.array([[65536.0]]), book)


@pytest.mark.parametrize("dim", [1, 7, 8, 16, 31, 32, 37])
def test_popcount_is_the_product_of_signs(dim):
    book = fit_codebook(X[:, :dim], "binary")
    codes = quantise(X[:, :dim], book)
    S = dequantise(codes, book)
    assert SEARCH["by_bits"](X[:9, :dim], codes, book) == pytest.approx(S[:9] @ S.T / dim, abs=1e-6)


@pytest.mark.parametrize("dim", [5, 8, 37])
@pytest.mark.parametrize("level", ["float32", "float16", "int8", "int4", "binary"])
def test_search_among_codes_equals_search_among_what_they_stand_for(level, dim):
    book = fit_codebook(X[:, :dim], level)
    codes = quantise(X[:, :dim], book)
    A, B = (
        prepare_queries(Q[:, :dim], book).astype(np.float64),
        dequantise(codes, book).astype(np.float64),
    )
    expected = unit_rows(A) @ unit_rows(B).T
    assert SEARCH["by_numbers"](Q[:, :dim], codes, book) == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize(
    ("level", "dim", "size"),
    [
        ("float32", 12, 48),
        ("float16", 24, 48),
        ("binary", 384, 48),
        ("int4", 5, 3),
        ("binary", 9, 2),
    ],
)
def test_bytes_are_counted(level, dim, size):
    M = RNG.normal(size=(4, dim))
    assert vector_bytes(dim, level) == size == quantise(M, fit_codebook(M, level)).nbytes / 4
    assert (
        affordable_dim(size, level) >= dim
        and vector_bytes(affordable_dim(size, level), level) <= size
    )
    own = {"float32": 0, "float16": 0, "int8": 8 * dim, "int4": 8 * dim, "binary": 4 * dim}
    assert fit_codebook(M, level).stored_bytes == own[level]
