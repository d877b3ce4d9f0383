"""Figures 1 to 4: the lines of every encoder × setting × method × size of a task, and what is
compared.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from repro.evaluation.stats import mean_draws
from repro.methods import FULL_SIZE
from repro.papers.zhang.claims import BETWEEN, SETTINGS
from repro.papers.zhang.tasks import ReducedTask
from repro.reducers import REDUCER_NAMES, reduced
from repro.reducers.kernel_matrix import KERNELS
from repro.runs.encoders import Named, dims_of
from repro.runs.engine import score_rows
from repro.runs.lines import Line, Task, TextTable
from repro.runs.scorers import Judged, Scorer, by_kind, stored_classification
from repro.sets import ScoredPairs
from repro.store import Store
from repro.types import Array, one_of, told_as

METHODS = {
    name: REDUCER_NAMES[name] for name in ("pca", "svd", "kpca", "grp", "autoencoder", "truncate")
}
"""Reducers to what the paper's Table 1 calls them; Truncate, the first columns, is ours."""
RESCALED = "divided by √(2γ)"  # Setting of kernel PCA on PCA's scale


@dataclass(frozen=True)
class Variant:
    """Another form of a method, shown beside it in the inductive setting: an audit of what the
    paper leaves open.
    """

    method: str
    setting: str  # What rows say after `inductive, `
    params: Mapping[str, Any] = field(default_factory=dict)
    # Divide by √(2γ), γ = 1/D: what the Gaussian kernel multiplies small distances by
    rescale: bool = False


def other_kernels(kernel: str, *kernels: str) -> list[Variant]:
    """Kernel PCA with each of some kernels but one."""
    return [
        Variant("kpca", f"kernel={name}", {"kernel": name}) for name in kernels if name != kernel
    ]


def ways_of(
    methods: Sequence[str],
    settings: Sequence[str],
    kernel: str = "rbf",
    variants: Sequence[Variant] = (),
) -> list[Variant]:
    """Every method in every setting, then the variants, fitted in the inductive setting.

    None trains the autoencoder in the `wiki` setting, which is not the paper's.
    """
    one_of(kernel, KERNELS, "kernel")  # Else each of its sizes would be left out
    ways = []
    for setting in settings:
        for name in methods:
            one_of(name, list(METHODS), "method")
            if (name, setting) != ("autoencoder", "wiki"):
                ways.append(Variant(name, setting, {"kernel": kernel} if name == "kpca" else {}))
    for variant in variants:
        ways.append(replace(variant, setting=f"inductive, {variant.setting}"))
    return ways


def lines_of(
    encoder: Named,
    task: ReducedTask,
    store: Store,
    ways: Sequence[Variant],
    *,
    dims: Sequence[float],
    trained_dims: Sequence[float],
    seed: int = 0,
) -> Iterator[Line]:
    """The full size of an encoder's embeddings, then every way (`ways_of`) at every size; sizes
    below 1 are shares of it.

    Each of `trained_dims` is a training of the autoencoder; without any it has no line. Where a
    task has folds, there is a fit for each.
    """
    table, folds = encoder.embed(task.parts, store), list(task.folds.values()) or [task]
    full, texts = table.X.shape[1], [fold.judged_texts for fold in folds]
    X = [table[of_fold] for of_fold in texts]
    indices = [dict(zip(of_fold, range(len(of_fold)), strict=True)) for of_fold in texts]
    sizes = dict.fromkeys(METHODS, dims_of(full, dims))
    with told_as(dims="autoencoder_dims"):
        sizes["autoencoder"] = dims_of(full, trained_dims) if trained_dims else []
    fits: dict[str, list[Array]] = {}
    for setting in dict.fromkeys(way.setting.split(",")[0] for way in ways):
        fits[setting] = [table[fold.fit_texts(setting)] for fold in folds]

    def line(method: str, dim: int, Ys: Iterable[Array], setting: str = "") -> Line:
        tables = [TextTable(index, Y) for index, Y in zip(indices, Ys, strict=True)]
        by_task = dict(zip(task.folds, tables, strict=True)) if task.folds else tables[0]
        return Line(method, dim, by_task, setting, backbone=encoder.name, read=encoder.read)

    yield line(FULL_SIZE, full, X)
    for way in ways:
        reductions = []
        for X_fit, X_fold in zip(fits[way.setting.split(",")[0]], X, strict=True):
            options = {"seed": seed, **way.params}
            reductions.append(
                reduced(way.method, X_fit, X_fold, sizes[way.method], store, **options)
            )
        factor = np.float32(np.sqrt(full / 2) if way.rescale else 1)
        for of_folds in zip(*reductions, strict=True):
            Ys = [Y * factor for _, Y in of_folds]
            yield line(METHODS[way.method], of_folds[0][0], Ys, way.setting)


def compared(line: Line, other: Line) -> bool:
    """Every line with its encoder at full size; two methods of one size and setting, and a method's
    two settings.

    Of two methods the later one in `METHODS` comes first, as in `SVD − PCA`; of two settings the
    transductive one.
    """
    if line.backbone != other.backbone or line.method == FULL_SIZE:
        return False
    if other.method == FULL_SIZE:
        return True
    if line.dim != other.dim or "," in line.setting + other.setting:
        return False
    order = list(METHODS.values())
    later = order.index(line.method) > order.index(other.method)
    between = line.method == other.method and (line.setting, other.setting) == (
        "transductive",
        "inductive",
    )
    return between or (line.setting == other.setting and later)


def scorer_of(task: ReducedTask, store: Store, protocol: str) -> Scorer:
    """`by_kind`; where a labelled task has folds, the accuracy over the rows of all."""

    def over_folds(lines: Sequence[Line], judged_task: Task, seed: int) -> Iterator[Judged]:
        options: dict[str, Any] = {"store": store, "protocol": protocol, "seed": seed}
        right, floors = [], []
        for line in lines:
            scores = [
                stored_classification(line.on(name), name, fold, **options)
                for name, fold in task.folds.items()
            ]
            right.append(np.concatenate([score.items for score in scores]))
            floors.append(float(np.mean([score.floor for score in scores])))
        yield Judged("accuracy", mean_draws(right, seed=seed), floors[0])

    return (
        by_kind(store, protocol=protocol)
        if not task.folds or isinstance(task.judged, ScoredPairs)
        else over_folds
    )


def reduced_rows(
    lines: Sequence[Line],
    task: ReducedTask,
    store: Store,
    *,
    protocol: str = "logreg",
    **options: Any,
) -> pd.DataFrame:
    """`score_rows` of one task with the paper's comparisons.

    The lead of a method over itself stands in the setting `transductive − inductive`. `n_train` is
    the number of distinct sentences that a line's reducer was fitted on.
    """
    scorer = scorer_of(task, store, protocol)
    frame = score_rows(lines, {task.name: task}, scorer, contrasts=[compared], **options)
    sides = frame["method"].str.split(" − ", expand=True).reindex(columns=[0, 1])
    frame.loc[(sides[0] == sides[1]).fillna(False), "setting"] = BETWEEN
    first_fold = next(iter(task.folds.values()), task)
    fitted = {}
    for setting in SETTINGS:
        if setting != "wiki" or task.wiki is not None:
            fitted[setting] = len(first_fold.fit_texts(setting))
    counts = [fitted.get(str(setting).split(",")[0]) for setting in frame["setting"]]
    return frame.assign(n_train=pd.array(counts, dtype="Int64"))
