"""Retrieval: do the documents relevant to a query stand first? nDCG, recall and reciprocal rank (PROTOCOLS §5.7)."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from repro.evaluation.search import cosine_blocks
from repro.types import InputError, check_dim, check_embeddings, check_same_length

Judged: TypeAlias = Mapping[Any, float] | Collection[Any]
Qrels: TypeAlias = Mapping[Any, Judged]
"""query id → document id → relevance, or → the relevant documents; 0 is judged and not relevant"""


@dataclass(frozen=True)
class Retrieved:
    """What a search found of the relevant documents, query by query."""

    rows: NDArray[np.int64]
    """the queries that were scored (m,): those with a relevant document"""
    dropped: int
    """queries without one"""
    ranks: tuple[NDArray[np.int64], ...]
    """of each scored query's relevant documents, from 1, ascending"""
    gains: tuple[NDArray[np.float64], ...]
    """their relevances, in the order of the ranks"""
    top: NDArray[np.int64]
    """the nearest document of every query, scored or not"""

    def ndcg(self, k: int) -> NDArray[np.float64]:
        """nDCG@k of every query (m,): Σ_{i≤k} rel_i / log₂(i + 1), over that of the best possible order."""
        values = []
        for ranks, gains in zip(self.ranks, self.gains, strict=True):
            best = np.sort(gains)[::-1][:k]
            ideal = best @ _discounts(np.arange(1, len(best) + 1))
            values.append((gains * _discounts(ranks))[ranks <= k].sum() / ideal)
        return np.array(values)

    def recall(self, k: int) -> NDArray[np.float64]:
        """Share of the relevant documents among the first k, of every query (m,)."""
        return np.array([(ranks <= k).mean() for ranks in self.ranks])

    def hit(self, k: int) -> NDArray[np.float64]:
        """1 where any relevant document is among the first k, else 0, of every query (m,)."""
        return np.array([float(ranks[0] <= k) for ranks in self.ranks])

    def reciprocal_rank(self) -> NDArray[np.float64]:
        """One over the rank of the first relevant document, of every query (m,)."""
        return np.array([1 / ranks[0] for ranks in self.ranks])


def retrieval_scores(
    Q: Any,
    C: Any,
    qrels: Qrels,
    *,
    ks: Sequence[int] = (1, 10),
    query_ids: Sequence[Hashable] | None = None,
    corpus_ids: Sequence[Hashable] | None = None,
) -> dict[str, float]:
    """Exact cosine search, scored: `ndcg@k` and `recall@k` of every k, `mrr`, and how many queries were scored.

    Args:
        Q: queries (m, d).
        C: documents (n, d).
        qrels: query id → document id → relevance, or → the relevant documents.
        ks: how many of the first documents count; more than n is all of them.
        query_ids: name of each row of Q; None numbers them from 0.
        corpus_ids: name of each row of C; None numbers them from 0.

    Returns:
        Means over the queries with a relevant document, their number as `queries`, and as `dropped` that of the others.

    Raises:
        InputError: for unusable embeddings, ids that are unknown or named twice, a relevance below 0, no k, or no query
            with a relevant document.
    """
    if not len(ks):
        raise InputError("ks is empty: give at least one number of documents, such as (1, 10)")
    for k in ks:
        check_dim(k, what="k")
    found = retrieve(Q, C, qrels, query_ids=query_ids, corpus_ids=corpus_ids)
    scores = {f"ndcg@{k}": float(found.ndcg(k).mean()) for k in ks}
    scores |= {f"recall@{k}": float(found.recall(k).mean()) for k in ks}
    return scores | {"mrr": float(found.reciprocal_rank().mean()), "queries": len(found.rows), "dropped": found.dropped}


def retrieve(
    Q: Any,
    C: Any,
    qrels: Qrels,
    *,
    query_ids: Sequence[Hashable] | None = None,
    corpus_ids: Sequence[Hashable] | None = None,
) -> Retrieved:
    """The ranks of every query's relevant documents by cosine, ties to the lower row of C; arguments as above.

    No document is sorted: a rank is the number of documents that are nearer, or as near and stand before.
    """
    Q, C = check_embeddings(Q, "Q"), check_embeddings(C, "C")
    query_rows, corpus_rows = _rows_of(query_ids, len(Q), "query"), _rows_of(corpus_ids, len(C), "document")
    relevant = _relevant(qrels, query_rows, corpus_rows)
    if not relevant:
        raise InputError(f"none of the {len(Q)} queries has a relevant document: qrels of {len(qrels)} give nothing")
    ranks: dict[int, NDArray[np.int64]] = {}
    gains: dict[int, NDArray[np.float64]] = {}
    top = np.empty(len(Q), np.int64)
    for rows, cosines in cosine_blocks(Q, C):
        top[rows] = cosines.argmax(1)  # the first of equal ones
        for row in sorted(relevant.keys() & set(range(rows.start, rows.stop))):
            documents, of_query = relevant[row], cosines[row - rows.start]
            at = np.array([_rank(of_query, document) for document in documents])
            order = np.argsort(at)
            ranks[row], gains[row] = at[order], np.array(list(documents.values()), np.float64)[order]
    scored = sorted(relevant)
    return Retrieved(
        np.array(scored), len(Q) - len(scored), tuple(ranks[i] for i in scored), tuple(gains[i] for i in scored), top
    )


def _rank(cosines: NDArray[Any], document: int) -> int:
    own = cosines[document]
    return 1 + int((cosines > own).sum()) + int((cosines[:document] == own).sum())


def _discounts(ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(1 / np.log2(ranks + 1.0))


def _rows_of(ids: Sequence[Hashable] | None, n: int, what: str) -> dict[Hashable, int]:
    """Row of each id."""
    if ids is None:
        return {i: i for i in range(n)}
    check_same_length(**{f"{what}_ids": ids, f"{what} embeddings": range(n)})
    rows = {name: i for i, name in enumerate(ids)}
    if len(rows) < n:
        twice = next(name for i, name in enumerate(ids) if rows[name] != i)
        raise InputError(f"{what} id {twice!r} names two rows: expected a different id for each of the {n}")
    return rows


def _relevant(
    qrels: Qrels, query_rows: Mapping[Hashable, int], corpus_rows: Mapping[Hashable, int]
) -> dict[int, dict[int, float]]:
    """Row of each query that has relevant documents → their rows → relevance."""
    found: dict[int, dict[int, float]] = {}
    for query, judged in qrels.items():
        if query not in query_rows:
            raise InputError(f"qrels judge the query {query!r}, which is not among the {len(query_rows)} query ids")
        graded = judged if isinstance(judged, Mapping) else dict.fromkeys(judged, 1.0)
        for document, relevance in graded.items():
            if document not in corpus_rows:
                raise InputError(
                    f"qrels of {query!r} name the document {document!r}, which is not among the {len(corpus_rows)} "
                    "document ids"
                )
            if not 0 <= relevance < np.inf:
                raise InputError(f"relevance of {document!r} to {query!r} is {relevance}: expected 0 or more")
            if relevance > 0:
                found.setdefault(query_rows[query], {})[corpus_rows[document]] = float(relevance)
    return found
