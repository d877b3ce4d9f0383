"""Exact search and its measures: closed forms, ir-measures, faiss, ties, answers, and what must be
refused.
"""

from fractions import Fraction

import numpy as np
import pytest

from repro.evaluation import answer_in_context, exact_match, retrieval_scores
from repro.evaluation import search as module
from repro.evaluation.answers import is_yes_no, normalize_answer
from repro.evaluation.retrieve import retrieve
from repro.evaluation.search import FlatIndex, top_documents, unit_prefix

rng = np.random.default_rng(0)
Q, C = rng.normal(size=(40, 48)).astype(np.float32), rng.normal(size=(500, 48)).astype(np.float32)


def at_ranks(n, *ranks):
    """One query and n documents of falling cosine, and qrels that put relevant ones at the given
    ranks.
    """
    angles = np.linspace(0.1, 1.4, n)
    return (
        [[1.0, 0.0]],
        np.column_stack([np.cos(angles), np.sin(angles)]),
        {0: {rank - 1: 1 for rank in ranks}},
    )


# Measures


def test_two_relevant_documents_at_ranks_two_and_five():
    scores = retrieval_scores(*at_ranks(20, 2, 5), ks=(2, 10))
    assert scores["ndcg@10"] == pytest.approx(0.6241, abs=5e-5)
    assert scores["mrr"] == 0.5 and scores["recall@2"] == 0.5 and scores["recall@10"] == 1
    assert scores["queries"] == 1 and scores["dropped"] == 0
    scores = retrieval_scores(*at_ranks(8, 1, 2, 3, 4), ks=(2, 100))  # More relevant ones than k
    assert (
        scores["ndcg@2"] == pytest.approx(1)
        and scores["recall@2"] == 0.5
        and scores["recall@100"] == 1
    )


def test_the_ideal_order_scores_one_and_grades_weigh():
    query, documents, _ = at_ranks(5)
    best = retrieval_scores(query, documents, {0: {0: 3, 1: 2, 2: 1}}, ks=(3,))
    assert best["ndcg@3"] == pytest.approx(1) and best["mrr"] == 1
    worst = retrieval_scores(query, documents, {0: {0: 1, 1: 2, 2: 3}}, ks=(3,))
    log = np.log2([2, 3, 4])
    assert worst["ndcg@3"] == pytest.approx(([1, 2, 3] / log).sum() / ([3, 2, 1] / log).sum())
    # The last two have cosine 1
    query, documents = [[1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0], [2.0, 0.0]]
    assert retrieval_scores(query, documents, {0: {1: 1}})["mrr"] == 1
    assert retrieval_scores(query, documents, {0: {2: 1}})["mrr"] == 0.5


def test_equals_ir_measures_on_tie_free_data():
    ir_measures = pytest.importorskip("ir_measures", reason="the extra eval brings it")
    query_ids, corpus_ids = [f"q{i}" for i in range(40)], [f"d{i}" for i in range(500)]
    qrels = {
        q: {d: int(rng.integers(4)) for d in rng.choice(corpus_ids, 6, replace=False).tolist()}
        for q in query_ids
    }
    qrels["q0"] = {"d5": 0}  # Judged, nothing relevant
    ours = retrieval_scores(Q, C, qrels, ks=(1, 5, 10), query_ids=query_ids, corpus_ids=corpus_ids)
    cosines = (unit_prefix(Q).astype(float) @ unit_prefix(C).astype(float).T).tolist()
    judged = {q: docs for q, docs in qrels.items() if q != "q0"}
    run = {q: dict(zip(corpus_ids, cosines[query_ids.index(q)], strict=True)) for q in judged}
    wanted = {f"ndcg@{k}": ir_measures.nDCG @ k for k in (1, 5, 10)} | {"mrr": ir_measures.RR}
    wanted |= {f"recall@{k}": ir_measures.R @ k for k in (1, 5, 10)}
    found = ir_measures.calc_aggregate(list(wanted.values()), judged, run)
    for name, measure in wanted.items():
        assert ours[name] == pytest.approx(found[measure], abs=1e-9), name
    assert ours["queries"] == sum(any(g > 0 for g in docs.values()) for docs in judged.values())
    assert ours["dropped"] == 40 - ours["queries"] >= 1


