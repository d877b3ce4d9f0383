"""How each table places sentences under the mapping and scores them: similarity, nearest neighbours, K-means.

And Figures 2 to 5: scores against neighbours and dims, with what two statistics would pick.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro.evaluation.classify import (
    INDICATORS,
    indicators,
    kmeans,
    knn_correct,
    knn_cv_correct,
    majority_share,
    pair_features,
)
from repro.evaluation.protocol import Score
from repro.evaluation.retention import procrustes_statistic, residual_variance
from repro.evaluation.stats import Resampled
from repro.evaluation.sts import sts_spearman
from repro.papers.sbertlp.claims import CHOSEN, HONEST, INDUCTIVE, NEIGHBOURS, ORACLE, RANGE, RANGES, TRANSDUCTIVE, lp
from repro.papers.sbertlp.mapping import Choice, GridScore, Mapped, Placed, best, grid_scores, map_texts, prefix
from repro.papers.sbertlp.tasks import scored, sentences
from repro.rows import make_rows
from repro.runs.encoders import TextTable
from repro.runs.lines import Judged, Line, Scorer, Task, accuracy, similarity
from repro.seeding import derive_seed, make_rng
from repro.sets import DataSet, LabelledPairs, LabelledTexts, ScoredPairs
from repro.types import Array, InputError, Labels

SETTINGS = (HONEST, f"{TRANSDUCTIVE}, {ORACLE}")  # of the mapped lines of Tables 2 and 3
STS_SETTINGS = (HONEST, f"{INDUCTIVE}, {CHOSEN}", f"{TRANSDUCTIVE}, {ORACLE}")  # of those of Table 1
STS_DEV = {"sickr": "sickr"}  # set whose dev split chooses neighbours and dims of Table 1; STS-B for all others
DEV = "sst2"  # the same for all seven sets of Table 2
K = 3  # votes, Section 4.4.1
RESAMPLES, BLOCK = 1_000, 2**22  # of posts, and drawn posts held at once
Splits = Mapping[str, Mapping[str, DataSet]]


# Table 1


def place_pairs(
    table: TextTable, names: Sequence[str], splits: Splits, neighbors: Sequence[int], dims: Sequence[int]
) -> Placed:
    """The three mapped versions of every similarity set; `splits` hold the sets with dev splits and `nli` as well."""
    fit_on = {name: sentences(splits[name if "train" in own else "nli"]["train"]) for name, own in splits.items()}
    devs = {name: STS_DEV.get(name, "stsb") for name in names}
    picked: dict[tuple[str, str], Choice] = {}
    for name in set(devs.values()):
        dev = scored(splits[name]["dev"])
        judged = sentences(dev)
        for setting, fit in ((TRANSDUCTIVE, judged), (INDUCTIVE, fit_on[name])):
            grid = grid_scores(map_texts(table, fit, judged, neighbors, max(dims)), dims, sts_score(dev))
            picked[name, setting] = best(grid)
    foreign: dict[str, list[str]] = {}  # sets that are fitted on the same foreign sentences share one fit
    for name in names:
        foreign.setdefault(name if "train" in splits[name] else "nli", []).append(name)
    placed: dict[str, dict[int, Mapped]] = {}
    for members in foreign.values():
        choice, judged = picked[devs[members[0]], INDUCTIVE], sentences(*(splits[name]["test"] for name in members))
        mapped = map_texts(table, fit_on[members[0]], judged, [choice.n_neighbors], choice.dim)
        placed |= dict.fromkeys(members, mapped)
    for name in names:
        test = scored(splits[name]["test"])
        judged = sentences(test)
        own = map_texts(table, judged, judged, neighbors, max(dims))
        yield STS_SETTINGS[0], name, picked[devs[name], TRANSDUCTIVE].reached(own)
        yield STS_SETTINGS[1], name, picked[devs[name], INDUCTIVE].reached(placed[name])
        yield STS_SETTINGS[2], name, best(grid_scores(own, dims, sts_score(test))).reached(own)


def sts_score(pairs: ScoredPairs) -> GridScore:
    """Spearman of some pairs, for `grid_scores`."""

    def score(table: TextTable, dims: Sequence[int]) -> Array:
        return np.asarray(sts_spearman(table[pairs.texts1], table[pairs.texts2], pairs.scores, dims=dims))

    return score


# Table 2


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
    table: TextTable, splits: Mapping[str, DataSet], *, k: int = K, self_neighbour: bool = False
) -> NDArray[np.bool_]:
    """Which judged rows (n,) are right by a vote of k: the test split, or the whole set over ten folds."""
    if "test" in splits:
        sides = (*features(table, splits["train"]), *features(table, splits["test"]))
        return knn_correct(*sides, k=k, self_neighbour=self_neighbour)
    return knn_cv_correct(*features(table, splits["all"]), k=k, self_neighbour=self_neighbour)


def classify(table: TextTable, name: str, splits: Mapping[str, DataSet], *, self_neighbour: bool = False) -> Score:
    """Accuracy of the vote, with the floor where no query votes for itself; intervals are drawn for all lines."""
    right = correct(table, splits, self_neighbour=self_neighbour)
    fitted, judged = (features(table, splits[name if name in splits else "all"])[1] for name in ("train", "test"))
    metric, floor = ("accuracy_self", None) if self_neighbour else ("accuracy", majority_share(fitted, judged))
    return Score(metric, float(right.mean()), np.nan, np.nan, len(right), right, floor)


def votes(lines: Sequence[Line], task: Task, seed: int) -> Iterator[Judged]:
    """Accuracy of the vote, without and with a vote for oneself."""
    for self_neighbour in (False, True):
        yield from accuracy(partial(classify, self_neighbour=self_neighbour))(lines, task, seed)


def place_labelled(
    table: TextTable, names: Sequence[str], splits: Splits, neighbors: Sequence[int], dims: Sequence[int]
) -> Placed:
    """Both mapped versions of every set, fitted on all its sentences: chosen on SST's dev split, and on its scores."""
    on_dev = dev_grid(table, splits, neighbors, dims)
    for name in names:
        judged = sentences(*splits[name].values())
        mapped = map_texts(table, judged, judged, neighbors, max(dims))
        yield SETTINGS[0], name, best(on_dev, len(judged)).reached(mapped)
        yield SETTINGS[1], name, best(accuracies(mapped, splits[name], dims)).reached(mapped)


