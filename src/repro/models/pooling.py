"""From token states (B, T, D) to one embedding per text (method-pooling, method-pooler in the
book).

A pooling gives h (B, D); after it there may stand a head, which gives z (B, dim): Wang's pooler, or
what a published encoder brings along.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from repro.seeding import derive_seed
from repro.types import Array, InputError, check_dim, one_of


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


def largest(states: Tensor, mask: Tensor) -> Tensor:
    """The largest of each number over unmasked tokens."""
    return states.masked_fill(mask.unsqueeze(-1) == 0, -torch.inf).amax(1)


def weighted_mean(states: Tensor, mask: Tensor) -> Tensor:
    """Mean over unmasked tokens, the first of which weighs 1, the second 2 and so on."""
    weights = (mask * mask.cumsum(1)).unsqueeze(-1).to(states.dtype)  # (B, T, 1)
    return (states * weights).sum(1) / weights.sum(1)


def mean_by_root(states: Tensor, mask: Tensor) -> Tensor:
    """Sum over unmasked tokens, divided by the square root of their number."""
    weights = mask.unsqueeze(-1).to(states.dtype)  # (B, T, 1)
    return (states * weights).sum(1) / weights.sum(1).sqrt()


POOLINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cls": cls,
    "mean": mean,
    "last": last,
    "max": largest,
    "weightedmean": weighted_mean,
    "mean_sqrt_len_tokens": mean_by_root,
}
AVG_FIRST_LAST = "avg_first_last"
"""Mean pooling of (states of block 1 + states of block L)/2; block 1, not the embeddings (SimCSE
issue 285).
"""
NAMES = (*POOLINGS, AVG_FIRST_LAST)
JOIN = "+"
"""Stands between poolings whose states are read side by side, as in `cls+mean`."""
ACTIVATIONS: dict[str, type[nn.Module]] = {
    "Tanh": nn.Tanh,
    "Identity": nn.Identity,
    "ReLU": nn.ReLU,
    "GELU": nn.GELU,
    "SiLU": nn.SiLU,
}
"""Activations of published dense layers, by the name that sentence-transformers writes."""


def poolings_of(pooling: str) -> list[str]:
    """The poolings that are read side by side, nearly always one.

    Raises:
        InputError: for a name that is not known, or `avg_first_last` beside others.
    """
    if not isinstance(pooling, str):
        raise InputError(f"pooling is {pooling!r}: expected a name, such as cls or cls+mean")
    names = pooling.split(JOIN)
    for name in names:
        one_of(name, NAMES if len(names) == 1 else tuple(POOLINGS), "pooling")
    return names


def pool(states: Tensor, mask: Tensor, pooling: str) -> Tensor:
    """Pool token states (B, T, D) to h (B, k·D) by one of `POOLINGS`, or k of them."""
    empty = mask.sum(1) == 0
    if bool(empty.any()):
        raise InputError(
            f"text {int(empty.nonzero()[0])} of the batch has no unmasked token: nothing to pool"
        )
    return torch.cat([POOLINGS[name](states, mask) for name in pooling.split(JOIN)], dim=-1)


class Head(nn.Module):
    """What turns pooled states h (n, hidden_dim) into embeddings z (n, dim)."""

    hidden_dim: int
    dim: int
    settings: Any
    """What its constructor takes, after the hidden size."""

    @torch.no_grad()
    def project(self, h: Array) -> Array:
        """Project stored states h (n, D) to embeddings (n, dim) float32, both numpy.

        Raises:
            InputError: for states that are no matrix as wide as the head takes.
        """
        if np.ndim(h) != 2 or np.shape(h)[1] != self.hidden_dim:
            raise InputError(
                f"states have shape {np.shape(h)}: expected (n, {self.hidden_dim}), which is what "
                "the layer after the pooling takes"
            )
        states = torch.from_numpy(np.ascontiguousarray(h, dtype=np.float32))
        weight = next(self.parameters(), states)
        z = self(states.to(weight.device, weight.dtype))
        return np.asarray(z.float().cpu().numpy())


class Pooler(Head):
    """Wang's layer that is resized, z = activation(h Wᵀ + b): d(D + 1) parameters, d may exceed D
    (2023, §2).
    """

    def __init__(
        self,
        hidden_dim: int,
        dim: int,
        *,
        activation: str = "tanh",
        bias: bool = True,
        normalize: bool = False,
    ) -> None:
        super().__init__()
        self.hidden_dim = check_dim(hidden_dim, what="hidden_dim")
        self.dim = check_dim(dim)
        self.activation = one_of(activation, ("tanh", "identity"), "activation")
        self.normalize = normalize
        self.linear = nn.Linear(hidden_dim, dim, bias=bias)

    @property
    def settings(self) -> dict[str, Any]:
        """What its constructor takes, after the hidden size, as it computes now."""
        return {
            "dim": len(self.linear.weight),
            "activation": self.activation,
            "bias": self.linear.bias is not None,
            "normalize": self.normalize,
        }

    def initialise(self, seed: int) -> "Pooler":
        """Fresh weights W ~ N(0, 0.02²), b = 0, from a generator owned by (seed, dim)."""
        generator = torch.Generator().manual_seed(derive_seed(seed, "pooler", self.dim))
        with torch.no_grad():
            W = self.linear.weight  # Drawn on the CPU: the same start whatever computes
            W.copy_(torch.empty(W.shape).normal_(0.0, 0.02, generator=generator))
            if self.linear.bias is not None:
                self.linear.bias.zero_()
        return self

    def forward(self, h: Tensor) -> Tensor:
        """Project h (B, D) to z (B, dim)."""
        z = torch.tanh(self.linear(h)) if self.activation == "tanh" else self.linear(h)
        return nn.functional.normalize(z, dim=-1, eps=1e-12) if self.normalize else z


class Dense(nn.Sequential):
    """A dense layer, z = activation(h Wᵀ + b), as sentence-transformers stores it."""

    def __init__(self, inputs: int, outputs: int, bias: bool, activation: str) -> None:
        layer = nn.Linear(inputs, outputs, bias=bias)
        super().__init__(OrderedDict(linear=layer, activation=ACTIVATIONS[activation]()))
        self.settings: dict[str, Any] = dict(
            inputs=inputs,
            outputs=outputs,
            bias=bias,
            activation=activation,
        )


class Unit(nn.Module):
    """Rows divided by their length; a zero row stays."""

    def forward(self, h: Tensor) -> Tensor:
        """Divide every row of h (B, D) by its length."""
        return nn.functional.normalize(h, dim=-1, eps=1e-12)


class Parts(Head):
    """All that follows the pooling of a published encoder, `Dense` and `Unit` in order, in the
    place of a pooler.
    """

    def __init__(self, hidden_dim: int, parts: Sequence[nn.Module]) -> None:
        super().__init__()
        self.parts = nn.Sequential(*parts)
        # A `Unit` has no settings
        self.settings = [getattr(module, "settings", {}) for module in parts]
        self.hidden_dim = self.dim = hidden_dim
        for settings in filter(None, self.settings):
            if (takes := settings["inputs"]) != self.dim:
                raise InputError(
                    f"a dense layer takes {takes} numbers, what comes before it gives {self.dim}"
                )
            self.dim = settings["outputs"]

    def forward(self, h: Tensor) -> Tensor:
        """Project h (B, D) to z (B, dim)."""
        z: Tensor = self.parts(h)
        return z
