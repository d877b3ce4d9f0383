"""Claims as lines that open: the verdict, the number that decides as words and drawn, and all that
was measured.
"""

from collections.abc import Mapping
from html import escape
from math import inf, isnan, nan
from typing import Any

import numpy as np
import pandas as pd

from repro.report.claims import pages_of
from repro.report.outcomes import MEANING, ON_GENERATED, OUTCOMES, SILENT, TESTABLE
from repro.report.scorecard import decisive, scorecard
from repro.report.tables import MISSING, Shown, between, nothing, show, verdict_pill
from repro.results import in_one_block

POINT = ["value", "low", "high"]
# A measurement's side, by the claimed one
LEANS = {1.0: "same direction", -1.0: "other direction", 0.0: "unclear"}
HOW_TO_READ = (
    "Beside a number stands its 95 % interval; ≤ or ≥, of the smallest or largest of several, the "
    "end that decides; up to ±, how far either way the farthest of several may be. 1 of 3 parts: "
    "so many parts of the claim have this verdict. 78.57 ± 0.23, in tables: mean and standard "
    "deviation over seeds."
)
WIDEST = 4  # Times the number's distance from the null: as far as a whisker is drawn


def verdict_table(verdicts: pd.DataFrame, card: pd.DataFrame | None = None) -> Shown:
    """A line per claim of the scorecard: verdict, statement, the number that decides; all that was
    measured on a click.

    Below stands how numbers are written, what the words mean, and how many measurements on
    generated text lie to the claimed side of the null.
    """
    if verdicts.empty:
        return nothing("no claim can be judged from these rows")
    exact = verdicts["low"] == verdicts["high"]
    verdicts = (
        in_one_block(verdicts)
        .astype({"paper": float, "null": float})
        .assign(low=verdicts["low"].mask(exact))
    )
    if card is None:
        card = scorecard(verdicts.assign(page="")).query("claim_id in @verdicts.claim_id")
        elsewhere = card["claim_id"].map(pages_of) > 1
        card["statement"] += np.where(elsewhere, " (this page's part)", "")
    lines = [
        _claim(claim, verdicts[verdicts["claim_id"] == claim.claim_id])
        for claim in card.itertuples()
    ]
    words = {*verdicts["verdict"], *card["recorded"]} - {*ON_GENERATED}
    outcomes = [outcome for outcome in OUTCOMES if outcome in words]
    built = _leanings(verdicts[verdicts["verdict"].isin(ON_GENERATED)])
    legend = "".join(f"<li>{verdict_pill(o)} {escape(MEANING[o])}</li>" for o in outcomes)
    html = "".join(line.html for line in lines)
    html += f'<p class="built">{HOW_TO_READ}</p><p class="built">{built}</p>'
    html += (
        "<details class='folded'><summary>Verdicts</summary><ul "
        f"class='verdict-legend'>{legend}</ul></details>"
    )
    meant = [f"- {o}: {MEANING[o]}" for o in outcomes]
    plain = [*(line.markdown for line in lines), HOW_TO_READ, "", built, *meant]
    return Shown(f'<div class="claims">{html}</div>', "\n".join(plain))


def _leanings(on_generated: pd.DataFrame) -> str:
    """How many measurements on generated text lie to the claimed side; empty if there are none."""
    claimed = (
        np.sign(on_generated["paper"] - on_generated["null"])
        .replace(0, nan)
        .fillna(on_generated["direction"].astype(float))
        .astype(float)
    )
    moved = on_generated["verdict"].map({"up": 1, "down": -1, "unclear": 0}).astype(float)
    counts = (moved * claimed).map(LEANS).value_counts()
    told = ", ".join(f"{words} {n}" for words, n in counts.items())
    return f"This build, generated text: {told}." if told else ""


def _claim(claim: Any, parts: pd.DataFrame) -> Shown:
    """One claim, with what was measured of it."""
    deciding = _deciding(claim, parts)
    number = drawn = rests = ""
    if deciding is not None:
        number, drawn = beside_printed(deciding), whisker(deciding)
        rests = "; ".join(filter(None, (deciding["what"], claim.rests)))
    elif claim.recorded in SILENT:
        rests = claim.why  # In place of a number, why there is none
    else:
        rests = claim.rests
    why = "" if rests == claim.why else claim.why
    reason = f" ({claim.briefly})" if claim.briefly else ""
    measured = show(_measurements(parts))
    page = f' <a href="../notebooks/{escape(claim.page)}.html">Its page</a>' if claim.page else ""
    live = f" {verdict_pill(claim.live)} (live)" if claim.live not in SILENT else ""
    html = (
        f'<details class="claim" id="{escape(claim.claim_id)}" '
        f'data-document="{escape(claim.paper)}" data-verdict="{escape(claim.recorded)}">'
        f"<summary><span>{verdict_pill(claim.recorded)}{escape(reason)}{live}</span> "
        f'<span class="claim-said"><span class="claim-id">{escape(claim.claim_id)}</span> '
        f"{escape(claim.statement)}</span> "
        f'<span class="claim-value">{drawn} {number}'
        f'<span class="claim-rests">{escape(rests)}</span></span></summary>'
        f"<p>{escape(f'{claim.place}; {TESTABLE[claim.testable]}.')} {escape(why)}{page}</p>"
        f"{measured.html}</details>"
    )
    lines = [
        f"- **{claim.recorded}**{reason} {claim.claim_id}: {claim.statement} {number}",
        *([f"  {rests}"] if rests else []),
    ]
    return Shown(html, "\n".join([*lines, f"\n{measured.markdown}\n"]))


