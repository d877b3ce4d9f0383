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
from repro.runs.lines import (
    Judged,
    Line,
    Scorer,
    Task,
    TextTable,
    by_kind,
    parts_of,
    score_rows,
    stored_classification,
)
from repro.sets import Corpus, DataSet, ScoredPairs, texts_of
from repro.store import Store
from repro.types import Array, InputError, one_of

METHODS = {
    name: REDUCER_NAMES[name] for name in ("pca", "svd", "kpca", "grp", "autoencoder", "truncate")
}
"""Reducers to what the paper's Table 1 calls them; Truncate, the first columns, is ours."""
# Of the parts of a task, SentEval's: equal for all seeds, so that these share items
FOLDS_SEED = 1111
RESCALED = "divided by √(2γ)"  # setting of kernel PCA on PCA's scale


@dataclass(frozen=True)
class ReducedTask(Task):
    """A task with the sentences that a reducer may learn from (method-fit-sets in the book)."""

    wiki: Corpus | None = None  # foreign sentences, where a setting needs them

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
        needed = [self.judged] if isinstance(self.judged, ScoredPairs) else self.splits.values()
        return merge_equal([text for part in needed for text in texts_of(part)])[0]

    def fit_texts(self, setting: str) -> list[str]:
        """The distinct sentences that a reducer is fitted on, both sides of pairs."""
        train, test = self.splits["train"], self.splits["test"]
        sources: dict[str, list[DataSet]] = {"inductive": [train], "transductive": [train, test]}
        if self.wiki is not None:
            sources["wiki"] = [self.wiki]
        one_of(setting, list(sources), "setting of this task")
        return merge_equal([text for part in sources[setting] for text in texts_of(part)])[0]

    def describe(self) -> str:
        """How many rows each split keeps, in words."""
        kept = {split: (len(self.splits[split]), n) for split, n in self.available.items()}
        said = [
            f"{split}: all {n:,}" if k == n else f"{split}: {k:,} of {n:,}"
            for split, (k, n) in kept.items()
        ]
        return "; ".join(said) + (
            ", drawn at random" if any(k < n for k, n in kept.values()) else ""
        )


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
    kept = {split: data.take(part, rows) for split, part in splits.items()}
    return ReducedTask(
        name,
        kept,
        {split: len(part) for split, part in splits.items()},
        wiki=corpus,
    )


def in_folds(task: ReducedTask, k: int) -> ReducedTask:
    """The task with all rows judged, in k parts of like labels or scores: one is the test split,
    the next any dev.
    """
    if k < 2:
        raise InputError(f"folds is {k}: expected 2 or more parts, or 0 for the test split alone")
    splits: list[Any] = list(task.splits.values())
    columns = {name: [getattr(part, name) for part in splits] for name in splits[0].groups[0]}
    joined = {
        name: np.concatenate(c) if name == "scores" else tuple(chain(*c))
        for name, c in columns.items()
    }
    whole = replace(splits[0], **joined)
    labels = whole.scores.round() if isinstance(whole, ScoredPairs) else whole.labels
    fold, parts = stratified_folds(labels, k, FOLDS_SEED), {}
    for i in range(k):
        at = {"test": fold == i, "dev": (fold == (i + 1) % k) & ("dev" in task.splits)}
        rows = {**at, "train": ~at["test"] & ~at["dev"]}
        kept = {name: whole.keep(np.flatnonzero(rows[name]), split=name) for name in task.splits}
        parts[f"{task.name}, part {i + 1} of {k}"] = ReducedTask(task.name, kept, wiki=task.wiki)
    return replace(task, folds=parts)


@dataclass(frozen=True)
class Variant:
    """Another form of a method, shown beside it in the inductive setting: an audit of what the
    paper leaves open.
    """

    method: str
    setting: str  # what rows say after `inductive, `
    params: Mapping[str, Any] = field(default_factory=dict)
    # Divide by √(2γ), γ = 1/D: what the Gaussian kernel multiplies small distances by
    rescale: bool = False


