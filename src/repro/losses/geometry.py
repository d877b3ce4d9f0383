"""Alignment and uniformity on the unit sphere (Wang & Isola, 2020; PROTOCOLS §2.6)."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from repro.types import InputError


def alignment(z1: Tensor, z2: Tensor) -> Tensor:
    """Mean squared distance of positives, 2 − 2·mean cosine; 0 is perfect. z1, z2 (n, d)."""
    return (F.normalize(z1, dim=-1) - F.normalize(z2, dim=-1)).square().sum(-1).mean()


def uniformity(z: Tensor) -> Tensor:
    """Log mean Gaussian potential ln mean_{i<j} e^{−2‖zᵢ−zⱼ‖²} of z (n, d); lower is more uniform.

    Raises:
        InputError: with fewer than two rows.
    """
    if len(z) < 2:
        raise InputError(f"uniformity of {len(z)} row: expected at least 2")
    squared = torch.pdist(F.normalize(z, dim=-1)).square()
    return (-2 * squared).logsumexp(0) - math.log(len(squared))