def test_values_of_every_query_average_to_the_scores():
    # A list is relevant throughout
    qrels = {i: rng.choice(500, 3, replace=False).tolist() for i in range(0, 40, 2)}
    found, scores = retrieve(Q, C, qrels), retrieval_scores(Q, C, qrels, ks=(1, 10))
    np.testing.assert_array_equal(found.rows, np.arange(0, 40, 2))
    assert scores["dropped"] == scores["queries"] == 20
    assert found.ndcg(10).mean() == pytest.approx(scores["ndcg@10"]) and found.recall(10).shape == (
        20,
    )
    np.testing.assert_allclose(found.hit(1), found.recall(1) * 3)
    np.testing.assert_array_equal(
        found.hit(1),
        [float(found.top[i] in qrels[i]) for i in found.rows],
    )


def test_one_and_ten_are_scored_unless_told_otherwise_and_nearly_equal_cosines_told_apart():
    told = [name for name in retrieval_scores(*at_ranks(20, 2, 5)) if "@" in name]
    assert sorted(told) == ["ndcg@1", "ndcg@10", "recall@1", "recall@10"]
    turned = np.array([3e-5, 1e-5, 2e-5])  # Cosines that differ by less than single precision holds
    documents = np.column_stack([np.cos(turned), np.sin(turned)])
    np.testing.assert_array_equal(top_documents([[1.0, 0.0]], documents, 3), [[1, 2, 0]])
    assert retrieve([[1.0, 0.0]], documents, {0: {0: 1}}).ranked[0].tolist() == [[3, 1]]


def test_ids_name_rows_in_any_order():
    plain = retrieval_scores(Q[:4], C[:9], {2: {7: 1}, 0: {3: 2, 1: 1}})
    judged = {"c": {"H": 1}, "a": {"D": 2, "B": 1}}
    assert retrieval_scores(Q[:4], C[:9], judged, query_ids="abcd", corpus_ids="ABCDEFGHI") == plain


# Ties


def exact_cosines(query, documents):
    """What rises with the cosines of whole numbers, exactly: their squares, with their signs."""
    rising = []
    for document in documents.tolist():
        dot = sum(a * b for a, b in zip(query.tolist(), document, strict=True))
        square = sum(b * b for b in document)
        rising.append(Fraction(dot * abs(dot), square) if square else Fraction(0))
    return rising


ZERO = np.zeros((1, 4))


@pytest.mark.parametrize(
    "Q, C",
    [
        (np.eye(4)[:2] * 0, np.eye(4)),
        (np.eye(4)[:2], np.eye(4) * 0),
        (np.eye(4)[:2], np.vstack([ZERO, ZERO, np.eye(4)[2:]])),
    ],
    ids=["zero queries", "zero documents", "at right angles"],
)
def test_queries_that_have_no_cosine_with_any_document_find_nothing(Q, C, caplog):
    scores = retrieval_scores(Q, C, {0: [0], 1: [0, 1]}, ks=(1, 3))
    assert scores["ndcg@1"] == scores["recall@1"] == 0
    assert scores["mrr"] == pytest.approx((1 / 4 + 1 / 3) / 2)
    assert "2 of 2 queries have cosine 0 with all documents" in caplog.text


def test_a_query_of_zeros_takes_nothing_from_the_others(caplog):
    Q = np.vstack([ZERO, np.eye(4)[:1]])
    found = retrieve(Q, np.eye(4), {0: [0], 1: [0]})
    assert found.ndcg(10).tolist() == [pytest.approx(1 / np.log2(5)), 1]
    assert "1 of 2 queries" in caplog.text


