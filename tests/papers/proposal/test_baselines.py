"""The rivals on one table: counted vectors against their dense form, memory from dims, a clock,
what is missing.
"""

from dataclasses import replace

import numpy as np
import pytest

from repro import data
from repro.config import profile
from repro.evaluation import sts_spearman
from repro.methods import BASELINES
from repro.papers.proposal import baselines
from repro.store import Store
from rivals import SystemConfig
from rivals.static import fit_tfidf


@pytest.fixture(scope="module")
def pairs():
    return data.take(data.load("stsb", split="test", source="microworld"), 40)


def loaded(names, sentences, store, train=None, **systems):
    chosen = profile("embedded", source="microworld")
    chosen = chosen if train is None else replace(chosen, train=train)
    config = SystemConfig(source="microworld", **systems)
    return baselines.load_baselines(names, chosen, config, sentences, store, dim=12)


def rows_of(names, sentences, pairs, train=None):
    store = Store()
    lines, missing = loaded(names, sentences, store, train)
    assert missing.empty
    return baselines.baseline_rows(
        lines,
        {"stsb": pairs},
        store,
        timed=20,
        experiment="x",
        data_source="microworld",
    )


def test_counted_scores_are_those_of_the_dense_matrix(sentences, pairs):
    rows = rows_of(["tfidf"], sentences[:200], pairs).set_index(["metric", "setting"])["value"]
    encoder = fit_tfidf(sentences[:200])
    X1, X2 = encoder.encode(pairs.texts1), encoder.encode(pairs.texts2)
    scores = rows.xs("spearman", level="metric")
    assert scores.iloc[0] == pytest.approx(sts_spearman(X1, X2, pairs.scores), abs=1e-9)
    filled, distinct = (
        rows.xs("nonzeros", level="metric").iloc[0],
        np.unique(np.concatenate([X1, X2]), axis=0),
    )
    assert 0.8 * (distinct != 0).sum(1).mean() < filled < 1.2 * (distinct != 0).sum(1).mean()
    assert rows["gb_per_million", "dense"] == pytest.approx(encoder.dim * 4e6 / 1e9)
    assert rows["gb_per_million", "sparse"] == pytest.approx((8 * filled + 8) * 1e6 / 1e9)


def test_counted_vectors_of_equal_texts_are_tied_at_one(sentences):
    texts = tuple(dict.fromkeys(sentences[:60]))
    gold, subsets = np.arange(len(texts), dtype=float), np.array(["x"] * len(texts), object)
    pairs = data.ScoredPairs("x", "local", "test", texts, texts, gold, subsets)
    _, by_task, _ = baselines._counted(fit_tfidf(texts), {"x": pairs})
    assert (by_task["x"][0] == 1).all()


def test_sentences_of_unknown_words_are_counted():
    texts1, texts2 = (
        ("a cat sat", "zzz", "a dog ran", "a cat ran"),
        ("a dog sat", "a cat", "a dog sat", "qqq"),
    )
    gold = data.ScoredPairs(
        "x",
        "local",
        "test",
        texts1,
        texts2,
        np.array([1.0, 2, 3, 4]),
        np.array(["x"] * 4, object),
    )
    rows = rows_of(["tfidf"], ["a cat sat", "a dog ran", "the cat"], gold)
    assert rows.loc[rows["metric"] == "zero_vectors", "value"].tolist() == [2.0]


def test_a_table_of_fitted_and_trained_methods(sentences, pairs, cell_config):
    # Leads keep their direction in any order
    names = ["lsa", "simcse", "word2vec", "doc2vec", "glove"]
    rows = rows_of(names, sentences[:300], pairs, cell_config)
    scores = rows[rows["metric"] == "spearman"].set_index("method")
    assert list(scores.index) == [BASELINES[name] for name in names]
    assert scores["dim"].tolist()[:-1] == [12, 32, 12, 12], "of SimCSE the states"
    assert (scores["ci_low"] < scores["value"]).all() and (
        scores["value"] < scores["ci_high"]
    ).all()
    assert scores["n_train"].isna().tolist() == [False, False, False, False, True], (
        "GloVe comes as it is"
    )
    spent = rows[rows["metric"] == "encode_seconds"]
    assert (
        len(spent) == 5
        and ((spent["ci_low"] <= spent["value"]) & (spent["value"] <= spent["ci_high"])).all()
    )
    (lead,) = rows[rows["metric"] == "spearman_lead"].itertuples()
    assert lead.method == "SimCSE − GloVe", "the only two with printed scores"
    assert lead.value == pytest.approx(scores["value"]["SimCSE"] - scores["value"]["GloVe"])


def test_what_is_not_at_hand_is_said_with_where_it_goes(sentences, tmp_path):
    lines, missing = loaded(
        ["tfidf", "fasttext", "use"],
        sentences[:50],
        Store(),
        weights=str(tmp_path),
    )
    said = missing.set_index("method")["missing"]
    assert [line.name for line in lines] == [BASELINES["tfidf"]]
    assert "`fasttext`" in said["fastText"] and "`weights`" in said[BASELINES["use"]]
