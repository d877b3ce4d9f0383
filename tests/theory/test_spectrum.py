import numpy as np
import pytest
from scipy.stats import spearmanr

from repro.reducers import make_reducer
from repro.theory import predicted_similarity
from repro.types import InputError


def gaussian(n=6000, dim=24, seed=0):
    """Gaussian rows whose variances fall, in a basis that is not theirs."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    return (rng.normal(size=(n, dim)) * np.geomspace(3, 0.3, dim)) @ basis


def measured(X, Y):
    """Spearman of inner products of random pairs, before and after."""
    half = len(X) // 2
    before, after = ((M[:half] * M[half:]).sum(1) for M in (X - X.mean(0), Y - Y.mean(0)))
    return spearmanr(before, after).statistic


@pytest.mark.parametrize("reducer", ["pca", "truncate", "grp"])
@pytest.mark.parametrize("dim", [2, 6, 16])
def test_gaussian_embeddings_keep_what_is_predicted(reducer, dim):
    X = gaussian(20_000)
    found = np.mean([measured(X, make_reducer(reducer, dim, seed=s).fit(X).transform(X)) for s in range(4)])
    # sums of two products are far from Gaussian, and a single projection scatters around what GRP keeps on average
    allowed = 0.06 if dim == 2 or reducer == "grp" else 0.03
    assert found == pytest.approx(predicted_similarity(X, [dim], reducer=reducer)[0], abs=allowed)


def test_products_of_one_random_direction_correlate_as_predicted():
    """In moments: E tr(CMCM) of a projection M = RRᵀ/d onto d Gaussian directions is tr C² + (tr C² + (tr C)²)/d."""
    X = gaussian(200, dim=8)
    C, rng = np.cov(X, rowvar=False, bias=True), np.random.default_rng(0)
    for dim in (1, 4):
        R = rng.normal(size=(40_000, 8, dim)) / np.sqrt(dim)
        CM = C @ R @ R.transpose(0, 2, 1)  # (draws, 8, 8)
        square = np.einsum("rij,rji->r", CM, CM).mean()
        rho = np.sqrt((C**2).sum() / square)
        assert predicted_similarity(X, [dim], reducer="grp")[0] == pytest.approx(
            6 / np.pi * np.arcsin(rho / 2), abs=4e-3
        )


def test_a_random_rotation_is_what_truncation_meets_on_average():
    X, rng = gaussian(), np.random.default_rng(1)
    turned = [X @ np.linalg.qr(rng.normal(size=(24, 24)))[0] for _ in range(30)]
    mean = np.mean([predicted_similarity(Y, [8], reducer="truncate")[0] for Y in turned])
    assert mean == pytest.approx(predicted_similarity(X, [8], reducer="rotate")[0], abs=0.03)


def test_all_dimensions_keep_everything_and_more_keep_more():
    X = gaussian(500)
    for reducer in ("pca", "truncate", "rotate"):
        curve = predicted_similarity(X, range(1, 25), reducer=reducer)
        assert curve[-1] == pytest.approx(1)
        if reducer != "truncate":
            assert (np.diff(curve) >= -1e-12).all()
    assert (predicted_similarity(X, [8], reducer="pca") >= predicted_similarity(X, [8], reducer="truncate")).all()
    shifted = predicted_similarity(X + 100, [4])
    assert shifted == pytest.approx(predicted_similarity(X, [4]))  # the mean says nothing about pairs


def test_unusable_input_is_named():
    X = gaussian(50)
    for call, words in (
        (lambda: predicted_similarity(X, [25]), "dim is 25: expected 1 to 24"),
        (lambda: predicted_similarity(X, [2], reducer="umap"), "unknown reducer"),
        (lambda: predicted_similarity(np.ones((5, 3)), [2]), "all rows of X are equal"),
    ):
        with pytest.raises(InputError, match=words):
            call()
