"""Figure 7: how much of an embedding its first numbers carry, by the paper's map and by measures without one.

Full embeddings and prefixes have different numbers of columns, so a common map needs zeros in place of those left out.
Metrics: `map_distance`, mean distance in a t-SNE map between the two points of a sentence, and `map_distance_lead` of
one line less another under the same seeds; `map_share`, that distance by the mean distance of two sentences;
`kept_length`, share of a unit embedding's length that lies in the prefix; `cosine_agreement` and `linear_cka`
(PROTOCOLS §9, E16), with `…_lead` on the same resampled items.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.spatial.distance import pdist
from scipy.stats import t
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

from repro.evaluation.agreement import pair_cosines, prefix_cka
from repro.evaluation.resample import draw_counts, subset_members
from repro.evaluation.search import unit_prefix
from repro.evaluation.stats import Interval, percentiles, spearman_draws
from repro.models.encoder import merge_equal
from repro.papers.ese.lines import Line
from repro.rows import make_rows
from repro.seeding import derive_seed, make_rng
from repro.sets import ScoredPairs, texts_of
from repro.store import Store
from repro.terminal import progress_bar
from repro.types import Array, one_of

RESAMPLES, CKA_RESAMPLES, CKA_SENTENCES = 2_000, 200, 1_000
"""of pairs, and of sentences: a resample of linear CKA is a product of matrices"""
PERPLEXITY = 30.0


AS_THEY_ARE, CENTRED = "as they are", "centred"
FORMS = (AS_THEY_ARE, CENTRED)
"""what enters a map: rows as they are, or less the mean of full rows and of prefixes each: without the direction that
all sentences share, and that parts the two sets into islands"""


@dataclass(frozen=True)
class Joint:
    """A line's sentences in one map, full and cut: points (n, 2) each."""

    line: Line
    form: str
    """of `FORMS`"""
    seed: int
    full: Array
    cut: Array

    @property
    def distance(self) -> float:
        """Mean distance of the two points of a sentence: the paper's number."""
        return float(np.linalg.norm(self.full - self.cut, axis=1).mean())

    @property
    def share(self) -> float:
        """The same by the mean distance of two sentences' full points: a map has no scale of its own."""
        return self.distance / float(pdist(self.full).mean())


def joint_map(
    X: Array, dim: int, *, seed: int, centre: bool = False, perplexity: float = PERPLEXITY, iterations: int = 750
) -> Array:
    """t-SNE of unit rows X (n, D) and of their first `dim` numbers, of length 1 again, zeros for the rest: (2n, 2).

    The start is random, so that the seed decides the map; one that starts from principal components hides how little
    a distance in it means.

    Args:
        X: embeddings of distinct sentences.
        dim: size of the prefix.
        seed: of the start.
        centre: subtract the mean of the full rows, and that of the prefixes.
        perplexity: about how many neighbours each point is fitted to.
        iterations: of gradient descent.

    Raises:
        InputError: for unusable embeddings or a dim out of range.
    """
    parts = [unit_prefix(X), unit_prefix(X, dim)]
    full, cut = (part - part.mean(0) for part in parts) if centre else parts
    both = np.concatenate([full, np.pad(cut, ((0, 0), (0, full.shape[1] - dim)))])
    state = derive_seed(seed, "t-SNE") % 2**32
    tsne = TSNE(
        2, perplexity=min(perplexity, (len(both) - 1) / 3), init="random", max_iter=iterations, random_state=state
    )
    with threadpool_limits(1):  # sums over threads round differently, and t-SNE blows that up
        return np.asarray(tsne.fit_transform(both), np.float64)


def map_lines(
    lines: Sequence[Line],
    texts: Sequence[str],
    store: Store,
    *,
    dim: int,
    seeds: Sequence[int],
    forms: Sequence[str] = FORMS,
    perplexity: float = PERPLEXITY,
    progress: bool = True,
) -> list[Joint]:
    """Joint maps of the last layer of every line, in every form and under every seed.

    Args:
        lines: of one size.
        texts: distinct sentences.
        store: where states are kept.
        dim: size of the prefix.
        seeds: of the maps; the start of one seed is the same for all lines.
        forms: of `FORMS`.
        perplexity: of the maps.
        progress: show progress bars.
    """
    found = []
    jobs = [(line, form, seed) for line in lines for form in forms for seed in seeds]
    for line, form, seed in progress_bar(jobs, desc="t-SNE", show=progress):
        one_of(form, FORMS, "form of a map")
        table = line.states(texts, store, progress=progress)
        X = table.at(table.layers[-1])[texts]
        Y = joint_map(X, dim, seed=seed, centre=form == CENTRED, perplexity=perplexity)
        found.append(Joint(line, form, seed, Y[: len(X)], Y[len(X) :]))
    return found


