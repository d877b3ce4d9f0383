"""What is known about a dataset before it is read: sizes, files, hub mirror, licence, from `assets/datasets.toml`."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from repro.paths import ASSETS
from repro.sets import Corpus, DataSet, LabelledPairs, LabelledTexts, ScoredPairs
from repro.types import one_of

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


def _mirror(entry: dict[str, Any]) -> HubSource:
    splits = {split: tuple(parts) for split, parts in entry.pop("splits").items()}
    elsewhere = {split: _mirror(other) for split, other in entry.pop("elsewhere", {}).items()}
    return HubSource(splits=splits, elsewhere=elsewhere, **entry)


DATASETS: dict[str, DatasetSpec] = {}
"""The menu: every dataset that the five documents use."""
for _name, _entry in tomllib.loads((ASSETS / "datasets.toml").read_text(encoding="utf-8")).items():
    _hub = _mirror(_entry.pop("hub")) if "hub" in _entry else None
    DATASETS[_name] = DatasetSpec(name=_name, hub=_hub, **_entry)


def get_spec(name: str) -> DatasetSpec:
    """Look a dataset up by name."""
    return DATASETS[one_of(name, tuple(DATASETS), "dataset")]


def set_of(
    kind: str, name: str, source: str, split: str, columns: Mapping[str, Any], text_form: str = "raw"
) -> DataSet:
    """The set that columns by the names of `FIELDS` make."""
    match kind:
        case "pairs":
            first, second, score = (columns[field] for field in ("sentence1", "sentence2", "score"))
            subsets: Any = [subset or name for subset in columns.get("subset", [""] * len(score))]
            return ScoredPairs(name, source, split, first, second, score, subsets, text_form)
        case "labelled_pairs":
            return LabelledPairs(name, source, split, columns["sentence1"], columns["sentence2"], columns["label"])
        case "texts":
            return LabelledTexts(name, source, split, columns["text"], columns["label"])
        case "captions":
            return LabelledTexts(name, source, split, columns["caption"], columns["image"])
        case _:
            return Corpus(name, source, columns["text"], split)
