"""AnglE: ranking by cosine and by angle in complex space, and in-batch negatives (Li & Li, 2024;
method-angle in the book).

A batch is P pairs: rows x and y (P, d) and labels (P,), larger meaning closer; W processes train
like one of W·P pairs. `keys` are whole numbers, one per text in the order of the arguments, equal
iff the texts are: further copies of a row's own text or of its partner's are then no negatives.
Each loss raises InputError for shapes that do not fit, a label that is not finite, or a scale that
is not above 0.
"""

import warnings

import torch
import torch.nn.functional as F
from torch import Tensor

from repro.losses.distributed import gather_with_grad, own_rows
from repro.losses.given import check_column, check_rows
from repro.settings import ANGLE_PRESETS, AngleConfig
from repro.types import InputError, above_zero

CLOSE = 0.5
"""Smallest label of a close pair, whose texts must find each other in the batch."""


def cosent(x: Tensor, y: Tensor, labels: Tensor, *, scale: float = 20.0) -> Tensor:
    """CoSENT: a pair with a smaller label must have a smaller cosine than each pair with a larger
    one.

    ℓ = ln(1 + Σ over (i, j) with labelᵢ < labelⱼ of e^{scale·(cᵢ − cⱼ)}), c = cos(x, y); 0, with a
    warning, where all labels are equal.
    """
    u, v = _unit_pairs(x, y, labels, scale)
    return _ranking((u * v).sum(-1) * scale, labels)


def angle(x: Tensor, y: Tensor, labels: Tensor, *, scale: float = 20.0) -> Tensor:
    """The same ranking of v = |Σ(a·c + b·e) + Σ(b·c − a·e)| / (‖x‖‖y‖), x = (a, b) and y = (c, e)
    in halves.

    The halves are real and imaginary parts (an odd d gets a column of zeros); 0 ≤ v ≤ √2, and v is
    not symmetric.
    """
    u, v = _unit_pairs(x, y, labels, scale)
    return _ranking(_angle_similarity(u, v) * scale, labels)


def in_batch_negatives(
    x: Tensor,
    y: Tensor,
    labels: Tensor,
    *,
    scale: float = 20.0,
    keys: Tensor | None = None,
) -> Tensor:
    """Each text of a close pair must find its partner among all other texts of the batch.

    ℓ = (1/2P) Σ over all 2P rows of [label ≥ CLOSE]·(logsumexp of row − its partner's entry),
    entries scale·cosine with the row's own column removed. AnglE's code marks partners by
    arithmetic on the labels, which is wrong for labels other than 0 and 1; here a partner is a
    partner.
    """
    u, v = _unit_pairs(x, y, labels, scale)
    close = (labels.to(u.device) >= CLOSE).repeat(2)  # (2P,)
    columns = torch.cat([gather_with_grad(u), gather_with_grad(v)])  # (2WP, d)
    first, second = own_rows(u), own_rows(u) + len(columns) // 2
    own, partner = torch.cat([first, second])[close], torch.cat([second, first])[close]
    dropped = torch.zeros(len(own), len(columns), dtype=torch.bool, device=u.device)
    if keys is not None:
        texts = torch.cat([gather_with_grad(half) for half in _keys_of(u, keys, 2)])
        dropped |= (texts[own, None] == texts) | (texts[partner, None] == texts)
    dropped[torch.arange(len(own), device=u.device), own] = True
    with torch.autocast(u.device.type, enabled=False):
        logits = torch.cat([u, v])[close] @ columns.T * scale  # (rows of close pairs, 2WP)
        lost = F.cross_entropy(_without(dropped, logits, partner), partner, reduction="sum")
    return lost / (2 * len(u))


def angle_pairs(
    x: Tensor,
    y: Tensor,
    labels: Tensor,
    *,
    config: AngleConfig = ANGLE_PRESETS["paper"],
    keys: Tensor | None = None,
) -> Tensor:
    """AnglE on labelled pairs: w_cos·CoSENT + w_ib·in-batch negatives + w_angle·angle."""
    total, weight = _rankings(*_unit_pairs(x, y, labels), labels, config), config.in_batch_weight
    if weight:
        total = total + weight * in_batch_negatives(
            x,
            y,
            labels,
            scale=config.in_batch_scale,
            keys=keys,
        )
    return total


