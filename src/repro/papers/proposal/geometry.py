"""Expected InfoNCE, alignment and uniformity against dimension: in theory, by simulation, of trained encoders."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from repro import theory
from repro.evaluation.stats import Interval, bootstrap_mean
from repro.methods import END_TO_END
from repro.papers.proposal.free_points import free_points
from repro.rows import make_rows
from repro.runs.embeddings import TextTable
from repro.runs.sweep import Sweep
from repro.seeding import make_rng
from repro.sets import ScoredPairs, texts_of
from repro.terminal import complain
from repro.types import Array, InputError, check_dim

EXPECTED, LIMIT, JENSEN, SIMPLEX = "expected", "endless batch", "Jensen bound", "simplex bound"
SAMPLED, FREE = "Monte Carlo", "free points"
LARGEST_SAMPLED = 1_000
"""batches above this are not simulated: a single loss would take that many cosines"""
MATCHING = 4.0
"""gold score (of 5) from which on a pair counts as positive, as where SimCSE measures alignment"""


def setting_of(temperature: float, batch: int) -> str:
    """The column that tells conditions of the theory apart."""
    return f"τ = {temperature:g}, B = {batch:,}"


def sampled_info_nce(dim: int, temperature: float, batch: int, *, draws: int = 2_000, seed: int = 0) -> Interval:
    """InfoNCE of perfectly aligned uniform points by Monte Carlo: mean and ± 4 standard errors.

    The cosines of one row with its negatives are independent, and (1 + t)/2 follows a Beta law with both parameters
    (m − 1)/2, so that no point has to be drawn.

    Raises:
        InputError: below two dimensions, where the Beta law has no density.
    """
    if check_dim(dim) < 2:
        raise InputError("dim is 1: the sphere has two points there, and needs no sampling")
    rng = make_rng(seed, "sampled info_nce", dim, batch)
    # 1 − t from its own draw keeps digits where t is near 1
    gaps = 2 * rng.beta((dim - 1) / 2, (dim - 1) / 2, size=(draws, batch - 1))
    losses = np.logaddexp(0.0, logsumexp(-gaps / temperature, axis=1))
    return Interval.around(float(losses.mean()), 4 * float(losses.std(ddof=1)) / np.sqrt(draws))


def curve_rows(
    dims: Sequence[int], temperatures: Sequence[float], batches: Sequence[int], *, seed: int = 0, **shared: Any
) -> pd.DataFrame:
    """Expected InfoNCE of aligned uniform points by quadrature, its bounds and limit, and a simulation of it."""
    rows: list[dict[str, Any]] = []
    for temperature in temperatures:
        for batch in batches:
            setting = setting_of(temperature, batch)
            for dim in dims:
                values: dict[str, dict[str, float]] = {
                    EXPECTED: {"value": theory.expected_info_nce(dim, temperature, batch)},
                    LIMIT: {"value": float(np.log(batch - 1)) + theory.expected_info_nce(dim, temperature)},
                    JENSEN: {"value": theory.jensen_bound(dim, temperature, batch)},
                    SIMPLEX: {"value": theory.simplex_bound(temperature, batch)},
                }
                if batch <= LARGEST_SAMPLED and dim > 1:
                    values[SAMPLED] = sampled_info_nce(dim, temperature, batch, seed=seed).columns
                rows += [{"method": name, "dim": dim, "setting": setting, **at} for name, at in values.items()]
    return make_rows(rows, metric="info_nce", seed=seed, **shared)


def free_rows(
    n: int, dims: Sequence[int], temperatures: Sequence[float], *, steps: int = 200, seed: int = 0, **shared: Any
) -> pd.DataFrame:
    """The least InfoNCE that free points reach, beside its lower bound and the expectation of random ones."""
    rows: list[dict[str, Any]] = []
    for temperature in temperatures:
        for dim in dims:
            _, loss = free_points(n, dim, temperature, steps=steps, seed=seed)
            values = {
                FREE: loss,
                SIMPLEX: theory.simplex_bound(temperature, n),
                EXPECTED: theory.expected_info_nce(dim, temperature, n),
            }
            at = {"dim": dim, "setting": setting_of(temperature, n)}
            rows += [{"method": name, "value": value, **at} for name, value in values.items()]
    return make_rows(rows, metric="free_info_nce", seed=seed, **shared)


def positives_of(pairs: ScoredPairs, least: float = MATCHING) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Both sides of the pairs that mean the same, each sentence used once, so that no positive is also a negative.

    Raises:
        InputError: where fewer than two such pairs exist.
    """
    seen: set[str] = set()
    found = []
    for a, b, score in zip(pairs.texts1, pairs.texts2, pairs.scores, strict=True):
        if score >= least and a != b and not {a, b} & seen:
            seen |= {a, b}
            found.append((a, b))
    if len(found) < 2:
        raise InputError(f"{pairs.name} has {len(found)} pairs with a gold score of {least:g} or more: expected 2")
    return tuple(a for a, _ in found), tuple(b for _, b in found)


