"""The figures draw what they are given, a line or panel for each, and say so where there is nothing."""

import numpy as np
import pandas as pd
import pytest
from tests.papers.proposal.test_claims import DIMS, FULL, falling, measured
from tests.papers.proposal.test_claims import made as sizes
from tests.papers.proposal.test_tables import MADE, WORLDS, augmented, coded, free_limits, rivals, worlds

from repro.methods import UNTRAINED
from repro.papers.proposal import figures, figures_baselines, figures_scores
from repro.papers.proposal.quantisation_tables import SCORES
from repro.rows import make_rows


def ends(panel):
    return [len(line.get_xdata()) for line in panel.get_lines()]


def test_a_wide_range_is_logarithmic_and_a_negative_limit_is_left_out():
    rows = []
    for setting, dim in ((s, d) for s in ("τ = 0.05, B = 64", "τ = 0.5, B = 64") for d in DIMS):
        loss = 10.0 / dim**2 if "0.05" in setting else 3.0 - dim / 100
        at = {"setting": setting, "dim": dim}
        rows += [{**at, "method": m, "value": v} for m, v in (("expected", loss), ("endless batch", loss - 0.1))]
        rows.append({**at, "method": "Monte Carlo", "value": loss, "ci_low": loss / 2, "ci_high": loss * 2})
    first, second = figures.draw_info_nce(make_rows(rows, metric="info_nce")).axes
    assert first.get_yscale() == "log" and second.get_yscale() == "linear"
    dotted = [line for line in first.get_lines() if line.get_color() == "#b5679a"]
    assert dotted and all((np.asarray(line.get_ydata()) > 0).all() for line in dotted)


def test_theory_stands_beside_what_is_measured():
    rows = measured(alignment=falling, uniformity=falling, uniformity_limit=lambda i: -i - 1).assign(kind="live")
    first, second = figures.draw_geometry(rows).axes
    assert ends(first) == [6, 0, 0] and ends(second) == [6, 6, 0]


def projected():
    values = {"cosine_rms": 0.2, "cosine_rms_expected": 0.2, "spearman": 0.7, "distortion_worst": 1.0}
    values |= {f"distortion_{q}": v for q, v in zip(("min", "low", "median", "high", "max"), range(5), strict=True)}
    rows = [{"method": "full size", "dim": 64, "metric": "spearman", "value": 0.8}]
    for dim, draw in ((dim, draw) for dim in (8, 32, 128) for draw in range(2)):
        rows += [{"method": "GRP", "dim": dim, "metric": m, "value": v, "seed": draw} for m, v in values.items()]
    return make_rows(rows, backbone="b", experiment="x")


def test_bands_bounds_and_errors_of_projections():
    theory = pd.DataFrame({"backbone": "b", "dim": [8, 128], "low": 0.4, "high": 1.6, "eps": [np.nan, 0.9]})
    (axes,) = figures.draw_distortion(projected(), theory).axes
    assert len(axes.collections) == 2 and len(axes.get_lines()) == 5
    errors, scores = figures.draw_cosine_error(projected()).axes
    assert errors.get_ylim()[0] == pytest.approx(0.2 / 8, rel=0.05) and errors.get_yscale() == "log"
    assert list(scores.get_lines()[0].get_ydata()) == pytest.approx([70.0] * 3)


def test_limits_of_free_vectors_and_of_encoders():
    shares, margins = figures.draw_free_limits(free_limits()).axes
    assert ends(shares) == [4] * 4
    assert [text.get_text() for text in margins.texts] == ["4 dims", "8 dims"], "three dims have one margin only"
    rows = [
        {"method": "m", "dim": d, "metric": k, "value": 0.5} for d in (4, 16) for k in ("sets_realised", "recall@2")
    ]
    figure = figures_scores.draw_encoder_limits(make_rows(rows, experiment="x"), 0.2)
    assert [list(line.get_ydata()) for line in figure.axes[1].get_lines()] == [[50, 50], [20, 20]]


def test_worlds_and_the_known_line():
    known = figures.draw_intrinsic(worlds()).axes[0].get_lines()[1]
    assert list(known.get_ydata()) == [4.0 * f for f in WORLDS]
    kept = figures_scores.draw_share_kept(worlds(), 0.95)
    assert len(kept.axes) == 1 and len(kept.axes[0].get_lines()) == len(WORLDS) + 1


