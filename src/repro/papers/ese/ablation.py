"""Rows of Table 2, Figure 5 and the audit's switches: variants of ESE at the last layer and over the shallow ones.

Metrics: `spearman`; `spearman_lead` of one variant over another; `shallow_excess`, how much larger that lead is over
the shallow layers than at the last; `layer_weight`, what learned weights became; `compressed_size`, the k of a variant.
"""

from collections.abc import Iterator
from functools import partial
from math import exp
from typing import Any

import pandas as pd

from repro.losses import layer_weights, shallow_layers
from repro.methods import AVERAGE, ESE_DEFAULT
from repro.papers.ese.depth import shallow_name
from repro.papers.ese.lines import Line
from repro.papers.ese.scored import Pick, Scored
from repro.papers.ese.variants import comparisons
from repro.rows import make_rows
from repro.types import Array


def ablation_rows(scored: Scored, **shared: Any) -> pd.DataFrame:
    """Scores of all variants at every scored size, and their comparisons on the average of the sets.

    `n_train` counts training pairs. The compressed size of a variant of Figure 5 is in its name.

    Args:
        scored: lines of `variant_lines`.
        shared: columns common to all rows.
    """
    judged = [AVERAGE] if AVERAGE in scored.values else list(scored.values)
    rows: list[dict[str, Any]] = []
    for line in range(len(scored.lines)):
        rows += [*_scores(scored, line, judged), *_settings(scored.lines[line], scored.deepest)]
    at = {line.method: i for i, line in enumerate(scored.lines)}
    for dataset in judged:
        for a, b in comparisons(list(at)):
            rows += _compared(scored, dataset, at[a], at[b])
    return make_rows(rows, readout="encoder", **shared)


def _scores(scored: Scored, line: int, judged: list[str]) -> Iterator[dict[str, Any]]:
    common = {**_columns(scored.lines[line]), "metric": "spearman"}
    for dim in scored.dims:
        for dataset in scored.values:
            found = scored.interval(dataset, scored.cell(line, scored.deepest, dim))
            yield {**common, "layer": scored.deepest, "dim": dim, "dataset": dataset, **found.columns}
        for dataset in judged if scored.shallow else ():
            found = scored.interval(dataset, scored.shallow_mean(line, dim))
            yield {**common, "dim": dim, "dataset": shallow_name(dataset), **found.columns}


def _columns(line: Line) -> dict[str, Any]:
    return {"method": line.method, "backbone": line.backbone, "n_train": line.n_train}


def _compared(scored: Scored, dataset: str, a: int, b: int) -> Iterator[dict[str, Any]]:
    first, second = scored.lines[a], scored.lines[b]
    common = {**_columns(first), "method": f"{first.method} − {second.method}"}
    for dim in scored.dims:
        last = [scored.cell(line, scored.deepest, dim) for line in (a, b)]
        found = scored.lead(dataset, *last)
        yield {
            **common,
            "layer": scored.deepest,
            "dim": dim,
            "dataset": dataset,
            "metric": "spearman_lead",
            **found.columns,
        }
        if not scored.shallow:
            continue
        low = [scored.shallow_mean(line, dim) for line in (a, b)]
        gaps = [partial(_gap, picks[0], picks[1]) for picks in (low, last)]
        found = scored.lead(dataset, *low)
        yield {**common, "dim": dim, "dataset": shallow_name(dataset), "metric": "spearman_lead", **found.columns}
        found = scored.lead(dataset, *gaps)
        yield {**common, "dim": dim, "dataset": dataset, "metric": "shallow_excess", **found.columns}


def _gap(first: Pick, second: Pick, grid: Array) -> Array:
    return first(grid) - second(grid)


def _settings(line: Line, deepest: int) -> Iterator[dict[str, Any]]:
    """The compressed size; and weights of the shallow layers after training, the default's for comparison."""
    if line.cell is None or line.config is None or line.config.objective != "ese":
        return
    yield {**_columns(line), "metric": "compressed_size", "value": line.config.dim}
    shallow = shallow_layers(deepest + 1, line.config.espresso)
    learned = line.cell.log_weights
    if learned is None and line.method != ESE_DEFAULT:
        return
    fixed = layer_weights(len(shallow), "log").tolist()
    weights = fixed if learned is None else [exp(-s) for s in learned]
    for layer, weight in zip(shallow, weights, strict=True):
        yield {**_columns(line), "layer": layer, "metric": "layer_weight", "value": weight}
