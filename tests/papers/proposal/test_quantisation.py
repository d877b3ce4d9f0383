"""Equal bytes: every way fills its budget, coding at full precision changes nothing, and
differences are paired.
"""

from itertools import product

import numpy as np
import pytest

from repro import data
from repro.evaluation import retrieval_scores, sts_spearman
from repro.papers.proposal import quantisation
from repro.papers.proposal.quantisation import FIRST, HAMMING, PCA, ROTATED, SHORTLIST
from repro.runs.lines import TextTable
from repro.types import InputError

N, D = 60, 32
SHARED = {"experiment": "x", "backbone": "b", "data_source": "local", "profile": "embedded"}

FIT = [f"fit {i}" for i in range(200)]
LEFT, RIGHT = (tuple(f"{side} sentence {i}" for i in range(N)) for side in ("left", "right"))
SCORES = np.random.default_rng(1).uniform(0, 5, N)
PAIRS = data.ScoredPairs("stsb", "local", "test", LEFT, RIGHT, SCORES, np.array(["x"] * N, object))
QUERIES, DOCUMENTS = (tuple(f"{what} {i}" for i in range(40)) for what in ("query", "document"))
QRELS = {q: {d: 1.0} for q, d in zip(QUERIES, DOCUMENTS, strict=True)}
QUESTIONS = data.Retrieval("hotpotqa", "local", QUERIES, QUERIES, DOCUMENTS, DOCUMENTS, QRELS)


@pytest.fixture(scope="module")
def table():
    """Pairs that are nearer the higher their score, queries near their documents; large first
    columns.
    """
    rng = np.random.default_rng(0)
    scale = np.geomspace(3, 0.3, D)
    first = rng.normal(size=(N, D))
    second = first + rng.normal(size=(N, D)) * (5.5 - SCORES[:, None]) / 4
    documents = rng.normal(size=(40, D))
    queries = documents + 0.4 * rng.normal(size=(40, D))
    fit = rng.normal(size=(200, D))
    texts = [*data.texts_of(PAIRS), *data.texts_of(QUESTIONS), *FIT]
    X = np.concatenate([first, second, queries, documents, fit]) * scale
    return TextTable({text: i for i, text in enumerate(texts)}, X.astype(np.float32))


@pytest.fixture(scope="module")
def rows(table):
    bench = quantisation.Bench.of(table, FIT, PAIRS, QUESTIONS, 0)
    return quantisation.byte_rows(bench, [4, 16, 128], shortlist=20, **SHARED)


def value(rows, metric, method, setting=None):
    own = rows[(rows["metric"] == metric) & (rows["method"] == method)]
    own = own if setting is None else own[own["setting"] == setting]
    (found,) = own["value"]
    return found


def test_every_way_fills_its_budget_exactly():
    found = quantisation.ways(
        384,
        [48, 384],
        ["float32", "float16", "int8", "int4", "binary"],
        [FIRST, PCA],
        fit=100,
    )
    at = {(way.reducer, way.bytes, way.level): way.dim for way in found}
    first = {
        level: dim for (reducer, size, level), dim in at.items() if (reducer, size) == (FIRST, 48)
    }
    assert first == {"float32": 12, "float16": 24, "int8": 48, "int4": 96, "binary": 384}
    assert (FIRST, 384, "int4") not in at and at[FIRST, 384, "int8"] == 384
    assert (PCA, 48, "binary") not in at and at[PCA, 48, "int4"] == 96, (
        "a hundred rows have 99 components"
    )
    with pytest.raises(InputError, match=r"no level spends \[1000\] bytes on at most 8 numbers"):
        quantisation.ways(8, [1000], ["int8"], [FIRST], fit=100)


