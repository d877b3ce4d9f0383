"""Matryoshka: a loss on several prefixes of one layer.

Kusupati et al. (2022) (method-matryoshka in the book).
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from repro.types import InputError, check_dims, finite_vector


def matryoshka(
    loss: Callable[..., Tensor],
    dims: Sequence[int],
    weights: Sequence[float] | None = None,
) -> Callable[..., Tensor]:
    """The loss with its own signature on every prefix: Σ over m of c_m·ℓ(z[:, :m]).

    Every floating matrix among the arguments as wide as the first one, d, is cut to its first m
    columns; one of q·d columns, such as the classifier of `softmax_nli`, is q blocks of d, each
    cut. All else passes as it is. `dims` are the sizes m, increasing, to which d is not added, and
    `weights` c is 1 for each by default. InputError for sizes or weights that do not fit, or, when
    called, for no matrix to cut.
    """
    sizes = check_dims(dims)
    if not sizes or any(a >= b for a, b in itertools.pairwise(sizes)):
        raise InputError(
            f"dims are {list(dims)}: expected at least one size, increasing, none twice"
        )
    shares = [1.0] * len(sizes) if weights is None else finite_vector(weights, "weights").tolist()
    if len(shares) != len(sizes) or any(share < 0 for share in shares):
        raise InputError(
            f"weights are {shares}: expected {len(sizes)} numbers of 0 or more, one for each size"
        )

    @functools.wraps(loss)
    def nested(*args: Any, **options: Any) -> Tensor:
        width = next(
            (value.shape[1] for value in (*args, *options.values()) if _is_matrix(value)),
            None,
        )
        if width is None:
            raise InputError(
                "no floating matrix (n, d) among the arguments: nothing to take prefixes of"
            )
        if sizes[-1] > width:
            raise InputError(
                f"dim {sizes[-1]} exceeds the {width} columns of the embeddings: leave it out"
            )
        parts = []
        for size, share in zip(sizes, shares, strict=True):
            cut = functools.partial(_prefix, width=width, size=size)
            parts.append(
                share
                * loss(*map(cut, args), **{name: cut(value) for name, value in options.items()})
            )
        return torch.stack(parts).sum()

    return nested


def _is_matrix(value: Any) -> bool:
    return isinstance(value, Tensor) and value.ndim == 2 and value.is_floating_point()


def _prefix(value: Any, width: int, size: int) -> Any:
    """The first `size` of every `width` columns."""
    if not _is_matrix(value) or value.shape[1] % width:
        return value
    if value.shape[1] == width:
        return value[:, :size]
    return value.unflatten(1, (-1, width))[:, :, :size].flatten(1)
