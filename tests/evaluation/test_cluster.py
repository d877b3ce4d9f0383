"""Clustering indicators: closed forms, scikit-learn, and what permutations and chance must give."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, mutual_info_score, normalized_mutual_info_score

from repro.evaluation import cluster_scores
from repro.evaluation.classify import kmeans, partition_scores

rng = np.random.default_rng(0)


def test_permuted_labels_are_a_perfect_partition():
    y = np.repeat(np.arange(20), 30)
    scores = partition_scores(rng.permutation(20)[y], y)
    assert scores["nmi"] == pytest.approx(1) and scores["ari"] == pytest.approx(1) and scores["purity"] == 1
    assert scores["mi"] == pytest.approx(np.log(20))  # nats, and no more than ln 20
    assert partition_scores([0, 0], [1, 1]) == {"mi": 0.0, "nmi": 1.0, "ari": 1.0, "purity": 1.0}


def test_purity_counts_the_commonest_class_of_each_cluster():
    assert partition_scores([0, 0, 0, 0], [0, 0, 1, 1])["purity"] == 0.5, "one cluster holds two classes"
    assert partition_scores([0, 0, 1, 1], [0, 0, 0, 0])["purity"] == 1.0, "two clusters share a class"


def test_random_labels_have_no_adjusted_agreement():
    scores = partition_scores(rng.integers(20, size=20_000), rng.integers(20, size=20_000))
    assert abs(scores["ari"]) < 0.002 and scores["nmi"] < 0.01 and scores["purity"] < 0.08


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 6), st.integers(1, 60))
def test_equals_scikit_learn(seed, clusters, classes, n):
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
    assert len(set(kmeans(X, 7, seed=3))) == 7
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    assert cluster_scores(17 * X @ turn, y, seed=0) == pytest.approx(scores)
