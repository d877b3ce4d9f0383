"""Verdicts as tables: which network may judge which claim (method-verdicts in the book), those of a
page, and the scorecard of all claims.
"""

import logging
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from html import escape
from math import inf, isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from repro import paths
from repro.methods import BASELINES, END_TO_END, UNTRAINED
from repro.objectives import ANGLE_RECIPES
from repro.paths import is_out_of_memory, replacing
from repro.report.claims import claims, experiment_of, lift_of, pages_of, record_of
from repro.report.judge import (
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
from repro.report.tables import (
    KINDS,
    MISSING,
    Shown,
    between,
    names,
    nothing,
    show,
    to_myst,
    verdict_pill,
)
from repro.rows import recorded_rows

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


def short_names(networks: str) -> list[str]:
    """The names of networks with commas between them; of a hub id, without its owner."""
    return [Path(name).name for name in networks.split(", ")]


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


STAND_INS = (
    "all-mpnet-base-v2",
    "e5-small-en",
    "all-MiniLM-L6-v2",
    "universal-sentence-encoder-multilingual-v3",
    "repro-mini",
    "repro-tiny",
    "repro-tiny + SimCSE",
)
"""Every other network, from the nearest to a paper's to the farthest."""
MENDED = "flow|whitening|-LP"  # in the names of such lines
BLOCKS = {
    "repro-tiny": 2,
    "repro-mini": 6,
    "all-MiniLM-L6-v2": 6,
    "e5-small-en": 12,
    "all-mpnet-base-v2": 12,
}
SIZES = {"repro-tiny": 128, "repro-mini": 384, "all-MiniLM-L6-v2": 384, "e5-small-en": 384}
SIZES |= dict.fromkeys(("all-mpnet-base-v2", "roberta-base", "bert-base-uncased"), 768)
"""Full sizes of networks with rows; to ask the networks themselves would load torch."""
FEWEST_BLOCKS = 4  # of a network that is asked about depth
LEAST_LIFT = 0.2  # of the paper's: what training has to lift a network that speaks of it


@dataclass(frozen=True)
class Known:
    """What rows say of the networks of an experiment."""

    rows: pd.DataFrame
    # Full-size scores of networks on STS-B; None where the rows hold none
    scores: Mapping[str, float | None]


def nearness(network: str, own: Sequence[str] = ()) -> int:
    """The place of a network: first a paper's own, then the stand-ins, then all others."""
    order = (*own, *STAND_INS)
    # A hub id without its owner
    return order.index(name) if (name := Path(network).name) in order else len(order)


def deep(m: Measurement, known: Known) -> str:
    """Depth cannot be told from a network of two or three layers."""
    few = {name: BLOCKS.get(name, FEWEST_BLOCKS) for name in m.network.split(", ")}
    said = [f"{name} has {blocks} blocks" for name, blocks in few.items() if blocks < FEWEST_BLOCKS]
    return f"at least {FEWEST_BLOCKS} blocks: {', '.join(said)}" if said else ""


def chosen_on_dev(m: Measurement, known: Known) -> str:
    """Settings that nobody chose for a network say little of what training can do with it."""
    chosen = {*record_of(m.claim_id)["own"], *(Path(own).name for own, _ in ANGLE_RECIPES)}
    lacking = [n for n in m.network.split(", ") if Path(n).name not in chosen]
    return f"settings chosen on dev: {', '.join(lacking)} has the paper's" if lacking else ""


def above_words(m: Measurement, known: Known) -> str:
    """A network that says less of similarity than counted words do cannot say what its size does to
    it. Asked of the parts that speak of similarity.
    """
    if not re.search(record_of(m.claim_id).get("asked_of", ""), m.what):
        return ""
    floor = full_size_scores().get(BASELINES["tfidf"], nan)
    scores = {name: known.scores.get(name) for name in m.network.split(", ")}
    said = [
        f"{name} has {score:.1f}"
        for name, score in scores.items()
        if score is not None and score <= floor
    ]
    return (
        f"a full-size score on STS-B above counted words' {floor:.1f}: {', '.join(said)}"
        if said
        else ""
    )


def taught(m: Measurement, known: Known) -> str:
    """A network that training does not lift has nothing to show of a way to train: it has to be
    lifted by at least a fifth of what the paper's is.
    """
    experiment = str(known.rows["experiment"].iloc[0])
    lift = lift_of(experiment)
    if not lift:
        return ""
    rows = known.rows if experiment == lift["rows"] else recorded_rows(lift["rows"])
    least = LEAST_LIFT * (lift["trained"] - lift["untouched"])
    for name in m.network.split(", "):
        lifted = lifted_by(rows, name)
        if isnan(lifted):
            return f"{UNTOLD}needs {lift['objective']} at full width beside the untouched {name}"
        if lifted < least:
            points = f"{lifted:.1f}".replace("-", "−")
            return (
                f"{lift['objective']} lifts {name} by {points} points on STS-B's dev pairs, "
                f"and the paper's network by five times {least:.1f}"
            )
    return ""


UNTOLD = "not told: "
"""How the words of a condition begin that no row tells of."""


def lifted_by(rows: pd.DataFrame, network: str) -> float:
    """In points, the encoder's score on dev pairs after training at full width less that of the
    untouched network, at the same readout; NaN where rows hold only one of them.
    """
    own = rows[(rows["backbone"] == network) & (rows["readout"] == "encoder")]
    own = own[(own["metric"] == "spearman") & own["setting"].fillna("").str.startswith("dev")]
    untouched = own[own["method"] == UNTRAINED]
    trained = own[own["method"] == END_TO_END]
    width = SIZES.get(Path(network).name, trained["dim"].max())
    trained = trained[trained["dim"] == width]
    return 100 * float(trained["value"].mean() - untouched["value"].mean())


def full_score(rows: pd.DataFrame) -> float | None:
    """The best Spearman × 100 on STS-B's test pairs of any line at the largest size; None where
    rows hold none.

    What was mended after training, by a flow or a mapping, says nothing of the network.
    """
    own = rows[(rows["metric"] == "spearman") & (rows["dataset"] == "stsb") & rows["dim"].notna()]
    own = own[~own["setting"].fillna("").str.startswith("dev")]
    own = own[(own["dim"] == own["dim"].max()) & ~own["method"].str.contains(MENDED)]
    means = own.groupby(["method", "readout", "layer"], dropna=False)["value"].mean()
    return 100 * float(means.max()) if len(means) else None


def named(what: str, networks: list[str]) -> list[str]:
    """The networks that a text names; a name within a longer one that it names does not count."""
    found = [name for name in networks if name in what]
    return [name for name in found if sum(name in other for other in found) == 1]


CONDITIONS = {
    condition.__name__: condition for condition in (deep, chosen_on_dev, above_words, taught)
}
"""What a claim may ask of a network: in words, what the network lacks."""


def asked(m: Measurement, known: Known) -> Measurement:
    """A measurement with what its network lacks of all that the claim asks of it."""
    lacking = [CONDITIONS[name](m, known) for name in record_of(m.claim_id)["asks"]]
    unmet = [words for words in lacking if words and not words.startswith(UNTOLD)]
    untold = [words.removeprefix(UNTOLD) for words in lacking if words.startswith(UNTOLD)]
    return replace(
        m,
        unmet=m.unmet or "; ".join(unmet),
        unknown=m.unknown or "; ".join(untold),
    )


def placed(found: Iterable[Measurement], rows: pd.DataFrame) -> Iterator[Measurement]:
    """Measurements with what their rows and the record of their claim say of who speaks: network,
    generated text, scope, the condition that fails.

    A measurement that names no network of its rows speaks for all of them. Parts of a claim are
    counted on all networks that its record names and that can bear on it, since each may contradict
    it; so are these networks, since on each it may hold.
    """
    everyone = [str(name) for name in rows["backbone"].dropna().unique()]
    generated = (rows["data_source"] == "microworld").any()
    # a page without STS-B says nothing of its networks' scores there, but recorded ones do
    scored = (
        pd.concat([rows, recorded_rows("sbertlp_table1")])
        if (rows["dataset"] != "stsb").all()
        else rows
    )
    scores = {name: full_score(scored[scored["backbone"] == name]) for name in everyone}
    known = Known(rows, scores)
    protocol = str(rows["experiment"].dropna().iloc[0]) if rows["experiment"].notna().any() else ""
    # Folds of all items are judged by what the others teach; the papers have a test split
    another = "protocol" in experiment_of(protocol) or protocol.endswith("_folds")
    whole = []
    for m in found:
        record = record_of(m.claim_id)
        network = m.network or ", ".join(named(m.what, everyone) or everyone)
        speakers = network.split(", ")
        # By us; the paper's own training is its profile's
        smaller = (
            record["trained"]
            and (rows.loc[rows["backbone"].isin(speakers), "profile"] != "paper").any()
        )
        of_paper = set(short_names(network)) <= set(record["own"])
        other_protocol = another or "protocol" in record
        same = bool(network) and of_paper and not (smaller or other_protocol)
        others = set(short_names(network)) - set(record["judges"])
        alone = record["testable"] == "only that network" and others
        m = replace(
            m,
            network=network,
            generated=bool(generated),
            scope="same" if same else "substitute",
            testable=record["testable"],
            likely=record["likely"],
            missing=m.missing
            or (f"speaks of {', '.join(record['judges'])} alone" if alone else ""),
        )
        whole.append(asked(m, known))
    bearing = [m for m in whole if may_decide(m)]
    parts = Counter(m.claim_id for m in bearing)
    networks = Counter(claim for claim, _ in {(m.claim_id, m.network) for m in bearing})
    for m in whole:
        together = pages_of(m.claim_id) * max(1, parts[m.claim_id])
        all_needed = m.testable == "only that network"
        on_any = 1 if all_needed else max(1, networks[m.claim_id])
        yield replace(m, parts=together, networks=on_any)


def may_decide(m: Measurement) -> bool:
    """Whether a measurement has an interval, and its network is named and passes the conditions."""
    if m.unmet or m.unknown or m.missing or isnan(m.low):
        return False
    return set(short_names(m.network)) <= set(record_of(m.claim_id)["judges"])


@lru_cache
def full_size_scores() -> dict[str, float]:
    """Spearman × 100 on STS-B's test pairs at full size, of recorded networks and TF-IDF, by what
    readers are shown.
    """
    frames = [recorded_rows("proposal_baselines"), recorded_rows("sbertlp_table1")]
    rows = pd.concat([f[(f["dataset"] == "stsb") & (f["metric"] == "spearman")] for f in frames])
    rows = rows[
        (rows["setting"].fillna("") == "") & ~rows["backbone"].isin(set(BASELINES) - {"tfidf"})
    ]
    said = names(rows)
    return (100 * rows.groupby(rows["method"].map(said), sort=False)["value"].first()).to_dict()
