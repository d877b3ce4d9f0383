"""Exact search by cosine (method-retrieval in the book).

Every query is compared with every document, in numpy or by faiss, whose one importer this is:
approximation must not enter a study of dimensions.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from repro.types import Array, InputError, check_dim, check_embeddings, optional, unit_rows

Indices: TypeAlias = NDArray[np.int64]
BLOCK = 2**22  # Cosines held at once: 32 MB in double precision
LARGE = 50_000  # Documents beyond which faiss searches for the nearest


def cosine_blocks(Q: Any, C: Any) -> Iterator[tuple[slice, Array]]:
    """Cosines of blocks of queries Q (m, d) with all documents C (n, d), float64.

    Yields each block's rows and its cosines (b, n).
    """
    Q, C = check_embeddings(Q, "Q"), check_embeddings(C, "C")
    if Q.shape[1] != C.shape[1]:
        raise InputError(
            f"Q has {Q.shape[1]} columns, C {C.shape[1]}: expected queries and documents of one "
            "size"
        )
    Q = unit_prefix(Q.astype(np.float64))
    C = unit_prefix(C.astype(np.float64))
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
            nearest[rows, 0] = nearest_document(cosines, rounding)
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
    if dim is not None:
        X = X[:, : check_dim(dim, limit=X.shape[1])]
    _, exponents = np.frexp(np.abs(X).max(axis=1, keepdims=True))
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
        self.dim = rows.shape[1]
        faiss = optional("faiss", "eval")  # Brought in only here: exact cosines need none of it
        self.index = faiss.IndexFlatL2(self.dim)
        self.index.add(rows)

    def search(self, Q: Any, k: int = 1) -> Indices:
        """The k documents nearest to each query (m, k); queries are cut to the index's size, as
        documents were.
        """
        check_dim(k, limit=int(self.index.ntotal), what="k")
        _, nearest = self.index.search(self._rows(Q, self.dim, "Q"), k)
        return np.asarray(nearest, np.int64)

    def _rows(self, X: Any, dim: int | None, name: str) -> NDArray[np.float32]:
        unit = unit_prefix(X, dim if self.renormalize else None, name=name)
        if dim is not None:
            unit = unit[:, : check_dim(dim, limit=unit.shape[1])]
        return np.ascontiguousarray(unit, np.float32)


def nearest_document(cosines: Array, rounding: float) -> Indices:
    """The nearest document of each query, the first of tied ones, from cosines (b, n)."""
    largest = cosines.max(axis=1, keepdims=True)
    tied = cosines >= largest - rounding
    return np.asarray(tied.argmax(axis=1))


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
