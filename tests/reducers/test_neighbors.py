"""Neighbours by brute force, weights by their definition, and the invariances that make them
geometric.
"""

import numpy as np
import pytest
from scipy import linalg

from repro.reducers import neighbors
from repro.reducers.neighbors import RowIndex, gram_matrix, nearest, reconstruction_weights
from repro.types import InputError


def cloud(n=60, D=8, seed=0):
    return np.random.default_rng(seed).standard_normal((n, D))


def assert_nearest(X, k, Q=None):
    """Neighbours are those of sorted distances, ties by index."""
    chosen = []
    for i, q in enumerate(X if Q is None else Q):
        others = [j for j in range(len(X)) if Q is not None or j != i]
        chosen.append(sorted(sorted(others, key=lambda j, q=q: (((X[j] - q) ** 2).sum(), j))[:k]))
    np.testing.assert_array_equal(nearest(X, k, Q), chosen)


def weights_of(X, k=6):
    return reconstruction_weights(X, nearest(X, k), X)


@pytest.mark.parametrize("k", [1, 3, 4, 7])
def test_ties_go_to_the_smaller_index_and_no_row_is_its_own_neighbour(k):
    assert_nearest(cloud(), 8 * k)
    assert_nearest(cloud(), k, cloud(9, seed=1))
    grid = np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0)), -1).reshape(-1, 2)
    assert_nearest(grid, k)
    assert_nearest(grid, k, grid + 0.5)
    assert_nearest(np.eye(12), k)
    assert_nearest(np.repeat(cloud(6), 5, axis=0)[np.random.default_rng(0).permutation(30)], k)
    assert_nearest(np.ones((8, 3)), k)


def test_neighbours_do_not_know_offset_and_size():
    X, Q = np.round(cloud() * 8) / 8, cloud(9, seed=1)
    np.testing.assert_array_equal(nearest(X + 1024.0, 5), nearest(X, 5))
    for size in (1e-30, 1e-3, 1e30):
        np.testing.assert_array_equal(nearest(X * size, 5), nearest(X, 5))
        np.testing.assert_array_equal(nearest(X * size, 5, Q * size), nearest(X, 5, Q))


def test_near_ties_below_single_precision_are_told_apart():
    directions = cloud(40, 6)
    sphere = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    X = np.r_[
        sphere * (1 + 1e-9 * np.random.default_rng(1).permutation(40))[:, None],
        5 * cloud(30, 6, seed=2),
    ]
    assert_nearest(X, 7, np.zeros((1, 6)))
    far = np.r_[X, [np.full(6, 1e6)]]  # One row so long that single precision settles nothing
    assert_nearest(far, 7, np.zeros((1, 6)))


def test_neighbours_beyond_reach():
    with pytest.raises(InputError, match="n_neighbors is 60: expected 1 to 59"):
        nearest(cloud(), 60)
    with pytest.raises(InputError, match="squares overflow; divide X"):
        nearest(cloud() * 1e200, 5)


@pytest.mark.parametrize("k", [2, 5, 40])
def test_inner_products_give_the_same_neighbours_and_weights(k, monkeypatch):
    X, Q = np.r_[cloud(), np.round(cloud(seed=4))] + 100.0, cloud(30, seed=5) + 100.0
    gram = gram_matrix(X)
    indices, asked = nearest(X, k), nearest(X, k, Q)
    np.testing.assert_array_equal(nearest(X, k, gram=gram), indices)
    fast = (
        reconstruction_weights(X, indices, X, gram=gram),
        reconstruction_weights(X, asked, Q, gram=gram),
    )
    monkeypatch.setattr(neighbors, "LARGEST", 0)
    slow = reconstruction_weights(X, indices, X), reconstruction_weights(X, asked, Q)
    for a, b in zip(fast, slow, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


def test_inner_products_do_not_decide_over_close_rows():
    clusters = np.repeat(cloud(6), 5, axis=0)
    X = clusters + 1e-7 * cloud(30, seed=6)  # Squared distances of 1e-13 between squares of 10
    indices = nearest(X, 4)
    # The same differences, without cancellation
    exact = reconstruction_weights(X - clusters, indices, X - clusters)
    np.testing.assert_allclose(
        reconstruction_weights(X, indices, X, gram=gram_matrix(X)),
        exact,
        rtol=1e-5,
    )
    # Equal to the point: evenly
    np.testing.assert_array_equal(weights_of(clusters, 4), np.full((30, 4), 0.25))


@pytest.mark.parametrize("k", [3, 8, 20])
def test_weights_sum_to_one_and_solve_their_systems(k):
    X = cloud()
    indices, weights = nearest(X, k), weights_of(X, k)
    np.testing.assert_allclose(weights.sum(1), 1.0, rtol=1e-12)
    for i in (0, 31):
        N = X[indices[i]] - X[i]
        G = N @ N.T
        w = linalg.solve(G + 1e-3 * np.trace(G) * np.eye(k), np.ones(k))
        np.testing.assert_allclose(weights[i], w / w.sum(), rtol=1e-8)


def test_blocks_equal_the_whole(monkeypatch):
    X, Q = cloud(), cloud(17, seed=3)
    whole = nearest(X, 6, Q), nearest(np.round(X), 6), weights_of(X)
    for name, size in (("BLOCK", 64), ("PRODUCTS", 128), ("STRIPE", 4)):
        monkeypatch.setattr(neighbors, name, size)
    for a, b in zip(whole, (nearest(X, 6, Q), nearest(np.round(X), 6), weights_of(X)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_rows_are_found_bit_for_bit():
    X = cloud().astype(np.float32)
    X[5] = X[2]
    X[9, 0] = 0.0
    rows, minus = RowIndex(X), X[[9]].astype(np.float64)
    minus[0, 0] = -0.0
    assert RowIndex(minus).find(X[[9]]) == [0]
    np.testing.assert_array_equal(rows.find(X[[2, 5, 9]]), [2, 2, 9])
    assert rows.find(minus) == [9] and rows.find(np.nextafter(X[[3]], np.float32(9))) == [-1]
