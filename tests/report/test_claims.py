"""Tables of claims: every record is whole, and what it says becomes the rule that judges."""

import pytest

from repro.evaluation.seeds import Estimate
from repro.papers.recorded import JUDGES
from repro.report import claims as of
from repro.report.cells import average
from repro.report.judge import Judge
from repro.report.outcomes import TESTABLE
from repro.report.speakers import CONDITIONS
from repro.types import InputError

LED = {
    "on": ["a", "b"],
    "what": "{task}: {method}, {dim}",
    "rows": "{either} and method == '{method}'",
    "for_each": {"method": ["PCA", "SVD"]},
    "cell": "highest",
    "over": ["setting", "dim"],
    "unit": "points lost",
    "less_than": 3.0,
    "needs": "{either}",
}
NAMED = {"on": ["b"], "by": "times", "factor": 2, "printed": {"by": "half", "of": 5}}
TOY = {
    "every": {"paper": "toy", "own": [], "trained": False, "asks": []},
    "words": {"either": "setting == 'x'"},
    "experiments": {"a": {"read": "judge", "task": "A"}, "b": {"read": "judge", "task": "B"}},
    "claims": {"TOY-1": {"parts": [LED]}, "TOY-2": {"asks": ["deep"], "parts": [NAMED]}},
}
FUNCTIONS = {**of.KNOWN, "times": lambda rows, **given: given, "half": lambda of: of / 2}


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setattr(of, "table", {"toy": TOY}.__getitem__)


@pytest.mark.parametrize("document", of.DOCUMENTS)
def test_records_are_whole(document):
    given = of.table(document)
    for claim in given["claims"]:
        record = of.record_of(claim)
        judged_on = {name for part in record["parts"] for name in part["on"]}
        asked = record["testable"] == "question"
        assert record["statement"].endswith("?" if asked else ".") and record["place"], claim
        assert record["testable"] in TESTABLE and record["judges"], claim
        if record["testable"] == "only that network":
            assert "repro-tiny" not in record["judges"], claim
        assert judged_on and judged_on <= set(given["experiments"]), claim
        assert set(record.get("folds", ())) <= judged_on, claim
        assert set(record["asks"]) <= set(CONDITIONS), claim


def test_every_experiment_of_a_table_is_judged():
    for document in of.DOCUMENTS:
        named = {f"{document}_{name}" for name in of.table(document)["experiments"]}
        assert named == {name for name in JUDGES if name.startswith(document)}


def test_a_part_is_a_rule_of_its_experiment_with_its_words(toy):
    pca, svd = of.rules_of("toy", "a", FUNCTIONS)
    assert isinstance(pca, Judge) and pca.claim == "TOY-1"
    assert pca.pick({(8,): Estimate({0: 1.0}), (4,): Estimate({0: 2.0})})[0] == (4,), "the highest"
    assert pca.what == "A: PCA, {dim}" and svd.rows == "setting == 'x' and method == 'SVD'"
    assert pca.over == ("setting", "dim") and pca.needs == "setting == 'x'"
    assert (pca.null, pca.direction, pca.scale({})) == (3.0, -1, -1.0)
    *_, named = of.rules_of("toy", "b", FUNCTIONS)
    assert named(None) == {"factor": 2, "paper": 2.5, "claim": "TOY-2"}


def test_several_rules_may_be_told_as_one(toy, monkeypatch):
    monkeypatch.setitem(LED, "smallest", True)
    (rule,) = of.rules_of("toy", "a", FUNCTIONS)
    assert [judge.what for judge in rule] == ["A: PCA, {dim}", "A: SVD, {dim}"]


def test_a_function_is_named_with_its_arguments_or_refused():
    of_sets = of.function_of({"by": "average", "same_items": False}, FUNCTIONS)
    assert of_sets.func is average and of_sets.keywords == {"same_items": False}
    with pytest.raises(InputError, match="names 'levelled': expected a function"):
        of.function_of("levelled", FUNCTIONS)
    with pytest.raises(InputError, match=r"its document \(did you mean average\?\)"):
        of.function_of("averag", FUNCTIONS)
    with pytest.raises(InputError, match="unknown claim 'ZHANG-S42-99': the tables hold"):
        of.record_of("ZHANG-S42-99")


RECORD = {
    **{"statement": "It does.", "place": "sec1", "testable": "same", "likely": "size"},
    "parts": [{"on": ["a"]}],
}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"plce": "sec1"}, r"unknown field of TOY-1 'plce': .*did you mean place\?"),
        ({"testable": "sme"}, "unknown `testable` of TOY-1 'sme': .*did you mean same"),
        ({"likely": "sizes"}, "unknown `likely` of TOY-1 'sizes': .*did you mean size"),
        ({"parts": [{"on": ["a", "c"]}]}, "unknown experiment of TOY-1 'c': choose one of a, b"),
    ],
)
def test_what_a_record_misspells_is_told_with_what_it_may_say(changed, told):
    of.check_record("TOY-1", RECORD, ["a", "b"])
    with pytest.raises(InputError, match=told):
        of.check_record("TOY-1", {**RECORD, **changed}, ["a", "b"])
    with pytest.raises(InputError, match="TOY-1 does not say its statement and place"):
        of.check_record("TOY-1", {"parts": []}, ["a"])


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"ovr": ["dim"]}, r"unknown field of TOY-1 'ovr': .*did you mean over\?"),
        ({"test": "samness"}, "unknown `test` of TOY-1 'samness': .*did you mean sameness"),
        ({"unit": "per cent lots"}, "unknown `unit` of TOY-1 .*did you mean per cent lost"),
        ({"rows": "{eithr}"}, "the rows of TOY-1 name {eithr}: expected a word of its table"),
    ],
)
def test_what_a_part_misspells_is_told_with_what_it_may_say(changed, told):
    part = {"what": "it", "rows": "dim > 3"}
    assert isinstance(of.rule_of("TOY-1", part, FUNCTIONS), Judge)
    with pytest.raises(InputError, match=told):
        of.rule_of("TOY-1", {**part, **changed}, FUNCTIONS)
    with pytest.raises(InputError, match="TOY-1 does not say its rows"):
        of.rule_of("TOY-1", {"what": "it"}, FUNCTIONS)
