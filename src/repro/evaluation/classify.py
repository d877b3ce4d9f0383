"""Classes from frozen embeddings: linear probes, nearest neighbours, K-means clusters
(method-probes, method-knn, method-clusters in the book).

A probe is judged by nested cross-validation, by k folds, or on a dev split. Its protocol is a
module: `logistic` (L-BFGS) or `senteval` (Adam with early stopping). Both read unstandardised
features and the same stratified folds, and fit all folds × penalties as one batch; their accuracies
are not comparable.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb, entr
from scipy.stats.contingency import crosstab

from repro.evaluation import logistic, senteval
from repro.evaluation.stats import Score, bootstrap_mean
from repro.seeding import derive_seed, make_rng
from repro.sets import DataSet, Embed, LabelledPairs, LabelledTexts
from repro.types import Array, InputError, check_dim, check_embeddings, check_same_length, one_of

PROTOCOLS: dict[str, ModuleType] = {"logreg": logistic, "senteval": senteval}
FOLDS = 10


@dataclass(frozen=True)
class ProbeResult:
    """Outcome of a probe: accuracy, which items were right, the penalties chosen, the majority
    floor.
    """

    accuracy: float
    correct: NDArray[np.bool_]
    chosen: tuple[float, ...]
    floor: float


def pair_features(X1: Array, X2: Array) -> Array:
    """Features of labelled pairs (n, 2·dim): [|u − v|, u·v] (SentEval)."""
    return np.hstack([np.abs(X1 - X2), X1 * X2])


def linear_probe(
    X_train: Any,
    y_train: Any,
    X_test: Any,
    y_test: Any,
    *,
    protocol: str = "logreg",
    seed: int = 0,
    X_dev: Any = None,
    y_dev: Any = None,
) -> float:
    """Test accuracy of a linear classifier; the penalty is chosen on the dev split if given, else
    by 10 folds.

    Features X are (n, D), with a class in y for each row; `protocol` is `logreg` or `senteval`, and
    `seed` that of the folds and of senteval's training.

    Raises:
        InputError: for mismatched lengths, non-finite features, one class, or fewer rows than
            folds.
    """
    dev = None if X_dev is None else (X_dev, y_dev)
    return probe(X_train, y_train, X_test, y_test, protocol=protocol, seed=seed, dev=dev).accuracy


def probe(
    X_train: Any,
    y_train: Any,
    X_test: Any,
    y_test: Any,
    *,
    protocol: str = "logreg",
    seed: int = 0,
    dev: Any = None,
) -> ProbeResult:
    """`linear_probe` with the items that were right and the penalty chosen; `dev` holds features
    and classes.
    """
    classifier = PROTOCOLS[one_of(protocol, list(PROTOCOLS), "protocol")]
    X_train, y_train = _checked(X_train, y_train, "train")
    X_test, y_test = _checked(X_test, y_test, "test", width=X_train.shape[1])
    _check_alike(y_train, y_test, "y_test")
    if dev is not None:
        X_dev, y_dev = _checked(dev[0], dev[1], "dev", width=X_train.shape[1])
        _check_alike(y_train, y_dev, "y_dev")
        _class_counts(y_train)  # Folds would refuse a single class
        grid = classifier.GRIDS["split"]
        models, accuracy = classifier.fit_with_dev(X_train, y_train, X_dev, y_dev, grid, seed)
        best = int(np.argmax(accuracy))
        predicted = models.predict(X_test)[best]
    else:
        grid = classifier.GRIDS["kfold"]
        fold = stratified_folds(y_train, FOLDS, seed)
        best = int(np.argmax(classifier.fold_accuracy(X_train, y_train, fold[None], grid, seed)[0]))
        models = classifier.fit_members(
            X_train,
            y_train,
            np.ones((1, len(y_train)), bool),
            grid[[best]],
            seed,
        )
        predicted = models.predict(X_test)[0]
    correct = predicted == y_test
    return ProbeResult(
        float(correct.mean()),
        correct,
        (float(grid[best]),),
        majority_share(y_train, y_test),
    )


def nested_cv_accuracy(X: Any, y: Any, *, protocol: str = "logreg", seed: int = 0) -> float:
    """Mean accuracy over 10 outer folds; each picks its penalty by 10 inner folds of its own
    training part.
    """
    return nested_cv(X, y, protocol=protocol, seed=seed).accuracy


def nested_cv(X: Any, y: Any, *, protocol: str = "logreg", seed: int = 0) -> ProbeResult:
    """`nested_cv_accuracy` with the items that were right and the ten penalties chosen."""
    classifier = PROTOCOLS[one_of(protocol, list(PROTOCOLS), "protocol")]
    X, y = _checked(X, y, "all")
    grid = classifier.GRIDS["nested"]
    outer = stratified_folds(y, FOLDS, seed)
    inner = np.full((FOLDS, len(y)), -1)
    for i in range(FOLDS):
        rows = np.flatnonzero(outer != i)
        inner[i, rows] = stratified_folds(y[rows], FOLDS, seed, "inner", i)
    accuracy = classifier.fold_accuracy(X, y, inner, grid, seed)  # (10, penalties)
    chosen = grid[accuracy.argmax(1)]
    models = classifier.fit_members(X, y, outer[None] != np.arange(FOLDS)[:, None], chosen, seed)
    # Each row by the model that has not seen it
    predicted = models.predict(X)[outer, np.arange(len(y))]
    correct = predicted == y
    mean = float(np.mean([correct[outer == i].mean() for i in range(FOLDS)]))
    return ProbeResult(mean, correct, tuple(float(c) for c in chosen), majority_share(y, y))


def score_classification(
    embed: Embed,
    splits: Mapping[str, DataSet],
    *,
    protocol: str = "logreg",
    seed: int = 0,
) -> Score:
    """Accuracy of a linear probe: on the test split, with or without a dev split, or over nested
    folds of it all.
    """
    sides = {name: features_and_labels(embed, split) for name, split in splits.items()}
    if not {"train", "dev"} & set(sides):
        X, y = (np.concatenate(side) for side in zip(*sides.values(), strict=True))
        result = nested_cv(X, y, protocol=protocol, seed=seed)
    else:
        if missing := {"train", "test"} - set(sides):
            raise InputError(f"no split {min(missing)!r}: the data has {', '.join(splits)}")
        result = probe(
            *sides["train"],
            *sides["test"],
            protocol=protocol,
            seed=seed,
            dev=sides.get("dev"),
        )
    interval = bootstrap_mean(result.correct, seed=seed)
    # Nested accuracy is the mean over folds; folds are equal but for a row, so the interval shifts
    # with it
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


def features_and_labels(embed: Embed, part: DataSet) -> tuple[Array, NDArray[Any]]:
    """Features (n, D) and labels of a labelled set; pairs give `pair_features`.

    An InputError without labels.
    """
    if isinstance(part, LabelledTexts):
        return embed(part.texts), part.labels
    if isinstance(part, LabelledPairs):
        return pair_features(embed(part.texts1), embed(part.texts2)), part.labels
    raise InputError(f"{part.name} holds no labels: it cannot be classified")


def knn_accuracy(
    X_train: Any,
    y_train: Any,
    X_test: Any,
    y_test: Any,
    *,
    k: int = 3,
    self_neighbour: bool = False,
) -> float:
    """Share of test rows whose k nearest training rows, by Euclidean distance, vote for their
    class.

    Ties go to the smallest label. Where X_train and X_test (n, dim) are the same rows, each is
    scored leaving it out; with `self_neighbour` every query votes for its own class, as happens
    where a classifier is scored on what it was fitted on, and the other k − 1 votes are the nearest
    training rows'.

    Raises:
        InputError: for k below 1 or above the training rows, mismatched lengths, or unusable
            embeddings.
    """
    return float(
        knn_correct(X_train, y_train, X_test, y_test, k=k, self_neighbour=self_neighbour).mean()
    )


def knn_correct(
    X_train: Any,
    y_train: Any,
    X_test: Any,
    y_test: Any,
    *,
    k: int = 3,
    self_neighbour: bool = False,
) -> NDArray[np.bool_]:
    """Which test rows are right (m,); see `knn_accuracy`."""
    # Brings scikit-learn, which pages that compare scores do without
    from repro.reducers.neighbors import nearest

    X_train, y_train = _checked(X_train, y_train, "train")
    X_test, y_test = _checked(X_test, y_test, "test", width=X_train.shape[1])
    _check_alike(y_train, y_test, "y_test")
    same = np.array_equal(X_train, X_test)
    others, available = check_dim(k, what="k") - self_neighbour, len(X_train) - same
    if others > available:
        raise InputError(
            f"k asks for {others} neighbours: a query has {available} training rows to choose from"
        )
    votes = y_test[:, None][:, :self_neighbour]  # (m, 0 or 1)
    if others:
        # (m, k)
        votes = np.hstack([votes, y_train[nearest(X_train, others, None if same else X_test)]])
    classes = np.unique(votes)
    ballot = np.stack([(votes == name).sum(axis=1) for name in classes])  # (classes, m)
    return np.asarray(classes[ballot.argmax(axis=0)] == y_test)


def knn_cv_correct(
    X: Any,
    y: Any,
    *,
    k: int = 3,
    self_neighbour: bool = False,
    seed: int = 0,
) -> NDArray[np.bool_]:
    """Which rows are right (n,) when the rows of the other nine folds vote; a vote for oneself
    needs no folds.
    """
    X, y = _checked(X, y, "all")
    if self_neighbour:
        return knn_correct(X, y, X, y, k=k, self_neighbour=True)
    fold, right = stratified_folds(y, FOLDS, seed), np.empty(len(y), bool)
    for i in range(FOLDS):
        held = fold == i
        right[held] = knn_correct(X[~held], y[~held], X[held], y[held], k=k)
    return right


def cluster_scores(X: Any, y: Any, *, seed: int) -> dict[str, float]:
    """Agreement of the classes of X's rows (n, dim) with as many K-means clusters: mi (nats), nmi,
    ari and purity.
    """
    y = np.ravel(y)  # A column of classes is as good as a row
    return partition_scores(kmeans(X, len(np.unique(y)), seed=seed), y)


def kmeans(X: Any, clusters: int, *, seed: int) -> NDArray[np.int64]:
    """The cluster of every row (n,): K-means with k-means++ starts, the best of ten, at most 300
    iterations each.
    """
    from sklearn.cluster import KMeans  # Slow to import, which pages that compare scores do without

    X = check_embeddings(X)
    check_dim(clusters, limit=len(X), what="clusters")
    state = derive_seed(seed, "kmeans") % 2**32
    fitted = KMeans(clusters, init="k-means++", n_init=10, max_iter=300, random_state=state).fit(X)
    return np.asarray(fitted.labels_, np.int64)


def partition_scores(found: Any, y: Any) -> dict[str, float]:
    """The four indicators of a partition against classes; names of clusters and classes play no
    part.
    """
    check_same_length(found=found, y=y)
    # Rows of each class in each cluster: n_cy (clusters, classes)
    counts = crosstab(found, y).count
    return {name: float(values[0]) for name, values in indicators(counts[None]).items()}


def indicators(counts: NDArray[Any]) -> dict[str, Array]:
    """The four indicators of many tables at once: counts n_cy (R, clusters, classes) gives (R,)
    each.

    mi = Σ p_cy ln(p_cy / p_c p_y) in nats; nmi = mi over the mean of the two entropies, 1 where
    both are 0; ari = the Rand index corrected for chance; purity = (1/n) Σ_c max_y n_cy, which
    grows with the number of clusters.
    """
    counts = np.asarray(counts, np.float64)
    n = counts.sum((1, 2))  # (R,)
    in_clusters, in_classes = counts.sum(2), counts.sum(1)
    of_clusters, of_classes, joint = (
        entr(sizes.reshape(len(n), -1) / n[:, None]).sum(1)
        for sizes in (in_clusters, in_classes, counts)
    )
    mi = np.maximum(of_clusters + of_classes - joint, 0.0)
    mean = (of_clusters + of_classes) / 2
    nmi = np.divide(mi, mean, out=np.ones_like(mi), where=mean > 0)
    # Hubert and Arabie (1985): pairs together in both, less what chance gives
    in_both, pairs = comb(counts, 2).sum((1, 2)), comb(n, 2)
    in_c, in_y = comb(in_clusters, 2).sum(1), comb(in_classes, 2).sum(1)
    expected = np.divide(in_c * in_y, pairs, out=np.zeros_like(n), where=pairs > 0)
    spread = (in_c + in_y) / 2 - expected
    ari = np.divide(in_both - expected, spread, out=np.ones_like(n), where=spread > 0)
    return {"mi": mi, "nmi": nmi, "ari": ari, "purity": counts.max(2).sum(1) / n}


def stratified_folds(y: NDArray[Any], k: int, seed: int, *keys: object) -> NDArray[np.int64]:
    """Fold of every row (n,), the classes spread evenly; one with fewer rows than folds is missing
    from some.

    A warning tells of such classes, once for the outer folds.
    """
    classes, counts = _class_counts(y)
    # Inner folds have lost a row of each class
    if len(y) < k or (not keys and np.sort(counts)[-2] < 2):
        raise InputError(
            f"{len(y)} rows, {counts.max()} of them of one class: {k} folds need at "
            f"least {k}, and 2 of a second class"
        )
    rare = [
        f"{str(name)!r} ({count})" for name, count in zip(classes, counts, strict=True) if count < k
    ]
    if rare and not keys:
        shown = ", ".join(rare[:5]) + (", …" if len(rare) > 5 else "")
        warnings.warn(
            f"{len(rare)} of {len(classes)} classes have fewer rows than the {k} "
            f"folds and miss from some: {shown}",
            stacklevel=3,
        )
    rng = make_rng(seed, "folds", *keys)
    fold = np.empty(len(y), np.int64)
    offset = 0
    for name, count in zip(classes, counts, strict=True):
        fold[rng.permutation(np.flatnonzero(y == name))] = (np.arange(count) + offset) % k
        offset += count
    return fold


def _class_counts(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The classes, of which there must be two, and how many rows each has."""
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise InputError(f"only one class ({str(classes[0])!r}): nothing to tell apart")
    return classes, counts


