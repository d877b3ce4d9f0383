"""How much a method's score jumps from one size to the next (Zhang et al., 2024, §4.2: the autoencoder does most)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro.evaluation.stats import accuracy_draws, percentiles
from repro.methods import ZHANG_METHODS
from repro.papers.zhang.tasks import Task
from repro.rows import make_rows
from repro.runs.scores import stored_classification
from repro.runs.suite import Contender
from repro.store import Store

AUTOENCODER = "Autoencoder"


def roughness(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviation of the differences between neighbouring sizes, of scores (…, sizes)."""
    return np.asarray(np.diff(scores, axis=-1).std(axis=-1), np.float64)


def roughness_rows(
    lines: Sequence[Contender], task: Task, store: Store, *, protocol: str = "logreg", **shared: Any
) -> pd.DataFrame:
    """Roughness of every method per encoder and setting, and the autoencoder's lead over the roughest of the others.

    Sizes are those that every method has; where these are fewer than three there is nothing to compare, and no row. A
    lead is read on resamples of the test items that all methods share; the
    roughest of the others is chosen anew in each.

    Args:
        lines: the contenders of a labelled task, scored before: their probes come from the store.
        task: the task.
        store: where fitted probes are kept.
        protocol: classifier protocol.
        shared: columns common to all rows; `seed` is also that of folds and bootstrap.
    """
    seed = int(shared["seed"])
    groups = dict.fromkeys((line.backbone, line.setting) for line in lines if line.setting and "," not in line.setting)
    rows: list[dict[str, Any]] = []
    for backbone, setting in groups:
        own = [line for line in lines if (line.backbone, line.setting) == (backbone, setting)]
        by = {m: {int(line.dim or 0): line for line in own if line.method == m} for m in ZHANG_METHODS}
        by = {m: at for m, at in by.items() if at}
        dims = sorted(set.intersection(*(set(at) for at in by.values()))) if by else []
        if len(dims) < 3:
            continue
        items = [
            stored_classification(by[m][d].table, task.name, task.judged, store, protocol=protocol, seed=seed).items
            for m in by
            for d in dims
        ]
        plain, resampled = accuracy_draws(items, seed=seed)
        value = roughness(plain.reshape(len(by), -1))  # (methods,)
        draws = roughness(resampled.reshape(len(resampled), len(by), -1))  # (resamples, methods)
        common = {"backbone": backbone, "setting": setting, "dataset": task.name, "readout": "encoder"}
        for k, method in enumerate(by):
            found = percentiles(value[k], draws[:, k])
            rows.append({**common, "method": method, "metric": "roughness", **found.columns})
        if AUTOENCODER in by and len(by) > 1:
            k = list(by).index(AUTOENCODER)
            others = np.delete(value, k), np.delete(draws, k, axis=1)
            lead = percentiles(value[k] - others[0].max(), draws[:, k] - others[1].max(axis=1))
            rows.append({**common, "method": f"{AUTOENCODER} − others", "metric": "roughness_lead", **lead.columns})
    return make_rows(rows, **shared)
