"""Lines and tasks: embeddings of all texts by one method at one size, and the sets that they are
judged on.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from repro import data
from repro.data.samples import gold_paragraphs
from repro.data.sampling import take
from repro.evaluation.answers import is_yes_no
from repro.evaluation.shared import Weights
from repro.sets import DataSet, Retrieval, ScoredPairs
from repro.types import Array, InputError

SEVEN_SETS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")
"""The similarity sets that papers average over; only all seven have an average."""


@dataclass(frozen=True)
class TextTable:
    """Embeddings X of distinct texts, looked up by text; a sweep over dims or tasks adds no forward
    pass.
    """

    index: Mapping[str, int]
    X: Array

    def __getitem__(self, texts: Sequence[str]) -> Array:
        """Rows of the given texts (n, dim), in their order."""
        try:
            return self.X[[self.index[text] for text in texts]]
        except KeyError as error:
            raise InputError(f"{error.args[0]!r} was not encoded with the others") from error

    def map(self, project: Callable[[Array], Array]) -> "TextTable":
        """The same texts under a projection of their embeddings, such as a pooler."""
        return TextTable(self.index, project(self.X))


@dataclass(frozen=True)
class Line:
    """One line of a table: the embeddings of all texts by one method at one size."""

    method: str
    dim: int | None  # None where it differs between the tasks
    # One table of all tasks; or one by task, where something is fitted for each
    tables: TextTable | Mapping[str, TextTable]
    setting: str = ""  # What a reducer was fitted on; empty where nothing was
    readout: str = "encoder"
    backbone: str | None = None  # Named only where lines differ in it
    n_train: int | None = None  # Said only where lines differ in it
    read: Mapping[str, Any] = field(default_factory=dict)
    """Columns that say how its encoder was trained and is read, as far as that is known."""

    @property
    def columns(self) -> dict[str, Any]:
        """Columns of its rows."""
        named = {
            "method": self.method,
            "dim": self.dim,
            "readout": self.readout,
            "setting": self.setting,
        }
        named |= self.read
        differing = {"backbone": self.backbone, "n_train": self.n_train}
        return named | {name: value for name, value in differing.items() if value is not None}

    @property
    def table(self) -> TextTable:
        """The embeddings of all tasks' texts."""
        if not isinstance(self.tables, TextTable):
            raise InputError(f"{self.method} has embeddings by task: {', '.join(self.tables)}")
        return self.tables

    def on(self, task: str) -> TextTable:
        """The embeddings of a task's texts."""
        return self.tables if isinstance(self.tables, TextTable) else self.tables[task]


@dataclass(frozen=True)
class Task(Mapping[str, DataSet]):
    """What lines are judged on: the splits of one dataset, by name."""

    name: str
    splits: Mapping[str, DataSet]
    available: Mapping[str, int] = field(default_factory=dict)  # Rows of each split before a draw
    # Where all rows are judged: the parts, tasks by name
    folds: Mapping[str, Any] = field(default_factory=dict)
    # Resamples of what is judged; None draws them for this task alone
    weights: Weights | None = None

    def __getitem__(self, split: str) -> DataSet:
        if split not in self.splits:
            raise InputError(
                f"{self.name!r} has no split {split!r}: it has {', '.join(self.splits)}"
            )
        return self.splits[split]

    def __contains__(self, split: object) -> bool:
        return split in self.splits

    def get(self, split: str, default: Any = None) -> Any:
        """A split, or the default where there is none of that name."""
        return self.splits.get(split, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self.splits)

    def __len__(self) -> int:
        return len(self.splits)

    @property
    def judged(self) -> DataSet:
        """The test split, or the whole set where there is none."""
        return self.splits["test"] if "test" in self.splits else next(iter(self.splits.values()))

    @property
    def pairs(self) -> ScoredPairs:
        """What is judged, as scored pairs."""
        if not isinstance(self.judged, ScoredPairs):
            raise InputError(f"{self.name!r} is not a set of scored pairs")
        return self.judged


def load_tasks(
    names: Sequence[str],
    source: str,
    *,
    pairs: int | None = None,
    probe_rows: int | None = None,
    whole: bool = False,
) -> dict[str, Task]:
    """Datasets as tasks, by name: dev and test of scored pairs, all splits of the others.

    So many `pairs` are kept of every split of scored pairs, and `probe_rows` of every other one,
    both drawn at random; None keeps all. If sets that are not of scored pairs are judged `whole`,
    no split of them is set apart to learn from: folds of all their rows are judged by the others.
    """
    tasks = {}
    for name in names:
        splits = data.load_splits(name, source=source, text="senteval")
        graded = isinstance(next(iter(splits.values())), ScoredPairs)
        used: dict[str, DataSet] = {}
        for split, rows in splits.items():
            if not graded:
                used[f"part: {split}" if whole else split] = take(rows, probe_rows)
            elif split in ("dev", "test"):
                used[split] = take(rows, pairs)
        tasks[name] = Task(name, used)
    return tasks


def sets_of(tasks: Mapping[str, Mapping[str, DataSet]]) -> list[DataSet]:
    """All sets of some tasks."""
    return list(chain.from_iterable(splits.values() for splits in tasks.values()))


def parts_of(tasks: Mapping[str, Mapping[str, DataSet]]) -> dict[str, dict[str, DataSet]]:
    """What has to be encoded of some tasks: an entry of the store per split, which other pages may
    share.
    """
    parts = {}
    for name, splits in tasks.items():
        for split, rows in splits.items():
            parts[f"{name}/{split}"] = {split: rows}
    return parts


def describe(task: Retrieval) -> str:
    """How many questions, paragraphs and gold paragraphs, in a line."""
    judgements, gold = sum(map(is_yes_no, task.answers or ())), len(gold_paragraphs(task))
    of_questions = f"{len(task.queries):,} questions, {judgements} of them answered by yes or no"
    return (
        f"{of_questions}; {len(task.documents):,} paragraphs, {gold:,} of them supporting "
        f"({task.source})"
    )
