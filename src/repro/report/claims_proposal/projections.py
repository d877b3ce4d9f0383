"""PROP-T-2: how the error of random projections shrinks with the dimension; and the tables beside it."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from repro.evaluation.stats import seed_half_width
from repro.report.verdict import Measurement
from repro.report.wide import in_order
from repro.theory import jl_dim

SLOPE, TOLERANCE = -0.5, 0.1
"""of ln(root mean square error of cosines) against ln(dim), as the claim has it"""


def slopes(rows: pd.DataFrame) -> pd.Series:
    """Slope of ln(rms change of cosines) against ln(dim), by backbone and draw; needs three dims of a draw."""
    own = rows[(rows["metric"] == "cosine_rms") & (rows["method"] == "GRP")]
    found = {}
    for key, group in own.groupby(["backbone", "seed"]):
        if group["dim"].nunique() >= 3:
            x, y = np.log(group["dim"].to_numpy(float)), np.log(group["value"].to_numpy(float))
            found[key] = float(np.polyfit(x, y, 1)[0])
    return pd.Series(found, dtype=float, index=pd.MultiIndex.from_tuples(found, names=["backbone", "draw"]))


def johnson_lindenstrauss(rows: pd.DataFrame) -> list[Measurement]:
    """Slope less −½ of every encoder, with its t interval over draws; one draw alone says nothing."""
    found = []
    if (rows["metric"] == "cosine_rms").any():
        for backbone, of_one in slopes(rows).groupby(level="backbone"):
            off = of_one.to_numpy() - SLOPE
            half = seed_half_width(off) if len(off) > 1 else float("nan")
            value = float(off.mean())
            found.append(
                Measurement(
                    "PROP-T-2",
                    "sameness",
                    value,
                    value - half,
                    value + half,
                    margin=TOLERANCE,
                    seeds=len(off),
                    what=f"{backbone}: slope of ln(rms cosine error) against ln(dim), less −0.5",
                )
            )
    return found


def sufficient_table(rows: pd.DataFrame, targets: Sequence[float]) -> pd.DataFrame:
    """Per encoder and ε: what the bound asks for, and the smallest tried dim where no sampled pair is off by more.

    Random projection must hold in every draw. A dash: no dim that was tried is enough.
    """
    worst = rows[rows["metric"] == "distortion_worst"].groupby(["backbone", "method", "dim"])["value"].max()
    lines = []
    for backbone, n in _facts(rows, "sentences").items():
        for eps in targets:
            line = {"encoder": backbone, "sentences": int(n), "ε": eps, "bound": jl_dim(int(n), eps)}
            for method in ("GRP", "PCA"):
                of_one = worst.get(backbone, pd.Series(dtype=float)).get(method, pd.Series(dtype=float))
                line[method] = of_one[of_one <= eps].index.min()
            lines.append(line)
    return pd.DataFrame(lines).astype({"GRP": "Int64", "PCA": "Int64"})


def score_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Spearman ×100 by dim, random projection as mean ± sd over its draws."""
    scores = rows[rows["metric"] == "spearman"]
    lines = []
    for (backbone, dim), group in scores.groupby(["backbone", "dim"]):
        line: dict[str, object] = {"encoder": backbone, "dim": int(dim)}
        for method, of_one in group.groupby("method"):
            values = 100 * of_one["value"]
            line[str(method)] = f"{values.mean():.2f}" + (f" ± {values.std():.2f}" if len(values) > 1 else "")
        lines.append(line)
    return in_order(lines, ["encoder", "dim"], ascending=[True, False])


def _facts(rows: pd.DataFrame, metric: str) -> dict[str, float]:
    own = rows[rows["metric"] == metric]
    return {str(name): float(value) for name, value in own.groupby("backbone")["value"].first().items()}
