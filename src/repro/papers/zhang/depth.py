"""One hidden layer or three: what the autoencoder's depth brings and costs (Zhang et al., 2024, §3)."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from repro.models.encoder import merge_equal
from repro.papers.zhang.reduce import reduced
from repro.papers.zhang.tasks import Task, fit_texts
from repro.papers.zhang.timing import OURS, measure, seconds_of
from repro.reducers import make_reducer
from repro.rows import make_rows
from repro.runs import suite
from repro.runs.embeddings import TextTable
from repro.runs.suite import Contender
from repro.sets import texts_of
from repro.store import Store

SHALLOW, DEEP = "Autoencoder, 1 hidden layer", "Autoencoder, 3 hidden layers"


def inner_size(hidden_dim: int, dim: int) -> int:
    """The layer between D and d: their geometric mean, so that both steps shrink alike."""
    return round(float(np.sqrt(hidden_dim * dim)))


def depth_rows(
    table: TextTable,
    task: Task,
    dims: Sequence[int],
    store: Store,
    *,
    timed_dim: int,
    repeats: int = 2,
    progress: bool = True,
    **shared: Any,
) -> pd.DataFrame:
    """Scores of both depths at every dim with the deep one's lead, and their seconds at one dim; inductive.

    Args:
        table: embeddings of the task's texts.
        task: what they are judged by.
        dims: sizes that are scored.
        store: where reduced embeddings are kept.
        timed_dim: size at which seconds are taken.
        repeats: rounds of the timing.
        progress: show a progress bar.
        shared: columns common to all rows.
    """
    fit, seed = table[fit_texts("inductive", task)], int(shared["seed"])
    judged = merge_equal(texts_of(task.splits["test"]))[0]  # as the task pages do, whose reductions the store holds
    X, index, D = table[judged], {text: i for i, text in enumerate(judged)}, fit.shape[1]
    lines = []
    for d in dims:
        for label, inner in ((SHALLOW, ()), (DEEP, (inner_size(D, d),))):
            options: dict[str, Any] = {"hidden_layers": inner} if inner else {}
            for size, Y in reduced("autoencoder", fit, X, [d], store, seed=seed, **options):
                lines.append(Contender(label, size, "encoder", "inductive", TextTable(index, Y)))
    scores = suite.suite_rows(
        lines, {task.name: task.judged}, store, rivals=_deep_over_shallow, progress=progress, **shared
    )
    makers: dict[str, Callable[[], Any]] = {
        SHALLOW: partial(make_reducer, "autoencoder", timed_dim, seed=seed),
        DEEP: partial(make_reducer, "autoencoder", timed_dim, seed=seed, hidden_layers=(inner_size(D, timed_dim),)),
    }
    timed = measure(makers, fit, X, repeats=repeats, slow_repeats=repeats)
    seconds = [row for label, t in timed.items() for row in seconds_of(label, OURS, timed_dim, t)]
    return pd.concat([scores, make_rows(seconds, **shared)], ignore_index=True)


def _deep_over_shallow(lines: Sequence[Contender]) -> list[tuple[int, int]]:
    return [
        (a, b)
        for a, deep in enumerate(lines)
        for b, shallow in enumerate(lines)
        if (deep.method, shallow.method) == (DEEP, SHALLOW) and deep.dim == shallow.dim
    ]
