"""Tasks: the splits of a dataset, as many rows of each as a page has time for."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from repro import data
from repro.models.packing import merge_equal
from repro.sets import DataSet, ScoredPairs, texts_of
from repro.types import InputError

Rows: TypeAlias = int | Callable[[str, DataSet], int | None] | None
"""rows to keep of every split, drawn at random: one number, or a function of a dataset's name and split; None is all"""


@dataclass(frozen=True)
class Task:
    """What lines are judged on: the splits of one dataset, and how many rows each had before the draw."""

    name: str
    splits: Mapping[str, DataSet]
    available: Mapping[str, int]

    @property
    def judged(self) -> DataSet:
        """The test split, or the whole set where there is none."""
        return self.splits["test"] if "test" in self.splits else next(iter(self.splits.values()))

    @property
    def pairs(self) -> ScoredPairs:
        """What is judged, as scored pairs.

        Raises:
            InputError: if it is something else.
        """
        if not isinstance(self.judged, ScoredPairs):
            raise InputError(f"{self.name!r} is not a set of scored pairs")
        return self.judged

    @property
    def parts(self) -> dict[str, dict[str, DataSet]]:
        """What has to be encoded: an entry of the store per split, which other pages may share."""
        return {f"{self.name}/{split}": {split: part} for split, part in self.splits.items()}

    def only(self, *splits: str) -> "Task":
        """The task with some of its splits."""
        return Task(self.name, {s: self.splits[s] for s in splits}, {s: self.available[s] for s in splits})

    def kept_of(self, split: str | None = None) -> str:
        """How many of how many rows a split keeps, in words; None is the one that is judged."""
        name = split or next(s for s, part in self.splits.items() if part is self.judged)
        kept, available = len(self.splits[name]), self.available[name]
        return f"{kept:,} of {available:,}" if kept < available else f"all {available:,}"

    def describe(self) -> str:
        """How many rows each split keeps, in words."""
        said = "; ".join(f"{split}: {self.kept_of(split)}" for split in self.splits)
        return said + (", drawn at random" if any(" of " in self.kept_of(split) for split in self.splits) else "")


def load_tasks(
    names: Iterable[str],
    source: str,
    *,
    rows: Rows = None,
    pair_splits: Sequence[str] | None = None,
    text: str = "senteval",
) -> dict[str, Task]:
    """Tasks by name, in the order given.

    Args:
        names: of datasets.
        source: local, hub or microworld.
        rows: how many are kept of each split.
        pair_splits: those to keep of scored pairs, of which few pages train on any; None keeps all.
        text: form of the STS sets from local files, `senteval` or `raw`.
    """
    tasks = {}
    for name in dict.fromkeys(names):
        found = data.load_splits(name, source=source, text=text)
        if pair_splits is not None and isinstance(next(iter(found.values())), ScoredPairs):
            found = {split: found[split] for split in found if split in pair_splits}
        limits = {split: rows(name, part) if callable(rows) else rows for split, part in found.items()}
        kept = {split: data.take(part, limits[split]) for split, part in found.items()}
        tasks[name] = Task(name, kept, {split: len(part) for split, part in found.items()})
    return tasks


def of_labelled(rows: int | None) -> Rows:
    """So many rows of what has labels, which a classifier is fitted on; scored pairs stay whole."""
    return lambda name, part: None if isinstance(part, ScoredPairs) else rows


def parts_of(tasks: Mapping[str, Task]) -> dict[str, dict[str, DataSet]]:
    """What has to be encoded of some tasks, an entry of the store per split."""
    return {name: part for task in tasks.values() for name, part in task.parts.items()}


def describe(tasks: Mapping[str, Task], split: str | None = None) -> str:
    """How many rows of each task are judged, in words."""
    said = [f"{name} {task.kept_of(split)}" for name, task in tasks.items()]
    return ", ".join(said) + ("; drawn at random" if any(" of " in each for each in said) else "")


def sentences(*parts: DataSet) -> list[str]:
    """The distinct sentences of some splits, both sides of pairs, in order of first appearance."""
    return merge_equal([text for part in parts for text in texts_of(part)])[0]
