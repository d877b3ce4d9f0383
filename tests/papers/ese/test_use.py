"""Table 3 and Figure 6 on a small scale: what each search is scored by, generated answers, and what is timed."""

from dataclasses import replace

import numpy as np
import pytest

from repro import data
from repro.data.sampling import take
from repro.evaluation import answer_in_context, retrieval_scores
from repro.evaluation.retrieve import top_documents
from repro.methods import ESE, MRL, RAW
from repro.objectives import TrainConfig
from repro.papers.ese import use
from repro.papers.ese.lines import raw_line
from repro.rows import make_rows
from repro.runs import lines as questions
from repro.sets import Retrieval
from repro.store import Store
from repro.types import InputError

METRICS = ("hit@1", "recall@10", "answer_in_context")


@pytest.fixture(scope="module")
def asked():
    return questions.load_questions("microworld", questions=30, paragraphs=60)


@pytest.fixture
def searches(untrained_lines, asked):
    return use.search_lines(untrained_lines, asked, Store(), dims=[4, 16])


def test_fewer_questions_and_paragraphs_keep_every_gold_one(asked):
    whole, part = (questions.load_questions("microworld", questions=n) for n in (None, 30))
    assert len(whole) == 200 and len(part) == 30 and part.documents == whole.documents
    gold = {d for judged in asked.qrels.values() for d, relevance in judged.items() if relevance > 0}
    assert asked.queries == part.queries and asked.answers == part.answers and len(asked.documents) == 60
    assert gold <= set(asked.document_ids) <= set(whole.document_ids) and asked.qrels == part.qrels
    assert set(questions.load_questions("microworld", questions=30, paragraphs=1).document_ids) == gold
    texts = dict(zip(whole.document_ids, whole.documents, strict=True))
    assert all(texts[d] == text for d, text in zip(asked.document_ids, asked.documents, strict=True))
    assert questions.load_questions("microworld", questions=30, paragraphs=60, seed=1).queries != asked.queries


def test_distractors_that_are_left_out_leave_the_judgements_and_questions_need_answers(monkeypatch):
    with pytest.raises(InputError, match="paragraphs is -1"):
        questions.load_questions("microworld", paragraphs=-1)
    given = Retrieval("x", "local", ("q",), ("who?",), ("a", "b"), ("A.", "B."), {"q": {"a": 1, "b": 0}}, ("A",))
    monkeypatch.setattr(questions.data, "load", lambda *_, **__: given)
    kept = questions.load_questions("local", paragraphs=1)
    assert kept.document_ids == ("a",) and kept.qrels == {"q": {"a": 1}}
    monkeypatch.setattr(questions.data, "load", lambda *_, **__: replace(given, answers=None))
    with pytest.raises(InputError, match="no answers"):
        questions.load_questions("local")


def test_sizes():
    assert use.sizes(1024) == [64, 128, 256, 512, 768, 1024] and use.sizes(384) == [24, 48, 96, 192, 384]
    assert use.sizes(32, [64, 8, 8]) == [8, 32] and use.sizes(4) == [2, 4]
    with pytest.raises(InputError, match="dim is 0"):
        use.sizes(32, [0])


def test_every_line_is_searched_at_two_depths_and_all_sizes(searches, untrained_lines, asked):
    assert [(s.line.name, s.layer, s.dim) for s in searches] == [
        (line.name, layer, dim) for line in untrained_lines for layer in (1, 2) for dim in (4, 16, 32)
    ]
    store = Store()
    for s in searches:
        states = s.line.states((*asked.queries, *asked.documents), store).at(s.layer, s.dim)
        Q, C = states[asked.queries], states[asked.documents]
        np.testing.assert_array_equal(s.top, top_documents(Q, C)[:, 0])
        expected = retrieval_scores(Q, C, asked.qrels, query_ids=asked.query_ids, corpus_ids=asked.document_ids)
        assert s.score("hit@1", seed=0).value == pytest.approx(expected["recall@1"])  # one gold paragraph each
        assert s.score("recall@10", seed=0).value == pytest.approx(expected["recall@10"])
        held = [answer_in_context(asked.documents[d], a) for d, a in zip(s.top, asked.answers, strict=True)]
        assert s.score("answer_in_context", seed=0).value == pytest.approx(np.mean(held))


def test_yes_and_no_have_no_place_in_a_context(asked):
    held = use.answers_held(replace(asked, answers=("Yes", "no", *asked.answers[2:])), np.zeros(30, int))
    assert np.isnan(held[:2]).all() and np.isin(held[2:], (0.0, 1.0)).all()


@pytest.fixture(scope="module")
def search_rows(page_functions):
    rows_of = page_functions("ese_table3_rag", seed=0)["search_rows"]
    return lambda searches: make_rows(rows_of(searches))


def test_rows(searches, search_rows, untrained_lines, asked):
    rows = search_rows(searches)
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
    twins = [untrained_lines[1], replace(untrained_lines[1], name=ESE)]
    same = search_rows(use.search_lines(twins, asked, Store()))
    assert (same.loc[same["metric"].str.contains("_lead"), "value"] == 0).all()


