"""Embeddings of one encoder under one reducer at many sizes: one fit where sizes are prefixes, slow ones stored."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from repro.digests import module_of
from repro.reducers import REDUCERS, make_reducer
from repro.store import Store
from repro.terminal import complain
from repro.types import Array, InputError

T = TypeVar("T")
SLOW = ("kpca", "autoencoder")
"""reducers whose output is kept in the store"""


def reduced(
    name: str, fit: Array, X: Array, dims: Sequence[int], store: Store, *, seed: int = 0, **params: Any
) -> Iterator[tuple[int, Array]]:
    """X (n, D) reduced to every dim within reach, as pairs of dim and Y (n, dim) float32.

    Fitted on rows (m, D), once at the largest dim, of which the others are prefixes; the autoencoder is fitted at each.
    Dims beyond min(m − 1, D), or the reducer's own reach, are left out. The store keeps the output of slow reducers.
    """
    sizes = sorted(d for d in dims if d <= min(len(fit) - 1, fit.shape[1]))
    if name == "autoencoder":
        for d in sizes:
            yield d, _output(name, fit, X, d, store, seed, params)
    elif found := within_reach(name, sizes, lambda d: _output(name, fit, X, d, store, seed, params)):
        Y, sizes = found
        reducer = make_reducer(name, sizes[-1], seed=seed, **params)
        for d in sizes:
            yield d, reducer.prefix(Y, d)


def _output(name: str, fit: Array, X: Array, dim: int, store: Store, seed: int, params: Mapping[str, Any]) -> Array:
    """X under the reducer fitted at one dim, from the store if the very same was done before."""

    def work() -> Array:
        return make_reducer(name, dim, seed=seed, **params).fit(fit).transform(X)

    if name not in SLOW:
        return work()
    settings = {"reducer": name, "dim": dim, "seed": seed, "params": dict(params), "fit": fit, "X": X}
    return np.asarray(store.remember("reduced", settings, work, code=module_of(REDUCERS[name])))


def within_reach(what: str, dims: Sequence[int], fit: Callable[[int], T]) -> tuple[T, list[int]] | None:
    """What `fit` gives for the largest dim that it can, and the dims up to that, ascending; None for none.

    Some reducers know their reach only once they are fitted: a matrix of path distances, or of a kernel, has fewer
    positive eigenvalues than rows. The terminal is told what is left out.
    """
    dims = sorted(dims)
    while dims:
        try:
            return fit(dims[-1]), dims
        except InputError as error:
            complain(f"left out: {what} at {dims.pop()} dims: {error}")
    return None


def dims_of(hidden_dim: int, dims: Sequence[float]) -> list[int]:
    """Sizes below the full one, ascending; numbers below 1 are shares of it."""
    wanted = [round(d * hidden_dim) if d < 1 else int(d) for d in dims]
    found = sorted({d for d in wanted if 1 <= d < hidden_dim})
    if not found:
        raise InputError(
            f"dims are {list(dims)}: expected sizes from 1 to {hidden_dim - 1}, or shares below 1 of {hidden_dim}"
        )
    return found
