"""What cannot be scored is refused, with the numbers that say why."""

import numpy as np
import pandas as pd
import pytest
import torch

from dimadvise.bounds import smallest_sufficient
from repro.evaluation import (
    cluster_scores,
    exact_match,
    knn_accuracy,
    linear_probe,
    nested_cv_accuracy,
    retrieval_scores,
    sts_spearman,
)
from repro.evaluation.classify import score_classification
from repro.evaluation.quantise import dequantise, fit_codebook, quantise
from repro.evaluation.retention import prefix_cka
from repro.evaluation.search import top_documents
from repro.evaluation.stats import bootstrap_spearman, wilson
from repro.sets import LabelledTexts, ScoredPairs
from repro.types import InputError

X = np.random.default_rng(0).normal(size=(40, 3))
Y = np.arange(40) % 2
WIDE = np.ones((40, 4))
MASKED = np.ma.masked_array(X, np.arange(120).reshape(40, 3) < 3)
CODES = fit_codebook(X, "int8")
LABELLED = LabelledTexts("made", "local", "train", ("a", "b"), np.array(["x", "y"]))
PAIR = ScoredPairs("made", "local", "test", ("a",), ("b",), X[0, :1], np.array(["x"]))


def classify(splits):
    return score_classification(lambda texts: X[: len(texts)], splits)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: sts_spearman(X, X, Y[:9]), "X1 has 40, X2 has 40, scores has 9"),
        (lambda: sts_spearman(X, WIDE, Y), r"X1 has shape \(40, 3\), X2 \(40, 4\)"),
        (lambda: sts_spearman(X, X, np.where(Y, np.nan, 1)), "scores has 20 NaN .* first at 1"),
        (lambda: sts_spearman(X[:2], X[:2], Y[:2]), "2 pairs are too few .* at least 3"),
        (
            lambda: sts_spearman(X, X, Y, aggregate="median"),
            "unknown aggregate 'median': choose one of all, mean",
        ),
        (lambda: linear_probe(X, Y, WIDE, Y), "X_test has 4 columns, X_train 3"),
        (lambda: linear_probe(X, Y, X, Y, X_dev=X), "y_dev has shape"),
        (lambda: linear_probe(X, 0 * Y, X, Y, X_dev=X, y_dev=Y), "only one class"),
        (lambda: linear_probe(X, Y, X, Y, protocol="svm"), "unknown protocol 'svm'"),
        (lambda: nested_cv_accuracy(X, 0 * Y), "only one class"),
        (
            lambda: nested_cv_accuracy(X[:9], Y[:9]),
            "9 rows, .* 10 folds need at least 10, and 2 of a second class",
        ),
        (
            lambda: linear_probe(X, np.arange(40) == 0, X, Y),
            "39 of them of one class: 10 folds need .* and 2",
        ),
        (lambda: knn_accuracy(X, Y, X[:10], Y[:10], k=41), "41 neighbours: a query has 40"),
        (lambda: knn_accuracy(X, Y, X, Y, k=40), "40 neighbours: a query has 39"),
        (
            lambda: retrieval_scores(X, X, {55: {0: 1}}),
            "judge the query 55, which is not among the 40 query ids",
        ),
        (
            lambda: retrieval_scores(X, X, {0: {1: 0}}),
            "none of the 40 queries has a relevant document",
        ),
        (lambda: retrieval_scores(X, X, {0: {1: -1}}), "relevance of 1 to 0 is -1"),
        (lambda: retrieval_scores(X, X, {}, query_ids=["a"] * 40), "query id 'a' names two rows"),
        (lambda: top_documents(X, WIDE), "Q has 3 columns, C 4"),
        (lambda: exact_match("anything", []), "answers is empty"),
        (lambda: fit_codebook(X, "int2"), "unknown level 'int2': choose one of float32"),
        (lambda: quantise(WIDE, CODES), "X has 4 columns, the codebook 3"),
        (
            lambda: quantise(7e4 * X, fit_codebook(X, "float16")),
            "X holds .*: float16 ends at 65504",
        ),
        (
            lambda: dequantise(X, CODES),
            r"codes are float64 of shape \(40, 3\): int8 codes of 3 dims are uint8",
        ),
        (lambda: prefix_cka(X, [2], weights=np.zeros(40)), "weights run from 0"),
        (lambda: smallest_sufficient([8], [1.0], 1.5), "the target is 1.5"),
        (
            lambda: bootstrap_spearman([1j, 2, 3], [1, 2, 3], seed=0),
            "predicted holds complex numbers",
        ),
        (lambda: wilson(5, 3), "5 successes of 3 trials: expected 0 to 3"),
        (
            lambda: classify({"train": LABELLED, "dev": LABELLED}),
            "no split 'test': the data has train, dev",
        ),
        (lambda: classify({"all": PAIR}), "made holds no labels"),
        (lambda: sts_spearman(MASKED, X, np.arange(40)), "X1 has 3 masked entries"),
        (lambda: retrieval_scores(MASKED, X, {0: {1: 1}}), "Q has 3 masked entries"),
        (
            lambda: knn_accuracy(X, Y, X[:9], Y[:9] + 7),
            "none of the classes of y_test, such as '7', is among those of y_train, such as '0'",
        ),
        (lambda: linear_probe(X, Y, X[:9], Y[:9] + 7), "none of the classes of y_test"),
        (lambda: cluster_scores(X, [np.nan, *Y[1:]], seed=0), r"y\[0\] is nan: expected a label"),
        (
            lambda: sts_spearman(X, X, np.arange(40), subsets=[np.nan, *Y[1:]], aggregate="mean"),
            r"subsets\[0\] is nan: expected a label",
        ),
        (
            lambda: sts_spearman(X, X, np.arange(40), subsets=Y[:, None], aggregate="mean"),
            r"subsets has shape \(40, 1\): expected one label",
        ),
        (
            lambda: knn_accuracy(X, pd.array(["a", None] * 20, dtype="string"), X, Y),
            r"y_train\[1\] is <NA>: expected a label",
        ),
        (
            lambda: retrieval_scores(torch.ones(2, 3, requires_grad=True), X, {0: [1]}),
            r"Q is no matrix that numpy can read .*detach",
        ),
        (lambda: sts_spearman(X, X, np.arange(40), dims=8), "dims is 8: expected a list of whole"),
        (lambda: sts_spearman(X, X, np.arange(40), dims="21"), "dims is '21': expected a list"),
        (
            lambda: sts_spearman(X, X, np.arange(40), dims=np.array(2)),
            "dims is .*2.*: expected a l",
        ),
        (lambda: prefix_cka(X, 2), "dims is 2: expected a list of whole numbers"),
        (lambda: retrieval_scores(X, X, {0: [1]}, ks=5), "ks is 5: expected a list"),
        (lambda: retrieval_scores(X, X, {0: [1]}, ks=()), "ks is empty"),
        (lambda: retrieval_scores(X, X, [(0, 1)]), "qrels is a list: expected a dict"),
        (lambda: retrieval_scores(X, X, {0: 1}), "qrels of 0 are 1: expected a list of documents"),
        (lambda: retrieval_scores(X, X, {0: "doc"}), "qrels of 0 are 'doc': expected a list"),
        (lambda: retrieval_scores(X, X, {0: {1: "1"}}), "relevance of 1 to 0 is 1: expected"),
        (lambda: exact_match(None, "Paris"), "an answer or context is None: expected a text"),
        (lambda: exact_match("Paris", None), "an answer or context is None: expected a text"),
        (lambda: exact_match("Paris", ["Rome", 5]), "an answer or context is 5: expected a text"),
        (lambda: linear_probe(X, Y, X, Y, seed=None), "seed is None: expected a whole number"),
        (lambda: linear_probe(X, Y, X, Y, seed=1.5), "seed is 1.5: expected a whole number"),
        (lambda: linear_probe(X, Y, X, Y, seed="0"), "seed is '0': expected a whole number"),
        (lambda: cluster_scores(X, [None] * 40, seed=0), r"y\[0\] is None: expected a label"),
        (lambda: knn_accuracy(X, np.ma.masked_equal(Y, Y[0]), X, Y), "y_train has .* masked"),
    ],
)
def test_mistakes_are_named(call, said):
    with pytest.raises(InputError, match=said):
        call()
