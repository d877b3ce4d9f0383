"""Methods that stand on the pages of Wang et al., against what one would compute by hand, on
encoders of a second.
"""

from dataclasses import replace
from itertools import combinations, product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from repro.config import profile
from repro.methods import STEP_1, STEP_2
from repro.models import SentenceEncoder
from repro.papers.wang import claims
from repro.papers.wang.sweeps import check_reducible, rows_of
from repro.papers.wang.tables import draw_leads, draw_mean_gains
from repro.results import recorded_rows
from repro.runs.lines import Task
from repro.runs.scorers import cosines_of, spearman_of
from repro.runs.sweep import pair_scores, step_two
from repro.training.two_step import splice
from repro.types import InputError, unit_rows
from shown_code import on_page

DIMS = (32, 8, 4)


@pytest.fixture(scope="module")
def page_of(store, step_two_config):
    page = SimpleNamespace(store=store, seed=0, shared={"experiment": "e", "profile": "embedded"})
    chosen = SimpleNamespace(step_two=step_two_config)
    return lambda name: SimpleNamespace(**on_page(f"wang_{name}", page=page, chosen=chosen))


def test_the_smallest_dim_that_keeps_the_best_score(page_of):
    scores = pd.DataFrame(
        {"dim": [768, 512, 256, 16] * 2, "value": [0.81, 0.80, 0.79, 0.2, 0.83, 0.82, 0.823, 0.9]}
    )
    smallest = page_of("figure2_dimensions").smallest_sufficient
    assert (smallest(scores, margin=0.015), smallest(scores, margin=0)) == (256, 768)


def test_a_network_that_is_judged_by_similarity_alone_has_no_floor_and_no_column(page_of):
    columns = ["network", "dataset", "dim", "metric", "value"]
    scores = [
        ("mini", "trec", 8, "accuracy", 0.5),
        ("mini", "trec", 16, "accuracy", 0.7),
        ("tiny", "stsb", 8, "spearman", 0.4),
    ]
    drawn = pd.DataFrame(scores, columns=columns)
    rows = pd.DataFrame([*scores, ("mini", "trec", pd.NA, "majority_floor", 0.2)], columns=columns)
    above = page_of("figure2_dimensions").above_floor(drawn, rows)
    assert above.columns.tolist() == ["dataset", "mini"] and above["mini"].tolist() == [
        pytest.approx(50)
    ]


def test_pairs_that_chose_may_be_left_out_of_those_that_judge(page_of, sets):
    pairs = sets["test"]
    chose = pairs.keep([3, 7])
    turned = replace(chose, texts1=chose.texts2, texts2=chose.texts1)
    left = page_of("table1_two_step_simcse").without(Task("stsb", {"test": pairs}), turned).pairs
    assert (
        left.texts1 == tuple(np.delete(pairs.texts1, [3, 7])) and len(left.scores) == len(pairs) - 2
    )


def test_a_dim_to_switch_is_trained_where_it_is_no_candidate_and_128_only_where_it_is(page_of):
    with_switched = page_of("table2_two_step_sbert").with_switched
    assert with_switched([8, 4], [9, 4]) == ([8, 4, 9], [9, 4])
    assert with_switched([8, 4], []) == ([8, 4], [])
    assert with_switched([8, 4]) == ([8, 4], [])
    assert with_switched([128, 8]) == ([128, 8], [128])


@pytest.mark.parametrize(
    ("dims", "fit_sentences", "n_neighbors", "message"),
    [
        ([8], [50, 500], 50, "n_neighbors is 50: expected 1 to 49"),
        ([8], [50], 0, "n_neighbors is 0"),
        ([8], [0, 50], 5, "a number of fit_sentences is 0"),
        ([64, 33], [50], 5, r"dims are \[64, 33\]: expected one up to 32"),
    ],
)
def test_what_no_reducer_takes_is_refused_before_anything_is_trained(
    dims, fit_sentences, n_neighbors, message
):
    check_reducible(32, [64, 32], [50], 49)
    with pytest.raises(InputError, match=message):
        check_reducible(32, dims, fit_sentences, n_neighbors)


def test_a_reference_that_is_no_dim_is_refused_before_anything_is_trained(page_of):
    plan = page_of("figure3_loss_decomposition").plan_networks
    with pytest.raises(InputError, match="reference is 'worst': expected a dim, or best"):
        plan(profile("embedded"), ["repro-tiny"], [8], reference="worst")


# Figure 3


def test_losses_are_subtractions_of_the_tasks_own_scores_and_sum_to_the_total(
    page_of,
    sweep,
    tasks,
    sets,
):
    rows, pairs = (
        page_of("figure3_loss_decomposition").decomposition_rows(sweep, tasks),
        sets["test"],
    )
    value = rows.set_index(["metric", "readout", "dim"]).sort_index()["value"]
    for d in DIMS:
        h, z, full = (
            value["spearman", "encoder", d],
            value["spearman", "pooler", d],
            value["spearman", "encoder", 32],
        )
        for score, table in ((h, sweep.embeddings(d)), (z, sweep.embeddings(d, d))):
            assert score == pytest.approx(
                spearmanr(cosines_of(table, pairs), pairs.scores).statistic,
                abs=1e-12,
            )
        parts = [
            value[f"{part}_loss"].xs(d, level="dim").item()
            for part in ("encoder", "pooler", "total")
        ]
        assert parts == pytest.approx([full - h, h - z, full - z], abs=1e-12)


