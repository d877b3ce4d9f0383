"""How vectors are stored: a map to fewer numbers, and the code of each of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dimadvise.files import Block
from dimadvise.transform import Transform
from repro.evaluation.quantise import (
    BITS,
    FLOATS,
    Codebook,
    Codes,
    dequantise,
    quantise,
    vector_bytes,
)
from repro.types import InputError, one_of, unit_rows

SIGN = np.uint8(128)  # The bit by which a code from 0 to 255 and one from -128 differ
SIMILARITIES = ("cosine", "ip", "l2")
PRODUCT = "pq"  # A level of product quantisation is this and its bytes, such as pq48
LLOYD = "lloyd"
"""A level of as many values as its bits tell, which suit a normal distribution (Max, 1960)."""
CACHED = 256  # Rows that a processor keeps at hand while it compares them with values
CELLS = 2  # Of a table, for each value
MENU = (*BITS, *(f"{LLOYD}{bits}" for bits in (7, 6, 5, 4, 3, 2)), PRODUCT)
"""Levels that may be asked for; one of product codes stands for all of them."""


@dataclass(frozen=True, eq=False)
class Deployment:
    """How vectors are stored: made shorter, divided by their length where cosines count, and put
    into fewer bits.
    """

    transform: Transform
    similarity: str
    """Of stored vectors with queries: cosine, inner product (ip), or Euclidean distance (l2)."""
    level: str = "float32"
    """Bits of each number, a key of `BITS`; or `lloyd` and its bits, or `pq` and its bytes."""
    codebook: Codebook | None = None  # Of a level of `BITS`; None where numbers stay floats
    centroids: Block | None = None
    """What each code of a part of a row stands for (`centroid_shape`), of all other levels."""
    rerank: int = 0
    """How many times as many vectors as are wanted are found by their codes, then ordered by the
    full vectors.
    """
    symmetric: bool = False
    """Whether codes of queries are compared with codes, not queries as they are."""

    def __post_init__(self) -> None:
        one_of(self.similarity, SIMILARITIES, "similarity")
        dim = self.transform.dim
        expected = centroid_shape(self.level, dim)
        if expected:
            shape = None if self.centroids is None else self.centroids.shape
            if shape != expected:
                raise InputError(
                    f"{self.level} of {dim} dims has centroids of shape {shape}: expected "
                    f"{expected}"
                )
        elif one_of(self.level, list(BITS), "level") not in FLOATS:
            book = self.codebook
            if book is None or (book.level, book.dim) != (self.level, dim):
                description = "none" if book is None else f"{book.level} of {book.dim}"
                raise InputError(
                    f"{self.level} of {dim} dims needs such a codebook; there is {description}"
                )

    @property
    def named(self) -> dict[str, Any]:
        """Method, dim and level."""
        transform = self.transform
        return {"method": transform.method, "dim": transform.dim, "level": self.level}

    @property
    def bytes(self) -> int:
        """Of one stored vector."""
        return level_bytes(self.level, self.transform.dim)

    def vectors(self, X: Any) -> Block:
        """Rows X (n, D) as (n, dim) float32, not yet in fewer bits; what float stores take."""
        Y = self.transform.apply(X)
        return np.asarray(unit_rows(Y), np.float32) if self.similarity == "cosine" else Y

    def codes(self, X: Any) -> Codes:
        """Rows X (n, D) as they are stored, `bytes` of them each."""
        return self._coded(self.vectors(X))

    def _coded(self, Y: Block) -> Codes:
        if self.centroids is None:
            codes = quantise(Y, self._book)
            return (codes ^ SIGN).view(np.int8) if self._signed else codes
        return packed(nearest_centroids(Y, self.centroids), self._part_bits)

    def decode(self, codes: Codes) -> Block:
        """What codes stand for (n, dim); of the binary level signs, ±1, with which `queries`
        agree.
        """
        if self.centroids is None:
            codes = codes.view(np.uint8) ^ SIGN if self._signed else codes
            return dequantise(codes, self._book)
        return self._meant(unpacked(codes, len(self.centroids), self._part_bits))

    def stored(self, X: Any) -> Block:
        """What remains of rows X (n, D) once they are stored (n, dim)."""
        return self.stored_of(self.vectors(X))

    def stored_of(self, Y: Block) -> Block:
        """What remains of rows Y (n, dim) as `vectors` gives them."""
        if self.centroids is None:
            return self.decode(self._coded(Y))
        return self._meant(nearest_centroids(Y, self.centroids))

    def queries(self, Q: Any) -> Block:
        """Queries (m, D) as they are compared with what is `stored` (m, dim)."""
        if self.symmetric:
            return self.stored(Q)
        Y = self.vectors(Q)
        return Y - self._book.offset if self.level == "binary" else Y

    def _meant(self, numbers: NDArray[np.uint8]) -> Block:
        """The centroids of such numbers (n, parts), side by side (n, dim)."""
        assert self.centroids is not None
        return self.centroids[np.arange(numbers.shape[1]), numbers].reshape(len(numbers), -1)

    @property
    def _signed(self) -> bool:
        """Whether codes are numbers from -128 to 127, which are compared as they are."""
        return self.symmetric and self.level == "int8"

    @property
    def _part_bits(self) -> int:
        """Of the code of one part."""
        assert self.centroids is not None
        return int(np.log2(self.centroids.shape[1]))

    @property
    def _book(self) -> Codebook:
        dim = self.transform.dim
        return self.codebook or Codebook(
            self.level,
            np.zeros(dim, np.float32),
            np.ones(dim, np.float32),
        )


def centroid_shape(level: str, dim: int) -> tuple[int, int, int] | None:
    """Parts of a row, values that a code tells apart and numbers of a part; None of a level without
    centroids.
    """
    for kind in (LLOYD, PRODUCT):
        count = level.removeprefix(kind)
        if level.startswith(kind) and count.isdecimal():
            n_parts = dim if kind == LLOYD else int(count)
            return n_parts, 2 ** int(count) if kind == LLOYD else 256, dim // n_parts
    return None


def level_bytes(level: str, dim: int) -> int:
    """Bytes of one vector of so many numbers, the bits that fill up its last byte included."""
    shape = centroid_shape(level, dim)
    if shape is None:
        return vector_bytes(dim, level)
    return -(-shape[0] * int(np.log2(shape[1])) // 8)


def nearest_centroids(Y: Block, centroids: Block) -> NDArray[np.uint8]:
    """The number of the nearest centroid of each part of rows Y (n, dim), of which single numbers
    have ascending ones (n, parts); the first of equals.
    """
    if centroids.shape[2] == 1:
        return _nearest_values(Y, centroids[:, :, 0])
    rows_by_part = Y.reshape(len(Y), len(centroids), -1)
    codes = np.empty(rows_by_part.shape[:2], np.uint8)
    halves = (centroids**2).sum(2) / 2  # (parts, values)
    for start in range(0, len(Y), CACHED):
        for m, of_part in enumerate(centroids):
            near = rows_by_part[start : start + CACHED, m] @ of_part.T
            near -= halves[m]
            codes[start : start + CACHED, m] = near.argmax(1)
    return codes


def _nearest_values(Y: Block, values: Block) -> NDArray[np.uint8]:
    """The number of the nearest of the ascending `values` (dim, count) of each number of rows Y
    (n, dim); the first of equals.

    It is the number of middles between values that lie below. A table tells how many lie in cells
    below that of a number, and only those of its own cell are compared with it.
    """
    middles = np.asarray((values[:, 1:] + values[:, :-1]) / 2, np.float32)
    dim, count = values.shape
    cells = CELLS * count
    low, span = middles[:, 0], middles[:, -1] - middles[:, 0]
    scale = (cells / np.where(span > 0, span, 1)).astype(np.float32)

    def cells_of(rows: Block) -> NDArray[np.intp]:
        # No larger number has a smaller cell: every step keeps the order, rounding too.
        place = (rows - low) * scale
        np.clip(place, 0, cells - 1, out=place)
        return place.astype(np.intp) + cells * np.arange(dim)

    per_cell = np.bincount(cells_of(middles.T).ravel(), minlength=dim * cells).reshape(dim, cells)
    firsts = count * np.arange(dim, dtype=np.int32)
    below = (firsts[:, None] + per_cell.cumsum(1) - per_cell).astype(np.int32).ravel()
    ahead = np.concatenate([middles, np.full((dim, 1), np.inf, np.float32)], axis=1).ravel()
    numbers = np.empty(Y.shape, np.uint8)
    for start in range(0, len(Y), CACHED):
        rows = Y[start : start + CACHED]
        passed = below.take(cells_of(rows))
        for _ in range(per_cell.max()):
            passed += rows > ahead.take(passed)
        numbers[start : start + CACHED] = passed - firsts
    return numbers


def packed(numbers: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Numbers (n, parts) of so many bits each, as bytes with zeros at the end."""
    bit_rows = np.unpackbits(numbers[:, :, None], axis=2)[:, :, 8 - bits :]
    return np.packbits(bit_rows.reshape(len(numbers), -1), axis=1)


def unpacked(codes: Codes, n_parts: int, bits: int) -> NDArray[np.uint8]:
    """The numbers (n, parts) that were `packed`."""
    bit_rows = np.unpackbits(codes, axis=1, count=n_parts * bits).reshape(len(codes), n_parts, bits)
    return np.asarray(np.packbits(bit_rows, axis=2)[:, :, 0] >> (8 - bits), np.uint8)
