"""What is there and whether it is what it should be: the rows behind `repro data list` and `repro data check`."""

import re
from collections import Counter
from typing import NamedTuple

from repro.data.local import load_local, local_path
from repro.data.registry import DATASETS, get_spec
from repro.data.spec import DatasetSpec
from repro.sets import ScoredPairs
from repro.types import InputError

PINNED = re.compile("[0-9a-f]{40}")


class CheckRow(NamedTuple):
    """One count of one dataset, found against expected."""

    name: str
    split: str
    """The split, or `split:subset`."""
    found: int | None
    """Rows in the local file; None if it could not be read."""
    expected: tuple[int, ...]
    """The counts that are right: the local file's own, and the published one where that differs."""
    ok: bool
    note: str


def check(name: str | None = None, *, text: str = "senteval") -> list[CheckRow]:
    """Count the rows of one local dataset, or of all, and compare with what they should be.

    A file that is missing or malformed gives a row with found=None and the reason as its note.

    Raises:
        InputError: if the name is unknown.
    """
    specs = [get_spec(name)] if name is not None else list(DATASETS.values())
    return [row for spec in specs for row in _check_one(spec, text)]


def describe() -> list[dict[str, str]]:
    """One row per dataset, as strings for a table: what it is, its sizes, and where it can be had from."""
    return [
        {
            "name": spec.name,
            "title": spec.title,
            "kind": spec.kind,
            "rows": " / ".join(f"{size:,}" for size in spec.sizes.values()),
            "splits": " / ".join(spec.splits),
            "local": _local_state(spec),
            "hub": _hub_state(spec),
            "microworld": spec.microworld,
            "licence": spec.licence,
        }
        for spec in DATASETS.values()
    ]


def _check_one(spec: DatasetSpec, text: str) -> list[CheckRow]:
    rows = []
    for split, official in spec.sizes.items():
        local = spec.local_sizes.get(split, official)
        expected = (local,) if local == official else (local, official)
        try:
            data = load_local(spec, split, text=text)
        except InputError as error:
            rows.append(CheckRow(spec.name, split, None, expected, False, str(error)))
            continue
        note = spec.note if local != official else ""
        rows.append(CheckRow(spec.name, split, len(data), expected, len(data) in expected, note))
        if spec.subset_sizes and isinstance(data, ScoredPairs):
            found = Counter(data.subsets.tolist())
            for subset, size in spec.subset_sizes.items():
                count = found.get(subset, 0)
                rows.append(CheckRow(spec.name, f"{split}:{subset}", count, (size,), count == size, ""))
    return rows


def _local_state(spec: DatasetSpec) -> str:
    try:
        local_path(spec)
    except InputError:
        return "–"
    return "yes"


def _hub_state(spec: DatasetSpec) -> str:
    if spec.hub is None:
        return "–"
    return spec.hub.id + ("" if PINNED.fullmatch(spec.hub.revision or "") else " (not pinned)")
