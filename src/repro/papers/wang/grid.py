"""Every encoder under every pooler, and what each rule of selection would have chosen (Wang et al., 2023, Figure 4)."""

from typing import Any

import pandas as pd

from repro.evaluation.stats import percentiles, spearman_draws
from repro.papers.wang.two_step import rows_of
from repro.runs.sweep import Sweep, cosines_of, pair_scores, spearman_of
from repro.sets import ScoredPairs
from repro.training.two_step import SELECT_BY, select


def grid_rows(sweep: Sweep, pairs: ScoredPairs, **shared: Any) -> pd.DataFrame:
    """The heat map: method `encoder_i`, dim j, one row per pair; and each encoder alone (readout encoder, dim i).

    Rows of metric `spearman_gain` say what encoder_i gains over encoder_j under pooler_j, and those of readout encoder
    what encoder_i alone leads the encoder of the widest pooler by. All pairs are resampled on the same items.
    """
    dims = sorted(sweep.cells)
    lines: list[tuple[int, int | None]] = [*((i, None) for i in dims), *((i, j) for i in dims for j in dims)]
    cosines = [cosines_of(sweep.embeddings(i, j), pairs) for i, j in lines]
    values, draws = spearman_draws(cosines, pairs.scores, subsets=pairs.subsets, seed=sweep.config.seed)
    at = {line: k for k, line in enumerate(lines)}
    rows: list[dict[str, Any]] = []
    for k, (i, j) in enumerate(lines):
        read = {"dim": i, "readout": "encoder"} if j is None else {"dim": j, "readout": "pooler"}
        common = {"method": f"encoder_{i}", **read}
        rows.append({**common, "metric": "spearman", **percentiles(values[k], draws[:, k]).columns})
        own = at[dims[-1], None] if j is None else at[j, j]
        if k != own:
            gain = percentiles(values[k] - values[own], draws[:, k] - draws[:, own])
            rows.append({**common, "metric": "spearman_gain", **gain.columns})
    return rows_of(sweep, rows, shared, paper_table="fig4", dataset=pairs.name, setting=pairs.split)


def selection_rows(sweep: Sweep, dev: ScoredPairs, test: ScoredPairs, **shared: Any) -> pd.DataFrame:
    """For every rule and pooler: the encoder it picks on dev (`oracle`: on test), and the test score of the pair.

    Rows of method `select_by=<rule>`: metric `optimal_dim` is the encoder picked, metric `spearman` the pair's score.
    """
    on_dev, on_test = pair_scores(sweep, dev), pair_scores(sweep, test)
    encoders = {i: spearman_of(sweep.embeddings(i), dev) for i in sweep.cells}
    rows: list[dict[str, Any]] = []
    for rule in SELECT_BY:
        for j in sorted(sweep.cells):
            i = select(encoders, on_test if rule == "oracle" else on_dev, j, select_by=rule)
            common = {"dim": j, "method": f"select_by={rule}", "readout": "pooler"}
            rows += [
                {**common, "metric": "optimal_dim", "value": i},
                {**common, "metric": "spearman", "value": on_test[i, j]},
            ]
    return rows_of(sweep, rows, shared, paper_table="fig4", dataset=test.name, setting=test.split)


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