def test_the_reference_may_be_the_best_or_any_dim_and_is_trained(page_of, sweep, tasks):
    page = page_of("figure3_loss_decomposition")
    rows_from = page.decomposition_rows
    best = rows_from(sweep, tasks, "best")
    assert (best[best["metric"] == "encoder_loss"]["value"] >= 0).all()
    assert best["setting"].str.endswith("(best)").all()
    assert set(rows_from(sweep, tasks, 4)["setting"]) == {"test, reference=4"}
    planned = page.plan_networks(profile("embedded"), ["repro-tiny"], [8], reference=16)
    assert [sorted(dims) for _, dims in planned.values()] == [[8, 16]]


# Figure 4


@pytest.fixture(scope="module")
def grid(page_of, sweep, tasks):
    rows = page_of("figure4_encoder_pooler_grid").grid_rows(sweep, tasks, "test")
    return rows.set_index(["metric", "readout", "method", "dim"]).sort_index()


def test_every_pair_is_what_a_spliced_model_scores_when_it_encodes_anew(sweep, grid, sets):
    pairs = sets["test"]
    for i, j in product(DIMS, DIMS):
        model = splice(SentenceEncoder.load(str(sweep.cells[i].folder)), sweep.cells[j].pooler)
        a, b = (
            unit_rows(model.encode(texts).astype(np.float64))
            for texts in (pairs.texts1, pairs.texts2)
        )
        found = grid["value"]["spearman", "pooler", f"encoder_{i}", j]
        # Rounding may exchange two ranks
        assert found == pytest.approx(spearmanr((a * b).sum(1), pairs.scores).statistic, abs=1e-4)
        assert found == pytest.approx(pair_scores(sweep, pairs)[i, j], abs=1e-12)


def test_gains_are_differences_to_the_encoder_that_is_replaced(grid):
    score, gains = grid["value"]["spearman", "pooler"], grid.loc["spearman_gain", "pooler"]
    assert len(gains) == len(DIMS) * (len(DIMS) - 1)
    for (method, j), row in gains.iterrows():
        assert row["value"] == pytest.approx(score[method, j] - score[f"encoder_{j}", j])
        assert row["ci_low"] <= row["value"] <= row["ci_high"]
    alone = grid["value"]["spearman", "encoder"]
    for (method, i), row in grid.loc["spearman_gain", "encoder"].iterrows():
        assert row["value"] == pytest.approx(alone[method, i] - alone["encoder_32", 32])


# Beside the tables


def test_candidate_means_are_those_of_every_set_trained_by_itself(
    page_of,
    sweep,
    sets,
    store,
    step_two_config,
):
    rows = rows_of(sweep, page_of("ablations").candidate_rows(sweep, sets["dev"], sets["test"]))
    value = rows.set_index(["setting", "metric", "method", "dim"])["value"]
    alone = {d: spearman_of(sweep.embeddings(d), sets["dev"]) for d in DIMS}
    for size in range(len(DIMS) + 1):
        for d in DIMS:
            trained = [{*chosen, d} for chosen in combinations(DIMS, size)]
            opts = [max(those, key=lambda i: (alone[i], i)) for those in trained]
            expected = np.mean(
                [spearman_of(sweep.embeddings(opt, d), sets["test"]) for opt in opts]
            )
            here = value[f"candidates={size}"]
            assert here["spearman", STEP_1, d] == pytest.approx(expected, abs=1e-12)
            assert here["trainings"].xs(d, level="dim").item() == pytest.approx(
                np.mean([len(s) for s in trained])
            )
    # No candidate but the target itself: nothing is exchanged, and step 2 runs on its own encoder
    own = value["candidates=0", "spearman"]
    for d in DIMS:
        assert own[STEP_1, d] == spearman_of(sweep.embeddings(d, d), sets["test"])
        new = step_two(sweep, d, sorted(DIMS), sets["dev"], step_two_config, store).new_poolers[d]
        assert own[STEP_2, d] == spearman_of(sweep.states[d].map(new.project), sets["test"])


def test_spaces_agree_by_the_cosines_of_their_principal_angles(page_of, sweep):
    page, pooler = page_of("ablations"), sweep.cells[4].pooler
    X = np.random.default_rng(0).normal(size=(200, 6)) * np.sqrt([6, 5, 4, 3, 2, 1])
    components, variances = page.principal_components(X)
    assert variances == pytest.approx(np.sort(np.linalg.eigvalsh(np.cov(X.T, bias=True)))[::-1])
    assert page.overlap(components[:, :2], components[:, :2]) == pytest.approx(1)
    assert page.overlap(components[:, :2], components[:, 2:4]) == pytest.approx(0, abs=1e-12)
    assert (
        np.linalg.matrix_rank(
            np.hstack([page.row_space(pooler), pooler.linear.weight.detach().numpy().T])
        )
        == 4
    )


# First figures


def ends_of(axes):
    return {tuple(path[:, 0]) for lines in axes.collections for path in lines.get_segments()}


def test_the_first_figure_of_table_2_has_the_intervals_that_judge():
    rows = recorded_rows("wang_table2").query("backbone == 'all-MiniLM-L6-v2'")
    figure = draw_mean_gains("wang_table2", rows)
    for step, axes in enumerate(figure.axes, start=1):
        judged = [m for m in claims.table2(rows) if m.what == f"mean gain of step {step}"]
        assert {(m.low, m.high) for m in judged} <= ends_of(axes) and len(ends_of(axes)) == 2
        (printed,) = [line for line in axes.get_lines() if line.get_markerfacecolor() == "none"]
        assert list(printed.get_xdata()) == [m.paper for m in judged]


def test_the_first_figure_of_table_3_shows_the_lead_over_the_best_reducer():
    rows = recorded_rows("wang_table3").query("backbone == 'all-MiniLM-L6-v2' and dim == 32")
    figure = draw_leads(rows)
    (judged,) = [m for m in claims.table3(rows) if m.claim_id == "WANG-S53-1"]
    assert ends_of(figure.axes[0]) == {(judged.low, judged.high)}
