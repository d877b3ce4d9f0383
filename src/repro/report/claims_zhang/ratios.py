"""Table 1 for the reader: seconds, and how many times those of PCA."""

from collections.abc import Mapping

import pandas as pd

from repro.report.claims_zhang.table1 import OURS, PEER, printed_seconds, seconds_of

METHODS = ("PCA", "KPCA", "SVD", "Autoencoder", "GRP")
"""in the order of the printed table"""
OPERATIONS = {"fit": "training", "transform": "inference"}


def ratios(rows: pd.DataFrame, what: str) -> dict[tuple[str, str], float]:
    """Times of PCA by method and implementation; each against the PCA of its own implementation."""
    found = {}
    for setting in (PEER, OURS):
        base = seconds_of(rows, what, "PCA", setting)
        for method in METHODS:
            own = seconds_of(rows, what, method, setting)
            if base and own:
                found[method, setting] = own[0] / base[0]
    return found


def ratio_table(what: str, past: pd.DataFrame, live: pd.DataFrame) -> pd.DataFrame:
    """`fit` or `transform` in times of PCA: paper, recorded and live, with scikit-learn's reducers and with ours.

    The autoencoder is ours in both columns, against scikit-learn's PCA in the one and against ours in the other.
    """
    printed = printed_seconds(what)
    lines = []
    for setting in (PEER, OURS):
        for method in METHODS:
            lines.append(
                {
                    "reducers": setting,
                    "method": method,
                    "paper": printed[method] / printed["PCA"] if setting == PEER else float("nan"),
                    "recorded": _against(past, what, method, setting),
                    "live": _against(live, what, method, setting),
                }
            )
    return pd.DataFrame(lines)


def _against(rows: pd.DataFrame, what: str, method: str, setting: str) -> float:
    base = seconds_of(rows, what, "PCA", setting)
    own = seconds_of(rows, what, method, setting) or seconds_of(rows, what, method)
    return own[0] / base[0] if base and own else float("nan")


def seconds_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Milliseconds of every method, median with the fastest and slowest round: scikit-learn's and ours."""
    lines = []
    for method in METHODS:
        line: dict[str, str] = {"method": method}
        for what, word in OPERATIONS.items():
            for setting in (PEER, OURS):
                own = seconds_of(rows, what, method, setting)
                line[f"{word}, {setting}"] = _shown(own) if own else "has none"
        lines.append(line)
    return pd.DataFrame(lines)


def _shown(seconds: tuple[float, float, float]) -> str:
    value, low, high = (1000 * s for s in seconds)
    digits = 2 if value < 10 else 0
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def ratio_frame(kinds: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Ratios to PCA for a figure: columns method, operation, series and value; the paper's first.

    Args:
        kinds: our rows by kind of number, recorded or live.
    """
    lines = []
    for what, word in OPERATIONS.items():
        printed = printed_seconds(what)
        lines += [(method, word, "paper", printed[method] / printed["PCA"]) for method in METHODS]
        for kind, rows in kinds.items():
            for setting in (PEER, OURS):
                for method in METHODS:
                    value = _against(rows, what, method, setting)
                    if not pd.isna(value):
                        lines.append((method, word, f"{kind}, {setting}", value))
    return pd.DataFrame(lines, columns=["method", "operation", "series", "value"])


def depth_table(rows: pd.DataFrame, methods: tuple[str, str]) -> pd.DataFrame:
    """Scores of an autoencoder of one and of three hidden layers at every size, and the deep one's lead.

    Args:
        rows: of scores and leads.
        methods: what the two are called, the shallow one first.
    """
    shallow, deep = methods
    scores = rows[(rows["metric"] == "spearman") & rows["method"].isin(methods)]
    table = 100 * scores.pivot_table(index="dim", columns="method", values="value", aggfunc="mean")[[shallow, deep]]
    leads = rows[(rows["metric"] == "spearman_lead") & (rows["method"] == f"{deep} − {shallow}")]
    shown = {
        int(dim): f"{100 * g['value'].mean():.2f} [{100 * g['ci_low'].mean():.2f}, {100 * g['ci_high'].mean():.2f}]"
        for dim, g in leads.groupby("dim")
    }
    table = table.reset_index().rename(columns={"dim": "dims"}).rename_axis(columns=None)
    return table.assign(lead=[shown.get(int(d), "–") for d in table["dims"]])
