"""How the tables score sentences under the mapping: similarity, votes of nearest neighbours, K-means.

And Figures 2 to 5: scores against neighbours and dims, with what two statistics would pick.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
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
from repro.evaluation.retention import procrustes_statistic, residual_variance
from repro.evaluation.stats import Resampled, Score
from repro.evaluation.sts import sts_spearman
from repro.papers.sbertlp.claims import CHOSEN, HONEST, INDUCTIVE, NEIGHBOURS, ORACLE, RANGE, RANGES, TRANSDUCTIVE, lp
from repro.papers.sbertlp.mapping import map_texts, prefix, sentences
from repro.rows import make_rows
from repro.runs.lines import Judged, Line, Scorer, Task, TextTable, accuracy, similarity
from repro.seeding import derive_seed, make_rng
from repro.sets import DataSet, LabelledPairs, LabelledTexts, ScoredPairs
from repro.types import Array, InputError, Labels

SETTINGS = (HONEST, f"{TRANSDUCTIVE}, {ORACLE}")  # of the mapped lines of Tables 2 and 3
STS_SETTINGS = (HONEST, f"{INDUCTIVE}, {CHOSEN}", f"{TRANSDUCTIVE}, {ORACLE}")  # of those of Table 1
K = 3  # votes, Section 4.4.1
RESAMPLES, BLOCK = 1_000, 2**22  # of posts, and drawn posts held at once


def sts_score(pairs: ScoredPairs) -> Callable[[TextTable, Sequence[int]], Array]:
    """Spearman of some pairs at some dims, for `grid_scores`."""
    return lambda table, dims: np.asarray(
        sts_spearman(table[pairs.texts1], table[pairs.texts2], pairs.scores, dims=dims)
    )


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
        y = np.unique(posts.labels, return_inverse=True)[1]
        clusters = int(y.max()) + 1
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
        lines = [system, *(Line(lp(system.method), d, prefix(mapped[k].table, d)) for k, d in cells)]
        (result,) = (similarity if paired else accuracy(classify))(lines, task, int(shared["seed"]))
        common = {"dataset": name, "backbone": system.backbone}
        own = {**common, "n_train": system.n_train, "metric": result.metric}
        rows.append({**own, "method": system.method, "dim": system.dim, **result.scores[0].columns})
        own["method"], found = lp(system.method), result.scores[1:]
        for i, (k, d) in enumerate(cells):
            rows.append({**own, "dim": d, "setting": f"{NEIGHBOURS}{k}", **found[i].columns})
        dim = cells[int(np.argmax(found.value))][1]
        X, Y = system.table[judged], {k: one.table[judged][:, :dim] for k, one in mapped.items() if dim <= one.dims}
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
