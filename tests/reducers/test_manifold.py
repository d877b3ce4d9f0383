"""Isomap with all neighbours is pca; LLE is scikit-learn's up to sign and scale, and keeps its fitted rows."""

import numpy as np
import pytest
from sklearn import manifold
from sklearn.exceptions import NotFittedError

from repro.reducers import LLE, PCA, Isomap, neighbors
from repro.reducers.manifold import neighbor_graph
from repro.types import InputError


def cloud(n=80, D=10, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, D)) * np.linspace(2, 0.5, D)


def aligned(Y, reference):
    """Y with the signs of the reference's columns."""
    return Y * np.sign((Y * reference).sum(0))


@pytest.mark.parametrize("n, D, p", [(40, 6, 6), (10, 30, 9), (2, 3, 1)])
def test_isomap_with_every_neighbour_is_pca(n, D, p):
    X = cloud(n, D)
    pca = PCA(p).fit_transform(X)
    isomap = Isomap(p, n_neighbors=n - 1).fit_transform(X)
    np.testing.assert_allclose(aligned(isomap, pca), pca, atol=1e-4)


@pytest.mark.parametrize("k", [4, 8])
def test_isomap_is_scikit_learns(k):
    X, Q = cloud(), cloud(20, seed=1)
    oracle = manifold.Isomap(n_neighbors=k, n_components=5, eigen_solver="dense").fit(X)
    ours = Isomap(5, n_neighbors=k).fit(X)
    np.testing.assert_allclose(aligned(ours.embedding_, oracle.embedding_), oracle.embedding_, atol=1e-4)
    signs = np.sign((ours.embedding_ * oracle.embedding_).sum(0))
    np.testing.assert_allclose(ours.transform(Q) * signs, oracle.transform(Q), atol=1e-4)


def test_isomap_finds_its_fitted_rows_again():
    X = cloud()
    isomap = Isomap(4).fit(X)
    np.testing.assert_allclose(isomap.transform(X), isomap.embedding_, atol=1e-5)
    np.testing.assert_array_equal(Isomap(4).fit_transform(X), isomap.embedding_)


def test_isomap_unrolls_a_curve():
    t = np.linspace(0, 4.5, 120)
    Y = Isomap(1, n_neighbors=2).fit_transform(np.c_[np.cos(t), np.sin(t)])
    assert abs(np.corrcoef(Y[:, 0], t)[0, 1]) > 0.9999


def test_pieces_are_joined_by_their_shortest_bridges():
    line = np.arange(4.0)
    X = np.r_[line, 10 + line, 30 + line][:, None]
    with pytest.warns(UserWarning, match="2 neighbours has 3 pieces"):
        graph = neighbor_graph(X, 2)
    assert graph[3, 4] == graph[4, 3] == 7.0 and graph[7, 8] == 17.0
    joined = [(i, j) for i, j in zip(*graph.nonzero(), strict=True) if abs(X[i] - X[j]) > 5]
    assert sorted(joined) == [(3, 4), (4, 3), (7, 8), (8, 7)]
    with pytest.warns(UserWarning, match="3 pieces"):
        Y = Isomap(1, n_neighbors=2).fit_transform(X)
    np.testing.assert_allclose(np.abs(Y - Y[0])[:, 0], X[:, 0], rtol=1e-5)


def test_duplicates_of_a_row_stay_together_in_isomap():
    X = np.repeat(cloud(10, 4), 3, axis=0)
    Y = Isomap(3, n_neighbors=6).fit_transform(X)
    np.testing.assert_allclose(Y[::3], Y[1::3], atol=1e-6)


def test_isomap_names_the_positive_eigenvalues():
    X = np.linspace(0, 1, 12)[:, None] * [[1.0, 2.0]]  # on a line: one positive eigenvalue
    with pytest.raises(InputError, match=r"n_components is 3: expected 1 to 1 \(the positive eigenvalues"):
        Isomap(3).fit(X)


@pytest.mark.parametrize("n, k, p", [(80, 5, 6), (80, 15, 10), (30, 12, 10), (250, 6, 8)])
def test_lle_is_scikit_learns_up_to_sign_and_scale(n, k, p):
    X = cloud(n)
    oracle = manifold.LocallyLinearEmbedding(n_neighbors=k, n_components=p, eigen_solver="dense").fit_transform(X)
    unit = LLE(p, n_neighbors=k, scale="unit_norm").fit_transform(X)
    np.testing.assert_allclose(aligned(unit, oracle), oracle, atol=1e-5)
    np.testing.assert_allclose(LLE(p, n_neighbors=k).fit_transform(X), unit * np.sqrt(n), rtol=1e-5, atol=1e-5)


