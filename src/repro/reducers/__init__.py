"""Reducers: scikit-learn estimators that make embeddings shorter."""

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from repro.digests import module_of
from repro.reducers.autoencoder import Autoencoder
from repro.reducers.kernel import KPCA
from repro.reducers.linear import GRP, PCA, SVD, Centred, Truncate
from repro.reducers.manifold import LLE, SBERTLP, Isomap, neighbour_sweep
from repro.reducers.reducer import Reducer
from repro.store import Store
from repro.terminal import complain
from repro.types import Array, InputError, one_of

_KINDS: tuple[type[Reducer], ...] = (
    PCA,
    SVD,
    KPCA,
    GRP,
    Autoencoder,
    Truncate,
    Centred,
    Isomap,
    LLE,
    SBERTLP,
)
REDUCERS = {kind.__name__.lower(): kind for kind in _KINDS}
REDUCER_NAMES = {name: kind.shown or kind.__name__ for name, kind in REDUCERS.items()}
"""Every reducer by what tables call it, in their order."""


def make_reducer(name: str, n_components: int, *, seed: int = 0, **params: Any) -> Reducer:
    """The unfitted reducer of that name; `seed` reaches those that draw at random.

    Raises:
        InputError: for an unknown name or parameter; the message lists the valid ones.
    """
    reducer = REDUCERS[one_of(name, list(REDUCERS), "reducer")]
    accepted = [key for key in inspect.signature(reducer).parameters if key != "n_components"]
    valid = [key for key in accepted if key != "seed"]
    for key in params:
        if key not in valid:
            raise InputError(
                f"{name} has no parameter {key!r}: it takes {', '.join(valid) or 'none'}"
            )
    if "seed" in accepted:
        params["seed"] = seed
    return reducer(n_components, **params)


def reduced(
    name: str,
    fit: Array,
    X: Array,
    dims: Sequence[int],
    store: Store,
    *,
    seed: int = 0,
    **params: Any,
) -> Iterator[tuple[int, Array]]:
    """X (n, D) under a reducer fitted on rows (m, D), at every dim within reach: pairs of dim and Y
    (n, dim) float32.

    It is fitted once at the largest dim, of which the others are prefixes; at each where it is not
    nested. Dims beyond D are left out; so are those beyond m − 1 or its positive eigenvalues, of
    which the terminal is told.
    """

    def output(dim: int) -> Array:
        def work() -> Array:
            return make_reducer(name, dim, seed=seed, **params).fit(fit).transform(X)

        if not REDUCERS[name].slow:
            return work()
        settings = {"reducer": name, "dim": dim, "seed": seed, "params": params, "fit": fit, "X": X}
        return np.asarray(store.remember("reduced", settings, work, code=module_of(REDUCERS[name])))

    rows, most = fit.shape
    sizes = sorted(d for d in dims if d <= min(rows - 1, most))
    if beyond := sorted(d for d in dims if rows <= d <= most):
        listed = ", ".join(map(str, beyond))
        complain(f"left out: {name} at {listed} dims: it was fitted on {rows} rows, needs more")
    if not REDUCERS[name].nested:
        yield from ((d, output(d)) for d in sizes)
        return
    while sizes:
        try:
            Y = output(sizes[-1])
        except InputError as error:
            complain(f"left out: {name} at {sizes.pop()} dims: {error}")
            continue
        reducer = make_reducer(name, sizes[-1], seed=seed, **params)
        yield from ((d, reducer.prefix(Y, d)) for d in sizes)
        return
