"""Rows of Table 1 and Figures 3 and 4: every layer and size, and what the paper reads off them, with intervals.

Metrics: `spearman` of every cell; `spearman_lead` of one line over another; `spearman_step` from a layer to the next;
`spearman_change` of a size against another; `spearman_drop` from the last layer to the middle one, and `drop_lead`,
one line's drop less another's; `depth_lead`, how much larger a lead is over the lower half of the layers than at the
last.
"""

from collections.abc import Iterator
from functools import partial
from itertools import combinations, pairwise
from typing import Any

import pandas as pd

from repro.evaluation.stats import Interval
from repro.methods import AVERAGE, SHALLOW_AVERAGE
from repro.papers.ese.scored import Pick, Scored
from repro.rows import make_rows
from repro.types import Array


def depth_rows(scored: Scored, *, reference: int | None = None, **shared: Any) -> pd.DataFrame:
    """All scores of some lines, and their comparisons on the average of the sets.

    Args:
        scored: lines of one backbone on some sets.
        reference: size that `spearman_change` compares with, ESE's compressed size; None is the full size.
        shared: columns common to all rows.

    Raises:
        InputError: for a reference size that was not scored.
    """
    judged = [AVERAGE] if AVERAGE in scored.values else list(scored.values)
    rows = [*_cells(scored)]
    for dataset in judged:
        rows += [*_shallow(scored, dataset), *_leads(scored, dataset), *_within(scored, dataset, reference)]
    rows += [row for dataset in scored.values if dataset not in judged for row in _last_leads(scored, dataset)]
    return make_rows(rows, readout="encoder", **shared)


def half_depth(scored: Scored) -> int:
    """The middle layer, L/2 rounded down, at least 1."""
    return max(1, scored.deepest // 2)


def _of(scored: Scored, line: int) -> dict[str, Any]:
    """Columns of one line."""
    own = scored.lines[line]
    return {"method": own.method, "backbone": own.backbone, "n_train": own.n_train}


def _between(scored: Scored, a: int, b: int) -> dict[str, Any]:
    """Columns of line a less line b."""
    return {**_of(scored, a), "method": f"{scored.lines[a].method} − {scored.lines[b].method}"}


def _pairs(scored: Scored) -> Iterator[tuple[int, int]]:
    """Every two lines, the later one first, as in `ESE − RAW`."""
    yield from ((a, b) for b, a in combinations(range(len(scored.lines)), 2))


def _cells(scored: Scored) -> Iterator[dict[str, Any]]:
    for dataset in scored.values:
        for line in range(len(scored.lines)):
            for layer in scored.layers:
                for dim in scored.dims:
                    found = scored.interval(dataset, scored.cell(line, layer, dim))
                    yield {
                        **_of(scored, line),
                        "layer": layer,
                        "dim": dim,
                        "dataset": dataset,
                        "metric": "spearman",
                        **found.columns,
                    }


def _shallow(scored: Scored, dataset: str) -> Iterator[dict[str, Any]]:
    """The mean over the shallow layers, by size, and its leads."""
    if not scored.shallow:
        return
    common = {"dataset": shallow_name(dataset)}
    for dim in scored.dims:
        means = [scored.shallow_mean(line, dim) for line in range(len(scored.lines))]
        for line, mean in enumerate(means):
            found = scored.interval(dataset, mean)
            yield {**_of(scored, line), **common, "dim": dim, "metric": "spearman", **found.columns}
        for a, b in _pairs(scored):
            found = scored.lead(dataset, means[a], means[b])
            yield {**_between(scored, a, b), **common, "dim": dim, "metric": "spearman_lead", **found.columns}


def shallow_name(dataset: str) -> str:
    """Dataset of the rows that hold a mean over the shallow layers."""
    return SHALLOW_AVERAGE if dataset == AVERAGE else f"<{dataset}"


def _leads(scored: Scored, dataset: str) -> Iterator[dict[str, Any]]:
    """Leads at every layer and size; the drop to half depth against another line's; where a lead is larger."""
    half, last = half_depth(scored), scored.deepest
    lower = [layer for layer in scored.layers if 1 <= layer <= half]
    for a, b in _pairs(scored):
        common = {**_between(scored, a, b), "dataset": dataset}
        for layer in scored.layers[scored.layers[0] == 0 :]:
            for dim in scored.dims:
                found = scored.lead(dataset, scored.cell(a, layer, dim), scored.cell(b, layer, dim))
                yield {**common, "layer": layer, "dim": dim, "metric": "spearman_lead", **found.columns}
        if half not in scored.layers or half == last:
            continue
        for dim in scored.dims:
            found = scored.lead(dataset, _drop(scored, a, half, dim), _drop(scored, b, half, dim))
            yield {**common, "layer": half, "dim": dim, "metric": "drop_lead", **found.columns}
        yield {
            **common,
            "layer": half,
            "metric": "depth_lead",
            "setting": "mean over sizes",
            **_depth_lead(scored, dataset, a, b, lower).columns,
        }


def _last_leads(scored: Scored, dataset: str) -> Iterator[dict[str, Any]]:
    """Leads on one set at the last layer and full size."""
    last, full = scored.deepest, scored.hidden_dim
    for a, b in _pairs(scored):
        found = scored.lead(dataset, scored.cell(a, last, full), scored.cell(b, last, full))
        yield {
            **_between(scored, a, b),
            "dataset": dataset,
            "layer": last,
            "dim": full,
            "metric": "spearman_lead",
            **found.columns,
        }


def _within(scored: Scored, dataset: str, reference: int | None) -> Iterator[dict[str, Any]]:
    """A line against itself: from layer to layer, from size to size, from the last layer to the middle one."""
    full, last, half = scored.hidden_dim, scored.deepest, half_depth(scored)
    against = reference or full
    for line in range(len(scored.lines)):
        cell = partial(scored.cell, line)
        common = {**_of(scored, line), "dataset": dataset}
        for below, layer in pairwise(layer for layer in scored.layers if layer >= 1):
            found = scored.lead(dataset, cell(layer, full), cell(below, full))
            yield {**common, "layer": layer, "dim": full, "metric": "spearman_step", **found.columns}
        for dim in scored.dims:
            if dim != against:
                found = scored.lead(dataset, cell(last, dim), cell(last, against))
                yield {
                    **common,
                    "layer": last,
                    "dim": dim,
                    "metric": "spearman_change",
                    "setting": f"against {against} dims",
                    **found.columns,
                }
            if half in scored.layers and half != last:
                found = scored.interval(dataset, _drop(scored, line, half, dim))
                yield {**common, "layer": half, "dim": dim, "metric": "spearman_drop", **found.columns}


def _drop(scored: Scored, line: int, layer: int, dim: int) -> Pick:
    top, low = scored.cell(line, scored.deepest, dim), scored.cell(line, layer, dim)
    return lambda grid: top(grid) - low(grid)


def _depth_lead(scored: Scored, dataset: str, a: int, b: int, lower: list[int]) -> Interval:
    """The lead's mean over sizes and the lower layers, less its mean over sizes at the last layer."""
    where, last = [scored.layers.index(layer) for layer in lower], scored.layers.index(scored.deepest)

    def excess(grid: Array) -> Array:
        gap = (grid[..., a, :, :] - grid[..., b, :, :]).mean(-1)
        return gap[..., where].mean(-1) - gap[..., last]

    return scored.interval(dataset, excess)
