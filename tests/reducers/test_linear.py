"""Linear reducers: exact where the data allow it, scikit-learn's result up to sign elsewhere."""

import numpy as np
import pytest
from sklearn import decomposition
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.random_projection import GaussianRandomProjection

from repro.reducers import GRP, PCA, SVD, Truncate, make_reducer
from repro.types import InputError

X = (np.random.default_rng(0).standard_normal((60, 12)) * np.linspace(3, 0.3, 12) + 2.0).astype(
    np.float32
)


def up_to_sign(Y):
    return Y * np.sign((Y * np.linspace(1, 2, len(Y))[:, None]).sum(0))


@pytest.mark.parametrize("shape", [(60, 12), (12, 40), (30, 30)])
def test_pca_and_svd_are_scikit_learns_up_to_sign(shape):
    X = np.random.default_rng(2).standard_normal(shape) * np.linspace(2, 0.5, shape[1]) + 1
    p = min(shape) - 1
    oracles = (
        decomposition.PCA(p, svd_solver="full"),
        decomposition.TruncatedSVD(p, algorithm="arpack"),
    )
    for ours, oracle in zip((PCA(p), SVD(p)), oracles, strict=True):
        np.testing.assert_allclose(
            up_to_sign(ours.fit_transform(X)),
            up_to_sign(oracle.fit_transform(X)),
            atol=1e-5,
        )
        for what in ("singular_values_", "explained_variance_", "explained_variance_ratio_"):
            np.testing.assert_allclose(getattr(ours, what), getattr(oracle, what), rtol=1e-7)
        axes = ours.components_
        # Each points to its largest entry
        assert (axes[np.arange(p), np.abs(axes).argmax(1)] > 0).all()


def test_standardised_columns_weigh_the_same_and_uncentred_output_is_off_by_the_mean():
    scaled = (X - X.mean(0)) / X.std(0)
    np.testing.assert_allclose(
        PCA(5, standardize=True).fit_transform(X),
        PCA(5).fit_transform(scaled),
        atol=1e-4,
    )
    centred, plain = PCA(5).fit(X), PCA(5, center_output=False).fit(X)
    shift = centred.mean_ @ centred.components_.T
    np.testing.assert_allclose(
        plain.transform(X) - centred.transform(X),
        np.tile(shift, (60, 1)),
        atol=1e-4,
    )


@pytest.mark.parametrize("deviation", [0, 1e-33, 1e-15, 5e-9])
def test_standardising_does_not_raise_a_dead_column_to_unit_variance(deviation):
    dead = 0.1 * (deviation == 0) + np.random.default_rng(1).standard_normal((60, 1)) * deviation
    fitted = PCA(11, standardize=True).fit(np.hstack([X * 0.05, dead]))
    alone = PCA(11, standardize=True).fit(X * 0.05)
    np.testing.assert_allclose(fitted.singular_values_, alone.singular_values_, rtol=1e-6)
    assert np.abs(fitted.components_[:, -1]).max() < 1e-6


@pytest.mark.parametrize("deviation", [1e-4, 1e-5])
def test_standardising_raises_a_column_that_varies_however_little(deviation):
    lively = X / X.std(0).max()
    fitted = PCA(5, standardize=True).fit(np.hstack([lively[:, :4], deviation * lively[:, 4:5]]))
    alike = PCA(5, standardize=True).fit(lively[:, :5])
    np.testing.assert_allclose(fitted.singular_values_, alike.singular_values_, rtol=1e-4)


def test_truncate_keeps_the_columns_and_centred_is_a_translation_of_them():
    np.testing.assert_array_equal(Truncate(5).fit_transform(X), X[:, :5])
    Y = make_reducer("centred", X.shape[1]).fit(X).transform(X)
    np.testing.assert_allclose(Y, X - X.mean(0), atol=1e-6)
    fitted = make_reducer("centred", 5).fit(X)
    np.testing.assert_allclose(fitted.transform(X[:7]), Y[:7, :5], atol=1e-6)


def test_grp_preserves_squared_lengths_on_average_and_depends_on_seed_and_columns_alone():
    lengths = [
        (GRP(20, seed=seed).fit_transform(X) ** 2).sum(1) / (X**2).sum(1) for seed in range(400)
    ]
    assert np.mean(lengths) == pytest.approx(1.0, abs=0.04)
    assert np.var(lengths) == pytest.approx(2 / 20, rel=0.3)  # Of χ²_p / p
    np.testing.assert_array_equal(GRP(5).fit(X).components_, GRP(5).fit(X[:7] * 3).components_)
    assert not np.allclose(GRP(5, seed=1).fit(X).components_, GRP(5).fit(X).components_)


