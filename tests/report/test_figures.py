"""Figures: what is in the frame is in the picture, kinds can be told apart, and the same frame is the same file."""

import importlib.util
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from docutils import nodes
from docutils.utils import new_document

from repro import paths
from repro.papers.recorded import write_readme_figure
from repro.report import figures, style
from repro.report.compare import paper_values
from repro.report.points import points
from repro.types import InputError

STAGES = ("end", "one", "two")


def frame(kinds=("paper", "recorded", "live"), datasets=("stsb", "trec"), dims=(8, 64, 768), seeds=1, method="m"):
    rows = [
        {
            "kind": kind,
            "method": method,
            "dataset": name,
            "dim": dim,
            "metric": "spearman",
            "seed": seed,
            "value": 0.5 + 0.03 * np.log2(dim) + 0.01 * seed,
            "ci_low": np.nan,
            "ci_high": np.nan,
        }
        for kind in kinds
        for name in datasets
        for dim in dims
        for seed in range(seeds)
    ]
    return pd.DataFrame(rows)


def stages(kinds=("paper", "live"), gains=True):
    parts = []
    for i, stage in enumerate(STAGES):
        scores = frame(kinds, ("stsb",), method=stage)
        scores["value"] += 0.02 * i
        parts.append(scores)
        if gains and i:
            parts.append(scores.assign(metric="spearman_gain", value=0.02, ci_low=0.01, ci_high=0.04))
    return pd.concat(parts, ignore_index=True)


def legend_of(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def lines_of(axes):
    return [line for line in axes.get_lines() if len(line.get_xdata()) > 2]


def test_curves_show_one_panel_per_dataset_and_every_kind():
    figure = figures.draw_curves_by_dim(frame(), ylabel="Spearman × 100")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["STS-B", "TREC"]
    assert legend_of(figure) == ["paper", "recorded", "live"]
    for axes in figure.axes:
        assert len(lines_of(axes)) == 3


def test_kinds_differ_by_line_and_fill_not_only_by_colour():
    paper, recorded, live = lines_of(figures.draw_curves_by_dim(frame(datasets=("stsb",))).axes[0])
    assert paper.is_dashed() and paper.get_markerfacecolor() == "none"
    assert not recorded.is_dashed() and not live.is_dashed()
    assert live.get_linewidth() > 2 * recorded.get_linewidth()


def test_series_of_one_panel_differ_by_colour_and_marker():
    both = pd.concat([frame(("live",), ("stsb",), method=name) for name in ("a", "b")])
    figure = figures.draw_curves_by_dim(both, series="method")
    first, second = lines_of(figure.axes[0])
    assert first.get_color() != second.get_color() and first.get_marker() != second.get_marker()
    assert legend_of(figure) == ["live", "a", "b"]


def test_scores_are_drawn_times_hundred():
    (line,) = lines_of(figures.draw_curves_by_dim(frame(("live",), ("stsb",))).axes[0])
    np.testing.assert_allclose(line.get_ydata(), 100 * (0.5 + 0.03 * np.log2([8, 64, 768])))


def test_seeds_are_averaged_with_a_band_of_one_standard_deviation():
    found = points(frame(("recorded",), ("stsb",), (8,), seeds=3), ["dataset", "dim"])
    values = 100 * np.array([0.59, 0.60, 0.61])
    assert found["value"].item() == pytest.approx(values.mean())
    assert found["low"].item() == pytest.approx(values.mean() - values.std(ddof=1))
    assert found["n"].item() == 3


def test_a_single_seed_keeps_its_own_interval():
    one = frame(("live",), ("stsb",), (8,)).assign(ci_low=0.4, ci_high=0.8)
    found = points(one, ["dataset", "dim"])
    assert (found["low"].item(), found["high"].item()) == pytest.approx((40, 80))


def test_rows_without_a_dim_are_left_out():
    untrained = frame(("live",), ("stsb",), (8,)).assign(dim=pd.NA)
    found = points(pd.concat([frame(("live",), ("stsb",)), untrained]), ["dataset", "dim"])
    assert list(found["dim"]) == [8, 64, 768]


def test_optimal_dims_are_marked_per_kind():
    figure = figures.draw_curves_by_dim(
        frame(), optimal={("paper", "stsb"): 256, ("live", "stsb"): 64, ("live", "trec"): 8}
    )
    feet = [
        [line.get_xdata()[0] for line in axes.get_lines() if (line.get_marker(), len(line.get_xdata())) == ("^", 1)]
        for axes in figure.axes
    ]
    assert feet == [[256, 64], [8]]
    assert "smallest sufficient dim" in legend_of(figure)
    with pytest.raises(InputError, match="mrpc"):
        figures.draw_curves_by_dim(frame(), optimal={"mrpc": 8})


def test_an_odd_number_of_panels_labels_every_column():
    figure = figures.draw_curves_by_dim(frame(datasets=("stsb", "trec", "cr")))
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [bool(axes.get_xlabel()) for axes in shown] == [False, True, True]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: figures.draw_curves_by_dim(frame().drop(columns="dim")),
        lambda: figures.draw_curves_by_dim(frame(kinds=("guess",))),
        lambda: figures.draw_loss_curve([1, 2], [3.0]),
        lambda: figures.draw_neighbour_overlap([4, 8], {"pca": [0.5]}),
    ],
)
def test_rows_of_another_form_are_an_input_error(draw):
    with pytest.raises(InputError):
        draw()


