"""Write the advisor's measured errors into the package: `python -m dimadvise.ship`.

Reads `results/proposal_choosing_dim.parquet`, which `repro run notebooks/proposal_choosing_dim.md --record` writes.
"""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from dimadvise.measured import ASSET, CALIBRATED, FEATURES, SPECTRUM, UNSEEN
from repro.rows import recorded_rows
from repro.store import replacing
from repro.terminal import say
from repro.types import InputError

EXPERIMENT = "proposal_choosing_dim"
DIGITS = 4


def measured_from(rows: pd.DataFrame) -> dict[str, Any]:
    """What ships, from the rows of the page: where it was measured, errors, and the rule that answers by reducer.

    Of the rules that look at embeddings, the spectrum's and the one fitted to it, that one answers which names sizes
    closer to those by labels, leave-one-task-out: the smaller mean |log₂ ratio| over the targets.
    """
    whole = rows[rows["dataset"] == "all"]
    parts = whole["setting"].str.split(", ", expand=True).reindex(columns=[0, 1, 2]).astype("string")
    whole = whole.assign(reducer=parts[0], left=parts[1], target=parts[2].str.removeprefix("keep ").astype("Float64"))
    unseen = whole[whole["left"] == UNSEEN]
    if unseen.empty:
        raise InputError(
            f"no errors with {UNSEEN}: record {EXPERIMENT} with two encoders or more and two tasks or more"
        )
    curve = unseen[unseen["metric"] == "curve_error_mean"].set_index(["reducer", "method"])["value"]
    at = unseen[unseen["target"].notna()].pivot_table(
        index=["reducer", "method", "target"], columns="metric", values="value", sort=False
    )
    shares = {"log2_median": "log2_error_median", "log2_worst": "log2_error_worst", "target_met": "target_met_share"}
    errors: list[dict[str, Any]] = []
    for (reducer, rule, target), row in at.iterrows():
        named = {"reducer": reducer, "rule": rule, "target": float(target), "cases": int(row["cases"])}
        named |= {name: round(row[metric], DIGITS) for name, metric in shares.items()}
        off = curve.get((reducer, rule))
        errors.append({**named, "curve": None if off is None else round(float(off), DIGITS)})
    coefficients = whole[whole["metric"] == "coefficient"].set_index(["reducer", "left"])["value"]
    reducers = list(dict.fromkeys(unseen["reducer"]))
    cases = rows[rows["dataset"] != "all"]
    newest = cases.loc[cases["created"].astype(str).idxmax()]
    return {
        "written_by": "python -m dimadvise.ship",
        "encoders": sorted(cases["backbone"].unique()),
        "tasks": sorted(cases["dataset"].unique()),
        "data_source": " and ".join(sorted(cases["data_source"].unique())),
        "commit": str(newest["commit"]),
        "date": str(newest["created"])[:10],
        "rules": {reducer: _closer(whole[whole["reducer"] == reducer]) for reducer in reducers},
        "coefficients": {
            reducer: [round(float(coefficients[reducer, name]), DIGITS) for name in FEATURES] for reducer in reducers
        },
        "errors": errors,
    }


def write_measured(path: Path = ASSET, rows: pd.DataFrame | None = None) -> Path:
    """Write what ships as JSON, from recorded rows unless others are given."""
    found = measured_from(recorded_rows(EXPERIMENT) if rows is None else rows)
    with replacing(path) as partial:
        partial.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return path


def _closer(rows: pd.DataFrame) -> str:
    own = rows[(rows["metric"] == "log2_error_mean") & (rows["left"] != UNSEEN)]
    mean = own[own["method"].isin([SPECTRUM, CALIBRATED])].groupby("method")["value"].mean()
    return CALIBRATED if mean[CALIBRATED] < mean[SPECTRUM] else SPECTRUM


if __name__ == "__main__":
    say(f"wrote {write_measured()}")
