"""Linear reducers: exact where the data allow it, scikit-learn's result up to sign elsewhere."""

import numpy as np
import pytest
from sklearn import decomposition
from sklearn.exceptions import NotFittedError

from repro.reducers import GRP, PCA, SVD, Truncate
from repro.types import InputError


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return (rng.standard_normal((60, 12)) * np.linspace(3, 0.3, 12) + 2.0).astype(np.float32)


def up_to_sign(Y):
    return Y * np.sign((Y * np.linspace(1, 2, len(Y))[:, None]).sum(0))


def test_pca_of_rank_r_data_is_lossless_at_r():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((50, 4)) @ rng.standard_normal((4, 20)) + 5
    pca = PCA(4).fit(X)
    back = pca.transform(X) @ pca.components_ + pca.mean_
    np.testing.assert_allclose(back, X, atol=1e-5)


@pytest.mark.parametrize("p", [1, 5, 11])
def test_the_residual_is_what_the_dropped_singular_values_hold(X, p):
    pca = PCA(p).fit(X)
    centred = X - X.mean(0, dtype=np.float64)
    kept = centred @ pca.components_.T @ pca.components_
    dropped = np.linalg.svd(centred, compute_uv=False)[p:]
    assert ((centred - kept) ** 2).sum() == pytest.approx((dropped**2).sum(), rel=1e-9)


def test_svd_of_centred_data_is_pca(X):
    centred = X - X.mean(0, dtype=np.float64)
    np.testing.assert_allclose(SVD(6).fit_transform(centred), PCA(6).fit_transform(X), atol=1e-5)


@pytest.mark.parametrize("shape", [(60, 12), (12, 40), (30, 30)])
def test_pca_and_svd_are_scikit_learns_up_to_sign(shape):
    X = np.random.default_rng(2).standard_normal(shape) * np.linspace(2, 0.5, shape[1]) + 1
    p = min(shape) - 1
    oracle = decomposition.PCA(p, svd_solver="full").fit(X)
    ours = PCA(p).fit(X)
    np.testing.assert_allclose(up_to_sign(ours.transform(X)), up_to_sign(oracle.transform(X)), atol=1e-5)
    np.testing.assert_allclose(ours.singular_values_, oracle.singular_values_, rtol=1e-9)
    oracle = decomposition.TruncatedSVD(p, algorithm="arpack").fit_transform(X)
    np.testing.assert_allclose(up_to_sign(SVD(p).fit_transform(X)), up_to_sign(oracle), atol=1e-5)


def test_standardised_columns_weigh_the_same(X):
    scaled = (X - X.mean(0)) / X.std(0)
    np.testing.assert_allclose(PCA(5, standardize=True).fit_transform(X), PCA(5).fit_transform(scaled), atol=1e-4)


def test_uncentred_output_is_off_by_the_projected_mean(X):
    centred, plain = PCA(5).fit(X), PCA(5, center_output=False).fit(X)
    shift = centred.mean_ @ centred.components_.T
    np.testing.assert_allclose(plain.transform(X) - centred.transform(X), np.tile(shift, (60, 1)), atol=1e-4)


@pytest.mark.parametrize("reducer", [PCA, SVD])
def test_every_axis_points_to_its_largest_entry(X, reducer):
    axes = reducer(8).fit(X).components_
    assert (axes[np.arange(8), np.abs(axes).argmax(1)] > 0).all()


