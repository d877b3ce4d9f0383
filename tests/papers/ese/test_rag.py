"""Table 3's experiment: which paragraphs are kept and found, what each search is scored by, and generated answers."""

from dataclasses import replace

import numpy as np
import pytest

from repro.config import TrainConfig
from repro.evaluation import answer_in_context, retrieval_scores
from repro.evaluation.retrieve import top_documents
from repro.methods import ESE, MRL, RAW
from repro.papers.ese import rag
from repro.papers.ese.lines import raw_line
from repro.papers.ese.tables import AS_IT_IS, SHORT
from repro.papers.ese.tables_use import better_than_chance
from repro.runs import texts as questions
from repro.sets import Retrieval
from repro.store import Store
from repro.types import InputError

METRICS = ("hit@1", "recall@10", "answer_in_context")


@pytest.fixture(scope="module")
def lines(tiny):
    """Three networks that differ in pooling alone, under the names of the paper's lines."""
    poolings = {RAW: "cls", MRL: "mean", ESE: "last"}
    base = TrainConfig(backbone=tiny, source="microworld")
    return [replace(raw_line(replace(base, pooling=p)), method=m, backbone="tiny") for m, p in poolings.items()]


@pytest.fixture(scope="module")
def asked():
    return questions.load_questions("microworld", questions=30, paragraphs=60)


@pytest.fixture
def searches(lines, asked):
    return rag.search_lines(lines, asked, Store(), dims=[4, 16], progress=False)


def test_fewer_questions_and_paragraphs_keep_every_gold_one():
    whole, part = (questions.load_questions("microworld", questions=n) for n in (None, 30))
    assert len(whole) == 200 and len(part) == 30 and part.documents == whole.documents
    fewer = questions.load_questions("microworld", questions=30, paragraphs=60)
    gold = {d for judged in fewer.qrels.values() for d, relevance in judged.items() if relevance > 0}
    assert fewer.queries == part.queries and fewer.answers == part.answers and len(fewer.documents) == 60
    assert gold <= set(fewer.document_ids) <= set(whole.document_ids)
    assert fewer.qrels == part.qrels
    tiny = questions.load_questions("microworld", questions=30, paragraphs=1)
    assert set(tiny.document_ids) == gold
    texts = dict(zip(whole.document_ids, whole.documents, strict=True))
    assert all(texts[d] == text for d, text in zip(fewer.document_ids, fewer.documents, strict=True))
    assert questions.load_questions("microworld", questions=30, paragraphs=60, seed=1).queries != fewer.queries


def test_distractors_that_are_left_out_leave_the_judgements(monkeypatch):
    data = Retrieval(
        "x", "local", ("q",), ("who?",), ("a", "b", "c"), ("A.", "B.", "C."), {"q": {"a": 1, "b": 0}}, ("A",)
    )
    monkeypatch.setattr(questions.data, "load", lambda *_, **__: data)
    kept = questions.load_questions("local", paragraphs=1)
    assert kept.document_ids == ("a",) and kept.qrels == {"q": {"a": 1}}


def test_questions_need_answers_and_numbers_above_0(monkeypatch):
    with pytest.raises(InputError, match="paragraphs is -1"):
        questions.load_questions("microworld", paragraphs=-1)
    data = Retrieval("x", "local", ("q",), ("who?",), ("a",), ("A.",), {"q": {"a": 1}})
    monkeypatch.setattr(questions.data, "load", lambda *_, **__: data)
    with pytest.raises(InputError, match="no answers"):
        questions.load_questions("local")


def test_sizes():
    assert rag.sizes(768) == [64, 128, 256, 512, 768] and rag.sizes(1024) == [64, 128, 256, 512, 768, 1024]
    assert rag.sizes(128) == [8, 16, 32, 64, 128] and rag.sizes(384) == [24, 48, 96, 192, 384]
    assert rag.sizes(32, [64, 8, 8]) == [8, 32] and rag.sizes(4) == [2, 4]
    with pytest.raises(InputError, match="dim is 0"):
        rag.sizes(32, [0])


