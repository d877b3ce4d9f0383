"""Seconds to fit and to transform, ours and scikit-learn's in turns (Zhang et al., 2024, Table 1; PROTOCOLS §4.8).

And what an autoencoder of three hidden layers costs and brings beside one of one (§3).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA, KernelPCA, TruncatedSVD
from sklearn.random_projection import GaussianRandomProjection
from threadpoolctl import threadpool_limits

from repro.methods import REDUCER_NAMES, ZHANG_METHODS
from repro.models.encoder import merge_equal
from repro.papers.zhang.seconds import DEEP, OURS, PEER, SHALLOW
from repro.papers.zhang.tasks import Task, fit_texts
from repro.reducers import make_reducer
from repro.rows import make_rows
from repro.runs import suite
from repro.runs.embeddings import TextTable
from repro.runs.lines import reduced
from repro.runs.suite import Contender
from repro.sets import texts_of
from repro.store import Store
from repro.types import Array, check_dim

SLOW_SECONDS = 0.5
"""a method whose fit takes longer has fewer rounds"""


Timed = tuple[list[float], list[float]]
"""seconds of every round, fit and transform"""


def measure(
    makers: Mapping[Any, Callable[[], Any]], fit: Array, X: Array, *, repeats: int, slow_repeats: int
) -> dict[Any, Timed]:
    """Fit on `fit` and transform X by freshly made reducers, in turns, on one thread; a round to warm up is dropped.

    Args:
        makers: reducers by name, each made anew in every round.
        fit: rows to fit (m, D).
        X: rows to transform (n, D).
        repeats: rounds that count.
        slow_repeats: rounds that count of those whose warm-up fit took longer than half a second.
    """
    check_dim(repeats, what="repeats")
    check_dim(slow_repeats, what="slow_repeats")
    with threadpool_limits(1):
        warm = {name: _round(make, fit, X) for name, make in makers.items()}
        rounds = {name: slow_repeats if seconds[0] > SLOW_SECONDS else repeats for name, seconds in warm.items()}
        taken: dict[Any, list[tuple[float, float]]] = {name: [] for name in makers}
        for i in range(max(rounds.values())):
            for name, make in makers.items():
                if i < rounds[name]:
                    taken[name].append(_round(make, fit, X))
    return {name: ([a for a, _ in t], [b for _, b in t]) for name, t in taken.items()}


def _round(make: Callable[[], Any], fit: Array, X: Array) -> tuple[float, float]:
    reducer = make()
    started = perf_counter()
    reducer.fit(fit)
    fitted = perf_counter()
    reducer.transform(X)
    return fitted - started, perf_counter() - fitted


def timing_rows(
    fit: Array, X: Array, *, dim: int, repeats: int = 5, slow_repeats: int = 5, kernel: str = "rbf", **shared: Any
) -> pd.DataFrame:
    """Table 1: `fit_seconds` and `transform_seconds` of every method, median over rounds with the fastest and slowest.

    Setting `this package` or `scikit-learn`; of an autoencoder scikit-learn has none. Its solvers are its defaults.

    Args:
        fit: rows to fit (m, D).
        X: rows to transform (n, D).
        dim: size they are reduced to.
        repeats: rounds that count.
        slow_repeats: the same, of methods whose fit takes longer than half a second.
        kernel: of kernel PCA.
        shared: columns common to all rows.
    """
    check_dim(dim, limit=fit.shape[1] - 1)
    options: dict[str, dict[str, Any]] = {"kpca": {"kernel": kernel}}
    makers: dict[tuple[str, str], Callable[[], Any]] = {
        (label, OURS): partial(make_reducer, name, dim, **options.get(name, {}))
        for name, label in REDUCER_NAMES.items()
        if label in ZHANG_METHODS
    }
    makers |= {
        ("PCA", PEER): lambda: PCA(dim, random_state=0),
        ("SVD", PEER): lambda: TruncatedSVD(dim, random_state=0),
        ("KPCA", PEER): lambda: KernelPCA(dim, kernel=kernel, random_state=0),
        ("GRP", PEER): lambda: GaussianRandomProjection(dim, random_state=0),
    }
    timed = measure(makers, fit, X, repeats=repeats, slow_repeats=slow_repeats)
    return make_rows([row for (label, who), t in timed.items() for row in seconds_rows(label, who, dim, t)], **shared)


def seconds_rows(method: str, setting: str, dim: int, timed: Timed) -> list[dict[str, Any]]:
    """The two rows of one method."""
    return [
        {
            "method": method,
            "setting": setting,
            "dim": dim,
            "metric": f"{what}_seconds",
            "value": float(np.median(t)),
            "ci_low": min(t),
            "ci_high": max(t),
            "seconds": float(sum(t)),
        }
        for what, t in zip(("fit", "transform"), timed, strict=True)
    ]


def inner_size(hidden_dim: int, dim: int) -> int:
    """The layer between D and d: their geometric mean, so that both steps shrink alike."""
    return round(float(np.sqrt(hidden_dim * dim)))


def depth_rows(
    table: TextTable, task: Task, dims: Sequence[int], store: Store, *, timed_dim: int, repeats: int = 2, **shared: Any
) -> pd.DataFrame:
    """Scores of both depths at every dim with the deep one's lead, and their seconds at one dim; inductive.

    Args:
        table: embeddings of the task's texts.
        task: what they are judged by.
        dims: sizes that are scored.
        store: where reduced embeddings are kept.
        timed_dim: size at which seconds are taken.
        repeats: rounds of the timing.
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
    scores = suite.suite_rows(lines, {task.name: task.judged}, store, rivals=deep_over_shallow, **shared)
    makers: dict[str, Callable[[], Any]] = {
        SHALLOW: partial(make_reducer, "autoencoder", timed_dim, seed=seed),
        DEEP: partial(make_reducer, "autoencoder", timed_dim, seed=seed, hidden_layers=(inner_size(D, timed_dim),)),
    }
    timed = measure(makers, fit, X, repeats=repeats, slow_repeats=repeats)
    seconds = [row for label, t in timed.items() for row in seconds_rows(label, OURS, timed_dim, t)]
    return pd.concat([scores, make_rows(seconds, **shared)], ignore_index=True)


def deep_over_shallow(lines: Sequence[Contender]) -> list[tuple[int, int]]:
    """Three hidden layers against one, at equal size."""
    return [
        (a, b)
        for a, deep in enumerate(lines)
        for b, shallow in enumerate(lines)
        if (deep.method, shallow.method, deep.dim) == (DEEP, SHALLOW, shallow.dim)
    ]
