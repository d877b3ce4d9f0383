"""The fewest bytes that surely keep enough; without labels, the smallest size that is predicted to
(method-choosing-dim in the book).
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from dimadvise.bounds import smallest_sufficient
from dimadvise.deploy import Deployment, level_bytes
from dimadvise.evidence import NOBODY, Evidence
from dimadvise.files import Block, Rows, Vectors
from dimadvise.measured import read_measured
from dimadvise.search import Places, ranks, searched
from dimadvise.transform import (
    NESTED,
    Coder,
    FoldMoments,
    Shortened,
    Transform,
    fit_transform_of,
    halvings,
    moments_of,
    most_dims,
    unchanged,
)
from dimadvise.vectors import in_memory
from dimadvise.ways import CODED, fitted
from repro.evaluation.quantise import FLOATS, vector_bytes
from repro.seeding import make_rng
from repro.terminal import progress_bar
from repro.theory import participation_ratio, predicted_similarity
from repro.types import Array, InputError, check_dim, one_of, unit_rows

METHODS = ("truncate", "pca")  # what is tried unless told otherwise; both cost nothing to apply
QUERIES, POOL, NEIGHBOURS = 300, 20_000, 10  # sample on which neighbours are compared
ERROR = 0.05
"""How often an answer may claim too much, whatever is tried."""
SPECTRA = {"svd": "pca", "random": "grp"}  # methods that the spectrum predicts under another's name


@dataclass(frozen=True)
class Candidate:
    """One method at one size and level, of one layer."""

    layer: int | None
    method: str
    dim: int
    # Spearman correlation with full similarity that the spectrum promises
    predicted: float = math.nan
    neighbours: float = math.nan
    """Share of the ten nearest neighbours that stay among the ten nearest, of rows that the map has
    not seen.
    """
    expected: float = math.nan
    """Share of a score that is expected to be kept, by the rule that was nearest to labels for this
    method.
    """
    share: float = math.nan  # share of the full-size score; NaN without labels
    low: float = math.nan  # lower bound of the share
    level: str = "float32"

    @property
    def bytes(self) -> int:
        """Of one vector."""
        return level_bytes(self.level, self.dim)


@dataclass(frozen=True)
class Judgement:
    """What labels say, or without them what is expected, and the answer."""

    candidates: tuple[Candidate, ...]
    answer: Candidate | None  # None: nothing below the full size passes
    full_dim: int
    rows: int  # that maps were fitted on
    retain: float
    metric: str | None  # None: the answer is a prediction
    items: int
    reference: float  # full-size score; NaN without labels
    confidence: float  # how often each bound holds, so that all walks together err with 5 % at most
    ratio: float  # participation ratio of the rows
    deployment: Deployment | None  # the answer, fitted on all rows
    notes: tuple[str, ...]

    def shares_of(self, layer: int | None) -> pd.DataFrame | None:
        """Share kept and lower bound of every method, size and level of a layer; None
        unlabelled.
        """
        if self.metric is None:
            return None
        own = [c for c in self.candidates if c.layer == layer]
        told = [(c.method, c.dim, c.level, c.share, c.low, self.metric) for c in own]
        return pd.DataFrame(told, columns=["method", "dim", "level", "share", "low", "metric"])

    @property
    def transform(self) -> Transform | None:
        """The map of the answer."""
        return None if self.deployment is None else self.deployment.transform

    @property
    def predicted(self) -> list[str]:
        """Without labels: what is expected, and how far such expectations were off; nothing with
        labels.
        """
        if self.metric is not None:
            return []
        if self.answer is None:
            said = (
                f"No size below {self.full_dim} is expected to keep {100 * self.retain:g} "
                "% of a task's score."
            )
        else:
            said = (
                f"{self.answer.dim} of {self.full_dim} dimensions ({self.answer.method}) "
                "are expected to keep "
                f"{100 * self.retain:g} % of a task's score: a prediction from their "
                "covariance and the neighbours "
                "kept, by the rule that was nearest to what labels say of other embeddings."
            )
        methods = [self.answer.method] if self.answer else [c.method for c in self.candidates]
        return [said, *read_measured().statement(list(dict.fromkeys(methods)), self.retain)]


def advise(
    versions: Mapping[int | None, Vectors | Array],
    *,
    evidence: Evidence | None = None,
    retain: float = 0.99,
    methods: Sequence[str] = METHODS,
    levels: Sequence[str] = ("float32",),
    dims: Sequence[int] = (),
    unit: bool | None = None,
    similarity: str = "cosine",
    budget: float | None = None,
    seed: int = 0,
) -> Judgement:
    """Find the fewest bytes.

    Maps are fitted on all rows; what judges them is fitted without the rows judged. So a bound
    speaks of other texts.

    Args:
        versions: embeddings (n, D) by layer, the last layer last; one with key None if there are no
            layers.
        evidence: what sizes are judged by; None predicts from the spectrum and the neighbours kept.
        retain: share of the full-size score that must be kept.
        methods: tried side by side; each more makes all bounds a little stricter.
        levels: of `MENU` but product codes, each judged at every size as methods are.
        dims: sizes tried; by default three to each halving.
        unit: whether rows are divided by their length; by default unless a classifier judges, as
            cosines see no length.
        similarity: that codes are made for.
        budget: bytes in which the most is to be kept, in place of the fewest that keep enough.
        seed: of random maps, folds, and the sample of neighbours.

    Raises:
        InputError: for values out of range, embeddings that nothing can be told from, and evidence
            whose score at full size may be zero (`NoShareError`).
    """
    for name in methods:
        one_of(name, NESTED, "method")
    unit = (evidence is None or evidence.metric != "accuracy") if unit is None else unit
    layers = {layer: in_memory(X) for layer, X in versions.items()}
    last = list(layers)[-1]
    full = layers[last].shape[1]
    sizes = sorted(
        {check_dim(d, limit=full) for d in dims or map(round, halvings(full, 3))} | {full},
        reverse=True,
    )
    seen = _sample(layers[last], evidence, seed)
    whole = _checked(layers[last], seen, unit)
    found, maps, score, rows = fit_and_judge(
        layers,
        evidence,
        methods,
        sizes,
        levels=levels,
        similarity=similarity,
        unit=unit,
        seed=seed,
    )
    asked = make_rng(seed, "neighbours").permutation(len(whole))[
        : min(QUERIES, max(len(whole) // 5, 1))
    ]
    (places,) = _nearest(whole, [full], asked)
    for layer, vectors in layers.items():
        X = whole if layer == last else _checked(vectors, seen, unit)
        others = moments_of([np.delete(X, asked, axis=0)], unit=False)
        for name in methods:
            kind = layer, name, levels[0]
            own = [i for i, c in enumerate(found) if (c.layer, c.method, c.level) == kind]
            if not (reach := [found[i].dim for i in own]):
                continue
            unseen = fit_transform_of(
                name,
                others,
                min(max(reach), most_dims(name, others)),
                unit=False,
                seed=seed,
            )
            found_here = _nearest(unseen.apply(X), reach, asked)
            kept = [float((ranks(places, each) < places.shape[1]).mean()) for each in found_here]
            predicted = predicted_similarity(X, reach, reducer=SPECTRA.get(name, name))
            # Recorded errors decide which rule predicts: with PCA the spectrum alone is too
            # hopeful, as subtracting the mean reorders neighbours. Half of all dimensions, blindly,
            # came nearer than either, as the statement says.
            expected = read_measured().expected(name, np.array(predicted), np.array(kept))
            for i, promise, near, share in zip(own, predicted, kept, expected, strict=True):
                found[i] = replace(
                    found[i],
                    predicted=float(promise),
                    neighbours=near,
                    expected=float(share),
                )
    answer = smallest(found, full, last, retain, labelled=evidence is not None)
    if budget is not None:
        answer = most_kept(found, budget)
    deployment = None
    if answer is not None:
        transform = maps[answer.layer, answer.method].prefix(answer.dim)
        coded = layers[answer.layer].take(_sample(layers[answer.layer], evidence, seed)[:CODED])
        Y = Deployment(transform, similarity).vectors(coded)
        deployment = fitted(transform, similarity, answer.level, Y)
    return Judgement(
        tuple(found),
        answer,
        full_dim=full,
        rows=rows,
        retain=retain,
        metric=evidence.metric if evidence else None,
        items=evidence.items if evidence else 0,
        reference=score,
        confidence=_confidence(layers, methods, levels) if evidence else math.nan,
        ratio=participation_ratio(whole),
        deployment=deployment,
        notes=() if answer else (_why_none(found, full, retain, evidence),),
    )


def fit_and_judge(
    layers: Mapping[int | None, Vectors],
    evidence: Evidence | None,
    methods: Sequence[str],
    sizes: Sequence[int],
    *,
    levels: Sequence[str] = ("float32",),
    similarity: str = "cosine",
    unit: bool,
    seed: int = 0,
) -> tuple[list[Candidate], dict[tuple[int | None, str], Transform], float, int]:
    """Every candidate within reach, maps by layer and method, the score at full size, and how many
    rows maps saw.

    Scores, shares and bounds come from other maps, which have not seen the rows that they are
    judged by; without evidence there are none.
    """
    last = list(layers)[-1]
    folds = evidence.folds(layers[last], seed=seed) if evidence else NOBODY
    splits = evidence.splits(folds) if evidence else [()]
    found: list[Candidate] = []
    maps: dict[tuple[int | None, str], Transform] = {}
    outcomes: list[Array] = []
    for layer, vectors in layers.items():
        moments = FoldMoments(vectors, folds.rows, folds.fold, unit=unit, seed=seed)
        if evidence is not None and layer == last:
            reference = Shortened("truncate", moments, splits, [vectors.shape[1]])
            outcomes.insert(0, evidence.outcomes(reference, folds))
        for name in progress_bar(methods, show=True, unit="method", desc="judging"):
            shortened = Shortened(name, moments, splits, sizes, seed=seed)
            if not shortened.sizes:
                continue
            maps[layer, name] = shortened.transform
            for level in levels:
                found += [Candidate(layer, name, d, level=level) for d in shortened.sizes]
                if evidence is not None:
                    shortened.coder = _coder(similarity, level)
                    outcomes.append(evidence.outcomes(shortened, folds))
    if not found:
        few = (
            f"the rows that are not judged are too few to fit {min(sizes)} dims of "
            f"{' or '.join(methods)} on"
        )
        raise InputError(f"{few}: give more embeddings or a smaller size")
    if evidence is None:
        return found, maps, math.nan, moments.whole.rows
    scores, kept = evidence.bounds(
        np.concatenate(outcomes),
        folds,
        confidence=_confidence(layers, methods, levels),
    )
    judged = zip(found, kept.share[1:], kept.low[1:], strict=True)
    found = [replace(c, share=float(share), low=float(low)) for c, share, low in judged]
    return found, maps, float(scores[0]), moments.whole.rows


def _coder(similarity: str, level: str) -> Coder | None:
    """What makes a way to store of rows that a map gave; none where they stay as they are."""
    if level in FLOATS:
        return None

    def fit(Y: Block) -> Deployment:
        plain = Deployment(unchanged(Y.shape[1]), similarity)
        return fitted(plain.transform, similarity, level, plain.vectors(Y))

    return fit


def _confidence(*walks: Collection[Any]) -> float:
    """Of each bound, of all walks together: those of each layer, method and level."""
    return 1 - ERROR / math.prod(map(len, walks))


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
    if not (X[0] != X).any():
        raise InputError(f"all {len(X)} embeddings are equal: no size keeps what is not there")
    return np.asarray(unit_rows(X), np.float32) if unit else X


def _nearest(X: Array, sizes: Sequence[int], asked: Rows) -> list[Places]:
    """The ten nearest of some rows, the row itself left out, by the first columns alone, at each
    size.
    """
    ways = [
        Deployment(unchanged(X.shape[1]).prefix(min(dim, X.shape[1])), "cosine") for dim in sizes
    ]
    (found,) = searched(ways, X[asked], asked, [X], min(NEIGHBOURS, len(X) - 1), [len(X)])
    return found.places


def smallest(
    found: Sequence[Candidate],
    full: int,
    last: int | None,
    retain: float,
    *,
    labelled: bool,
) -> Candidate | None:
    """The fewest bytes that pass; of as many the shallowest layer, which costs least to reach, then
    what keeps most, then the simplest method.

    Of each layer, method and level sizes are walked from the largest to the first that fails, so
    that no answer is dominated: whatever passed has more bytes, or as many and keeps no more.
    """
    walks: dict[Any, list[Candidate]] = {}
    for c in found:
        walks.setdefault((c.layer, c.method, c.level), []).append(c)
    passed = []
    for walk in walks.values():
        bounds = [_bound(c, labelled) for c in walk]
        dim = smallest_sufficient([c.dim for c in walk], bounds, retain)
        passed += [c for c in walk if dim is not None and c.dim >= dim]
    if not passed:
        return None
    best = min(passed, key=lambda c: (c.bytes, c.layer or 0, -_bound(c, labelled)))
    return best if best.bytes < vector_bytes(full, "float32") or best.layer != last else None


def most_kept(found: Sequence[Candidate], budget: float) -> Candidate | None:
    """What surely keeps most in so many bytes; of as much the fewest bytes."""
    fitting = [c for c in found if c.bytes <= budget and not math.isnan(c.low)]
    return max(fitting, key=lambda c: (c.low, -c.bytes), default=None)


def _bound(candidate: Candidate, labelled: bool) -> float:
    return candidate.low if labelled else candidate.expected


def _why_none(
    found: Sequence[Candidate],
    full: int,
    retain: float,
    evidence: Evidence | None,
) -> str:
    """Why nothing below the full size passes, and what would help."""
    below = [c for c in found if c.bytes < vector_bytes(full, "float32")]
    if evidence is None:
        if not below:
            return f"no size below {full} was tried"
        best = max(below, key=lambda c: c.expected)
        return (
            f"the most that is expected below {full} is {100 * best.expected:.2f} %, "
            f"of {best.method} at {best.dim}"
        )
    close = [c for c in below if c.share > retain and np.isfinite(c.low)]
    if not close:
        return (
            f"no size below {full} keeps {100 * retain:g} % of the score: these dimensions are used"
        )
    # the bound's distance from the share shrinks with the square root of the number of items
    best = max(close, key=lambda c: (c.share - retain) / max(c.share - c.low, 1e-12))
    needed = evidence.items * ((best.share - best.low) / (best.share - retain)) ** 2
    return (
        f"{evidence.items:,} labelled items are too few to tell: {best.method} at {best.dim} "
        f"as {best.level} keeps "
        f"{100 * best.share:.2f} % of the score; about "
        f"{math.ceil(needed / 10) * 10:,} items would do"
    )