def dev_grid(table: TextTable, splits: Splits, neighbors: Sequence[int], dims: Sequence[int]) -> pd.DataFrame:
    """Accuracy of every number of neighbours and dim on SST's dev split, all its sentences but the test ones fitted."""
    found = {"train": splits[DEV]["train"], "test": splits[DEV]["dev"]}
    texts = sentences(*found.values())
    return accuracies(map_texts(table, texts, texts, neighbors, max(dims)), found, dims)


def accuracies(mapped: Mapping[int, Mapped], splits: Mapping[str, DataSet], dims: Sequence[int]) -> pd.DataFrame:
    """Accuracy of every number of neighbours and dim."""
    return grid_scores(
        mapped, dims, lambda table, sizes: np.array([correct(prefix(table, d), splits).mean() for d in sizes])
    )


# Table 3


def place_posts(
    table: TextTable,
    judged: LabelledTexts,
    dev: LabelledTexts,
    neighbors: Sequence[int],
    dims: Sequence[int],
    seed: int = 0,
) -> Placed:
    """Judged posts, the mapping fitted on them, chosen by NMI on posts of the training split, and on themselves."""
    on_dev = grid_scores(map_texts(table, dev.texts, dev.texts, neighbors, max(dims)), dims, nmi_score(dev, seed))
    pick = best(on_dev, min(len(dev), len(judged)))
    yield (
        SETTINGS[0],
        judged.name,
        pick.reached(map_texts(table, judged.texts, judged.texts, [pick.n_neighbors], pick.dim)),
    )
    mapped = map_texts(table, judged.texts, judged.texts, neighbors, max(dims))
    yield SETTINGS[1], judged.name, best(grid_scores(mapped, dims, nmi_score(judged, seed))).reached(mapped)


def nmi_score(posts: LabelledTexts, seed: int) -> GridScore:
    """NMI of K-means on some posts, for `grid_scores`."""
    y, clusters = classes(posts)

    def score(table: TextTable, dims: Sequence[int]) -> Array:
        found = np.stack([kmeans(prefix(table, d)[posts.texts], clusters, seed=seed) for d in dims])
        return indicators(contingencies(found * clusters + y, clusters))["nmi"]

    return score


def classes(posts: LabelledTexts) -> tuple[NDArray[np.int64], int]:
    """The class of every post by number, and how many there are."""
    y = np.unique(posts.labels, return_inverse=True)[1]
    return y, int(y.max()) + 1


def contingencies(cells: NDArray[np.int64], clusters: int) -> NDArray[np.int64]:
    """Posts (P, clusters, classes) by cluster and class, of partitions (P, n) as cluster × classes + class."""
    apart = cells + clusters**2 * np.arange(len(cells))[:, None]
    return np.bincount(apart.ravel(), minlength=len(cells) * clusters**2).reshape(-1, clusters, clusters)


def clustering(starts: Sequence[int]) -> Scorer:
    """Four indicators of K-means, means over some seeds of it, with intervals over resampled posts.

    A resample repeats posts, which makes information look higher: the draws are moved so that their mean is the value
    itself.
    """

    def scorer(lines: Sequence[Line], task: Task, seed: int) -> Iterator[Judged]:
        posts = task.judged
        assert isinstance(posts, LabelledTexts)
        y, clusters = classes(posts)
        X = [line.on(task.name)[posts.texts] for line in lines]
        cells = np.stack([kmeans(each, clusters, seed=s) for each in X for s in starts]) * clusters + y
        values, draws = indicators(contingencies(cells, clusters)), drawn_indicators(cells, clusters, seed)
        for name in INDICATORS:
            value = values[name].reshape(len(lines), -1).mean(1)
            drawn = draws[name].reshape(len(lines), len(starts), -1).mean(1).T  # (resamples, lines)
            yield Judged(name, Resampled(value, drawn - drawn.mean(0) + value))

    return scorer


