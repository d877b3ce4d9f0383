"""How well an exact search finds: nDCG, recall, reciprocal rank (method-retrieval in the book)."""

import logging
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from repro.evaluation.search import Indices, cosine_blocks, nearest_document, rounding_of
from repro.types import InputError, check_dims, check_same_length, is_number, plain_array

log = logging.getLogger(__name__)
Ids: TypeAlias = Sequence[Hashable] | None
"""Names of rows; None numbers them from 0."""
Qrels: TypeAlias = Mapping[Any, Mapping[Any, float] | Collection[Any]]
"""Query id → document id → relevance, or → the relevant documents; 0 is judged and not relevant."""


@dataclass(frozen=True)
class Retrieved:
    """What a search found of the relevant documents, query by query."""

    rows: Indices  # The queries that were scored (m,): those with a relevant document
    ranked: tuple[NDArray[np.float64], ...]
    """Rank, from 1, and relevance of each scored query's relevant documents (…, 2), nearest first.
    """
    top: Indices  # The nearest document of every query, scored or not

    def ndcg(self, k: int) -> NDArray[np.float64]:
        """The nDCG@k of every query (m,): Σ_{i≤k} rel_i / log₂(i + 1), over that of the best
        possible order.
        """
        values = []
        for relevant in self.ranked:
            ranks, gains = relevant.T
            best = np.sort(gains)[::-1][:k]
            ideal = best @ _discounts(np.arange(1, len(best) + 1))
            values.append((gains * _discounts(ranks))[ranks <= k].sum() / ideal)
        return np.array(values)

    def recall(self, k: int) -> NDArray[np.float64]:
        """Share of the relevant documents among the first k, of every query (m,)."""
        return np.array([(relevant[:, 0] <= k).mean() for relevant in self.ranked])

    def hit(self, k: int) -> NDArray[np.float64]:
        """1 where any relevant document is among the first k, else 0, of every query (m,)."""
        return np.array([float(relevant[0, 0] <= k) for relevant in self.ranked])


def retrieval_scores(
    Q: Any,
    C: Any,
    qrels: Qrels,
    *,
    ks: Sequence[int] = (1, 10),
    query_ids: Ids = None,
    corpus_ids: Ids = None,
) -> dict[str, float]:
    """Exact cosine search, scored: `ndcg@k` and `recall@k` of every k, `mrr`, and how many queries
    were scored.

    Rows of queries Q (m, d) and documents C (n, d) are named by their ids, by default numbers from
    0.

    Returns:
        Means over the queries with a relevant document, their number as `queries`, and as `dropped`
        that of the others.

    Raises:
        InputError: for unusable embeddings, ids that are unknown or named twice, a relevance below
            0, no k, or no query with a relevant document.
    """
    if not check_dims(ks, "ks", each="k"):
        raise InputError("ks is empty: give at least one number of documents, such as (1, 10)")
    retrieved = retrieve(Q, C, qrels, query_ids=query_ids, corpus_ids=corpus_ids)
    scores = {f"ndcg@{k}": float(retrieved.ndcg(k).mean()) for k in ks}
    scores |= {f"recall@{k}": float(retrieved.recall(k).mean()) for k in ks}
    first_ranks = np.array([relevant[0, 0] for relevant in retrieved.ranked])
    counts = {"queries": len(retrieved.rows), "dropped": len(Q) - len(retrieved.rows)}
    return scores | {"mrr": float(np.mean(1 / first_ranks)), **counts}


