"""The judged sentences and the systems at hand that encode them, before any mapping."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from repro import data
from repro.models.packing import merge_equal
from repro.runs.lines import Line, Task
from repro.sets import DataSet, texts_of
from repro.store import Store
from repro.types import InputError
from rivals import SYSTEMS, Loaded, Missing, SystemConfig, load_system

ROWS, GENERATED_ROWS = 250, 48
"""Rows of each split that the embedded profile keeps; fewer of generated sentences, which judge
nobody.
"""
SHARED_ROWS = dict.fromkeys(
    [("stsb", "train"), ("stsb", "test"), ("trec", "train"), ("trec", "test")],
    500,
)
"""Of splits that the pages on Zhang et al. encode as well."""
FOREIGN = "nli"  # Training sentences of sets that have none: those SBERT learned from
FOREIGN_ROWS = 2_500
"""Pairs of them that are kept at most: a mapping is fitted on their sentences, in memory that grows
with the square.
"""
# Systems that generated sentences are shown to
SHOWN = ("glove", "bert_avg", "sbert_flow", "sbert", "minilm")


def load_tasks(
    names: Iterable[str],
    source: str,
    *,
    profile: str = "paper",
    rows: int | None = None,
) -> dict[str, Task]:
    """The splits of some datasets, with `rows` of each, drawn at random; 0 keeps all, None as many
    as the profile.
    """
    if rows is None and profile == "embedded" and source == "microworld":
        rows = GENERATED_ROWS
    tasks = {}
    for name in names:
        splits = data.load_splits(name, source=source)
        samples = {}
        available = {}
        for split, data_set in splits.items():
            samples[split] = data.take(data_set, kept(profile, name, split, rows))
            available[split] = len(data_set)
        tasks[name] = Task(name, samples, available)
    return tasks


def describe(tasks: Mapping[str, Task]) -> str:
    """How many rows of each dataset are judged, in words: of the test split, or the whole set
    without one.
    """
    clauses = []
    is_sample = False
    for name, task in tasks.items():
        n = len(task.judged)
        available = task.available[task.judged.split]
        clauses.append(f"{name} {n:,} of {available:,}" if n < available else f"{name} all {n:,}")
        is_sample = is_sample or n < available
    return ", ".join(clauses) + ("; drawn at random" if is_sample else "")


def kept(profile: str, name: str, split: str, rows: int | None) -> int | None:
    """Rows to keep of a split: as asked, all for 0, and the profile's number for None."""
    of_profile = SHARED_ROWS.get((name, split), ROWS) if profile == "embedded" else None
    count = of_profile if rows is None else rows or None
    return min(count or FOREIGN_ROWS, FOREIGN_ROWS) if name == FOREIGN else count


def sentences(*splits: DataSet) -> list[str]:
    """The distinct sentences of some splits, both sides of pairs, in order of first appearance."""
    return merge_equal([text for split in splits for text in texts_of(split)])[0]


def menu(source: str, mapped: Sequence[str]) -> list[str]:
    """The systems of a table, those that are mapped among them: all; on generated text, which
    judges nobody, a few.
    """
    listed = [name for name in SYSTEMS if source != "microworld" or name in (*SHOWN, *mapped)]
    return [*listed, *(name for name in mapped if name not in SYSTEMS)]  # Folders


def load_systems(
    names: Sequence[str],
    config: SystemConfig,
    store: Store,
) -> tuple[list[Loaded], pd.DataFrame]:
    """The systems whose weights are at hand, and a frame of those that are not: system, row, what
    is missing.
    """
    loaded: list[Loaded] = []
    missing = []
    for name in dict.fromkeys(names):
        try:
            loaded.append(load_system(name, config, store))
        except Missing as error:
            row = SYSTEMS[name].row or name
            missing.append({"system": name, "row": row, "missing": str(error)})
    if not loaded:
        reasons = "; ".join(f"{line['system']}: {line['missing']}" for line in missing)
        raise InputError(f"systems is {list(names)}: none of them is at hand ({reasons})")
    return loaded, pd.DataFrame(missing, columns=["system", "row", "missing"])


def encode_systems(
    systems: Sequence[Loaded],
    parts: Mapping[str, Mapping[str, DataSet]],
    store: Store,
) -> dict[str, Line]:
    """By name, every system as a line of a table, with the embeddings of all texts of some parts.

    Of several systems for one row of the paper the last, which is nearest to the paper's own, takes
    the row; the others go by their own names.
    """
    takes = {system.row: system.name for system in systems}
    lines = {}
    for system in systems:
        table = system.embed(parts, store)
        takes_row = system.row and takes[system.row] == system.name
        method = system.row if takes_row else Path(system.name).name
        lines[system.name] = Line(
            method,
            table.X.shape[1],
            table,
            backbone=system.backbone or system.name,
            n_train=system.n_train,
            read=system.read,
        )
    return lines
