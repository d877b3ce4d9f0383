"""Tasks: from the embeddings of a dataset's texts to one score with its interval (PROTOCOLS §5).

A task asks for embeddings by text, through `embed(texts) -> X`, and never sees an encoder: whoever calls
it encodes all texts of all tasks once and looks them up.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from repro.evaluation.classify import nested_cv, pair_features, probe
from repro.evaluation.stats import bootstrap_mean, bootstrap_spearman
from repro.evaluation.sts import prefix_cosines, sts_spearman
from repro.sets import DataSet, LabelledPairs, LabelledTexts, ScoredPairs, texts_of
from repro.types import Array, InputError

Embed = Callable[[Sequence[str]], Array]


@dataclass(frozen=True)
class Score:
    """One task's score, a fraction or correlation, with its 95 % bootstrap interval over items."""

    metric: str
    value: float
    ci_low: float
    ci_high: float
    n: int
    items: Any = None
    """per-item outcome for paired comparisons: cosines (n,) or correct (n,)"""
    floor: float | None = None
    """accuracy of the majority class"""

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of a row that hold it."""
        return {"metric": self.metric, "value": self.value, "ci_low": self.ci_low, "ci_high": self.ci_high}


def score_sts(embed: Embed, pairs: ScoredPairs, *, aggregate: str = "all", seed: int = 0) -> Score:
    """Spearman of cosines with gold scores; `mean` and `wmean` average over subsets."""
    X1, X2 = embed(pairs.texts1), embed(pairs.texts2)
    cosines = prefix_cosines(X1, X2, [X1.shape[1]])[0]
    if aggregate != "all":
        value = sts_spearman(X1, X2, pairs.scores, subsets=pairs.subsets, aggregate=aggregate)
        return Score(f"spearman_{aggregate}", value, float("nan"), float("nan"), len(pairs), cosines)
    interval = bootstrap_spearman(cosines, pairs.scores, subsets=pairs.subsets, seed=seed)
    return Score("spearman", interval.value, interval.low, interval.high, len(pairs), cosines)


def score_classification(
    embed: Embed, splits: Mapping[str, DataSet], *, protocol: str = "logreg", seed: int = 0
) -> Score:
    """Accuracy of a linear probe: on the test split, with or without a dev split, or over nested folds of it all."""
    sides = {name: _features_and_labels(embed, part) for name, part in splits.items()}
    if not {"train", "dev"} & set(sides):
        X, y = (np.concatenate(side) for side in zip(*sides.values(), strict=True))
        found = nested_cv(X, y, protocol=protocol, seed=seed)
    else:
        if missing := {"train", "test"} - set(sides):
            raise InputError(f"no split {min(missing)!r}: the data has {', '.join(splits)}")
        found = probe(*sides["train"], *sides["test"], protocol=protocol, seed=seed, dev=sides.get("dev"))
    interval = bootstrap_mean(found.correct, seed=seed)
    # nested accuracy is the mean over folds; folds are equal but for a row, so the interval shifts with it
    low, high = (end + (found.accuracy - interval.value) for end in (interval.low, interval.high))
    return Score("accuracy", found.accuracy, low, high, len(found.correct), found.correct, found.floor)


def all_texts(sets: Sequence[DataSet]) -> list[str]:
    """Every text of several sets, for encoding them once."""
    return [text for part in sets for text in texts_of(part)]


def _features_and_labels(embed: Embed, part: DataSet) -> tuple[Array, Any]:
    match part:
        case LabelledTexts():
            return embed(part.texts), part.labels
        case LabelledPairs():
            return pair_features(embed(part.texts1), embed(part.texts2)), part.labels
    raise InputError(f"{part.name} holds no labels: it cannot be classified")
