"""Tables, words and figures of the advisor's trial, from made-up curves on which the spectrum is right."""

from dimadvise import measured
from repro.papers.proposal import choosing_rules
from repro.report import claims_proposal, figures_choosing
from repro.report.claims_proposal import choosing


def test_names_are_those_of_the_rows():
    assert choosing.LOOKING + choosing.BLIND == choosing_rules.RULES and choosing.HALF == measured.HALF
    assert (choosing.TASK, choosing.UNSEEN) == choosing_rules.LEFT_OUT
    assert (choosing.LABELS, choosing.KNEE, choosing.EVERY) == (
        choosing_rules.LABELS,
        choosing_rules.KNEE,
        choosing_rules.EVERY,
    )


def test_tables_set_rules_beside_labels(made_curves):
    rows = made_curves()
    table = claims_proposal.rule_table(rows, "pca", 0.9).set_index("rule")
    assert tuple(table.index) == choosing_rules.RULES
    right = table.loc["spectrum"]
    assert (right["median factor"], right["worst"], right["target met, %"]) == ("1.00", "1.0", "100")
    assert (
        table.loc["half of D", "curve off by, points"] == "–" and table.loc["all of D", "median size, % of D"] == "100"
    )
    assert "median, encoder unseen too" in table
    answers = claims_proposal.answer_table(rows, "pca", 0.9)
    assert len(answers) == 6 and (answers["labels"] == answers["spectrum"]).all() and set(answers["D"]) == {64, 128}
    alone = claims_proposal.rule_table(rows[~rows["setting"].str.contains("encoder")], "pca", 0.9)
    assert "median, encoder unseen too" not in alone


def test_a_better_rule_is_called_nearer_and_half_is_not(made_curves):
    rows = made_curves()
    table = claims_proposal.against_half(rows, "pca", 0.95).set_index("rule")
    assert table.loc["spectrum", "nearer than half of D?"] == "reproduced"
    assert "nearest to labels is spectrum (mean |log₂| 0.00, target met in 100 %" in claims_proposal.trusted(
        rows, "pca", 0.95
    )
    assert ", nearer than the best blind rule" in claims_proposal.trusted(rows, "pca", 0.95)
    wrong = claims_proposal.against_half(made_curves(off=1.0), "pca", 0.95).set_index("rule")
    assert wrong.loc["spectrum", "nearer than half of D?"] != "reproduced"


def test_figures(made_curves):
    rows = made_curves()
    figure = figures_choosing.draw_retention(rows, "a", "pca", 0.9)
    assert [axes.get_title(loc="left") for axes in figure.axes[:3]] == ["t0", "t1", "t2"]
    assert [len(line.get_xdata()) for line in figure.axes[0].get_lines()] == [4, 4, 4, 4, 2]
    answers = figures_choosing.draw_answers(rows, ["spectrum", "half of D", "calibrated"], "pca", 0.9)
    _, first, _ = answers.axes[0].get_lines()
    assert list(first.get_xdata()) == list(first.get_ydata()), "the right rule lies on the diagonal"
    assert answers.get_suptitle() == "live: pca, to keep 90 %" and figure.get_suptitle() == "a, pca"
    assert "half of D" in answers.alt and answers.axes[3].get_visible() is False
    assert "no curves of nobody" in figures_choosing.draw_retention(rows, "nobody", "pca", 0.9).alt
    assert "no answers under grp" in figures_choosing.draw_answers(rows, ["spectrum"], "grp", 0.9).alt
