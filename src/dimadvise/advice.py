"""The smallest size that surely keeps enough; without labels, the smallest that is predicted to (PROTOCOLS §7.6)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dimadvise.evidence import Evidence
from dimadvise.measured import read_measured
from repro.evaluation.retention import retention, smallest_sufficient
from repro.evaluation.retrieve import top_documents
from repro.reducers import Reducer, make_reducer
from repro.seeding import make_rng
from repro.theory import participation_ratio, predicted_similarity, two_nn
from repro.types import Array, InputError, check_dim, check_embeddings, one_of

REDUCERS = ("truncate", "pca")  # what is tried unless told otherwise; both cost nothing to apply
QUERIES, POOL, NEIGHBOURS = 300, 20_000, 10  # sample on which neighbours are compared
ROWS_PER_DIM = 2  # rows per dimension below which the spectrum is not to be trusted


@dataclass(frozen=True)
class Candidate:
    """One reducer at one size, of one layer."""

    layer: int | None
    reducer: str
    dim: int
    predicted: float  # Spearman correlation with full similarity that the spectrum promises
    neighbours: float  # share of the ten nearest neighbours that stay among the ten nearest
    expected: float = math.nan
    """share of a score that is expected to be kept, by the rule that was nearest to labels for this reducer"""
    score: float = math.nan
    share: float = math.nan  # share of the full-size score; NaN without labels
    low: float = math.nan  # lower bound of the share


@dataclass(frozen=True)
class Advice:
    """What was found, and the answer."""

    candidates: tuple[Candidate, ...]
    answer: Candidate | None  # None: nothing below the full size passes
    full_dim: int
    rows: int
    unit: bool  # whether rows were divided by their length before anything else, as `reducer` expects them
    retain: float
    seen: bool  # whether reducers were fitted on rows that are judged
    metric: str | None  # None: the answer is a prediction
    items: int
    reference: float  # full-size score; NaN without labels
    confidence: float  # how often each bound holds, so that all walks together err with 5 % at most
    intrinsic: Mapping[str, float]
    reducer: Reducer | None  # the fitted reducer of the answer
    notes: tuple[str, ...]


def default_dims(full: int) -> list[int]:
    """Sizes tried: the full one, then about three to each halving, down to 8."""
    steps = [round(full * 2 ** (-k / 3)) for k in range(3 * int(np.log2(max(full, 2))) + 1)]
    return sorted({d for d in steps if d >= min(8, full)}, reverse=True)


def advise(
    versions: Mapping[int | None, Array],
    *,
    fit_rows: slice | None = None,
    evidence: Evidence | None = None,
    retain: float = 0.99,
    reducers: Sequence[str] = REDUCERS,
    dims: Sequence[int] | None = None,
    seed: int = 0,
) -> Advice:
    """Find the smallest size.

    Args:
        versions: embeddings (n, D) by layer, the last layer last; one with key None if there are no layers.
        fit_rows: rows that reducers are fitted on; None is all. Queries of a search are not among them.
        evidence: what sizes are judged by; None predicts from the spectrum and the neighbours kept.
        retain: share of the full-size score that must be kept.
        reducers: tried side by side; each more makes all bounds a little stricter.
        dims: sizes tried; None takes `default_dims`.
        seed: of reducers, folds, resamples and the sample of neighbours.
    """
    if not 0 < retain <= 1:
        raise InputError(f"retain is {retain}: expected a share above 0, at most 1, such as 0.99")
    if not versions or not reducers:
        raise InputError("nothing to try: give embeddings and at least one reducer")
    for name in reducers:
        one_of(name, ("truncate", "pca", "svd", "grp"), "reducer")
    unit = evidence is None or evidence.metric != "accuracy"  # cosines see no lengths, a classifier does
    checked = {layer: _checked(X, layer, unit) for layer, X in versions.items()}
    last = list(checked)[-1]
    full = checked[last].shape[1]
    fit_rows = fit_rows or slice(None)
    sizes = sorted({check_dim(d, limit=full) for d in dims or default_dims(full)} | {full}, reverse=True)
    notes = list(_notes(np.asarray(versions[last])[fit_rows]))
    found: list[Candidate] = []
    fitted: dict[tuple[int | None, str], Reducer] = {}
    reduced: list[Array] = []
    for layer, X in checked.items():
        for name in reducers:
            reducer, curve = _reduce(name, X, fit_rows, sizes, seed)
            fitted[layer, name] = reducer
            kept = _neighbours_kept(checked[last], [Y for _, Y in curve], seed)
            spectrum = "pca" if name == "svd" else name
            predicted = predicted_similarity(X[fit_rows], [d for d, _ in curve], reducer=spectrum)
            # Recorded errors decide which rule predicts: with PCA the spectrum alone is too hopeful, as subtracting the
            # mean reorders neighbours. Half of all dimensions, blindly, came nearer than either, as the statement says.
            expected = read_measured().expected(name, np.array(predicted), np.array(kept))
            for (d, Y), promise, near, share in zip(curve, predicted, kept, expected, strict=True):
                found.append(Candidate(layer, name, d, float(promise), near, float(share)))
                reduced.append(Y)
    walks = len(checked) * len(reducers)
    confidence = 1 - 0.05 / walks
    reference = math.nan
    if evidence is not None:
        values, draws = evidence.draws([checked[last], *reduced], seed=seed)
        kept_share = retention(values, draws, reference=0, confidence=confidence)
        reference = float(values[0])
        judged = zip(found, values[1:], kept_share.share[1:], kept_share.low[1:], strict=True)
        found = [replace(c, score=float(v), share=float(share), low=float(low)) for c, v, share, low in judged]
    answer = _smallest(found, full, last, retain, labelled=evidence is not None)
    if answer is None:
        notes.append(_why_none(found, full, retain, evidence))
    intrinsic = {"participation ratio": participation_ratio(checked[last][fit_rows])}
    try:
        intrinsic["TwoNN"] = two_nn(checked[last][fit_rows][:5000])
    except InputError as error:
        notes.append(f"TwoNN has no answer: {error}")
    return Advice(
        tuple(found),
        answer,
        full_dim=full,
        rows=len(checked[last][fit_rows]),
        unit=unit,
        retain=retain,
        seen=evidence is not None and bool(np.isin(evidence.judged, np.arange(len(checked[last]))[fit_rows]).any()),
        metric=evidence.metric if evidence else None,
        items=evidence.items if evidence else 0,
        reference=reference,
        confidence=confidence if evidence else math.nan,
        intrinsic=intrinsic,
        reducer=fitted[answer.layer, answer.reducer] if answer else None,
        notes=tuple(notes),
    )


def _checked(X: Array, layer: int | None, unit: bool) -> Array:
    """Embeddings that can be reduced; of length 1 where only their directions count."""
    X = check_embeddings(X, "the embeddings" if layer is None else f"the embeddings of layer {layer}")
    if len(X) < 3:
        raise InputError(f"{len(X)} embeddings: neither a direction nor a neighbour can be told from so few")
    if not (X[0] != X).any():
        raise InputError(f"all {len(X)} embeddings are equal: no size keeps what is not there")
    lengths = np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))[:, None]
    if not unit or np.allclose(lengths, 1, atol=1e-5):
        return X
    return (X / np.maximum(lengths, 1e-300)).astype(X.dtype)


def _reduce(
    name: str, X: Array, fit_rows: slice, sizes: Sequence[int], seed: int
) -> tuple[Reducer, list[tuple[int, Array]]]:
    """A fitted reducer, and the embeddings at every size within its reach."""
    fit = X[fit_rows]
    reach = [d for d in sizes if name in ("truncate", "grp") or d <= min(fit.shape[1], len(fit) - 1)]
    if not reach:
        raise InputError(
            f"{name} of {len(fit)} rows gives at most {len(fit) - 1} dims: give more embeddings or a smaller size"
        )
    reducer = make_reducer(name, max(reach), seed=seed).fit(fit)
    Y = reducer.transform(X)
    return reducer, [(d, reducer.prefix(Y, d)) for d in reach]


def _neighbours_kept(X: Array, reduced: Sequence[Array], seed: int) -> list[float]:
    """Share of each sampled row's ten nearest neighbours, itself left out, that are still among its ten nearest."""
    rng = make_rng(seed, "neighbours")
    pool = np.sort(rng.permutation(len(X))[:POOL])
    asked = rng.permutation(len(pool))[:QUERIES]
    count = min(NEIGHBOURS, len(pool) - 1)

    def nearest(Y: Array) -> list[set[int]]:
        top = top_documents(Y[pool][asked], Y[pool], count + 1)
        return [set(row[row != own][:count].tolist()) for row, own in zip(top, asked, strict=True)]

    before = nearest(X)
    return [float(np.mean([len(a & b) / count for a, b in zip(before, nearest(Y), strict=True)])) for Y in reduced]


