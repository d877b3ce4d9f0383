"""Every way of storing that is compared: a map to fewer numbers, and fewer bits for each, fitted on
the same rows.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from scipy.special import ndtr, ndtri

from dimadvise.coding import (
    LLOYD,
    MENU,
    PRODUCT,
    SIMILARITIES,
    Deployment,
    centroid_shape,
    level_bytes,
)
from dimadvise.files import Block, Rows, Vectors
from dimadvise.stores import codes_queries, holds, levels_of
from dimadvise.transform import (
    METHODS,
    TURNED,
    Transform,
    fit_transform_of,
    halvings,
    moments_of,
    most_dims,
    rotated,
)
from repro.evaluation.quantise import BITS, FLOATS, Codebook, fit_codebook
from repro.terminal import progress_bar
from repro.types import InputError, one_of, optional

Way: TypeAlias = tuple[str, int, str]  # Method, dim and level
LEARNT = "opq"  # Singular directions, turned to suit product codes (Ge et al., 2013)
WAYS = (*METHODS, LEARNT)
"""All ways to fewer numbers."""
SETTLED = 2_000  # Rounds after which values no longer move
CODED = 10_000  # Rows that ranges and centroids are fitted on
ROOM = 0.02  # Of a range of eight bits, at each end, for rows still to come
CHUNK = 8192  # Rows read at once
PARTS = (2, 4, 8)  # Numbers that a byte of a product code stands for
CODED_BY = ("svd", f"svd{TURNED}", LEARNT)  # Methods of which product codes are made
LONGEST = 512  # Numbers of which product codes are tried
TRAINED = 3_000  # Rows that product codes are fitted on, which takes by far the longest
CENTROIDS = 256  # Of product codes: as many rows as they need
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
        store: str = "",
    ) -> None:
        """Fit on some rows of `vectors`, in any order, which need not fit into memory; by default
        unit for cosines. With a `store` ways are those that it holds.
        """
        self.store = store
        self.similarity, self.seed = one_of(similarity, SIMILARITIES, "similarity"), seed
        self.unit = similarity == "cosine" if unit is None else unit
        self.seen = vectors.take(rows[:CODED])
        others = progress_bar(vectors.taken(rows[CODED:]), show=True, unit="block", desc="fitting")
        self.moments = moments_of(chain([self.seen], others), unit=self.unit)
        self.rows, self.full_dim = vectors.shape
        # All levels of one size come one after the other.
        self._shortened = lru_cache(maxsize=2)(self._fit_shortened)
        self._widest = lru_cache(maxsize=len(METHODS))(self._fit_widest)
        self._product = cache(self._fit_product)  # They take by far the longest, and are small.

    @property
    def full(self) -> Way:
        """The vectors as they are."""
        return "truncate", self.full_dim, "float32"

    def all(self, methods: Sequence[str], levels: Sequence[str], sizes: Sequence[int]) -> list[Way]:
        """Every way within reach by its name, the full vectors first.

        Empty `methods` and `levels` are all but float32, which finds what float16 does in half its
        bytes; float16 where numbers are too large for it; and product codes (of every other size)
        where faiss or rows for them are missing. Then numbers that were turned at random have the
        levels that suit them, and the others have theirs.
        """
        methods = methods or WAYS
        for name in methods:
            one_of(name, WAYS, "method")
        for level in levels:
            one_of(level, MENU, "level")
        menu = levels_of(self.store, levels) if self.store else MENU[1:]
        ways = [self.full]
        for method in methods:
            chosen = levels or [level for level in menu if self._suits(method, level)]
            reach = most_dims("svd" if method == LEARNT else method, self.moments)
            within = [dim for dim in sizes if dim <= reach]
            plain = [level for level in chosen if level != PRODUCT and method != LEARNT]
            ways += [(method, dim, level) for dim in within for level in plain]
            if PRODUCT in chosen and method in CODED_BY:
                ways += self._products(method, within[::2])
        storable = self.held(ways)
        if self.store and storable == [self.full]:
            raise InputError(f"{self.store} holds none of the ways that are tried: give other dims")
        return storable

    def held(self, ways: Sequence[Way]) -> list[Way]:
        """Those that the store holds, without one all; and the full vectors, which tell the
        truth.
        """
        return [
            way for way in dict.fromkeys(ways) if way == self.full or holds(self.store, *way[1:])
        ]

    def _suits(self, method: str, level: str) -> bool:
        """Whether a level is tried with a method unless told otherwise."""
        if level == "float16":
            return bool(self.unit or np.linalg.norm(self.seen, axis=1).max() <= LARGE)
        if level == PRODUCT:
            return method != "svd" and has_faiss() and len(self.seen) >= CENTROIDS
        # Of numbers that vary alike eight bits lose little, whatever the range of the first was.
        return level in ("binary", "int8") or level.startswith(LLOYD) == method.endswith(TURNED)

    def _products(self, method: str, sizes: Sequence[int]) -> list[Way]:
        """Product codes of a method; those whose turn is learnt take long, and are few."""
        widths = PARTS if method != LEARNT else PARTS[-1:]
        return [
            (method, dim, f"{PRODUCT}{dim // width}")
            for width in widths
            for dim in sizes
            if dim % width == 0 and 64 <= dim <= LONGEST
        ]

    def way(self, method: str, dim: int, level: str) -> Deployment:
        """One way; a level of product codes is `pq` and the bytes of a code."""
        if level.startswith(PRODUCT):
            transform, centroids = self._product(method, dim, int(level.removeprefix(PRODUCT)))
            return Deployment(transform, self.similarity, level, centroids=centroids)
        transform, shortened = self._shortened(method, dim)
        symmetric = codes_queries(self.store, level)
        return fitted(transform, self.similarity, level, shortened, symmetric=symmetric)

    def _fit_shortened(self, method: str, dim: int) -> tuple[Transform, Block]:
        transform = self._widest(method.removesuffix(TURNED)).prefix(dim)
        if method.endswith(TURNED):
            transform = rotated(transform, self.seed)
        return transform, Deployment(transform, self.similarity).vectors(self.seen)

    def _fit_widest(self, method: str) -> Transform:
        most = most_dims(method, self.moments)
        return fit_transform_of(method, self.moments, most, unit=self.unit, seed=self.seed)

    def _fit_product(self, method: str, dim: int, count: int) -> tuple[Transform, Any]:
        """Map and centroids (count, 256, dim / count) of product quantisation (Jégou et al.,
        2011).
        """
        faiss = optional("faiss", "eval")
        if len(self.seen) < CENTROIDS:
            raise InputError(
                f"{len(self.seen)} rows: product codes have {CENTROIDS} centroids, so expected as "
                "many"
            )
        transform, Y = self._shortened("svd" if method == LEARNT else method, dim)
        Y = np.ascontiguousarray(Y[:TRAINED])
        product = faiss.ProductQuantizer(dim, count, 8)
        product.cp.niter, product.cp.seed, product.cp.min_points_per_centroid = (
            6,
            self.seed % 2**31,
            1,
        )
        if method == LEARNT:
            turn = faiss.OPQMatrix(dim, count)
            turn.niter, turn.niter_pq, turn.niter_pq_0, turn.pq = 3, 2, 4, product
            turn.train(Y)
            A = faiss.vector_to_array(turn.A).reshape(dim, dim).T
            transform = Transform(
                LEARNT,
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


def fitted(
    transform: Transform,
    similarity: str,
    level: str,
    Y: Block,
    *,
    symmetric: bool = False,
) -> Deployment:
    """A map with what its level needs, ranges, means or values, fitted on rows Y (n, dim) that it
    gave.

    Ranges of eight bits are a little wider than Y. A number beyond its range is cut off by many
    steps of eight bits, which costs a new row more than wider steps cost all; steps of four bits
    are so wide that it is the other way round. Codes of eight bits that are compared with codes
    have one scale for all numbers, and no offset.
    """
    if level in FLOATS:
        return Deployment(transform, similarity, level)
    if level.startswith(LLOYD):
        return Deployment(transform, similarity, level, centroids=normal_centroids(Y, level))
    book = fit_codebook(Y, level)
    if level == "int8" and symmetric:
        step = np.full_like(book.step, (1 + ROOM) * np.abs(Y).max() / 127)
        book = Codebook(level, -128 * step, step)
    elif level == "int8":
        span = book.step * np.float32(2 ** BITS[level] - 1)
        wider = book.step * np.float32(1 + 2 * ROOM)
        book = Codebook(level, book.offset - np.float32(ROOM) * span, wider)
    return Deployment(transform, similarity, level, book, symmetric=symmetric)


def normal_centroids(Y: Block, level: str) -> Block:
    """The values of a Lloyd–Max level (dim, values, 1) about the means of rows Y (n, dim), in their
    deviations.
    """
    shape = centroid_shape(level, Y.shape[1])
    assert shape is not None
    values = normal_values(shape[1])
    mean, deviation = Y.mean(0, dtype=np.float64), Y.std(0, dtype=np.float64)
    return (mean[:, None] + deviation[:, None] * values).astype(np.float32)[:, :, None]


@cache
def normal_values(count: int) -> Any:
    """So many values, ascending, that come nearest to a standard normal distribution (Max, 1960):
    each is the mean of what it stands for.
    """
    values = ndtri((np.arange(count) + 0.5) / count)
    for _ in range(SETTLED):
        ends = np.concatenate([[-np.inf], (values[1:] + values[:-1]) / 2, [np.inf]])
        values = -np.diff(np.exp(-(ends**2) / 2)) / np.diff(ndtr(ends)) / np.sqrt(2 * np.pi)
    return values


def resized(way: Way, dim: int) -> Way:
    """The same method and bits at another size, of product codes at the next that has whole
    parts.
    """
    method, before, level = way
    if level.startswith(PRODUCT):
        width = before // int(level.removeprefix(PRODUCT))
        dim -= dim % width
        level = f"{PRODUCT}{dim // width}"
    return method, dim, level


def bytes_of(way: Way) -> int:
    """Bytes of a vector that is stored so."""
    return level_bytes(way[2], way[1])
