"""SBERT-LP's pages on a small scale: who is fitted on what, what is chosen where, and counts that a
loop confirms.
"""

from dataclasses import replace
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist

from repro import data
from repro.evaluation.clusters import cluster_scores
from repro.evaluation.retention import procrustes_statistic, residual_variance
from repro.evaluation.stats import Resampled
from repro.evaluation.sts import sts_spearman
from repro.methods import AVERAGE
from repro.papers.sbertlp import at_hand, claims, mapping, tables, terms
from repro.papers.sbertlp.at_hand import FOREIGN_ROWS, kept, load_tasks, sentences
from repro.papers.sbertlp.mapping import map_texts, over_own_system
from repro.reducers import SBERTLP
from repro.rows import make_rows, parsed
from repro.runs.engine import score_rows
from repro.runs.lines import Line, Task, TextTable, sets_of
from repro.runs.scorers import similarity
from repro.types import InputError
from rivals import SystemConfig, load_system
from shown_code import on_page

NEIGHBORS, DIMS = [5, 10], [2, 4, 8]
SHARED = {
    "experiment": "e",
    "paper_table": "t",
    "profile": "embedded",
    "data_source": "microworld",
    "seed": 0,
}


@pytest.fixture(scope="module")
def tasks():
    return load_tasks(["sts12", "stsb", "sickr", "nli", "cr", "sst2"], "microworld", rows=60)


def system_of(texts):
    """A system whose embedding of a text is a random combination of its words."""
    words = sorted({word for text in texts for word in text.lower().split()})
    vectors = dict(zip(words, np.random.default_rng(0).normal(size=(len(words), 12)), strict=True))
    distinct = list(dict.fromkeys(texts))
    X = np.array([sum(vectors[w] for w in text.lower().split()) for text in distinct], np.float32)
    return Line(
        "SBERTbase",
        12,
        TextTable({text: i for i, text in enumerate(distinct)}, X),
        backbone="toy",
    )


@pytest.fixture(scope="module")
def system(tasks):
    return system_of([text for part in sets_of(tasks) for text in data.texts_of(part)])


def on_its_page(name, system, place, **given):
    """What a page's function places, as lines of its table, and the choices taken."""
    page = on_page(name, place, **given)
    return mapping.with_mappings({"toy": system}, ["toy"], page[place])


def test_rows_are_kept_and_counted(tasks):
    two = {name: tasks[name] for name in ("sts12", "cr")}
    assert at_hand.describe(two) == "sts12 60 of 400, cr 60 of 600; drawn at random"
    assert [kept("embedded", "stsb", split, None) for split in ("test", "dev")] == [500, 250]
    assert kept("embedded", "stsb", "test", 0) is None
    assert kept("paper", "nli", "train", 0) == FOREIGN_ROWS, "a mapping cannot take them all"


