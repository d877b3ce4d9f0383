"""Isomap with all neighbours is pca; LLE is scikit-learn's up to sign and scale, SBERT-LP is LLE on
distinct rows.
"""

import numpy as np
import pytest
from sklearn import manifold

from repro.reducers import LLE, SBERTLP, Isomap
from repro.reducers.manifold import neighbor_graph, neighbour_sweep
from repro.types import InputError


def cloud(n=80, D=10, seed=0):
    return np.random.default_rng(seed).standard_normal((n, D)) * np.linspace(2, 0.5, D)


def repeated():
    """Ninety distinct rows, some of them twice or thrice, in no order."""
    X = cloud(90, 8)
    return np.random.default_rng(1).permutation(np.r_[X, X[:40], X[20:30]])


# Isomap


@pytest.mark.parametrize("k", [4, 8])
def test_isomap_is_scikit_learns_and_finds_its_fitted_rows_again(k):
    X, Q = cloud(), cloud(20, seed=1)
    oracle = manifold.Isomap(n_neighbors=k, n_components=5, eigen_solver="dense").fit(X)
    isomap = Isomap(5, n_neighbors=k).fit(X)
    signs = np.sign((isomap.embedding_ * oracle.embedding_).sum(0))
    np.testing.assert_allclose(isomap.embedding_ * signs, oracle.embedding_, atol=1e-4)
    np.testing.assert_allclose(isomap.transform(Q) * signs, oracle.transform(Q), atol=1e-4)
    np.testing.assert_allclose(isomap.transform(X), isomap.embedding_, atol=1e-5)


def test_pieces_are_joined_by_their_shortest_bridges():
    line = np.arange(4.0)
    X = np.r_[line, 10 + line, 30 + line][:, None]
    with pytest.warns(UserWarning, match="2 neighbours has 3 pieces"):
        graph = neighbor_graph(X, 2)
    assert graph[3, 4] == graph[4, 3] == 7.0 and graph[7, 8] == 17.0
    joined = [(i, j) for i, j in zip(*graph.nonzero(), strict=True) if abs(X[i] - X[j]) > 5]
    assert sorted(joined) == [(3, 4), (4, 3), (7, 8), (8, 7)]


# Lle


