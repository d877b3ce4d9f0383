"""Figures 1 to 4: every encoder × setting × method × dim of a task, the paper's comparisons, and how curves jump."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro.evaluation.stats import mean_draws, percentiles
from repro.methods import FULL_SIZE, REDUCER_NAMES, ZHANG_METHODS
from repro.models.encoder import merge_equal
from repro.papers.zhang.losses import AUTOENCODER, BETWEEN, SETTINGS
from repro.papers.zhang.tasks import Task, fit_texts
from repro.rows import make_rows
from repro.runs import suite
from repro.runs.embeddings import TextTable
from repro.runs.encoders import NamedEncoder
from repro.runs.reduce import dims_of, reduced
from repro.runs.score import stored_classification
from repro.runs.suite import Contender
from repro.sets import texts_of
from repro.store import Store
from repro.types import Array, one_of

RESCALED = "divided by √(2γ)"
"""setting of kernel PCA on PCA's scale"""
METHODS = {name: REDUCER_NAMES[name] for name in ("pca", "svd", "kpca", "grp", "autoencoder", "truncate")}
"""reducers to what the paper's Table 1 calls them; Truncate, the first columns, is ours"""


@dataclass(frozen=True)
class Variant:
    """Another form of a method, shown beside it in the inductive setting: an audit of what the paper leaves open."""

    method: str
    setting: str
    """what rows say after `inductive, `"""
    params: Mapping[str, Any] = field(default_factory=dict)
    rescale: bool = False
    """divide by √(2γ), γ = 1/D: what the Gaussian kernel multiplies small distances by"""


def contenders(
    encoder: NamedEncoder,
    task: Task,
    store: Store,
    *,
    methods: Sequence[str] = tuple(METHODS),
    settings: Sequence[str] = ("inductive", "transductive"),
    dims: Sequence[float],
    trained_dims: Sequence[float] | None = None,
    params: Mapping[str, Mapping[str, Any]] | None = None,
    variants: Sequence[Variant] = (),
    seed: int = 0,
) -> Iterator[Contender]:
    """The lines of one encoder: its full size, then every setting, method and dim.

    Args:
        encoder: whose embeddings are reduced.
        task: what they are judged by.
        store: where embeddings and slow reductions are kept.
        methods: reducers by name.
        settings: what they are fitted on: inductive, transductive or wiki.
        dims: sizes; those below 1 are shares of the full size.
        trained_dims: sizes of the autoencoder, each a training of its own; None takes `dims`. The `wiki` setting, which
            is not the paper's, leaves it out.
        params: of reducers, by name.
        variants: other forms of some reducers, fitted in the inductive setting.
        seed: of reducers that draw at random.
    """
    for name in methods:
        one_of(name, list(METHODS), "method")
    table = encoder.embed(task.parts, store)
    judged = merge_equal([text for part in task.judged.values() for text in texts_of(part)])[0]
    X, index = table[judged], {text: i for i, text in enumerate(judged)}
    sizes = dims_of(X.shape[1], dims)
    trained = dims_of(X.shape[1], trained_dims or dims)
    fits = {setting: table[fit_texts(setting, task)] for setting in dict.fromkeys(("inductive", *settings))}
    yield Contender(FULL_SIZE, X.shape[1], "encoder", "", TextTable(index, X), encoder.name)

    def lines(
        name: str, setting: str, fit: Array, options: Mapping[str, Any], factor: float = 1.0
    ) -> Iterator[Contender]:
        wanted = trained if name == "autoencoder" else sizes
        for d, Y in reduced(name, fit, X, wanted, store, seed=seed, **options):
            yield Contender(
                METHODS[name], d, "encoder", setting, TextTable(index, Y * np.float32(factor)), encoder.name
            )

    for setting in settings:
        for name in methods:
            if (name, setting) == ("autoencoder", "wiki"):
                continue
            yield from lines(name, setting, fits[setting], (params or {}).get(name, {}))
    for variant in variants:
        factor = float(np.sqrt(X.shape[1] / 2)) if variant.rescale else 1.0
        yield from lines(variant.method, f"inductive, {variant.setting}", fits["inductive"], variant.params, factor)


