"""Every method, size and level judged by labels, under maps that have not seen what judges them."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dimadvise.candidates import Candidate
from dimadvise.coding import LLOYD, Deployment
from dimadvise.evidence import Evidence
from dimadvise.files import Block, Layer, Vectors
from dimadvise.folds import NOBODY
from dimadvise.request import Request
from dimadvise.stores import codes_queries
from dimadvise.transform import METHODS as MAPS
from dimadvise.transform import NESTED, TURNED, Transform, halvings, rotated, unchanged
from dimadvise.unseen import Coder, FoldMoments, Shortened
from dimadvise.ways import fitted
from repro.evaluation.quantise import FLOATS
from repro.terminal import progress_bar
from repro.types import Array, InputError, check_dim, one_of

METHODS, PARTS = ("truncate", "pca"), 3
"""Maps, and sizes to each halving, of which something is expected without labels."""
ERROR = 0.05
"""How often an answer may claim too much, whatever is tried."""


class Judged(NamedTuple):
    """Every candidate within reach, maps by layer and method, how many rows they saw, the score at
    full size, and how often each bound holds.
    """

    candidates: list[Candidate]
    maps: dict[tuple[Layer, str], Transform]
    rows: int
    reference: float = math.nan
    confidence: float = math.nan


def fit_and_judge(
    layers: Mapping[Layer, Vectors],
    evidence: Evidence | None,
    wanted: Request,
    *,
    unit: bool,
) -> Judged:
    """Fit the maps of every layer and method, and judge each of their sizes and levels.

    Scores, shares and bounds come from other maps, which have not seen the rows that they are
    judged by; without evidence there are none.
    """
    last = list(layers)[-1]
    full = layers[last].shape[1]
    sizes = _sizes(wanted, evidence, full)
    methods = wanted.methods or (evidence.methods if evidence else METHODS)
    levels = wanted.levels or ("float32",)
    for name in methods:
        one_of(name, NESTED, "method")
    folds = evidence.folds(layers[last], seed=wanted.seed) if evidence else NOBODY
    splits = evidence.splits(folds) if evidence else [()]
    candidates: list[Candidate] = []
    maps: dict[tuple[Layer, str], Transform] = {}
    outcomes: list[Array] = []
    for layer, vectors in layers.items():
        moments = FoldMoments(vectors, folds.rows, folds.fold, unit=unit, seed=wanted.seed)
        if evidence is not None and layer == last:
            reference = Shortened("truncate", moments, splits, [vectors.shape[1]])
            outcomes.insert(0, evidence.outcomes(reference, folds))
        for name in progress_bar(methods, show=True, unit="method", desc="judging"):
            descending = sorted(sizes | {full}, reverse=True)
            shortened = Shortened(name, moments, splits, descending, seed=wanted.seed)
            if not shortened.sizes:
                continue
            maps[layer, name] = shortened.transform
            for level in levels:
                method = name + TURNED if is_turned(name, level) else name
                candidates += [Candidate(layer, method, d, level=level) for d in shortened.sizes]
                if evidence is not None:
                    turn = wanted.seed if is_turned(name, level) else None
                    shortened.coder = _coder(wanted, level, turn, unit=unit)
                    outcomes.append(evidence.outcomes(shortened, folds))
    if not candidates:
        raise InputError(
            f"the rows that are not judged are too few to fit {min(sizes)} dims of "
            f"{' or '.join(methods)} on: give more embeddings or a smaller size"
        )
    if evidence is None:
        return Judged(candidates, maps, moments.whole.rows)
    # So that all walks together, of each layer, method and level, err as often as one may
    confidence = 1 - ERROR / math.prod(map(len, (layers, methods, levels)))
    scores, retention = evidence.bounds(np.concatenate(outcomes), folds, confidence=confidence)
    judged = zip(candidates, retention.share[1:], retention.low[1:], strict=True)
    candidates = [replace(c, share=float(share), low=float(low)) for c, share, low in judged]
    return Judged(candidates, maps, moments.whole.rows, float(scores[0]), confidence)


def _sizes(wanted: Request, evidence: Evidence | None, full: int) -> set[int]:
    """The sizes asked for, or so many to each halving of the full one."""
    per_halving = evidence.parts if evidence else PARTS
    dims = wanted.dims or map(round, halvings(full, per_halving))
    return {check_dim(dim, limit=full) for dim in dims}


def is_turned(method: str, level: str) -> bool:
    """Whether numbers are turned at random first: values of `lloyd` suit directions that are."""
    return level.startswith(LLOYD) and method + TURNED in MAPS


@lru_cache(maxsize=64)  # All splits take the same, at every size.
def _only_turned(dim: int, seed: int) -> Transform:
    """The map of rows that are short already, turned at random."""
    return rotated(unchanged(dim), seed)


def _coder(wanted: Request, level: str, turn: int | None, *, unit: bool) -> Coder | None:
    """What makes a way to store of rows that a map gave, turned by a seed if there is one; none
    where they stay as they are, or lose no more than lengths that nothing judges.
    """
    if level in FLOATS and (unit or wanted.similarity != "cosine"):
        return None
    similarity, symmetric = wanted.similarity or "cosine", codes_queries(wanted.store, level)

    def fit(Y: Block) -> Deployment:
        dim = Y.shape[1]
        transform = unchanged(dim) if turn is None else _only_turned(dim, turn)
        plain = Deployment(transform, similarity)
        return fitted(transform, similarity, level, plain.vectors(Y), symmetric=symmetric)

    return fit
