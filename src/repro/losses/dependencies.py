"""Dependency matrices of ESE, their leading singular vectors, and targets made of them
(method-espresso in the book).

Of a batch the matrix is formed, and decomposed exactly, within a tolerance, or at random. Of one
sentence it never is where that can be avoided: with y = x/D^{1/4}, e^{yᵢyⱼ} = Σ over p of
(yᵢᵖ/√p!)(yⱼᵖ/√p!), so that A = softmax(xxᵀ/√D) is Z⁻¹FFᵀ for the few columns F of these powers and
the row sums Z, and all its singular vectors come from r × r matrices, a whole batch at once. The
states of a decoder have outliers, for which the series is too long; they also make the softmax of
most rows a softmax of a few columns, which are taken as they are.
"""

import functools
import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

from repro.losses.distributed import gather_with_grad, own_rows
from repro.seeding import derive_seed
from repro.types import InputError

NEGLIGIBLE = 1e-7
"""Singular values below this share of the largest are rounding, and set to 0."""
LARGEST = 12.0
"""Of |yᵢyⱼ| in the series: beyond it the alternating terms of negative products lose more than
1e-11 to rounding.
"""
DROPPED = 30.0
"""Entries of a row of A that are smaller than e to minus this, beside its largest, are left out:
1e-13.
"""
BOUNDS = tuple(0.002 * 1.4**step for step in range(27))
"""Of the rows in the series, up to 12.6; the best is taken."""
CHUNK = 2**22
"""Entries of one chunk of A or F."""
WIDTH, SMALLEST = 16, 256
"""Rows by which both bases of `leading_vectors` grow at once, and the size below which a
decomposition is as fast.
"""
TOLERANCE = 1e-3
"""Norm of what its subspace misses of A, as a share of A's largest singular value."""