class Echo:
    """A generator that repeats the context's second word, then starts a question of its own."""

    asked: list[str] = []

    def generate(self, prompts, *, max_new_tokens):
        Echo.asked.extend(prompts)
        return [f"\n The {prompt.split('Context: ')[1].split()[1]}.\n\nQuestion: what else?" for prompt in prompts]


@pytest.fixture
def echo(monkeypatch):
    Echo.asked = []
    monkeypatch.setattr(use, "load_generator", lambda name: Echo())


def test_each_question_with_one_paragraph_is_answered_once(echo, untrained_lines, asked):
    store = Store()
    found = use.search_lines(untrained_lines, asked, store, dims=[4], generator="echo")
    pairs = {(i, row) for s in found for i, row in enumerate(s.top)}
    assert len(Echo.asked) == len(set(Echo.asked)) == len(pairs)
    for s in found:
        said = [asked.documents[row].split()[1].strip(".").lower() for row in s.top]
        right = [float(a == b.lower()) for a, b in zip(said, asked.answers, strict=True)]
        np.testing.assert_array_equal(s.items["exact_match"], right)
    again = use.search_lines(untrained_lines, asked, store, dims=[4], generator="echo")
    assert len(Echo.asked) == len(pairs)  # answers came from the store
    np.testing.assert_array_equal(again[0].items["exact_match"], found[0].items["exact_match"])


def test_other_weights_under_the_same_name_answer_anew(echo, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    prompts, store = [use.PROMPT.format(context="a b", question="c")], Store()
    for weights, times in ((b"first", 1), (b"first", 1), (b"second", 2)):
        (tmp_path / "model.safetensors").write_bytes(weights)
        use.generate_once(prompts, str(tmp_path), store)
        assert len(Echo.asked) == times


# Figure 6


@pytest.fixture(scope="module")
def pool():
    return list(take(data.load("stsb", source="microworld"), 40).texts1)


def test_every_depth_and_size_of_every_line_is_timed(untrained_lines, pool, monkeypatch):
    pytest.importorskip("faiss", reason="the extra eval brings it")
    taken = {}

    def in_turns(works, repeats, *, tries):
        for prepare in works.values():
            prepare()()
        taken.update({key: np.array([1.0, 3.0]) * (1 + key[0]) * key[1] for key in works})
        return {key: taken[key] for key in works}

    monkeypatch.setattr(use, "in_turns", in_turns)
    shared = {"stored": 200, "dims": [4, 8], "experiment": "e", "seed": 0}
    rows = use.timing_rows(untrained_lines, pool[:5], pool, Store(), **shared)
    assert set(taken) == {(i, at) for i in range(3) for at in (1, 2, 4, 8, 32)}
    at = rows.set_index(["metric", "method"])
    encode = rows[rows["metric"] == "encode_seconds"]
    assert len(encode) == 6 and encode.iloc[3][["value", "ci_low", "ci_high"]].tolist() == [4.0, 2.0, 6.0]
    total = at.loc[("total_seconds", MRL)].set_index("dim").loc[8]
    assert total["value"] == np.median(taken[1, 2] + taken[1, 8]) and total["layer"] == 2
    ratios = rows[rows["metric"] == "encode_ratio"]
    assert set(ratios["method"]) == {f"{MRL} / {RAW}", f"{ESE} / {RAW}", f"{ESE} / {MRL}"} and len(ratios) == 6
    search = at.loc[("search_ratio", f"{ESE} / {MRL}")]
    assert search["value"].tolist() == pytest.approx([1.5] * 4) and search["setting"].iloc[-1].endswith(
        "mean over sizes"
    )
    assert at.loc[("size_ratio", RAW), "value"] == pytest.approx(34 / 6)


def test_lines_of_other_shapes_and_empty_texts_are_refused(untrained_lines, pool):
    with pytest.raises(InputError, match="0 texts and 40 stored ones"):
        use.timing_rows(untrained_lines, [], pool, Store(), stored=10, seed=0)
    shallow = raw_line(TrainConfig(backbone="repro-tiny", source="microworld"))
    with pytest.raises(InputError, match="time networks of one shape together"):
        use.timing_rows([untrained_lines[0], shallow], pool[:2], pool, Store(), stored=10, seed=0)


def test_stored_vectors_are_near_theirs_but_never_equal():
    X = np.random.default_rng(0).normal(size=(7, 16)).astype(np.float32)
    rows = use.repeated(X, 100)
    assert rows.shape == (100, 16) and len(np.unique(rows, axis=0)) == 100
    away = np.linalg.norm(rows - np.resize(X, (100, 16)), axis=1) / np.linalg.norm(np.resize(X, (100, 16)), axis=1)
    assert away.min() > 0.003 and away.max() < 0.025
    np.testing.assert_array_equal(rows, use.repeated(X, 100))
    with pytest.raises(InputError, match="stored is 0"):
        use.repeated(X, 0)
