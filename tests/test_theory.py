"""Sheets and spectra of known dimension, projections that do as the theory says, what contrastive
losses reach.
"""

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.special import gammaln
from scipy.stats import binom, spearmanr
from sklearn.random_projection import johnson_lindenstrauss_min_dim

from repro import theory
from repro.losses import uniformity
from repro.reducers import make_reducer
from repro.theory import (
    effective_rank,
    expected_info_nce,
    log_moment,
    participation_ratio,
    predicted_similarity,
)
from repro.types import InputError


def sheet(dim, n=4000):
    """Gaussian points of `dim` dimensions, turned into 50."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(50, 50)))[0][:, :dim]
    return rng.normal(size=(n, dim)) @ basis.T


@pytest.mark.parametrize("dim", [2, 5])
def test_flat_sheets_have_their_dimension(dim):
    X = sheet(dim)
    near = {
        0.04: (theory.two_nn, theory.mle_dimension),
        0.01: (participation_ratio, effective_rank),
    }
    for share, estimates in near.items():
        assert [estimate(X) for estimate in estimates] == pytest.approx([dim, dim], rel=share)


def test_scale_rotation_and_repetition_change_nothing():
    X = sheet(3, n=600)
    turned = (
        7.0
        * np.concatenate([X, X[:50]])
        @ np.linalg.qr(np.random.default_rng(5).normal(size=(50, 50)))[0]
    )
    for estimate in (theory.two_nn, theory.mle_dimension):
        assert estimate(turned) == pytest.approx(estimate(X), rel=1e-6)


@pytest.mark.parametrize("scale", [1e-8, 1e-20, 1e-160, 1e14])
def test_dimensions_are_the_same_at_any_scale_of_the_rows(scale):
    X = sheet(3, n=120)[:, :20]
    for estimate in (participation_ratio, effective_rank, theory.two_nn, theory.mle_dimension):
        assert estimate(scale * X) == pytest.approx(estimate(X), rel=1e-9), estimate.__name__
    for reducer in ("pca", "truncate", "grp", "rotate"):
        found, expected = (
            predicted_similarity(Y, [1, 3, 7], reducer=reducer) for Y in (scale * X, X)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    near = 1 + 1e-9 * X  # Small deviations from a large mean have directions too
    assert participation_ratio(scale * near) == pytest.approx(participation_ratio(X), rel=1e-5)


@pytest.mark.parametrize("row", [[0.1, 0.2, 0.7], [1e-9, 0, 3e-9], [1e14, 1, 0], [0, 0, 0]])
def test_rows_that_differ_by_rounding_alone_have_no_dimension(row):
    equal = np.tile(row, (1000, 1)).astype(float)
    rounded = (3 * equal) / 3
    rounded[::2] = equal[::2] / 3 * 3
    estimates = (participation_ratio, effective_rank, lambda X: predicted_similarity(X, [1]))
    for X in (equal, rounded):
        for estimate in estimates:
            with pytest.raises(InputError, match="all rows of X are equal: there is no"):
                estimate(X)


def test_few_points_by_hand():
    """The unbiased estimate has one ratio less above the line, and the censored ones count as the
    last one kept.
    """
    X = np.array([[0.0], [1.0], [3.0], [10.0]])  # Ratios 3, 2, 3/2 and 9/7
    assert theory.two_nn(X, discard=0.25) == pytest.approx(
        2 / (np.log(9 / 7) + np.log(1.5) + 2 * np.log(2))
    )
    assert theory.two_nn(X, discard=0.0) == pytest.approx(
        3 / (np.log(9 / 7) + np.log(1.5) + np.log(2) + np.log(3))
    )


def test_a_share_of_a_tenth_is_censored_and_twenty_neighbours_are_asked_unless_told_otherwise():
    X = sheet(3, n=300)
    assert theory.two_nn(X) == theory.two_nn(X, discard=0.1) != theory.two_nn(X, discard=0.2)
    assert theory.mle_dimension(X) == theory.mle_dimension(X, k=20) != theory.mle_dimension(X, k=10)


@pytest.mark.parametrize("shape", [(400, 200), (60, 500)])
def test_what_rounding_leaves_is_no_direction(shape):
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(np.c_[np.ones(n), rng.normal(size=(n, 3))])[0][:, 1:] for n in shape)
    for scale in (1.0, 1e-3, 1e4):
        X = scale * U @ V.T + rng.normal(size=shape[1])  # Three directions, off the origin
        assert effective_rank(X) == pytest.approx(3, rel=1e-6)
        assert participation_ratio(X) == pytest.approx(3, rel=1e-6)


def test_spectra_of_known_singular_values_and_of_wide_matrices():
    columns = np.linalg.qr(np.c_[np.ones(20), np.random.default_rng(0).normal(size=(20, 2))])[0][
        :, 1:
    ]
    share = np.array([0.75, 0.25])
    assert effective_rank(columns * share + 5) == pytest.approx(
        np.exp(-(share * np.log(share)).sum())
    )
    assert participation_ratio(columns * share + 5) == pytest.approx(1 / (0.9**2 + 0.1**2))
    sizes = np.geomspace(1, 1e-3, 6)
    many = np.linalg.qr(np.c_[np.ones(20), np.random.default_rng(2).normal(size=(20, 6))])[0][:, 1:]
    share = sizes / sizes.sum()
    assert effective_rank(many * sizes) == pytest.approx(np.exp(-(share * np.log(share)).sum()))
    X = np.random.default_rng(1).normal(size=(40, 90))
    tall = np.concatenate([X, np.repeat(X.mean(0, keepdims=True), 60, axis=0)])  # No variance more
    assert participation_ratio(tall) == pytest.approx(participation_ratio(X))
    assert effective_rank(tall) == pytest.approx(effective_rank(X))


# Random projections, and the similarity that is kept


def test_jl_dim_is_scikit_learns_rounded_up():
    for n, eps in ((2551, 0.1), (2551, 0.5), (100, 0.3), (10**6, 0.05)):
        # It cuts the fraction
        assert theory.jl_dim(n, eps) - int(johnson_lindenstrauss_min_dim(n, eps=eps)) in (0, 1)
    assert theory.jl_dim(10**30, 0.5) == 3316
    assert (theory.jl_dim(2551, 0.1), theory.jl_dim(2551, 0.5)) == (6724, 377)


def gaussian(n=6000, dim=24):
    """Gaussian rows whose variances fall, in a basis that is not theirs."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    return (rng.normal(size=(n, dim)) * np.geomspace(3, 0.3, dim)) @ basis