@pytest.mark.parametrize("reducer", [Truncate, PCA, SVD, GRP])
@pytest.mark.parametrize("p", [1, 4, 9])
def test_a_prefix_of_the_largest_fit_is_the_smaller_fit(X, reducer, p):
    large = reducer(11).fit(X)
    np.testing.assert_allclose(large.prefix(large.transform(X), p), reducer(p).fit_transform(X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("p", [0, 12])
def test_a_prefix_beyond_the_columns_is_an_error(X, p):
    grp = GRP(11).fit(X)
    with pytest.raises(InputError, match=f"n_components is {p}: expected 1 to 11"):
        grp.prefix(grp.transform(X), p)


def test_truncate_keeps_the_columns(X):
    np.testing.assert_array_equal(Truncate(5).fit_transform(X), X[:, :5])


def test_grp_preserves_squared_lengths_on_average(X):
    lengths = [(GRP(20, seed=seed).fit_transform(X) ** 2).sum(1) / (X**2).sum(1) for seed in range(400)]
    assert np.mean(lengths) == pytest.approx(1.0, abs=0.04)
    assert np.var(lengths) == pytest.approx(2 / 20, rel=0.3)  # of χ²_p / p


def test_grp_depends_on_its_seed_and_the_columns_alone(X):
    np.testing.assert_array_equal(GRP(5).fit(X).components_, GRP(5).fit(X[:7] * 3).components_)
    assert not np.allclose(GRP(5, seed=1).fit(X).components_, GRP(5).fit(X).components_)
    assert GRP(40).fit_transform(X).shape == (60, 40)


@pytest.mark.parametrize("reducer", [Truncate, PCA, SVD, GRP])
def test_output_is_float32_and_finite_on_degenerate_input(reducer):
    X = np.tile([[1.0, 2.0, 3.0], [1.0, 5.0, 3.0]], (4, 1))  # constant columns, duplicate rows
    Y = reducer(3).fit_transform(X)
    assert Y.dtype == np.float32 and Y.shape == (8, 3) and np.isfinite(Y).all()
    np.testing.assert_array_equal(Y[0], Y[2])


def test_standardising_leaves_a_constant_column_at_zero():
    X = np.c_[np.full(6, 0.1), np.arange(6.0)]
    pca = PCA(2, standardize=True).fit(X)
    assert np.isfinite(pca.transform(X)).all() and pca.singular_values_[1] == pytest.approx(0, abs=1e-6)


def test_centred_rows_have_one_direction_less_than_there_are_rows(X):
    assert PCA(4).fit(X[:5]).singular_values_[-1] > 0
    with pytest.raises(InputError, match="n_components is 5: expected 1 to 4"):
        PCA(5).fit(X[:5])


@pytest.mark.parametrize("deviation", [1e-33, 1e-15, 5e-9])
def test_standardising_does_not_raise_a_dead_column_to_unit_variance(X, deviation):
    dead = np.random.default_rng(1).standard_normal((60, 1)) * deviation
    fitted = PCA(11, standardize=True).fit(np.hstack([X * 0.05, dead]))
    alone = PCA(11, standardize=True).fit(X * 0.05)
    np.testing.assert_allclose(fitted.singular_values_, alone.singular_values_, rtol=1e-6)
    assert np.abs(fitted.components_[:, -1]).max() < 1e-6


@pytest.mark.parametrize(
    "reducer, limit", [(Truncate, "1 to 12"), (PCA, r"1 to 4 \(min\(n - 1, D\)"), (SVD, r"1 to 5 \(min\(n, D\)")]
)
def test_too_many_components_name_the_limit(X, reducer, limit):
    with pytest.raises(InputError, match=f"n_components is 13: expected {limit}"):
        reducer(13).fit(X[:5])


@pytest.mark.parametrize("reducer", [Truncate, PCA, SVD, GRP])
@pytest.mark.parametrize("p", [0, -1, 2.0, True])
def test_a_size_is_a_whole_number_of_at_least_one(X, reducer, p):
    with pytest.raises(InputError, match="n_components is"):
        reducer(p).fit(X)


@pytest.mark.parametrize("reducer", [Truncate, PCA, SVD, GRP])
def test_unusable_input_is_named(X, reducer):
    broken = X.copy()
    broken[7, 3] = np.nan
    with pytest.raises(InputError, match="first in row 7"):
        reducer(2).fit(broken)
    with pytest.raises(InputError, match="first in row 7"):
        reducer(2).fit(X).transform(broken)
    with pytest.raises(InputError, match="0 sample"):
        reducer(2).fit(X[:0])
    with pytest.raises(InputError, match=r"11 features, but \w+ is expecting 12"):
        reducer(2).fit(X).transform(X[:, 1:])
    with pytest.raises(NotFittedError):
        reducer(2).transform(X)
