"""What cannot be scored is refused, with the numbers that say why."""

import numpy as np
import pytest

from repro.evaluation import (
    answer_in_context,
    cluster_scores,
    exact_match,
    knn_accuracy,
    linear_probe,
    nested_cv_accuracy,
    retrieval_scores,
    sts_spearman,
)
from repro.evaluation.classify import kmeans, score_classification
from repro.evaluation.quantise import affordable_dim, dequantise, fit_codebook, quantise, vector_bytes
from repro.evaluation.retention import prefix_cka, smallest_sufficient
from repro.evaluation.retrieve import top_documents, unit_prefix
from repro.evaluation.stats import bootstrap_mean, bootstrap_spearman, wilson
from repro.sets import LabelledTexts, ScoredPairs
from repro.types import InputError

X = np.random.default_rng(0).normal(size=(40, 3))
Y = np.arange(40) % 2
NAN, WIDE = np.where(np.arange(120).reshape(40, 3) == 13, np.nan, 1.0), np.ones((40, 4))
CODES = fit_codebook(X, "int8")


def labelled(split):
    return LabelledTexts("made", "local", split, tuple("ab"), np.array(["x", "y"]))


def sts(X1=X, X2=X, scores=None, **options):
    return sts_spearman(X1, X2, np.arange(len(X1)) if scores is None else scores, **options)


def probe(X1=X, y1=Y, X2=X, y2=Y, **options):
    return linear_probe(X1, y1, X2, y2, **options)


def knn(X1=X, y1=Y, X2=X[:10], y2=Y[:10], **options):
    return knn_accuracy(X1, y1, X2, y2, **options)


def search(qrels={0: {1: 1}}, **options):  # noqa: B006
    return retrieval_scores(np.eye(2, 4), np.eye(3, 4), qrels, **options)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: sts(scores=np.arange(9)), "X1 has 40, X2 has 40, scores has 9"),
        (lambda: sts(subsets=["a"] * 9, aggregate="mean"), "scores has 40, subsets has 9"),
        (lambda: sts(X2=WIDE), r"X1 has shape \(40, 3\), X2 \(40, 4\)"),
        (lambda: sts(X1=NAN), "X1 has NaN .* in 1 of 40 rows, first in row 4"),
        (lambda: sts(scores=np.where(np.arange(40) == 3, np.nan, 1)), "scores has 1 NaN .* first at 3"),
        (lambda: sts(X[:2], X[:2]), "2 pairs are too few .* at least 3"),
        (lambda: sts(dims=[3, 4]), "dim is 4: expected 1 to 3"),
        (lambda: sts(aggregate="median"), "unknown aggregate 'median': choose one of all, mean, wmean"),
        (lambda: probe(y1=Y[:39]), "X_train has 40, y_train has 39"),
        (lambda: probe(X2=WIDE), "X_test has 4 columns, X_train 3"),
        (lambda: probe(X_dev=WIDE, y_dev=Y), "X_dev has 4 columns, X_train 3"),
        (lambda: probe(X_dev=X, y_dev=None), "y_dev has shape"),
        (lambda: probe(X2=NAN), "X_test has NaN"),
        (lambda: probe(protocol="svm"), "unknown protocol 'svm'"),
        (lambda: probe(y1=0 * Y, X_dev=X, y_dev=0 * Y), "only one class"),
        (lambda: nested_cv_accuracy(X, 0 * Y), "only one class"),
        (lambda: nested_cv_accuracy(X[:9], Y[:9]), "9 rows, .* 10 folds need at least 10, and 2 of a second class"),
        (lambda: probe(y1=np.arange(40) == 0), "40 rows, 39 of them of one class: 10 folds need at least 10, and 2"),
        (lambda: knn(k=41), "41 neighbours: a query has 40"),
        (lambda: knn(k=0), "k is 0"),
        (lambda: knn(y2=np.zeros((10, 2))), "one label per row"),
        (lambda: knn(X2=X, y2=Y, k=40), "40 neighbours: a query has 39"),
        (lambda: cluster_scores(X, Y[:3], seed=0), "lengths differ"),
        (lambda: kmeans(X, 41, seed=0), "clusters is 41: expected 1 to 40"),
        (lambda: cluster_scores(NAN, Y, seed=0), "NaN"),
        (lambda: search({5: {0: 1}}), "judge the query 5, which is not among the 2 query ids"),
        (lambda: search({0: {9: 1}}), "name the document 9, which is not among the 3 document ids"),
        (lambda: search({0: {1: 0}}), "none of the 2 queries has a relevant document"),
        (lambda: search({0: {1: -1}}), "relevance of 1 to 0 is -1"),
        (lambda: search(ks=()), "ks is empty"),
        (lambda: search(query_ids=["a", "a"]), "query id 'a' names two rows"),
        (lambda: search(corpus_ids=["a"]), "lengths differ: document_ids has 1, document embeddings has 3"),
        (lambda: top_documents(X, WIDE), "Q has 3 columns, C 4"),
        (lambda: top_documents(X, X, 41), "k is 41: expected 1 to 40"),
        (lambda: unit_prefix(X, 4), "dim is 4: expected 1 to 3"),
        (lambda: exact_match("anything", []), "answers is empty"),
        (lambda: answer_in_context("anything", []), "answers is empty"),
        (lambda: fit_codebook(X, "int2"), "unknown level 'int2': choose one of float32"),
        (lambda: vector_bytes(0, "int8"), "dim is 0"),
        (lambda: affordable_dim(0, "int8"), "budget is 0"),
        (lambda: quantise(WIDE, CODES), "X has 4 columns, the codebook 3"),
        (lambda: quantise(7e4 * X, fit_codebook(X, "float16")), "X holds .*: float16 ends at 65504"),
        (lambda: dequantise(X, CODES), r"codes are float64 of shape \(40, 3\): int8 codes of 3 dims are uint8"),
        (lambda: prefix_cka(X, [13]), "dim is 13: expected 1 to 3"),
        (lambda: prefix_cka(X, [2], weights=np.zeros(40)), "weights run from 0"),
        (lambda: smallest_sufficient([8], [1.0], 1.5), "the target is 1.5"),
        (lambda: bootstrap_spearman([1.0, np.nan], [1, 2], seed=0), "first at 1"),
        (lambda: bootstrap_spearman([1.0, 2.0, 3.0], [1, 2], seed=0), "predicted has 3, gold has 2"),
        (lambda: bootstrap_spearman([1.0, 2], [1, 2], subsets=["a"], seed=0), "subsets has 1"),
        (lambda: bootstrap_spearman([1.0, 2], [1, 2], seed=0), "2 pairs are too few .* expected at least 3"),
        (lambda: bootstrap_spearman([1j, 2, 3], [1, 2, 3], seed=0), "predicted holds complex numbers"),
        (lambda: bootstrap_mean([], seed=0), "at least 1"),
        (lambda: wilson(5, 3), "5 successes of 3 trials: expected 0 to 3"),
        (
            lambda: score_classification(
                lambda texts: X[: len(texts)], {"train": labelled("train"), "dev": labelled("dev")}
            ),
            "no split 'test': the data has train, dev",
        ),
        (
            lambda: score_classification(
                len, {"all": ScoredPairs("made", "local", "test", ("a",), ("b",), X[0, :1], np.array(["x"]))}
            ),
            "made holds no labels",
        ),
    ],
)
def test_mistakes_are_named(call, said):
    with pytest.raises(InputError, match=said):
        call()