@pytest.mark.parametrize("reducer", ["pca", "truncate", "grp"])
@pytest.mark.parametrize("dim", [2, 6, 16])
def test_gaussian_embeddings_keep_what_is_predicted(reducer, dim):
    X = gaussian(20_000)
    kept = []
    for seed in range(4):
        Y = make_reducer(reducer, dim, seed=seed).fit(X).transform(X)
        # Of random pairs
        before, after = ((M[:10_000] * M[10_000:]).sum(1) for M in (X - X.mean(0), Y - Y.mean(0)))
        kept.append(spearmanr(before, after).statistic)
    # Sums of two products are far from Gaussian, and a single projection scatters around what GRP
    # keeps on average
    allowed = 0.06 if dim == 2 or reducer == "grp" else 0.03
    assert np.mean(kept) == pytest.approx(
        predicted_similarity(X, [dim], reducer=reducer)[0],
        abs=allowed,
    )


def test_products_of_one_random_direction_correlate_as_predicted():
    """In moments: E tr(CMCM) of a projection M = RRᵀ/d onto d Gaussian directions is tr C² + (tr C²
    + (tr C)²)/d.
    """
    X = gaussian(200, dim=8)
    C, rng = np.cov(X, rowvar=False, bias=True), np.random.default_rng(0)
    for dim in (1, 4):
        R = rng.normal(size=(40_000, 8, dim)) / np.sqrt(dim)
        CM = C @ (R @ R.transpose(0, 2, 1))
        rho = np.sqrt((C**2).sum() / np.einsum("rij,rji->r", CM, CM).mean())
        found = predicted_similarity(X, [dim], reducer="grp")[0]
        assert found == pytest.approx(6 / np.pi * np.arcsin(rho / 2), abs=4e-3)


