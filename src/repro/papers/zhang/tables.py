"""What a reader sees of Zhang et al. (2024): losses and sizes that lose little, scores against
size, and seconds.
"""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from dimadvise.bounds import smallest_sufficient
from repro.evaluation.seeds import Estimate, scaled
from repro.methods import FULL_SIZE, MAJORITY, TRUNCATE, ZHANG_METHODS
from repro.papers.zhang.claims import SCORES, SETTINGS, WITHIN, encoders_of, full_size, lead
from repro.report.curves import curves
from repro.report.figures import GREY, WIDTH, Drawing, NothingToDraw, dim_axis, drawing
from repro.report.tables import MISSING, between, interval, mean, wide
from repro.rows import only

TOLERANCE = 1.0  # Per cent of the full-size score that a size may lose and still count as enough
ORDER = (*ZHANG_METHODS, TRUNCATE)


def loss(rows: pd.DataFrame, encoder: str, method: str, setting: str) -> dict[int, Estimate]:
    """By dim, what a method loses of the full-size score, in per cent of it.

    The full-size score that it is divided by is taken as exact: its interval would move the loss by
    a small part of it.
    """
    _, full = full_size(rows, encoder)
    leads = lead(rows, encoder, method, setting)
    return {d: scaled(e, -100 / full) for d, e in leads.items()}