def test_lle_has_unit_covariance_and_centred_columns():
    Y = LLE(7).fit_transform(cloud()).astype(np.float64)
    np.testing.assert_allclose(Y.T @ Y / len(Y), np.eye(7), atol=1e-5)
    np.testing.assert_allclose(Y.sum(0), 0, atol=1e-4)


def test_what_the_weights_leave_is_n_times_the_eigenvalues():
    X = cloud()
    lle = LLE(7).fit(X)
    Y = lle.embedding_.astype(np.float64)
    left = ((Y - lle.weights_ @ Y) ** 2).sum()
    assert left == pytest.approx(len(X) * lle.eigenvalues_.sum(), rel=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lle_returns_its_fitted_rows_exactly(dtype):
    X = cloud().astype(dtype)
    lle = LLE(5)
    Y = lle.fit_transform(X)
    np.testing.assert_array_equal(lle.transform(X), Y)
    np.testing.assert_array_equal(lle.transform(X[[7, 3]]), Y[[7, 3]])
    np.testing.assert_array_equal(lle.embedding_, Y)


def test_lle_out_of_sample_is_scikit_learns():
    X, Q = cloud(), cloud(20, seed=1)
    oracle = manifold.LocallyLinearEmbedding(n_neighbors=6, n_components=4, eigen_solver="dense").fit(X)
    ours = LLE(4, n_neighbors=6, scale="unit_norm").fit(X)
    signs = np.sign((ours.embedding_ * oracle.embedding_).sum(0))
    np.testing.assert_allclose(ours.transform(Q) * signs, oracle.transform(Q), atol=1e-5)


def test_lle_without_kept_inner_products_is_the_same(monkeypatch):
    X, Q = cloud(), cloud(20, seed=1)
    kept = LLE(4).fit(X)
    monkeypatch.setattr(neighbors, "LARGEST", 0)
    lean = LLE(4).fit(X)
    assert kept._gram is not None and lean._gram is None
    np.testing.assert_allclose(lean.embedding_, kept.embedding_, atol=1e-5)
    np.testing.assert_allclose(lean.transform(Q), kept.transform(Q), atol=1e-5)


@pytest.mark.parametrize("p", [1, 4, 9])
@pytest.mark.parametrize("reducer", [Isomap, LLE])
def test_a_prefix_of_the_largest_fit_is_the_smaller_fit(reducer, p):
    X = cloud()
    large = reducer(11).fit(X)
    np.testing.assert_allclose(large.prefix(large.embedding_, p), reducer(p).fit_transform(X), rtol=1e-4, atol=1e-4)


def test_many_duplicates_are_legal_and_warned_of():
    X = np.r_[cloud(20, 4), np.tile(cloud(1, 4, seed=5), (8, 1))]
    with pytest.warns(UserWarning, match="eigenvalues below 1e-10 beyond the first"):
        Y = LLE(3, n_neighbors=4).fit_transform(X)
    assert np.isfinite(Y).all()
    np.testing.assert_array_equal(Y[20], Y[27])  # transform cannot tell them apart


@pytest.mark.parametrize("reducer", [Isomap, LLE])
def test_the_smallest_input(reducer):
    X = np.array([[0.0, 1.0], [2.0, 1.0]])
    Y = reducer(1, n_neighbors=1).fit_transform(X)
    np.testing.assert_allclose(Y, -Y[::-1], atol=1e-6)
    assert reducer(1, n_neighbors=1).fit(X).transform(X + 0.1).shape == (2, 1)


@pytest.mark.parametrize("reducer", [Isomap, LLE])
def test_input_that_cannot_be_embedded(reducer):
    X = cloud()
    broken = X.copy()
    broken[7, 3] = np.inf
    with pytest.raises(InputError, match="first in row 7"):
        reducer(2).fit(broken)
    with pytest.raises(InputError, match="n_neighbors is 80: expected 1 to 79"):
        reducer(2, n_neighbors=80).fit(X)
    with pytest.raises(InputError, match=r"n_components is 80: expected 1 to 79 \(n - 1 of 80 rows\)"):
        reducer(80).fit(X)
    with pytest.raises(InputError, match="9 features"):
        reducer(2).fit(X).transform(X[:, 1:])
    with pytest.raises(InputError, match="1 sample"):
        reducer(1).fit(X[:1])
    with pytest.raises(NotFittedError):
        reducer(2).transform(X)


def test_an_unknown_scale_lists_the_known():
    with pytest.raises(InputError, match="unknown scale 'unit': choose one of unit_variance, unit_norm"):
        LLE(2, scale="unit").fit(cloud())
