"""What the recorded rows say without a build: verdicts, lines for a terminal, the README's figure."""

import re

from repro import paths
from repro.papers.recorded import JUDGES, experiment_lines, scorecard_lines, write_readme_figure
from repro.report.judge import Measurement
from repro.report.scorecard import verdict_frame, write_verdicts


def test_seconds_are_printed_as_seconds():
    lines = [line.split() for line in experiment_lines("zhang_table1")]
    assert ["PCA", "Training", "Time", "(s)", "seconds", "300", "2.0800"] in [line[:7] for line in lines]


def test_recorded_verdicts_are_printed_without_a_build(verdicts, monkeypatch):
    experiment = "proposal_johnson_lindenstrauss"
    monkeypatch.setattr("repro.papers.recorded.JUDGES", {experiment: JUDGES[experiment]})
    lines = list(scorecard_lines())
    (line,) = [line for line in lines if line.startswith("PROP-T-2")]
    assert "recorded: not attempted" not in line and "live:" not in line
    assert "no book is built here: `make book`" in lines[-1]
    measured = Measurement("PROP-T-2", "effect", 3.0, 2.0, 4.0, seeds=3, what="gain")
    write_verdicts("page", verdict_frame("live", [measured]))
    assert any(line.startswith("PROP-T-2") and "live: holds here" in line for line in scorecard_lines())


def test_every_page_that_judges_recorded_rows_is_judged_without_a_build_too():
    for page in (paths.project_root() / "notebooks").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        if "write_verdicts(" in text or re.search(r"\.close\(\w+, ", text):
            named = re.findall(
                r'recorded_rows\("(\w+)"\)|^experiment = "(\w+)"|Page\("\w+", "(\w+)"', text, re.MULTILINE
            )
            assert named and {name for names in named for name in names if name} <= set(JUDGES), page.name


def test_the_readmes_figure_can_be_drawn_again(tmp_path):
    again = write_readme_figure(tmp_path / "figure.svg").read_text(encoding="utf-8")
    committed = (paths.project_root() / "book" / "_static" / "readme_figure.svg").read_text(encoding="utf-8")
    for text in (again, committed):
        assert "<dc:title>STS-B score of two-step training against embedding dimension" in text
