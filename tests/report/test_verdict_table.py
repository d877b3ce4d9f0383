"""Claims as lines that open: what a line tells and draws, and what stands behind it."""

import re
from dataclasses import replace
from math import nan

import pandas as pd

from made_rows import measured
from repro.report.claims import claims
from repro.report.scorecard import scorecard
from repro.report.verdict_frames import verdict_frame
from repro.report.verdict_table import told_number, verdict_table, whisker


def test_a_claim_is_one_line_with_the_number_that_decides_and_all_parts_on_a_click():
    parts = [
        replace(measured("ESE-T1-1", v), network="all-MiniLM-L6-v2", paper=2.5)
        for v in (3.0, -4.0, 5.0)
    ]
    built = [replace(part, generated=True) for part in parts]
    both = pd.concat(
        [verdict_frame("recorded", parts), verdict_frame("live", built)],
        ignore_index=True,
    )
    shown = verdict_table(both)
    line = shown.html[: shown.html.index("</summary>")]
    assert "not seen here" in line and "−4.00 [−5.00, −3.00] points; printed 2.50" in line
    decides = parts[[part.value for part in parts].index(-4.0)].what
    assert f"{decides}; 1 of 3 parts" in line, "a line says what its number is of"
    assert '<details class="claim" id="ESE-T1-1"' in line and ">ESE-T1-1</span>" in line
    assert all(said in shown.html and said in shown.markdown for said in ("up to ±", "end that"))
    assert "3.00 [" not in line and "1 of 3 parts, 3 seeds, 1 of 1 network" in line
    assert shown.html.count('<details class="claim"') == 1 and shown.html.count("<tr>") == 1 + 6
    unprinted = verdict_frame("recorded", [replace(part, paper=None) for part in built])
    # Few dims measure no claim
    one_kind = pd.concat([unprinted, verdict_frame("live", [])], ignore_index=True)
    assert "same direction 2" in verdict_table(one_kind).html
    assert "generated text: same direction 2, other direction 1." in shown.html
    assert "- **not seen here** ESE-T1-1: " in shown.markdown
    reasoned = verdict_frame("recorded", [replace(parts[1], likely="training")])
    again = verdict_table(reasoned)
    assert "(training)" in again.html[: again.html.index("</summary>")]
    found = verdict_frame("recorded", parts).assign(page="")
    # Most claims have no measurement
    every = verdict_table(found, scorecard(found))
    assert every.html.count('<details class="claim"') == len(claims())


def test_a_claim_without_a_number_says_in_its_place_why_there_is_none():
    found = verdict_frame("recorded", [measured("ESE-T1-1", 3.0)]).assign(page="")
    card = scorecard(found)
    silent = card[card["recorded"] == "not attempted"].iloc[:1].assign(why="no weights at hand")
    shown = verdict_table(found, silent)
    line, opened = shown.html.split("</summary>")[:2]
    assert "not attempted" in line and "no weights at hand" in line
    assert "no weights at hand" not in opened, "it is said once"
    assert "no weights at hand" in shown.markdown


def test_a_whisker_shows_number_interval_null_and_printed_number():
    frame = verdict_frame("recorded", [replace(measured("ESE-T1-1", 3.0), paper=-4.0)])
    drawn = whisker(frame.iloc[0])
    # Printed, ours; 60 is the null
    assert [float(x) for x in re.findall(r'cx="([\d.]+)"', drawn)] == [6.0, 100.5]
    assert 'd="M87.0 8H114.0"' in drawn
    assert "cut" not in drawn
    wide = frame.assign(low=-93.8, high=-1.2, value=-3.0, paper=nan)
    assert whisker(wide.iloc[0]).count('class="cut"') == 1, "it leaves on the left alone"
    assert "8H" not in whisker(frame.assign(low=nan).iloc[0])
    assert whisker(frame.assign(value=nan).iloc[0]) == ""


def test_of_the_smallest_of_several_only_the_end_that_decides_is_told():
    frame = verdict_frame("recorded", [measured("ESE-T1-1", -1.0)])
    row = frame.assign(extreme=True, low=-14.4, high=-0.46).iloc[0]
    assert told_number(row) == "−1.00, ≤ −0.46"
    assert told_number(frame.assign(extreme=True, value=2.0, low=1.5, high=9).iloc[0]) == (
        "2.00, ≥ 1.50"
    )
    assert told_number(frame.assign(extreme=True, low=-3, high=1).iloc[0]) == (
        "−1.00 [−3.00, 1.00]"
    )


def test_of_the_farthest_of_several_it_is_told_how_far_it_may_be_either_way():
    """Its folded end at 0 would read as that of a difference that is sure of its side."""
    frame = verdict_frame("recorded", [measured("WANG-F2-1", -0.18)])
    row = frame.assign(extreme=True, test="sameness", low=-2.39, high=-0.0).iloc[0]
    assert told_number(row) == "−0.18, up to ±2.39"
    whole = frame.assign(extreme=False, test="sameness", low=-2.39, high=2.39)
    assert whisker(row) == whisker(whole.iloc[0])
