"""How figures look: readable on light and dark pages, at phone width, without telling anything by colour alone.

A series (dataset, method) is known by colour and marker, a kind of number (paper, recorded, live) by its line.
The background is transparent and the text one grey with contrast 4.5 on white and 4 on the book's dark page,
where the style sheet lifts it further.
"""

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from html import escape
from io import StringIO
from types import MappingProxyType
from typing import Any, ParamSpec

import matplotlib as mpl
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

from repro.report.compare import KINDS
from repro.report.tables import nothing
from repro.types import InputError

P = ParamSpec("P")

GREY = "#72777f"
PALETTE = ("#2b7bba", "#c8553d", "#1b8f6f", "#b5679a", "#b07d00", "#3f97cf")
"""Hues of Okabe and Ito, in tones with contrast of at least 3 on white and on the dark page."""
MARKERS = ("o", "s", "^", "D", "v", "P")
KIND_STYLE: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "paper": {"linestyle": (0, (4, 2)), "linewidth": 1.4, "markerfacecolor": "none"},
        "recorded": {"linestyle": "-", "linewidth": 1.2},
        "live": {"linestyle": "-", "linewidth": 2.6},
    }
)
"""Dashed with hollow markers: printed, not ours. Thin: recorded. Thick: computed with this copy of the book."""
WIDTH = 6.4
"""Inches. With 12-point text a figure shrunk to a phone's width still reads like a footnote."""
STYLE: Mapping[str, Any] = MappingProxyType(
    {
        "figure.facecolor": "none",
        "savefig.facecolor": "none",
        "savefig.edgecolor": "none",
        "axes.facecolor": "none",
        "axes.edgecolor": GREY,
        "axes.labelcolor": GREY,
        "axes.titlecolor": GREY,
        "axes.titlesize": 12,
        "axes.titleweight": "bold",
        "axes.labelsize": 12,
        "axes.grid": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.prop_cycle": cycler(color=PALETTE),
        "axes.unicode_minus": True,
        "grid.color": GREY,
        "grid.alpha": 0.25,
        "grid.linewidth": 0.6,
        "text.color": GREY,
        "xtick.color": GREY,
        "ytick.color": GREY,
        "xtick.labelsize": 11.5,
        "ytick.labelsize": 11.5,
        "font.family": "DejaVu Sans",
        "font.size": 12,
        "legend.frameon": False,
        "legend.fontsize": 11.5,
        "legend.handlelength": 2.4,
        "lines.markersize": 5,
        "lines.markeredgewidth": 1.3,
        # The same figure is the same file: ids from content, letters as outlines of matplotlib's own font.
        "svg.hashsalt": "repro",
        "svg.fonttype": "path",
    }
)


class Drawing(Figure):
    """A figure that shows itself in a notebook without pyplot, as a scalable image."""

    alt: str = ""
    """What the figure shows, in a sentence; written into the file as its title."""

    def svg(self) -> str:
        """The figure as SVG; equal figures give equal text."""
        text = StringIO()
        with styled():
            self._settle()
            # A date or a version in the file would make every build differ from the last.
            title = {"Title": self.alt} if self.alt else {}  # matplotlib takes no empty title
            self.savefig(text, format="svg", metadata={"Date": None, "Creator": None, **title})
        return text.getvalue()

    def img(self) -> str:
        """The figure as an HTML image that needs no file beside the page."""
        data = b64encode(self.svg().encode()).decode()
        return f'<img class="drawing" alt="{escape(self.alt)}" src="data:image/svg+xml;base64,{data}"/>'

    def _settle(self) -> None:
        """Lay the panels out once. Done at every drawing, the layout would move on a little each time."""
        if self.get_layout_engine() is not None:
            self.draw_without_rendering()
            self.set_layout_engine("none")

    def _repr_svg_(self) -> str | None:
        return self.svg()


class NothingToDraw(InputError):
    """Rows that hold no point of a figure; its message says what they lack."""


class Blank(Drawing):
    """The sentence that stands in place of a figure without a point."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self._said = nothing(reason)
        self.alt = self._said.markdown

    def _repr_svg_(self) -> None:
        return None

    def _repr_html_(self) -> str:
        return self._said.html

    def _repr_markdown_(self) -> str:
        return self._said.markdown


@contextmanager
def styled() -> Iterator[None]:
    """The book's look for a `with` block."""
    with mpl.rc_context(dict(STYLE)):
        yield


def drawing(draw: Callable[P, Drawing]) -> Callable[P, Drawing]:
    """Give a function that draws the book's look; where it finds nothing to draw, its figure says so."""

    @wraps(draw)
    def draw_or_say(*args: P.args, **options: P.kwargs) -> Drawing:
        try:
            with styled():
                return draw(*args, **options)
        except NothingToDraw as error:
            return Blank(str(error))

    return draw_or_say


def new_figure(rows: int = 1, columns: int = 1, *, height: float = 3.6, **subplots: Any) -> tuple[Drawing, list[Axes]]:
    """An empty figure of the book's width and its axes, row by row.

    Args:
        rows: rows of panels.
        columns: columns of panels.
        height: inches of the whole figure.
        subplots: passed to `Figure.subplots`.
    """
    figure = Drawing(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **subplots)
    return figure, list(axes.ravel())


def look(position: int) -> dict[str, Any]:
    """Colour and marker of the series at a position of its legend; both recur after six."""
    return {"color": PALETTE[position % len(PALETTE)], "marker": MARKERS[position % len(MARKERS)]}


def kind_handles(kinds: Sequence[str]) -> list[Line2D]:
    """Legend entries of the kinds of number, in their fixed order."""
    return [
        Line2D([], [], color=GREY, marker="o", label=kind, **KIND_STYLE[kind]) for kind in KINDS if kind in set(kinds)
    ]


def series_handles(names: Sequence[str], label: Callable[[str], str] = str) -> list[Line2D]:
    """Legend entries of the series, in the given order."""
    return [Line2D([], [], linestyle="-", label=label(name), **look(i)) for i, name in enumerate(names)]


def add_legend(figure: Figure, handles: Sequence[Any], *, columns: int = 3) -> None:
    """Put the legend below all panels, where it hides no data."""
    figure.legend(handles=list(handles), loc="outside lower center", ncols=min(columns, max(len(handles), 1)))


def dim_axis(axes: Axes, dims: Sequence[int], *, room: float, label: bool = True) -> None:
    """A log2 axis with a tick at every dim present, written as plain numbers; labels are thinned to the room.

    Args:
        axes: the panel.
        dims: the dims present.
        room: width of the panel in inches.
        label: whether to write "dimensions" below.
    """
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
    """Positions of the labels to write: every first, second, third … so that they fit, the last one always.

    Args:
        lengths: characters of each label.
        room: inches they share.
    """
    # 0.105 inches is a digit of 11.5-point DejaVu Sans; one digit's width keeps neighbours apart.
    fit = max(2, int(room / (0.105 * (max(lengths) + 1))))
    step = max(1, -(-len(lengths) // fit))
    return sorted(range(len(lengths) - 1, -1, -step))
