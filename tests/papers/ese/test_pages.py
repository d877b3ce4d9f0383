"""What ESE's pages show to the reader: functions of their cells, figures and tables that they
share.
"""

from dataclasses import replace
from math import log
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from repro import data
from repro.data import samples
from repro.data.sampling import take
from repro.evaluation import answer_in_context, retrieval_scores
from repro.evaluation.of_rows import estimate
from repro.evaluation.search import top_documents
from repro.losses import compress_target
from repro.methods import AVERAGE, ESE, MRL, RAW
from repro.papers.ese import reading
from repro.papers.ese.differences import difference_table, rank_table
from repro.papers.ese.lines import compression_size, line_config, sizes
from repro.paths import project_root
from repro.results import recorded_rows
from repro.rows import make_rows
from repro.sets import Retrieval
from repro.settings import AngleConfig, TrainConfig
from repro.store import Store
from repro.training.ese import base_loss
from repro.types import InputError
from rivals import generator
from shown_code import on_page

rng = np.random.default_rng(0)

AUDIT = on_page("ese_table2_ablation", compressed=4)


def test_a_compressed_size_of_none_is_the_papers_share_and_one_of_zero_is_refused():
    assert line_config(TrainConfig(), ESE).dim == compression_size(128)
    for size in (0, -1):
        with pytest.raises(InputError, match=f"dim is {size}: expected at least 1"):
            line_config(TrainConfig(), ESE, size=size)


def test_a_sentence_of_few_values_has_a_matrix_of_few_directions():
    x = torch.tensor([1.0, 1.0, -1.0, -1.0, 0.5, 0.5], dtype=torch.float64)
    S = AUDIT["singular_values"](torch.outer(x, x))
    A = torch.softmax(torch.outer(x, x) / 6**0.5, dim=1)
    np.testing.assert_allclose(S, torch.linalg.svdvals(A), atol=1e-12)
    assert (1e-7 * S[0] < S).sum() == 3, "three distinct values, three distinct rows"
    flat = AUDIT["singular_values"](torch.zeros(6, 6, dtype=torch.float64))
    assert flat[0] == pytest.approx(1.0) and flat[1] < 1e-12, "all rows uniform"


def test_the_exact_target_is_the_same_twice_and_a_randomised_one_is_not():
    X = torch.from_numpy(np.random.default_rng(0).normal(size=(80, 24)))
    twice = (
        [compress_target(X, 8, decomposition=how, seed=seed) for seed in (0, 1)]
        for how in ("eigh", "randomized")
    )
    exact, randomised = (AUDIT["agreement"](*targets) for targets in twice)
    assert exact.pop("sign_flips") == 0 and list(exact.values()) == pytest.approx([1.0] * 3)
    assert (
        0 < randomised["sign_flips"] < 1
        and randomised["last_cosine"] < 0.999
        and randomised["subspace_overlap"] < 1
    )


def test_a_constant_layer_has_the_loss_of_equal_scores_and_nothing_to_move_it():
    n, rng = 8, np.random.default_rng(0)
    labels = torch.from_numpy((np.arange(n) < 3).astype(np.float32))
    loss = base_loss(
        TrainConfig(objective="angle", angle=AngleConfig()),
        labels,
        torch.arange(2 * n),
    )
    AUDIT["loss"] = loss
    constant = AUDIT["gradients"](torch.ones(2 * n, 4, dtype=torch.float64))
    other = AUDIT["gradients"](torch.from_numpy(rng.normal(size=(2 * n, 4))))
    # Both rankings of equal scores are ln(1 + pairs of unlike labels), and all other texts are
    # equally likely partners
    ranking = 2 * log(1 + 3 * (n - 3))
    assert ranking <= constant["base_loss"] <= ranking + 3 / n * log(2 * n - 1) + 1e-6
    # Each pair of unlike labels pulls as much as it pushes: nothing is left to move the one vector
    assert constant["shared_gradient"] < 1e-9 < other["base_gradient"]


def test_a_map_holds_both_sets_and_follows_its_seed():
    joint_map, X = (
        on_page("ese_figure7_compression", perplexity=30.0)["joint_map"],
        rng.normal(size=(30, 8)),
    )
    first = joint_map(X, 4, 0, False)
    assert first.shape == (60, 2) and np.isfinite(first).all()
    np.testing.assert_array_equal(first, joint_map(X, 4, 0, False))
    assert not np.allclose(first, joint_map(X, 4, 1, False))
    with pytest.raises(InputError, match="dim is 9: expected 1 to 8"):
        joint_map(X, 9, 0, False)


