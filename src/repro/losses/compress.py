"""Learn-to-compress: the targets of ESE and the alignment with them (Li et al., 2025, Eqs. 3-6; PROTOCOLS §2.5)."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from repro.losses.dependencies import NEGLIGIBLE, Dependencies, chunks
from repro.losses.distributed import gather_with_grad, own_rows
from repro.losses.subspace import leading_vectors
from repro.objectives import DECOMPOSITIONS, LAYER_WEIGHTS
from repro.seeding import derive_seed
from repro.types import InputError, check_dim, one_of


def layer_weights(n: int, kind: str = "log") -> Tensor:
    """Weights (n,) of the shallow layers at positions 1 … n: 1/(1 + ln position), or 1 for `uniform`.

    Learned weights start from the same values.

    Raises:
        InputError: for a negative n or an unknown kind.
    """
    one_of(kind, LAYER_WEIGHTS, "layer_weights")
    if n < 0:
        raise InputError(f"n is {n}: expected a number of layers, 0 or more")
    if kind == "uniform":
        return torch.ones(n)
    return 1 / (1 + torch.arange(1, n + 1).log())


def align(x: Tensor, target: Tensor, *, temperature: float = 1.0) -> Tensor:
    """Eq. 6: mean((x − t)²) + θ·KL(softmax(t/θ) ‖ softmax(x/θ)), the divergence averaged over rows.

    Args:
        x: prefixes (B, k).
        target: what they should become (B, k).
        temperature: θ; 0 or less leaves the divergence out.

    Raises:
        InputError: for shapes that differ.
    """
    if x.shape != target.shape or x.ndim != 2 or 0 in x.shape:
        raise InputError(f"x has shape {tuple(x.shape)}, target {tuple(target.shape)}: expected (B, k) both")
    x = x if x.dtype == torch.float64 else x.float()
    target = target.to(x.dtype)
    with torch.autocast(x.device.type, enabled=False):
        squared = (x - target).square().mean()
        if not temperature > 0:
            return squared
        found, wanted = (F.log_softmax(z / temperature, dim=-1) for z in (x, target))
        return squared + temperature * F.kl_div(found, wanted, log_target=True, reduction="batchmean")


def compress_target(
    X: Tensor,
    size: int,
    *,
    dependency: str = "per_batch",
    decomposition: str = "eigh",
    strategy: str = "dependencies",
    center: bool = False,
    seed: int = 0,
) -> Tensor:
    """Eqs. 3-5: T = X·U_k·S_k (B, k) from the SVD A = USVᵀ of the dependency matrix A (D, D), a row softmax.

    Per sentence A = softmax(xxᵀ/√D); per batch A = softmax(XᵀX/√D), X being the rows of all processes. The exact path
    works in double precision, from eigh(AAᵀ); each vector has its entry of largest modulus positive. Gradients pass
    to an X that requires them, through the vectors too: of two equal singular values the turn within their plane,
    which has no derivative, is left out, so that they stay finite.

    Args:
        X: pooled states (B, D).
        size: k.
        dependency: per_sentence, or per_batch.
        decomposition: of a batch's A. `eigh`; `subspace`, the same within a stated tolerance in a fraction of the time
            (`repro.losses.subspace`); or `randomized` as in the released code: two power iterations from a seeded
            start, no oversampling, signs as they fall. A sentence's A has so few columns that it is exact always.
        strategy: `dependencies`; `embeddings` takes X·V_k of X itself; `max_k` X times the k columns of A with the
            largest sums.
        center: subtract the batch mean first, `embeddings` only.
        seed: of the randomised start.

    Returns:
        Targets in X's precision, single at least.

    Raises:
        InputError: for a k beyond D, or beyond min(B, D) with `embeddings`; an option that is unknown or does not
            apply; or gradients through a randomised decomposition.
    """
    one_of(dependency, ("per_sentence", "per_batch"), "dependency")
    one_of(decomposition, DECOMPOSITIONS, "decomposition")
    one_of(strategy, ("dependencies", "embeddings", "max_k"), "strategy of a target")
    if X.ndim != 2 or 0 in X.shape:
        raise InputError(f"X has shape {tuple(X.shape)}: expected pooled states (B, D)")
    check_dim(size, limit=X.shape[1], what="size")
    if center and strategy != "embeddings":
        raise InputError(f"center applies to strategy 'embeddings', not to {strategy!r}")
    approximate = strategy == "dependencies" and dependency == "per_batch" and decomposition != "eigh"
    if approximate and X.requires_grad and torch.is_grad_enabled():
        raise InputError(
            f"no gradient through decomposition {decomposition!r}, whose vectors are not A's own: "
            "detach X (stop_gradient=True) or use 'eigh'"
        )
    X = X if X.dtype == torch.float64 else X.float()
    sums = gather_with_grad(X.detach().sum().reshape(1))  # of all processes, which stop or gather together
    if not bool(torch.isfinite(sums).all()):
        return X.new_full((len(X), size), float("nan"))  # no decomposition: the loss is not finite, and says so
    with torch.autocast(X.device.type, enabled=False):
        if strategy == "embeddings":
            target = _of_embeddings(X.double(), size, center)
        elif dependency == "per_sentence":
            target = torch.cat([_per_sentence(part, size, strategy) for part in chunks(X.double())])
        elif not approximate:
            target = _per_batch(X.double(), size, strategy)
        elif decomposition == "randomized":
            target = X @ _randomized(dependency_matrix(X), size, seed)
        else:
            found = leading_vectors(dependency_matrix(X), size)
            target = _per_batch(X.double(), size, strategy) if found is None else _padded(X @ _turned(*found), size)
    return target.to(X.dtype)


def dependency_matrix(X: Tensor) -> Tensor:
    """Eq. 3 for a batch: A = softmax(XᵀX/√D) (D, D), each row summing to 1; X (B, D) are the rows of one process."""
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


def _per_batch(X: Tensor, size: int, strategy: str) -> Tensor:
    A = dependency_matrix(X)
    if strategy == "max_k":
        return X @ A[:, A.sum(0).argsort(dim=0, descending=True, stable=True)[:size]]
    with torch.no_grad():
        U, S = _left_vectors(A)
        US = _turned(U, S)
    return X @ _following(US, A.mT @ US, lambda V: A @ V)[:, :size]


def _per_sentence(x: Tensor, size: int, strategy: str) -> Tensor:
    A = Dependencies(x)
    if strategy == "max_k":
        sums = A.transposed_times(torch.ones_like(x).unsqueeze(-1)).squeeze(-1)  # (B, D), of columns
        components = A.columns(sums.argsort(dim=-1, descending=True, stable=True)[:, :size])
    else:
        with torch.no_grad():
            US, S = A.components()
            US = _oriented(US * S.ge(NEGLIGIBLE * S[:, :1]).unsqueeze(1))
        components = _following(US, A.transposed_times(US), A.times)[:, :, :size]  # (B, D, at most k)
    return _padded((x.unsqueeze(1) @ components).squeeze(1), size)


def _of_embeddings(X: Tensor, size: int, center: bool) -> Tensor:
    everyone = gather_with_grad(X)
    if size > len(everyone):
        raise InputError(f"size is {size}: {len(everyone)} texts have no more components, so lower it or add texts")
    if center:
        everyone = everyone - everyone.mean(0)
    with torch.no_grad():
        V, S = _left_vectors(everyone.mT)
        V = (_oriented(V) * (S > 0))[:, : len(everyone)]
        components = everyone @ V
    return _following(components, V, lambda V: everyone @ V)[own_rows(X), :size]


def _left_vectors(A: Tensor) -> tuple[Tensor, Tensor]:
    """U (D, D) and S (D,), descending, of A = USVᵀ: from eigh(AAᵀ)."""
    squares, U = torch.linalg.eigh(A @ A.mT)
    S = squares.flip(0).clamp_min(0).sqrt()
    return U.flip(1), S * S.ge(NEGLIGIBLE * S[0])


def _oriented(U: Tensor) -> Tensor:
    """The columns of U (…, D, m), each with its entry of largest modulus positive (the first, if several tie)."""
    size = U.abs()
    # entries within rounding of the largest count as tied, so that the choice does not hang on the last bit
    first = (size >= size.amax(-2, keepdim=True) * (1 - 1e-9)).to(torch.uint8).argmax(-2, keepdim=True)
    return U * torch.where(U.gather(-2, first) < 0, -1.0, 1.0)


def _turned(U: Tensor, S: Tensor) -> Tensor:
    return _oriented(U) * S


def _padded(target: Tensor, size: int) -> Tensor:
    """Zero columns for the components that A does not have."""
    return F.pad(target, (0, size - target.shape[1]))


def _following(US: Tensor, directions: Tensor, times: Callable[[Tensor], Tensor]) -> Tensor:
    """U·S = A·V as it stands, with the gradient of A·V when A moves.

    First-order perturbation of AᵀA: dvⱼ = Σᵢ vᵢ·(dN + dNᵀ)ᵢⱼ/(λⱼ − λᵢ) with N = (AV)ᵀA'V, A' being what moves. The
    quotient by a gap g is taken as g/(g² + ε²): equal singular values turn freely in their plane, and no gradient
    says how.

    Args:
        US: constants (…, m), columns descending in length, 0 where negligible.
        directions: multiples of V (…, m), in the same order.
        times: V to A·V, with gradient.
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


def _randomized(A: Tensor, size: int, seed: int) -> Tensor:
    """U_k·S_k (D, k) by the range finder of `torch.svd_lowrank(A, q=k, niter=2)` (Halko et al., 2011), seeded."""
    generator = torch.Generator().manual_seed(derive_seed(seed, "compress"))
    Q = torch.linalg.qr(A @ torch.randn(len(A), size, generator=generator, dtype=A.dtype).to(A.device)).Q
    for _ in range(2):
        Q = torch.linalg.qr(A.mT @ Q).Q
        Q = torch.linalg.qr(A @ Q).Q
    U, S, _ = torch.linalg.svd(Q.mT @ A, full_matrices=False)
    return Q @ (U * S)
