"""Table 3 and Figure 6 on a small scale: what each search is scored by, generated answers, and what is timed."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from repro import data
from repro.data import samples
from repro.data.sampling import take
from repro.evaluation import answer_in_context, retrieval_scores
from repro.evaluation.retrieve import top_documents
from repro.methods import ESE, MRL, RAW
from repro.papers.ese.lines import sizes
from repro.rows import make_rows
from repro.sets import Retrieval
from repro.store import Store
from repro.types import InputError
from rivals import generator

METRICS = ("hit@1", "recall@10", "answer_in_context")


@pytest.fixture(scope="module")
def asked():
    return samples.load_questions("microworld", questions=30, paragraphs=60)


@pytest.fixture(scope="module")
def page(page_functions, tmp_path_factory):
    """Functions of Table 3's page; what is searched lies in its store."""
    store = Store(tmp_path_factory.mktemp("use"))
    return SimpleNamespace(**page_functions("ese_table3_rag", page=SimpleNamespace(store=store), dims=[4, 16], seed=0))


@pytest.fixture(scope="module")
def searches(page, untrained_lines, asked):
    return page.search_lines(untrained_lines, asked)


def test_fewer_questions_and_paragraphs_keep_every_gold_one(asked, monkeypatch):
    whole = samples.load_questions("microworld")
    gold = {d for judged in asked.qrels.values() for d, relevance in judged.items() if relevance > 0}
    assert len(whole.queries) == 200 and len(asked.queries) == 30 and len(asked.documents) == 60
    assert gold <= set(asked.document_ids) <= set(whole.document_ids)
    assert set(samples.load_questions("microworld", questions=30, paragraphs=1).document_ids) == gold
    texts = dict(zip(whole.document_ids, whole.documents, strict=True))
    assert all(texts[d] == text for d, text in zip(asked.document_ids, asked.documents, strict=True))
    with pytest.raises(InputError, match="paragraphs is -1"):
        samples.load_questions("microworld", paragraphs=-1)
    given = Retrieval("x", "local", ("q",), ("who?",), ("a", "b"), ("A.", "B."), {"q": {"a": 1, "b": 0}}, ("A",))
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


def test_every_line_is_searched_at_two_depths_and_all_sizes(page, searches, untrained_lines, asked):
    assert [(s.line.name, s.layer, s.dim) for s in searches] == [
        (line.name, layer, dim) for line in untrained_lines for layer in (1, 2) for dim in (4, 16, 32)
    ]
    for s in searches:
        states = s.line.states((*asked.queries, *asked.documents), page.page.store).at(s.layer, s.dim)
        Q, C = states[asked.queries], states[asked.documents]
        np.testing.assert_array_equal(s.top, top_documents(Q, C)[:, 0])
        expected = retrieval_scores(Q, C, asked.qrels, query_ids=asked.query_ids, corpus_ids=asked.document_ids)
        held = [answer_in_context(asked.documents[d], a) for d, a in zip(s.top, asked.answers, strict=True)]
        expected |= {"hit@1": expected["recall@1"], "answer_in_context": np.mean(held)}  # one gold paragraph each
        for metric, items in s.items.items():
            assert page.score(items, metric).value == pytest.approx(expected[metric])


def test_yes_and_no_have_no_place_in_a_context_and_chance_is_the_mean_of_all_paragraphs(page, asked):
    held = page.answers_held(replace(asked, answers=("Yes", "no", *asked.answers[2:])), np.zeros(30, int))
    assert np.isnan(held[:2]).all() and np.isin(held[2:], (0.0, 1.0)).all()
    held = np.mean([page.answers_held(asked, np.full(30, row)) for row in range(60)])
    expected = {"answer_in_context": pytest.approx(held), "hit@1": pytest.approx(1 / 60), "recall@10": 10 / 60}
    assert page.chance(asked) == expected


def test_leads_are_differences_of_scores_and_a_line_leads_its_twin_by_nothing(page, searches, untrained_lines, asked):
    rows = make_rows(page.search_rows(searches))
    scores = rows[rows["metric"].isin(METRICS)]
    assert len(scores) == 3 * 2 * 3 * 3
    assert ((scores["ci_low"] <= scores["value"]) & (scores["value"] <= scores["ci_high"])).all()
    leads = rows[rows["metric"] == "hit@1_lead"]
    assert set(leads["method"]) == {"MRL − RAW", "ESE − RAW", "ESE − MRL"} and len(leads) == 3 * 2 * 3
    value = scores.set_index(["metric", "method", "layer", "dim"])["value"]
    for row in leads.itertuples():
        a, b = row.method.split(" − ")
        expected = value["hit@1", a, row.layer, row.dim] - value["hit@1", b, row.layer, row.dim]
        assert row.value == pytest.approx(expected)
    drops = rows[rows["metric"] == "hit@1_lead_drop"].set_index(["method", "layer", "dim"])["value"]
    at = leads.set_index(["method", "layer", "dim"])["value"]
    assert drops["ESE − RAW", 2, 32] == pytest.approx(at["ESE − RAW", 2, 4] - at["ESE − RAW", 2, 32])
    twins = page.search_lines([untrained_lines[1], replace(untrained_lines[1], name=ESE)], asked)
    same = make_rows(page.search_rows(twins))
    assert (same.loc[same["metric"].str.contains("_lead"), "value"] == 0).all()


