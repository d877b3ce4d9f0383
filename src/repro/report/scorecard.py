"""Verdicts as tables: those of a page, and the scorecard of all claims."""

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from html import escape
from math import inf, isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from repro import paths
from repro.digests import digest
from repro.paths import PACKAGE, is_out_of_memory, replacing
from repro.report.claims import OfExperiment, claims, pages_of, record_of
from repro.report.speakers import placed, short_names
from repro.report.tables import (
    KINDS,
    MISSING,
    Shown,
    between,
    nothing,
    show,
    to_myst,
    verdict_pill,
)
from repro.report.verdict import (
    MEANING,
    NOT_SEEN,
    ON_GENERATED,
    OUTCOMES,
    SEEN_AGAIN,
    SILENT,
    TESTABLE,
    Measurement,
    Outcome,
    survivors,
    worst,
)
from repro.rows import results_folder
from repro.store import Store, sha256

log = logging.getLogger(__name__)
POINT = ["value", "low", "high"]
COLUMNS = [
    "claim_id",
    "what",
    "kind",
    "network",
    "paper",
    "value",
    "low",
    "high",
    "unit",
    "extreme",
    "verdict",
    "why",
    "chance",
    "test",
    "scope",
    "seeds",
    "null",
    "direction",
    "margin",
]
"""What is kept of a measurement."""
# A measurement's side, by the claimed one
LEANS = {1.0: "same direction", -1.0: "other direction", 0.0: "unclear"}


