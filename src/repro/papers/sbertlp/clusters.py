"""Table 3: K-means on 20 Newsgroups, by four indicators, every system and the mapping."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro.evaluation.classify import INDICATORS, indicators, kmeans
from repro.evaluation.stats import percentiles
from repro.papers.sbertlp.claims import HONEST, ORACLE, TRANSDUCTIVE, lp
from repro.papers.sbertlp.mapping import Placed, best, grid_scores, map_texts, prefix, within
from repro.rows import make_rows
from repro.runs.embeddings import TextTable
from repro.runs.suite import Contender
from repro.seeding import derive_seed, make_rng
from repro.sets import LabelledTexts
from repro.types import Array

RESAMPLES = 1_000
BLOCK = 2**22
"""drawn documents held at once"""
SETTINGS = (HONEST, f"{TRANSDUCTIVE}, {ORACLE}")


def place(
    table: TextTable,
    judged: LabelledTexts,
    dev: LabelledTexts,
    *,
    neighbors: Sequence[int],
    dims: Sequence[int],
    seed: int = 0,
) -> Placed:
    """Judged posts under the mapping fitted on them, chosen by NMI: on posts of the training split, and on themselves.

    Args:
        table: a system's embeddings of all posts.
        judged: posts to cluster.
        dev: posts of the training split, on which neighbours and dims are chosen by NMI.
        neighbors: grid of neighbours.
        dims: grid of dims.
        seed: of K-means.
    """
    for setting, posts in zip(SETTINGS, (dev, judged), strict=True):
        mapped = map_texts(table, posts.texts, posts.texts, neighbors, max(dims))
        scores = grid_scores(mapped, dims, _nmi(posts, seed))
        pick = best(scores if posts is judged else within(scores, min(len(dev), len(judged))))
        if posts is not judged:
            mapped = map_texts(table, judged.texts, judged.texts, [pick.n_neighbors], pick.dim)
        yield setting, judged.name, pick.reached(mapped)


def cluster_rows(
    lines: Sequence[Contender], judged: LabelledTexts, *, starts: Sequence[int], **shared: Any
) -> pd.DataFrame:
    """Four indicators of every line, their means over K-means seeds, and the leads of mapped lines over their systems.

    Intervals are over resampled posts, the same for all lines. A resample repeats posts, which makes information
    look higher: the draws are moved so that their mean is the value itself.

    Args:
        lines: the contenders.
        judged: posts to cluster.
        starts: seeds of K-means.
        shared: columns common to all rows; `seed` is also that of the bootstrap.
    """
    found, columns = {}, {}
    y = np.unique(judged.labels, return_inverse=True)[1]
    clusters = int(y.max()) + 1
    X = [line.on(judged.name)[judged.texts] for line in lines]
    partitions = [[kmeans(each, clusters, seed=s) for s in starts] for each in X]
    draws = _draws([p for per_line in partitions for p in per_line], y, seed=int(shared["seed"]))
    for i, per_line in enumerate(partitions):
        at = slice(i * len(starts), (i + 1) * len(starts))
        counts = np.stack([_table(p, y, clusters) for p in per_line])
        for name, each in indicators(counts).items():
            value = float(each.mean())
            resampled = draws[name][at].mean(0)
            found[i, name], columns[i, name] = value, resampled - resampled.mean() + value
    rows = []
    for (i, name), value in found.items():
        line = lines[i]
        own = {
            "method": line.method,
            "dim": X[i].shape[1],
            "readout": line.readout,
            "setting": line.setting,
            "backbone": line.backbone,
            "dataset": judged.name,
        }
        rows.append({**own, "metric": name, **percentiles(value, columns[i, name]).columns})
        for j, base in enumerate(lines):
            if line.method == lp(base.method):
                lead = percentiles(value - found[j, name], columns[i, name] - columns[j, name])
                method = f"{line.method} − {base.method}"
                rows.append({**own, "method": method, "metric": f"{name}_lead", **lead.columns})
    return make_rows(rows, **shared)


def _nmi(posts: LabelledTexts, seed: int) -> Any:
    y = np.unique(posts.labels, return_inverse=True)[1]
    clusters = int(y.max()) + 1

    def score(table: TextTable, dims: Sequence[int]) -> Array:
        X = [prefix(table, d)[posts.texts] for d in dims]
        counts = np.stack([_table(kmeans(each, clusters, seed=seed), y, clusters) for each in X])
        return indicators(counts)["nmi"]

    return score


def _table(found: NDArray[Any], y: NDArray[Any], clusters: int) -> NDArray[np.int64]:
    """n_cy (clusters, classes), with a row for every cluster."""
    return np.bincount(found * clusters + y, minlength=clusters * clusters).reshape(clusters, clusters)


def _draws(partitions: Sequence[NDArray[Any]], y: NDArray[Any], *, seed: int) -> Mapping[str, Array]:
    """Indicators of every partition on the same resampled posts: name → (partitions, RESAMPLES)."""
    n, clusters = len(y), int(y.max()) + 1
    cells = [p * clusters + y for p in partitions]
    drawn: dict[str, list[list[Array]]] = {name: [[] for _ in partitions] for name in INDICATORS}
    rng = make_rng(derive_seed(seed, "bootstrap"), "posts")
    step = max(1, BLOCK // n)
    for start in range(0, RESAMPLES, step):
        size = min(step, RESAMPLES - start)
        picks = rng.integers(n, size=(size, n))
        offset = clusters * clusters * np.arange(size)[:, None]
        for i, cell in enumerate(cells):
            counts = np.bincount((cell[picks] + offset).ravel(), minlength=size * clusters * clusters)
            for name, values in indicators(counts.reshape(size, clusters, clusters)).items():
                drawn[name][i].append(values)
    return {name: np.stack([np.concatenate(part) for part in parts]) for name, parts in drawn.items()}
