"""Figures: readable on light and dark pages, at phone width, without telling anything by colour
alone.

A series (dataset, method) is known by colour and marker, a kind of number (paper, recorded, live)
by its line. The background is transparent and the text one grey with contrast 4.5 on white and 4 on
the book's dark page, where the style sheet lifts it further.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from html import escape
from io import StringIO
from math import ceil
from typing import Any, ParamSpec

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

from repro import paths
from repro.report.tables import Shown, nothing
from repro.types import Array, InputError

P = ParamSpec("P")
STYLE = mpl.rc_params_from_file(paths.ASSETS / "book.mplstyle", use_default_template=False)
styled = partial(mpl.rc_context, STYLE)
"""The book's look for a `with` block, or for a function."""
GREY: str = STYLE["text.color"]
PALETTE: tuple[str, ...] = tuple(STYLE["axes.prop_cycle"].by_key()["color"])
MARKERS = ("o", "s", "^", "D", "v", "P")
KIND_STYLE: dict[str, dict[str, Any]] = {
    "paper": {"linestyle": (0, (4, 2)), "linewidth": 1.4, "markerfacecolor": "none"},
    "recorded": {"linestyle": "-", "linewidth": 2.2},
    "live": {"linestyle": "-", "linewidth": 1.0},
}
"""Lines of a kind of number: dashed with hollow markers what is printed, not ours; thick what is
recorded, and judges; thin what was computed with this copy.
"""
ALWAYS = {
    "PCA": 0,
    "SVD": 1,
    "KPCA": 2,
    "GRP": 3,
    "random": 3,
    "Autoencoder": 4,
    "Truncate": 5,
    "first columns": 5,
}
ALWAYS |= {"end to end": 1, "trained projection": 1, "after step 1": 4}
ALWAYS |= {"after step 2": 2, "two-step": 2, "two-step projection": 2}
"""Positions in the palette of what many pages draw, so that a method looks the same on all of them.
"""
WIDTH = 6.4
"""Inches: with 12-point text a figure shrunk to a phone's width still reads like a footnote."""
SMALLEST: float = STYLE["xtick.labelsize"]
"""Points: a figure's smallest letters, which have nine pixels where it is as wide as a phone."""
NARROW = "narrow"
"""Name of the view of a figure's file that has its panels two abreast."""
SLIDE = "slide"
"""Name of the view of a figure's file that has one panel."""
BESIDE = 2000
"""How far apart views lie in a file: the first lies right of all that the figure itself shows."""


class Drawing(Figure):
    """A figure that shows itself in a notebook without pyplot, as a scalable image."""

    alt: str = ""  # What the figure shows, in a sentence; written into the file as its title
    # What a reader should see in it; written into the file as its description, and its caption
    caption: str = ""
    # The sentence that stands in its place where there is nothing to draw
    blank: Shown | None = None
    # The same panels two abreast, where they are more; the book shows them on a phone
    narrow: "Drawing | None" = None
    # The panel that bears out the page's first sentence, where there are several; for slides
    slide: "Drawing | None" = None
    # The panels of a last row that is not full, and those of a full one; none where all are full
    last_row: Sequence[Axes] = ()
    full_row: Sequence[Axes] = ()

    def svg(self) -> str:
        """The figure as SVG; equal figures give equal text.

        It is drawn once; `savefig` would do so twice.
        """
        text = StringIO()
        with styled():
            # Laid out once: done at every drawing, the layout would move on a little each time.
            if (engine := self.get_layout_engine()) is not None:
                engine.execute(self)
                self.set_layout_engine("none")
                self._centre_last_row()
            self.patch.set(facecolor="none", edgecolor="none")
            # A date or a version in the file would make every build differ from the last.
            metadata: dict[str, str | None] = {"Date": None, "Creator": None}
            if self.alt:  # An empty title is not taken
                metadata["Title"] = self.alt
            if self.caption:
                metadata["Description"] = self.caption
            FigureCanvasSVG(self).print_svg(text, metadata=metadata)
        drawn = text.getvalue()
        for place, (name, view) in enumerate(((NARROW, self.narrow), (SLIDE, self.slide)), 1):
            drawn = with_view(drawn, view.svg(), name, place * BESIDE) if view else drawn
        return drawn

    def _centre_last_row(self) -> None:
        """Move the panels of a short last row to the middle of the row above, once all have their
        size.
        """
        if not self.last_row:
            return
        full, short = (_middle(row) for row in (self.full_row, self.last_row))
        for axis in self.last_row:
            place = axis.get_position()
            axis.set_position(place.translated(full - short, 0.0).bounds)

    def sees(self, caption: str) -> "Drawing":
        """This figure with a caption that says what to see in it."""
        self.caption = caption
        return self

    def on_slides(self, panel: "Drawing") -> "Drawing":
        """This figure with the one panel that slides show in its place."""
        self.slide = panel
        return self

    def img(self) -> str:
        """The figure as an HTML image that needs no file beside the page."""
        data = b64encode(self.svg().encode()).decode()
        return (
            f'<img class="drawing" alt="{escape(self.alt)}" '
            f'src="data:image/svg+xml;base64,{data}"/>'
        )

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return self.blank._repr_mimebundle_() if self.blank else {"image/svg+xml": self.svg()}


def _middle(row: Sequence[Axes]) -> float:
    """Half way between the left edge of a row's first panel and the right edge of its last."""
    return float(row[0].get_position().x0 + row[-1].get_position().x1) / 2


