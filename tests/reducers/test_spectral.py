"""Eigenvectors by a Krylov space are those of the dense solver, or the dense solver's."""

import numpy as np
import pytest
from scipy import sparse

from repro.reducers import spectral
from repro.reducers.neighbors import nearest, reconstruction_weights, weight_matrix
from repro.reducers.spectral import bottom_eigenpairs, orient, top_eigenpairs


def residual_matrix(X, k):
    """I − W."""
    indices = nearest(X, k)
    W = weight_matrix(indices, reconstruction_weights(X, indices, X), len(X))
    return sparse.eye_array(len(X), format="csr") - W


def cloud(n, D):
    return np.random.default_rng(0).standard_normal((n, D))


def test_the_largest_entry_is_positive():
    V = orient(np.array([[0.1, -2.0, 3.0], [-5.0, 1.0, -3.0], [0.0, 0.0, 1.0]]))
    np.testing.assert_array_equal(V, [[-0.1, 2.0, 3.0], [5.0, -1.0, -3.0], [0.0, 0.0, 1.0]])
    tied = np.array([[-2.0], [2.0 + 1e-12]])  # Larger by rounding alone: the first decides
    np.testing.assert_array_equal(orient(tied), -tied)


@pytest.mark.parametrize("D, k, count", [(40, 10, 40), (3, 12, 40), (40, 10, 2)])
def test_krylov_and_dense_agree(D, k, count):
    A = residual_matrix(cloud(1000, D), k)
    M = (A.T @ A).tocsr()
    values, vectors = spectral._inverse_krylov(A, M, count)
    dense, V = spectral._dense(M, count)
    np.testing.assert_allclose(values, dense, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(np.abs((vectors * V).sum(0)), 1.0, atol=1e-8)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(count), atol=1e-10)
    np.testing.assert_allclose(vectors.sum(0), 0.0, atol=1e-9)
    np.testing.assert_array_equal(bottom_eigenpairs(A, count)[1], orient(vectors))


def test_many_equal_eigenvalues_are_left_to_the_dense_solver():
    apart = sparse.block_diag(
        [residual_matrix(cloud(25, 3) + i, 4) for i in range(48)],
        format="csr",
    )
    # 48 null vectors, steps of 24
    assert spectral._inverse_krylov(apart, (apart.T @ apart).tocsr(), 44) is None
    values, vectors = bottom_eigenpairs(apart, 44)
    assert values.max() < 1e-10 and np.abs(apart @ vectors).max() < 1e-8


@pytest.mark.parametrize("n, count", [(1000, 3), (1000, 40), (30, 3)])
def test_top_eigenpairs_are_numpys(n, count):
    X = cloud(n, n) * np.geomspace(1, 1e-3, n)
    X -= X.mean(0)
    B = X @ X.T
    values, vectors = top_eigenpairs(B.copy(), count)
    oracle, V = np.linalg.eigh(B)
    np.testing.assert_allclose(values, oracle[::-1][:count], rtol=1e-9)
    np.testing.assert_allclose(np.abs((vectors * V[:, ::-1][:, :count]).sum(0)), 1.0, atol=1e-7)
    assert n < 1000 or spectral._krylov(B, count) is not None


def test_a_simplex_of_equal_eigenvalues_is_left_to_the_dense_solver():
    B = np.eye(1000) - 1 / 1000
    assert spectral._krylov(B, 40) is None
    values, vectors = top_eigenpairs(B.copy(), 40)
    np.testing.assert_allclose(values, 1.0)
    np.testing.assert_allclose(B @ vectors, vectors, atol=1e-10)