def suite_rows(lines: Sequence[Contender], task: Task, store: Store, **options: Any) -> pd.DataFrame:
    """`runs.suite.suite_rows` of one task with the paper's comparisons.

    Leads, on shared resamples: every line over its encoder at full size; every two methods of one size and setting;
    and each method fitted transductively over the same fitted inductively, as setting `transductive − inductive`.
    `n_train` is the number of distinct sentences that a line's reducer was fitted on.
    """
    frame = suite.suite_rows(lines, {task.name: task.judged}, store, rivals=_rivals, **options)
    sides = frame["method"].str.split(" − ", expand=True).reindex(columns=[0, 1])
    frame.loc[(sides[0] == sides[1]).fillna(False), "setting"] = BETWEEN
    fitted = {s: len(fit_texts(s, task)) for s in SETTINGS if s != "wiki" or task.wiki is not None}
    counts = [fitted.get(str(setting).split(",")[0]) for setting in frame["setting"]]
    return frame.assign(n_train=pd.array(counts, dtype="Int64"))


def _rivals(lines: Sequence[Contender]) -> Iterator[tuple[int, int]]:
    """Which lines are compared; of two methods the later one in `METHODS` comes first, as in `SVD − PCA`."""
    order = [FULL_SIZE, *METHODS.values()]
    for a, line in enumerate(lines):
        for b, other in enumerate(lines):
            if line.backbone != other.backbone or line.method == FULL_SIZE:
                continue
            plain = line.dim == other.dim and "," not in line.setting + other.setting
            within = line.setting == other.setting and order.index(line.method) > order.index(other.method)
            between = line.method == other.method and (line.setting, other.setting) == ("transductive", "inductive")
            if other.method == FULL_SIZE or (plain and (within or between)):
                yield a, b


def roughness(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviation of the differences between neighbouring sizes, of scores (…, sizes)."""
    return np.asarray(np.diff(scores, axis=-1).std(axis=-1), np.float64)


def roughness_rows(
    lines: Sequence[Contender], task: Task, store: Store, *, protocol: str = "logreg", **shared: Any
) -> pd.DataFrame:
    """Roughness of every method per encoder and setting, and the autoencoder's lead over the roughest of the others.

    Sizes are those that every method has; where these are fewer than three there is nothing to compare, and no row. A
    lead is read on resamples of the test items that all methods share; the
    roughest of the others is chosen anew in each.

    Args:
        lines: the contenders of a labelled task, scored before: their probes come from the store.
        task: the task.
        store: where fitted probes are kept.
        protocol: classifier protocol.
        shared: columns common to all rows; `seed` is also that of folds and bootstrap.
    """
    seed = int(shared["seed"])
    groups = dict.fromkeys((line.backbone, line.setting) for line in lines if line.setting and "," not in line.setting)
    rows: list[dict[str, Any]] = []
    for backbone, setting in groups:
        own = [line for line in lines if (line.backbone, line.setting) == (backbone, setting)]
        by = {m: {int(line.dim or 0): line for line in own if line.method == m} for m in ZHANG_METHODS}
        by = {m: at for m, at in by.items() if at}
        dims = sorted(set.intersection(*(set(at) for at in by.values()))) if by else []
        if len(dims) < 3:
            continue
        items = [
            stored_classification(by[m][d].table, task.name, task.judged, store, protocol=protocol, seed=seed).items
            for m in by
            for d in dims
        ]
        plain, resampled = mean_draws(items, seed=seed)
        value = roughness(plain.reshape(len(by), -1))  # (methods,)
        draws = roughness(resampled.reshape(len(resampled), len(by), -1))  # (resamples, methods)
        common = {"backbone": backbone, "setting": setting, "dataset": task.name, "readout": "encoder"}
        for k, method in enumerate(by):
            found = percentiles(value[k], draws[:, k])
            rows.append({**common, "method": method, "metric": "roughness", **found.columns})
        if AUTOENCODER in by and len(by) > 1:
            k = list(by).index(AUTOENCODER)
            others = np.delete(value, k), np.delete(draws, k, axis=1)
            lead = percentiles(value[k] - others[0].max(), draws[:, k] - others[1].max(axis=1))
            rows.append({**common, "method": f"{AUTOENCODER} − others", "metric": "roughness_lead", **lead.columns})
    return make_rows(rows, **shared)