@pytest.mark.parametrize(
    "draw",
    [
        lambda: figures.draw_curves_by_dim(frame().iloc[:0]),
        lambda: figures.draw_curves_by_dim(frame().assign(value=np.nan)),
        lambda: figures.draw_two_step(frame().iloc[:0], stages=STAGES),
        lambda: figures.draw_two_step(frame(), stages=STAGES),
        lambda: figures.draw_grid(pd.DataFrame()),
        lambda: figures.draw_loss_curve([], []),
        lambda: figures.draw_neighbour_overlap([], []),
    ],
)
def test_where_nothing_is_to_be_drawn_the_page_says_so(draw):
    assert draw()._repr_markdown_().startswith("Nothing to show under these parameters")


def test_two_step_has_a_row_per_kind_and_names_stages_and_steps():
    figure = figures.draw_two_step(stages(), stages=STAGES)
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "paper: score × 100",
        "gain, points",
        "live: score × 100",
        "gain, points",
    ]
    assert legend_of(figure) == ["end to end", "after step 1", "after step 2", "gain of step 1", "gain of step 2"]


@pytest.mark.parametrize("given", [True, False])
def test_gains_are_those_given_or_else_the_differences(given):
    right = figures.draw_two_step(stages(("live",), gains=given), stages=STAGES).axes[1]
    assert [bar.get_height() for bar in right.patches] == pytest.approx([2.0] * 6)
    assert bool(right.collections) is given  # whiskers only where an interval is known


def test_two_step_reads_the_printed_table():
    printed = paper_values("wang2023", "table1").assign(kind="paper")
    figure = figures.draw_two_step(printed, stages=list(dict.fromkeys(printed["method"])))
    assert len(figure.axes[0].get_lines()) == 3
    assert max(bar.get_height() for bar in figure.axes[1].patches) == pytest.approx(8.55)


def test_bars_stand_above_their_dim_when_a_kind_has_fewer_dims():
    few = stages(("live",))
    figure = figures.draw_two_step(pd.concat([stages(("paper",)), few[few["dim"] != 8]]), stages=STAGES)
    bars = [bar for bar in figure.axes[3].patches if np.isfinite(bar.get_height())]
    assert {round(bar.get_x() + bar.get_width() / 2) for bar in bars} == {1, 2}


