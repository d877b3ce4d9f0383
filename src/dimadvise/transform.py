"""Linear maps to fewer numbers, fitted on what is known of many rows by their moments alone.

Rows are counted, their mean and their scatter Σ (x − μ)(x − μ)ᵀ kept (D × D): so rows may come in
blocks from a file of any size, and of two sets of rows the moments add up and subtract (Chan, Golub
and LeVeque, 1983).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dimadvise.files import Block
from repro.reducers.linear import GRP
from repro.reducers.reducer import available_bytes
from repro.reducers.spectral import orient
from repro.seeding import make_rng
from repro.types import InputError, check_dim, one_of, plain_array, unit_rows

Floats: TypeAlias = NDArray[np.float64]
TURNED = "-rotated"
METHODS = ("truncate", "pca", f"pca{TURNED}", "random", "svd", f"svd{TURNED}")
"""The first columns; principal components; a Gaussian random projection; singular vectors of the
rows as they are, not less their mean. Rotated are those that were turned at random, so that all
numbers vary alike, which few bits like.
"""
# Of these the first columns are the map to fewer dimensions
NESTED = ("truncate", "pca", "random", "svd")
BYTES_OF_PRODUCT = 32
"""Of memory, for each product of two columns: their sum, that of a block, and axes as they are
found.
"""


@dataclass(frozen=True, eq=False)
class Moments:
    """What a fit has to know of some rows."""

    rows: int
    mean: Floats  # (D,)
    scatter: Floats  # (D, D), about the mean

    def __add__(self, other: "Moments") -> "Moments":
        """Moments of both sets of rows together."""
        rows = self.rows + other.rows
        shift = other.mean - self.mean
        between = np.outer(shift, shift) * (self.rows * other.rows / rows)
        return Moments(
            rows,
            self.mean + shift * (other.rows / rows),
            self.scatter + other.scatter + between,
        )

    def __sub__(self, removed: "Moments") -> "Moments":
        """Moments of the rows that are left without some of them."""
        if removed.rows >= self.rows:
            raise InputError(
                f"{removed.rows} of {self.rows} rows are left out: nothing remains to fit on"
            )
        return self + Moments(-removed.rows, removed.mean, -removed.scatter)


@dataclass(frozen=True, eq=False)
class Transform:
    """y = x @ matrix + bias, of rows divided by their length first where only their directions
    count.
    """

    method: str
    dim: int
    matrix: NDArray[np.float32]  # (D, dim)
    bias: NDArray[np.float32]  # (dim,)
    unit: bool

    def apply(self, X: Any) -> Block:
        """Rows X (n, D) as (n, dim) float32; a row of zeros has no direction and stays as it is."""
        X = plain_array(X, "X", np.float32)
        if X.ndim != 2 or X.shape[1] != len(self.matrix):
            raise InputError(
                f"rows have shape {X.shape}: expected (n, {len(self.matrix)}), as the map was "
                "fitted on"
            )
        if self.unit:
            X = unit_rows(X)
        if self.method == "truncate":  # The product with parts of the identity, without its cost
            return np.ascontiguousarray(X[:, : self.dim])
        return np.asarray(X @ self.matrix + self.bias, np.float32)

    def prefix(self, dim: int) -> "Transform":
        """The same method at a smaller size, without fitting it again."""
        check_dim(dim, limit=self.dim)
        one_of(self.method, NESTED, "method whose maps are nested")
        # A random projection keeps lengths on average at every size
        longer = np.float32(np.sqrt(self.dim / dim) if self.method == "random" else 1)
        matrix = np.ascontiguousarray(self.matrix[:, :dim]) * longer
        return Transform(self.method, dim, matrix, self.bias[:dim] * longer, self.unit)


def halvings(full: int, per_halving: int) -> list[float]:
    """The full size, then so many to each halving, down to what rounds to 8."""
    whole_halvings = int(np.log2(max(full, 2)))
    sizes = (full * 2 ** (-step / per_halving) for step in range(per_halving * whole_halvings + 1))
    return [size for size in sizes if round(size) >= min(8, full)]


def moments_of(blocks: Iterable[Any], *, unit: bool) -> Moments:
    """Moments of rows that come in blocks (b, D); with `unit` of the rows divided by their
    lengths.

    Raises:
        InputError: where there are no rows, or memory is short of the products of all columns.
    """
    total: Moments | None = None
    for block in blocks:
        X = np.asarray(block, np.float32)
        if not len(X):
            continue
        if total is None:
            _check_width(X.shape[1])
        if unit:
            X = unit_rows(X)
        mean = X.mean(0, dtype=np.float64)
        centred = X - mean.astype(np.float32)  # Products of small numbers: single precision does
        residue = centred.mean(0, dtype=np.float64)  # What rounding the mean has left
        scatter = (centred.T @ centred).astype(np.float64) - len(X) * np.outer(residue, residue)
        of_block = Moments(len(X), mean, scatter)
        total = of_block if total is None else total + of_block
    if total is None:
        raise InputError("no rows to fit on: expected at least one")
    return total


def _check_width(D: int) -> None:
    """Refuse rows of which the products of all columns, and their axes, would not fit into
    memory.
    """
    needed, free = BYTES_OF_PRODUCT * D**2, available_bytes()
    if needed > free:
        most = int((free / BYTES_OF_PRODUCT) ** 0.5)
        raise InputError(
            f"rows of {D:,} numbers need about {needed / 1e9:,.1f} GB of memory and "
            f"{free / 1e9:,.1f} GB are available: keep at most {most:,} columns, by `repro reduce "
            "--method grp`, or use a larger machine"
        )


def most_dims(method: str, moments: Moments) -> int:
    """The largest size that a method gives from these rows: components need rows that hold them."""
    D = len(moments.mean)
    limits = {"pca": moments.rows - 1, "svd": moments.rows}
    return min(D, limits.get(one_of(method, METHODS, "method").removesuffix(TURNED), D))


def fit_transform_of(
    method: str,
    moments: Moments,
    dim: int,
    *,
    unit: bool,
    seed: int = 0,
) -> Transform:
    """The map of a method to `dim` numbers.

    Args:
        method: of `METHODS`.
        moments: of the rows to fit on (`moments_of`), taken with the same `unit`.
        dim: at most `most_dims`.
        unit: rows are divided by their lengths before anything else, as befits cosines.
        seed: of random projections and rotations.

    Raises:
        InputError: for an unknown method, and for more dims than the rows or columns give.
    """
    matrix: Floats
    D, most = len(moments.mean), most_dims(method, moments)
    if check_dim(dim) > most:
        raise InputError(
            f"{method} of {moments.rows} rows of {D} numbers gives at most {most} dims, not {dim}"
        )
    bias = np.zeros(dim)
    if method == "truncate":
        matrix = np.eye(D, dim)
    elif method == "random":
        matrix = np.asarray(
            GRP(n_components=dim, seed=seed).fit(np.zeros((1, D))).components_.T,
            np.float64,
        )
    else:
        second = moments.scatter / moments.rows
        centred = method.removesuffix(TURNED) == "pca"
        if not centred:
            second = second + np.outer(moments.mean, moments.mean)
        matrix = orient(np.linalg.eigh(second)[1][:, : -dim - 1 : -1]).astype(np.float64)
        if centred:
            bias = -moments.mean @ matrix
    plain = Transform(
        method.removesuffix(TURNED),
        dim,
        np.ascontiguousarray(matrix, np.float32),
        bias.astype(np.float32),
        unit,
    )
    return rotated(plain, seed) if method.endswith(TURNED) else plain


def rotated(transform: Transform, seed: int) -> Transform:
    """The same directions, turned at random: each number then carries as much as any other."""
    turn = _turn(transform.dim, seed)
    affine = transform.matrix, transform.bias
    matrix, bias = ((weights @ turn).astype(np.float32) for weights in affine)
    return Transform(transform.method + TURNED, transform.dim, matrix, bias, transform.unit)


@lru_cache(maxsize=24)  # Maps of several methods, tried and measured, have the same sizes.
def _turn(dim: int, seed: int) -> Floats:
    """An orthogonal matrix (dim, dim), any as likely as any other."""
    normal = make_rng(seed, "rotation", dim).standard_normal((dim, dim))
    turn, upper = np.linalg.qr(normal)
    turn *= np.sign(np.diag(upper))  # With these signs all turns are as likely
    return turn


def unchanged(dim: int) -> Transform:
    """The map of rows that are short already."""
    return Transform(
        "truncate",
        dim,
        np.eye(dim, dtype=np.float32),
        np.zeros(dim, np.float32),
        unit=False,
    )
