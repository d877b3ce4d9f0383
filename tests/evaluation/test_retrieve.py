"""Retrieval measures: closed forms, ir-measures, ties, and what must be refused."""

import numpy as np
import pytest

from repro.evaluation import retrieval_scores
from repro.evaluation.retrieve import retrieve
from repro.evaluation.search import top_documents
from repro.types import InputError

rng = np.random.default_rng(0)


def at_ranks(n, *ranks):
    """One query and n documents of falling cosine, and qrels that put relevant ones at the given ranks."""
    angles = np.linspace(0.1, 1.4, n)
    return [[1.0, 0.0]], np.column_stack([np.cos(angles), np.sin(angles)]), {0: {rank - 1: 1 for rank in ranks}}


def test_two_relevant_documents_at_ranks_two_and_five():
    scores = retrieval_scores(*at_ranks(20, 2, 5), ks=(2, 10))
    assert scores["ndcg@10"] == pytest.approx(0.6241, abs=5e-5)
    assert scores["mrr"] == 0.5 and scores["recall@2"] == 0.5 and scores["recall@10"] == 1
    assert scores["queries"] == 1 and scores["dropped"] == 0


def test_the_ideal_order_scores_one_and_grades_weigh():
    Q, C, _ = at_ranks(5)
    best = retrieval_scores(Q, C, {0: {0: 3, 1: 2, 2: 1}}, ks=(3,))
    assert best["ndcg@3"] == pytest.approx(1) and best["mrr"] == 1
    worst = retrieval_scores(Q, C, {0: {0: 1, 1: 2, 2: 3}}, ks=(3,))
    log = np.log2([2, 3, 4])
    assert worst["ndcg@3"] == pytest.approx(([1, 2, 3] / log).sum() / ([3, 2, 1] / log).sum())


def test_more_relevant_documents_than_k_can_still_be_perfect():
    scores = retrieval_scores(*at_ranks(8, 1, 2, 3, 4), ks=(2, 100))
    assert scores["ndcg@2"] == pytest.approx(1) and scores["recall@2"] == 0.5 and scores["recall@100"] == 1


def test_ties_go_to_the_lower_document():
    Q, C = [[1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0], [2.0, 0.0]]  # the last two have cosine 1
    assert retrieval_scores(Q, C, {0: {1: 1}})["mrr"] == 1
    assert retrieval_scores(Q, C, {0: {2: 1}})["mrr"] == 0.5


def test_equals_ir_measures_on_tie_free_data():
    ir_measures = pytest.importorskip("ir_measures", reason="the extra eval brings it")
    Q, C = rng.normal(size=(60, 12)), rng.normal(size=(300, 12))
    query_ids, corpus_ids = [f"q{i}" for i in range(60)], [f"d{i}" for i in range(300)]
    qrels = {
        query: {
            f"d{j}": int(grade)
            for j, grade in zip(rng.choice(300, 6, replace=False), rng.integers(0, 4, 6), strict=True)
        }
        for query in query_ids
    }
    qrels["q0"] = {"d5": 0}  # judged, nothing relevant
    ours = retrieval_scores(Q, C, qrels, ks=(1, 5, 10), query_ids=query_ids, corpus_ids=corpus_ids)
    unit = [X / np.linalg.norm(X, axis=1, keepdims=True) for X in (Q, C)]
    cosines = unit[0] @ unit[1].T
    run = {
        q: dict(zip(corpus_ids, map(float, row), strict=True))
        for q, row in zip(query_ids[1:], cosines[1:], strict=True)
    }
    judged = {q: docs for q, docs in qrels.items() if q != "q0"}
    named = {"ndcg": ir_measures.nDCG, "recall": ir_measures.R}
    wanted = {f"{name}@{k}": measure @ k for name, measure in named.items() for k in (1, 5, 10)} | {
        "mrr": ir_measures.RR
    }
    found = ir_measures.calc_aggregate(list(wanted.values()), judged, run)
    for name, measure in wanted.items():
        assert ours[name] == pytest.approx(found[measure], abs=1e-9), name
    assert (
        ours["queries"] == sum(any(g > 0 for g in docs.values()) for docs in judged.values()) and ours["dropped"] >= 1
    )


def test_values_of_every_query_average_to_the_scores():
    Q, C = rng.normal(size=(30, 8)), rng.normal(size=(90, 8))
    qrels = {i: rng.choice(90, 3, replace=False).tolist() for i in range(0, 30, 2)}  # a list is relevant throughout
    found, scores = retrieve(Q, C, qrels), retrieval_scores(Q, C, qrels, ks=(1, 10))
    np.testing.assert_array_equal(found.rows, np.arange(0, 30, 2))
    assert found.dropped == scores["dropped"] == 15 and scores["queries"] == 15
    assert found.ndcg(10).mean() == pytest.approx(scores["ndcg@10"]) and found.recall(10).shape == (15,)
    assert found.reciprocal_rank().mean() == pytest.approx(scores["mrr"])
    np.testing.assert_array_equal(found.hit(1), found.recall(1) * 3)
    np.testing.assert_array_equal(found.top, top_documents(Q, C)[:, 0])
    np.testing.assert_array_equal(found.hit(1), [float(found.top[i] in qrels[i]) for i in found.rows])
    graded = retrieval_scores(Q, C, {i: dict.fromkeys(documents, 1) for i, documents in qrels.items()})
    assert graded == retrieval_scores(Q, C, qrels)


def test_ids_name_rows_in_any_order():
    Q, C = rng.normal(size=(4, 6)), rng.normal(size=(9, 6))
    plain = retrieval_scores(Q, C, {2: {7: 1}, 0: {3: 2, 1: 1}})
    named = retrieval_scores(Q, C, {"c": {"H": 1}, "a": {"D": 2, "B": 1}}, query_ids="abcd", corpus_ids="ABCDEFGHI")
    assert plain == named


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"qrels": {5: {0: 1}}}, "judge the query 5, which is not among the 2 query ids"),
        ({"qrels": {0: {9: 1}}}, "name the document 9, which is not among the 3 document ids"),
        ({"qrels": {0: {1: 0}}}, "none of the 2 queries has a relevant document"),
        ({"qrels": {0: {1: -1}}}, "relevance of 1 to 0 is -1"),
        ({"ks": ()}, "ks is empty"),
        ({"ks": (0,)}, "k is 0"),
        ({"query_ids": ["a", "a"]}, "query id 'a' names two rows"),
        ({"corpus_ids": ["a"]}, "lengths differ: document_ids has 1, document embeddings has 3"),
    ],
)
def test_bad_input_is_named(change, message):
    arguments = {"qrels": {0: {1: 1}}, **change}
    with pytest.raises(InputError, match=message):
        retrieval_scores(np.eye(2, 4), np.eye(3, 4), **arguments)