def lines_of(
    encoder: Named,
    task: ReducedTask,
    store: Store,
    *,
    methods: Sequence[str],
    settings: Sequence[str],
    dims: Sequence[float],
    trained_dims: Sequence[float],
    kernel: str = "rbf",
    variants: Sequence[Variant] = (),
    seed: int = 0,
) -> Iterator[Line]:
    """The full size of an encoder's embeddings, then every setting, method and size; sizes below 1
    are shares of it.

    Each of `trained_dims` is a training of the autoencoder, which the `wiki` setting, not the
    paper's, leaves out; without any the autoencoder has no line. Variants are fitted in the
    inductive setting. Where a task has folds, there is a fit for each.
    """
    for name in methods:
        one_of(name, list(METHODS), "method")
    table, parts = encoder.embed(task.parts, store), list(task.folds.values()) or [task]
    full, texts = table.X.shape[1], [part.judged_texts for part in parts]
    X, places = (
        [table[own] for own in texts],
        [{text: i for i, text in enumerate(own)} for own in texts],
    )
    sizes = dict.fromkeys(METHODS, dims_of(full, dims))
    sizes["autoencoder"] = dims_of(full, trained_dims) if trained_dims else []
    fits = {
        s: [table[part.fit_texts(s)] for part in parts]
        for s in dict.fromkeys(("inductive", *settings))
    }

    def line(method: str, dim: int, Ys: Iterable[Array], setting: str = "") -> Line:
        tables = [TextTable(index, Y) for index, Y in zip(places, Ys, strict=True)]
        by_task = dict(zip(task.folds, tables, strict=True)) if task.folds else tables[0]
        return Line(method, dim, by_task, setting, backbone=encoder.name)

    yield line(FULL_SIZE, full, X)
    kernels = {"kpca": {"kernel": kernel}}
    plain = [
        Variant(name, setting, kernels.get(name, {})) for setting in settings for name in methods
    ]
    plain = [each for each in plain if (each.method, each.setting) != ("autoencoder", "wiki")]
    for each in (
        *plain,
        *(replace(variant, setting=f"inductive, {variant.setting}") for variant in variants),
    ):
        pairs, factor = (
            zip(fits[each.setting.split(",")[0]], X, strict=True),
            np.sqrt(full / 2) if each.rescale else 1,
        )
        made = (
            reduced(each.method, *pair, sizes[each.method], store, seed=seed, **each.params)
            for pair in pairs
        )
        for of_parts in zip(*made, strict=True):
            Ys = [Y * np.float32(factor) for _, Y in of_parts]
            yield line(METHODS[each.method], of_parts[0][0], Ys, each.setting)


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
        found = [
            [stored_classification(x.on(n), n, p, **options) for n, p in task.folds.items()]
            for x in lines
        ]
        right = [np.concatenate([score.items for score in scores]) for scores in found]
        yield Judged(
            "accuracy",
            mean_draws(right, seed=seed),
            float(np.mean([s.floor for s in found[0]])),
        )

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
    part = next(iter(task.folds.values()), task)
    fitted = {s: len(part.fit_texts(s)) for s in SETTINGS if s != "wiki" or task.wiki is not None}
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
    dims = sorted(
        set.intersection(*({dim for name, dim in place if name == method} for method in methods))
    )
    return scores[np.array([[place[method, dim] for dim in dims] for method in methods], dtype=int)]


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
    of_five = [line for line in lines if line.method in ZHANG_METHODS and line.setting in WITHIN]
    if not of_five:
        return make_rows([])
    (judged,) = _scorer(task, store, protocol)(of_five, task, int(shared["seed"]))
    common, first = {"dataset": task.name, "readout": "encoder"}, ZHANG_METHODS[0]
    rows: list[dict[str, Any]] = []
    ranks: dict[str, list[Resampled]] = {}
    for backbone, setting in dict.fromkeys((line.backbone, line.setting) for line in of_five):
        own = enumerate(of_five)
        place = {
            (x.method, x.dim): i for i, x in own if (x.backbone, x.setting) == (backbone, setting)
        }
        methods = [name for name in ZHANG_METHODS if any(name == method for method, _ in place)]
        together, said = _curves(judged.scores, place, methods), {}
        five = len(methods) == len(ZHANG_METHODS) and together.value.size > 0
        if together.value.shape[1] > 2:
            jumps = together.map(np.diff, axis=-1).map(np.std, axis=-1)
            said = {(name, "roughness"): jumps[k] for k, name in enumerate(methods)}
            if five:
                k = methods.index(AUTOENCODER)
                roughest = jumps.map(np.delete, k, axis=-1).map(np.max, axis=-1)
                said[f"{AUTOENCODER} − others", "roughness_lead"] = jumps[k] - roughest
        if five:
            ranked = together.map(lambda scores: rankdata(-scores, axis=-2).mean(-1))
            ranks.setdefault(str(backbone), []).append(ranked)
        for name in methods[1:] if first in methods else []:
            both = _curves(judged.scores, place, [first, name])
            if both.value.size:
                said[name, DISTANCE] = both.map(
                    lambda scores: np.abs(np.diff(scores, axis=-2)).mean((-1, -2))
                )
        at = {**common, "backbone": backbone, "setting": setting}
        rows += [
            {**at, "method": name, "metric": metric, **e.columns}
            for (name, metric), e in said.items()
        ]
    published = [name for name in ranks if not name.startswith("repro")]
    encoders = sorted(published if len(published) > 1 else ranks)
    if len(encoders) > 1:
        parts = [ranked for name in encoders for ranked in ranks[name]]
        overall = replace(Resampled.averaged(parts), n=parts[0].n)  # all on the same items
        at = {**common, "setting": ", ".join(encoders)}
        for k, name in enumerate(ZHANG_METHODS[1:], start=1):
            rows.append(
                {**at, "method": name, "metric": RANKS, **(overall[k] - overall[0]).columns}
            )
    return make_rows(rows, **shared)
