"""Table 2: three nearest neighbours on seven sets, with and without the query among its own neighbours."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from repro.evaluation.classify import FOLDS, knn_correct, knn_cv_correct, majority_share, pair_features
from repro.evaluation.protocol import Score
from repro.methods import MAJORITY
from repro.papers.sbertlp.claims import CHOSEN, HONEST, INDUCTIVE, ORACLE, TRANSDUCTIVE, lp
from repro.papers.sbertlp.mapping import Mapped, Placed, best, grid_scores, map_texts, prefix, within
from repro.papers.sbertlp.tasks import sentences
from repro.runs.embeddings import TextTable
from repro.runs.suite import Contender, suite_rows
from repro.sets import DataSet, LabelledPairs, LabelledTexts
from repro.store import Store
from repro.types import Array, InputError, Labels

K = 3
"""votes, Section 4.4.1"""
DEV = "sst2"
"""set whose dev split chooses neighbours and dims of the mapping for all seven"""
SELF = "accuracy_self"
"""metric of the rows in which a query votes for itself"""
SETTINGS = (HONEST, f"{TRANSDUCTIVE}, {ORACLE}")
Splits = Mapping[str, Mapping[str, DataSet]]


def features(table: TextTable, part: DataSet) -> tuple[Array, Labels]:
    """Features (n, D) and labels of a labelled set; pairs give [|u − v|, u·v].

    Raises:
        InputError: for a set without labels.
    """
    match part:
        case LabelledTexts():
            return table[part.texts], part.labels
        case LabelledPairs():
            return pair_features(table[part.texts1], table[part.texts2]), part.labels
    raise InputError(f"{part.name} holds no labels: it cannot be classified")


def correct(
    table: TextTable, splits: Mapping[str, DataSet], *, ks: Sequence[int] = (K,), self_neighbour: bool = False
) -> Array:
    """Which judged rows are right, for every k (len(ks), n): the test split, or the whole set over ten folds."""
    if "test" in splits:
        sides = (*features(table, splits["train"]), *features(table, splits["test"]))
        return np.stack([knn_correct(*sides, k=k, self_neighbour=self_neighbour) for k in ks])
    everything = features(table, splits["all"])
    return np.stack([knn_cv_correct(*everything, k=k, self_neighbour=self_neighbour) for k in ks])


def classify(table: TextTable, name: str, splits: Mapping[str, DataSet], *, self_neighbour: bool = False) -> Score:
    """Accuracy of the vote, for `suite_rows`; its interval is drawn there."""
    right = correct(table, splits, ks=[K], self_neighbour=self_neighbour)[0]
    judged = splits.get("test", splits.get("all"))
    fitted = splits.get("train", judged)
    assert judged is not None and fitted is not None
    floor = majority_share(features(table, fitted)[1], features(table, judged)[1])
    value = float(right.mean())
    return Score(SELF if self_neighbour else "accuracy", value, np.nan, np.nan, len(right), right, floor)


def place(
    table: TextTable, names: Sequence[str], splits: Splits, *, neighbors: Sequence[int], dims: Sequence[int]
) -> Placed:
    """Both mapped versions of every set, fitted on all its sentences: chosen on SST's dev split, and on its scores."""
    on_dev = dev_grid(table, splits, neighbors, dims)
    for name in names:
        judged = sentences(*splits[name].values())
        mapped = map_texts(table, judged, judged, neighbors, max(dims))
        yield SETTINGS[0], name, best(within(on_dev, len(judged))).reached(mapped)
        yield SETTINGS[1], name, best(accuracies(mapped, splits[name], dims)).reached(mapped)


def place_inductive(
    table: TextTable, names: Sequence[str], splits: Splits, *, neighbors: Sequence[int], dims: Sequence[int]
) -> Placed:
    """Every set with a training split, its mapping fitted with and without the test sentences."""
    on_dev = dev_grid(table, splits, neighbors, dims)
    for setting in (TRANSDUCTIVE, INDUCTIVE):
        for name in names:
            everything = sentences(*splits[name].values())
            fit = everything if setting == TRANSDUCTIVE else sentences(splits[name]["train"])
            choice = best(within(on_dev, len(fit)))
            mapped = map_texts(table, fit, everything, [choice.n_neighbors], choice.dim)
            yield f"{setting}, {CHOSEN}", name, choice.reached(mapped)


def dev_grid(table: TextTable, splits: Splits, neighbors: Sequence[int], dims: Sequence[int]) -> pd.DataFrame:
    """Accuracy of every number of neighbours and dim on SST's dev split, all its sentences but the test ones fitted."""
    found = {"train": splits[DEV]["train"], "test": splits[DEV]["dev"]}
    texts = sentences(*found.values())
    return accuracies(map_texts(table, texts, texts, neighbors, max(dims)), found, dims)


def accuracies(mapped: Mapping[int, Mapped], splits: Mapping[str, DataSet], dims: Sequence[int]) -> pd.DataFrame:
    """Accuracy of every number of neighbours and dim."""

    def score(table: TextTable, sizes: Sequence[int]) -> Array:
        return np.array([correct(prefix(table, d), splits)[0].mean() for d in sizes])

    return grid_scores(mapped, dims, score)


def rivals(lines: Sequence[Contender]) -> Iterator[tuple[int, int]]:
    """Which lines are compared: every mapped line with its own system."""
    for a, line in enumerate(lines):
        for b, other in enumerate(lines):
            if line.method == lp(other.method):
                yield a, b


def knn_rows(lines: Sequence[Contender], tasks: Splits, store: Store, *, whole: bool, **shared: Any) -> pd.DataFrame:
    """Accuracy of every line on every task, without and with a vote for oneself, with the leads of mapped lines."""
    frames = [
        suite_rows(
            lines,
            tasks,
            store,
            rivals=rivals,
            average=whole,
            classify=partial(classify, self_neighbour=self_neighbour),
            **shared,
        )
        for self_neighbour in (False, True)
    ]
    return pd.concat([frames[0], frames[1][frames[1]["method"] != MAJORITY]], ignore_index=True)


def probeable(tasks: Splits) -> list[str]:
    """Sets on which a linear classifier can be cross-validated: every class has a training row for each fold."""
    found = []
    for name, splits in tasks.items():
        part = splits.get("train", splits.get("all"))
        if (
            isinstance(part, LabelledTexts | LabelledPairs)
            and np.unique(part.labels, return_counts=True)[1].min() >= FOLDS
        ):
            found.append(name)
    return found


def votes(lines: Sequence[Contender], tasks: Splits) -> pd.DataFrame:
    """What a vote for oneself does: accuracy of one and of three neighbours, with oneself, and 1 − (1 − q)².

    q is the share of agreement with the nearest and the second-nearest other row. Of three votes one is the query's
    own, so of two classes it is wrong only if both others are: 1 − (1 − q)² if the two agree independently.
    """
    found = []
    for line in lines:
        for name, splits in tasks.items():
            table = line.on(name)
            everything = {"all": splits["all"]} if "all" in splits else splits
            plain = correct(table, everything, ks=[1, K]).mean(1)
            own = correct(table, everything, self_neighbour=True)[0].mean()
            judged = splits.get("test", splits.get("all"))
            assert judged is not None
            q, classes = plain[0], len(set(features(table, judged)[1]))
            found.append(
                {
                    "method": line.method,
                    "setting": line.setting,
                    "dataset": name,
                    "classes": classes,
                    "1-NN": q,
                    "3-NN": plain[1],
                    "predicted": 1 - (1 - q) ** 2,
                    "3-NN with oneself": own,
                }
            )
    return pd.DataFrame(found)