def uniformity_of(X: Array) -> float:
    """Ln of the mean Gaussian potential over all pairs of rows (§2.6), from one Gram matrix of unit rows (n, dim)."""
    cosines = X @ X.T
    upper = cosines[np.triu_indices(len(X), 1)].astype(np.float64)
    return float(-4 + logsumexp(4 * upper) - np.log(len(upper)))  # ‖u − v‖² = 2 − 2⟨u, v⟩


def uniformity_dim(uniformity: float, *, largest: int = 1 << 14) -> int | None:
    """The smallest dimension whose best possible uniformity is as low: how much of a sphere the embeddings fill.

    None if not even `largest` dimensions reach it.
    """
    low, high = 1, largest
    if theory.uniformity_limit(high) > uniformity:
        return None
    while low < high:  # the limit falls as the dimension grows
        middle = (low + high) // 2
        low, high = (low, middle) if theory.uniformity_limit(middle) <= uniformity else (middle + 1, high)
    return low


def batch_losses(Z1: Array, Z2: Array, *, temperature: float, batch: int, rounds: int = 8, seed: int = 0) -> Array:
    """InfoNCE of every positive pair (P,) in random batches, averaged over the rounds; unit rows (P, dim).

    Raises:
        InputError: for fewer pairs than a batch holds.
    """
    if len(Z1) < batch:
        raise InputError(f"{len(Z1)} positive pairs for a batch of {batch}: choose a smaller batch or more pairs")
    rng = make_rng(seed, "batches of positives")
    logits = (Z1 @ Z2.T).astype(np.float64) / temperature
    total, count = np.zeros(len(Z1)), np.zeros(len(Z1))
    while count.min() < rounds:
        rows = rng.permutation(len(Z1))[:batch]
        of_batch = logits[np.ix_(rows, rows)]
        total[rows] += logsumexp(of_batch, axis=1) - np.diag(of_batch)
        count[rows] += 1
    return np.asarray(total / count)


def geometry_rows(
    sweep: Sweep, pairs: ScoredPairs, *, temperature: float, batch: int, seed: int = 0, **shared: Any
) -> pd.DataFrame:
    """Alignment, uniformity and InfoNCE of trained encoders by dim, with what theory expects at their positive cosine.

    Args:
        sweep: an encoder per dim; what its pooler puts out is measured.
        pairs: scored pairs; those that mean the same are the positives, all their sentences have to be uniform.
        temperature: divides the cosines.
        batch: positives per batch; all where there are fewer, of which the terminal tells.
        seed: of batches and bootstrap.
        shared: columns of every row.
    """
    if (found := len(positives_of(pairs)[0])) < batch:
        complain(f"{found} positive pairs do not fill a batch of {batch}: one batch of all")
        batch = found
    rows = [
        {**row, "dim": dim, "readout": "pooler", "method": END_TO_END}
        for dim in sweep.cells
        for row in _measured(sweep.embeddings(dim, dim), dim, pairs, temperature, batch, seed)
    ]
    columns = {**sweep.shared(), "dataset": pairs.name, "setting": setting_of(temperature, batch), **shared}
    return make_rows(rows, **columns)


def _measured(
    table: TextTable, dim: int, pairs: ScoredPairs, temperature: float, batch: int, seed: int
) -> Iterator[dict[str, Any]]:
    sides = positives_of(pairs)
    Z1, Z2 = (_unit(table[side]) for side in sides)
    cosine = (Z1 * Z2).sum(axis=1)
    yield {"metric": "alignment", **bootstrap_mean(2 - 2 * cosine, seed=seed).columns}
    spread = uniformity_of(_unit(table[list(dict.fromkeys(texts_of(pairs)))]))
    yield {"metric": "uniformity", "value": spread}
    yield {"metric": "uniformity_limit", "value": theory.uniformity_limit(dim)}
    filled = uniformity_dim(spread)
    if filled is not None:
        yield {"metric": "uniformity_dim", "value": float(filled)}
    losses = batch_losses(Z1, Z2, temperature=temperature, batch=batch, seed=seed)
    yield {"metric": "info_nce", **bootstrap_mean(losses, seed=seed).columns}
    mean = float(np.clip(cosine.mean(), -1, 1))
    at = {"expected_info_nce": dim, "expected_info_nce_filled": filled}
    for metric, sphere in at.items():
        if sphere is not None:
            yield {
                "metric": metric,
                "value": theory.expected_info_nce(sphere, temperature, batch, positive_cosine=mean),
            }


def _unit(X: Array) -> Array:
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))
