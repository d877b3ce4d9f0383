"""Every encoder under every pooler, and what each rule of selection would have chosen (Wang et al., 2023, Figure 4)."""

from typing import Any

import pandas as pd

from repro import data
from repro.evaluation.stats import percentiles, spearman_draws
from repro.rows import make_rows
from repro.runs.sweep import Sweep, cosines_of, spearman_of
from repro.training.two_step import SELECT_BY, select

Grid = dict[tuple[int, int], float]
"""score of encoder_i with pooler_j, by (i, j)"""


def pair_scores(sweep: Sweep, pairs: data.ScoredPairs) -> Grid:
    """Spearman of every encoder_i with every pooler_j: N² small matrix products on states encoded N times."""
    return {(i, j): spearman_of(sweep.embeddings(i, j), pairs) for i in sweep.cells for j in sweep.cells}


def grid_rows(sweep: Sweep, pairs: data.ScoredPairs, *, experiment: str, profile: str) -> pd.DataFrame:
    """The heat map: method `encoder_i`, dim j, one row per pair; and each encoder alone (readout encoder, dim i).

    Rows of metric `spearman_gain` say what encoder_i gains over encoder_j under pooler_j, and those of readout encoder
    what encoder_i alone leads the encoder of the widest pooler by. All pairs are resampled on the same items.
    """
    dims = sorted(sweep.cells)
    wide = dims[-1]
    lines: list[tuple[int, int | None]] = [*((i, None) for i in dims), *((i, j) for i in dims for j in dims)]
    cosines = [cosines_of(sweep.embeddings(i, j), pairs) for i, j in lines]
    values, draws = spearman_draws(cosines, pairs.scores, subsets=pairs.subsets, seed=sweep.config.seed)
    at = {line: k for k, line in enumerate(lines)}
    rows: list[dict[str, Any]] = []
    for k, (i, j) in enumerate(lines):
        common = {
            "method": f"encoder_{i}",
            "dim": i if j is None else j,
            "readout": "encoder" if j is None else "pooler",
        }
        rows.append({**common, "metric": "spearman", **percentiles(values[k], draws[:, k]).columns})
        own = at[wide, None] if j is None else at[j, j]
        if k != own:
            gain = percentiles(values[k] - values[own], draws[:, k] - draws[:, own])
            rows.append({**common, "metric": "spearman_gain", **gain.columns})
    return make_rows(
        rows,
        experiment=experiment,
        paper_table="fig4",
        dataset=pairs.name,
        setting=pairs.split,
        profile=profile,
        **sweep.shared(),
    )


def encode_counts(sweep: Sweep) -> dict[str, int]:
    """What a grid costs: encoders N, distinct texts, texts that went through an encoder in this process, pairs N²."""
    # an encoder that was not needed is not loaded either
    loaded = [cell.encoder for cell in sweep.cells.values() if "encoder" in vars(cell)]
    return {
        "encoders": len(sweep.cells),
        "texts": len(next(iter(sweep.states.values())).index),
        "encoded now": sum(encoder.texts_encoded for encoder in loaded),
        "pairs": len(sweep.cells) ** 2,
    }


def selection_rows(
    sweep: Sweep, dev: data.ScoredPairs, test: data.ScoredPairs, *, experiment: str, profile: str
) -> pd.DataFrame:
    """For every rule and pooler: the encoder it picks on dev (`oracle`: on test), and the test score of the pair.

    Rows of method `select_by=<rule>`: metric `optimal_dim` is the encoder picked, metric `spearman` the pair's score.
    """
    on_dev, on_test = pair_scores(sweep, dev), pair_scores(sweep, test)
    encoders = {i: spearman_of(sweep.embeddings(i), dev) for i in sweep.cells}
    rows: list[dict[str, Any]] = []
    for rule in SELECT_BY:
        for j in sorted(sweep.cells):
            i = select(encoders, on_test if rule == "oracle" else on_dev, j, select_by=rule)
            method = f"select_by={rule}"
            rows += [
                {"metric": "optimal_dim", "value": i, "dim": j, "method": method, "readout": "pooler"},
                {"metric": "spearman", "value": on_test[i, j], "dim": j, "method": method, "readout": "pooler"},
            ]
    return make_rows(
        rows,
        experiment=experiment,
        paper_table="fig4",
        dataset=test.name,
        setting=test.split,
        profile=profile,
        **sweep.shared(),
    )