def drawn_indicators(cells: NDArray[np.int64], clusters: int, seed: int) -> dict[str, NDArray[np.float64]]:
    """Indicators of every partition (P, n) on the same resampled posts: name → (P, resamples)."""
    n, rng, blocks = cells.shape[1], make_rng(derive_seed(seed, "bootstrap"), "posts"), []
    step = max(1, BLOCK // n)
    for start in range(0, RESAMPLES, step):
        picks = rng.integers(n, size=(min(step, RESAMPLES - start), n))
        blocks.append([indicators(contingencies(each[picks], clusters)) for each in cells])
    return {name: np.concatenate([[each[name] for each in block] for block in blocks], axis=1) for name in INDICATORS}


# Figures 2 to 5


def sweep_rows(
    system: Line, tasks: Mapping[str, Task], *, neighbors: Sequence[int], dims: Sequence[int], **shared: Any
) -> pd.DataFrame:
    """Scores at every number of neighbours and dim, and of the system itself; with three kinds of comparison.

    All lines of a dataset share resamples. Comparisons are rows of their own, at the system's number: `grid − worst`
    and `grid − residual variance`, `grid − Procrustes` over neighbours at the best dim; `best in range` is the best
    score among the dims that the paper names less the best among the others, at the best number of neighbours.
    """
    rows: list[dict[str, Any]] = []
    for name, task in tasks.items():
        paired = isinstance(task.judged, ScoredPairs)
        judged = sentences(*([task.judged] if paired else [p for split, p in task.splits.items() if split != "dev"]))
        mapped = map_texts(system.table, judged, judged, neighbors, max(dims))
        cells = [(k, d) for k, one in mapped.items() for d in dims if d <= one.dims]
        lines = [system, *(Line(lp(system.method), d, mapped[k].at(d)) for k, d in cells)]
        (result,) = (similarity if paired else accuracy(classify))(lines, task, int(shared["seed"]))
        common = {"dataset": name, "backbone": system.backbone}
        own = {**common, "n_train": system.n_train, "metric": result.metric}
        rows.append({**own, "method": system.method, "dim": system.dim, **result.scores[0].columns})
        own["method"], found = lp(system.method), result.scores[1:]
        for i, (k, d) in enumerate(cells):
            rows.append({**own, "dim": d, "setting": f"{NEIGHBOURS}{k}", **found[i].columns})
        dim = cells[int(np.argmax(found.value))][1]
        X, Y = system.table[judged], {k: one.at(dim)[judged] for k, one in mapped.items() if dim <= one.dims}
        statistics = {
            "residual variance": {k: residual_variance(X, each) for k, each in Y.items()},
            "Procrustes": {k: procrustes_statistic(X, each, k) for k, each in Y.items()},
        }
        for statistic, by_k in statistics.items():
            at = {**own, "metric": statistic, "dim": dim}
            rows += [{**at, "setting": f"{NEIGHBOURS}{k}", "value": value} for k, value in by_k.items()]
        picked = {statistic: min(by_k, key=by_k.__getitem__) for statistic, by_k in statistics.items()}
        compared = comparisons(cells, found, picked, RANGES["sts" if paired else "sentiment"])
        rows += [{**common, "metric": f"{result.metric}_lead", **row} for row in compared]
    return make_rows(rows, **{"readout": "encoder", **shared})


def comparisons(
    cells: Sequence[tuple[int, int]], scores: Resampled, picked: Mapping[str, int], dims: tuple[int, int]
) -> Iterator[dict[str, Any]]:
    """The best number of neighbours against the worst and those picked, and the best dim of a range against others."""
    top = int(np.argmax(scores.value))
    k, dim = cells[top]
    worst = min((i for i, cell in enumerate(cells) if cell[1] == dim), key=lambda i: scores.value[i])
    for name, i in {"worst": worst, **{name: cells.index((k, dim)) for name, k in picked.items()}}.items():
        setting = f"{NEIGHBOURS}{cells[i][0]}"
        yield {"method": f"grid − {name}", "dim": dim, "setting": setting, **(scores[top] - scores[i]).columns}
    within = np.array([dims[0] <= d <= dims[1] for _, d in cells])
    sides = [np.flatnonzero(side & np.array([n == k for n, _ in cells])) for side in (within, ~within)]
    if all(map(len, sides)):
        inside, outside = (Resampled(scores.value[i].max(), scores.draws[:, i].max(1)) for i in sides)
        best_dim = cells[sides[0][int(np.argmax(scores.value[sides[0]]))]][1]
        own = {"method": RANGE, "dim": best_dim, "setting": f"{NEIGHBOURS}{k}"}
        yield {**own, **(inside - outside).columns}