def _smallest(
    found: Sequence[Candidate], full: int, last: int | None, retain: float, *, labelled: bool
) -> Candidate | None:
    """The smallest size that passes; of equal sizes the shallowest layer, then the simplest reducer."""
    best: Candidate | None = None
    for layer, reducer in dict.fromkeys((c.layer, c.reducer) for c in found):
        walk = [c for c in found if (c.layer, c.reducer) == (layer, reducer)]
        bounds = [c.low if labelled else c.expected for c in walk]
        dim = smallest_sufficient([c.dim for c in walk], bounds, retain)
        passed = next((c for c in walk if c.dim == dim), None)
        if passed is not None and (best is None or passed.dim < best.dim):
            best = passed
    return best if best is not None and (best.dim < full or best.layer != last) else None


def _notes(X: Array) -> Iterator[str]:
    """What is odd about embeddings as they were given."""
    n, D = X.shape
    constant, distinct = int((X[0] == X).all(axis=0).sum()), len({row.tobytes() for row in X})
    if constant:
        yield f"{constant} of {D} columns hold one value in every row: they can go without any loss"
    if distinct < n:
        yield f"{n - distinct:,} of {n:,} rows repeat another row"
    if n < ROWS_PER_DIM * D:
        wanted = f"{ROWS_PER_DIM * D:,} rows or more are wanted"
        yield f"{n:,} rows for {D} dimensions: principal components are fitted to chance too; {wanted}"


def _why_none(found: Sequence[Candidate], full: int, retain: float, evidence: Evidence | None) -> str:
    """Why nothing below the full size passes, and what would help."""
    below = [c for c in found if c.dim < full]
    if evidence is None:
        if not below:
            return f"no size below {full} was tried"
        best = max(below, key=lambda c: c.expected)
        return f"the most that is expected below {full} is {100 * best.expected:.2f} %, of {best.reducer} at {best.dim}"
    close = [c for c in below if c.share > retain and np.isfinite(c.low)]
    if not close:
        return f"no size below {full} keeps {100 * retain:g} % of the score: these dimensions are used"
    # the bound's distance from the share shrinks with the square root of the number of items
    best = max(close, key=lambda c: (c.share - retain) / max(c.share - c.low, 1e-12))
    needed = evidence.items * ((best.share - best.low) / (best.share - retain)) ** 2
    return (
        f"{evidence.items:,} labelled items are too few to tell: {best.reducer} at {best.dim} keeps "
        f"{100 * best.share:.2f} % of the score; about {math.ceil(needed / 10) * 10:,} items would do"
    )