def _deciding(claim: Any, parts: pd.DataFrame) -> dict[Any, Any] | None:
    """The measurement that a claim's line shows: of the recorded ones the decisive, or any where
    none is recorded; none where recorded ones say nothing.
    """
    recorded = parts[parts["kind"] == "recorded"]
    if len(recorded) > 0 and claim.recorded in SILENT:
        return None
    decisive_parts = decisive(recorded, claim.network)
    shown = parts if decisive_parts.empty else decisive_parts
    return next(iter(shown.iloc[:1].to_dict("records")), None)


def _measurements(parts: pd.DataFrame) -> pd.DataFrame:
    """All that was measured of a claim, in words, a line each."""
    table = pd.DataFrame({"verdict": parts["verdict"], "numbers": parts["kind"]})
    with_reason = parts["what"] + " – " + parts["why"]
    table["measured"] = parts["what"].where(parts["why"] == "", with_reason)
    speakers = zip(parts["network"], parts["seeds"], strict=True)
    table["network"] = [
        f"{name}, {n} seed{'s' * (n != 1)}" if name else MISSING for name, n in speakers
    ]
    table["printed"] = [between(number, nan, nan) for number in parts["paper"]]
    measurements = parts.to_dict("records")
    table["value"] = [told_number(part) for part in measurements]
    table["unit"] = parts["unit"].to_list()
    # They are of different cells; nobody is told them as the interval of the number shown
    table["ends of all"] = [
        between(*numbers_of(part, *POINT)).partition(" ")[2] if part["extreme"] else ""
        for part in measurements
    ]
    return table


def numbers_of(part: Mapping[Any, Any], *names: str) -> list[float]:
    """Numbers of a measurement by their names; NaN where it has none."""
    return [nan if part[name] is None else float(part[name]) for name in names]


def told_number(part: Mapping[Any, Any]) -> str:
    """A number with its interval; of the smallest or largest of several, whose ends come from
    different cells, only the end that decides, and of the farthest how far either way it may be.
    """
    value, low, high, null = numbers_of(part, *POINT, "null")
    if not part["extreme"] or isnan(low):
        return between(value, low, high)
    alone = between(value, nan, nan)
    if part["test"] == "sameness":
        return f"{alone}, up to ±{between(max(-low, high), nan, nan)}"
    if high <= null:
        return f"{alone}, ≤ {between(high, nan, nan)}"
    return f"{alone}, ≥ {between(low, nan, nan)}" if low > null else between(value, low, high)


def beside_printed(part: Mapping[Any, Any]) -> str:
    """A number with its interval and unit, and the printed one if there is one."""
    number = f"{told_number(part)} {part['unit']}"
    if pd.isna(part["value"]):
        return ""
    if pd.isna(part["paper"]):
        return number
    return f"{number}; printed {between(part['paper'], nan, nan)}"


def whisker(part: Mapping[Any, Any]) -> str:
    """A number as a dot, its interval as a line, the null as an upright and the printed number as a
    hollow dot.

    An interval much wider than its number is far from the null leaves the drawing in an arrow.
    """
    value, low, high, null, paper = numbers_of(part, *POINT, "null", "paper")
    if isnan(value):
        return ""
    if part["extreme"] and part["test"] == "sameness":  # How far it may be either way
        low, high = min(low, -high), max(high, -low)
    numbers = [value - null, paper - null, 1e-9]
    nearer_end = np.nanmin(np.abs([low - null, high - null, inf]))
    near = np.nanmax(np.abs([*numbers, nearer_end]))
    near = min(near, WIDEST * np.nanmax(np.abs(numbers)))
    far = np.nanmax(np.abs([low - null, high - null, near]))
    reach = min(far, WIDEST * near)
    numbers_by_name = {"value": value, "low": low, "high": high, "paper": paper}
    x = {}
    for name, number in numbers_by_name.items():
        share = float(np.clip((number - null) / reach, -1, 1))
        x[name] = 60 + 54 * share
    line = "" if isnan(low) else f'<path d="M{x["low"]:.1f} 8H{x["high"]:.1f}" stroke-width="2"/>'
    left = '<path class="cut" d="M11 4L6 8L11 12" fill="none"/>' if low - null < -reach else ""
    right = '<path class="cut" d="M109 4L114 8L109 12" fill="none"/>' if high - null > reach else ""
    hollow = "" if isnan(paper) else f'<circle cx="{x["paper"]:.1f}" cy="8" r="4" fill="none"/>'
    dot = f'<circle cx="{x["value"]:.1f}" cy="8" r="3.5" fill="currentColor"/>'
    marks = f'<path class="null" d="M60 1V15"/>{line}{left}{right}{hollow}{dot}'
    return f'<svg class="whisker" viewBox="0 0 120 16" aria-hidden="true">{marks}</svg>'
