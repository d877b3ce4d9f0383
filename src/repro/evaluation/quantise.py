"""Fewer bits for each number of an embedding: codes of float16, int8, int4 or one bit.

An integer level cuts the range of each dimension on a fit set into 2^bits − 1 equal steps,

    code = round((x − offset) / step),  x̂ = offset + step · code,

numbers outside the range going to its nearest end. The binary level keeps the sign of x − mean
(Charikar, 2002) and is read as ±1. Codes are packed, eight bits a byte; the codebook (offset and
step) is stored once for all vectors.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from repro.types import Array, InputError, check_dim, check_embeddings, one_of

Codes: TypeAlias = NDArray[Any]
"""Numbers (n, d) of a float level or int8, or bytes (n, ⌈d·bits/8⌉) of int4 and binary."""
BITS: Mapping[str, int] = MappingProxyType(
    {"float32": 32, "float16": 16, "int8": 8, "int4": 4, "binary": 1}
)
"""How many bits each level gives a number."""
FLOATS = ("float32", "float16")


@dataclass(frozen=True, eq=False)
class Codebook:
    """What a level learned from a fit set."""

    level: str
    offset: NDArray[np.float32]
    """Lower end of the range of an integer level (d,), mean of the binary one, 0 of a float one."""
    step: NDArray[np.float32]  # Size of a step of an integer level (d,), else 1

    @property
    def dim(self) -> int:
        """Numbers of a vector."""
        return len(self.offset)

    @property
    def stored_bytes(self) -> int:
        """Bytes of the codebook itself, once for all vectors."""
        return 4 * self.dim * (0 if self.level in FLOATS else 1 if self.level == "binary" else 2)


def bits_of(level: str) -> int:
    """How many bits a level gives a number; an InputError for one that is not known."""
    return BITS[one_of(level, list(BITS), "level")]


def vector_bytes(dim: int, level: str) -> int:
    """Bytes of one coded vector, the bits that fill up its last byte included."""
    return -(-check_dim(dim) * bits_of(level) // 8)


def affordable_dim(budget: int, level: str) -> int:
    """How many numbers so many bytes hold; 0 where not even one."""
    return 8 * check_dim(budget, what="budget") // bits_of(level)


def fit_codebook(X: Any, level: str) -> Codebook:
    """Learn range or mean of every dimension from a fit set X (n, d), for a level of `BITS`."""
    X = check_embeddings(X).astype(np.float64)
    bits = bits_of(level)
    offset, step = np.zeros(X.shape[1]), np.ones(X.shape[1])
    if level == "binary":
        offset = X.mean(axis=0)
    elif level not in FLOATS:
        offset = X.min(axis=0)
        step = (X.max(axis=0) - offset) / (2**bits - 1)
        step[step == 0] = 1  # One value in all rows: code 0 stands for it exactly
    return Codebook(level, offset.astype(np.float32), step.astype(np.float32))


def quantise(X: Any, book: Codebook) -> Codes:
    """Codes of embeddings X (n, d), one row each; numbers that float16 cannot hold are an error."""
    X = _fitting(X, book)
    if book.level in FLOATS:
        largest = float(np.abs(X).max())
        end = float(np.finfo(book.level).max)
        if largest > end:
            raise InputError(
                f"X holds {largest:g}: {book.level} ends at {end:g}; scale the rows first"
            )
        return np.ascontiguousarray(X, book.level)
    if book.level == "binary":
        return np.packbits(book.offset < X, axis=1)  # (n, ⌈d/8⌉), zeros at the end
    steps = np.rint((X - book.offset) / book.step)
    codes = np.clip(steps, 0, 2 ** BITS[book.level] - 1).astype(np.uint8)
    if book.level == "int8":
        return codes
    codes = np.pad(codes, ((0, 0), (0, book.dim % 2)))
    return np.asarray(codes[:, ::2] << 4 | codes[:, 1::2])


def dequantise(codes: Codes, book: Codebook) -> NDArray[np.float32]:
    """What codes stand for (n, d); of the binary level the signs, ±1, of the numbers less the
    mean.
    """
    is_float = book.level in FLOATS
    kind = book.level if is_float else "uint8"
    width = book.dim if is_float else vector_bytes(book.dim, book.level)
    if codes.ndim != 2 or codes.dtype != kind or codes.shape[1] != width:
        raise InputError(
            f"codes are {codes.dtype} of shape {codes.shape}: {book.level} codes of {book.dim} "
            f"dims are {kind}, {width} a row"
        )
    if is_float:
        return codes.astype(np.float32)
    if book.level == "binary":
        bits = np.unpackbits(codes, axis=1, count=book.dim)
        return bits * np.float32(2) - np.float32(1)
    if book.level == "int4":
        halves = np.stack([codes >> 4, codes & 15], axis=2)
        codes = halves.reshape(len(codes), -1)[:, : book.dim]
    return book.offset + book.step * codes.astype(np.float32)


def prepare_queries(Q: Any, book: Codebook) -> Array:
    """Float queries (m, d) as they are compared with `dequantise`d documents: less the mean for the
    binary level.
    """
    Q = _fitting(Q, book)
    return Q - book.offset if book.level == "binary" else Q


def _fitting(X: Any, book: Codebook) -> Array:
    X = check_embeddings(X)
    if X.shape[1] != book.dim:
        raise InputError(
            f"X has {X.shape[1]} columns, the codebook {book.dim}: fit it on embeddings of this "
            "size"
        )
    return X
