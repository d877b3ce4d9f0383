"""Networks by their own names, beside those whose place they take, with full-size scores from recorded rows."""

import pandas as pd
import pytest

from repro.methods import shown
from repro.report import networks
from repro.report.tables import badge
from repro.rows import make_rows


@pytest.mark.parametrize(
    ("method", "backbone", "expected"),
    [
        ("SBERTbase-LP − SBERTbase", "repro-tiny", "repro-tiny after NLI, mapped − repro-tiny after NLI"),
        ("SBERTlarge", "all-MiniLM-L6-v2", "all-MiniLM-L6-v2"),
        ("Universal Sentence Encoder", "distiluse", "distiluse"),
        ("SBERTlarge-LP", "bert-large-nli-mean-tokens", "SBERTlarge, mapped"),
        ("PCA", "repro-tiny", "PCA"),
    ],
)
def test_a_key_of_the_paper_is_shown_as_the_network_that_was_measured(method, backbone, expected):
    assert shown(method, backbone) == expected


def test_generated_word_vectors_and_two_networks_of_one_method_are_told_apart():
    live, past = (
        make_rows([{"method": "Avg. GloVe embeddings", "backbone": "glove"}], data_source=s)
        for s in ("microworld", "local")
    )
    other = make_rows([{"method": "SBERTbase", "backbone": b} for b in ("a", "b")], data_source="local")
    assert networks.names(live, past, other) == {
        "Avg. GloVe embeddings": "word vectors of generated text, mean of words; GloVe, mean of words",
        "SBERTbase": "a after NLI; b after NLI",
    }


@pytest.fixture
def recorded(monkeypatch):
    """Recorded scores of four lines."""
    score = {"metric": "spearman", "dataset": "stsb"}
    lines = (
        ("SBERT", "repro-tiny", 0.42),
        ("SimCSE", "repro-tiny", 0.23),
        ("n-gram TF-IDF", "tfidf", 0.54),
        ("all-MiniLM-L6-v2", "all-MiniLM-L6-v2", 0.82),
        ("word2vec", "word2vec", 0.3),
    )
    rows = make_rows([{**score, "method": m, "backbone": b, "value": v} for m, b, v in lines], data_source="local")
    monkeypatch.setattr(networks, "recorded_rows", lambda name: rows if name == "proposal_baselines" else rows.iloc[:0])
    networks.full_size_scores.cache_clear()
    yield
    networks.full_size_scores.cache_clear()


@pytest.mark.parametrize(
    ("experiment", "backbone", "said"),
    [
        (
            "wang_table1",
            "repro-tiny",
            "repro-tiny (the paper: RoBERTa-base) 23.0 after SimCSE, 42.0 after NLI; counted",
        ),
        (
            "zhang_figure2",
            "all-MiniLM-L6-v2",
            "all-MiniLM-L6-v2 (the paper: all-mpnet-base-v2) 82.0 as published; counted",
        ),
        ("beyond_quantisation", "repro-tiny + SimCSE", ": repro-tiny + SimCSE 23.0 after SimCSE"),
    ],
)
def test_every_badge_says_in_whose_place_a_network_is_and_its_full_size_score_beside_tfidf(
    recorded, experiment, backbone, said
):
    rows = make_rows([{"backbone": backbone, "value": 0.5}], experiment=experiment, data_source="local", seed=0)
    shown_badge = badge(rows)
    assert said in shown_badge.markdown and said in shown_badge.html
    assert "counted words (n-gram TF-IDF) 54.0" in shown_badge.markdown


def test_networks_without_a_place_or_a_score_have_no_line(recorded):
    for backbone in ("word2vec", "roberta-base", pd.NA):
        rows = make_rows([{"backbone": backbone}], experiment="proposal_baselines")
        assert networks.networks_line(rows) == ""