def test_a_random_rotation_is_what_truncation_meets_on_average():
    X, rng = gaussian(), np.random.default_rng(1)
    turned = [X @ np.linalg.qr(rng.normal(size=(24, 24)))[0] for _ in range(30)]
    mean = np.mean([predicted_similarity(Y, [8], reducer="truncate")[0] for Y in turned])
    assert mean == pytest.approx(predicted_similarity(X, [8], reducer="rotate")[0], abs=0.03)


def test_all_dimensions_keep_everything_and_more_keep_more():
    X = gaussian(500)
    curves = {
        name: predicted_similarity(X, range(1, 25), reducer=name)
        for name in ("pca", "truncate", "rotate")
    }
    for name, curve in curves.items():
        assert curve[-1] == pytest.approx(1) and (
            (np.diff(curve) >= -1e-12).all() or name == "truncate"
        )
    assert (curves["pca"] >= curves["truncate"] - 1e-12).all()
    # The mean says nothing about pairs
    assert predicted_similarity(X + 100, [4]) == pytest.approx(curves["pca"][3])


# Contrastive losses


def test_log_moment_has_known_values():
    for dim, value in (
        (8, 12.243149),
        (16, 8.753322),
        (64, 2.992611),
        (256, 0.778903),
        (768, 0.260329),
    ):
        assert log_moment(dim, 20.0) == pytest.approx(value, abs=1e-6)
    assert log_moment(1, 3.0) == pytest.approx(np.log(np.cosh(3.0)))
    assert log_moment(3, 2.0) == pytest.approx(np.log(np.sinh(2.0) / 2.0))  # Uniform on −1 … 1
    assert log_moment(5, 0.0) == 0.0
    # Where the series overflows
    assert log_moment(3, 1000.0) == pytest.approx(1000 - np.log(2000), abs=1e-9)  # ln(sinh t / t)


@pytest.mark.parametrize("dim", [2, 3, 4, 16, 64])
@pytest.mark.parametrize("t", [708.0, 713.0, 730.0, 1500.0, 1e4])
def test_log_moment_is_finite_however_large_t(dim, t):
    # Laplace: the density of the cosine near 1 gives Γ(m/2)/(2√π)·(2/t)^((m−1)/2)·e^t, and the next
    # term of a series
    laplace = t + gammaln(dim / 2) - np.log(2 * np.sqrt(np.pi)) + (dim - 1) / 2 * np.log(2 / t)
    term = (dim - 1) * (dim - 3) / (8 * t)
    assert log_moment(dim, t) == pytest.approx(
        laplace + np.log1p(-term),
        abs=(1 + term * t) ** 2 / t**2,
    )


def test_finite_batch_has_known_values():
    for dim, value in ((8, 2.5496e-2), (16, 8.1778e-4), (64, 2.5890e-6), (768, 1.6847e-7)):
        assert expected_info_nce(dim, 0.05, 64) == pytest.approx(value, rel=2e-4)
    assert expected_info_nce(16, 0.05, 64, positive_cosine=0.8) == pytest.approx(
        3.8272e-2,
        rel=2e-4,
    )


