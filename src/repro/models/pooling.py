"""Pooling: token states (B, T, D) and attention mask (B, T) to one state per text h (B, D) (PROTOCOLS §1.1)."""

from collections.abc import Callable

import torch
from torch import Tensor

from repro.types import InputError, one_of


def cls(states: Tensor, mask: Tensor) -> Tensor:
    """The state of the first token."""
    return states[:, 0]


def mean(states: Tensor, mask: Tensor) -> Tensor:
    """Mean over unmasked tokens, special tokens counted."""
    weights = mask.unsqueeze(-1).to(states.dtype)  # (B, T, 1)
    return (states * weights).sum(1) / weights.sum(1).clamp_min(1.0)


def last(states: Tensor, mask: Tensor) -> Tensor:
    """The last unmasked token, wherever the padding is."""
    positions = torch.arange(mask.shape[1], device=mask.device) * mask
    return states[torch.arange(len(states), device=states.device), positions.argmax(1)]


POOLINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"cls": cls, "mean": mean, "last": last}
AVG_FIRST_LAST = "avg_first_last"
"""mean pooling of (states of block 1 + states of block L)/2; block 1, not the embeddings (SimCSE issue 285)"""
NAMES = (*POOLINGS, AVG_FIRST_LAST)


def pool(states: Tensor, mask: Tensor, pooling: str) -> Tensor:
    """Pool token states (B, T, D) to h (B, D).

    Raises:
        InputError: for an unknown pooling, or a text without a single unmasked token.
    """
    one_of(pooling, tuple(POOLINGS), "pooling")
    empty = mask.sum(1) == 0
    if bool(empty.any()):
        raise InputError(f"text {int(empty.nonzero()[0])} of the batch has no unmasked token: nothing to pool")
    return POOLINGS[pooling](states, mask)
