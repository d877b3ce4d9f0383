"""Gathering across processes so that the loss, and its gradient, equal those of one big batch.

`accelerate`'s gather carries no gradient; the backward of this one adds up what every process asks
of a row. With gradients averaged over processes, W processes of B rows train like one of W·B.
"""

from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist


def world_size() -> int:
    """Processes that train together; 1 without a process group."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        parts = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, rows.contiguous())
        ctx.size = len(rows)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        total = grads[0].contiguous()
        dist.all_reduce(total)
        rank = dist.get_rank()
        return total[rank * ctx.size : (rank + 1) * ctx.size]


def gather_with_grad(rows: Tensor) -> Tensor:
    """All processes' rows (W·B, …) in rank order, with gradient; the input itself when alone."""
    return rows if world_size() == 1 else _Gather.apply(rows)


def own_rows(rows: Tensor) -> Tensor:
    """Where this process's rows stand among the gathered ones: rank·B + 0 … B−1."""
    rank = dist.get_rank() if world_size() > 1 else 0
    return rank * len(rows) + torch.arange(len(rows), device=rows.device)
