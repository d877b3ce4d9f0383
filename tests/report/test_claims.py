"""Tables of claims: every record is whole, and what it says becomes the rule that judges."""

import pytest

from repro.evaluation.seeds import Estimate
from repro.papers.recorded import JUDGES
from repro.report import claims as of
from repro.report.cells import average
from repro.report.claim_fields import check_record
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
    **{"judges": ["tiny"], "own": ["big"], "trained": True, "parts": [{"on": ["a"]}]},
}
TABLE = {
    "also_judge": ["seldom"],
    "every": {"judges": ["tiny"], "own": ["big"]},
    "experiments": {"a": {}, "b": {}},
}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"plce": "sec1"}, r"unknown field of TOY-1 'plce': .*did you mean place\?"),
        ({"testable": "sme"}, "unknown `testable` of TOY-1 'sme': .*did you mean same"),
        ({"likely": "sizes"}, "unknown `likely` of TOY-1 'sizes': .*did you mean size"),
        ({"parts": [{"on": ["a", "c"]}]}, "unknown experiment of TOY-1 'c': choose one of a, b"),
        (
            {"judges": ["tiny", "tinny"]},
            "unknown network in `judges` of TOY-1 'tinny': choose one of tiny, big, seldom",
        ),
        ({"own": ["tinny"]}, "unknown network in `own` of TOY-1 'tinny'"),
        ({"judges": "tiny"}, "`judges` of TOY-1 is 'tiny': expected a list of names"),
        ({"asks": [1]}, r"`asks` of TOY-1 is \[1\]: expected a list of names"),
        ({"place": 4.2}, "`place` of TOY-1 is 4.2: expected a text"),
        ({"trained": "no"}, "`trained` of TOY-1 is 'no': expected true or false"),
        ({"parts": ["a"]}, r"`parts` of TOY-1 is \['a'\]: expected a list of tables"),
        ({"parts": [{"on": "a"}]}, "`on` of TOY-1 is 'a': expected a list of names"),
        ({"parts": [{"on": ["a"], "smallest": 1}]}, "`smallest` of TOY-1 is 1: expected true or"),
        (
            {"parts": [{"on": ["a"], "for_each": {"method": "PCA"}}]},
            "`for_each` of TOY-1 is {'method': 'PCA'}: expected a table of lists",
        ),
        ({"parts": [{"rows": "dim > 3"}]}, "TOY-1 does not say its on"),
    ],
)
def test_what_a_record_misspells_is_told_with_what_it_may_say(changed, told):
    check_record("TOY-1", {**RECORD, "judges": ["seldom", "big"]}, TABLE)
    with pytest.raises(InputError, match=told):
        check_record("TOY-1", {**RECORD, **changed}, TABLE)
    with pytest.raises(InputError, match="TOY-1 does not say its statement and place"):
        check_record("TOY-1", {"parts": []}, TABLE)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"ovr": ["dim"]}, r"unknown field of TOY-1 'ovr': .*did you mean over\?"),
        ({"test": "samness"}, "unknown `test` of TOY-1 'samness': .*did you mean sameness"),
        ({"unit": "per cent lots"}, "unknown `unit` of TOY-1 .*did you mean per cent lost"),
        ({"rows": "{eithr}"}, "the rows of TOY-1 name {eithr}: expected a word of its table"),
        ({"less_than": "0"}, "`less_than` of TOY-1 is '0': expected a finite number"),
        ({"more_than": True}, "`more_than` of TOY-1 is True: expected a finite number"),
        ({"near": float("inf")}, "`near` of TOY-1 is inf: expected a finite number"),
        ({"less_than": 0, "more_than": 0}, "TOY-1 says more_than and less_than: expected one"),
        ({"over": "dim"}, "`over` of TOY-1 is 'dim': expected a list of names"),
        ({"at": 64.0}, "`at` of TOY-1 is 64.0: expected a whole number"),
        ({"direction": 0}, "`direction` of TOY-1 is 0: expected 1 or -1"),
        ({"sized": 1}, "`sized` of TOY-1 is 1: expected true or false"),
        ({"printed": "5"}, "`printed` of TOY-1 is '5': expected a finite number, or a table that"),
        ({"printed": {"of": 5}}, "`printed` of TOY-1 is {'of': 5}: expected a finite number, or"),
        ({"cell": ["average"]}, "`cell` of TOY-1 is .*: expected a function's name, or a table"),
        (
            {"cell": {"by": "average", "same_itms": False}},
            "unknown argument of average, .*same_ite",
        ),
        ({"control": "x"}, "`control` of TOY-1 is 'x': expected a table"),
        ({"control": {"rows": "dim > 3", "unit": 1}}, "`unit` of TOY-1 is 1: expected a text"),
        ({"by": "times", "less_than": "0"}, "`less_than` of TOY-1 is '0': expected a finite"),
        ({"each": "__name__"}, "names '__name__': expected a function of its document"),
    ],
)
def test_what_a_part_misspells_is_told_with_what_it_may_say(changed, told):
    part = {"what": "it", "rows": "dim > 3"}
    assert isinstance(of.rule_of("TOY-1", part, FUNCTIONS), Judge)
    with pytest.raises(InputError, match=told):
        of.rule_of("TOY-1", {**part, **changed}, {**FUNCTIONS, "__name__": "toy"})
    with pytest.raises(InputError, match="TOY-1 does not say its rows"):
        of.rule_of("TOY-1", {"what": "it"}, FUNCTIONS)


def test_what_a_part_may_say_besides_is_taken():
    more = {"more_than": 1, "near": 0.5, "at": 64, "direction": -1, "printed": -2.5, "over": []}
    more |= {"cell": {"by": "average", "same_items": False}, "each": "each_network"}
    judge = of.rule_of("TOY-1", {"what": "it", "rows": "dim > 3", **more}, FUNCTIONS)
    assert (judge.null, judge.at, judge.near, judge.paper) == (1, 64, 0.5, -2.5)
