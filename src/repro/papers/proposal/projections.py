"""What random directions keep of real embeddings, beside what the lemma of Johnson and Lindenstrauss promises."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from repro import theory
from repro.evaluation.sts import prefix_cosines, sts_spearman
from repro.methods import FULL_SIZE
from repro.reducers import make_reducer
from repro.rows import make_rows
from repro.runs.embeddings import TextTable, unit_rows
from repro.seeding import make_rng
from repro.sets import ScoredPairs, texts_of
from repro.types import Array

GRP, PCA = "GRP", "PCA"
QUANTILES = {"low": 0.005, "median": 0.5, "high": 0.995}
"""of the pairs' distortions; the two outer ones hold 99 % of the pairs between them"""


def projection_rows(
    table: TextTable,
    fit: Sequence[str],
    pairs: ScoredPairs,
    dims: Sequence[int],
    *,
    draws: int = 5,
    sampled: int = 20_000,
    seed: int = 0,
    **shared: Any,
) -> pd.DataFrame:
    """Distortion of distances and cosines, and the score of scored pairs, under random projection and under PCA.

    Lengths are compared after the mean of all ratios is brought to 1 for PCA, which shrinks everything; a cosine does
    not see that factor. PCA learns its directions from `fit`. Its cosines are those of the projected rows themselves,
    so that both methods are linear maps; its score is that of rows less their mean, as PCA is used elsewhere.

    Args:
        table: embeddings of all texts.
        fit: sentences that PCA is fitted on.
        pairs: scored pairs; the distances are those among their distinct sentences.
        dims: sizes; those above the full size are only for random projection.
        draws: random projections; each has its own number in the column `seed`.
        sampled: pairs of sentences whose distance is looked at.
        seed: of the first draw and of the pairs.
        shared: columns of every row.
    """
    sentences = list(dict.fromkeys(texts_of(pairs)))
    X = unit_rows(table[sentences].astype(np.float64))
    D = X.shape[1]
    numbers = {text: i for i, text in enumerate(sentences)}
    sides = tuple([numbers[text] for text in side] for side in (pairs.texts1, pairs.texts2))
    full = {"method": FULL_SIZE, "dim": D}
    rows: list[dict[str, Any]] = [
        {**full, "metric": "spearman", "seed": seed, "value": sts_spearman(X[sides[0]], X[sides[1]], pairs.scores)},
        {**full, "metric": "participation_ratio", "value": theory.participation_ratio(X)},
        {**full, "metric": "sentences", "value": float(len(X))},
    ]
    centre = np.zeros((1, D))
    maps = [(GRP, seed + draw, make_reducer("grp", max(dims), seed=seed + draw).fit(X)) for draw in range(draws)]
    within = [dim for dim in dims if dim <= min(D, len(fit) - 1)]
    if within:
        fitted = unit_rows(table[list(fit)].astype(np.float64))
        centre = fitted.mean(axis=0, keepdims=True)
        maps.append((PCA, seed, make_reducer("pca", max(within), center_output=False).fit(fitted)))
    for method, draw, reducer in maps:
        Y, origin = reducer.transform(X), reducer.transform(centre) if method == PCA else 0.0
        for dim in dims if method == GRP else within:
            Z = reducer.prefix(Y, dim).astype(np.float64)
            at = {"method": method, "dim": dim, "seed": draw}
            rows += [{**at, **row} for row in _kept(X, Z, sampled, seed, rescale=method == PCA)]
            C = Z if method == GRP else reducer.prefix(Y - origin, dim)
            score = sts_spearman(C[sides[0]], C[sides[1]], pairs.scores)
            rows.append({**at, "metric": "spearman", "value": score})
    return make_rows(rows, dataset=pairs.name, setting=f"{len(X):,} sentences", **shared)


def _kept(X: Array, Z: Array, sampled: int, seed: int, *, rescale: bool) -> Iterator[dict[str, Any]]:
    """Quantiles of the distortion, and the error of cosines with what theory expects of a random projection."""
    ratio = theory.pair_distortion(X, Z, pairs=sampled, seed=seed)
    if rescale:
        ratio = ratio / ratio.mean()
    at = {"min": ratio.min(), "max": ratio.max()}
    at |= {name: np.quantile(ratio, q) for name, q in QUANTILES.items()}
    yield from ({"metric": f"distortion_{name}", "value": float(value)} for name, value in at.items())
    yield {"metric": "distortion_worst", "value": float(np.abs(ratio - 1).max())}
    rng = make_rng(seed, "pairs of sentences")
    i = rng.integers(0, len(X), sampled)
    j = (i + rng.integers(1, len(X), sampled)) % len(X)  # never i itself
    before, after = (prefix_cosines(M[i], M[j], [M.shape[1]])[0] for M in (X, Z))
    yield {"metric": "cosine_rms", "value": float(np.sqrt(((after - before) ** 2).mean()))}
    expected = ((1 - before**2) ** 2).mean() / Z.shape[1]  # the mean square of `cosine_error`
    yield {"metric": "cosine_rms_expected", "value": float(np.sqrt(expected))}