@pytest.mark.parametrize("batch", [2, 3, 64, 1000])
@pytest.mark.parametrize("temperature", [0.02, 0.05, 0.5, 3.0])
@pytest.mark.parametrize("cosine", [1.0, 0.6])
def test_on_a_line_the_expectation_is_a_sum_over_how_many_share_a_side(batch, temperature, cosine):
    same = np.arange(batch)  # So many of the others stand where the row does
    near, far = ((side - cosine) / temperature for side in (1, -1))
    with np.errstate(divide="ignore"):
        exponents = [near + np.log(same), far + np.log(batch - 1 - same)]
    losses = np.logaddexp(0, np.logaddexp(*exponents))
    found = expected_info_nce(1, temperature, batch, positive_cosine=cosine)
    assert found == pytest.approx(binom.pmf(same, batch - 1, 0.5) @ losses, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("dim", [2, 3, 8, 64, 768])
@pytest.mark.parametrize("temperature", [0.02, 0.05, 0.5])
@pytest.mark.parametrize("cosine", [1.0, 0.6])
def test_with_one_negative_the_expectation_is_an_integral_over_its_angle(dim, temperature, cosine):
    def weight(angle):
        return np.exp((dim - 2) * np.log(np.sin(angle)))

    def loss(angle):
        return weight(angle) * np.logaddexp(0, (np.cos(angle) - cosine) / temperature)

    def integral(part):
        halves = (1e-12, np.pi / 2), (np.pi / 2, np.pi)
        return sum(quad(part, *ends, epsabs=0, epsrel=1e-10, limit=200)[0] for ends in halves)

    found = expected_info_nce(dim, temperature, 2, positive_cosine=cosine)
    assert found == pytest.approx(integral(loss) / integral(weight), rel=1e-7)


def test_the_limit():
    assert expected_info_nce(3, 0.5) == pytest.approx(-1.40478, abs=1e-5)
    gaps = [
        expected_info_nce(3, 0.5, b) - np.log(b - 1) - expected_info_nce(3, 0.5)
        for b in (10, 100, 1000, 100_000)
    ]
    assert gaps == sorted(gaps, reverse=True) and gaps[-1] < 1e-4
    m, t = 200, 0.5  # Many dimensions
    expansion = -1 / t + 1 / (2 * m * t**2) - 1 / (4 * m**2 * (m + 2) * t**4)
    assert expected_info_nce(m, t) == pytest.approx(expansion, abs=1e-9)
    near, far = (expected_info_nce(16, 0.1, positive_cosine=cosine) for cosine in (1.0, 0.3))
    assert far - near == pytest.approx(0.7 / 0.1)  # What positives lack
    assert expected_info_nce(128, 0.05) < -np.log(1e8)  # Practical batches are far from it


def test_bounds_enclose_the_expectation():
    assert theory.simplex_bound(0.05, 64) == pytest.approx(9.4532e-8, rel=1e-4)
    for dim in (4, 32, 256):
        assert (
            theory.simplex_bound(0.1, 64)
            <= expected_info_nce(dim, 0.1, 64)
            <= theory.jensen_bound(dim, 0.1, 64)
        )
    assert expected_info_nce(256, 0.05, 64) == pytest.approx(
        theory.jensen_bound(256, 0.05, 64),
        rel=0.01,
    )


@pytest.mark.parametrize(
    ("dim", "value"),
    [(2, -1.57503), (3, -2.07978), (16, -3.51304), (128, -3.93753)],
)
def test_best_uniformity(dim, value):
    assert theory.uniformity_limit(dim) == pytest.approx(value, abs=1e-5)
    z = torch.from_numpy(np.random.default_rng(0).normal(size=(3000, dim)))
    assert float(uniformity(z)) == pytest.approx(value, abs=0.01)


FEW = np.random.default_rng(0).normal(size=(20, 5))
LATTICE = np.stack(np.meshgrid(*[np.arange(4.0)] * 2), -1).reshape(-1, 2)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: theory.two_nn(FEW, discard=1.0), "discard is 1.0"),
        (lambda: theory.two_nn(LATTICE), "a lattice"),
        (
            lambda: theory.mle_dimension(FEW, k=20),
            "20 distinct rows: 20 neighbours need at least 21",
        ),
        (lambda: participation_ratio(np.ones((5, 3))), "all rows of X are equal"),
        (lambda: theory.jl_dim(10, 1.0), "eps is 1.0"),
        (lambda: theory.jl_dim(10, "0.5"), "eps is 0.5: expected a number"),
        (lambda: theory.log_moment(8, None), "t is None: expected a finite number"),
        (lambda: theory.expected_info_nce(8, "0.05"), "temperature is 0.05: expected a number"),
        (lambda: theory.predicted_similarity(np.eye(4), 2), "dims is 2: expected a list"),
        (lambda: expected_info_nce(8, 0.0), "temperature is 0.0"),
        (lambda: expected_info_nce(8, 0.05, 1), "a batch of 1: expected"),
        (lambda: expected_info_nce(8, 0.05, 8, positive_cosine=1.5), "positive_cosine is 1.5"),
    ],
)
def test_unusable_input_is_named(call, said):
    with pytest.raises(InputError, match=said):
        call()