def verdict_frame(
    kind: str,
    measurements: Iterable[Measurement],
    rows: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Measurements of one kind of number with their verdicts, one line each; their rows say who
    speaks, if given.
    """
    lines = []
    for m in measurements if rows is None else placed(measurements, rows):
        record_of(m.claim_id)  # Which has to be known
        decision = {"verdict": m.verdict, "why": m.why, "chance": m.chance}
        lines.append({**asdict(m), "kind": kind, **decision})
    return pd.DataFrame(lines, columns=COLUMNS)


def recorded_frame(
    judged: Callable[[pd.DataFrame], list[Measurement]],
    rows: pd.DataFrame,
    speaking: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """The verdicts of recorded rows, in which `speaking`, by default they themselves, say who
    speaks.

    While the book is built, those of a document's table are kept in the store: several pages show
    the same. Elsewhere they are computed and nothing is written, since folders may be read-only.
    """
    speaking = rows if speaking is None else speaking

    def lines() -> list[dict[str, Any]]:
        return verdict_frame("recorded", judged(rows), speaking).to_dict("records")

    if not isinstance(judged, OfExperiment) or not os.environ.get("REPRO_BOOK"):
        return pd.DataFrame(lines(), columns=COLUMNS)
    # Premises read other recorded rows, and rules the tables of claims and of printed values
    read = [path for path in PACKAGE.rglob("*") if path.suffix in (".toml", ".csv")]
    read += results_folder().glob("*.parquet")
    named = {
        "experiment": judged.experiment,
        "options": judged.options,
        "rows": [_digest_of(rows), _digest_of(speaking)],
        "files": sorted(map(sha256, read)),
    }
    code = (*judged.code, __name__)
    return pd.DataFrame(Store().remember("verdicts", named, lines, code=code), columns=COLUMNS)


def _digest_of(rows: pd.DataFrame) -> str:
    """Digest of what rows hold, in their order."""
    hashed = pd.util.hash_pandas_object(rows, index=False).to_numpy()
    return digest({"columns": list(rows.columns), "rows": hashed})


def verdicts_folder() -> Path:
    """Where the pages of the book leave their verdicts for the scorecard: beside the build they
    belong to.
    """
    return paths.project_root() / "_build" / "verdicts"


def write_verdicts(page: str, *frames: pd.DataFrame) -> None:
    """Leave a page's verdicts behind for the scorecard, whole or not at all.

    Only while the book is built (`REPRO_BOOK` is set): other runs must not speak for the book.
    """
    if not os.environ.get("REPRO_BOOK"):
        return
    path = paths.inside(verdicts_folder(), f"{page}.parquet")
    joined = pd.concat(
        [frame for frame in frames if len(frame)] or list(frames[:1]),
        ignore_index=True,
    )
    with replacing(path) as partial:
        joined.assign(page=page).to_parquet(partial, index=False, write_page_checksum=True)


def read_verdicts() -> pd.DataFrame:
    """The verdicts of all pages built so far; a damaged file is left out with a warning, the next
    build mends it.
    """
    frames = [verdict_frame("live", []).assign(page="")]
    for path in sorted(verdicts_folder().glob("*.parquet")):
        try:
            found = pd.read_parquet(path, page_checksum_verification=True)
            for column, words in (("verdict", OUTCOMES), ("kind", KINDS), ("page", [path.stem])):
                if not set(found[column]) <= set(words):
                    raise ValueError(
                        f"its column {column} holds other words than {', '.join(words)}"
                    )
            frames.append(found[frames[0].columns])
        except Exception as error:  # damage shows in whatever the reader stumbles over
            if is_out_of_memory(error):
                raise
            log.warning(
                "%s holds no verdicts that can be read (%s): left out, `repro book` makes it anew",
                path,
                error,
            )
    return pd.concat([frame for frame in frames if len(frame)] or frames, ignore_index=True)


@dataclass(frozen=True)
class Told:
    """What all networks that a claim names say of it together."""

    verdict: Outcome
    network: str = ""  # The first that says so
    tally: str = ""  # How many of those that can bear on it say so
    others: str = ""  # What the rest say
    why: str = ""


def heard(claim: str, parts: pd.DataFrame) -> dict[str, Outcome]:
    """What each network says that the claim's record names, in the order of the record: its weakest
    part; of a question, whether it answers a part.

    Networks that speak together are heard where the last of them would be, if all are named.
    """
    judges = list(record_of(claim)["judges"])
    said: dict[str, tuple[int, Outcome]] = {}
    for name, own in parts.groupby("network", sort=False):
        place = rank(claim, str(name))
        if place < len(judges):
            verdicts = list(own["verdict"])
            word = "answered" if "answered" in verdicts else worst(verdicts)
            said[str(name)] = (place, word)
    in_order = sorted(said, key=lambda name: said[name][0])
    return {name: said[name][1] for name in in_order}


def rank(claim: str, networks: str) -> int:
    """The place of networks, with commas between them, among those that the claim's record names:
    the last of them counts; one that is not named comes after all.
    """
    judges = list(record_of(claim)["judges"])
    places = [judges.index(n) if n in judges else len(judges) for n in short_names(networks)]
    return max(places)


def told(claim: str, parts: pd.DataFrame) -> Told:
    """The verdict of a claim from its measurements on all networks.

    Every network that its record names and that passes its conditions is counted; those that
    decide differently make the verdict `split`. A claim that speaks of certain networks only needs
    all of them, and one against it is enough.
    """
    record = record_of(claim)
    said = heard(claim, parts)
    speaking = {name: word for name, word in said.items() if word not in SILENT}
    seen = [name for name, word in speaking.items() if word in SEEN_AGAIN]
    not_seen = [name for name, word in speaking.items() if word in NOT_SEEN]
    lacking = ""
    if record["testable"] == "only that network":
        present = {one for name in speaking for one in short_names(name)}
        absent = [name for name in record["judges"] if name not in present]
        lacking = f"needs {' and '.join(absent)}" if absent else ""
        seen = [] if not_seen else seen
    if seen and not_seen:
        word, first = "split", seen[0]
        why = f"{', '.join(seen)} for it, {', '.join(not_seen)} against it"
    elif seen and lacking:
        word, first, why = "cannot tell", seen[0], lacking
    else:
        word = together_of(list(speaking.values()) or list(said.values()))
        first = next((name for name in said if said[name] == word), "")
        why = lacking if word in SILENT and lacking else reason_of(parts, first, word)
    agreeing = seen if word in ("split", *SEEN_AGAIN) else not_seen if word in NOT_SEEN else []
    if word in ("cannot tell", "answered"):
        agreeing = [name for name in speaking if speaking[name] == word] or seen
    tally = f"{len(agreeing)} of {len(speaking)}" if speaking else ""
    others = [f"{name}: {outcome}" for name, outcome in said.items() if name != first]
    return Told(word, first, tally, "; ".join(others), why)


def together_of(words: Sequence[Outcome]) -> Outcome:
    """What networks say that do not disagree: what is said on the paper's own network, else the
    weaker of those that decide, else the first.
    """
    for own in ("not reproduced", "reproduced"):
        if own in words:
            return own
    deciding = [word for word in words if word in (*SEEN_AGAIN, *NOT_SEEN, "answered")]
    return worst(deciding) if deciding else next(iter(words), "not attempted")


def reason_of(parts: pd.DataFrame, network: str, word: Outcome) -> str:
    """What stands beside a verdict on a network, the most telling first; of one without any, what
    stands beside any part.
    """
    own = decisive(parts, network)
    own = own if len(own) else parts[parts["verdict"] == word]
    return next((reason for reason in own["why"] if reason), "")


def decisive(parts: pd.DataFrame, network: str) -> pd.DataFrame:
    """The parts of a claim that decide it on a network: those of its word, the most telling first.

    A contradiction and an answer are told by the part that is surest, all else by the part that is
    least sure.
    """
    own = parts[parts["network"] == network]
    if own.empty:
        return own
    word = "answered" if (own["verdict"] == "answered").any() else worst(list(own["verdict"]))
    own = own[own["verdict"] == word]
    surest = word in (*NOT_SEEN, "answered")
    return own.sort_values("chance", ascending=surest, kind="stable", na_position="last")


def scorecard(given: pd.DataFrame | None = None) -> pd.DataFrame:
    """Every claim with its recorded and its live verdict, each by the networks that its record
    names.

    Beside the recorded one: the first network that says so (`network`), how many of those that can
    bear on the claim do (`tally`), the `others`, the reason or what it would take (`why`), on how
    much it rests (`rests`) and how likely it is by luck (`chance`). Generated text judges nothing.
    Verdicts are those given, by default those that the build's pages left.
    """
    given = read_verdicts() if given is None else given
    card = claims().copy()
    for kind in ("recorded", "live"):
        own = given[(given["kind"] == kind) & ~given["verdict"].isin(ON_GENERATED)]
        of_claim = dict(list(own.groupby("claim_id")))
        parts_of = [of_claim.get(claim, own.iloc[:0]) for claim in card["claim_id"]]
        pairs = list(zip(card["claim_id"], parts_of, strict=True))
        said = [told(claim, parts) for claim, parts in pairs]
        card[kind] = [one.verdict for one in said]
        if kind == "recorded":
            for column in ("network", "tally", "others", "why"):
                card[column] = [getattr(one, column) for one in said]
            rested = [rests_on(one, parts) for one, (_, parts) in zip(said, pairs, strict=True)]
            card["rests"], card["chance"] = zip(*rested, strict=True)
    card["page"] = card["claim_id"].map(given.groupby("claim_id")["page"].first()).fillna("")
    return card


def rests_on(one: Told, parts: pd.DataFrame) -> tuple[str, float]:
    """On how much a verdict rests, such as "1 of 8 parts, 3 seeds, 1 of 2 networks", and how likely
    it is by luck; nothing of one that nobody told.

    One part is enough against a claim; for it all are needed, so the least sure of them counts.
    """
    deciding = decisive(parts, one.network)
    if deciding.empty or one.verdict in SILENT:
        return "", nan
    on_network = parts[parts["network"] == one.network]
    of_network = len(on_network)
    seeds = int(deciding["seeds"].min())
    of_all = int(one.tally.split()[-1])
    said = (
        f"{len(deciding)} of {of_network} part{'s' * (of_network != 1)}, "
        f"{seeds} seed{'s' * (seeds != 1)}, {one.tally} network{'s' * (of_all != 1)}"
    )
    if one.verdict in SEEN_AGAIN:
        return said, float(on_network["chance"].max())
    return said, float(deciding["chance"].iloc[0]) if one.verdict in NOT_SEEN else nan


def counted(card: pd.DataFrame) -> pd.DataFrame:
    """The claims that are counted: all but what this book observed by itself."""
    return card[card["testable"] != "ours"]


def front_sentence(card: pd.DataFrame) -> str:
    """What the recorded runs say of all documents together, for the front page."""
    card = counted(card)
    said = card["recorded"].value_counts()

    def number(*outcomes: Outcome) -> int:
        return int(sum(said.get(outcome, 0) for outcome in outcomes))

    tested = number(*SEEN_AGAIN, *NOT_SEEN, "split", "cannot tell")
    against = card[card["recorded"].isin(NOT_SEEN)]
    on_own = [
        set(short_names(network)) <= set(record_of(claim)["own"])
        for claim, network in zip(against["claim_id"], against["network"], strict=True)
    ]
    own = sum(on_own)
    decided = number(*SEEN_AGAIN, *NOT_SEEN)
    return (
        f"{number('reproduced', 'holds here')} of {tested} statements that could be tested on "
        f"networks that can bear on them were seen again, {number('direction only')} in direction "
        f"only, {len(against)} not; of the {len(against)}, {own} {'was' if own == 1 else 'were'} "
        f"tested on the paper's own network. Networks disagree on {number('split')}, and on "
        f"{number('cannot tell')} no network can tell. Of the {decided} that are decided, "
        f"{survivors(card['chance'])} stay so if all are asked to hold at once (Holm)."
    )


def counts(card: pd.DataFrame) -> pd.DataFrame:
    """How many claims of each document have which verdict, recorded and live; what this book
    observed by itself is not counted.
    """
    long = (
        counted(card)
        .rename(columns={"paper": "document"})
        .melt(
            "document",
            ["recorded", "live"],
            "numbers",
            "verdict",
        )
    )
    table = long.groupby(["document", "numbers", "verdict"]).size().unstack(fill_value=0)
    return table.reindex(
        columns=[o for o in OUTCOMES if o not in ON_GENERATED],
        fill_value=0,
    ).reset_index()


def verdict_table(verdicts: pd.DataFrame, card: pd.DataFrame | None = None) -> Shown:
    """A line per claim of the scorecard: verdict, statement, the number that decides; all that was
    measured on a click.

    Below stands what the words mean, and how many measurements on generated text lie to the claimed
    side of the null.
    """
    if verdicts.empty:
        return nothing("no claim can be judged from these rows")
    exact = verdicts["low"] == verdicts["high"]
    verdicts = verdicts.astype({"paper": float, "null": float}).assign(
        low=verdicts["low"].mask(exact)
    )
    if card is None:
        card = scorecard(verdicts.assign(page="")).query("claim_id in @verdicts.claim_id")
        elsewhere = card["claim_id"].map(pages_of) > 1
        card["statement"] += np.where(elsewhere, " (this page's part)", "")
    lines = [
        _claim(claim, verdicts[verdicts["claim_id"] == claim.claim_id])
        for claim in card.itertuples()
    ]
    words = [
        o
        for o in OUTCOMES
        if o in {*verdicts["verdict"], *card["recorded"]} and o not in ON_GENERATED
    ]
    own = verdicts[verdicts["verdict"].isin(ON_GENERATED)]
    side = (
        np.sign(own["paper"] - own["null"]).replace(0, nan).fillna(own["direction"].astype(float))
    )
    moved = own["verdict"].map({"up": 1, "down": -1, "unclear": 0}).astype(float)
    lean = (moved * side.astype(float)).map(LEANS).value_counts()
    built = ", ".join(f"{words} {n}" for words, n in lean.items())
    built = built and f"This build, generated text: {built}."
    legend = "".join(f"<li>{verdict_pill(o)} {escape(MEANING[o])}</li>" for o in words)
    html = "".join(line.html for line in lines) + f'<p class="built">{built}</p>'
    html += (
        "<details class='folded'><summary>Verdicts</summary><ul "
        f"class='verdict-legend'>{legend}</ul></details>"
    )
    plain = [*(line.markdown for line in lines), built, *(f"- {o}: {MEANING[o]}" for o in words)]
    return Shown(f'<div class="claims">{html}</div>', "\n".join(plain))


def _claim(claim: Any, own: pd.DataFrame) -> Shown:
    """One claim, with what was measured of it."""
    recorded = own[own["kind"] == "recorded"]
    silent = len(recorded) > 0 and claim.recorded in SILENT
    shown = own.iloc[:0] if silent else decisive(recorded, claim.network)
    shown = own if shown.empty and not silent else shown
    value = beside_printed(shown.iloc[0]) if len(shown) else ""
    drawn = whisker(shown.iloc[0]) if len(shown) else ""
    measured = shown["what"].iloc[0] if len(shown) else ""
    rests = "; ".join(filter(None, (measured, claim.rests)))
    word = claim.why.removeprefix("likely reason: ") if claim.recorded in NOT_SEEN else ""
    reason = f" ({word})" if word else ""
    kind = TESTABLE[claim.testable]
    table = pd.DataFrame({"verdict": own["verdict"], "numbers": own["kind"]})
    table["measured"] = own["what"].where(own["why"] == "", own["what"] + " – " + own["why"])
    speakers = zip(own["network"], own["seeds"], strict=True)
    table["network"] = [
        f"{name}, {n} seed{'s' * (n != 1)}" if name else MISSING for name, n in speakers
    ]
    table["printed"] = [between(number, nan, nan) for number in own["paper"]]
    table["value"] = [told_number(part) for _, part in own.iterrows()]
    table["unit"] = own["unit"].to_list()
    # They are of different cells; nobody is told them as the interval of the number shown
    table["ends of all"] = [
        between(*part[list(POINT)]).partition(" ")[2] if part["extreme"] else ""
        for _, part in own.iterrows()
    ]
    page = f' <a href="../notebooks/{escape(claim.page)}.html">Its page</a>' if claim.page else ""
    live = f" {verdict_pill(claim.live)} (live)" if claim.live not in SILENT else ""
    html = (
        f'<details class="claim" data-document="{escape(claim.paper)}" '
        f'data-verdict="{escape(claim.recorded)}">'
        f"<summary><span>{verdict_pill(claim.recorded)}{escape(reason)}{live}</span> "
        f'<span class="claim-said">{escape(claim.statement)}</span> '
        f'<span class="claim-value">{drawn} {value}'
        f'<span class="claim-rests">{escape(rests)}</span></span></summary>'
        f"<p>{escape(f'{claim.claim_id}, {claim.place}; {kind}.')} {escape(claim.why)}{page}</p>"
        f"{show(table).html}</details>"
    )
    lines = [
        f"- **{claim.recorded}**{reason} {claim.claim_id}: {claim.statement} {value}",
        *([f"  {rests}"] if rests else []),
    ]
    return Shown(html, "\n".join([*lines, f"\n{to_myst(table)}\n"]))


def told_number(part: pd.Series) -> str:
    """A number with its interval; of the smallest or largest of several, whose ends come from
    different cells, only the end that decides, and of the farthest how far either way it may be.
    """
    value, low, high, null = part[[*POINT, "null"]].astype(float)
    if not part["extreme"] or isnan(low):
        return between(value, low, high)
    alone = between(value, nan, nan)
    if part["test"] == "sameness":
        return f"{alone}, up to ±{between(max(-low, high), nan, nan)}"
    if high <= null:
        return f"{alone}, ≤ {between(high, nan, nan)}"
    return f"{alone}, ≥ {between(low, nan, nan)}" if low > null else between(value, low, high)


def beside_printed(part: pd.Series) -> str:
    """A number with its interval and unit, and the printed one if there is one."""
    said = f"{told_number(part)} {part['unit']}"
    if pd.isna(part["value"]):
        return ""
    if pd.isna(part["paper"]):
        return said
    return f"{said}; printed {between(part['paper'], nan, nan)}"


def whisker(part: pd.Series) -> str:
    """A number as a dot, its interval as a line, the null as an upright and the printed number as a
    hollow dot.

    An interval much wider than its number is far from the null leaves the drawing in an arrow.
    """
    value, low, high, null, paper = part[[*POINT, "null", "paper"]].astype(float)
    if isnan(value):
        return ""
    if part["extreme"] and part["test"] == "sameness":  # How far it may be either way
        low, high = min(low, -high), max(high, -low)
    numbers = [value - null, paper - null, 1e-9]
    near = np.nanmax(np.abs([*numbers, np.nanmin(np.abs([low - null, high - null, inf]))]))
    near = min(near, WIDEST * np.nanmax(np.abs(numbers)))
    far = np.nanmax(np.abs([low - null, high - null, near]))
    reach = min(far, WIDEST * near)
    x = {
        name: 60 + 54 * float(np.clip((number - null) / reach, -1, 1))
        for name, number in (("value", value), ("low", low), ("high", high), ("paper", paper))
    }
    line = "" if isnan(low) else f'<path d="M{x["low"]:.1f} 8H{x["high"]:.1f}" stroke-width="2"/>'
    left = '<path class="cut" d="M11 4L6 8L11 12" fill="none"/>' if low - null < -reach else ""
    right = '<path class="cut" d="M109 4L114 8L109 12" fill="none"/>' if high - null > reach else ""
    hollow = "" if isnan(paper) else f'<circle cx="{x["paper"]:.1f}" cy="8" r="4" fill="none"/>'
    dot = f'<circle cx="{x["value"]:.1f}" cy="8" r="3.5" fill="currentColor"/>'
    marks = f'<path class="null" d="M60 1V15"/>{line}{left}{right}{hollow}{dot}'
    return f'<svg class="whisker" viewBox="0 0 120 16" aria-hidden="true">{marks}</svg>'


WIDEST = 4  # Times the number's distance from the null: as far as a whisker is drawn
