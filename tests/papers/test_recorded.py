"""What the recorded rows say without a build: verdicts, and lines of an experiment."""

import ast
import re

import pytest

from made_rows import verdicts_of_rows
from repro import paths
from repro.papers import recorded
from repro.papers.recorded import JUDGES, scorecard_lines
from repro.report import scorecard, speakers
from repro.report.claims import lift_of, record_of, table
from repro.report.outcomes import NOT_SEEN, SEEN_AGAIN, SILENT
from repro.report.tables import show
from repro.report.verdict import Measurement
from repro.report.verdict_frames import verdict_frame, write_verdicts
from repro.results import recorded_rows, results_folder
from repro.rows import make_rows


def test_rows_of_an_experiment_without_any_bring_no_others():
    assert recorded.with_folds(make_rows([])).empty


def test_recorded_verdicts_are_printed_without_a_build(verdicts, monkeypatch):
    experiment = "proposal_johnson_lindenstrauss"
    monkeypatch.setattr("repro.papers.recorded.JUDGES", {experiment: JUDGES[experiment]})
    lines = list(scorecard_lines())
    (line,) = [line for line in lines if line.startswith("PROP-T-2")]
    assert "recorded: answered" in line and "live:" not in line
    assert "no book is built here: `make book`" in lines[-1]
    assert re.findall(r"PROP-\S+", recorded.spoken_of("proposal").markdown) == ["PROP-T-2:"]
    fields = {"seeds": 3, "what": "gain", "network": "all-MiniLM-L6-v2", "testable": "question"}
    measured = Measurement("PROP-T-2", "effect", 3.0, 2.0, 4.0, **fields)
    write_verdicts("page", verdict_frame("live", [measured]))
    assert any(
        line.startswith("PROP-T-2") and "live: answered" in line for line in scorecard_lines()
    )


def test_lines_of_an_experiment_average_one_network_and_one_setting_beside_the_printed_number(
    monkeypatch,
):
    line = {
        "dataset": "stsb",
        "metric": "spearman",
        "dim": 128,
        "readout": "pooler",
        "command": "repro run page",
    }
    line["method"] = "Encoder_d + pooler_d (end-to-end training)"
    cells = [
        ("a", "test", 0, 0.70),
        ("a", "test", 1, 0.72),
        ("a", "dev", 0, 0.80),
        ("b", "test", 0, 0.20),
    ]
    rows = [
        {**line, "backbone": b, "setting": s, "seed": seed, "value": v} for b, s, seed, v in cells
    ]
    rows.append({**rows[0], "readout": "encoder", "value": 0.75})
    monkeypatch.setattr(recorded, "recorded_rows", lambda experiment: make_rows(rows))
    _, a, b = "\n".join(recorded.experiment_lines("wang_table2")).split("\n\n")
    numbers = [line.split()[-4:] for line in a.splitlines()[2:-1]]
    assert ["60.12", "71", "1.414", "2"] in numbers, (
        "two seeds of one network in one setting, beside the printed 60.12"
    )
    assert ["128", "60.12", "80", "1"] in numbers and ["spearman", "128", "75", "1"] in numbers
    assert a.startswith("a: seeds 0, 1") and a.endswith("  repro run page") and " 20 " in b


def test_every_recorded_file_is_told_network_by_network():
    for name in (path.stem for path in results_folder().glob("*.parquet")):
        said = re.findall(
            r"^(.+): seeds ",
            "\n".join(recorded.experiment_lines(name)),
            re.MULTILINE,
        )
        assert set(said) == set(recorded_rows(name)["backbone"].fillna("no network")), name


def test_every_page_that_judges_recorded_rows_is_judged_without_a_build_too():
    for page in (paths.project_root() / "notebooks").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        if "write_verdicts(" in text or re.search(r"\.close\(\w+, ", text):
            pattern = (
                r'recorded_rows\("(\w+)"\)|^experiment = \(?\s*"(\w+)"|'
                r'Page\(\s*"\w+",\s*"(\w+)"'
            )
            named = re.findall(pattern, text, re.MULTILINE)
            assert named and {name for names in named for name in names if name} <= set(JUDGES), (
                page.name
            )


@pytest.fixture(scope="module")
def of_rows():
    """The verdict of every measurement in the recorded rows."""
    return verdicts_of_rows()


def test_no_row_decides_two_claims(of_rows):
    decided = of_rows[of_rows["verdict"].isin([*SEEN_AGAIN, *NOT_SEEN])]
    shared = decided.groupby(["what", "network", "value", "null", "paper"], dropna=False)
    assert (shared["claim_id"].nunique() == 1).all()


def test_a_printed_size_is_never_found_where_the_interval_does_not_hold_it(of_rows):
    words = ["holds here", "direction only"]
    seen = of_rows[of_rows["verdict"].isin(words) & of_rows["paper"].notna()]
    found = seen["paper"].astype(float).between(seen["low"], seen["high"])
    assert len(seen) and not (seen["verdict"].eq("holds here") & ~found).any()
    assert not (of_rows["verdict"] == "does not hold here").any()


