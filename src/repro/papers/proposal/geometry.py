"""Expected InfoNCE, alignment and uniformity against dimension: in theory, by simulation, of trained encoders."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from scipy.special import logsumexp
from torch import Tensor

from repro import theory
from repro.evaluation.stats import Interval, bootstrap_mean
from repro.methods import END_TO_END
from repro.rows import make_rows
from repro.runs.embeddings import TextTable, unit_rows
from repro.runs.sweep import Sweep
from repro.seeding import derive_seed, make_rng
from repro.sets import ScoredPairs, texts_of
from repro.terminal import complain
from repro.types import Array, InputError, check_dim

EXPECTED, LIMIT, JENSEN, SIMPLEX = "expected", "endless batch", "Jensen bound", "simplex bound"
SAMPLED, FREE = "Monte Carlo", "free points"
MOST_DIMS = 1 << 14
"""dims up to which a uniformity is looked for"""
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
    for temperature, batch, dim in ((t, b, m) for t in temperatures for b in batches for m in dims):
        values: dict[str, dict[str, float]] = {
            EXPECTED: {"value": theory.expected_info_nce(dim, temperature, batch)},
            LIMIT: {"value": float(np.log(batch - 1)) + theory.expected_info_nce(dim, temperature)},
            JENSEN: {"value": theory.jensen_bound(dim, temperature, batch)},
            SIMPLEX: {"value": theory.simplex_bound(temperature, batch)},
        }
        if batch <= LARGEST_SAMPLED and dim > 1:
            values[SAMPLED] = sampled_info_nce(dim, temperature, batch, seed=seed).columns
        at = {"dim": dim, "setting": setting_of(temperature, batch)}
        rows += [{"method": name, **at, **value} for name, value in values.items()]
    return make_rows(rows, metric="info_nce", seed=seed, **shared)


def aligned_info_nce(z: Tensor, temperature: float) -> Tensor:
    """InfoNCE of points (B, m) whose positives are themselves: mean of ln(1 + Σ_{j≠i} e^{(cᵢⱼ − 1)/temperature}).

    The same as `info_nce(z, z)`, but without the 1 that swallows losses below 1e-16.
    """
    z = F.normalize(z, dim=-1)
    over_positive = (z @ z.T - 1) / temperature  # (B, B)
    over_positive = over_positive.masked_fill(torch.eye(len(z), dtype=torch.bool), -math.inf)
    return F.softplus(over_positive.logsumexp(dim=1)).mean()


def free_points(n: int, dim: int, temperature: float, *, steps: int = 200, seed: int = 0) -> tuple[Array, float]:
    """Points that descend InfoNCE from a random start: what any encoder of that dimension could reach at best.

    Args:
        n: points, B of the loss.
        dim: of the space they live in.
        temperature: divides the cosines.
        steps: most iterations of L-BFGS; it stops earlier where nothing moves.
        seed: of the start. Other starts may end in other local minima.

    Returns:
        The points on the unit sphere (n, dim) and their loss in nats.

    Raises:
        InputError: for fewer than two points or a temperature that is not above 0.
    """
    if check_dim(n, what="n") < 2:
        raise InputError("n is 1: a contrastive loss needs at least 2 points")
    if not temperature > 0:
        raise InputError(f"temperature is {temperature}: expected a number above 0")
    generator = torch.Generator().manual_seed(derive_seed(seed, "free points", n, dim))
    z = F.normalize(torch.randn(n, check_dim(dim), generator=generator, dtype=torch.float64), dim=-1)
    z.requires_grad_(True)
    # the logarithm of the loss keeps its gradient of one size where the loss itself is 1e-7
    descent = torch.optim.LBFGS([z], max_iter=steps, tolerance_grad=1e-9, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        descent.zero_grad()
        loss = aligned_info_nce(z, temperature).log()
        loss.backward()
        return loss

    descent.step(closure)
    with torch.no_grad():
        return F.normalize(z, dim=-1).numpy().copy(), float(aligned_info_nce(z, temperature))


def free_rows(
    n: int, dims: Sequence[int], temperatures: Sequence[float], *, steps: int = 200, seed: int = 0, **shared: Any
) -> pd.DataFrame:
    """The least InfoNCE that free points reach, beside its lower bound and the expectation of random ones."""
    rows: list[dict[str, Any]] = []
    for temperature, dim in ((t, m) for t in temperatures for m in dims):
        values = {
            FREE: free_points(n, dim, temperature, steps=steps, seed=seed)[1],
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
    found: dict[str, str] = {}
    for a, b, score in zip(pairs.texts1, pairs.texts2, pairs.scores, strict=True):
        if score >= least and a != b and not {a, b} & {*found, *found.values()}:
            found[a] = b
    if len(found) < 2:
        raise InputError(f"{pairs.name} has {len(found)} pairs with a gold score of {least:g} or more: expected 2")
    return tuple(found), tuple(found.values())


def uniformity_of(X: Array) -> float:
    """Ln of the mean Gaussian potential over all pairs of rows (§2.6), from one Gram matrix of unit rows (n, dim)."""
    upper = (X @ X.T)[np.triu_indices(len(X), 1)].astype(np.float64)
    return float(-4 + logsumexp(4 * upper) - np.log(len(upper)))  # ‖u − v‖² = 2 − 2⟨u, v⟩


def geometry_of(
    table: TextTable, pairs: ScoredPairs, sides: tuple[Sequence[str], Sequence[str]], seed: int
) -> tuple[Array, Array, list[dict[str, Any]]]:
    """Both sides of the positives as unit rows, and the rows of their alignment and of all sentences' uniformity."""
    Z1, Z2 = (unit_rows(table[side]) for side in sides)
    away = bootstrap_mean(2 - 2 * (Z1 * Z2).sum(axis=1), seed=seed)
    spread = uniformity_of(unit_rows(table[list(dict.fromkeys(texts_of(pairs)))]))
    return Z1, Z2, [{"metric": "alignment", **away.columns}, {"metric": "uniformity", "value": spread}]


