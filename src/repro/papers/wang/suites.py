"""Two-step training against reducing afterwards, on whole suites of tasks (Wang et al., 2023, Tables 3 and 4)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from repro.methods import FULL, REDUCED, STEP_2, TRAINED_NARROW, TWO_STEP, fitted_on
from repro.papers.wang.lines import SUITES
from repro.papers.wang.two_step import stages_at
from repro.reducers import make_reducer
from repro.runs import suite
from repro.runs.embeddings import TextTable
from repro.runs.reduce import within_reach
from repro.runs.suite import Contender
from repro.runs.sweep import Sweep, TwoStep, states_of
from repro.runs.texts import training_sentences
from repro.seeding import make_rng
from repro.sets import DataSet
from repro.store import Store
from repro.types import Array, InputError


def fit_sets_of(sweep: Sweep, encoder: int, sizes: Sequence[int], store: Store) -> dict[int, Array]:
    """States h (n, hidden_dim) of n training sentences drawn at random, by n; smaller sets lie within larger ones.

    The paper takes the first 2,000 lines of a file that is itself a random sample of Wikipedia.
    """
    cell = sweep.cells[encoder]
    texts = training_sentences(replace(cell.config, sentences=max(sizes)), store)
    table = states_of(cell, texts, store)
    order = make_rng(cell.config.seed, "fit set").permutation(len(texts))
    return {n: table[[texts[row] for row in order[:n]]] for n in sizes}


def contenders(
    sweep: Sweep,
    trained: TwoStep,
    fit_sets: Mapping[int, Array],
    dims: Sequence[int],
    *,
    n_neighbors: int = 5,
    reference: int | None = None,
) -> Iterator[Contender]:
    """Every line of the tables: the full size in both readouts, then per dim the reducers and both trainings.

    Each reducer is fitted once, on the states of the encoder trained at full size, at the largest dim it can give.

    Args:
        sweep: end-to-end trained encoders; must hold `reference` and every dim.
        trained: two-step training on the same sweep.
        fit_sets: states that reducers are fitted on, by their number; all reducers use the smallest set, PCA all.
        dims: reduced sizes.
        n_neighbors: of Isomap and LLE.
        reference: dim of the full-size model; None is the hidden size.

    Raises:
        InputError: for a dim that was not trained.
    """
    full = reference or next(iter(sweep.cells.values())).pooler.hidden_dim
    missing = [d for d in (full, *dims) if d not in sweep.cells]
    if missing:
        raise InputError(
            f"dim {missing[0]} was not trained: the sweep holds {', '.join(map(str, sorted(sweep.cells)))}"
        )
    states = sweep.embeddings(full)
    yield Contender(FULL, full, "encoder", "", states)
    yield Contender(FULL, full, "pooler", "", sweep.embeddings(full, full))
    for label, name in REDUCED.items():
        options = {} if name == "pca" else {"n_neighbors": n_neighbors}
        for n in sorted(fit_sets) if name == "pca" else [min(fit_sets)]:
            reachable = [d for d in dims if d <= min(n - 1, fit_sets[n].shape[1])]
            found = within_reach(name, reachable, partial(_fitted, name, fit_sets[n], options))
            if found is not None:
                reducer, reached = found
                Y = reducer.transform(states.X)
                for d in (d for d in dims if d in reached):
                    yield Contender(label, d, "encoder", fitted_on(n), TextTable(states.index, reducer.prefix(Y, d)))
    for d in dims:
        yield Contender(TRAINED_NARROW, d, "pooler", "", sweep.embeddings(d, d))
        yield Contender(TWO_STEP, d, "pooler", "", stages_at(sweep, trained, d)[STEP_2])


def _fitted(name: str, fit: Array, options: Mapping[str, int], dim: int) -> Any:
    return make_reducer(name, dim, **options).fit(fit)


def suite_rows(
    lines: Sequence[Contender], tasks: Mapping[str, Mapping[str, DataSet]], store: Store, **options: Any
) -> pd.DataFrame:
    """`repro.runs.suite.suite_rows` with the paper's comparisons; all seven datasets of a table have an average."""
    whole = any(set(tasks) == set(names) for names in SUITES.values())
    return suite.suite_rows(lines, tasks, store, rivals=compared, average=whole, **options)


def compared(lines: Sequence[Contender]) -> Iterator[tuple[int, int]]:
    """Which lines are compared: two-step training and PCA with the others of their dim, two-step with full size."""
    for a, line in enumerate(lines):
        for b, other in enumerate(lines):
            same = other.dim == line.dim and other.method not in (TWO_STEP, FULL)
            if line.method == TWO_STEP and (same or other.method == FULL):
                yield a, b
            if line.method == "PCA" and other.method in ("Isomap", "LLE") and same and line.setting == other.setting:
                yield a, b
