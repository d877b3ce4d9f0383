"""Depth by size as heat maps, a panel per line: what stands in for the interactive chart where scripts do not run."""

from math import ceil

import numpy as np
import pandas as pd

from repro.report.curves import points
from repro.report.figures_ese import METHODS
from repro.report.style import WIDTH, Drawing, drawing, new_figure, thin
from repro.types import InputError


@drawing
def draw_depth_grids(frame: pd.DataFrame, *, kind: str = "live", label: str = "Spearman × 100") -> Drawing:
    """Score of every layer (row) and size (column), a panel per line, all on one scale of colours.

    Args:
        frame: rows with method, layer, dim and value (a fraction); of one backbone, metric, dataset and kind.
        kind: which kind of number it is.
        label: what the score is.

    Raises:
        InputError: if a line is unknown.
    """
    found = points(frame.assign(kind=kind), ["method", "layer", "dim"])
    unknown = sorted(set(found["method"]) - set(METHODS))
    if unknown:
        raise InputError(f"no place for the line {unknown[0]!r}: choose from {', '.join(METHODS)}")
    names = [method for method in METHODS if method in set(found["method"])]
    dims = sorted(set(found["dim"]))
    layers = sorted({int(layer) for layer in found["layer"]}, reverse=True)  # the deepest on top
    columns = min(2, len(names))
    rows = ceil(len(names) / columns)
    figure, axes = new_figure(rows, columns, height=1.2 + rows * (0.7 + 0.34 * len(layers)))
    low, high = float(found["value"].min()), float(found["value"].max())
    for panel, name in zip(axes, names, strict=False):
        grid = found[found["method"] == name].pivot_table(index="layer", columns="dim", values="value")
        values = grid.reindex(index=layers, columns=dims).to_numpy(float)
        image = panel.imshow(values, cmap="cividis", aspect="auto", vmin=low, vmax=high)
        size = min(10.0, 66 / len(dims))
        for (i, j), value in np.ndenumerate(values):
            # cividis runs from dark to light: white letters on its lower half, black on its upper half
            shade = "white" if value < (low + high) / 2 else "black"
            panel.text(
                j, i, "" if np.isnan(value) else f"{value:.0f}", ha="center", va="center", color=shade, fontsize=size
            )
        written = thin([len(str(dim)) for dim in dims], WIDTH / columns - 0.9)
        panel.set_xticks(written, [str(dims[j]) for j in written])
        panel.set_yticks(range(len(layers)), [str(layer) for layer in layers])
        panel.set_title(name, loc="left")
        panel.grid(visible=False)
        panel.spines[:].set_visible(False)
        panel.tick_params(length=0)
    for spare in axes[len(names) :]:
        spare.set_visible(False)
    figure.supylabel("layer", fontsize=12)
    figure.supxlabel("dimensions", fontsize=12)
    figure.colorbar(image, ax=axes, label=f"{label} ({kind})", pad=0.02).outline.set_visible(False)
    figure.alt = f"{label} of {', '.join(names)} by layer and size, a heat map each; numbers: {kind}"
    return figure