def test_the_t_test_says_what_its_unit_is():
    t_tests = on_page("ese_table1_sts", methods=[RAW, ESE])["t_tests"]
    trainings = [(RAW, 0), (ESE, 0), (ESE, 1), (ESE, 2)]
    cells = [
        (*training, layer, dataset)
        for training in trainings
        for layer in (1, 2, 3)
        for dataset in "ab"
    ]
    rows = pd.DataFrame(cells, columns=["method", "seed", "layer", "dataset"])
    rows["value"] = (
        0.3 + 0.39 * (rows["method"] == ESE) + 0.01 * rows["layer"] * (rows["method"] == ESE)
    )
    last = rows[rows["layer"] == 1].assign(layer=4)
    rows = pd.concat([rows, last]).assign(metric="spearman", dim=8, backbone="net")
    table = t_tests(rows)[["unit", "number", "mean", "p"]].astype(str)
    assert sorted(table.itertuples(index=False, name=None)) == [
        ("layers", "3", "41.00 [38.52, 43.48]", "2.0e-04"),
        ("seeds", "3", "41.00 [41.00, 41.00]", "0.0e+00"),
        ("sets", "2", "too few", "–"),
    ]
    assert t_tests(rows[rows["method"] == RAW]).empty


def test_the_control_bounds_what_a_longer_training_costs_as_the_page_says():
    text = (project_root() / "notebooks" / "ese_table1_sts.md").read_text(encoding="utf-8")
    leads = reading.at_places(recorded_rows("ese_table1_longer"), "spearman_lead")
    over_control = estimate(reading.only(leads, method="ESE − RAW + NLI", place="last layer"))
    assert f"is sure within {max(-over_control.low, over_control.high):.1f} points" in text


def test_each_further_layer_adds_to_ese_after_a_longer_training():
    rows = reading.by_pairs(recorded_rows("ese_figure3"), "all-MiniLM-L6-v2", "ese_figure3_longer")
    few, all_pairs = (of_length for _, of_length in rows.groupby("pairs", sort=False))
    assert (few["pairs"].iloc[0], all_pairs["pairs"].iloc[0]) == ("4,800 pairs", "44,515 pairs")
    assert "RAW" in set(few["method"]) & set(all_pairs["method"]), "untouched rows stand in both"
    scores = reading.only(all_pairs, metric="spearman", method="ESE", dim=384, dataset=AVERAGE)
    assert scores.groupby("layer")["value"].mean().diff().dropna().gt(0).all()


def test_tables_of_differences_and_ranks():
    at = {
        "method": "embeddings − default",
        "metric": "spearman_lead",
        "dataset": AVERAGE,
        "layer": 2,
    }
    rows = [
        {**at, "dim": dim, "value": -0.02, "ci_low": -0.03, "ci_high": -0.01} for dim in (16, 64)
    ]
    rank = {"method": "E4", "layer": 1, "dim": 8, "setting": "RAW, per sentence"}
    rows += [{**rank, "metric": "numerical_rank", "value": 4, "ci_low": 3, "ci_high": 5}]
    rows += [{**rank, "metric": "second_share", "value": 0.01}]
    rows = make_rows(rows, backbone="net", seed=0)
    table = difference_table(rows, {"embeddings": "default", "max-k": "default"}, "live")
    assert list(table.columns) == ["variant", "against", "place", "live, 64 dims", "live, 16 dims"]
    assert table["live, 64 dims"].tolist() == ["-2.00 [-3.00, -1.00]"], (
        "max-k was not compared with the default"
    )
    assert difference_table(rows, {"a": "b"}, "live").empty
    ranks = rank_table(rows)
    assert ranks.loc[0, ["rank, median", "smallest", "largest", "second by first"]].tolist() == [
        4,
        3,
        5,
        "1.0e-02",
    ]


# Table 3 and Figure 6


METRICS = ("hit@1", "recall@10", "answer_in_context")


@pytest.fixture(scope="module")
def asked():
    return samples.load_questions("microworld", questions=30, paragraphs=60)


@pytest.fixture(scope="module")
def table3(store):
    """Functions of Table 3's page; what is searched lies in its store."""
    return SimpleNamespace(
        **on_page("ese_table3_rag", page=SimpleNamespace(store=store), dims=[4, 16], seed=0)
    )


@pytest.fixture(scope="module")
def searches(table3, untrained_lines, asked):
    return table3.search_lines(untrained_lines, asked)