def with_view(svg: str, other: str, name: str, left: int) -> str:
    """A figure's file that also holds another drawing, out of sight: the view of that name shows
    it.
    """
    width, height = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', other)[0]
    # Groups are named by their place in a drawing: the second would take the names of the first.
    shapes = re.sub(r'<g id="([\w.]+_\d+)"', rf'<g id="{name}-\1"', other[other.index("<defs>") :])
    box = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    view = f'<view id="{name}" viewBox="{left} 0 {width} {height}"/>'
    end = svg.rindex("</svg>")
    return f'{svg[:end]} <svg id="of-{name}" x="{left}" {box}>\n{shapes} {view}\n{svg[end:]}'


class NothingToDraw(InputError):
    """Rows that hold no point of a figure; its message says what they lack."""


def drawing(draw: Callable[P, Drawing]) -> Callable[P, Drawing]:
    """Give a function that draws the book's look; where it finds nothing to draw, its figure says
    so.
    """

    @wraps(draw)
    def draw_or_say(*args: P.args, **options: P.kwargs) -> Drawing:
        try:
            with styled():
                return draw(*args, **options)
        except NothingToDraw as error:
            figure = Drawing()
            figure.blank = nothing(str(error))
            figure.alt = figure.blank.markdown
            return figure

    return draw_or_say


def new_figure(
    rows: int = 1,
    columns: int = 1,
    *,
    height: float = 3.6,
    panels: int | None = None,
    **subplots: Any,
) -> tuple[Drawing, list[Axes]]:
    """An empty figure of the book's width and so many inches of height, and its axes, row by
    row.

    Fewer `panels` than the grid has places leave its last row short: it stands in the middle.
    """
    figure = Drawing(figsize=(WIDTH, height), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False, **subplots).ravel())
    if panels is None or panels == len(axes):
        return figure, axes
    for spare in axes[panels:]:
        spare.set_visible(False)
    shown = axes[:panels]
    # No panel stands straight below one of the last two rows that would have its numbers
    for axis in shown[max(0, columns * (rows - 2)) :]:
        axis.tick_params(labelbottom=True)
    figure.last_row, figure.full_row = axes[columns * (rows - 1) : panels], axes[:columns]
    return figure, shown


def look(position: int) -> dict[str, Any]:
    """Colour and marker of the series at a position of its legend; after six the colours recur with
    other markers.
    """
    return {"color": PALETTE[position % 6], "marker": MARKERS[(position + position // 6) % 6]}


def looks(names: Sequence[Any]) -> dict[Any, dict[str, Any]]:
    """The look of each series: its own where all pages share it, else the first that none of the
    others has.
    """
    taken = {ALWAYS.get(name) for name in names}
    places = range(len(PALETTE) + len(names))
    free = iter(sorted(places, key=lambda place: place % len(PALETTE) in taken))
    return {name: look(ALWAYS[name] if name in ALWAYS else next(free)) for name in names}


def series_handles(names: Sequence[str], label: Callable[[str], str] = str) -> list[Line2D]:
    """Legend entries of the series, in the given order."""
    return [
        Line2D([], [], linestyle="-", label=label(name), **style)
        for name, style in looks(names).items()
    ]


def add_legend(figure: Figure, handles: Sequence[Any], *, columns: int = 3) -> None:
    """Put the legend below all panels, in as many columns as fit; lines beyond the first add to the
    figure's height.
    """
    longest = max((len(str(handle.get_label())) for handle in handles), default=1)
    # Inches of a line's mark, and of a letter
    room = int(figure.get_figwidth() / (0.55 + 0.085 * longest))
    columns = max(1, min(columns, room, len(handles)))
    figure.set_figheight(figure.get_figheight() + 0.22 * max(0, ceil(len(handles) / columns) - 1))
    figure.legend(handles=list(handles), loc="outside lower center", ncols=columns)


def dim_axis(axes: Axes, dims: Sequence[int], *, room: float, label: bool = True) -> None:
    """A log2 axis with a tick at every dim present, written as plain numbers; labels are thinned to
    its inches.
    """
    dims = sorted({int(dim) for dim in dims})
    if not dims:  # A panel without a curve, such as a setting in which nothing could be fitted
        return
    margin = 1.3
    places = np.log(dims) - np.log(dims[0])
    inches = room * places / (places[-1] + 2 * np.log(margin))
    written = thin([str(dim) for dim in dims], inches)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator([dims[i] for i in written]))
    axes.set_xticklabels([str(dims[i]) for i in written])
    axes.xaxis.set_minor_locator(FixedLocator(dims) if len(written) < len(dims) else NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(visible=False, axis="x", which="minor")
    axes.set_xlim(dims[0] / margin, dims[-1] * margin)
    if label:
        axes.set_xlabel("dimensions")


def thin(labels: Sequence[str], inches: Array) -> list[int]:
    """Positions of the labels that can be written side by side, from left to right: the last
    always, and to its left each that clears the one written before it.

    Args:
        labels: the texts, each centred under its tick.
        inches: where the ticks lie along the axis, ascending.
    """
    digit = 0.105  # Inches, of 11.5-point DejaVu Sans
    last = len(labels) - 1
    written = [last]
    for i in range(last - 1, -1, -1):
        right = written[-1]
        halves = (len(labels[i]) + len(labels[right])) / 2
        # One digit's width keeps neighbours apart.
        if inches[right] - inches[i] >= digit * (halves + 1):
            written.append(i)
    return written[::-1]


PRINTED: Mapping[str, Any] = {
    "color": GREY,
    "marker": "D",
    "markerfacecolor": "none",
    "linestyle": "none",
    "markersize": 8,
}
"""How a printed number looks among dots of ours."""
