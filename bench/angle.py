"""AnglE's three terms, forward and backward, beside the form over all P × P pairs and 2P × 2P
targets.

The peer computes as AnglE 0.6.1's loss module does: every difference of two pairs' scores in a
matrix, those that do not count pushed to −1e12, one logsumexp; and in-batch targets as a matrix.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.timing import BenchRow, alternate
from repro.losses import angle_pairs

PAIRS = 512
DIM = 128
"""ESE's compressed size, at which every layer is trained."""
TIMES = 10


def run(quick: bool) -> list[BenchRow]:
    pairs = 64 if quick else PAIRS
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(pairs, DIM, generator=generator)
    y = x + torch.randn(pairs, DIM, generator=generator)
    binary = (torch.rand(pairs, generator=generator) < 0.5).long()
    graded = torch.randint(0, 26, (pairs,), generator=generator) / 25
    return [
        _row(x, y, labels, kind, quick)
        for labels, kind in ((binary, "two labels"), (graded, "26 grades"))
    ]


def _row(x: Tensor, y: Tensor, labels: Tensor, kind: str, quick: bool) -> BenchRow:
    inputs = [x.clone().requires_grad_(), y.clone().requires_grad_()]

    def work(loss) -> list[Tensor]:
        for _ in range(TIMES):
            value = loss(*inputs, labels)
            gradients = torch.autograd.grad(value, inputs)
        return [value.detach(), *gradients]

    works = {"ours": lambda: work(angle_pairs), "peer": lambda: work(_all_pairs)}
    results, seconds = alternate(works, 1 if quick else 15)
    gap = max(
        float((a - b).abs().max() / b.abs().max())
        for a, b in zip(results["ours"], results["peer"], strict=True)
    )
    return BenchRow(
        work=f"AnglE loss and gradient, {len(x)} pairs × {DIM}, {kind}, ×{TIMES}",
        peer="P × P form",
        goal=None,
        ours_s=seconds["ours"],
        peer_s=seconds["peer"],
        equal=gap <= 1e-5,
        checked=f"loss and gradients, {gap:.0e} ≤ 1e-5 of the largest",
        columns={"dim": DIM, "n_train": len(x)},
    )


def _all_pairs(x: Tensor, y: Tensor, labels: Tensor) -> Tensor:
    """The paper's weights: all 1, temperatures 0.05, 0.05 and 1."""
    u, v = F.normalize(x), F.normalize(y)
    (a, b), (c, e) = u.chunk(2, 1), v.chunk(2, 1)
    similarity = torch.cat([a * c + b * e, b * c - a * e], 1).sum(1).abs()
    return (
        _ranked((u * v).sum(1) * 20, labels) + _partners(u, v, labels) + _ranked(similarity, labels)
    )


def _ranked(scores: Tensor, labels: Tensor) -> Tensor:
    counts = (labels[:, None] < labels[None, :]).float()
    differences = (scores[:, None] - scores[None, :] - (1 - counts) * 1e12).view(-1)
    return torch.cat([scores.new_zeros(1), differences]).logsumexp(0)


def _partners(u: Tensor, v: Tensor, labels: Tensor) -> Tensor:
    rows, pairs = torch.cat([u, v]), len(u)
    targets = torch.eye(2 * pairs).roll(pairs, 0) * (labels >= 0.5).repeat(2)[:, None]
    similarities = (rows @ rows.T - torch.eye(2 * pairs) * 1e12) * 20
    return -(F.log_softmax(similarities, 1) * targets).sum(1).mean()