def test_every_line_is_searched_at_two_depths_and_all_sizes(searches, lines, asked):
    assert [(s.line.method, s.layer, s.dim) for s in searches] == [
        (line.method, layer, dim) for line in lines for layer in (1, 2) for dim in (4, 16, 32)
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
    judged = replace(asked, answers=("Yes", "no", *asked.answers[2:]))
    held = rag.answers_held(judged, np.zeros(30, int))
    assert np.isnan(held[:2]).all() and np.isin(held[2:], (0.0, 1.0)).all()


def test_rows(searches):
    rows = rag.rag_rows(searches, seed=0, experiment="e", profile="embedded", data_source="microworld")
    scores = rows[rows["metric"].isin(METRICS)]
    assert (
        len(scores) == 3 * 2 * 3 * 3
        and ((scores["ci_low"] <= scores["value"]) & (scores["value"] <= scores["ci_high"])).all()
    )
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
    assert set(rows["dataset"]) == {"hotpotqa"} and set(rows["seed"]) == {0}


def test_equal_lines_have_no_lead(lines, asked):
    twins = [lines[1], replace(lines[1], method=ESE)]
    rows = rag.rag_rows(rag.search_lines(twins, asked, Store(), progress=False), seed=0)
    assert (rows.loc[rows["metric"].str.contains("_lead"), "value"] == 0).all()


def test_chance_is_what_paragraphs_drawn_at_random_score(asked):
    draw = np.random.default_rng(0).integers(len(asked.documents), size=(400, len(asked)))
    found = rag.chance(asked)
    held = np.mean([rag.answers_held(asked, row) for row in draw])
    gold = np.mean(
        [
            [asked.qrels[q].get(asked.document_ids[d], 0) for q, d in zip(asked.query_ids, row, strict=True)]
            for row in draw
        ]
    )
    assert found["answer_in_context"] == pytest.approx(held, abs=0.01) and found["hit@1"] == pytest.approx(
        gold, abs=0.005
    )
    assert found["hit@1"] == pytest.approx(1 / 60) and found["recall@10"] == pytest.approx(10 / 60)


def test_better_than_chance_reads_the_last_layer_at_full_size(searches, asked):
    rows = rag.rag_rows(searches, seed=0)
    table = better_than_chance(rows, {"hit@1": -1.0, "recall@10": 1.0})
    assert len(table) == 6 and set(table.loc[table["measure"] == SHORT["hit@1"], "better"]) == {"yes"}
    assert set(table.loc[table["measure"] == SHORT["recall@10"], "better"]) == {"no"}
    full = rows[(rows["metric"] == "hit@1") & (rows["layer"] == 2) & (rows["dim"] == 32)]
    assert table["found"].iloc[0].startswith(f"{100 * full['value'].iloc[0]:.1f} [")


def test_faiss_finds_the_same_and_prefixes_as_they_are_do_not(searches, asked):
    pytest.importorskip("faiss", reason="the extra eval brings it")
    rows = rag.flat_rows(searches, asked, Store())
    same = rows[rows["metric"] == "same_first"]
    assert set(rows["layer"]) == {2} and len(same) == 3 * 3 * 2
    anew, plain = same[same["setting"].isna()], same[same["setting"] == AS_IT_IS]
    assert (anew["value"] >= 29 / 30).all()  # a tie may fall the other way by rounding
    assert (plain.loc[plain["dim"] == 4, "value"] < 1).any() and (
        plain.loc[plain["dim"] == 32, "value"] >= 29 / 30
    ).all()


class Echo:
    """A generator that repeats the context's second word, then starts a question of its own."""

    asked: list[str] = []

    def generate(self, prompts, *, max_new_tokens):
        Echo.asked.extend(prompts)
        return [f"\n The {prompt.split('Context: ')[1].split()[1]}.\n\nQuestion: what else?" for prompt in prompts]


@pytest.fixture
def echo(monkeypatch):
    Echo.asked = []
    monkeypatch.setattr(rag, "load_generator", lambda name: Echo())


def test_each_question_with_one_paragraph_is_answered_once(echo, searches, asked):
    store = Store()
    found = rag.with_answers(searches, asked, "echo", store, progress=False)
    pairs = {(i, row) for s in searches for i, row in enumerate(s.top)}
    assert len(Echo.asked) == len(set(Echo.asked)) == len(pairs)
    for s in found:
        said = [asked.documents[row].split()[1].strip(".").lower() for row in s.top]
        right = [float(a == b.lower()) for a, b in zip(said, asked.answers, strict=True)]
        np.testing.assert_array_equal(s.items["exact_match"], right)
    assert {"exact_match", "exact_match_lead"} <= set(rag.rag_rows(found, seed=0)["metric"])
    again = rag.with_answers(searches, asked, "echo", store, progress=False)
    assert len(Echo.asked) == len(pairs)  # answers came from the store
    np.testing.assert_array_equal(again[0].items["exact_match"], found[0].items["exact_match"])
    rag.with_answers(searches[:1], asked, "another", store, progress=False)
    assert len(Echo.asked) > len(pairs)  # another generator answers anew


def test_other_weights_under_the_same_name_answer_anew(echo, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"first")
    prompts, store = [rag.PROMPT.format(context="a b", question="c")], Store()
    for _ in range(2):
        rag.generate_once(prompts, str(tmp_path), store, progress=False)
    assert len(Echo.asked) == 1
    (tmp_path / "model.safetensors").write_bytes(b"second")
    rag.generate_once(prompts, str(tmp_path), store, progress=False)
    assert len(Echo.asked) == 2


def test_the_prompt_is_the_papers():
    text = rag.PROMPT.format(context="C", question="Q")
    assert text.startswith("As an advanced QA system, your role is") and text.endswith("so on and so forth.\n\nOutput:")
    assert (
        "\n\nContext: C.\n\nQuestion: Q.\n\nRequirement: For 'yes/no' question, directly output 'yes' or 'no'." in text
    )


def test_an_answer_is_its_first_line():
    assert rag.first_line("\n  Paris \nQuestion: and then?") == "Paris" and rag.first_line(" \n") == ""
