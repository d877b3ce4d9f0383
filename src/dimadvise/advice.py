"""The fewest bytes that surely keep enough; without labels, the smallest size that is predicted to
(method-choosing-dim in the book).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from dimadvise.candidates import Candidate, most_kept, smallest, why_none
from dimadvise.coding import Deployment
from dimadvise.evidence import Evidence
from dimadvise.files import Block, Layer, Rows, Vectors
from dimadvise.findings import SCORES
from dimadvise.judging import Judged, fit_and_judge
from dimadvise.measured import read_measured
from dimadvise.queries import check_differ
from dimadvise.request import ANYTHING, TARGETS, Request
from dimadvise.search import Places, ranks, searched
from dimadvise.stores import codes_queries, holds
from dimadvise.transform import (
    TURNED,
    Transform,
    fit_transform_of,
    moments_of,
    most_dims,
    rotated,
    unchanged,
)
from dimadvise.vectors import in_memory
from dimadvise.ways import CODED, fitted
from repro.seeding import make_rng
from repro.theory import participation_ratio, predicted_similarity
from repro.types import Array, InputError, unit_rows

QUERIES, POOL, NEIGHBOURS = 300, 20_000, 10  # Sample on which neighbours are compared
JUDGES = {
    "spearman": "graded pairs",
    "accuracy": "labelled rows",
    "ndcg@10": "queries with a relevant document",
}
SPECTRA = {"svd": "pca", "random": "grp"}  # Methods that the spectrum predicts under another's name


@dataclass(frozen=True)
class Judgement:
    """What labels say, or without them what is expected, and the answer."""

    candidates: tuple[Candidate, ...]
    answer: Candidate | None  # None: nothing below the full size passes
    full_dim: int
    rows: int  # That maps were fitted on
    retain: float
    metric: str | None  # None: the answer is a prediction
    items: int
    reference: float  # Full-size score; NaN without labels
    confidence: float  # How often each bound holds, so that all walks together err with 5 % at most
    ratio: float  # Participation ratio of the rows
    deployment: Deployment | None  # The answer, fitted on all rows
    notes: tuple[str, ...]

    def shares_of(self, layer: Layer) -> pd.DataFrame | None:
        """Share kept and lower bound of every method, size and level of a layer; None
        unlabelled.
        """
        if self.metric is None:
            return None
        of_layer = [vars(c) for c in self.candidates if c.layer == layer]
        shares = pd.DataFrame(of_layer, columns=["method", "dim", "level", "share", "low"])
        return shares.assign(metric=self.metric)

    @property
    def transform(self) -> Transform | None:
        """The map of the answer."""
        return None if self.deployment is None else self.deployment.transform

    @property
    def judged_by(self) -> list[str]:
        """By how many labels, and what they give the full size; nothing without labels."""
        if self.metric is None:
            return []
        return [
            f"The {SCORES[self.metric]} was judged by {self.items:,} {JUDGES[self.metric]}, "
            "by maps that had seen none of the rows judged; at full size it is "
            f"{self.reference:.3f}."
        ]

    @property
    def predicted(self) -> list[str]:
        """Without labels: what is expected, and how far such expectations were off; nothing with
        labels.
        """
        if self.metric is not None:
            return []
        if self.answer is None:
            sentence = (
                f"No size below {self.full_dim} is expected to keep {100 * self.retain:g} % of a "
                "task's score."
            )
        else:
            sentence = (
                f"{self.answer.dim} of {self.full_dim} dimensions ({self.answer.method}) are "
                f"expected to keep {100 * self.retain:g} % of a task's score: a prediction from "
                "their covariance and the neighbours kept, by the rule that was nearest to what "
                "labels say of other embeddings."
            )
        methods = [self.answer.method] if self.answer else [c.method for c in self.candidates]
        return [sentence, *read_measured().statement(list(dict.fromkeys(methods)), self.retain)]


def advise(
    versions: Mapping[Layer, Vectors | Array],
    evidence: Evidence | None = None,
    wanted: Request = ANYTHING,
    *,
    unit: bool | None = None,
) -> Judgement:
    """Find the fewest bytes.

    Maps are fitted on all rows; what judges them is fitted without the rows judged. So a bound
    speaks of other texts.

    Args:
        versions: embeddings (n, D) by layer, the last layer last; one with key None if there are no
            layers.
        evidence: what sizes are judged by; None predicts from the spectrum and the neighbours kept.
        wanted: the share of the full-size score that must be kept (`retain`), or the `bytes` in
            which the most is to be kept; `methods` tried side by side, of which each makes all
            bounds a little stricter; `levels` but product codes, judged at every size as methods
            are, and of `lloyd` after a random turn; sizes (`dims`), by default as many to each
            halving as the evidence can afford; the `similarity` that codes are made for; and the
            `seed` of random maps and turns, folds, and the sample of neighbours.
        unit: whether rows are divided by their length; by default unless a classifier judges, as
            cosines see no length.

    Raises:
        InputError: for values out of range, embeddings that nothing can be told from, and evidence
            whose score at full size may be zero (`NoShareError`).
    """
    unit = (evidence is None or not evidence.sees_lengths) if unit is None else unit
    layers = {layer: in_memory(X) for layer, X in versions.items()}
    last = list(layers)[-1]
    full = layers[last].shape[1]
    seen = _sample(layers[last], evidence, wanted.seed)
    samples = {layer: _checked(vectors, seen, unit) for layer, vectors in layers.items()}
    judged = fit_and_judge(layers, evidence, wanted, unit=unit)
    candidates = _expected(judged.candidates, samples, wanted.seed)
    # The full size is judged whatever a store holds
    candidates = [c for c in candidates if holds(wanted.store, c.dim, c.level)]
    retain = TARGETS["retain"] if wanted.retain is None else wanted.retain
    answer = smallest(candidates, full, last, retain, labelled=evidence is not None)
    if wanted.bytes is not None:
        answer = most_kept(candidates, wanted.bytes)
    deployment = None
    if answer is not None:
        deployment = _deployment(answer, judged, layers[answer.layer].take(seen[:CODED]), wanted)
    return Judgement(
        tuple(candidates),
        answer,
        full_dim=full,
        rows=judged.rows,
        retain=retain,
        metric=evidence.metric if evidence else None,
        items=evidence.items if evidence else 0,
        reference=judged.reference,
        confidence=judged.confidence,
        ratio=participation_ratio(samples[last]),
        deployment=deployment,
        notes=() if answer else (why_none(candidates, full, retain, evidence),),
    )


def _deployment(
    answer: Candidate,
    judged: Judged,
    seen: Block,
    wanted: Request,
) -> Deployment:
    """The answer, its codes fitted on rows seen (n, D)."""
    method = answer.method.removesuffix(TURNED)
    transform = judged.maps[answer.layer, method].prefix(answer.dim)
    if method != answer.method:
        transform = rotated(transform, wanted.seed)
    plain = Deployment(transform, wanted.similarity or "cosine")
    symmetric, Y = codes_queries(wanted.store, answer.level), plain.vectors(seen)
    return fitted(transform, plain.similarity, answer.level, Y, symmetric=symmetric)


def _expected(
    candidates: Sequence[Candidate],
    samples: Mapping[Layer, Block],
    seed: int,
) -> list[Candidate]:
    """The candidates with what is expected of each size without labels, from a sample of rows of
    each layer.

    Recorded errors decide which rule predicts: with PCA the spectrum alone is too hopeful, as
    subtracting the mean reorders neighbours. Half of all dimensions, blindly, came nearer than
    either, as the statement says.
    """
    full = list(samples.values())[-1]
    count = min(QUERIES, max(len(full) // 5, 1))
    query_rows = make_rng(seed, "neighbours").permutation(len(full))[:count]
    (places,) = _nearest(full, [full.shape[1]], query_rows)
    reach: dict[tuple[Layer, str], dict[int, dict[str, Any]]] = {}
    for c in candidates:
        # A turn changes no distance
        reach.setdefault((c.layer, c.method.removesuffix(TURNED)), {})[c.dim] = {}
    for (layer, name), by_dim in reach.items():
        X, dims = samples[layer], list(by_dim)
        others = moments_of([np.delete(X, query_rows, axis=0)], unit=False)
        most = min(max(dims), most_dims(name, others))
        unseen = fit_transform_of(name, others, most, unit=False, seed=seed)
        nearest = _nearest(unseen.apply(X), dims, query_rows)
        ranked = [ranks(places, of_size) for of_size in nearest]
        neighbours = [float((rank < places.shape[1]).mean()) for rank in ranked]
        predicted = predicted_similarity(X, dims, reducer=SPECTRA.get(name, name))
        expected = read_measured().expected(name, np.array(predicted), np.array(neighbours))
        for dim, *values in zip(dims, predicted, neighbours, expected, strict=True):
            names = ("predicted", "neighbours", "expected")
            by_dim[dim] = dict(zip(names, map(float, values), strict=True))
    return [replace(c, **reach[c.layer, c.method.removesuffix(TURNED)][c.dim]) for c in candidates]


def _sample(vectors: Vectors, evidence: Evidence | None, seed: int) -> Rows:
    """Rows that stand for all that maps are fitted on."""
    fitted = np.ones(vectors.shape[0], bool)
    if evidence is not None:
        fitted[evidence.unfitted] = False
    return np.sort(make_rng(seed, "sample").permutation(np.flatnonzero(fitted))[:POOL])


def _checked(vectors: Vectors, rows: Rows, unit: bool) -> Block:
    """Some rows, of which something can be told; of length 1 where only directions count."""
    X = vectors.take(rows)
    if len(X) < 3:
        raise InputError(
            f"{len(X)} embeddings: neither a direction nor a neighbour can be told from so few"
        )
    check_differ(X, len(X))
    return np.asarray(unit_rows(X), np.float32) if unit else X


def _nearest(X: Array, sizes: Sequence[int], query_rows: Rows) -> list[Places]:
    """The ten nearest of some rows, the row itself left out, by the first columns alone, at each
    size.
    """
    ways = [
        Deployment(unchanged(X.shape[1]).prefix(min(dim, X.shape[1])), "cosine") for dim in sizes
    ]
    (found,) = searched(ways, X[query_rows], query_rows, [X], min(NEIGHBOURS, len(X) - 1), [len(X)])
    return found.places
