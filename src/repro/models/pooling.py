"""Pooling: token states (B, T, D) and attention mask (B, T) to one state per text h (B, D) (PROTOCOLS §1.1)."""

from collections.abc import Callable, Mapping
from typing import Any

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
PUBLISHED = {"mean": "mean", "mean_tokens": "mean", "cls": "cls", "cls_token": "cls", "lasttoken": "last"}
"""how sentence-transformers writes them: newer releases one name, older ones a switch for each"""


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


def published_pooling(note: Mapping[str, Any], place: str) -> str:
    """The pooling that a published encoder's `1_Pooling/config.json` asks for.

    Args:
        note: its content.
        place: of the file, for the message.

    Raises:
        InputError: if it asks for several at once, none, or one that is not known here.
    """
    switches = sorted(name for name, value in note.items() if name.startswith("pooling_mode_") and value is True)
    modes = [name.removeprefix("pooling_mode_") for name in switches]
    if not modes:
        mode = note.get("pooling_mode")
        modes = [str(name) for name in mode] if isinstance(mode, list) else [str(mode)]
    if len(modes) == 1 and modes[0] in PUBLISHED:
        return PUBLISHED[modes[0]]
    asked = switches or note.get("pooling_mode")
    raise InputError(f"{place} asks for pooling {asked}: only mean, cls or the last token alone is read")
