"""The dependency matrix of one sentence as a product of a few columns, by a series
(method-espresso in the book).

With y = x/D^{1/4}, e^{yᵢyⱼ} = Σ over p of (yᵢᵖ/√p!)(yⱼᵖ/√p!), so that A = softmax(xxᵀ/√D) is Z⁻¹FFᵀ
for the few columns F of these powers and the row sums Z, and all its singular vectors come from
r × r matrices. The states of a decoder have outliers, for which the series is too long; they also
make the softmax of most rows a softmax of a few columns, which are taken as they are.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

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
    row_sizes = size * _unsaturated(Y.detach(), bound).to(Y.dtype)
    row_places = row_sizes.topk(rows, dim=1).indices  # (B, rows)
    # 0 at rows taken as they are.
    kept = torch.ones_like(Y).scatter(1, row_places, 0.0).unsqueeze(-1)
    values = Y.gather(1, column_places).unsqueeze(1)  # (B, 1, columns)
    exponents = Y.unsqueeze(2) * values
    # Every row is divided by its largest entry, or by 1 where that is larger, before anything can
    # overflow.
    shift = pad(exponents.detach(), (0, 1)).amax(-1, keepdim=True)
    taken = (exponents - shift).exp()  # (B, D, columns)
    # κ (B, 1), by which both factors of the series stay within the root of LARGEST.
    balance = math.sqrt(LARGEST) / bound
    left = _powers(torch.where(by_series, Y, 0.0) * balance, count)
    left = left * by_series.unsqueeze(-1) * (-shift).exp()
    others = torch.ones_like(Y).scatter(1, column_places, 0.0)
    right = _powers(Y * others / balance, count) * others.unsqueeze(-1)
    sums = left @ right.sum(1).unsqueeze(-1) + taken.sum(-1, keepdim=True) + (1 - kept)
    at_columns = one_hot(column_places, dim).mT.to(Y.dtype)
    at_rows = one_hot(row_places, dim).mT.to(Y.dtype)
    row_values = Y.gather(1, row_places).unsqueeze(2)
    whole = torch.softmax(row_values * Y.unsqueeze(1), dim=-1)  # (B, rows, D)
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
        largest_row = size.where(size <= bound, 0.0).amax(1)
        largest_column = size.where(~taken, 0.0).amax(1)
        products.append(largest_row * largest_column)
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


def series_length(largest: float) -> int:
    """The r with (max |yᵢyⱼ|)ʳ/r! < 1e-12; 2 at least."""
    term, count = 1.0, 0
    while term >= 1e-12 or count < 2:
        count += 1
        term *= largest / count
    return count
