"""What is known about a dataset before it is read: sizes, files, hub mirror, licence."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["pairs", "texts", "labelled_pairs", "retrieval", "corpus", "captions", "vectors"]
Form: TypeAlias = Literal["nested", "kfold", "split"]

NOTHING: Mapping[str, str] = MappingProxyType({})

FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "pairs": ("score", "sentence1", "sentence2"),
        "texts": ("label", "text"),
        "labelled_pairs": ("label", "sentence1", "sentence2"),
        "corpus": ("text",),
        "captions": ("image", "caption"),
    }
)
"""The columns that a kind needs, by the names that local files use."""


@dataclass(frozen=True)
class HubSource:
    """Where a dataset lies on the Hugging Face hub and how its columns map to ours."""

    id: str
    splits: Mapping[str, tuple[str, ...]]
    """Our split → the hub splits that are concatenated to make it."""
    config: str | None = None
    revision: str | None = None
    """A pinned commit where one is known; None reads the newest."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Our column → the hub's, where the names differ."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The hub's label → ours, where they differ."""
    data_files: str | None = None
    """The files of a split, with `{part}` for the hub split, where the hub cannot tell them by their names."""
    elsewhere: Mapping[str, "HubSource"] = field(default_factory=dict)
    """Our split → another mirror, for what this one hides."""
    drop_blank: bool = False
    """Leave out rows whose text is blank (the mirror removed headers and kept the empty remainder)."""
    note: str = ""
    """Where count or text differ from the local file."""


@dataclass(frozen=True)
class DatasetSpec:
    """One dataset of the five documents."""

    name: str
    kind: Kind
    title: str
    sizes: Mapping[str, int]
    """Rows per split as published."""
    citation: str
    """Key in the bibliography."""
    licence: str
    microworld: str
    """What the microworld offers in its place."""
    file: str = ""
    """Local file, relative to REPRO_DATA (SentEval text for STS)."""
    raw_file: str = ""
    """Local file of the original text, where there are two forms."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Our column → the file's, where the names differ."""
    local_sizes: Mapping[str, int] = field(default_factory=dict)
    """Rows per split of the local file, where they differ from the published ones."""
    subset_sizes: Mapping[str, int] = field(default_factory=dict)
    """Rows per subset of the test split."""
    hub: HubSource | None = None
    form: Form | None = None
    """How SentEval scores it: nested cross-validation, k-fold with a test set, or train/dev/test."""
    floor: float | None = None
    """Accuracy in per cent of always guessing the test set's largest class."""
    note: str = ""

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits it comes in, in file order."""
        return tuple(self.sizes)

    @property
    def default_split(self) -> str:
        """The split that `load` reads when none is named: test, else all, else the first."""
        return next((split for split in ("test", "all") if split in self.sizes), self.splits[0])
