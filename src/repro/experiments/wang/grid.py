"""Every encoder under every pooler, and what each rule of selection would have chosen (Wang et al., 2023, Figure 4)."""

from typing import Any

import pandas as pd

from repro import data
from repro.evaluation.protocol import score_sts
from repro.experiments.sweep import Sweep, score_columns, spearman_of
from repro.rows import make_rows
from repro.training.two_step import SELECT_BY, select

Grid = dict[tuple[int, int], float]
"""score of encoder_i with pooler_j, by (i, j)"""


def pair_scores(sweep: Sweep, pairs: data.ScoredPairs) -> Grid:
    """Spearman of every encoder_i with every pooler_j: N² small matrix products on states encoded N times."""
    return {(i, j): spearman_of(sweep.embeddings(i, j), pairs) for i in sweep.cells for j in sweep.cells}


def grid_rows(sweep: Sweep, pairs: data.ScoredPairs, *, experiment: str, profile: str) -> pd.DataFrame:
    """The heat map: method `encoder_i`, dim j, one row per pair; and each encoder alone (readout encoder, dim i)."""
    rows: list[dict[str, Any]] = []
    seed = sweep.config.seed
    for i in sorted(sweep.cells):
        alone = score_sts(sweep.embeddings(i).__getitem__, pairs, seed=seed)
        rows.append({**score_columns(alone), "method": f"encoder_{i}", "dim": i, "readout": "encoder"})
        for j in sorted(sweep.cells):
            score = score_sts(sweep.embeddings(i, j).__getitem__, pairs, seed=seed)
            rows.append({**score_columns(score), "method": f"encoder_{i}", "dim": j, "readout": "pooler"})
    return make_rows(
        rows, experiment=experiment, paper_table="fig4", dataset=pairs.name, setting=pairs.split, profile=profile,
        **sweep.shared(),
    )  # fmt: skip


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
        rows, experiment=experiment, paper_table="fig4", dataset=test.name, setting=test.split, profile=profile,
        **sweep.shared(),
    )  # fmt: skip
