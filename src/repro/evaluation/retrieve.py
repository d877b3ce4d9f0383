"""Exact search by cosine, and how well it finds: nDCG, recall, reciprocal rank, answers
(method-retrieval, method-answers in the book).

Every query is compared with every document, in numpy or by faiss, whose one importer this is:
approximation must not enter a study of dimensions. Whether a context holds the answer and whether a
generated answer is exact are different measures and never stand in one column: the former is what a
generator needs, not what it makes of it.
"""

import re
import string
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from repro.types import (
    Array,
    InputError,
    check_dim,
    check_embeddings,
    check_same_length,
    optional,
    unit_rows,
)

Indices: TypeAlias = NDArray[np.int64]
Ids: TypeAlias = Sequence[Hashable] | None
"""Names of rows; None numbers them from 0."""
Qrels: TypeAlias = Mapping[Any, Mapping[Any, float] | Collection[Any]]
"""Query id → document id → relevance, or → the relevant documents; 0 is judged and not relevant."""
BLOCK = 2**22  # Cosines held at once: 32 MB in double precision
LARGE = 50_000  # Documents beyond which faiss searches for the nearest
ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


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
    if not len(ks):
        raise InputError("ks is empty: give at least one number of documents, such as (1, 10)")
    for k in ks:
        check_dim(k, what="k")
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
    """
    Q, C = np.atleast_1d(Q), np.atleast_1d(C)
    query_rows = _rows_of(query_ids, len(Q), "query")
    corpus_rows = _rows_of(corpus_ids, len(C), "document")
    relevant = _relevant(qrels, query_rows, corpus_rows)
    shared = query_rows.keys() & corpus_rows.keys() if leave_out_own else set()
    own = {query_rows[name]: corpus_rows[name] for name in shared}
    if not relevant:
        raise InputError(
            f"none of the {len(Q)} queries has a relevant document: qrels of "
            f"{len(qrels)} give nothing"
        )
    ranked: dict[int, NDArray[np.float64]] = {}
    top = np.empty(len(Q), np.int64)
    rounding = rounding_of(C.shape[-1])
    for rows, cosines in cosine_blocks(Q, C):
        for row in own.keys() & set(range(rows.start, rows.stop)):
            cosines[row - rows.start, own[row]] = -np.inf
        top[rows] = _first(cosines, rounding)
        for row in relevant.keys() & set(range(rows.start, rows.stop)):
            of_query = cosines[row - rows.start]
            gains = relevant[row].items()
            ranks = sorted((_rank(of_query, place, rounding), gain) for place, gain in gains)
            ranked[row] = np.array(ranks)
    return Retrieved(
        np.array(sorted(relevant)),
        tuple(ranked[row] for row in sorted(relevant)),
        top,
    )


def cosine_blocks(Q: Any, C: Any) -> Iterator[tuple[slice, Array]]:
    """Cosines of blocks of queries Q (m, d) with all documents C (n, d), float64.

    Yields each block's rows and its cosines (b, n).
    """
    Q, C = check_embeddings(Q, "Q"), check_embeddings(C, "C")
    if Q.shape[1] != C.shape[1]:
        raise InputError(
            f"Q has {Q.shape[1]} columns, C {C.shape[1]}: expected queries and "
            "documents of one size"
        )
    Q, C = (unit_prefix(X.astype(np.float64)) for X in (Q, C))
    step = max(1, BLOCK // len(C))
    for start in range(0, len(Q), step):
        rows = slice(start, min(start + step, len(Q)))
        yield rows, Q[rows] @ C.T


def rounding_of(dim: int) -> float:
    """How far rounding can take two equal cosines apart, of rows with so many columns.

    Each is off by half an ulp of 1 for every product, and every column of a length, that it sums.
    """
    return 2 * (dim + 2) * float(np.finfo(np.float64).eps)


def top_documents(Q: Any, C: Any, k: int = 1) -> Indices:
    """The k documents of C (n, d) nearest to each query of Q (m, d) by cosine (m, k), best first,
    ties to the lower.

    Beyond `LARGE` documents faiss compares every pair, where it is installed, in single precision:
    documents whose cosines differ by less than 1e-6 may change places.
    """
    check_dim(k, limit=len(C), what="k")
    if len(C) > LARGE and find_spec("faiss"):
        return FlatIndex(C).search(Q, k)
    nearest = np.empty((len(Q), k), np.int64)
    rounding = rounding_of(np.shape(C)[-1])
    for rows, cosines in cosine_blocks(Q, C):
        if k == 1:
            nearest[rows, 0] = _first(cosines, rounding)
        else:
            nearest[rows] = _nearest(cosines, k, rounding)
    return nearest


def unit_prefix(X: Any, dim: int | None = None, *, name: str = "X") -> Array:
    """The first `dim` columns of X (n, D) with rows of length 1; a zero row stays zero.

    A prefix of a unit vector is shorter than 1 by what it leaves out. Euclidean distance would rank
    by that length along with the direction (method-retrieval in the book), so prefixes are
    normalised anew.
    """
    X = check_embeddings(X, name)
    X = X if dim is None else X[:, : check_dim(dim, limit=X.shape[1])]
    exponents = np.frexp(np.abs(X).max(axis=1, keepdims=True))[1]
    # Near 1 first, by a power of two: `unit_rows` takes what is shorter than 1e-12 for zero
    return unit_rows(np.ldexp(X, -exponents))


class FlatIndex:
    """The IndexFlatL2 of faiss over the first columns of unit rows: what ESE's authors search with
    (their Section 4.3).

    Squared distance of unit rows is 2 − 2·cosine, so the order is that of exact cosines, rounding
    aside.
    """

    def __init__(self, C: Any, dim: int | None = None, *, renormalize: bool = True) -> None:
        """Store the first `dim` columns of documents C (n, D), of length 1 again or as
        sentence-transformers does.
        """
        self.renormalize = renormalize
        rows = self._rows(C, dim, "C")
        # Brought in only here: exact cosines need none of it
        self.dim, self.index = rows.shape[1], optional("faiss", "eval").IndexFlatL2(rows.shape[1])
        self.index.add(rows)

    def search(self, Q: Any, k: int = 1) -> Indices:
        """The k documents nearest to each query (m, k); queries are cut to the index's size, as
        documents were.
        """
        check_dim(k, limit=int(self.index.ntotal), what="k")
        return np.asarray(self.index.search(self._rows(Q, self.dim, "Q"), k)[1], np.int64)

    def _rows(self, X: Any, dim: int | None, name: str) -> NDArray[np.float32]:
        unit = unit_prefix(X, dim if self.renormalize else None, name=name)
        return np.ascontiguousarray(
            unit[:, : dim if dim is None else check_dim(dim, limit=unit.shape[1])],
            np.float32,
        )


def normalize_answer(text: str) -> str:
    """Lower case, without ASCII punctuation, a, an and the, and with single spaces: as SQuAD and
    HotpotQA compare.
    """
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def exact_match(prediction: str, answers: str | Sequence[str]) -> bool:
    """Whether a prediction equals any of the answers, of which there must be one, both
    normalised.
    """
    return normalize_answer(prediction) in map(normalize_answer, _listed(answers))


def answer_in_context(context: str, answers: str | Sequence[str]) -> bool:
    """Whether any of the answers stands in a context as whole words, both normalised; one of no
    words does not.
    """
    words = f" {normalize_answer(context)} "
    normalized = filter(None, map(normalize_answer, _listed(answers)))
    return any(f" {answer} " in words for answer in normalized)


def is_yes_no(answer: str) -> bool:
    """Whether an answer is yes or no, a judgement that no context can be searched for."""
    return normalize_answer(answer) in ("yes", "no")


def _listed(answers: str | Sequence[str]) -> list[str]:
    listed = [answers] if isinstance(answers, str) else list(answers)
    if not listed:
        raise InputError("answers is empty: expected at least one, such as ['Paris']")
    return listed


def _rank(cosines: NDArray[Any], document: int, rounding: float) -> int:
    cosine = cosines[document]
    nearer = (cosines > cosine + rounding).sum()
    tied_before = (np.abs(cosines[:document] - cosine) <= rounding).sum()
    return 1 + int(nearer) + int(tied_before)


def _first(cosines: Array, rounding: float) -> Indices:
    """The nearest document of each query, the first of tied ones, from cosines (b, n)."""
    return np.asarray((cosines >= cosines.max(axis=1, keepdims=True) - rounding).argmax(axis=1))


def _nearest(cosines: Array, k: int, rounding: float) -> Indices:
    """The k nearest documents of each query (b, k), tied ones as they stand, by cosines (b, n)."""
    nearest = np.empty((len(cosines), k), np.int64)
    kth = np.partition(cosines, -k, axis=1)[:, -k]
    for row, least in enumerate(kth):
        near = np.flatnonzero(cosines[row] >= least - rounding)  # All that are tied with the k-th
        near = near[np.argsort(-cosines[row, near], kind="stable")]
        falls = -np.diff(cosines[row, near])
        run = np.r_[0, np.cumsum(falls > rounding)]
        nearest[row] = near[np.lexsort((near, run))][:k]
    return nearest


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
    relevant: dict[int, dict[int, float]] = {}
    for query, judged in qrels.items():
        if query not in query_rows:
            raise InputError(
                f"qrels judge the query {query!r}, which is not among the "
                f"{len(query_rows)} query ids"
            )
        graded = judged if isinstance(judged, Mapping) else dict.fromkeys(judged, 1.0)
        for document, relevance in graded.items():
            if document not in corpus_rows:
                raise InputError(
                    f"qrels of {query!r} name the document {document!r}, which is not among "
                    f"the {len(corpus_rows)} "
                    "document ids"
                )
            if not 0 <= relevance < np.inf:
                raise InputError(
                    f"relevance of {document!r} to {query!r} is {relevance}: expected 0 or more"
                )
            if relevance > 0:
                rows = relevant.setdefault(query_rows[query], {})
                rows[corpus_rows[document]] = float(relevance)
    return relevant
