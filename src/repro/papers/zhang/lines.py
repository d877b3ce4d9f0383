"""Figures 1 to 4: every encoder × setting × method × size of a task, what is compared, and how much
a curve jumps.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from repro import data
from repro.config import TrainConfig
from repro.data.samples import training_sentences
from repro.evaluation.classify import stratified_folds
from repro.evaluation.stats import Resampled, mean_draws
from repro.methods import FULL_SIZE, ZHANG_METHODS
from repro.models.encoder import merge_equal
from repro.papers.zhang.claims import AUTOENCODER, BETWEEN, DISTANCE, RANKS, SETTINGS, WITHIN
from repro.reducers import REDUCER_NAMES, reduced
from repro.rows import make_rows
from repro.runs.encoders import Named, dims_of
from repro.runs.engine import score_rows
from repro.runs.lines import Line, Task, TextTable, parts_of
from repro.runs.scorers import Judged, Scorer, by_kind, stored_classification
from repro.sets import Corpus, DataSet, ScoredPairs, texts_of
from repro.store import Store
from repro.types import Array, InputError, one_of

METHODS = {
    name: REDUCER_NAMES[name] for name in ("pca", "svd", "kpca", "grp", "autoencoder", "truncate")
}
"""Reducers to what the paper's Table 1 calls them; Truncate, the first columns, is ours."""
# Of the parts of a task, SentEval's: equal for all seeds, so that these share items
FOLDS_SEED = 1111
RESCALED = "divided by √(2γ)"  # Setting of kernel PCA on PCA's scale


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
        clauses, drawn = [], ""
        for split, available in self.available.items():
            rows = len(self.splits[split])
            if rows == available:
                clauses.append(f"{split}: all {available:,}")
            else:
                clauses.append(f"{split}: {rows:,} of {available:,}")
            if rows < available:
                drawn = ", drawn at random"
        return "; ".join(clauses) + drawn


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
    drawn = {split: data.take(rows_of_split, rows) for split, rows_of_split in splits.items()}
    available = {split: len(rows_of_split) for split, rows_of_split in splits.items()}
    return ReducedTask(name, drawn, available, wiki=corpus)


def in_folds(task: ReducedTask, k: int) -> ReducedTask:
    """The task with all rows judged, in k parts of like labels or scores: one is the test split,
    the next any dev.
    """
    if k < 2:
        raise InputError(f"folds is {k}: expected 2 or more parts, or 0 for the test split alone")
    splits: list[Any] = list(task.splits.values())
    joined: dict[str, Any] = {}
    for name in splits[0].groups[0]:
        columns = [getattr(split, name) for split in splits]
        joined[name] = np.concatenate(columns) if name == "scores" else tuple(chain(*columns))
    whole = replace(splits[0], **joined)
    labels = whole.scores.round() if isinstance(whole, ScoredPairs) else whole.labels
    fold, folds = stratified_folds(labels, k, FOLDS_SEED), {}
    for i in range(k):
        test, dev = fold == i, (fold == (i + 1) % k) & ("dev" in task.splits)
        rows = {"test": test, "dev": dev, "train": ~test & ~dev}
        of_fold = {name: whole.keep(np.flatnonzero(rows[name]), split=name) for name in task.splits}
        folds[f"{task.name}, part {i + 1} of {k}"] = ReducedTask(task.name, of_fold, wiki=task.wiki)
    return replace(task, folds=folds)


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
    ways = []
    for setting in settings:
        for name in methods:
            one_of(name, list(METHODS), "method")
            if (name, setting) != ("autoencoder", "wiki"):
                ways.append(Variant(name, setting, {"kernel": kernel} if name == "kpca" else {}))
    return ways + [replace(one, setting=f"inductive, {one.setting}") for one in variants]


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


def _scorer(task: ReducedTask, store: Store, protocol: str) -> Scorer:
    """`by_kind`; where a labelled task has folds, the accuracy over the rows of all."""

    def over_folds(lines: Sequence[Line], whole: Task, seed: int) -> Iterator[Judged]:
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
    scorer = _scorer(task, store, protocol)
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


def _curves(
    scores: Resampled,
    place: Mapping[tuple[str, Any], int],
    methods: Sequence[str],
) -> Resampled:
    """Scores (methods, sizes) at the sizes that all of them have; `place` says where each method
    and size stands.
    """
    dims = {dim for _, dim in place}
    for method in methods:
        dims &= {dim for name, dim in place if name == method}
    places = [[place[method, dim] for dim in sorted(dims)] for method in methods]
    return scores[np.array(places, dtype=int)]


