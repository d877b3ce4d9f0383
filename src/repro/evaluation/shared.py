"""How sure an average over sets is that share items (method-shared-items in the book).

In a resample an item has one weight in all sets that hold it. It is drawn among those that the same
subsets hold, so that every set keeps its number of items, and every subset.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from repro.evaluation.stats import (
    CHUNK,
    RESAMPLES,
    Counts,
    Resampled,
    draw_counts,
    mean_draws,
    spearman_draws,
    spearman_of_counts,
    tie_runs,
)
from repro.seeding import make_rng
from repro.sets import DataSet, LabelledPairs, LabelledTexts, ScoredPairs
from repro.types import Array, InputError, check_same_length

Weights = NDArray[np.uint8]
"""How often each item of a set is drawn in each resample (R, n)."""
Item = tuple[str, ...]


def items_of(judged: DataSet) -> list[Item]:
    """What tells the items of a set apart, wherever they stand: their words, without punctuation or
    capitals; of a pair in either order.
    """
    match judged:
        case ScoredPairs() | LabelledPairs():
            sides = zip(judged.texts1, judged.texts2, strict=True)
            return [tuple(sorted((_words(a), _words(b)))) for a, b in sides]
        case LabelledTexts():
            return [(_words(text),) for text in judged.texts]
        case _:
            raise InputError(
                f"{judged.name!r} has no items that sets share: expected labelled ones"
            )


def subsets_of(judged: DataSet) -> Sequence[str]:
    """Within which part of its set each item is drawn."""
    return judged.subsets.tolist() if isinstance(judged, ScoredPairs) else [""] * len(judged)


def shared_weights(
    sets: Mapping[str, DataSet],
    *,
    resamples: int = RESAMPLES,
    seed: int,
) -> dict[str, Weights]:
    """Resamples of several sets at once, in which an item has one weight wherever it stands."""
    return _shared_weights(tuple(sets.items()), resamples, seed)


@lru_cache(maxsize=1)  # Pages score many lines on the same sets
def _shared_weights(
    items_of_sets: tuple[tuple[str, DataSet], ...],
    resamples: int,
    seed: int,
) -> dict[str, Weights]:
    sets = dict(items_of_sets)
    items = {name: items_of(judged) for name, judged in sets.items()}
    places = _places(items, sets)
    strata = {item: tuple(sorted(Counter(where).items())) for item, where in places.items()}
    return _drawn(items, strata, resamples, make_rng(seed, "bootstrap of shared items"))


def sentence_weights(
    sets: Mapping[str, DataSet],
    *,
    resamples: int = RESAMPLES,
    seed: int,
) -> dict[str, Weights]:
    """The same, but all items that are connected by shared sentences have one weight: the number of
    items of a set then varies.
    """
    items = {name: items_of(judged) for name, judged in sets.items()}
    cluster = _clusters(chain.from_iterable(items.values()))
    clusters = {
        name: [cluster[item] for item in items_of_set] for name, items_of_set in items.items()
    }
    places = _places(clusters, sets)
    strata = {}
    for unit, where in places.items():
        names = {name for name, _ in where}
        strata[unit] = tuple(sorted(names))
    return _drawn(clusters, strata, resamples, make_rng(seed, "bootstrap of sentence clusters"))


def spearman_with(weights: Weights, predictions: Sequence[Any], gold: Any) -> Resampled:
    """As `spearman_draws`, of given resamples."""
    scores = spearman_draws(predictions, gold, resamples=1, seed=0)
    check_same_length(weights=weights.T, gold=gold)
    ties = [tie_runs(np.asarray(predicted, np.float64)) for predicted in predictions]
    gold_ties = tie_runs(np.asarray(gold, np.float64))
    sizes = weights.sum(1)
    # Resamples of one size are counted together
    of_one_size = (sizes == sizes[0]).all()
    together = ceil(4 * weights.size / CHUNK) if of_one_size else len(weights)
    draws = []
    for weights_of_size in np.array_split(weights, together):
        draws.append(spearman_of_counts(weights_of_size.astype(np.int64), ties, gold_ties))
    return replace(scores, draws=np.concatenate(draws))


def means_with(weights: Weights, columns: Sequence[Any]) -> Resampled:
    """As `mean_draws`, of given resamples."""
    scores = mean_draws(columns, resamples=1, seed=0)
    table = np.column_stack(columns).astype(np.float64)  # (n, P)
    check_same_length(weights=weights.T, columns=table)
    draws = [
        (weights_row @ table) / weights_row.sum(1, keepdims=True)
        for weights_row in weights[:, None]
    ]
    return replace(scores, draws=np.concatenate(draws))


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _places(
    units: Mapping[str, Sequence[Hashable]],
    sets: Mapping[str, DataSet],
) -> dict[Hashable, list[tuple[str, str]]]:
    """Set and subset of every time that a unit occurs."""
    places: dict[Hashable, list[tuple[str, str]]] = defaultdict(list)
    for name, units_of_set in units.items():
        for unit, subset in zip(units_of_set, subsets_of(sets[name]), strict=True):
            places[unit].append((name, subset))
    return places


def _drawn(
    units: Mapping[str, Sequence[Hashable]],
    strata: Mapping[Any, Hashable],
    resamples: int,
    rng: np.random.Generator,
) -> dict[str, Weights]:
    """Weights of the units of every set, drawn with repetition within their stratum."""
    number = {unit: row for row, unit in enumerate(strata)}
    members = defaultdict[Hashable, list[int]](list)
    for unit, stratum in strata.items():
        members[stratum].append(number[unit])
    of_strata: list[Counts] = [np.array(rows) for rows in members.values()]
    step = max(1, CHUNK // len(number))
    blocks = []
    for start in range(0, resamples, step):
        counts = draw_counts(of_strata, min(step, resamples - start), rng)
        blocks.append(counts.astype(np.uint8))
    counts_of_units = np.concatenate(blocks)
    weights = {}
    for name, units_of_set in units.items():
        columns = [number[unit] for unit in units_of_set]
        weights[name] = counts_of_units[:, columns]
    return weights


def _clusters(items: Any) -> dict[Item, int]:
    """The number of the cluster of every item: those that share a sentence are in one."""
    distinct = list(dict.fromkeys(items))
    number: dict[str, int] = {}
    for sentence in chain.from_iterable(distinct):
        number.setdefault(sentence, len(number))
    first = [number[item[0]] for item in distinct]
    last = [number[item[-1]] for item in distinct]
    size = (len(number), len(number))
    linked: Array = coo_matrix((np.ones(len(distinct)), (first, last)), size)
    _, label = connected_components(linked, directed=False)
    return {item: int(label[row]) for item, row in zip(distinct, first, strict=True)}
