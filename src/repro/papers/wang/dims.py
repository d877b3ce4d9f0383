"""Scores by trained dim (Wang et al., 2023, Figure 2)."""

from collections.abc import Mapping
from time import perf_counter

import pandas as pd

from repro.methods import END_TO_END
from repro.rows import make_rows
from repro.runs.score import score_task
from repro.runs.sweep import Sweep
from repro.sets import DataSet
from repro.store import Store


def dims_rows(
    sweep: Sweep, tasks: Mapping[str, Mapping[str, DataSet]], store: Store, *, experiment: str, profile: str
) -> pd.DataFrame:
    """Score of every task for every trained dim, in both readouts (Figure 2)."""
    rows = []
    for dim, cell in sweep.cells.items():
        for readout, table in (("pooler", sweep.embeddings(dim, dim)), ("encoder", sweep.embeddings(dim))):
            for name, splits in tasks.items():
                started = perf_counter()
                score = score_task(table, name, splits, store, seed=sweep.config.seed)
                rows.append(
                    {
                        **score.columns,
                        "dim": dim,
                        "readout": readout,
                        "dataset": name,
                        "method": END_TO_END,
                        "seconds": perf_counter() - started,
                    }
                )
                if score.floor is not None and readout == "pooler":
                    rows.append(
                        {
                            "metric": "majority_floor",
                            "value": score.floor,
                            "dim": dim,
                            "dataset": name,
                            "method": END_TO_END,
                            "readout": readout,
                        }
                    )
        rows.append(
            {
                "metric": "train_seconds",
                "value": cell.seconds,
                "seconds": cell.seconds,
                "dim": dim,
                "method": END_TO_END,
                "dataset": sweep.config.corpus,
                "readout": "pooler",
            }
        )
    return make_rows(rows, experiment=experiment, paper_table="fig2", setting="test", profile=profile, **sweep.shared())