@pytest.mark.parametrize("scaled", [False, True])
def test_different_documents_at_one_angle_are_tied_and_rounding_does_not_order_them(scaled):
    ties = 0
    for seed in range(150):
        draw = np.random.default_rng(seed)
        n, d = int(draw.integers(5, 40)), int(draw.integers(1, 9))
        documents, queries = draw.integers(-2, 3, (n, d)), draw.integers(-2, 3, (2, d))
        judged = [draw.choice(n, 5, replace=False).tolist() for _ in queries]
        qrels = {q: {row: 1 + row % 3 for row in rows} for q, rows in enumerate(judged)}
        C = documents * draw.uniform(0.1, 10, (n, 1)) if scaled else documents.astype(float)
        found = retrieve(queries.astype(float), C, qrels)
        nearest = top_documents(queries.astype(float), C, 5)
        for q, query in enumerate(queries):
            exact = exact_cosines(query, documents)
            ties += n - len(set(exact))
            order = sorted(range(n), key=lambda row: (-exact[row], row))
            assert found.top[q] == order[0] and nearest[q].tolist() == order[:5], seed
            ranks = sorted((order.index(row) + 1, gain) for row, gain in qrels[q].items())
            if not any(exact):  # Nothing is found
                ranks = [(n - 4 + place, gain) for place, (_, gain) in enumerate(ranks)]
            assert found.ranked[q].tolist() == [list(map(float, pair)) for pair in ranks], seed
            gain = sum(gain / np.log2(rank + 1) for rank, gain in ranks if rank <= 10)
            best = sorted(qrels[q].values(), reverse=True)
            ideal = sum(gain / np.log2(i + 2) for i, gain in enumerate(best))
            assert found.ndcg(10)[q] == pytest.approx(gain / ideal, abs=1e-12), seed
    assert ties > 1000


@pytest.mark.parametrize("scale", [1e-30, 1e-13, 1e14])
def test_cosines_are_the_same_at_any_length_of_the_rows(scale):
    lengths = scale * np.geomspace(0.1, 1, len(C))[:, None]
    np.testing.assert_array_equal(top_documents(scale * Q, lengths * C, 5), top_documents(Q, C, 5))
    np.testing.assert_allclose(np.linalg.norm(unit_prefix(scale * C, 8), axis=1), 1, rtol=1e-6)


def test_codes_of_one_bit_are_ordered_by_the_bits_they_share():
    draw = np.random.default_rng(0)
    codes, asked = draw.choice([-1.0, 1.0], (400, 96)), draw.choice([-1.0, 1.0], (20, 96))
    shared = (asked[:, None] == codes).sum(2)
    expected = np.argsort(-shared, axis=1, kind="stable")[:, :40]
    np.testing.assert_array_equal(top_documents(asked, codes, 40), expected)
    np.testing.assert_array_equal(top_documents(asked, codes), expected[:, :1])


# Search


def test_top_documents_equal_a_plain_sort_in_any_blocks_and_ties_go_to_the_lower_row(monkeypatch):
    expected = np.argsort(-(unit_prefix(Q.astype(float)) @ unit_prefix(C.astype(float)).T), axis=1)[
        :, :7
    ]
    np.testing.assert_array_equal(top_documents(Q, C, 7), expected)
    np.testing.assert_array_equal(top_documents(Q, C), expected[:, :1])
    monkeypatch.setattr(module, "BLOCK", 3 * len(C))
    np.testing.assert_array_equal(
        top_documents(Q * 3, C * np.geomspace(0.01, 100, len(C))[:, None], 7),
        expected,
    )
    repeated = np.concatenate([C[:3], C, C[:3]])  # Rows 0-2 again at 3-5 and at the end
    np.testing.assert_array_equal(
        top_documents(C[:3], repeated, 3),
        [[0, 3, 503], [1, 4, 504], [2, 5, 505]],
    )
    np.testing.assert_array_equal(top_documents(C[:3], repeated), [[0], [1], [2]])
    assert retrieve(C[:3], repeated, {0: [7]}).top.tolist() == [0, 1, 2]
    # All cosines 0
    np.testing.assert_array_equal(top_documents(np.zeros((2, 48)), C, 4), [[0, 1, 2, 3]] * 2)
    np.testing.assert_array_equal(
        top_documents([[1.0, 0.0]], [[0.0, -1.0], [-0.0, 1.0], [0.0, 0.0]], 3),
        [[0, 1, 2]],
    )


