"""The smallest size that surely keeps enough; without labels, the smallest that is predicted to
(method-choosing-dim in the book).
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from dimadvise.bounds import smallest_sufficient
from dimadvise.deploy import Deployment
from dimadvise.evidence import NOBODY, Evidence
from dimadvise.files import Block, Rows, Vectors
from dimadvise.measured import read_measured
from dimadvise.search import Places, ranks, searched
from dimadvise.transform import (
    NESTED,
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
from repro.seeding import make_rng
from repro.theory import participation_ratio, predicted_similarity
from repro.types import Array, InputError, check_dim, one_of, unit_rows

METHODS = ("truncate", "pca")  # what is tried unless told otherwise; both cost nothing to apply
QUERIES, POOL, NEIGHBOURS = 300, 20_000, 10  # sample on which neighbours are compared
ERROR = 0.05
"""How often an answer may claim too much, whatever is tried."""
SPECTRA = {"svd": "pca", "random": "grp"}  # methods that the spectrum predicts under another's name


@dataclass(frozen=True)
class Candidate:
    """One method at one size, of one layer."""

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


@dataclass(frozen=True)
class Advice:
    """What was found, and the answer."""

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
    transform: Transform | None  # the map of the answer, fitted on all rows
    notes: tuple[str, ...]

    def shares_of(self, layer: int | None) -> pd.DataFrame | None:
        """Share kept and lower bound of every method and size of a layer; None unlabelled."""
        if self.metric is None:
            return None
        own = [c for c in self.candidates if c.layer == layer]
        told = [(c.method, c.dim, "float32", c.share, c.low, self.metric) for c in own]
        return pd.DataFrame(told, columns=["method", "dim", "level", "share", "low", "metric"])

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
    dims: Sequence[int] = (),
    unit: bool | None = None,
    seed: int = 0,
) -> Advice:
    """Find the smallest size.

    Maps are fitted on all rows; what judges them is fitted without the rows judged. So a bound
    speaks of other texts.

    Args:
        versions: embeddings (n, D) by layer, the last layer last; one with key None if there are no
            layers.
        evidence: what sizes are judged by; None predicts from the spectrum and the neighbours kept.
        retain: share of the full-size score that must be kept.
        methods: tried side by side; each more makes all bounds a little stricter.
        dims: sizes tried; by default three to each halving.
        unit: whether rows are divided by their length; by default unless a classifier judges, as
            cosines see no length.
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
    found, maps, score, fitted = fit_and_judge(
        layers,
        evidence,
        methods,
        sizes,
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
            own = [i for i, c in enumerate(found) if (c.layer, c.method) == (layer, name)]
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
    return Advice(
        tuple(found),
        answer,
        full_dim=full,
        rows=fitted,
        retain=retain,
        metric=evidence.metric if evidence else None,
        items=evidence.items if evidence else 0,
        reference=score,
        confidence=_confidence(layers, methods) if evidence else math.nan,
        ratio=participation_ratio(whole),
        transform=maps[answer.layer, answer.method].prefix(answer.dim) if answer else None,
        notes=() if answer else (_why_none(found, full, retain, evidence),),
    )


def fit_and_judge(
    layers: Mapping[int | None, Vectors],
    evidence: Evidence | None,
    methods: Sequence[str],
    sizes: Sequence[int],
    *,
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
        for name in methods:
            shortened = Shortened(name, moments, splits, sizes, seed=seed)
            if not shortened.sizes:
                continue
            maps[layer, name] = shortened.transform
            found += [Candidate(layer, name, d) for d in shortened.sizes]
            if evidence is not None:
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
        confidence=_confidence(layers, methods),
    )
    judged = zip(found, kept.share[1:], kept.low[1:], strict=True)
    found = [replace(c, share=float(share), low=float(low)) for c, share, low in judged]
    return found, maps, float(scores[0]), moments.whole.rows


def _confidence(layers: Collection[int | None], methods: Collection[str]) -> float:
    return 1 - ERROR / (len(layers) * len(methods))


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
    """The smallest size that passes; of equal sizes the shallowest layer, then the simplest
    method.
    """
    best: Candidate | None = None
    for layer, method in dict.fromkeys((c.layer, c.method) for c in found):
        walk = [c for c in found if (c.layer, c.method) == (layer, method)]
        bounds = [c.low if labelled else c.expected for c in walk]
        dim = smallest_sufficient([c.dim for c in walk], bounds, retain)
        passed = next((c for c in walk if c.dim == dim), None)
        if passed is not None and (best is None or passed.dim < best.dim):
            best = passed
    return best if best is not None and (best.dim < full or best.layer != last) else None


def _why_none(
    found: Sequence[Candidate],
    full: int,
    retain: float,
    evidence: Evidence | None,
) -> str:
    """Why nothing below the full size passes, and what would help."""
    below = [c for c in found if c.dim < full]
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
        f"{evidence.items:,} labelled items are too few to tell: {best.method} at {best.dim} keeps "
        f"{100 * best.share:.2f} % of the score; about "
        f"{math.ceil(needed / 10) * 10:,} items would do"
    )