def retrieve(
    Q: Any,
    C: Any,
    qrels: Qrels,
    *,
    query_ids: Ids = None,
    corpus_ids: Ids = None,
    leave_out_own: bool = False,
) -> Retrieved:
    """The ranks of every query's relevant documents by cosine, ties to the lower row of C;
    arguments as above. On demand a document of the query's own id, which is the query itself, is
    left out, as BEIR and MTEB do.

    No document is sorted: a rank is the number of documents that are nearer, or as near and stand
    before. Cosines that rounding alone tells apart are tied, so that rounding does not order
    different documents at one angle. The order of rows then decides, which embeddings know nothing
    of; trec_eval, whose documents have no rows, takes the id that comes last in the alphabet.

    A query whose cosines are all 0, as those of a zero vector are, finds nothing: its documents get
    the last ranks, and how many such queries there are is logged. Else the order of rows would
    score.
    """
    Q = np.atleast_1d(plain_array(Q, "Q"))
    C = np.atleast_1d(plain_array(C, "C"))
    query_rows = _rows_of(query_ids, len(Q), "query")
    corpus_rows = _rows_of(corpus_ids, len(C), "document")
    relevant = _relevant(qrels, query_rows, corpus_rows)
    shared = query_rows.keys() & corpus_rows.keys() if leave_out_own else set()
    own_documents = {query_rows[name]: corpus_rows[name] for name in shared}
    if not relevant:
        raise InputError(
            f"none of the {len(Q)} queries has a relevant document: qrels of {len(qrels)} give "
            "nothing"
        )
    ranked: dict[int, NDArray[np.float64]] = {}
    top = np.empty(len(Q), np.int64)
    blind = 0
    rounding = rounding_of(C.shape[-1])
    for rows, cosines in cosine_blocks(Q, C):
        for row in own_documents.keys() & set(range(rows.start, rows.stop)):
            cosines[row - rows.start, own_documents[row]] = -np.inf
        top[rows] = nearest_document(cosines, rounding)
        for row in relevant.keys() & set(range(rows.start, rows.stop)):
            of_query = cosines[row - rows.start]
            gains = relevant[row].items()
            ranks = sorted((_rank(of_query, place, rounding), gain) for place, gain in gains)
            ranked[row] = np.array(ranks)
            if not of_query[of_query > -np.inf].any():
                ranked[row][:, 0] = np.arange(len(C) - len(ranks), len(C)) + 1
                blind += 1
    if blind:
        message = "%d of %d queries have cosine 0 with all documents, as zero vectors do: %s"
        log.warning(message, blind, len(relevant), "they count as if they found nothing")
    return Retrieved(
        np.array(sorted(relevant)),
        tuple(ranked[row] for row in sorted(relevant)),
        top,
    )


def _rank(cosines: NDArray[Any], document: int, rounding: float) -> int:
    cosine = cosines[document]
    nearer = (cosines > cosine + rounding).sum()
    tied_before = (np.abs(cosines[:document] - cosine) <= rounding).sum()
    return 1 + int(nearer) + int(tied_before)


def _discounts(ranks: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(1 / np.log2(ranks + 1.0))


def _rows_of(ids: Ids, n: int, kind: str) -> dict[Hashable, int]:
    """Row of each id; `kind` is what rows stand for, `query` or `document`."""
    ids = range(n) if ids is None else ids
    check_same_length(**{f"{kind}_ids": ids, f"{kind} embeddings": range(n)})
    rows: dict[Hashable, int] = {}
    for i, name in enumerate(ids):
        if rows.setdefault(name, i) != i:
            raise InputError(
                f"{kind} id {name!r} names two rows: expected a different id for each of the {n}"
            )
    return rows


def _relevant(
    qrels: Qrels,
    query_rows: Mapping[Hashable, int],
    corpus_rows: Mapping[Hashable, int],
) -> dict[int, dict[int, float]]:
    """Row of each query that has relevant documents → their rows → relevance."""
    if not isinstance(qrels, Mapping):
        kind = type(qrels).__name__
        raise InputError(f"qrels is a {kind}: expected a dict, such as {{query: {{document: 1}}}}")
    relevant: dict[int, dict[int, float]] = {}
    for query, judged in qrels.items():
        if query not in query_rows:
            raise InputError(
                f"qrels judge the query {query!r}, which is not among the {len(query_rows)} query "
                "ids"
            )
        if isinstance(judged, str) or not isinstance(judged, Iterable):
            expected = "expected a list of documents, or a dict of their relevance"
            raise InputError(f"qrels of {query!r} are {judged!r}: {expected}")
        graded = judged if isinstance(judged, Mapping) else dict.fromkeys(judged, 1.0)
        for document, relevance in graded.items():
            if document not in corpus_rows:
                raise InputError(
                    f"qrels of {query!r} name the document {document!r}, which is not among the "
                    f"{len(corpus_rows)} document ids"
                )
            if not (is_number(relevance) and 0 <= relevance < np.inf):
                raise InputError(
                    f"relevance of {document!r} to {query!r} is {relevance}: expected 0 or more"
                )
            if relevance > 0:
                rows = relevant.setdefault(query_rows[query], {})
                rows[corpus_rows[document]] = float(relevance)
    return relevant