@pytest.mark.parametrize("options", [{}, {"reg": 0.05}])
@pytest.mark.parametrize("n, k, p", [(80, 5, 6), (80, 15, 10), (30, 12, 10), (250, 6, 8)])
def test_lle_is_scikit_learns_up_to_sign_and_scale_and_finds_its_rows_again(n, k, p, options):
    X, Q = cloud(n), cloud(20, seed=1)
    shared = {"n_components": p, "n_neighbors": k, **options}
    oracle = manifold.LocallyLinearEmbedding(eigen_solver="dense", **shared).fit(X)
    unit = LLE(**shared, scale="unit_norm").fit(X)
    signs = np.sign((unit.embedding_ * oracle.embedding_).sum(0))
    np.testing.assert_allclose(unit.embedding_ * signs, oracle.embedding_, atol=1e-5)
    np.testing.assert_allclose(unit.transform(Q) * signs, oracle.transform(Q), atol=1e-4)
    np.testing.assert_array_equal(unit.transform(X[[7, 3]]), unit.embedding_[[7, 3]])  # Exactly
    scaled = LLE(**shared).fit_transform(X)
    np.testing.assert_allclose(scaled, unit.embedding_ * np.sqrt(n), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("reducer", [LLE(6, n_neighbors=10), SBERTLP(6, n_neighbors=10)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_unit_covariance_centred_columns_and_what_the_weights_leave(reducer, dtype):
    X = (repeated() if isinstance(reducer, SBERTLP) else cloud(90)).astype(dtype)
    Y = reducer.fit(X).embedding_.astype(np.float64)
    assert Y.shape == (90, 6)
    np.testing.assert_allclose(Y.T @ Y / 90, np.eye(6), atol=1e-5)
    np.testing.assert_allclose(Y.sum(0), 0, atol=1e-4)
    left = ((Y - reducer.weights_ @ Y) ** 2).sum()  # ‖Y − WY‖² = nΣλ
    assert left == pytest.approx(90 * reducer.eigenvalues_.sum(), rel=1e-5)
    np.testing.assert_allclose(reducer.weights_.sum(1), 1, rtol=1e-12)


def test_as_many_neighbours_as_scikit_learn_has_unless_told_otherwise():
    X = cloud()
    for ours, theirs in ((Isomap, manifold.Isomap), (LLE, manifold.LocallyLinearEmbedding)):
        k = theirs().n_neighbors
        found, expected = ours(3).fit_transform(X), ours(3, n_neighbors=k).fit_transform(X)
        np.testing.assert_array_equal(found, expected)


# Sbertlp


@pytest.mark.parametrize(
    "X",
    [cloud(), repeated(), np.round(cloud(120, 3) * 2)],
    ids=["plain", "repeated", "ties"],
)
@pytest.mark.filterwarnings("ignore:.*eigenvalues below")
def test_a_sweep_gives_what_every_k_gives_alone(X):
    swept = neighbour_sweep(X, [5, 20, 9], 4, reg=1e-2)
    assert list(swept) == [5, 20, 9]
    for k, reducer in swept.items():
        alone = SBERTLP(4, n_neighbors=k, reg=1e-2).fit(X)
        np.testing.assert_array_equal(reducer.weights_.toarray(), alone.weights_.toarray())
        np.testing.assert_array_equal(reducer.transform(X), alone.transform(X))


def test_null_eigenvalues_are_counted():
    far = np.r_[cloud(40), cloud(40, seed=1) + 1000]  # Two clouds that share no neighbour
    with pytest.warns(UserWarning, match="1 eigenvalues below 1e-10 beyond the first"):
        split = SBERTLP(3, n_neighbors=8).fit(far)
    assert split.null_eigenvalues_ == 1 and split.eigenvalues_[0] < 1e-12 < split.eigenvalues_[1]
    assert np.ptp(split.embedding_[:40, 0]) < 1e-5 and np.ptp(split.embedding_[40:, 0]) < 1e-5
    X = np.r_[cloud(30), np.tile(cloud(1, seed=5), (12, 1)), np.tile(cloud(1, seed=6), (12, 1))]
    with pytest.warns(UserWarning, match="eigenvalues below"):
        kept = SBERTLP(3, n_neighbors=6, dedupe=False).fit(X)
    assert kept.null_eigenvalues_ > 0 and kept.embedding_.shape == (54, 3)
    assert SBERTLP(3, n_neighbors=6).fit(X).null_eigenvalues_ == 0


def test_too_few_distinct_rows_say_so():
    X = np.tile(cloud(12), (5, 1))
    for call, message in (
        (
            lambda: Isomap(3).fit(X[:12, :1] * [[1.0, 2.0]]),
            r"is 3: expected 1 to 1 \(the positive eigenvalues",
        ),
        (
            lambda: SBERTLP(3).fit(X),
            r"n_neighbors is 30: expected 1 to 11 .*; 48 more rows are duplicates",
        ),
        (
            lambda: neighbour_sweep(X, [5, 12], 3),
            r"n_neighbors is 12: expected 1 to 11 \(n - 1 of 12 rows\).*48 more",
        ),
        (lambda: neighbour_sweep(X, [], 3), "no numbers of neighbours"),
        (lambda: LLE(3, reg="x").fit(X), "reg is x: expected a number of at least 0"),
        (lambda: LLE(3, reg=np.nan).fit(X), "reg is nan: expected a number of at least 0"),
        (
            lambda: LLE(1, n_neighbors=2, reg=0).fit(np.arange(9.0)[:, None]),
            "reg is 0, and weights have no one solution",
        ),
    ):
        with pytest.raises(InputError, match=message):
            call()
