"""Sheets and spectra of known dimension, and projections that do what the theory says."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.random_projection import johnson_lindenstrauss_min_dim

from repro import theory
from repro.reducers import make_reducer
from repro.theory import effective_rank, mle_dimension, participation_ratio, predicted_similarity, two_nn
from repro.types import InputError


def sheet(dim, n=4000):
    """Gaussian points of `dim` dimensions, turned into 50."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(50, 50)))[0][:, :dim]
    return rng.normal(size=(n, dim)) @ basis.T


@pytest.mark.parametrize("dim", [2, 5])
def test_flat_sheets_have_their_dimension(dim):
    X = sheet(dim)
    for near, estimates in {0.04: (two_nn, mle_dimension), 0.01: (participation_ratio, effective_rank)}.items():
        assert [estimate(X) for estimate in estimates] == pytest.approx([dim, dim], rel=near)


def test_scale_rotation_and_repetition_change_nothing():
    X = sheet(3, n=600)
    turned = 7.0 * np.concatenate([X, X[:50]]) @ np.linalg.qr(np.random.default_rng(5).normal(size=(50, 50)))[0]
    for estimate in (two_nn, mle_dimension):
        assert estimate(turned) == pytest.approx(estimate(X), rel=1e-6)


def test_few_points_by_hand():
    """The unbiased estimate has one ratio less above the line, and the censored ones count as the last one kept."""
    X = np.array([[0.0], [1.0], [3.0], [10.0]])  # ratios 3, 2, 3/2 and 9/7
    assert two_nn(X, discard=0.25) == pytest.approx(2 / (np.log(9 / 7) + np.log(1.5) + 2 * np.log(2)))
    assert two_nn(X, discard=0.0) == pytest.approx(3 / (np.log(9 / 7) + np.log(1.5) + np.log(2) + np.log(3)))


def test_spectra_of_known_singular_values_and_of_wide_matrices():
    columns = np.linalg.qr(np.c_[np.ones(20), np.random.default_rng(0).normal(size=(20, 2))])[0][:, 1:]
    share = np.array([0.75, 0.25])
    assert effective_rank(columns * share + 5) == pytest.approx(np.exp(-(share * np.log(share)).sum()))
    assert participation_ratio(columns * share + 5) == pytest.approx(1 / (0.9**2 + 0.1**2))
    X = np.random.default_rng(1).normal(size=(40, 90))
    tall = np.concatenate([X, np.repeat(X.mean(0, keepdims=True), 60, axis=0)])  # no variance more
    assert participation_ratio(tall) == pytest.approx(participation_ratio(X))
    assert effective_rank(tall) == pytest.approx(effective_rank(X))


# random projections


def test_jl_dim_is_scikit_learns_rounded_up():
    for n, eps in ((2551, 0.1), (2551, 0.5), (100, 0.3), (10**6, 0.05)):
        assert theory.jl_dim(n, eps) - int(johnson_lindenstrauss_min_dim(n, eps=eps)) in (0, 1)  # it cuts the fraction
    assert (theory.jl_dim(2551, 0.1), theory.jl_dim(2551, 0.5)) == (6724, 377)


# similarity kept


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
        before, after = ((M[:10_000] * M[10_000:]).sum(1) for M in (X - X.mean(0), Y - Y.mean(0)))  # of random pairs
        kept.append(spearmanr(before, after).statistic)
    # sums of two products are far from Gaussian, and a single projection scatters around what GRP keeps on average
    allowed = 0.06 if dim == 2 or reducer == "grp" else 0.03
    assert np.mean(kept) == pytest.approx(predicted_similarity(X, [dim], reducer=reducer)[0], abs=allowed)


def test_products_of_one_random_direction_correlate_as_predicted():
    """In moments: E tr(CMCM) of a projection M = RRᵀ/d onto d Gaussian directions is tr C² + (tr C² + (tr C)²)/d."""
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
    curves = {name: predicted_similarity(X, range(1, 25), reducer=name) for name in ("pca", "truncate", "rotate")}
    for name, curve in curves.items():
        assert curve[-1] == pytest.approx(1) and ((np.diff(curve) >= -1e-12).all() or name == "truncate")
    assert (curves["pca"] >= curves["truncate"] - 1e-12).all()
    assert predicted_similarity(X + 100, [4]) == pytest.approx(curves["pca"][3])  # the mean says nothing about pairs


# numbers that no formula takes

FEW = np.random.default_rng(0).normal(size=(20, 5))
LATTICE = np.stack(np.meshgrid(*[np.arange(4.0)] * 2), -1).reshape(-1, 2)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: two_nn(FEW, discard=1.0), "discard is 1.0"),
        (lambda: two_nn(LATTICE), "a lattice"),
        (lambda: mle_dimension(FEW, k=20), "20 distinct rows: 20 neighbours need at least 21"),
        (lambda: participation_ratio(np.ones((5, 3))), "all rows of X are equal"),
        (lambda: theory.jl_dim(10, 1.0), "eps is 1.0"),
        (lambda: theory.expected_info_nce(8, 0.0), "temperature is 0.0"),
        (lambda: theory.expected_info_nce(8, 0.05, 1), "batch is 1"),
        (lambda: theory.expected_info_nce(8, 0.05, 8, positive_cosine=1.5), "positive_cosine is 1.5"),
    ],
)
def test_unusable_input_is_named(call, said):
    with pytest.raises(InputError, match=said):
        call()