def uniformity_dim(uniformity: float) -> int | None:
    """The smallest dimension whose best possible uniformity is as low: how much of a sphere the embeddings fill.

    None if not even `MOST_DIMS` dimensions reach it.
    """
    low, high = 1, MOST_DIMS
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
    sides = positives_of(pairs)
    if (found := len(sides[0])) < batch:
        complain(f"{found} positive pairs do not fill a batch of {batch}: one batch of all")
        batch = found

    def measured(dim: int) -> Iterator[dict[str, Any]]:
        Z1, Z2, rows = geometry_of(sweep.embeddings(dim, dim), pairs, sides, seed)
        yield from rows
        yield {"metric": "uniformity_limit", "value": theory.uniformity_limit(dim)}
        filled = uniformity_dim(rows[1]["value"])
        if filled is not None:
            yield {"metric": "uniformity_dim", "value": float(filled)}
        losses = batch_losses(Z1, Z2, temperature=temperature, batch=batch, seed=seed)
        yield {"metric": "info_nce", **bootstrap_mean(losses, seed=seed).columns}
        cosine = float(np.clip((Z1 * Z2).sum(axis=1).mean(), -1, 1))
        for metric, sphere in (("expected_info_nce", dim), ("expected_info_nce_filled", filled)):
            if sphere is not None:
                value = theory.expected_info_nce(sphere, temperature, batch, positive_cosine=cosine)
                yield {"metric": metric, "value": value}

    columns = {**sweep.shared(), "dataset": pairs.name, "setting": setting_of(temperature, batch), **shared}
    rows = [
        {**row, "dim": dim, "readout": "pooler", "method": END_TO_END} for dim in sweep.cells for row in measured(dim)
    ]
    return make_rows(rows, **columns)
