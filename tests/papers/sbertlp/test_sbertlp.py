"""SBERT-LP's pages on a small scale: who is fitted on what, what is chosen where, and counts that a loop confirms."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist

from repro import data
from repro.evaluation.sts import sts_spearman
from repro.methods import AVERAGE
from repro.papers import sbertlp
from repro.papers.sbertlp import cases, clusters, mapping, neighbours, sts, sweeps
from repro.papers.sbertlp.encoded import Encoded
from repro.papers.sbertlp.selectors import procrustes_statistic, residual_variance
from repro.runs.embeddings import TextTable
from repro.runs.suite import suite_rows
from repro.store import Store
from repro.types import InputError
from rivals import Loaded, System, SystemConfig

NEIGHBORS, DIMS = [5, 10], [2, 4, 8]
SHARED = {"experiment": "e", "paper_table": "t", "profile": "embedded", "data_source": "microworld", "seed": 0}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("sbertlp"))


@pytest.fixture(scope="module")
def tasks():
    return sbertlp.load_tasks(["sts12", "stsb", "sickr", "nli", "cr", "sst2"], "microworld", rows=60)


def system_of(texts, *, name="toy", row="SBERTbase", seed=0, width=12, n_train=None):
    """A system whose embedding of a text is a random combination of its words."""
    words = sorted({word for text in texts for word in text.lower().split()})
    vectors = dict(zip(words, np.random.default_rng(seed).normal(size=(len(words), width)), strict=True))
    distinct = list(dict.fromkeys(texts))
    X = np.array([sum(vectors[w] for w in text.lower().split()) for text in distinct], np.float32)
    loaded = Loaded(System(name, row, name), lambda: None, name, "", n_train, "")
    return Encoded(loaded, TextTable({text: i for i, text in enumerate(distinct)}, X), row or name)


@pytest.fixture(scope="module")
def encoded(tasks):
    return system_of([t for part in tasks.parts.values() for one in part.values() for t in data.texts_of(one)])


def test_splits_are_entries_and_rows_are_counted(tasks):
    assert {"stsb/train", "stsb/dev", "stsb/test", "sts12/test", "cr/all"} <= set(tasks.parts)
    assert tasks.describe(["sts12", "cr"]) == "sts12 60 of 1,000, cr 60 of 1,200; drawn at random"
    assert sbertlp.tasks.kept("embedded", "stsb", "test", None) == 500
    assert sbertlp.tasks.kept("embedded", "stsb", "dev", None) == 250
    assert sbertlp.tasks.kept("embedded", "stsb", "test", 0) is None
    assert (
        sbertlp.tasks.kept("paper", "nli", "train", 0) == sbertlp.tasks.FOREIGN_ROWS
    )  # a mapping cannot take them all


@pytest.mark.parametrize("documents", [100, 0])
def test_posts_to_choose_by_are_of_the_training_split_and_judged_ones_of_the_test_split(documents):
    posts = sbertlp.load_posts("microworld", documents=documents, dev=50)
    train, test = (set(data.load("20news", split=split, source="microworld").texts) for split in ("train", "test"))
    assert set(posts.judged.texts) <= test and set(posts.dev.texts) <= train and len(posts.dev) == 50
    assert len(posts.judged) == (documents or 600)
    assert ("100 of 600 test posts, drawn" if documents else "all 600 test posts") in posts.describe()
    assert len(sbertlp.load_posts("microworld", documents=documents).dev) == (50 if documents else 1_000)
    short = sbertlp.load_posts("microworld", documents=9, words=5)
    assert all(len(text.split()) <= 5 for part in (short.judged, short.dev) for text in part.texts)


def test_mapping_depends_on_fitted_sentences_only(tasks, encoded):
    test, train = tasks.splits["stsb"]["test"], tasks.splits["stsb"]["train"]
    judged, fit = sbertlp.sentences(test), sbertlp.sentences(train)
    both = sbertlp.map_texts(encoded.table, fit, judged, NEIGHBORS, 4)
    half = sbertlp.map_texts(encoded.table, fit, judged[: len(judged) // 2], NEIGHBORS, 4)
    for k in NEIGHBORS:
        np.testing.assert_allclose(both[k].table[judged[:10]], half[k].table[judged[:10]], atol=1e-6)
    own = sbertlp.map_texts(encoded.table, judged, judged, [5], 4)[5]
    Y = own.table[judged]
    assert own.fitted == len(judged)
    np.testing.assert_allclose(Y.mean(0), 0, atol=1e-4)
    np.testing.assert_allclose(Y.T @ Y / len(Y), np.eye(4), atol=1e-3)


def test_in_n_minus_one_dims_all_sentences_are_equally_far_apart(tasks, encoded):
    judged = sbertlp.sentences(tasks.splits["sts12"]["test"])[:30]
    Y = sbertlp.map_texts(encoded.table, judged, judged, [5], 29)[5].table[judged]
    np.testing.assert_allclose(pdist(Y), np.sqrt(2 * 30), rtol=1e-3)
    grid = pd.DataFrame({"n_neighbors": [5, 5, 50], "dim": [4, 20, 4], "value": [0.1, 0.9, 0.8]})
    assert mapping.best(mapping.within(grid, 40)) == mapping.Choice(5, 4, 0.1)


def test_neighbours_beyond_reach_are_left_out_or_refused(tasks, encoded):
    judged = sbertlp.sentences(tasks.splits["sts12"]["test"])[:8]
    assert list(sbertlp.map_texts(encoded.table, judged, judged, [3, 50], 4)) == [3]
    with pytest.raises(InputError, match="8 distinct sentences allow at most 7"):
        sbertlp.map_texts(encoded.table, judged, judged, [50], 4)


def test_a_choice_is_one_that_the_judged_sentences_allow(tasks, encoded):
    few = sbertlp.sentences(tasks.splits["sts12"]["test"])[:4]
    choice = mapping.choose_on(encoded.table, tasks.splits["stsb"]["dev"], few, neighbors=[2, 3, 9], dims=DIMS)
    assert choice.n_neighbors < 4
    with pytest.raises(InputError, match="4 distinct sentences allow at most 3"):
        mapping.choose_on(encoded.table, tasks.splits["stsb"]["dev"], few, neighbors=[9], dims=DIMS)


def test_table1_chooses_on_dev_and_compares_pair_by_pair(tasks, encoded, store):
    names = ["sts12", "stsb", "sickr"]
    lines, chosen = sts.contenders([encoded], ["toy"], names, tasks.splits, neighbors=NEIGHBORS, dims=DIMS)
    assert [line.setting for line in lines] == ["", *sts.SETTINGS]
    test = tasks.splits["sts12"]["test"]
    given = {"neighbors": NEIGHBORS, "dims": DIMS}
    dev = mapping.choose_on(encoded.table, tasks.splits["stsb"]["dev"], sbertlp.sentences(test), **given)
    row = chosen[(chosen["setting"] == sts.SETTINGS[0]) & (chosen["dataset"] == "sts12")].iloc[0]
    assert (row["neighbours"], row["dims"]) == (dev.n_neighbors, dev.dim)
    # the oracle is the best of the grid on the test pairs, and no choice can beat it
    judged = sbertlp.sentences(test)
    mapped = sbertlp.map_texts(encoded.table, judged, judged, NEIGHBORS, max(DIMS))
    scores = mapping.grid_scores(mapped, DIMS, mapping.sts_score(test))
    rows = suite_rows(lines, tasks.only(names), store, rivals=sts.rivals, average=True, progress=False, **SHARED)
    at = rows[(rows["metric"] == "spearman") & (rows["dataset"] == "sts12")].set_index("setting")["value"]
    assert at[sts.SETTINGS[2]] == pytest.approx(scores["value"].max())
    assert at[sts.SETTINGS[2]] >= at[sts.SETTINGS[0]]
    X = encoded.table
    assert at[""] == pytest.approx(sts_spearman(X[test.texts1], X[test.texts2], test.scores))
    lead = rows[(rows["method"] == "SBERTbase-LP − SBERTbase") & (rows["setting"] == sts.SETTINGS[1])]
    lead = lead.set_index("dataset")["value"]
    assert lead["sts12"] == pytest.approx(at[sts.SETTINGS[1]] - at[""])
    assert set(lead.index) == {*names, AVERAGE}
    assert not rows.duplicated(["method", "setting", "dataset", "metric"]).any()


def test_sets_without_training_sentences_are_fitted_on_foreign_ones(tasks):
    assert sts.fit_sentences("stsb", tasks.splits) == sbertlp.sentences(tasks.splits["stsb"]["train"])
    assert sts.fit_sentences("sts12", tasks.splits) == sbertlp.sentences(tasks.splits["nli"]["train"])


def test_table2_rows_with_and_without_the_own_vote(tasks, encoded, store):
    names = ["cr", "sst2"]
    lines, chosen = neighbours.contenders([encoded], ["toy"], names, tasks.splits, neighbors=NEIGHBORS, dims=DIMS)
    rows = neighbours.knn_rows(lines, tasks.only(names), store, whole=False, progress=False, **SHARED)
    both = rows[rows["metric"].isin(["accuracy", "accuracy_self"]) & (rows["method"] == "SBERTbase")]
    wide = both.pivot(index="dataset", columns="metric", values="value")
    assert (wide["accuracy_self"] > wide["accuracy"]).all()
    votes = neighbours.votes(lines[:1], tasks.only(names)).set_index("dataset")
    np.testing.assert_allclose(votes["3-NN"], wide["accuracy"].reindex(votes.index))
    np.testing.assert_allclose(votes["3-NN with oneself"], wide["accuracy_self"].reindex(votes.index))
    assert (votes["3-NN with oneself"] >= votes["1-NN"]).all()  # a query whose nearest agrees cannot be wrong
    assert set(chosen["setting"]) == set(neighbours.SETTINGS)
    assert not rows.duplicated(["method", "setting", "dataset", "metric"]).any()
    assert neighbours.probeable(tasks.only(names)) == names


def test_clusters_have_paired_leads(encoded):
    posts = sbertlp.load_posts("microworld", documents=80, dev=60, words=12)
    own = system_of([*posts.judged.texts, *posts.dev.texts])
    lines, chosen = clusters.contenders([own], ["toy"], posts.judged, posts.dev, neighbors=[8], dims=[4, 8])
    rows = clusters.cluster_rows(lines, posts.judged, starts=[0], **SHARED)
    at = rows[~rows["metric"].str.endswith("_lead")].set_index(["setting", "metric"])["value"]
    lead = rows[(rows["metric"] == "nmi_lead") & (rows["setting"] == clusters.SETTINGS[0])].iloc[0]
    assert lead["value"] == pytest.approx(at[clusters.SETTINGS[0], "nmi"] - at["", "nmi"])
    assert lead["ci_low"] <= lead["value"] <= lead["ci_high"]
    assert list(chosen["setting"]) == list(clusters.SETTINGS)
    assert set(rows["metric"]) == {q + s for q in ("mi", "nmi", "ari", "purity") for s in ("", "_lead")}


def test_turned_counts_equal_a_loop(tasks):
    pairs = tasks.splits["sts12"]["test"]
    rng = np.random.default_rng(0)
    before, after = rng.normal(size=(2, len(pairs)))
    found = cases.turned(before, after, pairs)
    repaired = broken = wrong = total = 0
    for i, j in combinations(range(len(pairs)), 2):
        if pairs.scores[i] == pairs.scores[j]:
            continue
        high, low = (i, j) if pairs.scores[i] > pairs.scores[j] else (j, i)
        right = before[high] > before[low], after[high] > after[low]
        total, wrong = total + 1, wrong + (not right[0])
        repaired, broken = repaired + (right == (False, True)), broken + (right == (True, False))
    assert (found.comparisons, found.wrong_before, found.repaired, found.broken) == (total, wrong, repaired, broken)
    assert found.net.value == pytest.approx((repaired - broken) / total)
    assert found.net.low <= found.net.value <= found.net.high


def test_a_perfect_mapping_repairs_everything_and_examples_say_so(tasks):
    gold = np.random.default_rng(0).permutation(60) / 12.0
    pairs = replace(tasks.splits["sts12"]["test"], scores=gold)
    found = cases.turned(-gold, gold, pairs)
    assert found.repaired_share == 1 and found.broken == 0 and found.net.low == pytest.approx(1)
    shown = cases.examples(-gold, gold, pairs, count=2)
    assert list(shown["comparison"]) == [0, 0, 1, 1]
    low, high = shown.iloc[0], shown.iloc[1]
    assert high["gold"] > low["gold"] and high["before"] < low["before"] and high["after"] > low["after"]
    assert cases.examples(-gold, gold, pairs, repaired=False).empty


def test_printed_pairs_are_found_in_either_order(tasks):
    pairs = tasks.splits["sts12"]["test"]
    assert cases.printed(pairs.scores, pairs.scores, pairs).empty
    sides = [
        ("the words in this frame describe a period of time .", "the period during which something is functional ;"),
        ("torres finishes 4th , misses out", "torres moving on after olympic bid fails"),
    ]
    planted = replace(
        pairs,
        texts1=(sides[0][0], sides[1][0], *pairs.texts1[2:]),
        texts2=(sides[0][1], sides[1][1], *pairs.texts2[2:]),
    )
    found = cases.printed(pairs.scores, -pairs.scores, planted)
    assert list(found["pair"]) == [0, 1] and list(found["before"]) == list(pairs.scores[:2])


def test_selectors_ignore_motion_and_see_noise():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6))
    moved = 3 * X @ np.linalg.qr(rng.normal(size=(6, 6)))[0] + 2
    noise = rng.normal(size=(80, 6))
    assert residual_variance(X, moved) == pytest.approx(0, abs=1e-9)
    assert procrustes_statistic(X, moved, 8) == pytest.approx(0, abs=1e-9)
    assert residual_variance(X, noise) > 0.9 and 0.1 < procrustes_statistic(X, noise, 8) < 1


def test_sweep_rows_hold_every_cell_and_both_statistics(tasks, encoded):
    rows = sweeps.sweep_rows(encoded, tasks.splits, ["stsb", "cr"], neighbors=NEIGHBORS, dims=[2, 16, 32, 40], **SHARED)
    scores = sweeps.by_neighbours(rows)
    cells = scores.dropna(subset=["neighbours"])
    assert len(cells) == 2 * 2 * 4 and scores["neighbours"].isna().sum() == 2
    table = sweeps.selector_table(rows)
    assert len(table) == 4 and table[["residual variance", "Procrustes", "score"]].notna().all(axis=None)
    lead = rows[rows["metric"].str.endswith("_lead")].set_index(["dataset", "method"])["value"]
    best = cells[cells["dataset"] == "cr"].set_index(["neighbours", "dim"])["value"]
    k, d = best.idxmax()
    assert lead["cr", "grid − worst"] == pytest.approx(best.max() - best.xs(d, level="dim").min())
    inside = best.loc[k][[16, 32, 40]].max()
    assert lead["cr", sweeps.RANGE] == pytest.approx(inside - best.loc[k][2])


def test_systems_take_rows_once_and_missing_ones_say_how(store):
    with pytest.raises(InputError, match="none of them is at hand"):
        sbertlp.load_systems(["fasttext"], SystemConfig(source="microworld"), store, progress=False)
    found, missing = sbertlp.load_systems(
        ["glove", "fasttext"], SystemConfig(source="microworld"), store, progress=False
    )
    assert [loaded.system.name for loaded in found] == ["glove"]
    assert missing["system"].tolist() == ["fasttext"] and "fasttext" in missing["missing"].iloc[0]
    texts = data.load("cr", source="microworld", limit=20)
    again = replace(found[0], system=replace(found[0].system, name="other"))
    first, second = sbertlp.encode_systems([found[0], again], {"cr": {"all": texts}}, store, progress=False)
    assert (first.method, second.method) == ("glove", "Avg. GloVe embeddings")
    np.testing.assert_array_equal(first.table[texts.texts], second.table[texts.texts])


def test_rows_carry_what_each_system_was_trained_on(tasks, encoded, store):
    trained = replace(encoded, loaded=replace(encoded.loaded, n_train=7))
    lines, _ = sts.contenders([trained], ["toy"], ["stsb"], tasks.splits, neighbors=[5], dims=[4])
    rows = suite_rows(lines, tasks.only(["stsb"]), store, rivals=sts.rivals, progress=False, **SHARED)
    assert set(sbertlp.with_training(rows, [trained])["n_train"]) == {7}
