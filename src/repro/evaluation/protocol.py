"""Tasks: from the embeddings of a dataset's texts to one score with its interval (PROTOCOLS §5).

A task asks for embeddings by text, through `embed(texts) -> X`, and never sees an encoder: whoever calls
it encodes all texts of all tasks once and looks them up.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from repro.evaluation.classify import ProbeResult, nested_cv, pair_features, probe
from repro.evaluation.stats import bootstrap_accuracy, bootstrap_spearman
from repro.evaluation.sts import AGGREGATES, prefix_cosines, sts_spearman
from repro.sets import DataSet, LabelledPairs, LabelledTexts, ScoredPairs, texts_of
from repro.types import Array, InputError, one_of

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
    one_of(aggregate, AGGREGATES, "aggregate")
    X1, X2 = embed(pairs.texts1), embed(pairs.texts2)
    cosines = prefix_cosines(X1, X2, [X1.shape[1]])[0]
    if aggregate != "all":
        value = sts_spearman(X1, X2, pairs.scores, subsets=pairs.subsets, aggregate=aggregate)
        return Score(f"spearman_{aggregate}", value, float("nan"), float("nan"), len(pairs), cosines)
    interval = bootstrap_spearman(cosines, pairs.scores, subsets=pairs.subsets, seed=seed)
    return Score("spearman", interval.value, interval.low, interval.high, len(pairs), cosines)


def score_classification(
    embed: Embed, splits: Mapping[str, DataSet], *, form: str | None = None, protocol: str = "logreg", seed: int = 0
) -> Score:
    """Accuracy of a linear probe in the dataset's own form.

    Args:
        embed: embeddings by text.
        splits: `all` for nested cross-validation; `train` and `test`, and `dev` for the split form.
        form: `nested`, `kfold` or `split`; None takes the one the splits allow.
        protocol: of the classifier, `logreg` or `senteval`.
        seed: of folds, training and bootstrap.

    Raises:
        InputError: for splits that the form cannot use.
    """
    form = form or ("split" if "dev" in splits else "kfold" if "train" in splits else "nested")
    one_of(form, ("nested", "kfold", "split"), "form")
    if form == "nested":
        parts = list(splits.values())
        X = np.vstack([_features(embed, part) for part in parts])
        y = np.concatenate([_labels(part) for part in parts])
        return _score(nested_cv(X, y, protocol=protocol, seed=seed), seed)
    missing = [name for name in ("train", "test", *(["dev"] if form == "split" else [])) if name not in splits]
    if missing:
        raise InputError(f"form {form!r} needs a split {missing[0]!r}: the data has {', '.join(splits)}")
    sides = {name: (_features(embed, part), _labels(part)) for name, part in splits.items()}
    X_dev, y_dev = sides["dev"] if form == "split" else (None, None)
    return _score(probe(*sides["train"], *sides["test"], protocol=protocol, seed=seed, X_dev=X_dev, y_dev=y_dev), seed)


def all_texts(sets: Sequence[DataSet]) -> list[str]:
    """Every text of several sets, for encoding them once."""
    return [text for part in sets for text in texts_of(part)]


def _features(embed: Embed, part: DataSet) -> Array:
    match part:
        case LabelledTexts():
            return embed(part.texts)
        case LabelledPairs():
            return pair_features(embed(part.texts1), embed(part.texts2))
    raise InputError(f"{part.name} holds no labels: it cannot be classified")


def _labels(part: DataSet) -> Any:
    if isinstance(part, LabelledTexts | LabelledPairs):
        return part.labels
    raise InputError(f"{part.name} holds no labels: it cannot be classified")


def _score(result: ProbeResult, seed: int) -> Score:
    interval = bootstrap_accuracy(result.correct, seed=seed)
    # nested accuracy is the mean over folds; folds are equal but for a row, so the interval shifts with it
    shift = result.accuracy - interval.value
    return Score(
        "accuracy",
        result.accuracy,
        interval.low + shift,
        interval.high + shift,
        len(result.correct),
        result.correct,
        result.floor,
    )
