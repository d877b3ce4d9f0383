"""How many dims a method needs to stay within one per cent of full size."""

import pandas as pd

from repro.methods import TRUNCATE, ZHANG_METHODS
from repro.report.claims_zhang.leads import WITHIN, encoders_of, full_size, loss

TOLERANCE = 1.0
"""per cent of the full-size score, the paper's"""
SETTINGS = (*WITHIN, "wiki")
MISSING = "–"
COLUMNS = ["encoder", "method", "setting", "dims", "surely", "full", "largest"]


def sufficient_dims(rows: pd.DataFrame, *, tolerance: float = TOLERANCE) -> pd.DataFrame:
    """The smallest size from which on every larger one tried loses at most `tolerance` per cent of the full-size score.

    `dims` goes by the measured loss, `surely` by the upper end of its 95 % interval; missing where no size tried will
    do. `full` is the full size and `largest` the largest one tried.
    """
    lines = []
    for encoder in encoders_of(rows):
        full, _ = full_size(rows, encoder)
        for method in (*ZHANG_METHODS, TRUNCATE):
            for setting in SETTINGS:
                at = loss(rows, encoder, method, setting)
                if at:
                    found = [
                        smallest({d: e.value for d, e in at.items()}, tolerance),
                        smallest({d: e.high for d, e in at.items()}, tolerance),
                    ]
                    lines.append((encoder, method, setting, *found, full, max(at)))
    frame = pd.DataFrame(lines, columns=COLUMNS)
    return frame.astype({"dims": "Int64", "surely": "Int64"})


def smallest(losses: dict[int, float], tolerance: float) -> int | None:
    """The smallest size at which, and at every larger one, the loss is within the tolerance."""
    best = None
    for d in sorted(losses, reverse=True):
        if losses[d] > tolerance:
            break
        best = d
    return best


def sufficient_table(rows: pd.DataFrame) -> pd.DataFrame:
    """`sufficient_dims` for the reader: a line per encoder and method, a column per setting."""
    found = sufficient_dims(rows)
    found["shown"] = [_shown(line) for line in found.itertuples()]
    order = {method: i for i, method in enumerate((*ZHANG_METHODS, TRUNCATE))}
    table = found.pivot(index=["encoder", "method"], columns="setting", values="shown").reset_index()
    table = table.sort_values(["encoder", "method"], key=lambda c: c.map(order) if c.name == "method" else c)
    settings = [s for s in SETTINGS if s in table]
    shown = table[["encoder", "method", *settings]].rename_axis(columns=None).reset_index(drop=True)
    return shown.fillna("not fitted")


def halved(rows: pd.DataFrame, kind: str) -> pd.DataFrame:
    """What PCA at half the dims loses, per cent of full size: a line per encoder and setting, with its interval."""
    lines = []
    for encoder in encoders_of(rows):
        full, _ = full_size(rows, encoder)
        for setting in SETTINGS:
            at = loss(rows, encoder, "PCA", setting)
            if at:
                d = min(at, key=lambda d: abs(d - full / 2))
                value, low, high = (round(x, 2) + 0.0 for x in (at[d].value, at[d].low, at[d].high))  # no −0.00
                shown = f"{value:.2f} [{low:.2f}, {high:.2f}]"
                lines.append({"encoder": encoder, "dims": f"{d} of {full}", "setting": setting, kind: shown})
    return pd.DataFrame(lines, columns=["encoder", "dims", "setting", kind])


def halved_table(past: pd.DataFrame, live: pd.DataFrame) -> pd.DataFrame:
    """`halved` of the recorded and the live rows beside what the paper says of its own six encoders."""
    keys = ["encoder", "dims", "setting"]
    table = halved(past, "recorded").merge(halved(live, "live"), on=keys, how="outer", sort=False)
    table.insert(3, "paper", ["at most 1" if s in WITHIN else MISSING for s in table["setting"]])
    return table.fillna(MISSING)


def _shown(line: object) -> str:
    dims, surely, full, largest = (getattr(line, name) for name in ("dims", "surely", "full", "largest"))
    if pd.isna(dims):
        return f"more than {largest}"
    sure = "not sure at any" if pd.isna(surely) else f"surely {surely}"
    return f"{dims} ({100 * dims / full:.0f} %), {sure}"
