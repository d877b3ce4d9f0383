"""Claims made beside the tables: where step 2 starts, the frozen encoder, the pooler's tanh, the cost of its width."""

import pandas as pd

from repro.report.judge import effect, estimates, lowest, sameness
from repro.report.verdict import Measurement

ENCODE_MARGIN = 10.0
"""per cent; how much encoding time may change with the pooler's width"""


def ablations(rows: pd.DataFrame, hidden_dim: int) -> list[Measurement]:
    """Claims WANG-S43-1, S43-2, S2-1 and WANG-LIM-1 from the rows of the ablations."""
    found = []
    for claim, metric, what in (
        ("WANG-S43-1", "start_gain", "current weights less random ones, step 2"),
        ("WANG-S43-2", "frozen_gain", "encoder frozen less trained along, step 2"),
    ):
        at = estimates(rows[rows["metric"] == metric])
        if at:
            d, e = lowest(at)
            found.append(effect(claim, e, f"smallest gain of {what} (dim {d})"))
    tanh = estimates(rows[rows["metric"] == "activation_gain"])
    if tanh:
        d, e = max(tanh.items(), key=lambda item: abs(item[1].value))
        found.append(sameness("WANG-LIM-1", e, f"largest change by the tanh, tanh less identity (dim {d})"))
    return [*found, *_width_cost(rows, hidden_dim)]


def _width_cost(rows: pd.DataFrame, hidden_dim: int) -> list[Measurement]:
    took = rows[rows["metric"] == "encode_seconds"].groupby("dim")[["value", "ci_low", "ci_high"]].mean()
    others = took.index != hidden_dim
    if hidden_dim not in took.index or not others.any():
        return []
    change = 100 * (took[others] / took.loc[hidden_dim, "value"] - 1)
    d = change["value"].abs().idxmax()
    value, low, high = (float(change.loc[d, column]) for column in ("value", "ci_low", "ci_high"))
    # the fastest and slowest round: seconds of a machine in company are not a sample with a standard error
    return [
        Measurement(
            "WANG-S2-1",
            "sameness",
            value,
            low,
            high,
            margin=ENCODE_MARGIN,
            seeds=int(rows["seed"].nunique()),
            what=f"largest change of encoding time against {hidden_dim} dims, per cent (dim {d})",
        )
    ]
