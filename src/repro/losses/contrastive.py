"""InfoNCE of unsupervised SimCSE (Gao et al., 2021, Eq. 1; method-info-nce in the book), and what
it trades (method-geometry in the book).
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from repro.losses.distributed import gather_with_grad, own_rows
from repro.losses.given import check_column, check_mask, check_real, check_rows
from repro.types import InputError, above_zero


def info_nce(
    z1: Tensor,
    z2: Tensor,
    *,
    temperature: float = 0.05,
    z_neg: Tensor | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Each row of z1 must find its own row of z2 among all rows, two views (B, d) of the same
    texts.

    ℓ = −(1/B) Σᵢ [sᵢᵢ − logsumexp over j of sᵢⱼ] with s = cos(z1, z2)/temperature, one direction
    only. Further negatives z_neg (N, d) are columns for every row; with W processes, columns are
    gathered with gradient. `mask` (B, W·B) is True where a row drops a column; its own column
    always stays. InputError for shapes that do not fit, or a temperature that is not above 0.
    """
    _check_views(z1, z2)
    if z_neg is not None:
        check_real(z1=z1, z_neg=z_neg)
        if z_neg.shape[1:] != z1.shape[1:]:
            raise InputError(
                f"z_neg has shape {tuple(z_neg.shape)}: expected (N, {z1.shape[1]}), as wide as "
                "the views"
            )
    above_zero(temperature, "temperature")
    own = own_rows(z1)
    z1, bank = _unit(z1), _unit(gather_with_grad(z2))  # (B, d), (W*B, d)
    # A cosine in bfloat16 errs by 0.004, which a temperature of 0.05 makes 0.08: not under
    # automatic mixed precision
    with torch.autocast(z1.device.type, enabled=False):
        logits = z1 @ bank.T / temperature  # (B, W*B)
        if mask is not None:
            check_mask(mask, logits)
            keep = ~mask.to(logits.device, torch.bool)
            keep[torch.arange(len(z1), device=logits.device), own] = True
            logits = logits.masked_fill(~keep, float("-inf"))
        if z_neg is not None:
            logits = torch.cat([logits, z1 @ _unit(gather_with_grad(z_neg)).T / temperature], dim=1)
        return F.cross_entropy(logits, own)


def _check_views(z1: Tensor, z2: Tensor) -> None:
    check_rows("two views (B, d)", z1=z1, z2=z2)


def _unit(z: Tensor) -> Tensor:
    """Rows of length 1, in single precision at least."""
    return F.normalize(z if z.dtype == torch.float64 else z.float(), dim=-1)


def duplicate_mask(keys: Tensor, others: Tensor | None = None) -> Tensor:
    """Mask (B, W·B) of columns with a row's text: keys (B,), those of columns `others`, are equal
    iff the texts are.
    """
    check_column("keys", keys)
    if others is not None:
        check_column("others", others)
    columns = gather_with_grad(keys if others is None else others)
    return keys.unsqueeze(1) == columns.unsqueeze(0)


def alignment(z1: Tensor, z2: Tensor) -> Tensor:
    """Mean squared distance of positives on the unit sphere, z1 and z2 (n, d): 0 is perfect (Wang &
    Isola, 2020).
    """
    _check_views(z1, z2)
    apart = _unit(z1) - _unit(z2)
    return apart.square().sum(-1).mean()


def uniformity(z: Tensor) -> Tensor:
    """Log mean Gaussian potential ln mean_{i<j} e^{−2‖zᵢ−zⱼ‖²} of z (n, d) on the sphere; lower is
    more uniform.
    """
    check_rows("at least 2 rows, (n, d)", z=z)
    if len(z) < 2:
        raise InputError(f"z has shape {tuple(z.shape)}: expected at least 2 rows, (n, d)")
    squared = torch.pdist(_unit(z)).square()
    return (-2 * squared).logsumexp(0) - math.log(len(squared))
