"""The paper's tasks: what is judged, whole or in folds, and the sentences that a reducer may learn
from.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from repro import data
from repro.data.samples import training_sentences
from repro.evaluation.labels import stratified_folds
from repro.models.packing import merge_equal
from repro.runs.lines import Task, parts_of
from repro.sets import Corpus, DataSet, ScoredPairs, texts_of
from repro.settings import TrainConfig
from repro.store import Store
from repro.types import InputError, one_of

# Of the parts of a task, SentEval's: equal for all seeds, so that these share items
FOLDS_SEED = 1111


@dataclass(frozen=True)
class ReducedTask(Task):
    """A task with the sentences that a reducer may learn from (method-fit-sets in the book)."""

    wiki: Corpus | None = None  # Foreign sentences, where a setting needs them

    @property
    def parts(self) -> dict[str, dict[str, DataSet]]:
        """What has to be encoded, as entries that other pages may share."""
        return parts_of({self.name: self.splits}) | (
            {} if self.wiki is None else {"wiki": {"train": self.wiki}}
        )

    @property
    def judged_texts(self) -> list[str]:
        """The distinct texts that a score needs: of the test pairs where they are graded, else of
        all splits.
        """
        graded = isinstance(self.judged, ScoredPairs)
        return _distinct([self.judged] if graded else self.splits.values())

    def fit_texts(self, setting: str) -> list[str]:
        """The distinct sentences that a reducer is fitted on, both sides of pairs."""
        train, test = self.splits["train"], self.splits["test"]
        sources: dict[str, list[DataSet]] = {"inductive": [train], "transductive": [train, test]}
        if self.wiki is not None:
            sources["wiki"] = [self.wiki]
        one_of(setting, list(sources), "setting of this task")
        return _distinct(sources[setting])

    def describe(self) -> str:
        """How many rows each split keeps, in words."""
        clauses, ending = [], ""
        for split, available in self.available.items():
            rows = len(self.splits[split])
            if rows == available:
                clauses.append(f"{split}: all {available:,}")
            else:
                clauses.append(f"{split}: {rows:,} of {available:,}")
            if rows < available:
                ending = ", drawn at random"
        return "; ".join(clauses) + ending


def _distinct(sets: Iterable[DataSet]) -> list[str]:
    """The distinct texts of some sets, in order of first appearance."""
    return merge_equal(list(chain.from_iterable(map(texts_of, sets))))[0]


def load_task(
    name: str,
    source: str,
    rows: int | None = None,
    *,
    wiki: TrainConfig | None = None,
    store: Store | None = None,
) -> ReducedTask:
    """The splits of stsb, trec or sicke, `rows` of each at random or all, and sentences that `wiki`
    would train on.
    """
    splits = data.load_splits(name, source=source)
    if name == "stsb":
        splits = {split: splits[split] for split in ("train", "test")}
    corpus = (
        Corpus(wiki.corpus, wiki.source, training_sentences(wiki, store or Store()))
        if wiki
        else None
    )
    samples = {split: data.take(rows_of_split, rows) for split, rows_of_split in splits.items()}
    available = {split: len(rows_of_split) for split, rows_of_split in splits.items()}
    return ReducedTask(name, samples, available, wiki=corpus)


def in_folds(task: ReducedTask, k: int) -> ReducedTask:
    """The task with all rows judged, in k parts of like labels or scores: one is the test split,
    the next any dev.
    """
    fewest = len(task.splits)  # One part each, of which train has what is left
    if k < fewest:
        expected = f"expected {fewest} or more parts, or 0 for the test split alone"
        raise InputError(f"folds is {k}: {expected}")
    splits: list[Any] = list(task.splits.values())
    joined: dict[str, Any] = {}
    for name in splits[0].groups[0]:
        columns = [getattr(split, name) for split in splits]
        joined[name] = np.concatenate(columns) if name == "scores" else tuple(chain(*columns))
    all_items = replace(splits[0], **joined)
    labels = all_items.scores.round() if isinstance(all_items, ScoredPairs) else all_items.labels
    fold, folds = stratified_folds(labels, k, FOLDS_SEED), {}
    for i in range(k):
        test, dev = fold == i, (fold == (i + 1) % k) & ("dev" in task.splits)
        rows = {"test": test, "dev": dev, "train": ~test & ~dev}
        of_fold = {}
        for name in task.splits:
            of_fold[name] = all_items.keep(np.flatnonzero(rows[name]), split=name)
        folds[f"{task.name}, part {i + 1} of {k}"] = ReducedTask(task.name, of_fold, wiki=task.wiki)
    return replace(task, folds=folds)
