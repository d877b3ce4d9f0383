"""Tables and figures of what was found."""

from typing import Any

import numpy as np
import pandas as pd

from dimadvise.coding import MENU
from dimadvise.findings import Findings, family_of, interval_words, with_bytes
from dimadvise.screening import is_front
from repro.report.figures import (
    GREY,
    WIDTH,
    Drawing,
    add_legend,
    dim_axis,
    looks,
    new_figure,
    series_handles,
    styled,
)

# Of recall@10: of the front, the first to reach each surely is shown
STEPS = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999)
DOTTED: dict[str, Any] = {
    "color": GREY,
    "linestyle": ":",
    "linewidth": 1.2,
}  # A line at what is asked for


def option_table(options: pd.DataFrame) -> pd.DataFrame:
    """Options for a reader, fewest bytes first."""
    rows = options.sort_values(["bytes", "recall@10"], ascending=[True, False], kind="stable")
    table = pd.DataFrame(
        {
            "bytes": [f"{n:,}" for n in rows["bytes"]],
            "recall@10": [interval_words(row) for _, row in rows.iterrows()],
            "stored": [f"{row.method} {row.dim} × {row.level}" for row in rows.itertuples()],
            "re-ranked": [f"first {10 * n}" if n else "–" for n in rows["rerank"]],
            "ms": ["–" if np.isnan(ms) else f"{ms:.2g}" for ms in rows["ms"]],
        }
    )
    return table.assign(
        bytes=table["bytes"].where(~rows["answer"].to_numpy(), "▶ " + table["bytes"])
    )


def worth_a_choice(options: pd.DataFrame) -> pd.DataFrame:
    """Of the front, the fewest bytes whose interval lies above each of `STEPS`, re-ranked or not;
    and the answer.
    """
    chosen = set(options.index[options["answer"]])
    for _, of_depth in options[options["front"]].groupby("rerank"):
        passing = (of_depth[of_depth["low@10"] >= step] for step in STEPS)
        chosen |= {rows["bytes"].idxmin() for rows in passing if len(rows)}
    return options.loc[sorted(chosen)]


def share_table(shares: pd.DataFrame) -> pd.DataFrame:
    """Shares of the score for a reader, largest sizes first."""
    rows = shares.sort_values(["dim", "method"], ascending=[False, True], kind="stable")
    percentages = [
        ["–" if np.isnan(x) else f"{100 * x:.1f} %" for x in rows[name]]
        for name in ("share", "low")
    ]
    return pd.DataFrame(
        {
            "dims": rows["dim"].astype(str),
            "method": rows["method"],
            "level": rows["level"],
            "score kept": percentages[0],
            "lower bound": percentages[1],
        }
    )


@styled()
def draw_options(findings: Findings) -> Drawing:
    """Recall@10 against bytes a vector: of each level the best method at each size; without
    re-ranking, and with.
    """
    options, chosen = findings.options, findings.answer
    depths = sorted(set(options["rerank"]))
    with_full = int(chosen["rerank"]) if chosen is not None and chosen["rerank"] else depths[-1]
    shown = sorted({depths[0], with_full})
    tried = {family_of(level) for level in options["level"]}
    families = [family for family in (*MENU[:-1], "product codes") if family in tried]
    figure, axes = new_figure(1, len(shown), height=4.0, sharey=True)
    for panel, depth in zip(axes, shown, strict=True):
        of_depth = options[options["rerank"] == depth]
        for family, style in looks(families).items():
            of_family = of_depth[of_depth["level"].map(family_of) == family]
            most = of_family.groupby("bytes")["recall@10"].idxmax()
            best = of_family.loc[most].sort_values("bytes")
            band = best["low@10"], best["high@10"]
            _draw_line(panel, best["bytes"], best["recall@10"], band, style)
        if chosen is not None and chosen["rerank"] == depth:
            ring: dict[str, Any] = {"markersize": 15, "markerfacecolor": "none", "color": GREY}
            panel.plot([chosen["bytes"]], [chosen["recall@10"]], "o", **ring)
        criterion, amount = findings.target
        if criterion != "retain":
            across = panel.axhline if criterion == "recall" else panel.axvline
            across(amount, **DOTTED)
        panel.set_title(
            f"first {10 * depth} re-ranked" if depth else "without re-ranking",
            loc="left",
        )
        _bytes_axis(panel, options["bytes"], room=WIDTH / len(shown) - 0.7)
    axes[0].set_ylabel("recall@10")
    add_legend(figure, series_handles(families))
    figure.alt = f"recall@10 against bytes per vector for {', '.join(families)}"
    return figure


def _bytes_axis(panel: Any, sizes: Any, *, room: float) -> None:
    """An axis of bytes with ticks at powers of two, labels thinned to its inches."""
    low, high = np.log2(sizes.min()), np.log2(sizes.max())
    powers = [2**power for power in range(int(np.floor(low)), int(np.ceil(high)) + 1)]
    dim_axis(panel, powers, room=room, label=False)
    panel.set_xlabel("bytes per vector")


def _draw_line(panel: Any, x: Any, y: Any, band: tuple[Any, Any], style: Any) -> None:
    """A line, and the band (low, high) about it in its colour."""
    panel.fill_between(x, *band, alpha=0.2, linewidth=0, color=style["color"])
    panel.plot(x, y, **style)


@styled()
def draw_shares(shares: pd.DataFrame, target: float | None) -> Drawing:
    """Share of the score kept against bytes, with lower bounds, of those ways that no other beats
    at one size or more.
    """
    shares = with_bytes(shares).assign(way=shares["method"] + " × " + shares["level"])
    front = is_front(shares["bytes"].to_numpy(), shares["low"].to_numpy())
    names = list(dict.fromkeys(shares.loc[front, "way"]))
    figure, (panel,) = new_figure(height=3.4)
    for name, style in looks(names).items():
        line = shares[shares["way"] == name].sort_values("bytes")
        band = 100 * line["low"], 100 * line["share"]
        _draw_line(panel, line["bytes"], 100 * line["share"], band, style)
    if target is not None:
        panel.axhline(100 * target, **DOTTED)
    panel.set_ylim(bottom=max(panel.get_ylim()[0], 0))  # A share below nothing is as bad as nothing
    panel.set_ylabel("score kept, %")
    _bytes_axis(panel, shares["bytes"], room=WIDTH - 0.9)
    add_legend(figure, series_handles(names))
    figure.alt = f"share of the score kept against bytes for {', '.join(names)}"
    return figure
