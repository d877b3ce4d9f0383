"""Curves and the look of figures: what is in the frame is in the picture, kinds can be told
apart.
"""

import re
from itertools import pairwise, product
from xml.etree.ElementTree import fromstring

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.text import Text

from repro.report import figures
from repro.report.curves import curves, points
from repro.report.whiskers import whiskers

PHONE = 374  # Pixels that a figure has on a screen of 390


def frame(
    kinds=("paper", "recorded", "live"),
    datasets=("stsb", "trec"),
    dims=(8, 64, 768),
    seeds=1,
):
    places = pd.DataFrame(
        product(kinds, datasets, dims, range(seeds)),
        columns=["kind", "dataset", "dim", "seed"],
    )
    value = 0.5 + 0.03 * np.log2(places["dim"]) + 0.01 * places["seed"]
    return places.assign(method="m", value=value, ci_low=np.nan, ci_high=np.nan)


def by_dataset():
    return curves(frame(), color="dataset", panel="dataset")


def lines_of(axes):
    return [line for line in axes.get_lines() if len(line.get_xdata()) > 2]


def test_curves_show_one_panel_per_dataset_and_kinds_that_differ_by_line_and_fill():
    figure = by_dataset()
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["STS-B", "TREC"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "paper",
        "recorded",
        "live",
    ]
    assert [len(lines_of(axes)) for axes in figure.axes] == [3, 3]
    paper, recorded, live = lines_of(figure.axes[0])
    assert paper.is_dashed() and paper.get_markerfacecolor() == "none"
    assert (
        not recorded.is_dashed()
        and not live.is_dashed()
        and recorded.get_linewidth() > 2 * live.get_linewidth()
    )


def test_a_band_is_a_95_percent_interval_of_one_seed_and_of_several():
    found = points(frame(("recorded",), ("stsb",), (8,), seeds=3), ["dataset", "dim"])
    values = 100 * np.array([0.59, 0.60, 0.61])
    half = 4.3027 * values.std(ddof=1) / 3**0.5
    expected = [values.mean(), values.mean() - half, 3]
    assert found[["value", "low", "n"]].iloc[0].tolist() == pytest.approx(expected, abs=1e-3)
    two = points(frame(("recorded",), ("stsb",), (8,), seeds=2), ["dataset", "dim"])
    assert two["low"].isna().all(), "two seeds have no interval"
    same = frame(("recorded",), ("stsb",), (8,), seeds=3).assign(value=0.6, ci_low=0.5, ci_high=0.7)
    assert points(same, ["dim"])[["low", "high"]].iloc[0].tolist() == pytest.approx([50, 70])


def test_the_legend_says_what_a_band_is_where_there_is_one():
    def said(**options):
        figure = curves(shown, color="method", **options)
        return [text.get_text() for text in figure.legends[0].get_texts()]

    shown = frame(("live",), ("stsb",))
    assert said() == ["live"]
    shown = shown.assign(ci_low=0.1, ci_high=0.9)
    assert said() == ["live", "band: 95 % interval"]
    assert said(band="band: all draws") == ["live", "band: all draws"]
    assert said(band="") == ["live"]


def test_the_same_frame_is_the_same_file_and_its_title_says_what_it_shows():
    once, again = by_dataset(), by_dataset()
    drawn = once.svg()
    assert drawn == once.svg() == again.svg()
    assert "<dc:date>" not in drawn and f"<dc:title>{once.alt}</dc:title>" in drawn
    assert "STS-B, TREC" in once.alt and "paper, recorded, live" in once.alt
    seen = once.sees("Fewer < more.")
    assert seen is once and "<dc:description>Fewer &lt; more.</dc:description>" in seen.svg()


def test_many_panels_have_a_narrow_view_with_two_abreast_and_scales_shared_by_row():
    rows = [frame(("recorded",), ("stsb", "trec", "sickr")).assign(backbone=b) for b in "ab"]
    rows[1]["value"] += 0.2
    figure = curves(pd.concat(rows), color="method", panel="dataset", row="backbone", share="row")
    titles = [axes.get_title(loc="left") for axes in figure.narrow.axes]
    assert titles == ["a: STS-B", "a: TREC", "a: SICK-R", "b: STS-B", "b: TREC", "b: SICK-R"]
    lefts = {round(axes.get_subplotspec().colspan.start) for axes in figure.narrow.axes}
    assert lefts == {0, 1}
    limits = [axes.get_ylim() for axes in figure.narrow.axes]
    assert limits[0] == limits[1] == limits[2] != limits[3] == limits[4] == limits[5]
    drawn = figure.svg()
    names = re.findall(r'<g id="([^"]+)"', drawn)
    assert len(names) == len(set(names)) and drawn == figure.svg()
    assert drawn.count('<view id="narrow"') == 1 and fromstring(drawn).tag.endswith("svg")
    assert by_dataset().narrow is None, "two panels stand abreast on a phone as well"


