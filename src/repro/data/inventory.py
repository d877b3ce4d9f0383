"""What is there and whether it is what it should be: the rows behind `repro data list` and `repro data check`."""

import re
from collections import Counter
from typing import NamedTuple

from repro.data.local import load_local, local_path
from repro.data.spec import DATASETS, DatasetSpec, get_spec
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
    rows = []
    for spec in DATASETS.values():
        try:
            local = "yes" if local_path(spec) else ""
        except InputError:
            local = "–"
        pinned = spec.hub is not None and PINNED.fullmatch(spec.hub.revision or "")
        hub = "–" if spec.hub is None else spec.hub.id + ("" if pinned else " (not pinned)")
        sizes = " / ".join(f"{size:,}" for size in spec.sizes.values())
        row = {"name": spec.name, "title": spec.title, "kind": spec.kind, "rows": sizes}
        row |= {"splits": " / ".join(spec.splits), "local": local, "hub": hub}
        rows.append({**row, "microworld": spec.microworld, "licence": spec.licence})
    return rows


def _check_one(spec: DatasetSpec, text: str) -> list[CheckRow]:
    """The splits and subsets of one dataset."""
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
        if isinstance(data, ScoredPairs):
            found = Counter(data.subsets.tolist())
            for subset, size in spec.subset_sizes.items():
                count = found[subset]
                rows.append(CheckRow(spec.name, f"{split}:{subset}", count, (size,), count == size, ""))
    return rows
