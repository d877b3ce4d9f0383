"""Every way of storing that is compared: a map to fewer numbers, and fewer bits for each, fitted on
the same rows.
"""

from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from dimadvise.deploy import PRODUCT, SIMILARITIES, Deployment
from dimadvise.files import Block, Rows, Vectors
from dimadvise.transform import (
    METHODS,
    Transform,
    fit_transform_of,
    halvings,
    moments_of,
    most_dims,
    rotated,
)
from repro.evaluation.quantise import BITS, FLOATS, Codebook, fit_codebook
from repro.types import InputError, one_of, optional

Way: TypeAlias = tuple[str, int, str]  # method, dim and level
LEVELS = (*BITS, PRODUCT)
TURNED = "opq"  # singular directions, turned to suit product codes (Ge et al., 2013)
CODED = 10_000  # rows that ranges and centroids are fitted on
ROOM = 0.02  # of a range of eight bits, at each end, for rows still to come
CHUNK = 8192  # rows read at once
PART = 8  # numbers that a byte of a product code stands for
LONGEST = 512  # numbers of which product codes are tried
TRAINED = 3_000  # rows that product codes are fitted on, which takes by far the longest
CENTROIDS = 256  # of product codes: as many rows as they need
# Length of a row from which on its numbers, turned or drawn at random, may not fit into float16
LARGE = 30_000.0


class Ways:
    """Ways of storing, by method, dim and level; what they share is fitted once."""

    def __init__(
        self,
        vectors: Vectors,
        rows: Rows,
        similarity: str,
        seed: int,
        unit: bool | None = None,
    ) -> None:
        """Fit on some rows of `vectors`, in any order, which need not fit into memory; by default
        unit for cosines.
        """
        self.similarity, self.seed = one_of(similarity, SIMILARITIES, "similarity"), seed
        self.unit = similarity == "cosine" if unit is None else unit
        self.seen = vectors.take(rows[:CODED])
        self.moments = moments_of(chain([self.seen], vectors.taken(rows[CODED:])), unit=self.unit)
        self.full_dim = vectors.shape[1]

    @property
    def full(self) -> Way:
        """The vectors as they are."""
        return "truncate", self.full_dim, "float32"

    def all(self, methods: Sequence[str], levels: Sequence[str], sizes: Sequence[int]) -> list[Way]:
        """Every way within reach by its name, the full vectors first.

        Empty `methods` and `levels` are all but float32, which finds what float16 does in half its
        bytes; float16 where numbers are too large for it; and product codes (of every other size)
        where faiss or rows for them are missing.
        """
        beyond = set() if has_faiss() and len(self.seen) >= CENTROIDS else {PRODUCT}
        if not self.unit and np.linalg.norm(self.seen, axis=1).max() > LARGE:
            beyond |= {"float16"}
        levels = levels or [level for level in LEVELS[1:] if level not in beyond]
        methods = methods or [*METHODS, TURNED]
        for name in methods:
            one_of(name, (*METHODS, TURNED), "method")
        for level in levels:
            one_of(level, LEVELS, "level")
        whole = [level for level in levels if level != PRODUCT]
        plain = [
            (m, d) for m in methods if m != TURNED for d in sizes if d <= most_dims(m, self.moments)
        ]
        found = [self.full, *((method, dim, level) for method, dim in plain for level in whole)]
        if PRODUCT in levels:
            reach = most_dims("svd", self.moments)
            products = [
                d for d in sizes[::2] if not d % PART and 8 * PART <= d <= min(reach, LONGEST)
            ]
            turned = [name for name in ("svd", TURNED) if name in methods]
            found += [(name, d, f"{PRODUCT}{d // PART}") for name in turned for d in products]
        return list(dict.fromkeys(found))

    def way(self, method: str, dim: int, level: str) -> Deployment:
        """One way; a level of product codes is `pq` and the bytes of a code."""
        if level.startswith(PRODUCT):
            transform, centroids = self._product(method, dim, int(level.removeprefix(PRODUCT)))
            return Deployment(transform, self.similarity, level, centroids=centroids)
        transform, shortened = self._shortened(method, dim)
        return Deployment(transform, self.similarity, level, _codebook(shortened, level))

    @lru_cache(maxsize=2)  # noqa: B019 - all levels of one size come one after the other
    def _shortened(self, method: str, dim: int) -> tuple[Transform, Block]:
        transform = self._widest("pca" if method == "pca-rotated" else method).prefix(dim)
        if method == "pca-rotated":
            transform = rotated(transform, self.seed)
        return transform, Deployment(transform, self.similarity).vectors(self.seen)

    @lru_cache(maxsize=len(METHODS))  # noqa: B019
    def _widest(self, method: str) -> Transform:
        most = most_dims(method, self.moments)
        return fit_transform_of(method, self.moments, most, unit=self.unit, seed=self.seed)

    def _product(self, method: str, dim: int, count: int) -> tuple[Transform, Any]:
        """Map and centroids (count, 256, dim / count) of product quantisation (Jégou et al.,
        2011).
        """
        faiss = optional("faiss", "eval")
        if len(self.seen) < CENTROIDS:
            raise InputError(
                f"{len(self.seen)} rows: product codes have {CENTROIDS} centroids, so "
                "expected as many"
            )
        transform, Y = self._shortened("svd" if method == TURNED else method, dim)
        Y = np.ascontiguousarray(Y[:TRAINED])
        product = faiss.ProductQuantizer(dim, count, 8)
        product.cp.niter, product.cp.seed, product.cp.min_points_per_centroid = (
            6,
            self.seed % 2**31,
            1,
        )
        if method == TURNED:
            turn = faiss.OPQMatrix(dim, count)
            turn.niter, turn.niter_pq, turn.niter_pq_0, turn.pq = 3, 2, 4, product
            turn.train(Y)
            A = faiss.vector_to_array(turn.A).reshape(dim, dim).T
            transform = Transform(
                TURNED,
                dim,
                transform.matrix @ A,
                transform.bias @ A,
                transform.unit,
            )
            Y = np.ascontiguousarray(Y @ A)
        product.train(Y)
        return transform, faiss.vector_to_array(product.centroids).reshape(
            count,
            256,
            dim // count,
        ).copy()


def has_faiss() -> bool:
    """Whether product quantisation can be trained."""
    return find_spec("faiss") is not None


def default_sizes(full: int) -> list[int]:
    """Sizes tried: the full one, then two to each halving, in whole bytes of bits where there are
    enough.
    """
    smaller = halvings(full, 2)[1:]
    return sorted(
        {full, *(8 * round(dim / 8) if dim >= 16 else round(dim) for dim in smaller)},
        reverse=True,
    )


def _codebook(Y: Block, level: str) -> Codebook | None:
    """Ranges or means of rows Y (n, dim), of eight bits a little wider than Y.

    A number beyond its range is cut off by many steps of eight bits, which costs a new row more
    than wider steps cost all; steps of four bits are so wide that it is the other way round.
    """
    if level in FLOATS:
        return None
    book = fit_codebook(Y, level)
    if level != "int8":
        return book
    span = book.step * np.float32(2 ** BITS[level] - 1)
    return Codebook(
        level,
        book.offset - np.float32(ROOM) * span,
        book.step * np.float32(1 + 2 * ROOM),
    )
