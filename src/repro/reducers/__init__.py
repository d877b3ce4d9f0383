"""Reducers: scikit-learn estimators that make embeddings shorter."""

import inspect
from typing import Any

from repro.reducers.autoencoder import Autoencoder
from repro.reducers.kernel import KPCA
from repro.reducers.linear import GRP, PCA, SVD, Truncate
from repro.reducers.manifold import LLE, SBERTLP, Isomap, neighbour_sweep
from repro.reducers.reducer import Reducer
from repro.types import InputError, one_of

REDUCERS: dict[str, type[Reducer]] = {
    "truncate": Truncate,
    "pca": PCA,
    "svd": SVD,
    "grp": GRP,
    "kpca": KPCA,
    "autoencoder": Autoencoder,
    "isomap": Isomap,
    "lle": LLE,
    "sbertlp": SBERTLP,
}


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
            raise InputError(f"{name} has no parameter {key!r}: it takes {', '.join(valid) or 'none'}")
    if "seed" in accepted:
        params["seed"] = seed
    return reducer(n_components, **params)
