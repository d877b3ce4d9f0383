"""Targets of ESE, made of the leading singular vectors of a dependency matrix: of a batch, or of
every sentence (method-espresso in the book).

Of a batch the matrix is formed, and decomposed exactly, within a tolerance, or at random. Of one
sentence it never is where that can be avoided: it is the product of a few columns, and all its
singular vectors come from small matrices, a whole batch at once.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

from repro.losses.distributed import gather_with_grad, own_rows
from repro.losses.series import sentence_factors
from repro.losses.subspace import leading_vectors
from repro.seeding import derive_seed
from repro.types import InputError

NEGLIGIBLE = 1e-7
"""Singular values below this share of the largest are rounding, and set to 0."""
CHUNK = 2**22
"""Entries of one chunk of A or F."""
BLOCKS = 6
"""Of a product that is symmetric, so that little more than half of it is computed."""


def dependency_matrix(X: Tensor) -> Tensor:
    """Eq. 3 for a batch: A = softmax(XᵀX/√D) (D, D), each row summing to 1; X (B, D) are the rows
    of one process.
    """
    Y = gather_with_grad(X) / X.shape[1] ** 0.25  # (WB, D)
    if Y.requires_grad or Y.is_cuda:
        return torch.softmax(Y.mT @ Y, dim=-1)
    size = Y.shape[1]
    width = -(-size // BLOCKS)
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
            vectors, values = found
            target = X @ (_oriented(vectors) * values)
            return pad(target, (0, size - target.shape[1]))  # Zero where A has no further component
    X = X.double()
    A = dependency_matrix(X)
    if strategy == "max_k":
        by_sum = A.sum(0).argsort(dim=0, descending=True, stable=True)
        return X @ A[:, by_sum[:size]]
    with torch.no_grad():
        U, S = _left_vectors(A)
        US = _oriented(U) * S
    components = _following(US, A.mT @ US, A.matmul)
    return X @ components[:, :size]


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
            W = W.flip(2)[:, :, :most]
            US = W * S[:, None, :most] if factors is None else G @ (L @ W)
            US = _oriented(US * kept[:, None, :most])
        components = _following(US, transposed_times(US), times)[:, :, :size]  # (B, D, at most k)
    return pad((x.unsqueeze(1) @ components).squeeze(1), (0, size - components.shape[2]))


def of_embeddings(X: Tensor, size: int, center: bool) -> Tensor:
    """The leading components (B, k) of the states X (B, D), float64, themselves."""
    everyone = gather_with_grad(X)
    if size > len(everyone):
        raise InputError(
            f"size is {size}: {len(everyone)} texts have no more components, so lower it or add "
            "texts"
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
    # Entries within rounding of the largest count as tied, so that the choice does not hang on the
    # last bit
    least = size.amax(-2, keepdim=True) * (1 - 1e-9)
    first = (size >= least).to(torch.uint8).argmax(-2, keepdim=True)
    signs = torch.where(U.gather(-2, first) < 0, -1.0, 1.0)
    return U * signs


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
        signs = torch.where(R.diagonal(dim1=-2, dim2=-1) < 0, -1.0, 1.0)
        V = V * signs.unsqueeze(-2)
    AV = times(V)
    fixed = AV.detach()
    N = fixed.mT @ AV
    squares = fixed.square().sum(-2)
    gap = squares.unsqueeze(-2) - squares.unsqueeze(-1)  # λⱼ − λᵢ at (i, j)
    largest = squares.amax(-1)[..., None, None]
    spread = (1e-10 * largest).square() + torch.finfo(gap.dtype).tiny
    turn = (N + N.mT) * gap / (gap.square() + spread)
    moved = AV + fixed @ (turn - turn.detach())
    return US + (moved - moved.detach()) * (US != 0).any(-2, keepdim=True)


def _randomized(A: Tensor, size: int, seed: int) -> Tensor:
    """U_k·S_k (D, k) by the range finder of `torch.svd_lowrank(A, q=k, niter=2)` (Halko et al.,
    2011), seeded.
    """
    generator = torch.Generator().manual_seed(derive_seed(seed, "compress"))
    start = torch.randn(len(A), size, generator=generator, dtype=A.dtype).to(A.device)
    Q = torch.linalg.qr(A @ start).Q
    for _ in range(2):
        Q = torch.linalg.qr(A.mT @ Q).Q
        Q = torch.linalg.qr(A @ Q).Q
    U, S, _ = torch.linalg.svd(Q.mT @ A, full_matrices=False)
    return Q @ (U * S)
