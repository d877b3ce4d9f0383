"""The rivals on one table: counted vectors against their dense form, memory from dims, a clock, what is missing."""

from dataclasses import replace

import numpy as np
import pytest

from repro import data
from repro.config import profile as make_profile
from repro.evaluation import sts_spearman
from repro.methods import BASELINES
from repro.papers.proposal import baselines
from repro.rows import make_rows
from repro.store import Store
from repro.types import InputError
from rivals import SystemConfig
from rivals.static import fit_tfidf
from shown_code import on_page


@pytest.fixture(scope="module")
def pairs():
    whole = data.load("stsb", split="test", source="microworld")
    return data.take(whole, 40)


def chosen_with(cell_config):
    """The embedded profile with a training of a second."""
    return replace(make_profile("embedded", source="microworld"), train=cell_config)


def loaded(names, sentences, store, cell_config=None, **systems):
    chosen = make_profile("embedded", source="microworld") if cell_config is None else chosen_with(cell_config)
    return baselines.load_baselines(
        names, chosen, SystemConfig(source="microworld", **systems), sentences, store, dim=12
    )


def rows_of(names, sentences, pairs, cell_config=None):
    store = Store()
    lines, missing = loaded(names, sentences, store, cell_config)
    assert missing.empty
    return baselines.baseline_rows(
        lines, {"stsb": pairs}, store, timed=20, experiment="x", profile="embedded", data_source="microworld"
    )


def test_counted_scores_are_those_of_the_dense_matrix(sentences, pairs):
    rows = rows_of(["tfidf"], sentences[:200], pairs).set_index(["metric", "setting"])["value"]
    encoder = fit_tfidf(sentences[:200])
    X1, X2 = encoder.encode(pairs.texts1), encoder.encode(pairs.texts2)
    scores = rows.xs("spearman", level="metric")
    assert scores.iloc[0] == pytest.approx(sts_spearman(X1, X2, pairs.scores), abs=1e-9)
    distinct = np.unique(np.concatenate([X1, X2]), axis=0)
    assert rows["gb_per_million", "dense"] == pytest.approx(encoder.dim * 4e6 / 1e9)
    filled = rows.xs("nonzeros", level="metric").iloc[0]
    assert 0.8 * (distinct != 0).sum(1).mean() < filled < 1.2 * (distinct != 0).sum(1).mean()
    assert rows["gb_per_million", "sparse"] == pytest.approx((8 * filled + 8) * 1e6 / 1e9)


def test_sentences_of_unknown_words_are_counted():
    texts1, texts2 = ("a cat sat", "zzz", "a dog ran", "a cat ran"), ("a dog sat", "a cat", "a dog sat", "qqq")
    gold = data.ScoredPairs("x", "local", "test", texts1, texts2, np.array([1.0, 2, 3, 4]), np.array(["x"] * 4, object))
    rows = rows_of(["tfidf"], ["a cat sat", "a dog ran", "the cat"], gold)
    assert rows.loc[rows["metric"] == "zero_vectors", "value"].tolist() == [2.0]


def test_a_table_of_fitted_and_trained_methods(sentences, pairs, cell_config):
    names = ["lsa", "simcse", "word2vec", "doc2vec", "glove"]  # leads keep their direction in any order
    rows = rows_of(names, sentences[:300], pairs, cell_config)
    scores = rows[rows["metric"] == "spearman"].set_index("method")
    assert list(scores.index) == [BASELINES[name] for name in names]
    assert scores["dim"].tolist()[:-1] == [12, 32, 12, 12], "of SimCSE the states"
    assert (scores["ci_low"] < scores["value"]).all() and (scores["value"] < scores["ci_high"]).all()
    assert scores["n_train"].isna().tolist() == [False, False, False, False, True], "GloVe comes as it is"
    spent = rows[rows["metric"] == "encode_seconds"]
    assert len(spent) == 5 and (spent["value"] > 0).all() and set(spent["setting"]) == {"1 thread"}
    assert ((spent["ci_low"] <= spent["value"]) & (spent["value"] <= spent["ci_high"])).all()
    (lead,) = rows[rows["metric"] == "spearman_lead"].itertuples()
    at = scores["value"]
    assert lead.method == "SimCSE − GloVe", "the only two with printed scores"
    assert lead.value == pytest.approx(at["SimCSE"] - at["GloVe"])


def test_what_is_not_at_hand_is_said_with_where_it_goes(sentences, tmp_path):
    lines, missing = loaded(["tfidf", "fasttext", "use"], sentences[:50], Store(), weights=str(tmp_path))
    said = missing.set_index("method")["missing"]
    assert [line.name for line in lines] == [BASELINES["tfidf"]]
    assert "wiki-news-300d-1M.vec.zip" in said["fastText"] and "`fasttext`" in said["fastText"]
    assert "distiluse" in said[BASELINES["use"]] and "`weights`" in said[BASELINES["use"]]
    assert "stand-in" in BASELINES["use"]
    with pytest.raises(InputError, match="none of them is at hand"):
        loaded(["fasttext"], sentences[:50], Store())


def test_timed_sentences_are_distinct_and_drawn_by_the_seed(pairs):
    some = baselines.timed_texts(pairs, 10, seed=0)
    assert len(set(some)) == 10 and set(some) < set(data.texts_of(pairs))
    assert some == baselines.timed_texts(pairs, 10, seed=0) != baselines.timed_texts(pairs, 10, seed=1)
    assert len(baselines.timed_texts(pairs, 10_000, seed=0)) == len(set(data.texts_of(pairs)))


@pytest.mark.parametrize(("names", "words"), [(["bert"], "baseline"), (["tfidf", "tfidf"], "different")])
def test_unusable_names_are_refused(sentences, names, words):
    with pytest.raises(InputError, match=words):
        loaded(names, sentences[:50], Store())


MADE = {
    "n-gram TF-IDF": (10_000, 0.5, 100.0),
    "GloVe": (50, 0.4, 10.0),
    "SBERT": (128, 0.6, 1_000.0),
    "SimCSE": (128, 0.62, 1_100.0),
    "all-MiniLM-L6-v2": (384, 0.8, 10_000.0),
}


def rivals():
    rows = [{"method": "n-gram TF-IDF", "metric": "gb_per_million", "setting": "sparse", "value": 0.1}]
    for method, (dim, score, seconds) in MADE.items():
        at = {"method": method, "dim": dim}
        rows += [{**at, "dataset": d, "metric": "spearman", "value": score} for d in ("sickr", "stsb")]
        rows.append({**at, "metric": "gb_per_million", "setting": "dense", "value": 4 * dim / 1e3})
        rows.append({**at, "dataset": "stsb", "metric": "encode_seconds", "setting": "1 thread", "value": seconds})
    return make_rows(rows, seed=0, experiment="x")


def test_the_front_is_what_nothing_cheaper_beats():
    front = on_page("proposal_baselines", "pareto_front")["pareto_front"]
    assert front(rivals(), "gb_per_million") == ["n-gram TF-IDF", "SimCSE", "all-MiniLM-L6-v2"], "sparse counts"
    seconds = front(rivals(), "encode_seconds")
    assert seconds == ["GloVe", "n-gram TF-IDF", "SBERT", "SimCSE", "all-MiniLM-L6-v2"]