def map_rows(maps: Sequence[Joint], *, dim: int, **shared: Any) -> pd.DataFrame:
    """Distances of every map, and every two lines' difference with Student's interval over the maps' seeds."""
    rows = [
        {**_of(m.line), "metric": metric, "setting": f"{m.form}, t-SNE seed {m.seed}", "value": value}
        for m in maps
        for metric, value in (("map_distance", m.distance), ("map_share", m.share))
    ]
    lines = list({m.line.method: m.line for m in maps}.values())
    for form in dict.fromkeys(m.form for m in maps):
        for rival, winner in combinations(lines, 2):
            a, b = (
                np.array([m.distance for m in maps if m.line is line and m.form == form]) for line in (winner, rival)
            )
            rows.append(
                {
                    **_between(winner, rival),
                    "metric": "map_distance_lead",
                    "setting": f"{form}, {len(a)} t-SNE seeds",
                    **over_seeds(a - b).columns,
                }
            )
    return make_rows(rows, dim=dim, readout="encoder", **shared)


def over_seeds(values: Array) -> Interval:
    """Mean with Student's 95 % interval; of a single value it has none."""
    if len(values) < 2:
        return Interval(float(values.mean()), float("nan"), float("nan"))
    half = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return Interval.around(float(values.mean()), float(half))


def agreement_rows(
    lines: Sequence[Line],
    pairs: ScoredPairs,
    store: Store,
    *,
    dims: Sequence[int],
    seed: int = 0,
    progress: bool = True,
    **shared: Any,
) -> pd.DataFrame:
    """Agreement of every line's last layer with its own prefixes, and every two lines' difference.

    Args:
        lines: to be compared.
        pairs: whose cosines are compared; linear CKA takes a thousand of their distinct sentences.
        store: where states are kept.
        dims: sizes of the prefixes.
        seed: of the resamples.
        progress: show progress bars while encoding.
        shared: columns common to all rows.

    Raises:
        InputError: for a size that a line does not have.
    """
    texts, rows_of = merge_equal(texts_of(pairs))
    sides = np.column_stack([rows_of[: len(pairs)], rows_of[len(pairs) :]])
    rng = make_rng(seed, "cka")
    kept = np.sort(rng.permutation(len(texts))[:CKA_SENTENCES])
    counts = draw_counts(subset_members(None, len(kept), CKA_RESAMPLES), CKA_RESAMPLES, rng)
    rows: list[dict[str, Any]] = []
    found: dict[str, dict[str, tuple[Array, Array]]] = {}
    for line in lines:
        table = line.states(texts, store, progress=progress)
        X = np.asarray(table.at(table.layers[-1])[texts])
        cka = np.array([prefix_cka(X[kept], dims, weights=row) for row in counts])
        found[line.method] = {
            "cosine_agreement": _cosine_draws(X, dims, sides, pairs, seed),
            "linear_cka": (prefix_cka(X[kept], dims), cka),
        }
        for dim in dims:
            length = np.linalg.norm(unit_prefix(X)[:, :dim], axis=1)
            rows.append({**_of(line), "dim": dim, "metric": "kept_length", "value": float(length.mean())})
    rows += _agreements(lines, dims, found)
    return make_rows(rows, readout="encoder", dataset=pairs.name, seed=seed, **shared)


def _agreements(
    lines: Sequence[Line], dims: Sequence[int], found: Mapping[str, Mapping[str, tuple[Array, Array]]]
) -> Iterator[dict[str, Any]]:
    for j, dim in enumerate(dims):
        for line in lines:
            for metric, (values, draws) in found[line.method].items():
                yield {**_of(line), "dim": dim, "metric": metric, **_percentiles(values[j], draws[:, j]).columns}
        for rival, winner in combinations(lines, 2):
            for metric, (values, draws) in found[winner.method].items():
                others, other_draws = found[rival.method][metric]
                lead = _percentiles(values[j] - others[j], draws[:, j] - other_draws[:, j])
                yield {**_between(winner, rival), "dim": dim, "metric": f"{metric}_lead", **lead.columns}


def _cosine_draws(X: Array, dims: Sequence[int], sides: Any, pairs: ScoredPairs, seed: int) -> tuple[Array, Array]:
    """Agreement of pair cosines (len(dims),), and on resampled pairs; equal seeds resample equal pairs."""
    cut = [pair_cosines(X[:, :dim], sides) for dim in dims]
    full = pair_cosines(X, sides)
    return spearman_draws(cut, full, subsets=pairs.subsets, resamples=RESAMPLES, seed=seed)


def _percentiles(value: Any, draws: Array) -> Interval:
    return percentiles(float(value), np.asarray(draws, np.float64))


def _of(line: Line) -> dict[str, Any]:
    return {"method": line.method, "backbone": line.backbone, "n_train": line.n_train}


def _between(winner: Line, rival: Line) -> dict[str, Any]:
    return {**_of(winner), "method": f"{winner.method} − {rival.method}"}