@pytest.mark.parametrize("p", [1, 5, 11])
def test_the_ratio_is_the_share_of_variance_that_the_axes_hold(p):
    def kept(Z, V):
        """Share of the variance of Z along orthonormal axes V (p, D)."""
        centred = Z - Z.mean(0, dtype=np.float64)
        return ((centred @ V.T) ** 2).sum() / (centred**2).sum()

    assert Truncate(p).fit(X).explained_variance_ratio_.sum() == pytest.approx(
        kept(X, np.eye(12)[:p])
    )
    scaled = PCA(p, standardize=True).fit(X)
    assert scaled.explained_variance_ratio_.sum() == pytest.approx(
        kept(X / X.std(0), scaled.components_),
        rel=1e-6,
    )


def test_little_variance_about_a_large_mean_is_shared_among_the_axes_of_svd():
    about = 1e6 + 1e-3 * np.random.default_rng(2).standard_normal((50, 8))
    fitted = SVD(1).fit(about)
    deviations = about - about.mean(0)
    along = (deviations @ fitted.components_[0]).var() / deviations.var(0).sum()
    assert fitted.explained_variance_ratio_ == pytest.approx([along], rel=1e-6)


@pytest.mark.parametrize("row", [[1.0, 2.0, 3.0], [0.1, 0.2, 0.7]])  # The mean misses the latter
@pytest.mark.parametrize("name", ["truncate", "centred", "pca", "svd", "autoencoder"])
def test_rows_that_do_not_vary_explain_nothing(name, row):
    fitted = make_reducer(name, 2).fit(np.tile(row, (6, 1)))
    np.testing.assert_allclose(fitted.explained_variance_ratio_, 0, atol=1e-12)


FIRST = SelectKBest(lambda X, y: -np.arange(X.shape[1]), k=5)
"""Scikit-learn's own way to the first five columns."""
CENTRE = StandardScaler(with_std=False)


@pytest.mark.filterwarnings("ignore:The number of components is higher")
@pytest.mark.parametrize(
    ("ours", "oracle"),
    [
        (Truncate(5), FIRST),
        (make_reducer("centred", 5), make_pipeline(CENTRE, FIRST)),
        (PCA(5), decomposition.PCA(5, svd_solver="full")),
        (
            PCA(5, standardize=True),
            make_pipeline(StandardScaler(), decomposition.PCA(5, svd_solver="full")),
        ),
        (SVD(5), decomposition.TruncatedSVD(5, algorithm="arpack")),
        (GRP(5), GaussianRandomProjection(5)),
        (GRP(20), GaussianRandomProjection(20)),
    ],
    ids=lambda each: type(each).__name__,
)
def test_the_inverse_is_scikit_learns(ours, oracle):
    Y = ours.fit_transform(X)
    oracle.fit(X, np.zeros(len(X)))
    if isinstance(ours, GRP):
        oracle.components_ = ours.components_
    theirs = oracle.inverse_transform(oracle.transform(X))
    found = ours.inverse_transform(Y)
    assert found.dtype == np.float32 and found.shape == X.shape
    np.testing.assert_allclose(found, theirs, atol=2e-5)
    np.testing.assert_allclose(ours.transform(found), Y, atol=2e-5)


def test_the_inverse_of_all_there_is_returns_the_rows_and_knows_its_columns():
    full = [make_reducer(name, 12).fit(X) for name in ("truncate", "centred", "pca", "svd", "grp")]
    for ours in (
        *full,
        PCA(12, center_output=False).fit(X),
        PCA(12, standardize=True, center_output=False).fit(X),
    ):
        np.testing.assert_allclose(ours.inverse_transform(ours.transform(X)), X, atol=5e-5)
    with pytest.raises(InputError, match="Y has 5 columns: expected 12, as `transform` returns"):
        full[2].inverse_transform(X[:, :5])
    with pytest.raises(InputError, match=r"Y has NaN .* first in row 1"):
        full[2].inverse_transform(np.where(np.arange(60)[:, None] == 1, np.nan, X))
    with pytest.raises(NotFittedError):
        PCA(3).inverse_transform(X[:, :3])
