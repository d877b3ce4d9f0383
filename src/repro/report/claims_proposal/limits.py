"""The smallest dimensions at which every two documents can be retrieved: exact, found, with room, and by encoders."""

import pandas as pd

from repro.report.wide import in_order


def limit_table(rows: pd.DataFrame, margin: float) -> pd.DataFrame:
    """A line per number of documents: the smallest dim that suffices in principle, by descent, and with a margin.

    A missing number: no dim that was tried.
    """
    lines = []
    for setting, group in rows[rows["metric"].isin(["sets_realised", "margin"])].groupby("setting", sort=False):
        by = group.pivot_table(index=["method", "dim"], columns="metric", values="value")
        possible, free, curve = (by.xs(name) for name in ("most possible", "gradient descent", "curve"))
        lines.append(
            {
                "documents": int(str(setting).split()[0]),
                "most possible": possible.index[possible["sets_realised"] >= 1].min(),
                "gradient descent": free.index[free["sets_realised"] >= 1].min(),
                f"with a margin of {margin:g}": free.index[free["margin"] >= margin].min(),
                "margin of the curve, 4 dims": f"{curve['margin'].iloc[0]:.2g}",
            }
        )
    table = in_order(lines, "documents")
    whole = [name for name in table if "margin of" not in str(name) or "with" in str(name)]
    return table.astype(dict.fromkeys(whole, "Int64"))


def encoder_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Per encoder and number of columns: sets realised and recall@2, in per cent, and the smallest margin."""
    table = rows.pivot_table(index=["method", "dim"], columns="metric", values="value", sort=False).reset_index()
    table[["sets_realised", "recall@2"]] *= 100
    names = {"method": "encoder", "sets_realised": "sets realised, %", "recall@2": "recall@2, %"}
    return table.rename(columns=names)[["encoder", "dim", "sets realised, %", "recall@2, %", "margin"]]
