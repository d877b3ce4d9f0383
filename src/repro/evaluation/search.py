"""Exact search: the nearest documents of each query by cosine, in numpy, and by faiss as ESE's authors search.

The one importer of faiss. Both compare every query with every document: approximation must not enter a study of
dimensions.
"""

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from repro.types import Array, InputError, check_dim, check_embeddings, optional

Indices: TypeAlias = NDArray[np.int64]
BLOCK = 2**22
"""cosines held at once: 32 MB in double precision"""


def unit_prefix(X: Any, dim: int | None = None, *, name: str = "X") -> Array:
    """The first `dim` columns of X (n, D) with rows of length 1; a zero row stays zero.

    A prefix of a unit vector is shorter than 1 by what it leaves out. Euclidean distance would rank by that length
    along with the direction (audit S2), so prefixes are normalised anew.

    Raises:
        InputError: for unusable embeddings, or a dim that is not 1 … D.
    """
    X = check_embeddings(X, name)
    X = X if dim is None else X[:, : check_dim(dim, limit=X.shape[1])]
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return np.asarray(X / np.where(lengths > 0, lengths, 1))


def cosine_blocks(Q: Any, C: Any) -> Iterator[tuple[slice, Array]]:
    """Cosines of blocks of queries Q (m, d) with all documents C (n, d), float64: each block's rows and (b, n).

    Equal documents get equal cosines to the last bit, wherever they stand, so that ties are ties.

    Raises:
        InputError: for unusable embeddings, or sides of different size.
    """
    Q, C = check_embeddings(Q, "Q"), check_embeddings(C, "C")
    if Q.shape[1] != C.shape[1]:
        raise InputError(f"Q has {Q.shape[1]} columns, C {C.shape[1]}: expected queries and documents of one size")
    Q, C = (unit_prefix(X.astype(np.float64)) for X in (Q, C))
    first, where = _merge_equal(C)
    distinct = np.ascontiguousarray(C[first].T)  # (d, n')
    step = max(1, BLOCK // len(C))
    for start in range(0, len(Q), step):
        rows = slice(start, min(start + step, len(Q)))
        cosines = Q[rows] @ distinct
        yield rows, cosines if len(first) == len(C) else cosines[:, where]


def top_documents(Q: Any, C: Any, k: int = 1) -> Indices:
    """The k documents nearest to each query by cosine (m, k), best first, ties to the lower index (PROTOCOLS §5.7).

    Args:
        Q: queries (m, d).
        C: documents (n, d).
        k: how many, at most n.

    Raises:
        InputError: for unusable embeddings, sides of different size, or a k that is not 1 … n.
    """
    check_dim(k, limit=len(C), what="k")
    found = np.empty((len(Q), k), np.int64)
    for rows, cosines in cosine_blocks(Q, C):
        if k == 1:
            found[rows, 0] = cosines.argmax(1)  # the first of equal ones
        else:
            found[rows] = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
    return found


class FlatIndex:
    """faiss' IndexFlatL2 over the first columns of unit rows: what ESE's authors search with (their Section 4.3).

    Squared distance of unit rows is 2 − 2·cosine, so the order is that of exact cosines, rounding aside.
    """

    def __init__(self, C: Any, dim: int | None = None, *, renormalize: bool = True) -> None:
        """Store the first `dim` columns of documents C (n, D).

        Args:
            C: documents.
            dim: columns kept; None keeps all.
            renormalize: give the prefixes length 1 again; False leaves them as they are once the full rows have
                length 1, as sentence-transformers does.

        Raises:
            InputError: if faiss is not installed, for unusable embeddings, or a dim out of range.
        """
        self.renormalize = renormalize
        rows = self._rows(C, dim, "C")
        # brought in only here: exact cosines need none of it
        self.dim, self.index = rows.shape[1], optional("faiss", "eval").IndexFlatL2(rows.shape[1])
        self.index.add(rows)

    def __len__(self) -> int:
        return int(self.index.ntotal)

    def search(self, Q: Any, k: int = 1) -> Indices:
        """The k documents nearest to each query (m, k); queries are cut to the index's size, as documents were.

        Raises:
            InputError: for unusable embeddings, fewer columns than the index has, or a k that is not 1 … n.
        """
        check_dim(k, limit=len(self), what="k")
        return np.asarray(self.index.search(self._rows(Q, self.dim, "Q"), k)[1], np.int64)

    def _rows(self, X: Any, dim: int | None, name: str) -> NDArray[np.float32]:
        unit = unit_prefix(X, dim if self.renormalize else None, name=name)
        return np.ascontiguousarray(unit[:, :dim], np.float32)


def _merge_equal(X: Array) -> tuple[Indices, Indices]:
    """Rows at which each distinct row of X first stands, and for every row the number of its distinct one."""
    seen: dict[bytes, int] = {}
    first: list[int] = []
    where = np.empty(len(X), np.int64)
    for i, row in enumerate(X + 0.0):  # −0 and 0 are the same number, but not the same bytes
        where[i] = seen.setdefault(row.tobytes(), len(first))
        if where[i] == len(first):
            first.append(i)
    return np.array(first), where