def test_a_headline_that_nobody_can_tell_says_why_and_its_interval_bears_that_out(of_rows):
    card = scorecard.scorecard(of_rows)
    lines = card[card["recorded"] == "cannot tell"]
    assert len(lines) and lines["briefly"].all()
    for line in lines.itertuples():
        part = scorecard.decisive(of_rows[of_rows["claim_id"] == line.claim_id], line.network)
        low, high, null = part.iloc[0][["low", "high", "null"]].astype(float)
        holds = re.fullmatch(r"interval holds (\S+)", line.briefly)
        if holds:
            assert low <= null <= high, line.claim_id
            assert float(holds[1].replace("−", "-")) == pytest.approx(null, rel=0.01)
        elif line.briefly.startswith("not sure among"):
            assert not low <= null < high, line.claim_id


def test_a_statement_stands_with_its_verdict_and_the_reason_in_a_few_words(of_rows):
    said = {"1": {"WANG-F3-1": "harms", "WANG-T1-3": "gains"}, "2": {"ZHANG-S42-2": "is better"}}
    found = recorded.stated(said, of_rows, of="claim")
    assert list(found["claim"]) == ["1", "", "2"], "a claim heads its first line alone"
    assert list(found["it says"]) == ["harms", "gains", "is better"]
    card = scorecard.scorecard(of_rows).set_index("claim_id")
    assert list(found["verdict"].str.partition(" (")[0]) == list(
        card.loc[["WANG-F3-1", "WANG-T1-3", "ZHANG-S42-2"], "recorded"]
    )
    gains = found.iloc[1]
    assert gains["verdict"] == "cannot tell (interval holds 0)"
    assert "mean gain of step" in gains["measured"] and "; printed 1.79" in gains["measured"]
    assert found.iloc[2]["measured"] == "–" == found.iloc[2]["networks"]
    shown = show(found).html
    assert '<span class="verdict-cannot-tell">cannot tell</span> (interval holds 0)</td>' in shown


def test_a_chapter_lists_open_statements_behind_those_that_are_decided():
    """Those that nothing at hand can speak of are on the scorecard alone."""
    shown = recorded.spoken_of("sbertlp").html
    words = re.findall(r'data-verdict="([^"]+)"', shown)
    open_ones = words.count("cannot tell")
    assert 0 < open_ones < len(words) and words[-open_ones:] == ["cannot tell"] * open_ones
    assert not {*SILENT} & {*words}


def test_every_main_statement_of_a_chapter_is_a_claim_of_its_document():
    for name in ("wang", "zhang", "sbertlp", "ese"):
        text = (paths.project_root() / "book" / f"{name}.md").read_text(encoding="utf-8")
        main = re.search(r"^MAIN = (\{.*?^\})", text, re.M | re.S)
        statements = ast.literal_eval(main[1])
        claims = re.search(r"## What the paper claims\n(.*?)\nOf each", text, re.S)[1]
        numbered = re.findall(r"^(\d)\. ", claims, re.M)
        assert list(statements) == numbered, name
        for claim in (claim for listed in statements.values() for claim in listed):
            assert claim in table(name)["claims"], claim


def test_the_front_page_has_the_sentence_of_the_recorded_rows(of_rows):
    said = scorecard.front_sentence(scorecard.scorecard(of_rows))
    front = (paths.project_root() / "book" / "index.md").read_text(encoding="utf-8")
    assert said in " ".join(front.split())


def test_chapters_quote_what_the_recorded_rows_say(of_rows):
    """What training lifts each network, and what the mapping costs the three that judge it."""
    lifted = [
        f"{speakers.lifted_by(recorded_rows('wang_table1'), name):.1f}".replace("-", "−")
        for name in ("all-MiniLM-L6-v2", "all-mpnet-base-v2", "e5-small-en")
    ]
    lift = lift_of("wang_table1")
    paper = f"{lift['trained'] - lift['untouched']:.1f}"
    costs = [
        of_rows[(of_rows["claim_id"] == claim) & of_rows["what"].str.contains(what)]["value"]
        for claim, what in (("LP-T1-1", "mean"), ("LP-T2-1", "mean"), ("LP-T3-1", "in mi,"))
    ]
    judged = record_of("LP-T1-1")["judges"]
    costs = [-of_rows.loc[own.index][of_rows["network"].isin(judged)]["value"] for own in costs]
    similarity, accuracy, clusters = ((own.min(), own.max()) for own in costs)
    quoted = {
        "wang": (paper, *lifted),
        "findings": (paper, *lifted),
        "sbertlp": (
            "{:.1f} to {:.1f} points of similarity".format(*similarity),
            "{:.0f} to {:.0f} points of the accuracy".format(*accuracy),
            "{:.0f} to {:.0f} hundredths of a nat".format(*clusters),
        ),
    }
    for chapter, numbers in quoted.items():
        text = (paths.project_root() / "book" / f"{chapter}.md").read_text(encoding="utf-8")
        for number in numbers:
            assert number in " ".join(text.split()), (chapter, number)


def test_what_the_recorded_rows_do_not_decide_says_what_it_would_take(of_rows):
    verdicts = of_rows
    said = {"not attempted": "what", "does not apply": "why", "cannot tell": "why"}
    for verdict, column in said.items():
        silent = verdicts[(verdicts["verdict"] == verdict) & (verdicts[column].fillna("") == "")]
        assert silent["claim_id"].tolist() == [], verdict
