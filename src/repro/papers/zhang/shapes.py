"""What curves are as wholes: how much they jump, how far they are from PCA's, and how methods rank
along them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from repro.evaluation.stats import Resampled
from repro.methods import ZHANG_METHODS
from repro.papers.zhang.claims import AUTOENCODER, DISTANCE, RANKS, WITHIN
from repro.papers.zhang.lines import scorer_of
from repro.papers.zhang.tasks import ReducedTask
from repro.rows import Row, make_rows
from repro.runs.lines import Line
from repro.store import Store


def _curves(
    scores: Resampled,
    place: Mapping[tuple[str, Any], int],
    methods: Sequence[str],
) -> Resampled:
    """Scores (methods, sizes) at the sizes that all of them have; `place` says where each method
    and size stands.
    """
    dims = {dim for _, dim in place}
    for method in methods:
        dims &= {dim for name, dim in place if name == method}
    places = [[place[method, dim] for dim in sorted(dims)] for method in methods]
    return scores[np.array(places, dtype=int)]


def curve_rows(
    lines: Sequence[Line],
    task: ReducedTask,
    store: Store,
    *,
    protocol: str = "logreg",
    **shared: Any,
) -> pd.DataFrame:
    """What curves are as wholes, in the paper's settings; test items are resampled for all sizes
    and encoders at once.

    Per encoder and setting: `roughness` of every method, over the sizes that all have, if they are
    three or more, and the autoencoder's lead over the roughest of the other four, which each
    resample chooses anew; `distance_from_pca`, the mean absolute difference over sizes that both
    have. Over all encoders together (published ones, if there are two), settings and sizes:
    `ranks_behind_pca`, a method's mean rank among the five less PCA's.
    """
    of_five = [line for line in lines if line.method in ZHANG_METHODS]
    of_five = [line for line in of_five if line.setting in WITHIN]
    if not of_five:
        return make_rows([])
    (judged,) = scorer_of(task, store, protocol)(of_five, task, int(shared["seed"]))
    places: dict[tuple[str | None, str], dict[tuple[str, Any], int]] = {}
    for i, line in enumerate(of_five):
        places.setdefault((line.backbone, line.setting), {})[line.method, line.dim] = i
    rows: list[Row] = []
    ranks: dict[str, list[Resampled]] = {}
    for (backbone, setting), place in places.items():
        present = {method for method, _ in place}
        methods = [name for name in ZHANG_METHODS if name in present]
        together = _curves(judged.scores, place, methods)
        all_five = len(methods) == len(ZHANG_METHODS) and together.value.size > 0
        if all_five:
            ranked = together.map(lambda scores: rankdata(-scores, axis=-2).mean(-1))
            ranks.setdefault(str(backbone), []).append(ranked)
        shapes = _roughness(together, methods, all_five) | _distances(judged.scores, place, methods)
        for (name, metric), shape in shapes.items():
            about = {"backbone": backbone, "setting": setting, "method": name, "metric": metric}
            rows.append({**about, **shape.columns})
    common = {"dataset": task.name, "readout": "encoder"}
    return make_rows([*rows, *_rank_rows(ranks)], **{**shared, **common})


def _roughness(
    together: Resampled,
    methods: Sequence[str],
    all_five: bool,
) -> dict[tuple[str, str], Resampled]:
    """By method and metric: how rough each curve is, and how much rougher the autoencoder's is than
    the roughest of the other four; nothing of fewer than three sizes.
    """
    if together.value.shape[1] < 3:
        return {}
    jumps = together.map(np.diff, axis=-1).map(np.std, axis=-1)
    roughness = {(name, "roughness"): jumps[k] for k, name in enumerate(methods)}
    if all_five:
        k = methods.index(AUTOENCODER)
        roughest = jumps.map(np.delete, k, axis=-1).map(np.max, axis=-1)
        roughness[f"{AUTOENCODER} − others", "roughness_lead"] = jumps[k] - roughest
    return roughness


def _distances(
    scores: Resampled,
    place: Mapping[tuple[str, Any], int],
    methods: Sequence[str],
) -> dict[tuple[str, str], Resampled]:
    """By method and metric: how far each curve is from the first method's, PCA's, if that is
    there.
    """
    first = ZHANG_METHODS[0]
    distances: dict[tuple[str, str], Resampled] = {}
    for name in methods[1:] if first in methods else []:
        pair = _curves(scores, place, [first, name])
        if pair.value.size:
            distances[name, DISTANCE] = pair.map(
                lambda scores: np.abs(np.diff(scores, axis=-2)).mean((-1, -2))
            )
    return distances


def _rank_rows(ranks: Mapping[str, Sequence[Resampled]]) -> Iterator[Row]:
    """Each method's mean rank less PCA's, over the published encoders if they are two, else over
    all; nothing of a single one.
    """
    published = [name for name in ranks if not name.startswith("repro")]
    encoders = sorted(published if len(published) > 1 else ranks)
    if len(encoders) < 2:
        return
    ranked = list(chain.from_iterable(ranks[name] for name in encoders))
    overall = replace(Resampled.averaged(ranked), n=ranked[0].n)  # All on the same items
    for k, name in enumerate(ZHANG_METHODS[1:], start=1):
        about = {"setting": ", ".join(encoders), "method": name, "metric": RANKS}
        yield {**about, **(overall[k] - overall[0]).columns}
