"""Augmentations: from made-up rows to the table, the leads with their verdicts, the reading and the figure."""

import pytest

from repro.report import claims_proposal, figures_augmentation
from repro.rows import make_rows

LEADS = {"synonym": 0.10, "paraphrase": -0.10, "mixture": 0.01}


def made(seeds=(0,)):
    rows = []
    for seed in seeds:
        for name in ("untrained backbone", "dropout", *LEADS):
            at = {"method": name, "seed": seed, "dataset": "stsb"}
            score = 0.5 + LEADS.get(name, 0.0) + 0.001 * seed
            rows += [
                {**at, "metric": "spearman", "value": score, "ci_low": score - 0.02, "ci_high": score + 0.02},
                {**at, "metric": "alignment", "value": 0.4 - LEADS.get(name, 0.0)},
                {**at, "metric": "uniformity", "value": -2.0 - (name == "dropout")},
            ]
            if name in LEADS or name.startswith("untrained"):
                lead = LEADS.get(name, -0.3)
                rows.append(
                    {**at, "metric": "spearman_lead", "value": lead, "ci_low": lead - 0.01, "ci_high": lead + 0.01}
                )
            if not name.startswith("untrained"):
                rows.append({**at, "dataset": "training sentences", "metric": "survivors", "value": 0.5})
    return make_rows(rows, experiment="x")


def test_leads_over_dropout_are_judged():
    table = claims_proposal.augmentation_leads(made())
    verdicts = dict(zip(table["positives"], table["verdict"], strict=True))
    assert verdicts == {"synonym": "reproduced", "paraphrase": "not reproduced", "mixture": "within noise"}
    low, high = table["points above dropout"][0].split("[")[1].rstrip("]").split(", ")
    assert (float(high) - float(low)) / 2 == pytest.approx((1.96**2 + 1) ** 0.5, abs=0.01), "a seed moves it as well"


def test_the_tables_have_a_line_also_for_what_waits():
    notes = {"dropout": "itself", "back-translation": "no pair"}
    wordings = claims_proposal.wording_table(made((0, 1)), notes).set_index("positives")
    assert wordings.loc["back-translation", ["survivors, %", "made from"]].tolist() == ["–", "no pair"]
    assert wordings.loc["dropout", "survivors, %"] == "50 ± 0"
    table = claims_proposal.augmentation_table(made((0, 1))).set_index("positives")
    order = ["untrained backbone", "dropout", "synonym", "paraphrase", "mixture"]
    assert list(table.index) == order
    sorted_by_name = made((0, 1)).sort_values("method", ignore_index=True)
    assert list(claims_proposal.augmentation_table(sorted_by_name)["positives"]) == order
    assert table.loc["dropout", "STS-B"] == "50.05 ± 0.07" and table.loc["dropout", "alignment"] == "0.400 ± 0.000"


def test_the_reading_follows_the_rows():
    first, geometry = claims_proposal.augmentation_reading(made())
    assert first == (
        "STS-B: highest is synonym with 60.00. By the intervals, synonym is above dropout; "
        "mixture is not told apart from dropout; paraphrase is below dropout."
    )
    assert geometry == "Closest positives and widest spread: synonym has the first and dropout the second."
    rows = made()
    assert claims_proposal.augmentation_reading(rows[rows["method"] == "dropout"]) == [
        "STS-B: highest is dropout with 50.00.",
        "Closest positives and widest spread: dropout has both.",
    ]


def test_figure_shows_every_augmentation():
    drawing = figures_augmentation.draw_augmentations(made((0, 1)))
    plane, scores = drawing.axes
    assert len(plane.lines) == len(scores.lines) == 5 and "mixture" in drawing.alt
    assert drawing.svg() == figures_augmentation.draw_augmentations(made((0, 1))).svg()
    assert "Nothing to show" in figures_augmentation.draw_augmentations(make_rows([], experiment="x")).alt