def test_fewer_questions_and_paragraphs_keep_every_gold_one(asked, monkeypatch):
    whole = samples.load_questions("microworld")
    gold = {
        d for judged in asked.qrels.values() for d, relevance in judged.items() if relevance > 0
    }
    texts = dict(zip(whole.document_ids, whole.documents, strict=True))
    assert (
        len(asked.queries) == 30 and len(asked.documents) == 60 and gold <= set(asked.document_ids)
    )
    assert [texts[d] for d in asked.document_ids] == list(asked.documents)
    assert (
        set(samples.load_questions("microworld", questions=30, paragraphs=1).document_ids) == gold
    )
    given = Retrieval(
        "x",
        "local",
        ("q",),
        ("who?",),
        ("a", "b"),
        ("A.", "B."),
        {"q": {"a": 1, "b": 0}},
        ("A",),
    )
    monkeypatch.setattr(samples.data, "load", lambda *_, **__: given)
    kept = samples.load_questions("local", paragraphs=1)
    assert kept.document_ids == ("a",) and kept.qrels == {"q": {"a": 1}}
    monkeypatch.setattr(samples.data, "load", lambda *_, **__: replace(given, answers=None))
    with pytest.raises(InputError, match="no answers"):
        samples.load_questions("local")


def test_sizes():
    assert sizes(1024) == [64, 128, 256, 512, 768, 1024] and sizes(384) == [24, 48, 96, 192, 384]
    assert sizes(32, [64, 8, 8]) == [8, 32] and sizes(4) == [2, 4]
    with pytest.raises(InputError, match="dim is 0"):
        sizes(32, [0])


def test_every_line_is_searched_at_two_depths_and_all_sizes(
    table3,
    searches,
    untrained_lines,
    asked,
):
    places = [
        (line.name, layer, dim)
        for line in untrained_lines
        for layer in (1, 2)
        for dim in (4, 16, 32)
    ]
    assert [(s.line.name, s.layer, s.dim) for s in searches] == places
    for s in searches:
        states = s.line.states((*asked.queries, *asked.documents), table3.page.store).at(
            s.layer,
            s.dim,
        )
        Q, C = states[asked.queries], states[asked.documents]
        np.testing.assert_array_equal(s.top, top_documents(Q, C)[:, 0])
        expected = retrieval_scores(
            Q,
            C,
            asked.qrels,
            query_ids=asked.query_ids,
            corpus_ids=asked.document_ids,
        )
        held = [
            answer_in_context(asked.documents[d], a)
            for d, a in zip(s.top, asked.answers, strict=True)
        ]
        # One gold paragraph each
        expected |= {"hit@1": expected["recall@1"], "answer_in_context": np.mean(held)}
        for metric, items in s.items.items():
            assert table3.score(items, metric).value == pytest.approx(expected[metric])


def test_yes_and_no_have_no_place_in_a_context_and_chance_is_the_mean_of_all_paragraphs(
    table3,
    asked,
):
    held = table3.answers_held(
        replace(asked, answers=("Yes", "no", *asked.answers[2:])),
        np.zeros(30, int),
    )
    assert np.isnan(held[:2]).all() and np.isin(held[2:], (0.0, 1.0)).all()
    held = np.mean([table3.answers_held(asked, np.full(30, row)) for row in range(60)])
    expected = {
        "answer_in_context": pytest.approx(held),
        "hit@1": pytest.approx(1 / 60),
        "recall@10": 10 / 60,
    }
    assert table3.chance(asked) == expected


def test_leads_are_differences_of_scores_and_a_line_leads_its_twin_by_nothing(
    table3,
    searches,
    untrained_lines,
    asked,
):
    rows = make_rows(table3.search_rows(searches))
    scores = rows[rows["metric"].isin(METRICS)]
    assert len(scores) == 3 * 2 * 3 * 3
    assert ((scores["ci_low"] <= scores["value"]) & (scores["value"] <= scores["ci_high"])).all()
    leads = rows[rows["metric"] == "hit@1_lead"]
    assert (
        set(leads["method"]) == {"MRL − RAW", "ESE − RAW", "ESE − MRL"} and len(leads) == 3 * 2 * 3
    )
    value = scores.set_index(["metric", "method", "layer", "dim"])["value"]
    for row in leads.itertuples():
        a, b = row.method.split(" − ")
        expected = value["hit@1", a, row.layer, row.dim] - value["hit@1", b, row.layer, row.dim]
        assert row.value == pytest.approx(expected)
    drops = rows[rows["metric"] == "hit@1_lead_drop"].set_index(["method", "layer", "dim"])["value"]
    at = leads.set_index(["method", "layer", "dim"])["value"]
    assert drops["ESE − RAW", 2, 32] == pytest.approx(
        at["ESE − RAW", 2, 4] - at["ESE − RAW", 2, 32]
    )
    twins = table3.search_lines([untrained_lines[1], replace(untrained_lines[1], name=ESE)], asked)
    same = make_rows(table3.search_rows(twins))
    assert (same.loc[same["metric"].str.contains("_lead"), "value"] == 0).all()