def test_no_letter_of_a_figure_is_smaller_than_nine_pixels_at_a_phones_width():
    rows = pd.concat([frame().assign(backbone=b) for b in "abc"]).assign(low=0.1, high=0.2)
    drawn = [
        curves(rows, color="method", panel="dataset", row="backbone"),
        whiskers(rows, line="method", panel="dataset", color="backbone", xlabel="gain"),
    ]
    for figure in drawn:
        size = min(text.get_fontsize() for text in figure.findobj(Text) if text.get_text())
        assert size >= figures.SMALLEST and size * PHONE / (72 * figures.WIDTH) >= 9


@pytest.mark.parametrize(
    ("panels", "dims", "written"),
    [
        (1, (8, 16, 32, 64, 128, 138), [8, 16, 32, 64, 138]),
        (3, (8, 16, 32, 64, 128, 138), [8, 16, 32, 64, 138]),
        (3, (2, 3, 4, 5, 8, 300, 384, 768), [2, 4, 8, 768]),
        (1, (5,), [5]),
    ],
)
def test_sizes_that_are_near_on_their_axis_are_not_written_over_one_another(panels, dims, written):
    shown = frame(("live",), ("stsb", "trec", "sickr")[:panels], dims)
    figure = curves(shown, color="method", panel="dataset")
    figure.svg()
    for axes in filter(Axes.get_visible, figure.axes):
        labels = axes.get_xticklabels()
        assert [int(label.get_text()) for label in labels] == written
        boxes = [label.get_window_extent() for label in labels]
        assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
        ticks = {*axes.get_xticks(), *axes.get_xticks(minor=True)}
        assert ticks == set(dims), "every size has a tick"


def test_text_can_be_read_on_white_and_on_dark():
    def contrast(*colours):
        parts = np.array([to_rgb(colour) for colour in colours])
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        dark, bright = sorted(linear @ [0.2126, 0.7152, 0.0722] + 0.05)
        return bright / dark

    assert contrast(figures.GREY, "#ffffff") >= 4.5 and contrast(figures.GREY, "#121212") >= 4.0
    assert min(contrast(*pair) for pair in product(figures.PALETTE, ("#ffffff", "#121212"))) >= 3


# Dots on their intervals


def gains():
    nan = float("nan")
    rows = [
        ("paper", "RoBERTa", "step 1", "stsb", 2.0, nan, nan),
        ("recorded", "MiniLM", "step 1", "stsb", -1.0, -2.0, 0.5),
        ("recorded", "MiniLM", "step 1", "Avg.", -0.4, -0.7, -0.1),
        ("recorded", "MiniLM", "step 2", "stsb", 0.9, -0.2, 1.9),
    ]
    columns = ["kind", "network", "step", "dataset", "value", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def test_whiskers_end_where_intervals_do_and_what_is_printed_is_hollow():
    figure = whiskers(gains(), line="network", panel="step", color="dataset", xlabel="gain, points")
    first, second = figure.axes
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["step 1", "step 2"]
    assert [text.get_text() for text in first.get_yticklabels()] == ["RoBERTa", "MiniLM"]
    drawn = [path for lines in first.collections for path in lines.get_segments()]
    ends = {tuple(path[:, 0]) for path in drawn}
    assert ends == {(-2.0, 0.5), (-0.7, -0.1)}
    (upper, lower) = (path[0, 1] for path in drawn)
    assert 0.5 < upper < 1 < lower < 1.5, "sets of one network have heights of their own near it"
    hollow = [line for line in first.get_lines() if line.get_markerfacecolor() == "none"]
    assert [list(line.get_xdata()) for line in hollow] == [[2.0]]
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["STS-B", "Avg.", "paper"]
    assert "recorded" in figure.alt and "MiniLM" in figure.alt
    assert [path[0, 0] for lines in second.collections for path in lines.get_segments()] == [-0.2]


def test_whiskers_of_no_number_say_so():
    empty = whiskers(gains().assign(value=np.nan), line="network", xlabel="gain")
    assert "no row has a value" in empty.alt


@pytest.mark.parametrize("count", [3, 5, 7])
@pytest.mark.parametrize("draw", ["curves", "whiskers"])
def test_a_last_row_that_is_not_full_stands_in_the_middle_and_no_panel_loses_its_numbers(
    draw,
    count,
):
    shown = frame(("recorded",), [f"set {i}" for i in range(count)])
    shown = shown.assign(name=[f"a method with a long name, {dim}" for dim in shown["dim"]])
    if draw == "curves":
        figure, abreast = curves(shown, color="method", panel="dataset"), 2 if count < 5 else 3
    else:
        ends = shown.assign(low=shown["value"] - 0.1, high=shown["value"] + 0.1)
        figure = whiskers(ends, line="name", panel="dataset", xlabel="points", share=True)
        abreast = 2
    drawn = figure.svg().count('<g id="axes_')
    panels = [axes for axes in figure.axes if axes.get_visible()]
    places = [axes.get_position() for axes in panels]
    assert drawn == len(panels) == count
    assert np.ptp([place.width for place in places]) < 1e-6
    last = places[abreast * ((count - 1) // abreast) :]
    assert 0 < len(last) < abreast
    left, right = last[0].x0 - places[0].x0, places[abreast - 1].x1 - last[-1].x1
    assert left == pytest.approx(right) and left > 0.05
    without_one_below = panels[max(0, count - len(last) - abreast) :]
    assert all(axes.xaxis.get_tick_params()["labelbottom"] for axes in without_one_below)
