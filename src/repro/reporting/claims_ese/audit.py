"""Tables of audit E1, E4 and E6: what one batch shows before any training."""

import pandas as pd


def rank_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Numerical rank of dependency matrices by layer: median, smallest and largest, and S₂/S₁ (audit E4)."""
    ranks, seconds = (rows[rows["metric"] == metric] for metric in ("numerical_rank", "second_share"))
    ratio = seconds.set_index(["layer", "setting"])["value"]
    lines = [
        {"layer": r.layer, "size": r.dim, "matrix": r.setting, "rank, median": int(r.value),
         "smallest": int(r.ci_low), "largest": int(r.ci_high), "second by first": f"{ratio[r.layer, r.setting]:.1e}"}
        for r in ranks.itertuples()
    ]  # fmt: skip
    return pd.DataFrame(lines)


def repeat_table(rows: pd.DataFrame) -> pd.DataFrame:
    """How far two calls on one batch agree, a line per decomposition (audit E6)."""
    names = {
        "sign_flips": "components that change sign, %", "column_cosine": "cosine of equal components, median, %",
        "last_cosine": "the last one's, %", "subspace_overlap": "overlap of the two spaces, %",
    }  # fmt: skip
    table = 100 * rows.pivot_table(index="setting", columns="metric", values="value", sort=False)[list(names)]
    return table.reset_index().rename(columns={"setting": "decomposition", **names}).rename_axis(columns=None)


def constant_table(rows: pd.DataFrame) -> pd.DataFrame:
    """The embedding output under `cls` pooling beside the last layer, in the released form (audit E1)."""
    names = {
        "distinct_vectors": "distinct vectors",
        "base_loss": "AnglE's loss",
        "base_gradient": "its gradient by one text",
        "shared_gradient": "by what all texts share",
        "loss_share": "share of the whole loss, %",
    }
    table = rows.pivot_table(index="layer", columns="metric", values="value")[list(names)]
    table["loss_share"] *= 100
    for gradient in ("base_gradient", "shared_gradient"):
        table[gradient] = [f"{v:.0e}" for v in table[gradient]]
    table["distinct_vectors"] = table["distinct_vectors"].astype(int)
    return table.reset_index().rename(columns=names).rename_axis(columns=None)
