"""How figures look: readable on light and dark pages, at phone width, without telling anything by colour alone.

A series (dataset, method) is known by colour and marker, a kind of number (paper, recorded, live) by its line.
The background is transparent and the text one grey with contrast 4.5 on white and 4 on the book's dark page,
where the style sheet lifts it further.
"""

from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from html import escape
from io import StringIO
from typing import Any, ParamSpec

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

from repro import paths
from repro.report.tables import Shown, nothing
from repro.types import InputError

P = ParamSpec("P")

STYLE = mpl.rc_params_from_file(paths.ASSETS / "book.mplstyle", use_default_template=False)
GREY: str = STYLE["text.color"]
PALETTE: tuple[str, ...] = tuple(STYLE["axes.prop_cycle"].by_key()["color"])
MARKERS = ("o", "s", "^", "D", "v", "P")
KIND_STYLE: dict[str, dict[str, Any]] = {
    "paper": {"linestyle": (0, (4, 2)), "linewidth": 1.4, "markerfacecolor": "none"},
    "recorded": {"linestyle": "-", "linewidth": 1.2},
    "live": {"linestyle": "-", "linewidth": 2.6},
}
"""Dashed with hollow markers: printed, not ours. Thin: recorded. Thick: computed with this copy of the book."""
WIDTH = 6.4
"""Inches. With 12-point text a figure shrunk to a phone's width still reads like a footnote."""


class Drawing(Figure):
    """A figure that shows itself in a notebook without pyplot, as a scalable image."""

    alt: str = ""
    """What the figure shows, in a sentence; written into the file as its title."""
    blank: Shown | None = None
    """The sentence that stands in its place where there is nothing to draw."""

    def svg(self) -> str:
        """The figure as SVG; equal figures give equal text."""
        text = StringIO()
        with styled():
            # Laid out once: done at every drawing, the layout would move on a little each time.
            if self.get_layout_engine() is not None:
                self.draw_without_rendering()
                self.set_layout_engine("none")
            # A date or a version in the file would make every build differ from the last.
            title = {"Title": self.alt} if self.alt else {}  # matplotlib takes no empty title
            self.savefig(text, format="svg", metadata={"Date": None, "Creator": None, **title})
        return text.getvalue()

    def img(self) -> str:
        """The figure as an HTML image that needs no file beside the page."""
        data = b64encode(self.svg().encode()).decode()
        return f'<img class="drawing" alt="{escape(self.alt)}" src="data:image/svg+xml;base64,{data}"/>'

    def _repr_svg_(self) -> str | None:
        return None if self.blank else self.svg()

    def _repr_html_(self) -> str | None:
        return self.blank.html if self.blank else None

    def _repr_markdown_(self) -> str | None:
        return self.blank.markdown if self.blank else None


class NothingToDraw(InputError):
    """Rows that hold no point of a figure; its message says what they lack."""


@contextmanager
def styled() -> Iterator[None]:
    """The book's look for a `with` block."""
    with mpl.rc_context(STYLE):
        yield


def drawing(draw: Callable[P, Drawing]) -> Callable[P, Drawing]:
    """Give a function that draws the book's look; where it finds nothing to draw, its figure says so."""

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


def new_figure(rows: int = 1, columns: int = 1, *, height: float = 3.6, **subplots: Any) -> tuple[Drawing, list[Axes]]:
    """An empty figure of the book's width and so many inches of height, and its axes, row by row."""
    figure = Drawing(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **subplots)
    return figure, list(axes.ravel())


def look(position: int) -> dict[str, Any]:
    """Colour and marker of the series at a position of its legend; both recur after six."""
    return {"color": PALETTE[position % len(PALETTE)], "marker": MARKERS[position % len(MARKERS)]}


def series_handles(names: Sequence[str], label: Callable[[str], str] = str) -> list[Line2D]:
    """Legend entries of the series, in the given order."""
    return [Line2D([], [], linestyle="-", label=label(name), **look(i)) for i, name in enumerate(names)]


def add_legend(figure: Figure, handles: Sequence[Any], *, columns: int = 3) -> None:
    """Put the legend below all panels, where it hides no data."""
    figure.legend(handles=list(handles), loc="outside lower center", ncols=min(columns, max(len(handles), 1)))


def dim_axis(axes: Axes, dims: Sequence[int], *, room: float, label: bool = True) -> None:
    """A log2 axis with a tick at every dim present, written as plain numbers; labels are thinned to its inches."""
    dims = sorted({int(dim) for dim in dims})
    if not dims:  # a panel without a curve, such as a setting in which nothing could be fitted
        return
    written = thin([len(str(dim)) for dim in dims], room)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator([dims[i] for i in written]))
    axes.set_xticklabels([str(dims[i]) for i in written])
    axes.xaxis.set_minor_locator(FixedLocator(dims) if len(written) < len(dims) else NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(visible=False, axis="x", which="minor")
    axes.set_xlim(dims[0] / 1.3, dims[-1] * 1.3)
    if label:
        axes.set_xlabel("dimensions")


def thin(lengths: Sequence[int], room: float) -> list[int]:
    """Positions of labels of so many characters that fit in inches: every first, second, third …, the last always."""
    # 0.105 inches is a digit of 11.5-point DejaVu Sans; one digit's width keeps neighbours apart.
    fit = max(2, int(room / (0.105 * (max(lengths) + 1))))
    step = max(1, -(-len(lengths) // fit))
    return sorted(range(len(lengths) - 1, -1, -step))