@pytest.fixture
def prompts_seen(monkeypatch):
    """Prompts that reach a generator, which repeats the context's second word, then starts a question of its own."""
    seen = []

    def generate(prompts, *, max_new_tokens):
        seen.extend(prompts)
        return [f"\n The {prompt.split('Context: ')[1].split()[1]}.\n\nQuestion: what else?" for prompt in prompts]

    monkeypatch.setattr(generator, "load_generator", lambda name: SimpleNamespace(generate=generate))
    return seen


def test_each_question_with_one_paragraph_is_answered_once(prompts_seen, page, searches, asked):
    pairs = {(i, row) for s in searches for i, row in enumerate(s.top)}
    for _ in range(2):  # the second time answers come from the store
        page.add_exact_match(searches, asked, "echo")
        assert len(prompts_seen) == len(set(prompts_seen)) == len(pairs)
    for s in searches:
        said = [asked.documents[row].split()[1].strip(".").lower() for row in s.top]
        right = [float(a == b.lower()) for a, b in zip(said, asked.answers, strict=True)]
        np.testing.assert_array_equal(s.items.pop("exact_match"), right)


def test_other_weights_under_the_same_name_answer_anew(prompts_seen, page, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    prompts = [page.PROMPT.format(context="a b", question="c")]
    for weights, times in ((b"first", 1), (b"first", 1), (b"second", 2)):
        (tmp_path / "model.safetensors").write_bytes(weights)
        assert generator.answers_to(prompts, str(tmp_path), page.page.store) == {prompts[0]: "The b."}
        assert len(prompts_seen) == times


# Figure 6


def test_every_depth_and_size_of_every_line_is_timed(page_functions, untrained_lines):
    pytest.importorskip("faiss", reason="the extra eval brings it")
    pool = list(take(data.load("stsb", source="microworld"), 40).texts1)
    given = {"pool": pool, "timed_texts": pool[:5], "vectors": 200, "dims": [4, 8], "seed": 0}
    page = page_functions("ese_figure6_efficiency", page=SimpleNamespace(store=Store()), **given)

    def in_turns(works, repeats, *, tries):
        for prepare in works.values():
            prepare()()
        return {key: np.array([1.0, 3.0]) * (1 + key[0]) * key[1] for key in works}

    page["in_turns"] = in_turns
    taken = page["seconds_of"](untrained_lines, 2, 1)
    assert set(taken["encode"]) | set(taken["search"]) == {(i, at) for i in range(3) for at in (1, 2, 4, 8, 32)}
    rows = make_rows(page["timing_rows"](untrained_lines, taken))
    at = rows.set_index(["metric", "method"])
    encode = rows[rows["metric"] == "encode_seconds"]
    assert len(encode) == 6 and encode.iloc[3][["value", "ci_low", "ci_high"]].tolist() == [4.0, 2.0, 6.0]
    total = at.loc[("total_seconds", MRL)].set_index("dim").loc[8]
    assert total["value"] == np.median(taken["encode"][1, 2] + taken["search"][1, 8]) and total["layer"] == 2
    ratios = rows[rows["metric"] == "encode_ratio"]
    assert set(ratios["method"]) == {f"{MRL} / {RAW}", f"{ESE} / {RAW}", f"{ESE} / {MRL}"} and len(ratios) == 6
    search = at.loc[("search_ratio", f"{ESE} / {MRL}")]
    assert search["value"].tolist() == pytest.approx([1.5] * 4)
    assert search["setting"].iloc[-1].endswith("mean over sizes")
    assert at.loc[("size_ratio", RAW), "value"] == pytest.approx(34 / 6)
    X = np.random.default_rng(0).normal(size=(7, 16)).astype(np.float32)
    near, same = page["repeated"](X, 100), np.resize(X, (100, 16))
    assert near.shape == (100, 16) and len(np.unique(near, axis=0)) == 100, "near theirs but never equal"
    away = np.linalg.norm(near - same, axis=1) / np.linalg.norm(same, axis=1)
    assert away.min() > 0.003 and away.max() < 0.025
    with pytest.raises(InputError, match="vectors is 0"):
        page["repeated"](X, 0)
