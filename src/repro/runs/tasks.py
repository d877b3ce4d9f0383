"""Tasks: what lines are judged on."""

from collections.abc import Mapping
from dataclasses import dataclass

from repro.sets import DataSet, ScoredPairs
from repro.types import InputError


@dataclass(frozen=True)
class Task:
    """What lines are judged on: the splits of one dataset."""

    name: str
    splits: Mapping[str, DataSet]

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
