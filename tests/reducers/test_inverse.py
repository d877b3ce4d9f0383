"""The ways back to rows of X, and the variance that the way there keeps."""

import numpy as np
import pytest
from sklearn import decomposition

from repro.reducers import GRP, KPCA, PCA, SVD, Truncate, make_reducer
from repro.types import InputError


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return (rng.standard_normal((60, 12)) * np.linspace(3, 0.3, 12) + 2.0).astype(np.float32)


def kept(X, back):
    """Share of the variance of X that its rebuilt rows hold."""
    return 1 - ((X - back) ** 2).sum() / ((X - X.mean(0)) ** 2).sum()


@pytest.mark.parametrize("options", [{}, {"standardize": True}, {"center_output": False}])
def test_every_component_leads_all_the_way_back(X, options):
    pca = PCA(12, **options).fit(X)
    np.testing.assert_allclose(pca.inverse_transform(pca.transform(X)), X, atol=2e-5)
    assert pca.explained_variance_ratio_.sum() == pytest.approx(1)


def test_svd_truncate_and_a_wide_projection_lead_all_the_way_back(X):
    for reducer in (SVD(12), Truncate(12), GRP(40)):
        np.testing.assert_allclose(reducer.fit(X).inverse_transform(reducer.transform(X)), X, atol=1e-4)


@pytest.mark.parametrize("reducer", [PCA, Truncate])
@pytest.mark.parametrize("p", [1, 5, 11])
def test_the_ratio_is_what_the_rebuilt_rows_hold(X, reducer, p):
    fitted = reducer(11).fit(X)
    back = fitted.inverse_transform(fitted.prefix(fitted.transform(X), p))  # a prefix leads back too
    assert fitted.explained_variance_ratio_[:p].sum() == pytest.approx(kept(X, back), abs=1e-5)


def test_standardised_and_uncentred_outputs_lead_back_from_a_prefix(X):
    plain, uncentred = PCA(6).fit(X), PCA(6, center_output=False).fit(X)
    for p in (2, 6):
        expected = plain.inverse_transform(plain.transform(X)[:, :p])
        np.testing.assert_allclose(uncentred.inverse_transform(uncentred.transform(X)[:, :p]), expected, atol=1e-4)
    scaled = PCA(6, standardize=True).fit(X)
    unit = (X - X.mean(0)) / X.std(0)
    back = (scaled.inverse_transform(scaled.transform(X)) - X.mean(0)) / X.std(0)
    assert scaled.explained_variance_ratio_.sum() == pytest.approx(kept(unit, back), abs=1e-5)


def test_explained_variance_is_scikit_learns(X):
    for ours, oracle in (
        (PCA(5).fit(X), decomposition.PCA(5, svd_solver="full").fit(X.astype(np.float64))),
        (SVD(5).fit(X), decomposition.TruncatedSVD(5, algorithm="arpack").fit(X.astype(np.float64))),
    ):
        np.testing.assert_allclose(ours.explained_variance_, oracle.explained_variance_, rtol=1e-5)
        np.testing.assert_allclose(ours.explained_variance_ratio_, oracle.explained_variance_ratio_, rtol=1e-5)


@pytest.mark.parametrize("p", [3, 7])
def test_a_projections_way_back_is_the_shortest(X, p):
    grp = GRP(7).fit(X)
    Y = grp.prefix(grp.transform(X), p)
    back = grp.inverse_transform(Y)
    again = GRP(p).fit(X)
    np.testing.assert_allclose(again.transform(back), Y, atol=1e-4)  # it projects to the same place
    least = np.linalg.lstsq(again.components_, Y.T, rcond=None)[0].T
    np.testing.assert_allclose(back, least, atol=1e-4)


@pytest.mark.parametrize("name", ["truncate", "pca", "svd", "kpca", "autoencoder"])
def test_rows_that_do_not_vary_explain_nothing(name):
    X = np.tile([1.0, 2.0, 3.0], (6, 1))
    if name == "kpca":
        with pytest.raises(InputError, match="all 6 rows of X are equal"):
            KPCA(2).fit(X)
        return
    fitted = make_reducer(name, 2).fit(X)
    np.testing.assert_allclose(fitted.explained_variance_ratio_, 0, atol=1e-12)


@pytest.mark.parametrize("name", ["kpca", "isomap", "lle", "sbertlp"])
def test_what_has_no_way_back_has_no_such_method(name):
    assert not hasattr(make_reducer(name, 2), "inverse_transform")


@pytest.mark.parametrize("reducer", [Truncate, PCA, SVD, GRP])
def test_rows_that_no_transform_returns_are_refused(X, reducer):
    fitted = reducer(4).fit(X)
    with pytest.raises(InputError, match="Y has 5 columns: expected 1 to 4, as transform returns"):
        fitted.inverse_transform(np.ones((3, 5)))
    with pytest.raises(InputError, match=r"Y has shape \(4,\): expected a matrix"):
        fitted.inverse_transform(np.ones(4))
    with pytest.raises(InputError, match="Y has NaN or infinite values"):
        fitted.inverse_transform(np.full((3, 4), np.nan))