def angle_triples(
    query: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    config: AngleConfig = ANGLE_PRESETS["paper"],
    keys: Tensor | None = None,
) -> Tensor:
    """AnglE on (query, positive, hard negative), all (B, d).

    ½·[w_ib·NCE(q→p) + w_neg·NCE(q→p ∪ n)] + w_angle·angle + w_cos·CoSENT, the last two on the pairs
    (q, p) labelled 1 and (q, n) labelled 0; NCE is cross-entropy over the batch's positives, or
    positives and negatives.
    """
    check_rows("three sides (B, d)", query=query, positive=positive, negative=negative)
    q, p, n = _unit(query), _unit(positive), _unit(negative)
    labels = torch.arange(2, device=q.device).flip(0).repeat_interleave(len(q))  # 1 … 1, 0 … 0
    total = _rankings(torch.cat([q, q]), torch.cat([p, n]), labels, config)
    if config.in_batch_weight or config.negative_weight:
        positives = gather_with_grad(p)
        bank = torch.cat([positives, gather_with_grad(n)])  # (2WB, d)
        own = own_rows(q)
        with torch.autocast(q.device.type, enabled=False):
            logits = q @ bank.T * config.in_batch_scale
            if keys is not None:
                asked, right, wrong = _keys_of(q, keys, 3)
                texts = torch.cat([gather_with_grad(right), gather_with_grad(wrong)])
                logits = _without(
                    (asked[:, None] == texts) | (right[:, None] == texts),
                    logits,
                    own,
                )
            total = total + 0.5 * config.in_batch_weight * F.cross_entropy(
                logits[:, : len(positives)],
                own,
            )
            total = total + 0.5 * config.negative_weight * F.cross_entropy(logits, own)
    return total


def _rankings(u: Tensor, v: Tensor, labels: Tensor, config: AngleConfig) -> Tensor:
    """w_cos·CoSENT + w_angle·angle of rows of unit length (P, d), ranked side by side."""
    weighted = []
    if config.cosine_weight:
        weighted.append((config.cosine_weight, (u * v).sum(-1) * config.cosine_scale))
    if config.angle_weight:
        weighted.append(
            (
                config.angle_weight,
                _angle_similarity(u, v, config.angle_pooling) * config.angle_scale,
            )
        )
    if not weighted:
        return (u.sum() + v.sum()) * 0.0
    weights, scores = zip(*weighted, strict=True)
    return (_ranking(torch.stack(scores), labels) * u.new_tensor(weights)).sum()


def _ranking(scores: Tensor, labels: Tensor) -> Tensor:
    """ln(1 + Σ over labelᵢ < labelⱼ of e^{sᵢ − sⱼ}) of scores (…, P), without forming the P × P
    pairs.
    """
    scores = gather_with_grad(scores.movedim(-1, 0).contiguous()).movedim(0, -1)  # (…, WP)
    labels = gather_with_grad(labels.to(scores.device))
    lowest, highest = labels.min(), labels.max()
    if lowest == highest:
        warnings.warn(
            "all labels of a batch are equal: there is nothing to rank, the loss is 0",
            stacklevel=3,
        )
        return scores.sum(-1) * 0.0
    high = labels == highest
    # Two grades: the double sum is a product of two sums
    if bool((high | (labels == lowest)).all()):
        below = scores.masked_fill(high, float("-inf")).logsumexp(-1)
        above = (-scores).masked_fill(~high, float("-inf")).logsumexp(-1)
        exponent = below + above
    else:  # Sorted by label, all pairs of smaller labels stand before the first of one's own
        labels, order = labels.sort()
        scores = scores[..., order]
        first = torch.searchsorted(labels, labels)
        below = scores.logcumsumexp(-1)[..., first.clamp_min(1) - 1]
        exponent = (below - scores).masked_fill(first == 0, float("-inf")).logsumexp(-1)
    return torch.logaddexp(exponent, torch.zeros_like(exponent))


def _angle_similarity(u: Tensor, v: Tensor, pooling: str = "sum") -> Tensor:
    """|Σ(a·c + b·e) + Σ(b·c − a·e)| (P,) of rows of unit length, divided by d with the pooling
    `mean`.
    """
    odd = u.shape[-1] % 2
    a, b = F.pad(u, (0, odd)).chunk(2, -1)
    c, e = F.pad(v, (0, odd)).chunk(2, -1)
    similarity = ((u * v).sum(-1) + (b * c - a * e).sum(-1)).abs()
    return similarity / u.shape[-1] if pooling == "mean" else similarity


def _keys_of(z: Tensor, keys: Tensor, sides: int) -> list[Tensor]:
    """The keys of each side's texts."""
    check_column("keys", keys, sides * len(z))
    return [side.contiguous() for side in keys.to(z.device).chunk(sides)]


def _without(dropped: Tensor, logits: Tensor, right: Tensor) -> Tensor:
    """Logits (rows, columns) with nothing in the dropped places, but for each row's right
    column.
    """
    dropped[torch.arange(len(right), device=right.device), right] = False
    return logits.masked_fill(dropped, float("-inf"))


def _unit_pairs(x: Tensor, y: Tensor, labels: Tensor, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    check_rows("the two sides of pairs (P, d)", x=x, y=y)
    check_column("labels", labels, len(x), each="pair", whole=False)
    if not bool(torch.isfinite(labels).all()):
        bad = int(torch.isfinite(labels).logical_not().nonzero()[0, 0])
        raise InputError(f"label {labels[bad].item()} of pair {bad}: expected a finite grade")
    above_zero(scale, "scale")
    return _unit(x), _unit(y)


def _unit(z: Tensor) -> Tensor:
    """Rows of length 1 in single precision at least; a zero row stays zero, its gradient as if its
    length were 1.
    """
    z = z if z.dtype == torch.float64 else z.float()
    length = torch.linalg.vector_norm(z, dim=-1, keepdim=True)
    return z / torch.where(length > 1e-12, length, torch.ones_like(length))