def test_grid_writes_every_score_and_outlines_the_best():
    matrix = pd.DataFrame([[0.5, 0.6], [0.7, 0.55]], index=[8, 64], columns=[8, 64])
    axes = figures.draw_grid(matrix, chosen=[(8, 8)]).axes[0]
    assert [text.get_text() for text in axes.texts] == ["50.0", "60.0", "70.0", "55.0"]
    assert len(axes.patches) == 3  # the best encoder of each of two poolers, and the chosen pair
    with pytest.raises(InputError, match="not in the grid"):
        figures.draw_grid(matrix, chosen=[(16, 8)])


def test_loss_curve_shows_floor_and_dev():
    figure = figures.draw_loss_curve([0, 1, 2], [9.0, 6.0, 5.0], unigram=6.6, dev=([0, 2], [0.3, 0.5]))
    assert legend_of(figure) == ["training loss", "word frequencies alone", "dev score"]


def test_neighbour_overlap_compares_ways_of_shortening():
    figure = figures.draw_neighbour_overlap([64, 8], {"pca": [0.9, 0.4], "first dims": [0.8, 0.3]}, k=10)
    assert legend_of(figure) == ["pca", "first dims"]
    assert list(figure.axes[0].get_lines()[0].get_ydata()) == [40, 90]


def test_the_same_frame_is_the_same_file():
    once, again = (figures.draw_curves_by_dim(frame()) for _ in range(2))
    assert once.svg() == once.svg() == again.svg()
    assert once.png() == again.png()
    assert "<dc:date>" not in once.svg()


def test_figures_speak_for_themselves():
    figure = figures.draw_curves_by_dim(frame())
    assert "STS-B, TREC" in figure.alt and "paper, recorded, live" in figure.alt
    assert f"<dc:title>{figure.alt}</dc:title>" in figure.svg()
    assert figure.img().startswith('<img class="drawing" alt="')


def test_drawing_leaves_the_callers_style_alone():
    import matplotlib as mpl

    before = mpl.rcParams["font.size"], mpl.rcParams["axes.facecolor"]
    figures.draw_curves_by_dim(frame()).svg()
    assert (mpl.rcParams["font.size"], mpl.rcParams["axes.facecolor"]) == before


def test_text_can_be_read_on_white_and_on_dark():
    def contrast(one, other):
        bright = []
        for colour in (one, other):
            parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
            linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
            bright.append(linear @ [0.2126, 0.7152, 0.0722] + 0.05)
        return max(bright) / min(bright)

    assert contrast(style.GREY, "#ffffff") >= 4.5
    assert contrast(style.GREY, "#121212") >= 4.0
    for colour in style.PALETTE:
        assert min(contrast(colour, "#ffffff"), contrast(colour, "#121212")) >= 3


def test_labels_of_an_axis_are_thinned_until_they_fit():
    lengths = [len(str(2**i)) for i in range(2, 12)]
    assert style.thin(lengths, 6.0) == list(range(10))
    few = style.thin(lengths, 2.3)
    assert few[-1] == 9 and len(few) < 6


def test_the_readmes_figure_can_be_drawn_again(tmp_path):
    again = write_readme_figure(tmp_path / "figure.svg").read_text(encoding="utf-8")
    committed = (paths.project_root() / "book" / "_static" / "readme_figure.svg").read_text(encoding="utf-8")
    for text in (again, committed):
        assert "<dc:title>STS-B score of two-step training against embedding dimension" in text
    assert legend_of(figures.draw_readme_figure()) == ["end to end", "after step 1", "after step 2"]


def test_the_book_describes_an_image_by_its_title(tmp_path):
    source = paths.project_root() / "book" / "_ext" / "alt_text.py"
    spec = importlib.util.spec_from_file_location("alt_text", source)
    extension = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(extension)
    figure = figures.draw_curves_by_dim(frame())
    (tmp_path / "drawn.svg").write_text(figure.svg(), encoding="utf-8")
    page = new_document("page")
    page += [nodes.image(uri="drawn.svg"), nodes.image(uri="drawn.svg", alt="mine"), nodes.image(uri="absent.svg")]
    extension.describe(SimpleNamespace(srcdir=tmp_path), page)
    assert [image.get("alt") for image in page.findall(nodes.image)] == [figure.alt, "mine", None]
