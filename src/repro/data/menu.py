"""The menu of datasets: what is known about each before it is read, one record of
`assets/datasets.toml` for each.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from repro.paths import ASSETS
from repro.sets import Corpus, DataSet, LabelledPairs, LabelledTexts, ScoredPairs
from repro.types import one_of

FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "pairs": ("sentence1", "sentence2", "score"),
        "texts": ("text", "label"),
        "labelled_pairs": ("sentence1", "sentence2", "label"),
        "corpus": ("text",),
        "captions": ("caption", "image"),
    }
)
"""The columns that a kind needs, by the names that local files use, in the order in which its set
takes them.
"""
PINNED = re.compile("[0-9a-f]{40}")
"""A revision that names one commit, which no one can move."""


@dataclass(frozen=True)
class HubSource:
    """Where a dataset lies on the Hugging Face hub, and how its columns and labels map to ours."""

    id: str
    splits: Mapping[str, list[str]]  # Our split → the hub splits that are concatenated to make it
    config: str | None = None
    revision: str | None = None  # A pinned commit where one is known; None reads the newest
    # Our column → the hub's, where the names differ
    columns: Mapping[str, str] = field(default_factory=dict)
    # The hub's label → ours, where they differ
    labels: Mapping[str, str] = field(default_factory=dict)
    # Of a split, `{part}` for the hub's, where names do not tell the hub which they are
    data_files: str | None = None
    # Our split → another mirror, if this hides it
    elsewhere: Mapping[str, "HubSource"] = field(default_factory=dict)
    # Leave out blank texts: the mirror removed headers and kept the empty remainder
    drop_blank: bool = False
    note: str = ""  # Where count or text differ from the local file


@dataclass(frozen=True)
class DatasetSpec:
    """One dataset of the five documents."""

    name: str
    kind: str  # One of `FIELDS`, retrieval or vectors
    title: str
    sizes: Mapping[str, int]  # Rows per split as published
    licence: str
    file: str  # Local file, relative to REPRO_DATA (SentEval text for STS)
    raw_file: str = ""  # Local file of the original text, where there are two forms
    # Our column → the file's, where the names differ
    columns: Mapping[str, str] = field(default_factory=dict)
    # Rows of the local file, where they differ
    local_sizes: Mapping[str, int] = field(default_factory=dict)
    # Rows per subset of the test split
    subset_sizes: Mapping[str, int] = field(default_factory=dict)
    hub: HubSource | None = None
    note: str = ""

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits it comes in, in file order."""
        return tuple(self.sizes)

    @property
    def default_split(self) -> str:
        """The split that `load` reads when none is named: test, else all, else the first."""
        return next((split for split in ("test", "all") if split in self.sizes), self.splits[0])


def _mirror(entry: dict[str, Any]) -> HubSource:
    return HubSource(
        **{
            **entry,
            "elsewhere": {split: _mirror(e) for split, e in entry.get("elsewhere", {}).items()},
        }
    )


DATASETS: dict[str, DatasetSpec] = {}
"""The menu: every dataset that the five documents use."""
for _name, _entry in tomllib.loads((ASSETS / "datasets.toml").read_text(encoding="utf-8")).items():
    _hub = _mirror(_entry.pop("hub")) if "hub" in _entry else None
    DATASETS[_name] = DatasetSpec(name=_name, hub=_hub, **_entry)


def get_spec(name: str) -> DatasetSpec:
    """Look a dataset up by name."""
    return DATASETS[one_of(name, tuple(DATASETS), "dataset")]


def set_of(kind: str, name: str, source: str, split: str, columns: Mapping[str, Any]) -> DataSet:
    """The set that columns by the names of `FIELDS` make."""
    values = [columns[field] for field in FIELDS[kind]]
    if kind == "corpus":
        [texts] = values
        return Corpus(name, source, texts, split)
    if kind == "pairs":
        subsets = [subset or name for subset in columns.get("subset", [""] * len(values[0]))]
        values.append(subsets)
        return ScoredPairs(name, source, split, *values)
    return (LabelledPairs if kind == "labelled_pairs" else LabelledTexts)(
        name,
        source,
        split,
        *values,
    )
