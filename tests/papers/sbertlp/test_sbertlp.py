"""SBERT-LP's pages on a small scale: who is fitted on what, what is chosen where, and counts that a loop confirms."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist

from repro import data
from repro.evaluation.retention import procrustes_statistic, residual_variance
from repro.evaluation.sts import sts_spearman
from repro.methods import AVERAGE
from repro.papers.sbertlp import claims, clusters, mapping, neighbours, sts, sweeps
from repro.papers.sbertlp.mapping import map_texts
from repro.papers.sbertlp.systems import Encoded, encode_systems, load_systems, with_training
from repro.papers.sbertlp.tasks import FOREIGN_ROWS, kept, load_posts, load_tasks, sentences
from repro.reducers.sbertlp import SBERTLP
from repro.runs.embeddings import TextTable
from repro.runs.suite import suite_rows
from repro.store import Store
from repro.types import InputError
from rivals import Loaded, System, SystemConfig
from shown_code import on_page

NEIGHBORS, DIMS = [5, 10], [2, 4, 8]
SHARED = {"experiment": "e", "paper_table": "t", "profile": "embedded", "data_source": "microworld", "seed": 0}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("sbertlp"))


@pytest.fixture(scope="module")
def tasks():
    return load_tasks(["sts12", "stsb", "sickr", "nli", "cr", "sst2"], "microworld", rows=60)


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


def lines_of(place, systems, *sets, **grid):
    return mapping.contenders(systems, ["toy"], lambda table: place(table, *sets, **grid))


def test_splits_are_entries_and_rows_are_counted(tasks):
    assert {"stsb/train", "stsb/dev", "stsb/test", "sts12/test", "cr/all"} <= set(tasks.parts)
    assert tasks.describe(["sts12", "cr"]) == "sts12 60 of 1,000, cr 60 of 1,200; drawn at random"
    assert kept("embedded", "stsb", "test", None) == 500
    assert kept("embedded", "stsb", "dev", None) == 250
    assert kept("embedded", "stsb", "test", 0) is None
    assert kept("paper", "nli", "train", 0) == FOREIGN_ROWS  # a mapping cannot take them all


@pytest.mark.parametrize("documents", [100, 0])
def test_posts_to_choose_by_are_of_the_training_split_and_judged_ones_of_the_test_split(documents):
    posts = load_posts("microworld", documents=documents, dev=50)
    train, test = (set(data.load("20news", split=split, source="microworld").texts) for split in ("train", "test"))
    assert set(posts.judged.texts) <= test and set(posts.dev.texts) <= train and len(posts.dev) == 50
    assert len(posts.judged) == (documents or 600)
    assert ("100 of 600 test posts, drawn" if documents else "all 600 test posts") in posts.describe()
    assert len(load_posts("microworld", documents=documents).dev) == (50 if documents else 1_000)
    short = load_posts("microworld", documents=9, words=5)
    assert all(len(text.split()) <= 5 for part in (short.judged, short.dev) for text in part.texts)


def test_mapping_depends_on_fitted_sentences_only(tasks, encoded):
    test, train = tasks.splits["stsb"]["test"], tasks.splits["stsb"]["train"]
    judged, fit = sentences(test), sentences(train)
    both = map_texts(encoded.table, fit, judged, NEIGHBORS, 4)
    half = map_texts(encoded.table, fit, judged[: len(judged) // 2], NEIGHBORS, 4)
    for k in NEIGHBORS:
        np.testing.assert_allclose(both[k].table[judged[:10]], half[k].table[judged[:10]], atol=1e-6)
    own = map_texts(encoded.table, judged, judged, [5], 4)[5]
    Y = own.table[judged]
    assert own.fitted == len(judged)
    np.testing.assert_allclose(Y.mean(0), 0, atol=1e-4)
    np.testing.assert_allclose(Y.T @ Y / len(Y), np.eye(4), atol=1e-3)


def test_in_n_minus_one_dims_all_sentences_are_equally_far_apart(tasks, encoded):
    judged = sentences(tasks.splits["sts12"]["test"])[:30]
    Y = map_texts(encoded.table, judged, judged, [5], 29)[5].table[judged]
    np.testing.assert_allclose(pdist(Y), np.sqrt(2 * 30), rtol=1e-3)
    grid = pd.DataFrame({"n_neighbors": [5, 5, 50], "dim": [4, 20, 4], "value": [0.1, 0.9, 0.8]})
    assert mapping.best(mapping.within(grid, 40)) == mapping.Choice(5, 4, 0.1)


def test_neighbours_beyond_reach_are_left_out_or_refused(tasks, encoded):
    judged = sentences(tasks.splits["sts12"]["test"])[:8]
    assert list(map_texts(encoded.table, judged, judged, [3, 50], 4)) == [3]
    with pytest.raises(InputError, match="8 distinct sentences allow at most 7"):
        map_texts(encoded.table, judged, judged, [50], 4)


def test_a_choice_is_one_that_the_judged_sentences_allow(tasks, encoded):
    few = sentences(tasks.splits["sts12"]["test"])[:4]
    choice = mapping.choose_on(encoded.table, tasks.splits["stsb"]["dev"], few, neighbors=[2, 3, 9], dims=DIMS)
    assert choice.n_neighbors < 4
    with pytest.raises(InputError, match="4 distinct sentences allow at most 3"):
        mapping.choose_on(encoded.table, tasks.splits["stsb"]["dev"], few, neighbors=[9], dims=DIMS)


def test_table1_chooses_on_dev_and_compares_pair_by_pair(tasks, encoded, store):
    names = ["sts12", "stsb", "sickr"]
    lines, chosen = lines_of(sts.place, [encoded], names, tasks.splits, neighbors=NEIGHBORS, dims=DIMS)
    assert [line.setting for line in lines] == ["", *sts.SETTINGS]
    test = tasks.splits["sts12"]["test"]
    given = {"neighbors": NEIGHBORS, "dims": DIMS}
    dev = mapping.choose_on(encoded.table, tasks.splits["stsb"]["dev"], sentences(test), **given)
    row = chosen[(chosen["setting"] == sts.SETTINGS[0]) & (chosen["dataset"] == "sts12")].iloc[0]
    assert (row["neighbours"], row["dims"]) == (dev.n_neighbors, dev.dim)
    # the oracle is the best of the grid on the test pairs, and no choice can beat it
    judged = sentences(test)
    mapped = map_texts(encoded.table, judged, judged, NEIGHBORS, max(DIMS))
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
    assert sts.fit_sentences("stsb", tasks.splits) == sentences(tasks.splits["stsb"]["train"])
    assert sts.fit_sentences("sts12", tasks.splits) == sentences(tasks.splits["nli"]["train"])


def test_table2_rows_with_and_without_the_own_vote(tasks, encoded, store):
    names = ["cr", "sst2"]
    lines, chosen = lines_of(neighbours.place, [encoded], names, tasks.splits, neighbors=NEIGHBORS, dims=DIMS)
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
    posts = load_posts("microworld", documents=80, dev=60, words=12)
    own = system_of([*posts.judged.texts, *posts.dev.texts])
    lines, chosen = lines_of(clusters.place, [own], posts.judged, posts.dev, neighbors=[8], dims=[4, 8])
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
    comparisons, wrong_before, fixed, spoilt, net = on_page("sbertlp_table4_cases", "turned")["turned"](
        before, after, pairs
    )
    repaired = broken = wrong = total = 0
    for i, j in combinations(range(len(pairs)), 2):
        if pairs.scores[i] == pairs.scores[j]:
            continue
        high, low = (i, j) if pairs.scores[i] > pairs.scores[j] else (j, i)
        right = before[high] > before[low], after[high] > after[low]
        total, wrong = total + 1, wrong + (not right[0])
        repaired, broken = repaired + (right == (False, True)), broken + (right == (True, False))
    assert (comparisons, wrong_before, fixed, spoilt) == (total, wrong, repaired, broken)
    assert net.value == pytest.approx((repaired - broken) / total) and net.low <= net.value <= net.high


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
    scores = on_page("sbertlp_figures_neighbours_and_dims", "by_neighbours")["by_neighbours"](rows)
    cells = scores.dropna(subset=["neighbours"])
    assert len(cells) == 2 * 2 * 4 and scores["neighbours"].isna().sum() == 2
    assert rows[rows["metric"].isin(claims.STATISTICS)]["value"].notna().sum() == 2 * 2 * 2
    lead = rows[rows["metric"].str.endswith("_lead")].set_index(["dataset", "method"])["value"]
    best = cells[cells["dataset"] == "cr"].set_index(["neighbours", "dim"])["value"]
    k, d = best.idxmax()
    assert lead["cr", "grid − worst"] == pytest.approx(best.max() - best.xs(d, level="dim").min())
    inside = best.loc[k][[16, 32, 40]].max()
    assert lead["cr", claims.RANGE] == pytest.approx(inside - best.loc[k][2])


def test_systems_take_rows_once_and_missing_ones_say_how(store):
    with pytest.raises(InputError, match="none of them is at hand"):
        load_systems(["fasttext"], SystemConfig(source="microworld"), store, progress=False)
    found, missing = load_systems(["glove", "fasttext"], SystemConfig(source="microworld"), store, progress=False)
    assert [loaded.system.name for loaded in found] == ["glove"]
    assert missing["system"].tolist() == ["fasttext"] and "fasttext" in missing["missing"].iloc[0]
    texts = data.load("cr", source="microworld", limit=20)
    again = replace(found[0], system=replace(found[0].system, name="other"))
    first, second = encode_systems([found[0], again], {"cr": {"all": texts}}, store, progress=False)
    assert (first.method, second.method) == ("glove", "Avg. GloVe embeddings")
    np.testing.assert_array_equal(first.table[texts.texts], second.table[texts.texts])


def test_rows_carry_what_each_system_was_trained_on(tasks, encoded, store):
    trained = replace(encoded, loaded=replace(encoded.loaded, n_train=7))
    lines, _ = lines_of(sts.place, [trained], ["stsb"], tasks.splits, neighbors=[5], dims=[4])
    rows = suite_rows(lines, tasks.only(["stsb"]), store, rivals=sts.rivals, progress=False, **SHARED)
    assert set(with_training(rows, [trained])["n_train"]) == {7}


def test_the_mapping_by_hand_is_the_packages():
    X = np.random.default_rng(0).normal(size=(120, 8))
    by_hand = on_page("sbertlp_table1_sts", "locality_preserving")["locality_preserving"](X, 10, 3)
    ours = SBERTLP(3, n_neighbors=10).fit_transform(X)
    np.testing.assert_allclose(np.abs(by_hand), np.abs(ours), atol=1e-4)
