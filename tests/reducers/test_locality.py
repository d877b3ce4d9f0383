"""Neighbours by brute force, weights by their definition, and the invariances that make them geometric."""

import numpy as np
import pytest
from scipy import linalg

from repro.reducers import locality, neighbors
from repro.reducers.locality import (
    RowIndex,
    bottom_eigenvectors,
    gram_matrix,
    nearest,
    reconstruction_weights,
    weight_matrix,
)
from repro.types import InputError


def cloud(n=60, D=8, seed=0):
    return np.random.default_rng(seed).standard_normal((n, D))


def by_hand(X, k, Q=None):
    chosen = []
    for i, q in enumerate(X if Q is None else Q):
        others = [j for j in range(len(X)) if Q is not None or j != i]
        chosen.append(sorted(sorted(others, key=lambda j: (((X[j] - q) ** 2).sum(), j))[:k]))
    return np.array(chosen)


def weights_of(X, k=6):
    indices = nearest(X, k)
    return reconstruction_weights(X, indices, X)


@pytest.mark.parametrize("k", [1, 5, 59])
def test_neighbours_are_the_nearest_rows(k):
    X = cloud()
    np.testing.assert_array_equal(nearest(X, k), by_hand(X, k))
    np.testing.assert_array_equal(nearest(X, k, cloud(9, seed=1)), by_hand(X, k, cloud(9, seed=1)))


@pytest.mark.parametrize("k", [1, 3, 4, 7])
def test_ties_go_to_the_smaller_index(k):
    grid = np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0)), -1).reshape(-1, 2)
    np.testing.assert_array_equal(nearest(grid, k), by_hand(grid, k))
    np.testing.assert_array_equal(nearest(grid, k, grid + 0.5), by_hand(grid, k, grid + 0.5))
    simplex = np.eye(12)
    np.testing.assert_array_equal(nearest(simplex, k), by_hand(simplex, k))


@pytest.mark.parametrize("k", [2, 4, 11])
def test_a_row_is_not_its_own_neighbour_among_duplicates(k):
    X = np.repeat(cloud(6), 5, axis=0)[np.random.default_rng(0).permutation(30)]
    np.testing.assert_array_equal(nearest(X, k), by_hand(X, k))
    same = np.ones((8, 3))
    np.testing.assert_array_equal(nearest(same, 4), by_hand(same, 4))


def test_neighbours_do_not_move_with_a_large_offset():
    X = np.round(cloud() * 8) / 8
    np.testing.assert_array_equal(nearest(X + 1024.0, 5), nearest(X, 5))


@pytest.mark.parametrize("size", [1e-30, 1e-3, 1e30])
def test_neighbours_do_not_know_the_size(size):
    X, Q = cloud(), cloud(9, seed=1)
    np.testing.assert_array_equal(nearest(X * size, 5), nearest(X, 5))
    np.testing.assert_array_equal(nearest(X * size, 5, Q * size), nearest(X, 5, Q))


def test_near_ties_below_single_precision_are_told_apart():
    directions = cloud(40, 6)
    sphere = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    X = np.r_[sphere * (1 + 1e-9 * np.random.default_rng(1).permutation(40))[:, None], 5 * cloud(30, 6, seed=2)]
    Q = np.zeros((1, 6))
    np.testing.assert_array_equal(nearest(X, 7, Q), by_hand(X, 7, Q))
    far = np.r_[X, [np.full(6, 1e6)]]  # one row so long that single precision settles nothing
    np.testing.assert_array_equal(nearest(far, 7, Q), by_hand(X, 7, Q))
    np.testing.assert_array_equal(nearest(far, 7)[:70], by_hand(far, 7)[:70])


def test_distances_out_of_range():
    with pytest.raises(InputError, match="squares overflow; divide X"):
        nearest(cloud() * 1e200, 5)