def majority_share(y_train: NDArray[Any], y_test: NDArray[Any]) -> float:
    """Accuracy of always answering the commonest training class."""
    classes, counts = np.unique(y_train, return_counts=True)
    return float((y_test == classes[counts.argmax()]).mean())


def _checked(X: Any, y: Any, split: str, *, width: int | None = None) -> tuple[Array, NDArray[Any]]:
    X, y = check_embeddings(X, f"X_{split}"), np.asarray(y)
    if y.ndim != 1:
        raise InputError(f"y_{split} has shape {y.shape}: expected one label per row of X_{split}")
    check_same_length(**{f"X_{split}": X, f"y_{split}": y})
    _check_labels(y, f"y_{split}")
    if width is not None and X.shape[1] != width:
        raise InputError(
            f"X_{split} has {X.shape[1]} columns, X_train {width}: expected the same features"
        )
    return X, y


def _check_labels(y: NDArray[Any], name: str) -> None:
    """Refuse labels that are missing, and numbers among texts, which equal none of these."""
    for row, label in enumerate(y.tolist()):
        if label is None or label != label:  # NaN alone differs from itself
            raise InputError(f"{name}[{row}] is {label}: expected a label for every row")
    kinds = {isinstance(label, str) for label in y.tolist()}
    if len(kinds) > 1:
        raise InputError(f"{name} has texts and numbers: expected labels of one kind")


def _check_alike(y_train: NDArray[Any], y: NDArray[Any], name: str) -> None:
    """Refuse texts beside numbers: none of them would ever be found."""
    if len(y) and isinstance(y.tolist()[0], str) != isinstance(y_train.tolist()[0], str):
        kind = "texts" if isinstance(y.tolist()[0], str) else "numbers"
        raise InputError(f"{name} has {kind} and y_train has not: expected labels of one kind")