@pytest.fixture
def prompts_seen(monkeypatch):
    """Prompts that reach a generator, which repeats the context's second word, then starts a
    question of its own.
    """
    seen = []

    def generate(prompts, *, max_new_tokens):
        seen.extend(prompts)
        return [
            f"\n The {prompt.split('Context: ')[1].split()[1]}.\n\nQuestion: what else?"
            for prompt in prompts
        ]

    monkeypatch.setattr(
        generator, "load_generator", lambda name: SimpleNamespace(generate=generate)
    )
    return seen


def test_each_question_with_one_paragraph_is_answered_once(
    prompts_seen, table3, searches, asked, tmp_path
):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    pairs = {(i, row) for s in searches for i, row in enumerate(s.top)}
    for _ in range(2):  # The second time answers come from the store
        table3.add_exact_match(searches, asked, str(tmp_path))
        assert len(prompts_seen) == len(set(prompts_seen)) == len(pairs)
    for s in searches:
        said = [asked.documents[row].split()[1].strip(".").lower() for row in s.top]
        right = [float(a == b.lower()) for a, b in zip(said, asked.answers, strict=True)]
        np.testing.assert_array_equal(s.items.pop("exact_match"), right)


def test_other_weights_under_the_same_name_answer_anew(prompts_seen, table3, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    prompts = [table3.PROMPT.format(context="a b", question="c")]
    for weights, times in ((b"first", 1), (b"first", 1), (b"second", 2)):
        (tmp_path / "model.safetensors").write_bytes(weights)
        assert generator.answers_to(prompts, str(tmp_path), table3.page.store) == {
            prompts[0]: "The b.."
        }
        assert len(prompts_seen) == times


def test_every_depth_and_size_of_every_line_is_timed(untrained_lines):
    pytest.importorskip("faiss", reason="the extra eval brings it")
    pool = list(take(data.load("stsb", source="microworld"), 40).texts1)
    given = {"pool": pool, "timed_texts": pool[:5], "vectors": 200, "dims": [4, 8], "seed": 0}
    page = on_page("ese_figure6_efficiency", page=SimpleNamespace(store=Store()), **given)

    def in_turns(works, repeats, *, tries):
        for prepare in works.values():
            prepare()()
        return {key: np.array([1.0, 3.0]) * (1 + key[0]) * key[1] for key in works}

    page["in_turns"] = in_turns
    taken = page["seconds_of"](untrained_lines, 2, 1)
    assert set(taken["encode"]) | set(taken["search"]) == {
        (i, at) for i in range(3) for at in (1, 2, 4, 8, 32)
    }
    rows = make_rows(page["timing_rows"](untrained_lines, taken))
    at = rows.set_index(["metric", "method"])
    encode = rows[rows["metric"] == "encode_seconds"]
    assert len(encode) == 6 and encode.iloc[3][["value", "ci_low", "ci_high"]].tolist() == [
        4.0,
        2.0,
        6.0,
    ]
    total = at.loc[("total_seconds", MRL)].set_index("dim").loc[8]
    assert (
        total["value"] == np.median(taken["encode"][1, 2] + taken["search"][1, 8])
        and total["layer"] == 2
    )
    ratios = rows[rows["metric"] == "encode_ratio"]
    assert (
        set(ratios["method"]) == {f"{MRL} / {RAW}", f"{ESE} / {RAW}", f"{ESE} / {MRL}"}
        and len(ratios) == 6
    )
    search = at.loc[("search_ratio", f"{ESE} / {MRL}")]
    assert search["value"].tolist() == pytest.approx([1.5] * 4)
    assert search["setting"].iloc[-1].endswith("mean over sizes")
    assert at.loc[("size_ratio", RAW), "value"] == pytest.approx(34 / 6)
    X = np.random.default_rng(0).normal(size=(7, 16)).astype(np.float32)
    near, same = page["repeated"](X, 100), np.resize(X, (100, 16))
    assert near.shape == (100, 16) and len(np.unique(near, axis=0)) == 100, (
        "near theirs but never equal"
    )
    away = np.linalg.norm(near - same, axis=1) / np.linalg.norm(same, axis=1)
    assert away.min() > 0.003 and away.max() < 0.025