def curve_rows(
    lines: Sequence[Line],
    task: ReducedTask,
    store: Store,
    *,
    protocol: str = "logreg",
    **shared: Any,
) -> pd.DataFrame:
    """What curves are as wholes, in the paper's settings; test items are resampled for all sizes
    and encoders at once.

    Per encoder and setting: `roughness` of every method, over the sizes that all have, if they are
    three or more, and the autoencoder's lead over the roughest of the other four, which each
    resample chooses anew; `distance_from_pca`, the mean absolute difference over sizes that both
    have. Over all encoders together (published ones, if there are two), settings and sizes:
    `ranks_behind_pca`, a method's mean rank among the five less PCA's.
    """
    of_five = [line for line in lines if line.method in ZHANG_METHODS]
    of_five = [line for line in of_five if line.setting in WITHIN]
    if not of_five:
        return make_rows([])
    (judged,) = _scorer(task, store, protocol)(of_five, task, int(shared["seed"]))
    places: dict[tuple[str | None, str], dict[tuple[str, Any], int]] = {}
    for i, line in enumerate(of_five):
        places.setdefault((line.backbone, line.setting), {})[line.method, line.dim] = i
    rows: list[dict[str, Any]] = []
    ranks: dict[str, list[Resampled]] = {}
    for (backbone, setting), place in places.items():
        present = {method for method, _ in place}
        methods = [name for name in ZHANG_METHODS if name in present]
        together = _curves(judged.scores, place, methods)
        all_five = len(methods) == len(ZHANG_METHODS) and together.value.size > 0
        if all_five:
            ranked = together.map(lambda scores: rankdata(-scores, axis=-2).mean(-1))
            ranks.setdefault(str(backbone), []).append(ranked)
        shapes = _roughness(together, methods, all_five) | _distances(judged.scores, place, methods)
        for (name, metric), shape in shapes.items():
            about = {"backbone": backbone, "setting": setting, "method": name, "metric": metric}
            rows.append({**about, **shape.columns})
    common = {"dataset": task.name, "readout": "encoder"}
    return make_rows([*rows, *_rank_rows(ranks)], **{**shared, **common})


def _roughness(
    together: Resampled,
    methods: Sequence[str],
    all_five: bool,
) -> dict[tuple[str, str], Resampled]:
    """By method and metric: how rough each curve is, and how much rougher the autoencoder's is than
    the roughest of the other four; nothing of fewer than three sizes.
    """
    if together.value.shape[1] < 3:
        return {}
    jumps = together.map(np.diff, axis=-1).map(np.std, axis=-1)
    roughness = {(name, "roughness"): jumps[k] for k, name in enumerate(methods)}
    if all_five:
        k = methods.index(AUTOENCODER)
        roughest = jumps.map(np.delete, k, axis=-1).map(np.max, axis=-1)
        roughness[f"{AUTOENCODER} − others", "roughness_lead"] = jumps[k] - roughest
    return roughness


def _distances(
    scores: Resampled,
    place: Mapping[tuple[str, Any], int],
    methods: Sequence[str],
) -> dict[tuple[str, str], Resampled]:
    """By method and metric: how far each curve is from the first method's, PCA's, if that is
    there.
    """
    first = ZHANG_METHODS[0]
    distances: dict[tuple[str, str], Resampled] = {}
    for name in methods[1:] if first in methods else []:
        pair = _curves(scores, place, [first, name])
        if pair.value.size:
            distances[name, DISTANCE] = pair.map(
                lambda scores: np.abs(np.diff(scores, axis=-2)).mean((-1, -2))
            )
    return distances


def _rank_rows(ranks: Mapping[str, Sequence[Resampled]]) -> Iterator[dict[str, Any]]:
    """Each method's mean rank less PCA's, over the published encoders if they are two, else over
    all; nothing of a single one.
    """
    published = [name for name in ranks if not name.startswith("repro")]
    encoders = sorted(published if len(published) > 1 else ranks)
    if len(encoders) < 2:
        return
    ranked = list(chain.from_iterable(ranks[name] for name in encoders))
    overall = replace(Resampled.averaged(ranked), n=ranked[0].n)  # All on the same items
    for k, name in enumerate(ZHANG_METHODS[1:], start=1):
        about = {"setting": ", ".join(encoders), "method": name, "metric": RANKS}
        yield {**about, **(overall[k] - overall[0]).columns}