def test_mapping_depends_on_fitted_sentences_only(tasks, system):
    judged, fit = (sentences(tasks["stsb"][split]) for split in ("test", "train"))
    both = map_texts(system.table, fit, judged, NEIGHBORS, 4)
    half = map_texts(system.table, fit, judged[: len(judged) // 2], NEIGHBORS, 4)
    for k in NEIGHBORS:
        np.testing.assert_allclose(
            both[k].table[judged[:10]],
            half[k].table[judged[:10]],
            atol=1e-6,
        )
    assert map_texts(system.table, judged, judged, [5], 4)[5].fitted == len(judged)


def test_in_n_minus_one_dims_all_sentences_are_equally_far_apart(tasks, system):
    judged = sentences(tasks["sts12"]["test"])[:30]
    Y = map_texts(system.table, judged, judged, [5], 29)[5].table[judged]
    np.testing.assert_allclose(pdist(Y), np.sqrt(2 * 30), rtol=1e-3)
    grid = pd.DataFrame({"n_neighbors": [5, 5, 50], "dim": [4, 20, 4], "value": [0.1, 0.9, 0.8]})
    reached = list(map_texts(system.table, judged, judged, [3, 50], 4))
    assert (mapping.best(grid, 40), reached) == (mapping.Choice(5, 4), [3]), (
        "neighbours beyond reach are left out"
    )
    for out_of_reach in (
        lambda: mapping.best(grid, 4),
        lambda: map_texts(system.table, judged[:4], judged, [4], 2),
    ):
        with pytest.raises(
            InputError, match=r"neighbors is \[[\d, ]+\]: 4 distinct sentences allow at most 3"
        ):
            out_of_reach()


def test_the_own_vote_is_told_of_sets_of_two_classes_alone():
    told = on_page("sbertlp_table2_knn", "told_of_two")["told_of_two"]
    said = told(np.array([80.0, 90.0]), np.array([81.0, 92.0]), np.array([70.0, 80.0]))
    assert "by 1.5 points on average" in said and "is worth 11.5 points" in said
    none = np.array([])
    assert told(none, none, none).startswith("no set here has two classes")


def test_dims_of_which_a_mapping_has_none_are_refused(tasks, system):
    judged = sentences(tasks["sts12"]["test"])[:30]
    mapped = map_texts(system.table, judged, judged, [5], 500)
    assert mapping.within_reach([500, 29, 8], mapped[5]) == [29, 8]
    with pytest.raises(InputError, match=r"dims is \[500\]: the sentences here allow at most 29"):
        mapping.grid_scores(mapped, [500], lambda table, dims: dims)


def test_table1_chooses_on_dev_and_compares_pair_by_pair(tasks, system):
    names, settings = ["sts12", "stsb", "sickr"], terms.STS_SETTINGS
    given = {"tasks": tasks, "datasets": names, "neighbors": NEIGHBORS, "dims": DIMS}
    lines, chosen = on_its_page("sbertlp_table1_sts", system, "place_pairs", **given)
    assert [line.setting for line in lines] == ["", *settings]
    test, dev = tasks["sts12"]["test"], tasks["stsb"]["dev"]
    judged, on = sentences(test), sentences(dev)
    grid = mapping.grid_scores(
        map_texts(system.table, on, on, NEIGHBORS, max(DIMS)),
        DIMS,
        tables.sts_score(dev),
    )
    row = chosen[(chosen["setting"] == settings[0]) & (chosen["dataset"] == "sts12")].iloc[0]
    assert mapping.Choice(row["neighbours"], row["dims"]) == mapping.best(grid)
    fitted = chosen[chosen["setting"] == settings[1]].set_index("dataset")["fitted on"]
    foreign = sentences(tasks["nli"]["train"])  # Where a set has no training sentences of its own
    assert fitted["sts12"] == mapping.distinct_rows(system.table[foreign])
    # The oracle is the best of the grid on the test pairs, and no choice can beat it
    mapped = map_texts(system.table, judged, judged, NEIGHBORS, max(DIMS))
    own = mapping.grid_scores(mapped, DIMS, tables.sts_score(test))
    shared = {"contrasts": [over_own_system], "average": True, **SHARED}
    rows = score_rows(lines, {name: tasks[name] for name in names}, similarity, **shared)
    at = rows[(rows["metric"] == "spearman") & (rows["dataset"] == "sts12")].set_index("setting")[
        "value"
    ]
    assert (
        at[settings[2]] == pytest.approx(own["value"].max()) and at[settings[2]] >= at[settings[0]]
    )
    X = system.table
    assert at[""] == pytest.approx(sts_spearman(X[test.texts1], X[test.texts2], test.scores))
    leads = rows[(rows["method"] == "SBERTbase-LP − SBERTbase") & (rows["setting"] == settings[1])]
    leads = dict(zip(leads["dataset"], leads["value"], strict=True))
    assert leads["sts12"] == pytest.approx(at[settings[1]] - at[""]) and set(leads) == {
        *names,
        AVERAGE,
    }


def test_table2_rows_with_and_without_the_own_vote(tasks, system):
    names = ["cr", "sst2"]
    on_dev = {
        "SBERTbase": pd.DataFrame({"n_neighbors": [5, 10], "dim": [8, 4], "value": [0.7, 0.6]})
    }
    given = {
        "tasks": tasks,
        "datasets": names,
        "neighbors": NEIGHBORS,
        "dims": DIMS,
        "on_dev": on_dev,
    }
    lines, chosen = on_its_page("sbertlp_table2_knn", system, "place_labelled", **given)
    rows = score_rows(
        lines,
        {n: tasks[n] for n in names},
        tables.votes,
        contrasts=[over_own_system],
        **SHARED,
    )
    own = rows[rows["method"] == "SBERTbase"].pivot(
        index="dataset",
        columns="metric",
        values="value",
    )
    nearest = [tables.correct(system.table, tasks[name], k=1).mean() for name in own.index]
    # A query whose nearest agrees cannot be wrong
    assert (own["accuracy_self"] > own["accuracy"]).all() and (
        own["accuracy_self"] >= nearest
    ).all()
    honest = chosen[chosen["setting"] == terms.SETTINGS[0]]
    assert set(zip(honest["neighbours"], honest["dims"], strict=True)) == {(5, 8)}
    scored = rows[rows["metric"] == "accuracy"].pivot(
        index="dataset",
        columns="setting",
        values="value",
    )
    assert (scored[terms.SETTINGS[1]] >= scored[terms.SETTINGS[0]]).all()
    assert set(rows.loc[rows["method"] == "majority class", "metric"]) == {"accuracy"}


def test_clusters_have_paired_leads():
    drawn = {
        split: data.load("20news", split=split, source="microworld", limit=80)
        for split in ("test", "train")
    }
    judged, dev = (
        replace(p, texts=tuple(" ".join(t.split()[:12]) for t in p.texts)) for p in drawn.values()
    )
    own, given = (
        system_of([*judged.texts, *dev.texts]),
        {"neighbors": [8], "dims": [4, 8], "seed": 0},
    )
    lines, chosen = on_its_page(
        "sbertlp_table3_clustering",
        own,
        "place_posts",
        judged=judged,
        dev=dev,
        **given,
    )
    task = Task(judged.name, {"all": judged})
    clustering = on_page("sbertlp_table3_clustering", "clustering", starts=[0, 1])["clustering"]
    rows = score_rows(lines, {task.name: task}, clustering, contrasts=[over_own_system], **SHARED)
    at = rows[~rows["metric"].str.endswith("_lead")].set_index(["setting", "metric"])["value"]
    nmi = [cluster_scores(own.table[judged.texts], judged.labels, seed=s)["nmi"] for s in (0, 1)]
    assert at["", "nmi"] == pytest.approx(np.mean(nmi))
    lead = rows[(rows["metric"] == "nmi_lead") & (rows["setting"] == terms.SETTINGS[0])].iloc[0]
    assert lead["value"] == pytest.approx(at[terms.SETTINGS[0], "nmi"] - at["", "nmi"])
    assert lead["ci_low"] <= lead["value"] <= lead["ci_high"]
    assert lead["dim"] == chosen.loc[chosen["setting"] == terms.SETTINGS[0], "dims"].item()


def test_turned_counts_equal_a_loop(tasks):
    pairs = tasks["sts12"]["test"]
    before, after = np.random.default_rng(0).normal(size=(2, len(pairs)))
    *counts, net = on_page("sbertlp_table4_cases", "turned")["turned"](before, after, pairs)
    ordered = [
        (i, j) for i, j in permutations(range(len(pairs)), 2) if pairs.scores[i] > pairs.scores[j]
    ]
    right = [(before[high] > before[low], after[high] > after[low]) for high, low in ordered]
    repaired, broken = right.count((False, True)), right.count((True, False))
    assert counts == [len(right), repaired + right.count((False, False)), repaired, broken]
    assert (
        net.value == pytest.approx((repaired - broken) / len(right))
        and net.low <= net.value <= net.high
    )


def test_selectors_ignore_motion_and_see_noise():
    X, noise = np.random.default_rng(0).normal(size=(2, 80, 6))
    moved = 3 * X @ np.linalg.qr(noise[:6])[0] + 2
    assert [residual_variance(X, moved), procrustes_statistic(X, moved, 8)] == pytest.approx(
        [0, 0],
        abs=1e-9,
    )
    assert residual_variance(X, noise) > 0.9 and 0.1 < procrustes_statistic(X, noise, 8) < 1


def test_sweep_rows_hold_every_cell_and_both_statistics(tasks, system):
    two = {name: tasks[name] for name in ("stsb", "cr")}
    given = {
        "neighbors": NEIGHBORS,
        "dims": [2, 16, 32, 40],
        "page": SimpleNamespace(seed=SHARED["seed"]),
    }
    page = on_page("sbertlp_figures_neighbours_and_dims", "by_neighbours", "sweep_rows", **given)
    swept = [row for name, task in two.items() for row in page["sweep_rows"](system, name, task)]
    rows = make_rows(swept, **SHARED)
    found = page["by_neighbours"](rows)
    cells = found.dropna(subset=["neighbours"])
    told = rows[rows["metric"].isin(terms.STATISTICS)]["value"].notna().sum()
    assert (len(cells), found["neighbours"].isna().sum(), told) == (2 * 2 * 4, 2, 2 * 2 * 2)
    lead = rows[rows["metric"].str.endswith("_lead")].set_index(["dataset", "method"])["value"]
    best = cells[cells["dataset"] == "cr"].set_index(["neighbours", "dim"])["value"]
    k, d = best.idxmax()
    assert lead["cr", "grid − worst"] == pytest.approx(best.max() - best.xs(d, level="dim").min())
    assert lead["cr", terms.RANGE] == pytest.approx(
        best.loc[k][[16, 32, 40]].max() - best.loc[k][2]
    )


def test_the_number_that_dev_picks_is_held_on_test_against_what_the_statistics_find(tasks, system):
    """As the claim on the statistics is judged: none is chosen by the scores it is judged by."""
    given = {"neighbors": NEIGHBORS, "dims": [2, 16], "page": SimpleNamespace(seed=SHARED["seed"])}
    page = on_page("sbertlp_figures_neighbours_and_dims", "sweep_rows", **given)
    assert "dev" in tasks["stsb"] and "dev" not in tasks["cr"]
    rows = [row for name in ("stsb", "cr") for row in page["sweep_rows"](system, name, tasks[name])]
    rows = make_rows(rows, **{**SHARED, "data_source": "local"})
    picked = rows[rows["method"].str.startswith(f"{terms.ON_DEV} − ")]
    assert set(picked["method"]) == {f"{terms.ON_DEV} − {name}" for name in terms.STATISTICS}
    assert set(picked["dataset"]) == {"stsb"} and picked["ci_low"].notna().all()
    at = rows[(rows["dataset"] == "stsb") & (rows["metric"] == "spearman")]
    at = at[at["dim"] == picked["dim"].iloc[0]].set_index("setting")["value"]
    leads = {round(float(a - b), 9) for a in at for b in at}
    assert {round(float(value), 9) for value in picked["value"]} <= leads
    judged = claims.figures(parsed(rows.assign(backbone="all-MiniLM-L6-v2")))
    told = [m for m in judged if m.claim_id == "LP-F2-1" and "chosen on dev" in m.what]
    assert len(told) == 2 and not any(m.unknown for m in told)


def test_equal_numbers_of_neighbours_are_told_apart_in_5_of_100_cases():
    compare = on_page("sbertlp_figures_neighbours_and_dims", "comparisons")["comparisons"]
    rng, leads = np.random.default_rng(0), []
    for _ in range(300):
        right = np.where(
            rng.random((6, 400)) < 0.7,
            rng.random(400) < 0.65,
            rng.random((6, 400)) < 0.65,
        )
        draws = right[:, rng.integers(400, size=(300, 400))].mean(-1).T
        leads += compare(
            [(k, 16) for k in range(6)],
            Resampled(right.mean(-1), draws, 400),
            {},
            16,
            64,
        )
    assert 6 < sum(lead["ci_low"] > 0 for lead in leads) < 24, (
        "by an interval for two chosen beforehand: 120"
    )


def test_systems_take_rows_once(tmp_path):
    store, texts = at_hand.Store(tmp_path), data.load("cr", source="microworld", limit=20)
    glove = load_system("glove", SystemConfig("microworld"), store)
    lines = at_hand.encode_systems(
        [glove, replace(glove, name="other", n_train=7)],
        {"cr": {"all": texts}},
        store,
    )
    assert [line.method for line in lines.values()] == ["glove", "Avg. GloVe embeddings"]
    np.testing.assert_array_equal(
        lines["glove"].table[texts.texts],
        lines["other"].table[texts.texts],
    )
    assert (lines["glove"].n_train, lines["other"].n_train) == (None, 7)


def test_the_mapping_by_hand_is_the_packages():
    X = np.random.default_rng(0).normal(size=(120, 8))
    by_hand = on_page("sbertlp_table1_sts", "locality_preserving")["locality_preserving"](X, 10, 3)
    ours = SBERTLP(3, n_neighbors=10).fit_transform(X)
    np.testing.assert_allclose(np.abs(by_hand), np.abs(ours), atol=1e-4)


def test_a_set_without_the_splits_of_a_vote_is_the_users_mistake(system, tasks):
    dev = {"dev": tasks["sst2"]["dev"]}
    with pytest.raises(InputError, match="no split 'all' to vote by: the data has dev"):
        tables.correct(system.table, dev)
