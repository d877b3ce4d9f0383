"""Figure 7: how much of an embedding its first numbers carry, by the paper's map and by measures without one.

Metrics: `map_distance`, mean distance in a t-SNE map between the two points of a sentence, and `map_distance_lead` of
one line less another under the same seeds; `map_share`, that distance by the mean distance of two sentences;
`kept_length`, share of a unit embedding's length that lies in the prefix; `cosine_agreement` and `linear_cka`
(PROTOCOLS §9, E16), with `…_lead` on the same resampled items.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.spatial.distance import pdist
from scipy.stats import t

from repro.evaluation.retention import prefix_cka
from repro.evaluation.retrieve import unit_prefix
from repro.evaluation.stats import Interval, Resampled, draw_counts, spearman_draws, subset_members
from repro.evaluation.sts import prefix_cosines
from repro.models.encoder import merge_equal
from repro.papers.ese.lines import Line
from repro.rows import make_rows
from repro.seeding import make_rng
from repro.sets import ScoredPairs, texts_of
from repro.store import Store
from repro.types import Array

RESAMPLES, CKA_RESAMPLES, CKA_SENTENCES = 2_000, 200, 1_000
"""of pairs, and of sentences: a resample of linear CKA is a product of matrices"""
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


def map_rows(maps: Sequence[Joint], *, dim: int, **shared: Any) -> pd.DataFrame:
    """Distances of every map, and every two lines' difference with Student's interval over the maps' seeds.

    Args:
        maps: of every line in every form under the same seeds.
        dim: size of the prefix.
        shared: columns common to all rows.
    """
    rows: list[dict[str, Any]] = []
    for m in maps:
        common = {**m.line.columns, "setting": f"{m.form}, t-SNE seed {m.seed}"}
        rows += [{**common, "metric": "map_distance", "value": m.distance}]
        rows += [{**common, "metric": "map_share", "value": m.share}]
    for form in dict.fromkeys(m.form for m in maps):
        at = {m.line.method: (m.line, [n.distance for n in maps if n.line is m.line and n.form == form]) for m in maps}
        for (rival, others), (winner, own) in combinations(at.values(), 2):
            gap = over_seeds(np.subtract(own, others))
            common = {"metric": "map_distance_lead", "setting": f"{form}, {len(own)} t-SNE seeds"}
            rows.append({**winner.less(rival), **common, **gap.columns})
    return make_rows(rows, dim=dim, readout="encoder", **shared)


def over_seeds(values: Array) -> Interval:
    """Mean with Student's 95 % interval; of a single value it has none."""
    if len(values) < 2:
        return Interval(float(values.mean()), float("nan"), float("nan"))
    half = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return Interval.around(float(values.mean()), float(half))


def agreement_rows(
    lines: Sequence[Line], pairs: ScoredPairs, store: Store, *, dims: Sequence[int], seed: int = 0, **shared: Any
) -> pd.DataFrame:
    """Agreement of every line's last layer with its own prefixes, and every two lines' difference.

    Args:
        lines: to be compared.
        pairs: whose cosines are compared; linear CKA takes a thousand of their distinct sentences.
        store: where states are kept.
        dims: sizes of the prefixes.
        seed: of the resamples.
        shared: columns common to all rows.

    Raises:
        InputError: for a size that a line does not have.
    """
    texts, rows_of = merge_equal(texts_of(pairs))
    first, second = rows_of[: len(pairs)], rows_of[len(pairs) :]
    rng = make_rng(seed, "cka")
    kept = np.sort(rng.permutation(len(texts))[:CKA_SENTENCES])
    counts = draw_counts(subset_members(None, len(kept)), CKA_RESAMPLES, rng)
    rows: list[dict[str, Any]] = []
    found: list[tuple[Line, dict[str, Resampled]]] = []
    for line in lines:
        table = line.states(texts, store)
        X = np.asarray(table.at(table.layers[-1])[texts])
        *cut, full = prefix_cosines(X[first], X[second], [*dims, X.shape[1]])
        cosines = spearman_draws(cut, full, subsets=pairs.subsets, resamples=RESAMPLES, seed=seed)
        cka = np.array([prefix_cka(X[kept], dims, weights=row) for row in counts])
        agreement = {
            "cosine_agreement": Resampled(*cosines),
            "linear_cka": Resampled(np.asarray(prefix_cka(X[kept], dims)), cka),
        }
        found.append((line, agreement))
        for j, dim in enumerate(dims):
            length = float(np.linalg.norm(unit_prefix(X)[:, :dim], axis=1).mean())
            rows.append({**line.columns, "dim": dim, "metric": "kept_length", "value": length})
            rows += [{**line.columns, "dim": dim, "metric": m, **a[j].columns} for m, a in agreement.items()]
    for (rival, others), (winner, own) in combinations(found, 2):
        for metric in own:
            lead, common = own[metric] - others[metric], {**winner.less(rival), "metric": f"{metric}_lead"}
            rows += [{**common, "dim": dim, **lead[j].columns} for j, dim in enumerate(dims)]
    return make_rows(rows, readout="encoder", dataset=pairs.name, seed=seed, **shared)
