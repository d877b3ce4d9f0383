"""Encoders with a name, and the lines of tables: what is judged, apart from what judges it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from repro.runs.embeddings import TextTable, encode_tasks
from repro.runs.published import as_published
from repro.sets import DataSet
from repro.store import Store
from repro.types import Encoder, InputError


@dataclass(frozen=True)
class Named:
    """An encoder with a name, not loaded until something has to be encoded."""

    name: str
    """what rows and figures call it"""
    make: Callable[[], Encoder]
    identity: str
    """digest of everything that decides its output, length of rows aside"""
    backbone: str = ""
    """network it stands on; empty where that is its name, or where it has none"""
    n_train: int | None = None
    """texts or pairs that this book trained or fitted it on; None where it came as it is"""

    def embed(self, parts: Mapping[str, Mapping[str, DataSet]], store: Store, *, progress: bool = True) -> TextTable:
        """Embeddings of all texts of some parts, as its authors publish them; an entry of the store for each part."""
        table = encode_tasks(self.make, self.identity, parts, store, progress=progress)
        return as_published(self.backbone or self.name, table)


@dataclass(frozen=True)
class Line:
    """One line of a table: the embeddings of all texts by one method at one size."""

    method: str
    dim: int | None
    """None where it differs between the tasks"""
    tables: TextTable | Mapping[str, TextTable]
    """of all tasks; or by task, where something is fitted for each"""
    setting: str = ""
    """what a reducer was fitted on; empty where nothing was"""
    readout: str = "encoder"
    backbone: str | None = None
    """where lines differ in it"""
    n_train: int | None = None
    """where lines differ in it"""

    @property
    def columns(self) -> dict[str, Any]:
        """Columns of its rows."""
        named = {"method": self.method, "dim": self.dim, "readout": self.readout, "setting": self.setting}
        own = {"backbone": self.backbone, "n_train": self.n_train}
        return named | {name: value for name, value in own.items() if value is not None}

    @property
    def table(self) -> TextTable:
        """The embeddings of all tasks' texts.

        Raises:
            InputError: where every task has its own.
        """
        if not isinstance(self.tables, TextTable):
            raise InputError(f"{self.method} has embeddings by task: {', '.join(self.tables)}")
        return self.tables

    def on(self, task: str) -> TextTable:
        """The embeddings of a task's texts."""
        return self.tables if isinstance(self.tables, TextTable) else self.tables[task]
