"""Every system of the tables with the embeddings of all texts, and what is missing of those not at hand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from repro.papers.sbertlp.claims import lp
from repro.runs.embeddings import TextTable, as_published, encode_tasks
from repro.runs.suite import Contender
from repro.sets import DataSet
from repro.store import Store
from repro.types import InputError
from rivals import SYSTEMS, Loaded, Missing, SystemConfig, load_system


@dataclass(frozen=True)
class Encoded:
    """A system with the embeddings of all texts of a page."""

    loaded: Loaded
    table: TextTable
    method: str
    """the paper's row that it stands for, or its own name"""

    @property
    def backbone(self) -> str:
        """What it was made from."""
        return self.loaded.backbone or self.loaded.system.name

    @property
    def line(self) -> Contender:
        """The system itself, as a line of a table."""
        return Contender(self.method, self.table.X.shape[1], "encoder", "", self.table, self.backbone)

    def mapped(self, setting: str, by_task: Mapping[str, TextTable]) -> Contender:
        """The system under the mapping, fitted for each task, as a line of a table."""
        return Contender(lp(self.method), None, "encoder", setting, self.table, self.backbone, by_task)


def load_systems(
    names: Sequence[str], config: SystemConfig, store: Store, *, progress: bool = True
) -> tuple[list[Loaded], pd.DataFrame]:
    """The systems whose weights are at hand, and a frame of those that are not: system, row, what is missing.

    Raises:
        InputError: for an unknown name, or none at hand.
    """
    found: list[Loaded] = []
    missing = []
    for name in names:
        try:
            found.append(load_system(name, config, store, progress=progress))
        except Missing as error:
            missing.append({"system": name, "row": SYSTEMS[name].row or name, "missing": str(error)})
    if not found:
        raise InputError(f"systems is {list(names)}: none of them is at hand")
    return found, pd.DataFrame(missing, columns=["system", "row", "missing"])


def encode_systems(
    systems: Sequence[Loaded], parts: Mapping[str, Mapping[str, DataSet]], store: Store, *, progress: bool = True
) -> list[Encoded]:
    """Every text of some parts under every system, once.

    Of several systems for one row of the paper the last, which is nearest to the paper's own, takes the row; the others
    go by their own names.
    """
    takes = {loaded.system.row: loaded.system.name for loaded in systems}
    encoded = []
    for loaded in systems:
        row, name = loaded.system.row, loaded.system.name
        table = encode_tasks(loaded.encoder, loaded.identity, parts, store, progress=progress)
        table = as_published(loaded.backbone, table)
        encoded.append(Encoded(loaded, table, row if row and takes[row] == name else name))
    return encoded


def with_training(rows: pd.DataFrame, systems: Sequence[Encoded]) -> pd.DataFrame:
    """The rows with what each system was trained on: its own number of texts, not one number for all."""
    trained = {}
    for system in systems:
        trained[system.method] = system.loaded.n_train
        trained[lp(system.method)] = system.loaded.n_train
    first = rows["method"].str.split(" − ").str[0]
    return rows.assign(n_train=first.map(trained).astype("Int64"))