def dependency_matrix(X: Tensor) -> Tensor:
    """Eq. 3 for a batch: A = softmax(XᵀX/√D) (D, D), each row summing to 1; X (B, D) are the rows
    of one process.
    """
    Y = gather_with_grad(X) / X.shape[1] ** 0.25  # (WB, D)
    if Y.requires_grad or Y.is_cuda:
        return torch.softmax(Y.mT @ Y, dim=-1)
    size, blocks = Y.shape[1], 6  # symmetric: little more than half of the product is needed
    width = -(-size // blocks)
    G = Y.new_empty(size, size)
    for start in range(0, size, width):
        rows = slice(start, start + width)
        torch.mm(Y[:, rows].mT, Y[:, : rows.stop], out=G[rows, : rows.stop])
        G[:start, rows] = G[rows, :start].mT
    return torch.softmax(G, dim=-1, out=G)


def of_batch(X: Tensor, size: int, strategy: str, decomposition: str, seed: int) -> Tensor:
    """The targets (B, k) of pooled states X (B, D) by the batch's own A."""
    if strategy == "dependencies" and decomposition == "randomized":
        return X @ _randomized(dependency_matrix(X), size, seed)
    if strategy == "dependencies" and decomposition == "subspace":
        found = leading_vectors(dependency_matrix(X), size)
        if found is not None:
            target = X @ (_oriented(found[0]) * found[1])
            return pad(target, (0, size - target.shape[1]))  # zero where A has no further component
    A = dependency_matrix(X := X.double())
    if strategy == "max_k":
        return X @ A[:, A.sum(0).argsort(dim=0, descending=True, stable=True)[:size]]
    with torch.no_grad():
        U, S = _left_vectors(A)
        US = _oriented(U) * S
    return X @ _following(US, A.mT @ US, A.matmul)[:, :size]


def of_sentences(X: Tensor, size: int, strategy: str) -> Tensor:
    """The targets (B, k) of pooled states X (B, D), float64, each by its own A."""
    dim = X.shape[1]
    targets = []
    for part in X.split(max(1, CHUNK // (32 * dim))):  # So many that their factors fit in memory.
        factors = sentence_factors(part)
        if factors is not None:
            targets.append(_of_chunk(part, factors, size, strategy))
            continue
        for few in part.split(max(1, CHUNK // dim**2)):  # So many that their matrices do.
            targets.append(_of_chunk(few, None, size, strategy))
    return torch.cat(targets)


def sentence_factors(X: Tensor) -> tuple[Tensor, Tensor] | None:
    """G and F (B, D, r) with A = softmax(xxᵀ/√D) = GFᵀ for each row x of X (B, D); None where A is
    no larger.

    Where no |yᵢyⱼ| is beyond `LARGEST`, F are the powers and G = Z⁻¹F. Else let aᵢ = yᵢ be the
    factor of a row and yⱼ that of a column, and a₀ a bound, chosen for each x so that r is small:

    - columns with |yⱼ| > LARGEST/a₀ are taken as they are, of every row;
    - rows with |aᵢ| ≤ a₀ have all other columns by the series, of powers of κaᵢ and yⱼ/κ;
    - rows beyond a₀ have nothing but those columns, to e^{−`DROPPED`}, if the largest y of a₀'s
      sign is so large that the softmax is saturated; if not, they are taken as they are.
    """
    dim = X.shape[1]
    Y = X / dim**0.25
    size = Y.detach().abs()
    largest = float(size.max())
    if largest**2 <= LARGEST:
        count = series_length(largest**2)
        if 2 * count > dim:
            return None
        F = _powers(Y, count)
        return F / (F @ F.sum(1).unsqueeze(-1)), F  # By the sums of A's rows.
    bound, columns, rows, count = _split(Y.detach())
    if 2 * (columns + rows + count) > dim:
        return None
    column_places = size.topk(columns, dim=1).indices  # (B, columns)
    by_series = size <= bound
    # (B, rows)
    row_places = _unsaturated(Y.detach(), bound).to(Y.dtype).mul(size).topk(rows, dim=1).indices
    # 0 at rows taken as they are.
    kept = torch.ones_like(Y).scatter(1, row_places, 0.0).unsqueeze(-1)
    values = Y.gather(1, column_places).unsqueeze(1)  # (B, 1, columns)
    exponents = Y.unsqueeze(2) * values
    # Every row is divided by its largest entry, or by 1 where that is larger, before anything can
    # overflow.
    shift = pad(exponents.detach(), (0, 1)).amax(-1, keepdim=True)
    taken = (exponents - shift).exp()  # (B, D, columns)
    balance = (
        math.sqrt(LARGEST) / bound
    )  # κ (B, 1), by which both factors of the series stay within the root of LARGEST.
    left = (
        _powers(torch.where(by_series, Y, 0.0) * balance, count)
        * by_series.unsqueeze(-1)
        * (-shift).exp()
    )
    others = torch.ones_like(Y).scatter(1, column_places, 0.0)
    right = _powers(Y * others / balance, count) * others.unsqueeze(-1)
    sums = left @ right.sum(1).unsqueeze(-1) + taken.sum(-1, keepdim=True) + (1 - kept)
    at_columns = one_hot(column_places, dim).mT.to(Y.dtype)
    at_rows = one_hot(row_places, dim).mT.to(Y.dtype)
    # (B, rows, D)
    whole = torch.softmax(Y.gather(1, row_places).unsqueeze(2) * Y.unsqueeze(1), dim=-1)
    G = torch.cat([left * kept / sums, taken * kept / sums, at_rows], dim=-1)
    return G, torch.cat([right, at_columns, whole.mT], dim=-1)


def _powers(Y: Tensor, count: int) -> Tensor:
    """yᵖ/√p! for p = 0 … count − 1 (B, D, count), of the entries of Y (B, D)."""
    powers = [torch.ones_like(Y)]
    for power in range(1, count):
        powers.append(powers[-1] * Y / math.sqrt(power))
    return torch.stack(powers, dim=-1)


def _unsaturated(Y: Tensor, bound: Tensor) -> Tensor:
    """Which rows (B, D) beyond a bound a₀ do not have their softmax on columns beyond LARGEST/a₀
    alone.
    """
    saturated_from = (LARGEST + DROPPED) / bound  # (B, 1)
    above = Y.gt(bound) & Y.amax(1, keepdim=True).lt(saturated_from)
    below = Y.lt(-bound) & Y.amin(1, keepdim=True).gt(-saturated_from)
    return above | below


def _split(Y: Tensor) -> tuple[Tensor, int, int, int]:
    """A bound a₀ (B, 1) for each row of Y (B, D), and the columns, the rows and the powers that all
    of them need.

    Each takes its own best bound, or all take the same, whichever needs fewer.
    """
    size = Y.abs()
    bounds = Y.new_tensor(BOUNDS)
    columns, rows, products = [], [], []
    for bound in bounds:
        taken = size.gt(LARGEST / bound)
        columns.append(taken.sum(1))
        rows.append(_unsaturated(Y, bound).sum(1))
        products.append(size.where(size <= bound, 0.0).amax(1) * size.where(~taken, 0.0).amax(1))
    needed = torch.stack([torch.stack(columns), torch.stack(rows)])  # (2, bounds, B)
    largest = torch.stack(products)
    everyone = torch.arange(len(Y), device=Y.device)
    choices = [needed.sum(0).argmin(0)]
    choices += [torch.full_like(everyone, step) for step in range(len(BOUNDS))]
    splits = []
    for choice in choices:
        of_each = needed[:, choice, everyone].amax(1).tolist()
        count = series_length(float(largest[choice, everyone].max()))
        splits.append((bounds[choice].unsqueeze(1), *of_each, count))
    return min(splits, key=lambda split: sum(split[1:]))


def _of_chunk(x: Tensor, factors: tuple[Tensor, Tensor] | None, size: int, strategy: str) -> Tensor:
    """The targets of a few rows, by products with their A that gradients pass; A is formed where it
    has no factors.

    AAᵀ = GKGᵀ with K = FᵀF = LLᵀ, so that the eigenvectors W of LᵀGᵀGL give US = GLW: an error of
    1e-16·S₁², as in an eigendecomposition of AAᵀ itself.
    """
    dim = x.shape[1]
    if factors is None:
        scaled = x / dim**0.25
        A = torch.softmax(scaled.unsqueeze(2) * scaled.unsqueeze(1), dim=-1)  # (B, D, D)
    else:
        G, F = factors

    def times(V: Tensor) -> Tensor:
        return A @ V if factors is None else G @ (F.mT @ V)

    def transposed_times(V: Tensor) -> Tensor:
        return A.mT @ V if factors is None else F @ (G.mT @ V)

    if strategy == "max_k":
        sums = transposed_times(torch.ones_like(x).unsqueeze(-1)).squeeze(-1)  # (B, D), of columns
        picked = sums.argsort(dim=-1, descending=True, stable=True)[:, :size]
        rows = one_hot(picked, dim).to(x.dtype)  # (B, k, D)
        components = A @ rows.mT if factors is None else G @ (rows @ F).mT
    else:
        with torch.no_grad():
            if factors is None:
                squares, W = torch.linalg.eigh(A @ A.mT)
            else:
                eigenvalues, Q = torch.linalg.eigh(F.mT @ F)
                L = Q * eigenvalues.clamp_min(0).sqrt().unsqueeze(1)  # (B, r, r)
                squares, W = torch.linalg.eigh(L.mT @ (G.mT @ G) @ L)
            S = squares.clamp_min(0).sqrt().flip(1)
            kept = S.ge(NEGLIGIBLE * S[:, :1])
            most = int(kept.sum(1).max())
            W, S = W.flip(2)[:, :, :most], S[:, None, :most]
            US = _oriented((W * S if factors is None else G @ (L @ W)) * kept[:, None, :most])
        components = _following(US, transposed_times(US), times)[:, :, :size]  # (B, D, at most k)
    return pad((x.unsqueeze(1) @ components).squeeze(1), (0, size - components.shape[2]))


def of_embeddings(X: Tensor, size: int, center: bool) -> Tensor:
    """The leading components (B, k) of the states X (B, D), float64, themselves."""
    everyone = gather_with_grad(X)
    if size > len(everyone):
        raise InputError(
            f"size is {size}: {len(everyone)} texts have no more components, so lower "
            "it or add texts"
        )
    if center:
        everyone = everyone - everyone.mean(0)
    with torch.no_grad():
        V, S = _left_vectors(everyone.mT)
        V = (_oriented(V) * (S > 0))[:, : len(everyone)]
        components = everyone @ V
    return _following(components, V, everyone.matmul)[own_rows(X), :size]


def _left_vectors(A: Tensor) -> tuple[Tensor, Tensor]:
    """U (D, D) and S (D,), descending, of A = USVᵀ: from eigh(AAᵀ)."""
    squares, U = torch.linalg.eigh(A @ A.mT)
    S = squares.flip(0).clamp_min(0).sqrt()
    return U.flip(1), S * S.ge(NEGLIGIBLE * S[0])


def _oriented(U: Tensor) -> Tensor:
    """The columns of U (…, D, m), each with its entry of largest modulus positive (the first, if
    several tie).
    """
    size = U.abs()
    # entries within rounding of the largest count as tied, so that the choice does not hang on the
    # last bit
    first = (
        (size >= size.amax(-2, keepdim=True) * (1 - 1e-9)).to(torch.uint8).argmax(-2, keepdim=True)
    )
    return U * torch.where(U.gather(-2, first) < 0, -1.0, 1.0)


def _following(US: Tensor, directions: Tensor, times: Callable[[Tensor], Tensor]) -> Tensor:
    """U·S = A·V (…, m) as it stands, with the gradient of A·V when A moves.

    First-order perturbation of AᵀA: dvⱼ = Σᵢ vᵢ·(dN + dNᵀ)ᵢⱼ/(λⱼ − λᵢ) with N = (AV)ᵀA'V, A' being
    what moves. The quotient by a gap g is taken as g/(g² + ε²): equal singular values turn freely
    in their plane, and no gradient says how. `directions` are multiples of V, `times` takes V to
    A·V, with gradient.
    """
    if not times(directions[..., :1]).requires_grad:
        return US
    with torch.no_grad():
        V, R = torch.linalg.qr(directions)
        V = V * torch.where(R.diagonal(dim1=-2, dim2=-1) < 0, -1.0, 1.0).unsqueeze(-2)
    AV = times(V)
    fixed = AV.detach()
    N = fixed.mT @ AV
    squares = fixed.square().sum(-2)
    gap = squares.unsqueeze(-2) - squares.unsqueeze(-1)  # λⱼ − λᵢ at (i, j)
    spread = (1e-10 * squares.amax(-1)[..., None, None]).square() + torch.finfo(gap.dtype).tiny
    turn = (N + N.mT) * gap / (gap.square() + spread)
    moved = AV + fixed @ (turn - turn.detach())
    return US + (moved - moved.detach()) * (US != 0).any(-2, keepdim=True)


def series_length(largest: float) -> int:
    """The r with (max |yᵢyⱼ|)ʳ/r! < 1e-12; 2 at least."""
    term, count = 1.0, 0
    while term >= 1e-12 or count < 2:
        count += 1
        term *= largest / count
    return count


def _randomized(A: Tensor, size: int, seed: int) -> Tensor:
    """U_k·S_k (D, k) by the range finder of `torch.svd_lowrank(A, q=k, niter=2)` (Halko et al.,
    2011), seeded.
    """
    generator = torch.Generator().manual_seed(derive_seed(seed, "compress"))
    Q = torch.linalg.qr(
        A @ torch.randn(len(A), size, generator=generator, dtype=A.dtype).to(A.device)
    ).Q
    for _ in range(2):
        Q = torch.linalg.qr(A.mT @ Q).Q
        Q = torch.linalg.qr(A @ Q).Q
    U, S, _ = torch.linalg.svd(Q.mT @ A, full_matrices=False)
    return Q @ (U * S)


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
    left, right, images = (A.new_empty(limit, size) for _ in range(3))  # images = left · A
    block, largest = _start(size).to(A), 0.0
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
    return torch.linalg.qr(torch.randn(size, WIDTH, generator=generator, dtype=torch.float64)).Q.mT


def _orthonormal(rows: Tensor, basis: Tensor) -> tuple[Tensor, Tensor]:
    """Orthonormal rows Q and R with rows = R·Q + (a part in the span of the orthonormal basis)."""
    R = None
    for _ in range(2):  # once loses orthogonality, twice is enough (Parlett, 1980)
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
    S, W = squares.flip(0)[:count].clamp_min(0).sqrt(), W.flip(1)[:, :count]
    small = 2 * TOLERANCE * float(S[0])
    if (
        len(S) < count
        and S[-1] > small
        and float(A.norm()) ** 2 - float(images.norm()) ** 2 > small**2
    ):
        return None
    crowded = S[: 1 - WIDTH] - S[WIDTH - 1 :] if len(S) >= WIDTH else S[:0]
    if bool(((crowded <= TOLERANCE * S[: len(crowded)]) & (S[: len(crowded)] > small)).any()):
        # WIDTH equal values: there may be more, with vectors that the start did not hold
        return None
    return left.mT @ W.to(left.dtype), S.to(left.dtype)
