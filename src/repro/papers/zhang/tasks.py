"""The three tasks of Zhang et al. (2024), and the sentences a reducer may learn from (PROTOCOLS §4.2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from repro import data
from repro.config import Profile, TrainConfig
from repro.models.encoder import merge_equal
from repro.runs.texts import training_sentences
from repro.sets import Corpus, DataSet, texts_of
from repro.store import Store
from repro.types import one_of

TASKS = {"stsb": "STS-B", "trec": "TREC", "sicke": "SICK-E"}
ROWS = {"embedded": {"stsb": 500, "trec": 700, "sicke": 400}}
"""rows of each split that a profile keeps; all where it names none"""
WIKI_SENTENCES = {"embedded": 800}
"""sentences of the `wiki` setting; as many as Wang et al. take where a profile names none"""
WANG_SENTENCES = 2_000


@dataclass(frozen=True)
class Task:
    """One task: its splits, what they were drawn from, and foreign sentences where a setting needs them."""

    name: str
    splits: Mapping[str, DataSet]
    available: Mapping[str, int]
    """rows of each split before the draw"""
    wiki: Corpus | None = None

    @property
    def parts(self) -> dict[str, dict[str, DataSet]]:
        """What has to be encoded, as entries that other pages may share."""
        parts: dict[str, dict[str, DataSet]] = {split: {split: part} for split, part in self.splits.items()}
        return parts if self.wiki is None else {**parts, "wiki": {"train": self.wiki}}

    @property
    def judged(self) -> dict[str, DataSet]:
        """The splits a score needs: the test pairs of STS-B, all splits of the others."""
        return {s: part for s, part in self.splits.items() if self.name != "stsb" or s == "test"}

    def describe(self) -> str:
        """How many rows each split keeps, in words."""
        said = [
            f"{split}: all {n:,}" if len(self.splits[split]) == n else f"{split}: {len(self.splits[split]):,} of {n:,}"
            for split, n in self.available.items()
        ]
        drawn = any(len(self.splits[split]) < n for split, n in self.available.items())
        return "; ".join(said) + (", drawn at random" if drawn else "")


def load_task(
    name: str, source: str, *, rows: int | None = None, wiki: TrainConfig | None = None, store: Store | None = None
) -> Task:
    """The splits of a task, and the sentences of the `wiki` setting.

    Args:
        name: stsb, trec or sicke.
        source: local, hub or microworld.
        rows: rows kept of every split, drawn at random; None keeps all.
        wiki: a training configuration whose corpus and number of sentences the `wiki` setting takes; None has none.
        store: where that draw is kept; needed with `wiki`.
    """
    one_of(name, list(TASKS), "task")
    splits = data.load_splits(name, source=source)
    if name == "stsb":
        splits = {split: splits[split] for split in ("train", "test")}
    corpus = None
    if wiki is not None:
        corpus = Corpus(wiki.corpus, wiki.source, training_sentences(wiki, store or Store()))
    kept = {split: data.take(part, rows) for split, part in splits.items()}
    return Task(name, kept, {split: len(part) for split, part in splits.items()}, corpus)


def fit_texts(setting: str, task: Task) -> list[str]:
    """The distinct sentences that a reducer is fitted on, both sides of pairs.

    Raises:
        InputError: for an unknown setting, or `wiki` of a task without foreign sentences.
    """
    train, test = task.splits["train"], task.splits["test"]
    sources: dict[str, list[DataSet]] = {"inductive": [train], "transductive": [train, test]}
    if task.wiki is not None:
        sources["wiki"] = [task.wiki]
    one_of(setting, list(sources), "setting of this task")
    return merge_equal([text for part in sources[setting] for text in texts_of(part)])[0]


def kept(profile: str, task: str, rows: int | None) -> int | None:
    """Rows to keep of each split: as asked, all for 0, and the profile's number for None."""
    return ROWS.get(profile, {}).get(task) if rows is None else rows or None


def wiki_config(profile: Profile, settings: Sequence[str], sentences: int | None) -> TrainConfig | None:
    """The corpus and number of sentences of the `wiki` setting; None where it is not among the settings."""
    if "wiki" not in settings:
        return None
    count = sentences or WIKI_SENTENCES.get(profile.name, WANG_SENTENCES)
    return replace(profile.train, sentences=count)
