"""The fifteen datasets of SBERT-LP (2021), and the sentences that its mapping may learn from (PROTOCOLS §4.2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from repro import data
from repro.models.encoder import merge_equal
from repro.seeding import make_rng
from repro.sets import DataSet, LabelledTexts, ScoredPairs, texts_of
from repro.types import InputError, check_dim

ROWS = {"embedded": 250}
"""rows of each split that a profile keeps; all where it names none"""
SHARED_ROWS: dict[str, dict[str | tuple[str, str], int]] = {
    "embedded": {("stsb", "train"): 500, ("stsb", "test"): 500, "trec": 500}
}
"""other numbers for splits that the pages on Zhang et al. encode as well"""
FOREIGN = "nli"
"""training sentences of sets that have none: those SBERT learned from"""
FOREIGN_ROWS = 2_500
"""pairs of them that are kept at most: a mapping is fitted on their sentences, in memory that grows with the square"""
POSTS = {"embedded": (400, 40)}
"""test posts of 20 Newsgroups that a profile judges, and words of each; all and whole where it names none"""
DEV_POSTS = 3_000
"""training posts to choose by where all test posts are judged"""


@dataclass(frozen=True)
class Tasks:
    """Splits of some datasets, and how many rows each had before the draw."""

    splits: Mapping[str, Mapping[str, DataSet]]
    available: Mapping[tuple[str, str], int]

    @property
    def parts(self) -> dict[str, dict[str, DataSet]]:
        """What has to be encoded: an entry of the store per split, which other pages may share."""
        return {f"{name}/{s}": {s: part} for name, splits in self.splits.items() for s, part in splits.items()}

    def only(self, names: Sequence[str]) -> dict[str, Mapping[str, DataSet]]:
        """The splits of some of the datasets."""
        return {name: self.splits[name] for name in names}

    def describe(self, names: Sequence[str], split: str | None = None) -> str:
        """How many rows of each dataset are judged, in words.

        Args:
            names: of datasets.
            split: what is judged; None is the test split, or the whole set where there is none.
        """
        said, drawn = [], False
        for name in names:
            judged = split or ("test" if "test" in self.splits[name] else next(iter(self.splits[name])))
            kept, all_rows = len(self.splits[name][judged]), self.available[name, judged]
            drawn |= kept < all_rows
            said.append(f"{name} {kept:,} of {all_rows:,}" if kept < all_rows else f"{name} all {kept:,}")
        return ", ".join(said) + ("; drawn at random" if drawn else "")


def load_tasks(names: Sequence[str], source: str, *, profile: str = "paper", rows: int | None = None) -> Tasks:
    """The splits of some datasets.

    Args:
        names: of datasets.
        source: local, hub or microworld.
        profile: whose number of rows is kept where none is asked for.
        rows: rows kept of every split, drawn at random; 0 keeps all, None the profile's.
    """
    splits: dict[str, dict[str, DataSet]] = {}
    available: dict[tuple[str, str], int] = {}
    for name in names:
        loaded = data.load_splits(name, source=source)
        available.update({(name, split): len(part) for split, part in loaded.items()})
        splits[name] = {split: data.take(part, kept(profile, name, split, rows)) for split, part in loaded.items()}
    return Tasks(splits, available)


def kept(profile: str, name: str, split: str, rows: int | None) -> int | None:
    """Rows to keep of a split: as asked, all for 0, and the profile's number for None."""
    shared = SHARED_ROWS.get(profile, {})
    asked = shared.get((name, split), shared.get(name, ROWS.get(profile))) if rows is None else rows or None
    return min(asked or FOREIGN_ROWS, FOREIGN_ROWS) if name == FOREIGN else asked


@dataclass(frozen=True)
class Posts:
    """Posts of 20 Newsgroups to cluster, of its test split, and others to choose by, of its training split."""

    judged: LabelledTexts
    dev: LabelledTexts
    available: int
    """test posts before the draw"""
    words: int | None
    """words kept of each post"""

    @property
    def parts(self) -> dict[str, dict[str, DataSet]]:
        """What has to be encoded."""
        return {"judged": {"all": self.judged}, "dev": {"all": self.dev}}

    def describe(self) -> str:
        """How many posts, and how much of them, in words."""
        cut = "whole posts" if self.words is None else f"first {self.words} words"
        drawn = f"{len(self.judged):,} of {self.available:,} test posts, drawn at random"
        judged = drawn if len(self.judged) < self.available else f"all {self.available:,} test posts"
        return f"judged: {judged}; {len(self.dev):,} training posts to choose by; {cut} of each"


def load_posts(
    source: str,
    *,
    profile: str = "paper",
    documents: int | None = None,
    dev: int | None = None,
    words: int | None = None,
    seed: int = 0,
) -> Posts:
    """Posts to judge, of the test split, and others to choose by, of the training split.

    Args:
        source: local, hub or microworld.
        profile: whose numbers hold where none are asked for.
        documents: test posts to judge, drawn at random; 0 keeps all.
        dev: training posts to choose by; None is half as many, or `DEV_POSTS` where all are judged.
        words: words kept of each post; 0 keeps whole posts, which encoders cut at their own length.
        seed: of the draw.
    """
    standard = POSTS.get(profile, (0, 0))
    documents, words = (
        given if asked is None else asked for asked, given in zip((documents, words), standard, strict=True)
    )
    drawn, available = {}, {}
    for split in ("test", "train"):
        found = data.load("20news", split=split, source=source)
        if not isinstance(found, LabelledTexts):
            raise InputError(f"20news holds {type(found).__name__}: expected texts with a class each")
        if words:
            check_dim(words, what="words")
            found = replace(found, texts=tuple(" ".join(text.split()[:words]) for text in found.texts))
        asked = documents if split == "test" else dev or (max(documents // 2, 1) if documents else DEV_POSTS)
        order = make_rng(seed, "posts").permutation(len(found))
        drawn[split], available[split] = _rows(found, order[: asked or None]), len(found)
    return Posts(drawn["test"], drawn["train"], available["test"], words or None)


def _rows(found: LabelledTexts, rows: NDArray[np.int64]) -> LabelledTexts:
    rows = np.sort(rows)
    return replace(found, texts=tuple(found.texts[i] for i in rows), labels=found.labels[rows])


def sentences(*parts: DataSet) -> list[str]:
    """The distinct sentences of some splits, both sides of pairs, in order of first appearance."""
    return merge_equal([text for part in parts for text in texts_of(part)])[0]


def scored(part: DataSet) -> ScoredPairs:
    """The part as scored pairs.

    Raises:
        InputError: if it is something else.
    """
    if not isinstance(part, ScoredPairs):
        raise InputError(f"{part.name} is not a set of scored pairs")
    return part
