"""Contenders on tasks that are given as plain splits: `score_rows` for lines whose papers name their own rivals."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pandas as pd

from repro.runs.embeddings import TextTable
from repro.runs.lines import Line, Task
from repro.runs.score import Classify, by_kind, score_rows
from repro.sets import DataSet
from repro.store import Store

Rivals: TypeAlias = Callable[[Sequence["Contender"]], Iterable[tuple[int, int]]]
"""which contenders are compared: pairs of positions, the first's lead over the second"""


@dataclass(frozen=True)
class Contender:
    """One line of a table: embeddings of all texts by one method at one dim."""

    method: str
    dim: int | None
    """None where it differs between the tasks"""
    readout: str
    setting: str
    """what a reducer was fitted on; empty where nothing was"""
    table: TextTable
    backbone: str | None = None
    """encoder of this line, where lines differ in it"""
    by_task: Mapping[str, TextTable] | None = None
    """embeddings by task instead of `table`, where a reducer is fitted for each task"""

    @property
    def line(self) -> Line:
        """The same for the engine."""
        tables = self.table if self.by_task is None else self.by_task
        return Line(self.method, self.dim, tables, self.setting, self.readout, self.backbone)

    def on(self, task: str) -> TextTable:
        """The embeddings of a task's texts."""
        return self.line.on(task)


def suite_rows(
    contenders: Sequence[Contender],
    tasks: Mapping[str, Mapping[str, DataSet]],
    store: Store,
    *,
    rivals: Rivals | None = None,
    protocol: str = "logreg",
    classify: Classify | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Score of every contender on every task, their averages, and chosen leads: see `score_rows`.

    Args:
        contenders: the lines of a table.
        tasks: the splits of each task, by name; all scored pairs, or all labelled.
        store: where fitted probes are kept.
        rivals: which lines are compared; None compares none.
        protocol: classifier protocol.
        classify: scores labelled tasks; None is a linear probe under `protocol`.
        options: of `score_rows`.
    """
    lines = [contender.line for contender in contenders]
    pairs = {(id(lines[a]), id(lines[b])) for a, b in (rivals(contenders) if rivals else ())}
    made = {name: Task(name, splits) for name, splits in tasks.items()}
    scorer = by_kind(store, protocol=protocol, classify=classify)
    return score_rows(lines, made, scorer, contrasts=[lambda a, b: (id(a), id(b)) in pairs], **options)
