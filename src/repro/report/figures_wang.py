"""Figures of Wang et al. (2023): the three stages of two-step training, and the grid of encoders and poolers."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.patheffects import withStroke

from repro.methods import STAGE_NAMES
from repro.report.compare import paper_values
from repro.report.curves import checked, kinds_of, points
from repro.report.style import (
    GREY,
    KIND_STYLE,
    WIDTH,
    Drawing,
    NothingToDraw,
    add_legend,
    dim_axis,
    drawing,
    look,
    new_figure,
    series_handles,
    thin,
)
from repro.rows import recorded_rows
from repro.types import InputError

NAMES = tuple(STAGE_NAMES.values())
Pair = tuple[int, int]


@drawing
def draw_two_step(frame: pd.DataFrame, *, stages: Sequence[str], names: Sequence[str] = NAMES) -> Drawing:
    """Table 1 as a figure: scores of the three stages by dim, and beside them what each step gained.

    One row of panels per kind of number; each has its own scale, since a small network and RoBERTa score apart.

    Args:
        frame: rows with kind, method, dim, value and metric; `spearman_gain` rows carry the paired intervals of the
            gains. Where a kind has none, gains are differences of the scores, without whiskers.
        stages: the three methods, in the order of training.
        names: what the legend calls them.

    Raises:
        InputError: if a column is missing.
    """
    frame = checked(frame, ("kind", "method", "dim", "value"))
    metric = frame["metric"].astype("string").fillna("") if "metric" in frame else pd.Series("", index=frame.index)
    is_score = frame["method"].isin(list(stages)) & metric.isin(["", "spearman", "accuracy"])
    if "readout" in frame:
        is_score &= frame["readout"].isna() | (frame["readout"] == "pooler")
    scores = points(frame[is_score], ["method", "dim"])
    is_gain = metric.str.endswith("_gain") & frame["method"].isin(list(stages))
    gains = points(frame[is_gain], ["method", "dim"]) if is_gain.any() else None
    kinds, dims = kinds_of(scores), sorted(set(scores["dim"]))
    figure, axes = new_figure(len(kinds), 2, height=0.9 + 2.5 * len(kinds), sharex="col")
    for row, kind in enumerate(kinds):
        left, right = axes[2 * row : 2 * row + 2]
        of_kind = scores[scores["kind"] == kind]
        _draw_scores(left, of_kind, kind, stages)
        left.set_title(f"{kind}: score × 100", loc="left")
        given = gains[gains["kind"] == kind] if gains is not None else None
        shown = _differences(of_kind, stages) if given is None or given.empty else given
        _draw_gains(right, shown, kind, stages, dims)
        right.set_title("gain, points", loc="left")
    for row in range(len(kinds)):
        lowest = row == len(kinds) - 1
        dim_axis(axes[2 * row], dims, room=WIDTH / 2 - 0.8, label=lowest)
        _category_axis(axes[2 * row + 1], dims, label=lowest)
    bars = [Patch(facecolor=look(i)["color"], alpha=0.85, label=f"gain of step {i}") for i in (1, 2)]
    add_legend(figure, [*series_handles(names), *bars], columns=3)
    figure.alt = f"scores and gains of two-step training by dimension; numbers: {', '.join(kinds)}"
    return figure


@drawing
def draw_grid(
    matrix: pd.DataFrame,
    *,
    oracle: Iterable[Pair] | None = None,
    chosen: Iterable[Pair] = (),
    label: str = "Spearman × 100",
) -> Drawing:
    """Score of every encoder (row) with every pooler (column), written into the cells (Figure 4).

    Args:
        matrix: fractions; index: dim of the encoder, columns: dim of the pooler.
        oracle: pairs (encoder, pooler) outlined as the best. Default: the best encoder of each pooler.
        chosen: pairs outlined as what a rule chose.
        label: what the score is.

    Raises:
        InputError: for an empty matrix.
    """
    if matrix.empty or matrix.isna().all(axis=None):
        raise NothingToDraw("the matrix of encoders and poolers is empty")
    values = matrix.to_numpy(dtype=float) * 100
    encoders, poolers = [int(d) for d in matrix.index], [int(d) for d in matrix.columns]
    if oracle is None:
        oracle = [(int(matrix[column].idxmax()), int(column)) for column in matrix if matrix[column].notna().any()]
    figure, (axes,) = new_figure(height=1.6 + 0.42 * len(encoders))
    image = axes.imshow(values, cmap="cividis", aspect="auto")
    size = min(11.5, 84 / len(poolers))
    shades = (values - np.nanmin(values)) / (np.ptp(values[np.isfinite(values)]) or 1.0)
    for (i, j), value in np.ndenumerate(values):
        # cividis runs from dark to light: white letters on its lower half, black on its upper half.
        shade = "white" if shades[i, j] < 0.55 else "black"
        axes.text(j, i, "" if np.isnan(value) else f"{value:.1f}", ha="center", va="center", color=shade, fontsize=size)
    _outline(axes, oracle, encoders, poolers, color=look(1)["color"], inset=0.04, style="-")
    _outline(axes, chosen, encoders, poolers, color="white", inset=0.13, style=(0, (3, 1.5)))
    axes.set_xticks(range(len(poolers)), [str(d) for d in poolers])
    axes.set_yticks(range(len(encoders)), [str(d) for d in encoders])
    axes.set_xlabel("pooler trained with dim")
    axes.set_ylabel("encoder trained with dim")
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    figure.colorbar(image, ax=axes, label=label, pad=0.02).outline.set_visible(False)
    handles = [Line2D([], [], color=look(1)["color"], linewidth=2.5, label="best encoder of a pooler")]
    if list(chosen):
        handles.append(Line2D([], [], color=GREY, linewidth=2, linestyle=(0, (3, 1.5)), label="chosen on dev (white)"))
    add_legend(figure, handles)
    figure.alt = f"{label} of {len(encoders)} encoders with {len(poolers)} poolers"
    return figure


@drawing
def draw_readme_figure() -> Drawing:
    """The README's figure: the three stages of Table 1 against dim, as printed and, where recorded, as measured."""
    printed = paper_values("wang2023", "table1")
    printed = printed[printed["metric"] == "spearman"].assign(kind="paper")
    stages = list(dict.fromkeys(printed["method"]))
    rows = recorded_rows("wang_table1")
    rows = rows[(rows["metric"] == "spearman") & (rows["readout"] == "pooler") & (rows["paper_table"] == "table1")]
    frames = [printed] if rows.empty else [printed, rows.assign(kind="recorded")]
    found = points(pd.concat(frames, ignore_index=True), ["method", "dim"])
    kinds = kinds_of(found)
    figure, axes = new_figure(1, len(kinds), height=3.9)
    for panel, kind in zip(axes, kinds, strict=True):
        of_kind = found[found["kind"] == kind]
        _draw_scores(panel, of_kind, kind, stages)
        dim_axis(panel, list(of_kind["dim"]), room=WIDTH / len(kinds) - 0.8)
        where = "RoBERTa-base" if kind == "paper" else "repro-tiny"
        panel.set_title(f"{kind} ({where})", loc="left")
    axes[0].set_ylabel("Spearman × 100, STS-B test")
    add_legend(figure, series_handles(NAMES))
    figure.alt = f"STS-B score of two-step training against embedding dimension; numbers: {', '.join(kinds)}"
    return figure


