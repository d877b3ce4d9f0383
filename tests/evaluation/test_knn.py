"""Nearest neighbours and clusters against scikit-learn and slow loops, and what chance and a vote
for oneself give.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, mutual_info_score, normalized_mutual_info_score
from sklearn.neighbors import KNeighborsClassifier

from repro.evaluation import cluster_scores, knn_accuracy
from repro.evaluation.clusters import kmeans, partition_scores
from repro.evaluation.knn import knn_correct, knn_cv_correct
from repro.evaluation.labels import stratified_folds

rng = np.random.default_rng(0)


def blobs(n, seed=0):
    draw = np.random.default_rng(seed)
    y = draw.integers(3, size=n)
    return draw.normal(size=(n, 6)) + 2 * np.eye(3, 6)[y], y


@pytest.mark.parametrize("k", [1, 3, 4, 10])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equals_scikit_learn(k, dtype):
    (X, y), (Q, z) = blobs(120, seed=1), blobs(70, seed=2)
    X, Q = X.astype(dtype) + 100, Q.astype(dtype) + 100  # Far from the origin, where products round
    assert knn_accuracy(X, y, Q, z, k=k) == KNeighborsClassifier(k, algorithm="brute").fit(
        X,
        y,
    ).score(Q, z)


def test_three_neighbours_vote_unless_told_otherwise():
    draw = np.random.default_rng(1)
    X, Q = draw.normal(size=(120, 4)), draw.normal(size=(300, 4))
    y, z = draw.integers(2, size=120), draw.integers(2, size=300)
    for default, told in (
        (knn_accuracy(X, y, Q, z), lambda k: knn_accuracy(X, y, Q, z, k=k)),
        (knn_correct(X, y, Q, z), lambda k: knn_correct(X, y, Q, z, k=k)),
        (knn_cv_correct(X, y), lambda k: knn_cv_correct(X, y, k=k)),
    ):
        same = [k for k in range(1, 8) if np.array_equal(default, told(k))]
        assert same == [3]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 12))
def test_ties_and_duplicates_are_settled_as_by_a_slow_search(seed, width, k):
    draw = np.random.default_rng(seed)
    X, Q = (np.round(draw.normal(size=(n, width))).astype(np.float32) for n in (40, 15))
    y, z = draw.integers(4, size=40), draw.integers(4, size=15)
    votes = y[np.argsort(cdist(Q, X, "sqeuclidean"), axis=1, kind="stable")[:, :k]]
    expected = [np.bincount(row).argmax() for row in votes]
    np.testing.assert_array_equal(knn_correct(X, y, Q, z, k=k), expected == z)


def test_the_same_rows_on_both_sides_are_left_out():
    X, y = blobs(60, seed=5)
    alone = [knn_accuracy(np.delete(X, i, 0), np.delete(y, i), X[[i]], y[[i]]) for i in range(60)]
    assert knn_accuracy(X, y, X, y) == pytest.approx(np.mean(alone))


def test_a_query_that_votes_for_itself_is_a_classifier_scored_on_what_it_was_fitted_on():
    X, y = blobs(80, seed=6)
    for k in (1, 3, 5):
        naive = KNeighborsClassifier(k, algorithm="brute").fit(X, y).score(X, y)
        assert knn_accuracy(X, y, X, y, k=k, self_neighbour=True) == naive
        assert knn_cv_correct(X, y, k=k, self_neighbour=True).mean() == naive
    assert knn_accuracy(X, y, X, y, k=1, self_neighbour=True) == 1.0


def test_folds_equal_a_loop_over_folds():
    X, y = blobs(97, seed=7)
    fold = stratified_folds(y, 10, 3)
    right = np.empty(97, bool)
    for i in range(10):
        held = fold == i
        right[held] = KNeighborsClassifier(3).fit(X[~held], y[~held]).predict(X[held]) == y[held]
    np.testing.assert_array_equal(knn_cv_correct(X, y, seed=3), right)


# Clusters


def test_purity_counts_the_commonest_class_of_each_cluster():
    assert partition_scores([0, 0, 0, 0], [0, 0, 1, 1])["purity"] == 0.5, (
        "one cluster holds two classes"
    )
    assert partition_scores([0, 0, 1, 1], [0, 0, 0, 0])["purity"] == 1.0, (
        "two clusters share a class"
    )
    assert partition_scores([0, 0], [1, 1]) == {"mi": 0.0, "nmi": 1.0, "ari": 1.0, "purity": 1.0}


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 6), st.integers(1, 60))
def test_indicators_equal_scikit_learns(seed, clusters, classes, n):
    draw = np.random.default_rng(seed)
    found, y = draw.integers(clusters, size=n), draw.integers(classes, size=n)
    scores = partition_scores(found, y)
    assert scores["mi"] == pytest.approx(mutual_info_score(y, found), abs=1e-9)
    assert scores["ari"] == pytest.approx(adjusted_rand_score(y, found), abs=1e-9)
    if len(set(found)) > 1 or len(set(y)) > 1:
        assert scores["nmi"] == pytest.approx(normalized_mutual_info_score(y, found), abs=1e-9)


def test_kmeans_finds_what_is_there_repeats_itself_and_minds_no_turn():
    y = np.repeat(np.arange(5), 40)
    X = 20 * np.eye(5, 8)[y] + rng.normal(size=(200, 8))
    scores = cluster_scores(X, y, seed=0)
    assert scores["purity"] == 1 and scores["ari"] == pytest.approx(1)
    np.testing.assert_array_equal(kmeans(X, 7, seed=3), kmeans(X, 7, seed=3))
    shapeless = rng.normal(size=(200, 8))
    assert adjusted_rand_score(kmeans(shapeless, 7, seed=3), kmeans(shapeless, 7, seed=4)) < 0.99
    assert len(set(kmeans(X, 7, seed=3))) == 7
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    assert cluster_scores(17 * X @ turn, y, seed=0) == pytest.approx(scores)


def test_the_best_of_ten_starts_is_kept():
    X = np.random.default_rng(0).normal(size=(150, 4))

    def spread(found):
        return sum(((X[found == c] - X[found == c].mean(0)) ** 2).sum() for c in np.unique(found))

    single = [spread(KMeans(12, n_init=1, random_state=seed).fit(X).labels_) for seed in range(40)]
    assert max(spread(kmeans(X, 12, seed=seed)) for seed in range(6)) < np.quantile(single, 0.4)