@pytest.mark.parametrize("dim", [4, 16, 48])
def test_faiss_on_renormalised_prefixes_is_exact_cosine_and_searches_many_documents(
    dim,
    monkeypatch,
):
    pytest.importorskip("faiss", reason="the extra eval brings it")
    found = FlatIndex(C, dim).search(Q, 10)
    np.testing.assert_array_equal(found, top_documents(Q[:, :dim], C[:, :dim], 10))
    monkeypatch.setattr(module, "LARGE", len(C) - 1)
    monkeypatch.delattr(module, "cosine_blocks")
    np.testing.assert_array_equal(found, top_documents(Q[:, :dim], C[:, :dim], 10))


def test_prefixes_left_as_they_are_would_be_ranked_by_length_too():
    pytest.importorskip("faiss", reason="the extra eval brings it")
    by_length = FlatIndex(C, 4, renormalize=False).search(Q)
    assert (by_length != top_documents(Q[:, :4], C[:, :4])).mean() > 0.2
    whole = FlatIndex(C, renormalize=False).search(Q, 5)
    # At full size it makes no difference
    np.testing.assert_array_equal(whole, top_documents(Q, C, 5))


# Answers


def test_answers_match_by_their_words():
    for text, expected in {
        "The  Cat": "cat",
        "an apple, a day!": "apple day",
        "U.S.A.": "usa",
        "Theatre of the Absurd": "theatre of absurd",  # An article is a word, not the start of one
        "“quoted”": "“quoted”",  # Punctuation outside ASCII stays
    }.items():
        assert normalize_answer(text) == normalize_answer(expected) == expected
    assert exact_match("The Beatles.", ["Rolling Stones", "beatles"])
    assert exact_match("the Beatles", "Beatles")  # One answer may stand alone
    assert not exact_match("The Beatles from Liverpool", ["Beatles"]) and not exact_match(
        "",
        ["Beatles"],
    )


def test_answer_in_context_finds_whole_words():
    context = "In 1968, the band (The Beatles) recorded “Hey Jude” in London."
    assert answer_in_context(context, "Beatles") and answer_in_context(
        context,
        ["Paris", "the London"],
    )
    assert answer_in_context(context, "band Beatles recorded")  # Articles and brackets do not count
    assert not answer_in_context("I know that nothing is certain", "no")
    assert not answer_in_context(context, "Beatle")
    assert not answer_in_context(context, "the")  # Nothing is left of it
    assert is_yes_no("Yes.") and is_yes_no("no") and not is_yes_no("Norway")


def test_the_query_itself_is_no_answer_where_that_is_asked_for():
    rng = np.random.default_rng(0)
    C = rng.normal(size=(6, 5))
    names = list("abcdef")
    qrels = {"a": {"b": 1}, "d": {"e": 1}}
    ids = {"query_ids": ["a", "d"], "corpus_ids": names}
    Q = C[[0, 3]]
    plain, left_out = (retrieve(Q, C, qrels, leave_out_own=out, **ids) for out in (False, True))
    assert plain.top.tolist() == [0, 3], "each is nearest to itself"
    for before, after in zip(plain.ranked, left_out.ranked, strict=True):
        assert after[0, 0] == before[0, 0] - 1
    assert left_out.top[0] != 0 and left_out.top[1] != 3