def _draw_scores(axes: Axes, of_kind: pd.DataFrame, kind: str, stages: Sequence[str]) -> None:
    for i, stage in enumerate(stages):
        part = of_kind[of_kind["method"] == stage].sort_values("dim")
        axes.plot(part["dim"], part["value"], **look(i), **KIND_STYLE[kind])
        if part["low"].notna().any():
            axes.fill_between(part["dim"], part["low"], part["high"], color=look(i)["color"], alpha=0.15, linewidth=0)


def _draw_gains(axes: Axes, gains: pd.DataFrame, kind: str, stages: Sequence[str], dims: Sequence[int]) -> None:
    """Two bars per dim, step 1 and step 2; printed ones are hollow, like the printed markers."""
    for i, stage in enumerate(stages[1:], start=1):
        part = gains[gains["method"] == stage].set_index("dim").reindex(dims)
        x = np.arange(len(dims)) + (i - 1.5) * 0.4
        color = look(i)["color"]
        face = "none" if kind == "paper" else color
        axes.bar(x, part["value"], width=0.36, facecolor=face, edgecolor=color, linewidth=1.3, alpha=0.85)
        reach = np.vstack([part["value"] - part["low"], part["high"] - part["value"]])
        if np.isfinite(reach).any():
            axes.errorbar(x, part["value"], yerr=np.abs(reach), fmt="none", ecolor=GREY, elinewidth=1.2, capsize=0)
    axes.axhline(0, color=GREY, linewidth=0.9)


def _differences(scores: pd.DataFrame, stages: Sequence[str]) -> pd.DataFrame:
    """Gains of each stage over the one before, from the scores alone."""
    wide = scores.pivot_table(index="dim", columns="method", values="value").reindex(columns=list(stages))
    gained = wide.diff(axis=1)[list(stages[1:])].stack().rename("value").reset_index()
    return gained.assign(low=float("nan"), high=float("nan"))


def _category_axis(axes: Axes, dims: Sequence[int], *, label: bool) -> None:
    written = thin([len(str(dim)) for dim in dims], WIDTH / 2 - 0.8)
    axes.set_xticks(written, [str(dims[i]) for i in written])
    axes.grid(visible=False, axis="x")
    if label:
        axes.set_xlabel("dimensions")


def _outline(
    axes: Axes,
    pairs: Iterable[Pair],
    encoders: Sequence[int],
    poolers: Sequence[int],
    *,
    color: str,
    inset: float,
    style: str | tuple[int, tuple[float, float]],
) -> None:
    for encoder, pooler in pairs:
        if encoder not in encoders or pooler not in poolers:
            raise InputError(
                f"the pair ({encoder}, {pooler}) is not in the grid: encoders {encoders}, poolers {poolers}"
            )
        corner = (poolers.index(pooler) - 0.5 + inset, encoders.index(encoder) - 0.5 + inset)
        side = 1 - 2 * inset
        frame = Rectangle(corner, side, side, fill=False, edgecolor=color, linewidth=2.2, linestyle=style)
        if color == "white":
            frame.set_path_effects([withStroke(linewidth=3.6, foreground="black")])
        axes.add_patch(frame)