@pytest.mark.parametrize("k", [2, 5, 40])
def test_inner_products_give_the_same_neighbours_and_weights(k, monkeypatch):
    X, Q = np.r_[cloud(), np.round(cloud(seed=4))] + 100.0, cloud(30, seed=5) + 100.0
    gram = gram_matrix(X)
    indices, asked = nearest(X, k), nearest(X, k, Q)
    np.testing.assert_array_equal(nearest(X, k, gram=gram), indices)
    fast = reconstruction_weights(X, indices, X, gram=gram), reconstruction_weights(X, asked, Q, gram=gram)
    monkeypatch.setattr(neighbors, "LARGEST", 0)
    assert gram_matrix(X) is None
    slow = reconstruction_weights(X, indices, X), reconstruction_weights(X, asked, Q)
    for a, b in zip(fast, slow, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


def test_inner_products_do_not_decide_over_close_rows():
    clusters = np.repeat(cloud(6), 5, axis=0)
    X = clusters + 1e-7 * cloud(30, seed=6)  # squared distances of 1e-13 between squares of 10
    indices = nearest(X, 4)
    exact = reconstruction_weights(X - clusters, indices, X - clusters)  # the same differences, without cancellation
    np.testing.assert_allclose(reconstruction_weights(X, indices, X, gram=gram_matrix(X)), exact, rtol=1e-5)
    same = nearest(clusters, 4)
    np.testing.assert_array_equal(
        reconstruction_weights(clusters, same, clusters, gram=gram_matrix(clusters)), np.full((30, 4), 0.25)
    )


@pytest.mark.parametrize("k, limit", [(0, "1 to 59"), (60, "1 to 59")])
def test_neighbours_beyond_reach(k, limit):
    with pytest.raises(InputError, match=f"n_neighbors is {k}: expected {limit}"):
        nearest(cloud(), k)


@pytest.mark.parametrize("k", [3, 8, 20])
def test_weights_sum_to_one_and_solve_their_systems(k):
    X = cloud()
    indices = nearest(X, k)
    weights = reconstruction_weights(X, indices, X)
    np.testing.assert_allclose(weights.sum(1), 1.0, rtol=1e-12)
    for i in (0, 31):
        N = X[indices[i]] - X[i]
        G = N @ N.T
        w = linalg.solve(G + 1e-3 * np.trace(G) * np.eye(k), np.ones(k))
        np.testing.assert_allclose(weights[i], w / w.sum(), rtol=1e-8)


def test_weights_do_not_know_rotation_translation_or_scale():
    X = cloud()
    Q = linalg.qr(cloud(8, 8, seed=2))[0]
    for moved in (X @ Q, X + 3.0, 7.0 * X):
        np.testing.assert_allclose(weights_of(moved), weights_of(X), atol=1e-8)


def test_a_point_among_its_neighbours_is_reconstructed():
    corners = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    weights = reconstruction_weights(corners, np.array([[0, 1, 2]]), np.array([[0.5, 0.5]]), reg=1e-12)
    np.testing.assert_allclose(weights, [[0.5, 0.25, 0.25]], atol=1e-6)


def test_neighbours_equal_to_the_point_share_evenly():
    X = np.ones((6, 3))
    np.testing.assert_array_equal(weights_of(X, 4), np.full((6, 4), 0.25))


def test_blocks_equal_the_whole(monkeypatch):
    X, Q = cloud(), cloud(17, seed=3)
    ties = np.round(X)
    whole = nearest(X, 6, Q), nearest(ties, 6), weights_of(X)
    monkeypatch.setattr(neighbors, "BLOCK", 64)
    monkeypatch.setattr(neighbors, "PRODUCTS", 128)
    monkeypatch.setattr(locality, "STRIPE", 4)
    for a, b in zip(whole, (nearest(X, 6, Q), nearest(ties, 6), weights_of(X)), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("count", [1, 5, 59])
def test_bottom_eigenvectors_equal_those_of_the_dense_matrix(count):
    X = cloud()
    W = weight_matrix(nearest(X, 6), weights_of(X), len(X))
    values, vectors = bottom_eigenvectors(W, count)
    A = np.eye(len(X)) - W.toarray()
    dense, V = np.linalg.eigh(A.T @ A)
    np.testing.assert_allclose(values, dense[1 : count + 1], atol=1e-9)
    np.testing.assert_allclose(np.abs(vectors.T @ V[:, 1 : count + 1]), np.eye(count), atol=1e-6)
    np.testing.assert_allclose(vectors.sum(0), 0, atol=1e-8)


def test_two_pieces_have_two_null_vectors():
    X = np.r_[cloud(20), cloud(20) + 100]
    W = weight_matrix(nearest(X, 5), weights_of(X, 5), 40)
    with pytest.warns(UserWarning, match="1 eigenvalues below 1e-10"):
        values, vectors = bottom_eigenvectors(W, 2)
    assert values[0] < 1e-12 < values[1]
    assert np.ptp(vectors[:20, 0]) < 1e-6 and np.ptp(vectors[20:, 0]) < 1e-6


def test_rows_are_found_bit_for_bit():
    X = cloud().astype(np.float32)
    X[5] = X[2]
    X[9, 0] = 0.0
    rows = RowIndex(X)
    np.testing.assert_array_equal(rows.find(X[[2, 5, 9]]), [2, 2, 9])
    minus = X[[9]].astype(np.float64)
    minus[0, 0] = -0.0
    assert rows.find(minus) == [9]
    assert rows.find(np.nextafter(X[[3]], np.float32(9))) == [-1]