def test_a_panel_per_task_and_a_line_per_method_in_one_order():
    rows = sizes()
    shuffled = rows.sort_values(["dataset", "method"], ignore_index=True)
    for frame in (rows, shuffled):
        figure = figures_scores.draw_train_or_reduce(frame)
        assert [a.get_title(loc="left") for a in figure.axes] == ["stsb, Spearman", "hotpotqa, nDCG@10"]
        said = [text.get_text() for text in figure.legends[0].get_texts()]
        assert said[:4] == ["trained projection", "two-step projection", "PCA", "GRP"]
        assert said[-1] == f"full size ({FULL})"
        assert [line.get_ydata()[0] for line in figure.axes[0].get_lines()][-1] == pytest.approx(80.1)


def test_sizes_promised_and_named(made_curves):
    rows = made_curves()
    figure = figures_scores.draw_retention(rows, "a", "pca", 0.9)
    assert [axes.get_title(loc="left") for axes in figure.axes[:3]] == ["t0", "t1", "t2"]
    assert ends(figure.axes[0]) == [4, 4, 4, 4, 2]
    answers = figures_scores.draw_answers(rows, ["spectrum", "half of D", "calibrated"], "pca", 0.9)
    _, first, _ = answers.axes[0].get_lines()
    assert list(first.get_xdata()) == list(first.get_ydata()), "the right rule lies on the diagonal"
    assert answers.axes[3].get_visible() is False
    assert "no answers under grp" in figures_scores.draw_answers(rows, ["spectrum"], "grp", 0.9).alt


def test_rivals_have_their_names_and_both_forms():
    memory, cost = figures_baselines.draw_baselines(rivals(), kind="recorded").axes
    assert memory.get_title(loc="left") == "recorded: mean Spearman × 100 of stsb, sickr"
    spots = [tuple(line.get_xdata()) for line in memory.get_lines() if line.get_linestyle() == "None"]
    assert (0.1, 40.0) in spots and (0.2,) in spots, "sparse and dense"
    for panel in (memory, cost):
        assert {text.get_text() for text in panel.texts} == set(MADE) and panel.get_xscale() == "log"


def test_names_are_moved_apart_in_their_order():
    assert figures_baselines.moved_apart([1.0, 5.0, 9.0], 2.0).tolist() == [1.0, 5.0, 9.0], "far enough as they are"
    heights = [3.0, 0.0, 3.1, 3.2, 9.0]
    moved = figures_baselines.moved_apart(heights, 1.0)
    assert np.diff(np.sort(moved)).min() >= 1.0 - 1e-9
    assert np.argsort(moved).tolist() == np.argsort(heights).tolist()
    assert moved[[0, 2, 3]].mean() == pytest.approx(3.1) and moved[1] == 0.0


def test_every_augmentation_and_every_level_is_drawn():
    rows = augmented((0, 1))
    spread = rows[rows["metric"] == "alignment"].assign(metric="uniformity", value=-2.0)
    plane, scores = figures_scores.draw_augmentations(pd.concat([rows, spread], ignore_index=True)).axes
    assert len(plane.lines) == len(scores.lines) == 5 and UNTRAINED in scores.figure.alt
    extra = [{"method": m, "value": v} for m, v in (("binary, queries too", 0.3), ("binary, then float", 0.9))]
    bits = make_rows(extra, setting="PCA, 16 bytes", dim=128, metric="neighbours_kept", backbone="b")
    figure = figures_scores.draw_bytes(pd.concat([coded(), bits], ignore_index=True))
    assert [axes.get_title(loc="left") for axes in figure.axes] == [*SCORES.values(), "neighbours by bits"]
    assert [float(line.get_ydata()[0]) for line in figure.axes[0].lines[:3]] == pytest.approx([50, 70, 60])
    assert len(figure.axes[2].lines) == 3 and len(figure.axes[3].lines) == 3


@pytest.mark.parametrize(
    "draw", [figures.draw_info_nce, figures.draw_geometry, figures.draw_cosine_error, figures_scores.draw_bytes]
)
def test_nothing_to_draw_is_said(draw):
    assert "Nothing to show" in draw(make_rows([])).alt
