"""Sentences whose intrinsic dimension is known: what estimators say of it, and how many dimensions a score needs.

No document makes a claim here: what one would expect is judged by the rules that printed claims are judged by.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from microworld import Flavour, World, graded_pairs
from repro import theory
from repro.evaluation.retention import retention, smallest_sufficient
from repro.evaluation.seeds import kendall
from repro.evaluation.stats import percentiles, spearman_draws
from repro.evaluation.sts import prefix_cosines
from repro.reducers import make_reducer
from repro.report.judge import Estimate, measurement
from repro.rows import make_rows
from repro.runs.embeddings import TextTable
from repro.seeding import make_rng
from repro.sets import ScoredPairs
from repro.types import Array, InputError

KNOWN, IDEAL = "known", "ideal"
"""from the factors alone, without a sentence; and measured on the vectors that say exactly what the sentences mean"""
NEIGHBOURS = 10
"""of the maximum likelihood estimator"""
INTRINSIC = {
    "participation_ratio": "participation ratio",
    "effective_rank": "effective rank",
    "two_nn": "TwoNN",
    "mle_dimension": "maximum likelihood",
}
COUNTS = {"dimension_99": "99 % of variance", "knee": "knee", "sure_knee": "sure knee"}
"""numbers of dimensions; all metrics to the headings of tables"""


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


def make_probe(factors: int, pairs: int, *, values: int | None = None, seed: int = 0) -> Probe:
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
    return Probe(world, scored, (world.ideal_embeddings(drawn.frames1), world.ideal_embeddings(drawn.frames2)))


def known_rows(probes: Sequence[Probe], **shared: Any) -> pd.DataFrame:
    """What is known of each world: participation ratio and effective rank of its spectrum, and its 99 % dimension."""
    measures = {
        "participation_ratio": lambda world: world.participation_ratio,
        "effective_rank": effective_rank_of,
        "dimension_99": lambda world: world.dimension(0.99),
    }
    rows = [
        {"setting": probe.name, "metric": metric, "value": float(measure(probe.world))}
        for probe in probes
        for metric, measure in measures.items()
    ]
    return make_rows(rows, method=KNOWN, backbone=KNOWN, dataset="graded pairs", **shared)


def effective_rank_of(world: World) -> float:
    """Effective rank in the form of `theory.effective_rank`: entropy of the singular values √λ, not of λ itself."""
    singular = np.sqrt(world.spectrum[world.spectrum > 1e-12 * world.spectrum[0]])
    share = singular / singular.sum()
    return float(np.exp(-(share * np.log(share)).sum()))


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

    Args:
        probes: worlds with their sentences.
        tables: embeddings of all sentences, by the encoder's name.
        dims: sizes; those that a world has not enough sentences or columns for are left out.
        target: share of the full-size score that the knee keeps.
        seed: of resamples.
        shared: columns of every row.
    """
    rows = []
    for probe in probes:
        own = {name: (table[probe.pairs.texts1], table[probe.pairs.texts2]) for name, table in tables.items()}
        for name, (X1, X2) in {IDEAL: probe.ideal, **own}.items():
            measured = [*_intrinsic(np.concatenate([X1, X2])), *_kept(X1, X2, probe.pairs, dims, target, seed)]
            rows += [{"setting": probe.name, "method": name, "backbone": name, **row} for row in measured]
    return make_rows(rows, dataset="graded pairs", seed=seed, **shared)


def _intrinsic(X: Array) -> Iterator[dict[str, Any]]:
    X = np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True), np.float64)
    X = X[np.unique(X.round(9), axis=0, return_index=True)[1]]  # equal meanings once, whatever rounding says
    estimators = {
        "two_nn": theory.two_nn,
        "mle_dimension": lambda X: theory.mle_dimension(X, NEIGHBOURS),
        "participation_ratio": theory.participation_ratio,
        "effective_rank": theory.effective_rank,
    }
    yield from ({"metric": metric, "value": estimate(X)} for metric, estimate in estimators.items())


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


def world_table(rows: pd.DataFrame) -> pd.DataFrame:
    """A line per world and embedding: what is known or estimated of its dimension, its score and its knees."""
    names = {**INTRINSIC, **COUNTS, "spearman": "Spearman × 100"}
    own = rows[rows["metric"].isin(list(names))]
    own = own.assign(value=own["value"].where(own["metric"] != "spearman", 100 * own["value"]))
    table = own.pivot_table(index=["setting", "method"], columns="metric", values="value", sort=False)
    table = table.reindex(columns=[name for name in names if name in table])
    whole = [name for name in COUNTS if name in table]
    table[whole] = table[whole].round().astype("Int64")
    return table.rename(columns=names).reset_index().rename(columns={"setting": "world", "method": "embedding"})


def known_dimension(rows: pd.DataFrame) -> pd.DataFrame:
    """Kendall's τ over worlds of each estimate, and of the knee, with the known participation ratio; with a verdict.

    The ratio is to the known value of the same measure where there is one, else to the known participation ratio. Each
    seed ranks its own worlds, three at least, unless its estimate is one number throughout.
    """
    known = rows[rows["method"] == KNOWN].pivot_table(index=["seed", "setting"], columns="metric", values="value")
    own = rows[(rows["method"] != KNOWN) & rows["metric"].isin([*INTRINSIC, "knee"])]
    lines = []
    for (method, metric), group in own.groupby(["method", "metric"], sort=False):
        estimates = group.groupby(["seed", "setting"])["value"].mean()
        truth = known["participation_ratio"].reindex(estimates.index)
        taus = {
            seed: float(kendall(truth[seed].to_numpy(), each.droplevel("seed").to_numpy(float)))
            for seed, each in estimates.groupby(level="seed")
            if len(each) >= 3 and each.nunique() > 1
        }
        if not taus:
            continue
        found = measurement("", "trend", Estimate(taus), "", generated=True)
        same = known.get(str(metric), known["participation_ratio"]).reindex(estimates.index)
        ends = "" if np.isnan(found.low) else f" [{found.low:.2f}, {found.high:.2f}]"
        lines.append(
            {
                "embedding": method,
                "estimate": {**INTRINSIC, **COUNTS}[str(metric)],
                "verdict": found.verdict,
                "Kendall τ with the known dimension": f"{found.value:.2f}{ends}",
                "estimate / known": float((estimates / same).median()),
            }
        )
    return pd.DataFrame(lines)
