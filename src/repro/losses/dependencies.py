"""One dependency matrix per sentence, A = softmax(xxᵀ/√D), never formed where it can be avoided (PROTOCOLS §2.5).

With y = x/D^{1/4}, e^{yᵢyⱼ} = Σ over p of (yᵢᵖ/√p!)(yⱼᵖ/√p!): A is Z⁻¹FFᵀ for the few columns F of these powers and
the row sums Z. All of A's singular values and vectors then come from r × r matrices, a whole batch at once.
"""

import math

import torch
from torch import Tensor

NEGLIGIBLE = 1e-7
"""singular values below this share of the largest are rounding, and set to 0"""
LARGEST = 12.0
"""beyond max yᵢ², the alternating series of negative products loses more than 1e-11 to rounding: A is formed"""
CHUNK = 2**22
"""entries of one chunk of A or F"""


class Dependencies:
    """A of each sentence of a chunk, as a product that gradients pass."""

    def __init__(self, x: Tensor) -> None:
        """From rows x (B, D), float64, that all suit one form."""
        scaled = x / x.shape[1] ** 0.25
        features = feature_count(scaled)
        if features is None:
            self.left = torch.softmax(scaled.unsqueeze(2) * scaled.unsqueeze(1), dim=-1)  # A itself (B, D, D)
            self.right: Tensor | None = None
        else:
            columns = [torch.ones_like(scaled)]
            for power in range(1, features):
                columns.append(columns[-1] * scaled / math.sqrt(power))
            F = torch.stack(columns, dim=-1)  # (B, D, r)
            Z = F @ F.sum(1).unsqueeze(-1)  # (B, D, 1), the sums of A's rows before division
            self.left, self.right = F / Z, F

    def times(self, V: Tensor) -> Tensor:
        """A·V (B, D, m)."""
        return self.left @ V if self.right is None else self.left @ (self.right.mT @ V)

    def transposed_times(self, V: Tensor) -> Tensor:
        """Aᵀ·V (B, D, m)."""
        return self.left.mT @ V if self.right is None else self.right @ (self.left.mT @ V)

    def columns(self, which: Tensor) -> Tensor:
        """Columns `which` (B, m) of A: (B, D, m)."""
        if self.right is None:
            return self.left.gather(2, which.unsqueeze(1).expand(-1, self.left.shape[1], -1))
        return self.left @ self.right.gather(1, which.unsqueeze(2).expand(-1, -1, self.right.shape[2])).mT

    def components(self) -> tuple[Tensor, Tensor]:
        """U·S (B, D, m) and S (B, m), descending, of A = USVᵀ; what is negligible in every row is left out.

        AAᵀ = GKGᵀ with G = Z⁻¹F and K = FᵀF = LLᵀ, so that the eigenvectors W of LᵀGᵀGL give US = GLW: an error of
        1e-16·S₁², as in an eigendecomposition of AAᵀ itself.
        """
        if self.right is None:
            squares, W = torch.linalg.eigh(self.left @ self.left.mT)
            S, W = squares.clamp_min(0).sqrt().flip(1), W.flip(2)
            kept = _kept(S)
            return W[:, :, :kept] * S[:, None, :kept], S[:, :kept]
        powers, Q = torch.linalg.eigh(self.right.mT @ self.right)
        L = Q * powers.clamp_min(0).sqrt().unsqueeze(1)  # (B, r, r)
        squares, W = torch.linalg.eigh(L.mT @ (self.left.mT @ self.left) @ L)
        S, W = squares.clamp_min(0).sqrt().flip(1), W.flip(2)
        kept = _kept(S)
        return self.left @ (L @ W[:, :, :kept]), S[:, :kept]


def _kept(S: Tensor) -> int:
    return int(S.ge(NEGLIGIBLE * S[:, :1]).sum(1).max())


def feature_count(scaled: Tensor) -> int | None:
    """The r with (max y²)ʳ/r! < 1e-12 over the rows of y (B, D), or None where A must be formed."""
    largest = float(scaled.detach().abs().max()) ** 2
    if not largest <= LARGEST:
        return None
    term, count = 1.0, 0
    while term >= 1e-12 or count < 2:
        count += 1
        term *= largest / count
    return count if 2 * count <= scaled.shape[1] else None


def chunks(x: Tensor) -> list[Tensor]:
    """Runs of the rows of x (B, D) whose features, or matrices, fit in memory together."""
    dim = x.shape[1]
    parts = []
    for part in x.split(max(1, CHUNK // (32 * dim))):
        count = feature_count(part.detach() / dim**0.25)
        parts += [part] if count is not None else list(part.split(max(1, CHUNK // dim**2)))
    return parts