def test_all_columns_in_floats_score_as_the_embeddings_do(rows, table):
    everything = f"{FIRST}, 128 bytes"
    X = [table[list(side)].astype(np.float64) for side in (LEFT, RIGHT)]
    assert value(rows, "spearman", "float32", everything) == pytest.approx(
        sts_spearman(*X, SCORES),
        abs=1e-3,
    )
    assert value(rows, "spearman", "full size") == pytest.approx(sts_spearman(*X, SCORES), abs=1e-9)
    ids = {"query_ids": QUERIES, "corpus_ids": DOCUMENTS}
    Q, C = (table[list(side)].astype(np.float64) for side in (QUERIES, DOCUMENTS))
    expected = retrieval_scores(Q, C, QRELS, ks=(10,), **ids)["ndcg@10"]
    assert value(rows, "ndcg@10", "float32", everything) == pytest.approx(expected, abs=1e-6)
    assert value(rows, "neighbours_kept", "float32", everything) == pytest.approx(1, abs=1e-9)


def test_a_rotation_a_shortlist_and_float_queries_help_bits_alone(rows):
    for metric, size in product(("spearman", "ndcg@10", "neighbours_kept"), (16, 128)):
        turned, straight = (
            value(rows, metric, "float32", f"{r}, {size} bytes") for r in (ROTATED, PCA)
        )
        assert turned == pytest.approx(straight, abs=2e-3)
    turned, straight = (
        value(rows, "neighbours_kept", "binary", f"{r}, 4 bytes") for r in (ROTATED, PCA)
    )
    assert turned > straight
    own = {
        m: value(rows, "neighbours_kept", m, f"{ROTATED}, 4 bytes")
        for m in ("binary", HAMMING, SHORTLIST)
    }
    assert own[HAMMING] < own["binary"] and own[HAMMING] < own[SHORTLIST]


def test_a_shortlist_of_everything_is_the_full_search_and_a_short_one_loses(table):
    bench = quantisation.Bench.of(table, FIT, PAIRS, QUESTIONS, 0)
    signs = np.sign(bench.X[:, :6])
    full, bits = bench.search(bench.X, bench.X), bench.search(signs, signs)
    everything = bench.rescored(signs, 10_000)
    assert everything["ndcg@10"] == pytest.approx(full["ndcg@10"], abs=1e-12)
    few = bench.rescored(signs, 12)
    assert bits["ndcg@10"].mean() < few["ndcg@10"].mean() <= full["ndcg@10"].mean()
    one = bench.rescored(signs, 1)["ndcg@10"]
    assert set(one.round(9)) == {0.0, 1.0}, "the first by bits alone, or nothing"


def test_changes_are_of_each_way_from_the_full_size_on_the_same_items(rows):
    for metric in quantisation.SCORES:
        changes = rows[rows["metric"] == f"{metric}_change"]
        for row in changes.itertuples():
            scores = [
                value(rows, metric, row.method, row.setting),
                value(rows, metric, "full size"),
            ]
            assert row.value == pytest.approx(scores[0] - scores[1], abs=1e-12)
        everything = changes.set_index(["method", "setting"]).loc[
            ("float32", f"{FIRST}, 128 bytes")
        ]
        assert everything["ci_low"] == pytest.approx(0, abs=2e-3), "nothing is lost, and surely not"


def test_leads_are_differences_at_equal_bytes(rows):
    leads = rows[rows["metric"] == "spearman_lead"]
    assert "int8 − float32" in set(leads["method"]) and "float32 − int8" not in set(leads["method"])
    lead = leads[
        (leads["method"] == "int8 − float32") & (leads["setting"] == f"{PCA}, 16 bytes")
    ].iloc[0]
    parts = [value(rows, "spearman", level, f"{PCA}, 16 bytes") for level in ("int8", "float32")]
    assert (
        lead["value"] == pytest.approx(parts[0] - parts[1])
        and lead["ci_low"] < lead["value"] < lead["ci_high"]
    )
    assert not set(leads["setting"]) & {f"{PCA}, 128 bytes"}, (
        "one level alone has nobody to be compared with"
    )
