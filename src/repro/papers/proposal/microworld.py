"""Sentences whose intrinsic dimension is known: what estimators say of it, and how many dimensions a score needs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from microworld import Flavour, World, graded_pairs
from repro import theory
from repro.evaluation.retention import retention, smallest_sufficient
from repro.evaluation.stats import percentiles, spearman_draws
from repro.evaluation.sts import prefix_cosines
from repro.reducers import make_reducer
from repro.rows import make_rows
from repro.runs.encoders import TextTable
from repro.seeding import make_rng
from repro.sets import ScoredPairs
from repro.types import Array, InputError

IDEAL = "ideal"
"""measured on the vectors that say exactly what the sentences mean"""
NEIGHBOURS = 10
"""of the maximum likelihood estimator"""
ESTIMATORS: Mapping[str, Callable[[Array], float]] = {
    "two_nn": theory.two_nn,
    "mle_dimension": lambda X: theory.mle_dimension(X, NEIGHBOURS),
    "participation_ratio": theory.participation_ratio,
    "effective_rank": theory.effective_rank,
}


@dataclass(frozen=True, eq=False)
class Probe:
    """Graded pairs of one world, with the ideal embeddings of both sides (n, D) each."""

    world: World
    pairs: ScoredPairs
    ideal: tuple[Array, Array]

    @property
    def name(self) -> str:
        """What rows and figures call the world."""
        return f"{self.world.factors} factors"

    @classmethod
    def draw(cls, factors: int, pairs: int, *, values: int | None = None, seed: int = 0) -> "Probe":
        """Graded pairs of a world of that many factors, in sentences that leave nothing unsaid where they can.

        Args:
            factors: 3 to 8.
            pairs: how many.
            values: the most values a factor takes; None is all.
            seed: of the world and of the pairs.

        Raises:
            InputError: for a knob out of reach, or more pairs than the world has.
        """
        world = World(factors, values=values, seed=seed)
        rng = make_rng(seed, "probe pairs", factors, values)
        drawn = graded_pairs(world, pairs, rng, flavour=Flavour(unsaid=0.0))
        name = f"{factors} factors"
        texts, subsets = (tuple(drawn.texts1), tuple(drawn.texts2)), np.array([name] * pairs, object)
        scored = ScoredPairs(name, "microworld", "test", *texts, 5 * drawn.similarity, subsets)
        return cls(world, scored, (world.ideal_embeddings(drawn.frames1), world.ideal_embeddings(drawn.frames2)))


def world_rows(
    probes: Sequence[Probe],
    tables: Mapping[str, TextTable],
    dims: Sequence[int],
    *,
    target: float,
    seed: int = 0,
    **shared: Any,
) -> pd.DataFrame:
    """Intrinsic dimension, and the share of the score that PCA keeps by size, of the ideal and of real embeddings.

    Sizes that a world has not enough sentences or columns for are left out; the knee keeps the target, a share of the
    score at full size.
    """
    rows = []
    for probe in probes:
        own = {name: (table[probe.pairs.texts1], table[probe.pairs.texts2]) for name, table in tables.items()}
        for name, (X1, X2) in {IDEAL: probe.ideal, **own}.items():
            X = np.concatenate([X1, X2])
            X = np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True), np.float64)
            X = X[np.unique(X.round(9), axis=0, return_index=True)[1]]  # equal meanings once, whatever rounding says
            measured = [{"metric": metric, "value": estimate(X)} for metric, estimate in ESTIMATORS.items()]
            measured += _kept(X1, X2, probe.pairs, dims, target, seed)
            rows += [{"setting": probe.name, "method": name, "backbone": name, **row} for row in measured]
    return make_rows(rows, dataset="graded pairs", seed=seed, **shared)


def _kept(
    X1: Array, X2: Array, pairs: ScoredPairs, dims: Sequence[int], target: float, seed: int
) -> Iterator[dict[str, Any]]:
    """Spearman at full size; by size the share that PCA keeps with its lower bound; the knee, and the sure knee."""
    X = np.concatenate([X1, X2])
    full = X.shape[1]
    sizes = [dim for dim in sorted(dims) if dim < min(full, len(X))]
    reducer = make_reducer("pca", sizes[-1]).fit(X)
    cosines = [prefix_cosines(X1, X2, [full])[0], *prefix_cosines(reducer.transform(X1), reducer.transform(X2), sizes)]
    values, draws = spearman_draws(cosines, pairs.scores, seed=seed)
    yield {"metric": "spearman", "dim": full, **percentiles(float(values[0]), draws[:, 0]).columns}
    try:
        kept = retention(values, draws, reference=0)
    except InputError:  # an encoder that knows nothing of these sentences has no share to keep; its score says so
        return
    for dim, share, low in zip(sizes, kept.share[1:], kept.low[1:], strict=True):
        yield {"metric": "share_kept", "dim": dim, "value": float(share), "ci_low": float(low), "ci_high": np.nan}
    for metric, bounds in (("knee", kept.share[1:]), ("sure_knee", kept.low[1:])):
        found = smallest_sufficient(sizes, list(bounds), target)
        if found is not None:
            yield {"metric": metric, "value": float(found)}
