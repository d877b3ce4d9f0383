"""What ships of the errors of predictions, made from recorded rows: `python -m bench.measured`.

It writes the coefficients, and the errors of each rule where labels could tell, that `dimadvise`
ships: of what is expected without labels from the page `proposal_choosing_dim`, and of recall that
is projected to a larger collection from the page `beyond_collection_size`.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dimadvise.measured import ASSET, CALIBRATED, FEATURES, NEAR, SPECTRUM, UNSEEN
from dimadvise.recall import projected
from repro.results import recorded_rows
from repro.types import InputError
from repro.writing import write_text

EXPERIMENT, GROWTH = "proposal_choosing_dim", "beyond_collection_size"
SETTING = r"(?P<level>.+), (?P<vectors>[\d,]+) vectors(?:, (?P<candidates>\d+) re-scored)?"
"""What the setting of a row of a growing collection says."""
TENFOLD, STOPS = 10, 3  # Of the vectors that are projected to, and sizes that the law sees
DIGITS = 4


def growth_from(rows: pd.DataFrame) -> dict[str, Any]:
    """The error of projected recall, from the rows of a growing collection: the last sizes up to a
    tenth of the largest are carried on to it, for each way that kept `NEAR` or more of the ten.
    """
    kept = rows[rows["metric"] == "neighbours_kept"]
    told = kept["setting"].str.extract(f"^{SETTING}$")
    kept = kept.assign(
        level=told["level"],
        vectors=told["vectors"].str.replace(",", "").astype("int64"),
        candidates=told["candidates"].fillna("10").astype("int64"),
    )
    largest = int(kept["vectors"].max())
    fitted = sorted(size for size in set(kept["vectors"]) if size * TENFOLD <= largest)[-STOPS:]
    errors = []
    for (*_, candidates), own in kept.groupby(["method", "dim", "level", "candidates"]):
        values = own.set_index("vectors")["value"]
        if values[fitted[-1]] >= NEAR:
            seen = values[fitted].tolist()
            promised = projected(fitted, seen, largest, candidates=int(candidates))
            errors.append(promised - values[largest])
    return {
        "encoder": str(kept["backbone"].iloc[0]),
        "ways": len(errors),
        "fitted": int(fitted[-1]),
        "judged": largest,
        "rms": round(float(np.sqrt(np.mean(np.square(errors)))), DIGITS),
        "largest": round(float(np.max(np.abs(errors))), DIGITS),
    }


def measured_from(rows: pd.DataFrame) -> dict[str, Any]:
    """What ships, from the rows of the page: where it was measured, errors, and the rule that
    answers by reducer.

    Of the rules that look at embeddings, the spectrum's and the one fitted to it, that one answers
    which names sizes closer to those by labels, leave-one-task-out: the smaller mean |log₂ ratio|
    over the targets.
    """
    whole = rows[rows["dataset"] == "all"]
    parts = (
        whole["setting"].str.split(", ", expand=True).reindex(columns=[0, 1, 2]).astype("string")
    )
    whole = whole.assign(
        reducer=parts[0],
        left=parts[1],
        target=parts[2].str.removeprefix("keep ").astype("Float64"),
    )
    unseen = whole[whole["left"] == UNSEEN]
    if unseen.empty:
        raise InputError(
            f"no errors with {UNSEEN}: record {EXPERIMENT} with two encoders or more and two tasks "
            "or more"
        )
    curve = unseen[unseen["metric"] == "curve_error_mean"].set_index(["reducer", "method"])["value"]
    at = unseen[unseen["target"].notna()].pivot_table(
        index=["reducer", "method", "target"],
        columns="metric",
        values="value",
        sort=False,
    )
    shares = {
        "log2_median": "log2_error_median",
        "log2_worst": "log2_error_worst",
        "target_met": "target_met_share",
    }
    errors: list[dict[str, Any]] = []
    for (reducer, rule, target), row in at.iterrows():
        named = {
            "reducer": reducer,
            "rule": rule,
            "target": float(target),
            "cases": int(row["cases"]),
        }
        named |= {name: round(row[metric], DIGITS) for name, metric in shares.items()}
        off = curve.get((reducer, rule))
        errors.append({**named, "curve": None if off is None else round(float(off), DIGITS)})
    coefficients = whole[whole["metric"] == "coefficient"].set_index(["reducer", "left"])["value"]
    reducers = list(dict.fromkeys(unseen["reducer"]))
    cases = rows[rows["dataset"] != "all"]
    newest = cases.loc[cases["created"].astype(str).idxmax()]
    return {
        "written_by": "python -m bench.measured",
        "encoders": sorted(cases["backbone"].unique()),
        "tasks": sorted(cases["dataset"].unique()),
        "data_source": " and ".join(sorted(cases["data_source"].unique())),
        "commit": str(newest["commit"]),
        "date": str(newest["created"])[:10],
        "rules": {reducer: _closer(whole[whole["reducer"] == reducer]) for reducer in reducers},
        "coefficients": {
            reducer: [round(float(coefficients[reducer, name]), DIGITS) for name in FEATURES]
            for reducer in reducers
        },
        "errors": errors,
    }


def write_measured(path: Path = ASSET, rows: pd.DataFrame | None = None) -> Path:
    """Write what ships as JSON, from recorded rows unless others are given."""
    cases = recorded_rows(EXPERIMENT) if rows is None else rows
    found = {**measured_from(cases), "growth": growth_from(recorded_rows(GROWTH))}
    write_text(path, json.dumps(found, ensure_ascii=False, indent=1) + "\n")
    return path


def _closer(rows: pd.DataFrame) -> str:
    own = rows[(rows["metric"] == "log2_error_mean") & (rows["left"] != UNSEEN)]
    mean = own[own["method"].isin([SPECTRUM, CALIBRATED])].groupby("method")["value"].mean()
    return CALIBRATED if mean[CALIBRATED] < mean[SPECTRUM] else SPECTRUM


if __name__ == "__main__":
    print(f"wrote {write_measured()}")
