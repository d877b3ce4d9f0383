"""The datasets of SBERT-LP (2021), and the sentences that its mapping may learn from (PROTOCOLS §4.2)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from repro import data
from repro.models.encoder import merge_equal
from repro.runs.lines import Task
from repro.sets import DataSet, ScoredPairs, texts_of
from repro.types import InputError

ROWS = {"embedded": 250}  # rows of each split that a profile keeps; all where it names none
SHARED_ROWS: dict[str, dict[str | tuple[str, str], int]] = {
    "embedded": {("stsb", "train"): 500, ("stsb", "test"): 500, "trec": 500}
}
"""other numbers for splits that the pages on Zhang et al. encode as well"""
FOREIGN = "nli"  # training sentences of sets that have none: those SBERT learned from
FOREIGN_ROWS = 2_500
"""pairs of them that are kept at most: a mapping is fitted on their sentences, in memory that grows with the square"""


@dataclass(frozen=True)
class Tasks:
    """Splits of some datasets, and how many rows each had before the draw."""

    splits: Mapping[str, Mapping[str, DataSet]]
    available: Mapping[tuple[str, str], int]

    @property
    def parts(self) -> dict[str, dict[str, DataSet]]:
        """What has to be encoded: an entry of the store per split, which other pages may share."""
        return {f"{name}/{s}": {s: part} for name, splits in self.splits.items() for s, part in splits.items()}

    def only(self, names: Sequence[str]) -> dict[str, Task]:
        """Some of the datasets, to be judged."""
        return {name: Task(name, self.splits[name]) for name in names}

    def describe(self, names: Sequence[str]) -> str:
        """How many rows of each dataset are judged, in words: of the test split, or the whole set without one."""
        said, drawn = [], False
        for name, task in self.only(names).items():
            kept, every = (
                len(task.judged),
                self.available[name, "test" if "test" in task.splits else next(iter(task.splits))],
            )
            drawn |= kept < every
            said.append(f"{name} {kept:,} of {every:,}" if kept < every else f"{name} all {kept:,}")
        return ", ".join(said) + ("; drawn at random" if drawn else "")


def load_tasks(names: Iterable[str], source: str, *, profile: str = "paper", rows: int | None = None) -> Tasks:
    """The splits of some datasets, with `rows` of each, drawn at random; 0 keeps all, None as many as the profile."""
    loaded = {name: data.load_splits(name, source=source) for name in names}
    splits = {
        name: {split: data.take(part, kept(profile, name, split, rows)) for split, part in own.items()}
        for name, own in loaded.items()
    }
    return Tasks(splits, {(name, split): len(part) for name, own in loaded.items() for split, part in own.items()})


def kept(profile: str, name: str, split: str, rows: int | None) -> int | None:
    """Rows to keep of a split: as asked, all for 0, and the profile's number for None."""
    shared = SHARED_ROWS.get(profile, {})
    asked = shared.get((name, split), shared.get(name, ROWS.get(profile))) if rows is None else rows or None
    return min(asked or FOREIGN_ROWS, FOREIGN_ROWS) if name == FOREIGN else asked


def sentences(*parts: DataSet) -> list[str]:
    """The distinct sentences of some splits, both sides of pairs, in order of first appearance."""
    return merge_equal([text for part in parts for text in texts_of(part)])[0]


def scored(part: DataSet) -> ScoredPairs:
    """The part as scored pairs.

    Raises:
        InputError: if it is something else.
    """
    if not isinstance(part, ScoredPairs):
        raise InputError(f"{part.name} is not a set of scored pairs")
    return part
