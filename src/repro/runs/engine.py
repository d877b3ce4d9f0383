"""Lines × tasks × scorer × contrasts: every score, the average and chosen leads, all on shared
resamples.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd

from repro.evaluation.shared import Weights, sentence_weights, shared_weights
from repro.evaluation.stats import RESAMPLES, Resampled
from repro.methods import AVERAGE, MAJORITY
from repro.rows import make_rows
from repro.runs.lines import SEVEN_SETS, Line, Task
from repro.runs.scorers import Judged, Scorer, similarity
from repro.terminal import progress_bar


def similarities(
    lines: Sequence[Line],
    tasks: Mapping[str, Task],
    seed: int,
) -> dict[str, Resampled]:
    """Spearman of all lines by set, each set on shared resamples; of the seven sets only STS-B and
    their average.
    """
    whole = set(tasks) == set(SEVEN_SETS)
    drawn = drawn_together(tasks, seed) if whole else tasks
    by_set = {name: next(similarity(lines, task, seed)) for name, task in drawn.items()}
    if whole:
        by_set = {"stsb": by_set["stsb"], AVERAGE: _mean(list(by_set.values()))}
    return {name: judged.scores for name, judged in by_set.items()}


def drawn_together(
    tasks: Mapping[str, Task],
    seed: int,
    draw: Callable[..., dict[str, Weights]] = shared_weights,
) -> dict[str, Task]:
    """The tasks with resamples in which an item has one weight in all tasks that hold it."""
    weights = draw({name: task.judged for name, task in tasks.items()}, seed=seed)
    return {name: replace(task, weights=weights[name]) for name, task in tasks.items()}


def widths_of_average(
    lines: Sequence[Line],
    tasks: Mapping[str, Task],
    seed: int,
) -> pd.DataFrame:
    """Half-widths of the 95 % intervals of the average similarity of lines, and of each later
    line's lead over the first, in points: of sets drawn each by itself; with one weight per pair in
    all of them; with one weight per cluster of pairs that share sentences.
    """
    ways = {
        "each set by itself": tasks,
        "one weight per pair": drawn_together(tasks, seed),
        "sentence clusters": drawn_together(tasks, seed, sentence_weights),
    }
    halves = {}
    for way, drawn in ways.items():
        of_tasks = [next(similarity(lines, task, seed)) for task in drawn.values()]
        scores = _mean(of_tasks).scores
        shown = {line.method: scores[k] for k, line in enumerate(lines)}
        for k, line in enumerate(lines[1:], start=1):
            shown[f"{line.method} − {lines[0].method}"] = scores[k] - scores[0]
        ends = {name: score.interval for name, score in shown.items()}
        halves[way] = {name: 50 * (e.high - e.low) for name, e in ends.items()}
    table = pd.DataFrame(halves).rename_axis("line").reset_index()
    for way in list(ways)[1:]:
        table[f"{way}, times as wide"] = table[way] / table["each set by itself"]
    return table


def score_rows(
    lines: Sequence[Line],
    tasks: Mapping[str, Task],
    scorer: Scorer,
    *,
    contrasts: Sequence[Callable[[Line, Line], bool]] = (),
    average: bool = False,
    **shared: Any,
) -> pd.DataFrame:
    """Score of every line on every task, their averages, and leads of some lines over others with
    paired intervals.

    A line is compared with another where one of the contrasts says so of the two. A lead is a row
    of method `A − B` and metric `…_lead`, at the size of the first, and where the second is fitted
    on nothing in the setting of the first. The average over the tasks is a dataset of its own; in
    its resamples an item has one weight in all tasks that hold it. Folds and bootstrap have the
    `seed` that the rows share.
    """
    rows: list[dict[str, Any]] = []
    if average:
        tasks = drawn_together(tasks, int(shared["seed"]))
    bar = progress_bar(tasks.items(), desc="scoring", show=True)
    by_task = {name: list(scorer(lines, task, int(shared["seed"]))) for name, task in bar}
    if average:
        by_task[AVERAGE] = [_mean(of_metric) for of_metric in zip(*by_task.values(), strict=True)]
    for name, metrics in by_task.items():
        for judged in metrics:
            rows += [{"dataset": name, **row} for row in _rows_of(judged, lines, contrasts)]
    return make_rows(rows, **shared)


def _rows_of(
    judged: Judged,
    lines: Sequence[Line],
    contrasts: Sequence[Callable[[Line, Line], bool]],
) -> Iterator[dict[str, Any]]:
    """What the majority class gives, the score of every line, and leads, all by one metric."""
    scores, metric = judged.scores, dict[str, Any](metric=judged.metric)
    if judged.floor is not None:
        yield {"method": MAJORITY, **metric, "value": judged.floor}
    metric["resamples"] = len(scores.draws) if isinstance(scores, Resampled) else RESAMPLES
    for k, line in enumerate(lines):
        yield {**line.columns, **metric, **scores[k].columns}
    for (a, first), (b, second) in permutations(enumerate(lines), 2):
        if any(contrast(first, second) for contrast in contrasts):
            lead = {
                "method": f"{first.method} − {second.method}",
                "setting": second.setting or first.setting,
                "dim": first.dim,
                "metric": f"{judged.metric}_lead",
                "resamples": metric["resamples"],
            }
            yield {**second.columns, **lead, **(scores[a] - scores[b]).columns}


def _mean(judged: Sequence[Judged]) -> Judged:
    """The mean over tasks, resample by resample."""
    floors = [of_task.floor for of_task in judged if of_task.floor is not None]
    mean = Resampled.averaged([of_task.scores for of_task in judged])
    return Judged(judged[-1].metric, mean, float(np.mean(floors)) if floors else None)
