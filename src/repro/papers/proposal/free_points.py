"""Free points on a sphere that minimise InfoNCE: what any encoder of that dimension could reach at best."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from repro.seeding import derive_seed
from repro.types import Array, InputError, check_dim


def aligned_info_nce(z: Tensor, temperature: float) -> Tensor:
    """InfoNCE of points (B, m) whose positives are themselves: mean of ln(1 + Σ_{j≠i} e^{(cᵢⱼ − 1)/temperature}).

    The same as `info_nce(z, z)`, but without the 1 that swallows losses below 1e-16.
    """
    z = F.normalize(z, dim=-1)
    over_positive = (z @ z.T - 1) / temperature  # (B, B)
    over_positive = over_positive.masked_fill(torch.eye(len(z), dtype=torch.bool), -math.inf)
    return F.softplus(over_positive.logsumexp(dim=1)).mean()


def free_points(n: int, dim: int, temperature: float, *, steps: int = 200, seed: int = 0) -> tuple[Array, float]:
    """Points that descend InfoNCE from a random start, with nothing between them and the loss.

    Args:
        n: points, B of the loss.
        dim: of the space they live in.
        temperature: divides the cosines.
        steps: most iterations of L-BFGS; it stops earlier where nothing moves.
        seed: of the start. Other starts may end in other local minima.

    Returns:
        The points on the unit sphere (n, dim) and their loss in nats.

    Raises:
        InputError: for fewer than two points or a temperature that is not above 0.
    """
    if check_dim(n, what="n") < 2:
        raise InputError("n is 1: a contrastive loss needs at least 2 points")
    if not temperature > 0:
        raise InputError(f"temperature is {temperature}: expected a number above 0")
    generator = torch.Generator().manual_seed(derive_seed(seed, "free points", n, dim))
    z = F.normalize(torch.randn(n, check_dim(dim), generator=generator, dtype=torch.float64), dim=-1)
    z.requires_grad_(True)
    # the logarithm of the loss keeps its gradient of one size where the loss itself is 1e-7
    descent = torch.optim.LBFGS([z], max_iter=steps, tolerance_grad=1e-9, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        descent.zero_grad()
        loss = aligned_info_nce(z, temperature).log()
        loss.backward()
        return loss

    descent.step(closure)
    with torch.no_grad():
        return F.normalize(z, dim=-1).numpy().copy(), float(aligned_info_nce(z, temperature))
