"""Leading singular vectors of a matrix within a stated tolerance, in a fraction of the time of a
decomposition.
"""

import functools

import torch
from torch import Tensor

from repro.seeding import derive_seed

WIDTH = 16
"""Rows by which both bases of `leading_vectors` grow at once."""
SMALLEST = 256
"""Size below which a decomposition is as fast."""
TOLERANCE = 1e-3
"""Norm of what its subspace misses of A, as a share of A's largest singular value."""


def leading_vectors(A: Tensor, count: int) -> tuple[Tensor, Tensor] | None:
    """U (D, m) and S (m,), descending, of A ≈ USVᵀ with m ≤ count, or None where the method is not
    sure of them.

    They are those of a matrix A' with ‖A' − A‖₂ ≤ TOLERANCE·S₁ in every direction asked for; with m
    < count, no singular value above 2·TOLERANCE·S₁ is left out. Not sure are a spectrum so flat
    that the search would take longer than a decomposition, and so many equal singular values that
    some may be hidden. Block Golub-Kahan-Lanczos (Golub, Luk and Overton, 1981) from a fixed random
    start, fully reorthogonalised, in A's precision; bases are rows.
    """
    size = len(A)
    if size < SMALLEST:
        return None
    limit = 3 * size // 8 // WIDTH * WIDTH
    left, right, images = (A.new_empty(limit, size) for _ in range(3))  # Images = left · A
    block = _start(size).to(A)
    largest = 0.0
    for done in range(0, limit, WIDTH):
        stop = done + WIDTH
        right[done:stop] = block
        rows, coupling = _orthonormal(block @ A.mT, left[:done])
        if done and _norm(coupling) <= TOLERANCE * largest:  # A·v leaves the left basis by no more
            return _rayleigh_ritz(A, left[:done], images[:done], count)
        left[done:stop], images[done:stop] = rows, rows @ A
        largest = largest or _norm(images[:stop] @ images[:stop].mT) ** 0.5
        block, coupling = _orthonormal(images[done:stop], right[:stop])
        missed = _norm(coupling)
        # Not by the vectors asked for?
        if stop > count and stop % (2 * WIDTH) == 0 and missed > TOLERANCE * largest:
            U = torch.linalg.svd(images[:stop] @ right[:stop].mT).U
            missed = _norm(U[-WIDTH:, :count].mT @ coupling)
        if missed <= TOLERANCE * largest:  # Aᵀ·u leaves the right basis by no more
            return _rayleigh_ritz(A, left[:stop], images[:stop], count)
        if stop > limit // 2 and missed > 8 * TOLERANCE * largest:
            break
    return None


def _norm(matrix: Tensor) -> float:
    return float(torch.linalg.matrix_norm(matrix, 2))


@functools.cache
def _start(size: int) -> Tensor:
    """The first right block (WIDTH, size): random, but always the same."""
    generator = torch.Generator().manual_seed(derive_seed(0, "subspace", size))
    columns = torch.randn(size, WIDTH, generator=generator, dtype=torch.float64)
    return torch.linalg.qr(columns).Q.mT


def _orthonormal(rows: Tensor, basis: Tensor) -> tuple[Tensor, Tensor]:
    """Orthonormal rows Q and R with rows = R·Q + (a part in the span of the orthonormal basis)."""
    R = None
    for _ in range(2):  # Once loses orthogonality, twice is enough (Parlett, 1980)
        rows = rows - (rows @ basis.mT) @ basis
        Q, factor = torch.linalg.qr(rows.mT)
        rows, R = Q.mT, factor.mT if R is None else R @ factor.mT
    assert R is not None
    return rows, R


def _rayleigh_ritz(
    A: Tensor,
    left: Tensor,
    images: Tensor,
    count: int,
) -> tuple[Tensor, Tensor] | None:
    """Singular vectors and values of QQᵀA, Q the rows of `left` and QᵀA those of `images`; None if
    more may hide.
    """
    wide = images.double()
    squares, W = torch.linalg.eigh(wide @ wide.mT)
    S = squares.flip(0)[:count].clamp_min(0).sqrt()
    W = W.flip(1)[:, :count]
    small = 2 * TOLERANCE * float(S[0])
    missed = float(A.norm()) ** 2 - float(images.norm()) ** 2
    if len(S) < count and S[-1] > small and missed > small**2:
        return None
    falls = S[: 1 - WIDTH] - S[WIDTH - 1 :] if len(S) >= WIDTH else S[:0]
    first = S[: len(falls)]
    if bool(((falls <= TOLERANCE * first) & (first > small)).any()):
        # WIDTH equal values: there may be more, with vectors that the start did not hold
        return None
    return left.mT @ W.to(left.dtype), S.to(left.dtype)
