"""What the pages of Wang et al. (2023) train and score: sweeps of encoders, their stages, and whole
suites of tasks.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import pandas as pd

from repro.data.samples import training_sentences
from repro.evaluation.stats import Resampled
from repro.methods import (
    END_TO_END,
    FULL,
    REDUCED,
    STEP_1,
    STEP_2,
    TRAINED_NARROW,
    TWO_STEP,
    UNTRAINED,
    fitted_on,
)
from repro.objectives import columns_of
from repro.reducers import reduced
from repro.rows import Row, make_rows
from repro.runs.engine import similarities
from repro.runs.lines import Line, Task, TextTable
from repro.runs.scorers import by_kind, spearman_of
from repro.runs.sweep import Sweep, TwoStep, states_of
from repro.seeding import make_rng
from repro.sets import ScoredPairs
from repro.store import Store
from repro.types import Array, InputError, check_dim, check_dims


def rows_of(sweep: Sweep, rows: Sequence[Mapping[str, Any]], **shared: Any) -> pd.DataFrame:
    """Rows with the columns that all numbers of a sweep share, and further shared ones."""
    return make_rows(rows, **{**columns_of(sweep.config), **shared})


def trained_line(sweep: Sweep, two_step: TwoStep | None = None) -> str:
    """What was trained, on what, and what of it lay in the store, in lines for the reader."""
    c = sweep.config
    n = len(sweep.cells)
    seconds = sum(cell.seconds for cell in sweep.cells.values())
    dropout = "as shipped" if c.dropout is None else c.dropout
    steps = ""
    if two_step is not None:
        steps = (
            f"\nstep 2, all dims and learning rates: {two_step.seconds:.1f} s"
            f"{' (found)' if two_step.hit else ''}\nopt by dim: {dict(two_step.opt)}"
        )
    return (
        f"{c.backbone}, {c.pooling} pooling, {c.sentences:,} examples of {c.corpus} ({c.source}), "
        f"batch {c.batch_size}, learning rate {c.learning_rate:g}, dropout {dropout}\n"
        f"{n} encoders: {sweep.hits} found in the store, {n - sweep.hits} trained now; training "
        f"took {seconds:.0f} s{steps}"
    )


def dims_rows(
    sweep: Sweep,
    tasks: Mapping[str, Task],
    store: Store,
    *,
    protocol: str = "logreg",
    **shared: Any,
) -> pd.DataFrame:
    """Score of every task for every trained dim, in both readouts, and what each dim changes from
    every wider one; labelled tasks are judged by the classifier of a `protocol`.

    A change is a row of metric `…_change` and setting `from <wider dim>`, of the pooler's readout,
    paired over items (Figure 2).
    """
    rows: list[Row] = []
    dims = sorted(sweep.cells, reverse=True)
    lines = [Line(END_TO_END, d, sweep.embeddings(d, d), readout="pooler") for d in dims]
    lines += [Line(END_TO_END, d, sweep.embeddings(d)) for d in dims]
    for name, task in tasks.items():
        judged = next(by_kind(store, protocol=protocol)(lines, task, sweep.config.seed))
        about = {"dataset": name, "setting": "test", "metric": judged.metric}
        for k, line in enumerate(lines):
            rows.append({**line.columns, **about, **judged.scores[k].columns})
        if judged.floor is not None:
            floor = {"metric": "majority_floor", "value": judged.floor, "readout": "pooler"}
            rows.append({"dataset": name, **floor})
        for (wide, first), (narrow, line) in combinations(enumerate(lines[: len(dims)]), 2):
            change = (judged.scores[narrow] - judged.scores[wide]).columns
            about = {
                "dataset": name,
                "metric": f"{judged.metric}_change",
                "setting": f"from {first.dim}",
            }
            rows.append({**line.columns, **about, **change})
    for dim, cell in sweep.cells.items():
        cost = {"metric": "train_seconds", "value": cell.seconds, "seconds": cell.seconds}
        rows.append({**cost, "dim": dim, "dataset": sweep.config.corpus, "readout": "pooler"})
    return rows_of(sweep, rows, **{"paper_table": "fig2", "method": END_TO_END, **shared})


# Algorithm 1: Tables 1 and 2


def stages_at(sweep: Sweep, trained: TwoStep, dim: int) -> dict[str, TextTable]:
    """Embeddings of all texts at one dim by stage: encoder_d + pooler_d, encoder_opt + pooler_d,
    the pooler anew.
    """
    opt = trained.opt[dim]
    return {
        END_TO_END: sweep.embeddings(dim, dim),
        STEP_1: sweep.embeddings(opt, dim),
        STEP_2: sweep.states[opt].map(trained.new_poolers[dim].project),
    }


def two_step_rows(
    sweep: Sweep,
    trained: TwoStep,
    tasks: Mapping[str, Task],
    **shared: Any,
) -> pd.DataFrame:
    """The blocks of Table 1 on every set (of the seven: on STS-B and their average), paired gains,
    and costs.

    Gains are of each step, of both, the first's less the second's (`steps`), and of the encoder's
    state (`alone`).
    """
    if any(trained.chosen_on == (task.pairs.name, task.pairs.split) for task in tasks.values()):
        raise InputError(
            f"{' '.join(trained.chosen_on)} chose opt and the poolers: report another split"
        )
    rows: list[Row] = []
    setting = f"test, select_by={trained.select_by}"
    dims = sorted(sweep.cells)
    lines = {(d, ""): Line(END_TO_END, d, sweep.embeddings(d), setting) for d in dims}
    for d in dims:
        for stage, table in stages_at(sweep, trained, d).items():
            lines[d, stage] = Line(stage, d, table, setting, "pooler")
    for dataset, scores in similarities(list(lines.values()), tasks, sweep.config.seed).items():
        for k, line in enumerate(lines.values()):
            score = {"metric": "spearman", **scores[k].columns}
            rows.append({"dataset": dataset, **line.columns, **score})
        place = {key: k for k, key in enumerate(lines)}
        rows += [{"dataset": dataset, **gain} for gain in _gain_rows(sweep, scores, place)]
    return rows_of(sweep, [*rows, *_cost_rows(sweep, trained)], setting=setting, **shared)


def _gain_rows(
    sweep: Sweep,
    scores: Resampled,
    place: Mapping[tuple[int, str], int],
) -> Iterator[Row]:
    """What each step gains at every dim, and on average over those that are no wider than the
    encoder (`…_mean`).

    `place` says where in the scores a dim and stage stand; the stage of the encoder's state alone
    is empty.
    """
    narrow = [d for d, cell in sweep.cells.items() if d <= cell.pooler.hidden_dim]
    for over in [*([d] for d in sweep.cells), narrow]:
        end_to_end, step_1, step_2, alone = (
            scores[[place[d, stage] for d in over]].mean()
            for stage in (END_TO_END, STEP_1, STEP_2, "")
        )
        gains = {
            ("gain", STEP_1): step_1 - end_to_end,
            ("gain", STEP_2): step_2 - step_1,
            ("gain_total", STEP_2): step_2 - end_to_end,
            ("gain_steps", STEP_1): (step_1 - end_to_end) - (step_2 - step_1),
            ("gain_alone", END_TO_END): alone - end_to_end,
        }
        dim = None if over is narrow else over[0]
        ending = "_mean" if over is narrow else ""
        for (gain_of, stage), gain in gains.items():
            columns = {"dim": dim, "readout": "pooler", "method": stage, **gain.columns}
            yield {**columns, "metric": f"spearman_{gain_of}{ending}"}


def _cost_rows(sweep: Sweep, trained: TwoStep) -> Iterator[Row]:
    """Which encoder each dim has chosen, and the seconds of both trainings."""
    for d, cell in sweep.cells.items():
        about = {"dataset": trained.chosen_on[0], "dim": d}
        choice = {"method": STEP_1, "readout": "encoder", "value": trained.opt[d]}
        yield {**about, "metric": "optimal_dim", **choice}
        cost = {END_TO_END: cell.seconds, STEP_2: trained.seconds / len(sweep.cells)}
        for stage, seconds in cost.items():
            spent = {"method": stage, "readout": "pooler", "value": seconds, "seconds": seconds}
            yield {**about, "metric": "train_seconds", **spent}


def before_after_rows(sweep: Sweep, dev: ScoredPairs, **shared: Any) -> pd.DataFrame:
    """Dev Spearman of the encoder readout: of the untrained backbone, and of every encoder after
    training.
    """
    # The same for all: the pooler is not read
    untrained = next(iter(sweep.cells.values())).dev_before
    rows: list[Row] = [{"value": untrained, "method": UNTRAINED}]
    rows += [
        {"value": spearman_of(sweep.embeddings(d), dev), "method": END_TO_END, "dim": d}
        for d in sweep.cells
    ]
    return rows_of(
        sweep,
        rows,
        metric="spearman",
        readout="encoder",
        dataset=dev.name,
        setting="dev",
        **shared,
    )


# Tables 3 and 4: training against reducing afterwards


def check_reducible(
    hidden_dim: int,
    dims: Sequence[int],
    fit_sentences: Sequence[int],
    n_neighbors: int,
) -> None:
    """Refuse, before anything is trained, dims, fit sets and neighbours that no reducer takes."""
    check_dims(fit_sentences, "fit_sentences", each="a number of fit_sentences")
    check_dim(n_neighbors, limit=min(fit_sentences) - 1, what="n_neighbors")
    if min(dims) > hidden_dim:
        raise InputError(f"dims are {list(dims)}: expected one up to {hidden_dim}, the full size")


def fit_sets_of(
    sweep: Sweep,
    encoder: int,
    sizes: Sequence[int],
    store: Store,
    *,
    first: bool = False,
) -> dict[int, Array]:
    """States h (n, hidden_dim) of n training sentences drawn at random, by n; smaller sets lie
    within larger ones.

    With `first` they are the first ones that the encoder was trained on, as in the paper: under its
    profile the first lines of a file that is itself a random sample of Wikipedia.
    """
    cell = sweep.cells[encoder]
    count = max(sizes)
    if first:
        sample = replace(cell.config, sentences=max(count, cell.config.sentences))
        texts = training_sentences(sample, store)[:count]
        chosen_texts = list(texts)
    else:
        texts = training_sentences(replace(cell.config, sentences=count), store)
        order = make_rng(cell.config.seed, "fit set").permutation(len(texts))
        chosen_texts = [texts[row] for row in order]
    table = states_of(cell, texts, store)
    return {n: table[chosen_texts[:n]] for n in sizes}


def suite_lines(
    sweep: Sweep,
    trained: TwoStep,
    fit_sets: Mapping[int, Array],
    dims: Sequence[int],
    store: Store,
    *,
    n_neighbors: int = 5,
) -> Iterator[Line]:
    """Every line of the tables: the full size in both readouts, then the reducers and both
    trainings at every dim.

    Each reducer is fitted once, on the states of the encoder trained at full size, at the largest
    dim it can give: PCA on every fit set, Isomap and LLE on the smallest.
    """
    full = next(iter(sweep.cells.values())).pooler.hidden_dim
    states = sweep.embeddings(full)
    yield Line(FULL, full, states)
    yield Line(FULL, full, sweep.embeddings(full, full), readout="pooler")
    for label, name in REDUCED.items():
        options = {} if name == "pca" else {"n_neighbors": n_neighbors}
        for n in sorted(fit_sets) if name == "pca" else [min(fit_sets)]:
            for d, Y in reduced(name, fit_sets[n], states.X, dims, store, **options):
                yield Line(label, d, TextTable(states.index, Y), fitted_on(n))
    for d in dims:
        yield Line(TRAINED_NARROW, d, sweep.embeddings(d, d), readout="pooler")
        yield Line(TWO_STEP, d, stages_at(sweep, trained, d)[STEP_2], readout="pooler")


def is_compared(line: Line, other: Line) -> bool:
    """Two-step training and PCA with the others of their dim, two-step training with the full size
    too.
    """
    same = other.dim == line.dim and other.method not in (TWO_STEP, FULL)
    reduced = (
        line.method == "PCA"
        and line.setting == other.setting
        and other.method.startswith(("Isomap", "LLE"))
    )
    return (same or other.method == FULL) if line.method == TWO_STEP else (same and reduced)