def halved_table(rows: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """What PCA at half the dims loses, per cent of full size, by kind of number, beside what the
    paper says; one training has no interval.
    """
    lines = []
    for kind, frame in rows.items():
        for encoder in encoders_of(frame):
            full, _ = full_size(frame, encoder)
            for setting in SETTINGS:
                loss_by_dim = loss(frame, encoder, "PCA", setting)
                near_half = [d for d in loss_by_dim if 0.5**1.5 <= d / full <= 0.5**0.5]
                if not near_half:
                    continue
                d = min(near_half, key=lambda d: abs(d - full / 2))
                ends = loss_by_dim[d].value, loss_by_dim[d].low, loss_by_dim[d].high
                value, low, high = (round(end, 2) + 0.0 for end in ends)  # No −0.00
                text_by_kind = {"paper": "at most 1" if setting in WITHIN else MISSING}
                text_by_kind[kind] = between(value, low, high)
                line = (encoder, f"{d} of {full}", setting)
                lines += [(*line, *item) for item in text_by_kind.items()]
    frame = pd.DataFrame(lines, columns=["encoder", "dims", "setting", "kind", "value"])
    orders = {"setting": SETTINGS, "kind": ("paper", *rows)}
    table = wide(
        frame,
        ["encoder", "dims", "setting"],
        "kind",
        lambda cell: cell["value"].iat[0],
        orders=orders,
    )
    return table.fillna(MISSING)


def sufficient_table(rows: pd.DataFrame) -> pd.DataFrame:
    """The smallest size from which on every larger one tried loses at most 1 % of the full-size
    score.

    First by the measured loss, then, as `surely`, by the upper end of its 95 % interval.
    """
    lines = []
    for encoder, method, setting in product(sorted(encoders_of(rows)), ORDER, SETTINGS):
        if loss_by_dim := loss(rows, encoder, method, setting):
            full, _ = full_size(rows, encoder)
            lost = ([e.value for e in loss_by_dim.values()], [e.high for e in loss_by_dim.values()])
            shares = ([1 - loss_at / 100 for loss_at in losses] for losses in lost)
            enough, surely = (
                smallest_sufficient(list(loss_by_dim), share, 1 - TOLERANCE / 100)
                for share in shares
            )
            sure = "not sure at any" if surely is None else f"surely {surely}"
            answer = (
                f"{enough} ({100 * enough / full:.0f} %), {sure}"
                if enough
                else f"more than {max(loss_by_dim)}"
            )
            lines.append((encoder, method, setting, answer))
    sizes = pd.DataFrame(lines, columns=["encoder", "method", "setting", "said"])
    orders = {"method": ORDER, "setting": SETTINGS}
    table = wide(
        sizes, ["encoder", "method"], "setting", lambda cell: cell["said"].iat[0], orders=orders
    )
    return table.fillna("not fitted")


def score_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Scores ×100, means over seeds: a line per encoder, method and setting, a column per size that
    any of them has.
    """
    score_rows = rows[rows["metric"].isin(SCORES) & rows["method"].isin((FULL_SIZE, *ORDER))]
    settings = sorted(set(score_rows["setting"].fillna("")))
    orders = {"backbone": encoders_of(rows), "method": (FULL_SIZE, *ORDER), "setting": settings}
    return wide(
        score_rows,
        ["backbone", "method", "setting"],
        "dim",
        orders=orders,
        names={"backbone": "encoder"},
    )


def rescaled_table(rows: pd.DataFrame, form: str) -> pd.DataFrame:
    """PCA, kernel PCA and kernel PCA in another form at every size, inductive: a line per encoder
    and size.
    """
    shown = {
        ("PCA", "inductive"): "PCA",
        ("KPCA", "inductive"): "KPCA",
        ("KPCA", f"inductive, {form}"): f"KPCA {form}",
    }
    score_rows = rows[rows["metric"].isin(SCORES)]
    keys = zip(score_rows["method"], score_rows["setting"], strict=True)
    score_rows = score_rows.assign(line=[shown.get(key) for key in keys])
    score_rows = score_rows.dropna(subset="line")
    if set(score_rows["line"]) != set(shown.values()):
        return pd.DataFrame(columns=["encoder", "dims", *shown.values()])
    orders = {"backbone": encoders_of(rows), "line": list(shown.values())}
    table = wide(
        score_rows,
        ["backbone", "dim"],
        "line",
        orders=orders,
        names={"backbone": "encoder", "dim": "dims"},
    )
    return table.dropna(ignore_index=True)


def roughness_table(rows: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Roughness in points per encoder, setting and method: recorded a mean over seeds, live with
    its interval.
    """
    frames = [frame.assign(kind=kind) for kind, frame in rows.items()]
    joined = pd.concat(frames, ignore_index=True)
    return wide(
        only(joined, metric="roughness"),
        ["backbone", "setting", "method"],
        "kind",
        lambda cell: interval(cell) if cell["kind"].iat[0] == "live" else mean(cell),
        names={"backbone": "encoder"},
    )


@drawing
def draw_reduced(rows: pd.DataFrame, kind: str = "live") -> Drawing:
    """Score against size of every method: a row of panels per encoder, a column per setting.

    A grey line is the score at full size, with a band down to what costs 1 % of it, a dotted line
    stands at half the dims, and a dashed one at what the majority class gives, where that is near.
    """
    rows = rows[rows["metric"].isin(SCORES)]
    of_one_setting = ~rows["setting"].fillna("").str.contains(",")
    curve_rows = rows[rows["method"].isin(ORDER) & of_one_setting].dropna(subset="dim")
    encoders = list(dict.fromkeys(curve_rows["backbone"]))
    settings = list(dict.fromkeys(curve_rows["setting"]))
    for lacking in set(encoders) - set(encoders_of(rows)):
        raise NothingToDraw(f"{lacking!r} has no score at full size to compare with")
    place = {name: i for names in (ORDER, (*encoders, *settings)) for i, name in enumerate(names)}
    curve_rows = curve_rows.sort_values(
        ["backbone", "setting", "method"], key=lambda c: c.map(place), kind="stable"
    )
    ylabel = " and ".join(SCORES[metric] for metric in dict.fromkeys(curve_rows["metric"]))
    across: dict[str, Any] = {
        "color": "method",
        "panel": "setting",
        "row": "backbone",
        "order": ORDER,
        "share": "row",
    }
    figure = curves(curve_rows.assign(kind=kind), band="", ylabel=f"{ylabel} ({kind})", **across)
    floors = only(rows, method=MAJORITY)["value"]
    cells = list(product(encoders, settings))
    panels = list(zip(figure.axes, cells, strict=False))
    if figure.narrow:
        panels += zip(figure.narrow.axes, cells, strict=False)
    for axes, (encoder, _) in panels:
        full, score = full_size(rows, encoder)
        sizes = {int(dim) for line in axes.get_lines() for dim in np.asarray(line.get_xdata())}
        dim_axis(axes, [*sizes, full], room=WIDTH / len(settings) - 1.2, label=False)
        axes.axhspan(score * (1 - TOLERANCE / 100), score, color=GREY, alpha=0.25, linewidth=0)
        axes.axhline(score, color=GREY, linewidth=1.2)
        axes.axvline(full / 2, color=GREY, linestyle=":", linewidth=1.3)
        # Far below, it would flatten the curves
        if len(floors) and 100 * floors.mean() > axes.get_ylim()[0] - 3:
            axes.axhline(100 * floors.mean(), color=GREY, linestyle="--", linewidth=1.0)
        axes.get_lines()[0].set_markersize(7.5)  # Kernel PCA often lies on PCA, the first
    figure.alt += "; grey: full size and one per cent below it; dotted: half the dimensions"
    return figure
