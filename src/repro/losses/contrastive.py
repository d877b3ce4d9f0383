"""InfoNCE, the objective of unsupervised SimCSE (Gao et al., 2021, Eq. 1; PROTOCOLS §2.1)."""

import torch
import torch.nn.functional as F
from torch import Tensor

from repro.losses.distributed import gather_with_grad, own_rows
from repro.types import InputError


def info_nce(
    z1: Tensor, z2: Tensor, *, temperature: float = 0.05, z_neg: Tensor | None = None, mask: Tensor | None = None
) -> Tensor:
    """Each row of z1 must find its own row of z2 among all rows.

    ℓ = −(1/B) Σᵢ [sᵢᵢ − logsumexp over j of sᵢⱼ] with s = cos(z1, z2)/temperature, one direction only.

    Args:
        z1: first views (B, d).
        z2: second views (B, d); gathered with gradient when several processes train.
        temperature: divides the cosines.
        z_neg: further negatives (N, d), columns for every row.
        mask: (B, W·B) bool, True drops that column for that row; the row's own column always stays.

    Raises:
        InputError: for shapes that differ, or a temperature that is not above 0.
    """
    if z1.shape != z2.shape:
        raise InputError(f"z1 has shape {tuple(z1.shape)}, z2 {tuple(z2.shape)}: expected two views of one batch")
    if temperature <= 0:
        raise InputError(f"temperature is {temperature}: expected a number above 0")
    z1, bank = F.normalize(z1, dim=-1), F.normalize(gather_with_grad(z2), dim=-1)  # (B, d), (W*B, d)
    logits = z1 @ bank.T / temperature  # (B, W*B)
    own = own_rows(z1)
    if mask is not None:
        keep = ~mask.to(logits.device)
        keep[torch.arange(len(z1), device=logits.device), own] = True
        logits = logits.masked_fill(~keep, float("-inf"))
    if z_neg is not None:
        logits = torch.cat([logits, z1 @ F.normalize(gather_with_grad(z_neg), dim=-1).T / temperature], dim=1)
    return F.cross_entropy(logits.float(), own)


def duplicate_mask(keys: Tensor) -> Tensor:
    """Mask (B, W·B) that drops equal texts from the negatives: keys (B,) are equal iff the texts are."""
    return keys.unsqueeze(1) == gather_with_grad(keys).unsqueeze(0)
