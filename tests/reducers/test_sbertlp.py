"""SBERT-LP: LLE on distinct rows, of unit covariance, which finds its fitted rows again; one search serves every k."""

import numpy as np
import pytest

from repro.reducers import LLE, SBERTLP, neighbour_sweep, sbertlp
from repro.types import InputError


def cloud(n=90, D=8, seed=0):
    return np.random.default_rng(seed).standard_normal((n, D)) * np.linspace(2, 0.5, D)


def repeated(seed=0):
    """Ninety distinct rows, some of them twice or thrice, in no order."""
    X = cloud(seed=seed)
    return np.random.default_rng(1).permutation(np.r_[X, X[:40], X[20:30]])


def test_without_duplicates_it_is_lle():
    X, Q = cloud(), cloud(12, seed=2)
    ours, lle = SBERTLP(5, n_neighbors=12).fit(X), LLE(5, n_neighbors=12).fit(X)
    np.testing.assert_array_equal(ours.embedding_, lle.embedding_)
    np.testing.assert_array_equal(ours.transform(Q), lle.transform(Q))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distinct_rows_have_unit_covariance_and_sum_to_zero(dtype):
    fitted = SBERTLP(6, n_neighbors=10).fit(repeated().astype(dtype))
    Y = fitted.embedding_.astype(np.float64)
    assert Y.shape == (90, 6)
    np.testing.assert_allclose(Y.T @ Y / 90, np.eye(6), atol=1e-5)
    np.testing.assert_allclose(Y.sum(0), 0, atol=1e-4)


def test_what_the_weights_leave_is_n_times_the_eigenvalues():
    fitted = SBERTLP(6, n_neighbors=10).fit(repeated())
    Y = fitted.embedding_.astype(np.float64)
    left = ((Y - fitted.weights_ @ Y) ** 2).sum()  # ‖Y − WY‖² = nΣλ
    assert left == pytest.approx(90 * fitted.eigenvalues_.sum(), rel=1e-5)
    np.testing.assert_allclose(fitted.weights_.sum(1), 1, rtol=1e-12)


def test_duplicates_share_the_row_that_was_fitted():
    X = repeated()
    reducer = SBERTLP(5, n_neighbors=10)
    Y = reducer.fit_transform(X)
    np.testing.assert_array_equal(reducer.transform(X), Y)
    distinct, first = np.unique(X, axis=0, return_index=True)
    np.testing.assert_array_equal(reducer.transform(distinct), Y[first])
    for row, y in zip(X, Y, strict=True):
        np.testing.assert_array_equal(Y[np.equal(X, row).all(1)], np.tile(y, (np.equal(X, row).all(1).sum(), 1)))


@pytest.mark.parametrize("turn", ["rotation", "translation", "scaling"])
def test_weights_do_not_move_with_the_rows(turn):
    X = cloud()
    rotation = np.linalg.qr(np.random.default_rng(3).standard_normal((8, 8)))[0]
    moved = {"rotation": X @ rotation, "translation": X + 3, "scaling": X * 7}[turn]
    before, after = SBERTLP(2, n_neighbors=10).fit(X), SBERTLP(2, n_neighbors=10).fit(moved)
    np.testing.assert_allclose(after.weights_.toarray(), before.weights_.toarray(), atol=1e-8)


def test_new_rows_are_combined_from_their_neighbours():
    X, Q = cloud(), cloud(15, seed=4)
    fitted = SBERTLP(4, n_neighbors=10).fit(X)
    for query, y in zip(Q, fitted.transform(Q), strict=True):
        near = np.argsort(np.linalg.norm(X - query, axis=1))[:10]
        N = (query - X[near]).T  # (D, k): its columns are the differences of Eq. 5
        G = N.T @ N
        w = np.linalg.solve(G + 1e-3 * np.trace(G) * np.eye(10), np.ones(10))
        np.testing.assert_allclose(y, w / w.sum() @ fitted.embedding_[near], atol=1e-5)


@pytest.mark.parametrize("X", [cloud(), repeated(), np.round(cloud(120, 3) * 2)], ids=["plain", "repeated", "ties"])
@pytest.mark.filterwarnings("ignore:.*eigenvalues below")
def test_one_search_serves_every_k(X, monkeypatch):
    searches = []
    search = sbertlp.nearest
    monkeypatch.setattr(sbertlp, "nearest", lambda *args, **more: searches.append(args[1]) or search(*args, **more))
    swept = neighbour_sweep(X, [5, 20, 9], 4, reg=1e-2)
    assert searches == [20] and list(swept) == [5, 20, 9]
    for k, reducer in swept.items():
        alone = SBERTLP(4, n_neighbors=k, reg=1e-2).fit(X)
        np.testing.assert_array_equal(reducer.weights_.toarray(), alone.weights_.toarray())
        np.testing.assert_array_equal(reducer.embedding_, alone.embedding_)
        np.testing.assert_array_equal(reducer.transform(X), alone.transform(X))


def test_null_eigenvalues_are_counted():
    far = np.r_[cloud(40), cloud(40, seed=1) + 1000]  # two clouds that share no neighbour
    with pytest.warns(UserWarning, match="1 eigenvalues below 1e-10 beyond the first"):
        fitted = SBERTLP(3, n_neighbors=8).fit(far)
    assert fitted.null_eigenvalues_ == 1
    assert SBERTLP(3, n_neighbors=8).fit(cloud()).null_eigenvalues_ == 0


def test_kept_duplicates_split_the_graph():
    X = np.r_[cloud(30), np.tile(cloud(1, seed=5), (12, 1)), np.tile(cloud(1, seed=6), (12, 1))]
    with pytest.warns(UserWarning, match="eigenvalues below"):
        kept = SBERTLP(3, n_neighbors=6, dedupe=False)
        Y = kept.fit_transform(X)
    assert kept.null_eigenvalues_ > 0 and kept.embedding_.shape == (54, 3)
    np.testing.assert_array_equal(Y, kept.transform(X))
    assert SBERTLP(3, n_neighbors=6).fit(X).null_eigenvalues_ == 0


def test_too_few_distinct_rows_say_so():
    X = np.tile(cloud(12), (5, 1))
    with pytest.raises(InputError, match=r"n_neighbors is 30: expected 1 to 11 .*; 48 more rows are duplicates"):
        SBERTLP(3).fit(X)
    with pytest.raises(InputError, match=r"n_components is 12: expected 1 to 11 .*; 48 more rows are duplicates"):
        SBERTLP(12, n_neighbors=5).fit(X)
    with pytest.raises(InputError, match=r"n_neighbors is 12: expected 1 to 11 \(n - 1 of 12 rows\).*48 more"):
        neighbour_sweep(X, [5, 12], 3)
    with pytest.raises(InputError, match="no numbers of neighbours"):
        neighbour_sweep(X, [], 3)
    with pytest.raises(InputError, match="expected"):
        SBERTLP(1, n_neighbors=1).fit(np.ones((5, 3)))  # one distinct row


@pytest.mark.parametrize("p", [1, 3, 6])
def test_a_prefix_of_the_largest_fit_is_the_smaller_fit(p):
    X = repeated()
    large = SBERTLP(8, n_neighbors=10)
    Y = large.fit_transform(X)
    np.testing.assert_allclose(large.prefix(Y, p), SBERTLP(p, n_neighbors=10).fit_transform(X), rtol=1e-4, atol=1e-4)
