"""Verdicts as tables: which network may judge which claim (method-verdicts in the book), those of a
page, and the scorecard of all claims.
"""

import logging
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from html import escape
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from repro import paths
from repro.methods import BASELINES
from repro.objectives import ANGLE_RECIPES
from repro.paths import is_out_of_memory, replacing
from repro.report.claims import claims, on_several_pages, record_of
from repro.report.judge import MEANING, ON_GENERATED, OUTCOMES, SILENT, Measurement, Outcome, worst
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
        lines.append({**asdict(m), "kind": kind, "verdict": m.verdict, "why": m.why})
    columns = [
        "claim_id",
        "what",
        "kind",
        "network",
        "paper",
        "value",
        "low",
        "high",
        "verdict",
        "why",
        "test",
    ]
    return pd.DataFrame(lines, columns=[*columns, "scope", "seeds", "null", "direction", "margin"])


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


def scorecard(given: pd.DataFrame | None = None) -> pd.DataFrame:
    """Every claim with its recorded and its live verdict, each by the network nearest the paper's
    that can tell.

    On one network a claim of several parts has the verdict of its worst part. Generated text judges
    nothing. What other recorded networks say stands in the column `others`, what it would take to
    tell in `why`. Verdicts are those given, by default those that the build's pages left.
    """
    given = read_verdicts() if given is None else given
    card = claims()[["claim_id", "paper", "place", "statement"]].copy()
    for kind in ("recorded", "live"):
        own = given[(given["kind"] == kind) & ~given["verdict"].isin(ON_GENERATED)]
        found = {
            claim: list(by_network(str(claim), parts).items())
            for claim, parts in own.groupby("claim_id")
        }
        said = [found.get(claim, [("", "not attempted")]) for claim in card["claim_id"]]
        card[kind] = [first[1] for first, *_ in said]
        if kind == "recorded":
            card["network"] = [first[0] for first, *_ in said]
            card["others"] = [
                "; ".join(f"{network}: {verdict}" for network, verdict in rest) for _, *rest in said
            ]
            why = own.groupby(["claim_id", "network", "verdict"])["why"].first()
            keys = zip(card["claim_id"], card["network"], card["recorded"], strict=True)
            card["why"] = [why.get(key, "") for key in keys]
    card["page"] = card["claim_id"].map(given.groupby("claim_id")["page"].first()).fillna("")
    return card


def by_network(claim: str, parts: pd.DataFrame) -> dict[str, Outcome]:
    """The worst part of a claim on every network, first those that can tell, the nearest to the
    paper's first.

    One that cannot bear on it, has no interval or cannot tell leaves the word to another; our small
    ones speak last.
    """
    said = {
        str(name): worst(list(own["verdict"])) for name, own in parts.groupby("network", sort=False)
    }
    sure = set(parts.loc[parts["low"].notna(), "network"])
    last = {
        n: (said[n] in SILENT, n not in sure, "repro" in n, said[n] == "cannot tell") for n in said
    }
    order = sorted(said, key=lambda name: (*last[name], rank(claim, name)))
    return {name: said[name] for name in order}


def counts(card: pd.DataFrame) -> pd.DataFrame:
    """How many claims of each document have which verdict, recorded and live."""
    long = card.rename(columns={"paper": "document"}).melt(
        "document",
        ["recorded", "live"],
        "numbers",
        "verdict",
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
        elsewhere = card["claim_id"].map(on_several_pages)
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
    decides = (own["network"] == claim.network) & (own["verdict"] == claim.recorded)
    ranked = own.assign(at=2 * (own["kind"] == "recorded") + decides).sort_values(
        "at",
        kind="stable",
    )
    value, drawn = (
        (between(*ranked.iloc[-1][POINT]), whisker(ranked.iloc[-1])) if len(own) else ("", "")
    )
    table = pd.DataFrame({"verdict": own["verdict"], "numbers": own["kind"]})
    table["measured"] = own["what"].where(own["why"] == "", own["what"] + " – " + own["why"])
    speakers = zip(own["network"], own["seeds"], strict=True)
    table["network"] = [
        f"{name}, {n} seed{'s' * (n != 1)}" if name else MISSING for name, n in speakers
    ]
    table["printed"] = [between(number, nan, nan) for number in own["paper"]]
    table["value"] = [between(*point) for point in own[POINT].to_numpy()]
    page = f' <a href="../notebooks/{escape(claim.page)}.html">Its page</a>' if claim.page else ""
    live = f" {verdict_pill(claim.live)} (live)" if claim.live not in SILENT else ""
    html = (
        f'<details class="claim" data-document="{escape(claim.paper)}" '
        f'data-verdict="{escape(claim.recorded)}">'
        f"<summary><span>{verdict_pill(claim.recorded)}{live}</span> "
        f'<span class="claim-said">{escape(claim.statement)}</span> '
        f'<span class="claim-value">{drawn} {value}</span></summary>'
        f"<p>{escape(f'{claim.claim_id}, {claim.place}.')}{page}</p>{show(table).html}</details>"
    )
    return Shown(
        html,
        f"- **{claim.recorded}** {claim.claim_id}: {claim.statement} {value}\n\n{to_myst(table)}\n",
    )


def whisker(part: pd.Series) -> str:
    """A number as a dot, its interval as a line, the null as an upright and the printed number as a
    hollow dot.
    """
    value, low, high, null, paper = part[[*POINT, "null", "paper"]].astype(float)
    reach = np.nanmax(np.abs([value - null, low - null, high - null, paper - null, 1e-9]))
    x = {
        name: f"{60 + 54 * (v - null) / reach:.1f}"
        for name, v in zip("vlhp", (value, low, high, paper), strict=True)
    }
    line = "" if isnan(low) else f'<path d="M{x["l"]} 8H{x["h"]}" stroke-width="2"/>'
    hollow = "" if isnan(paper) else f'<circle cx="{x["p"]}" cy="8" r="4" fill="none"/>'
    dot = "" if isnan(value) else f'<circle cx="{x["v"]}" cy="8" r="3.5" fill="currentColor"/>'
    marks = f'<path class="null" d="M60 1V15"/>{line}{hollow}{dot}'
    return (
        f'<svg class="whisker" viewBox="0 0 120 16" aria-hidden="true">{marks}</svg>' if dot else ""
    )


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
BLOCKS = {"repro-tiny": 2, "all-MiniLM-L6-v2": 6, "e5-small-en": 12, "all-mpnet-base-v2": 12}
# Full-size scores of networks on STS-B; None where the rows hold none
Scores = Mapping[str, float | None]
FEWEST_BLOCKS = 4  # of a network that is asked about depth


def nearness(network: str, own: Sequence[str] = ()) -> int:
    """The place of a network: first a paper's own, then the stand-ins, then all others."""
    order = (*own, *STAND_INS)
    # A hub id without its owner
    return order.index(name) if (name := Path(network).name) in order else len(order)


def rank(claim: str, networks: str) -> int:
    """How far networks, with commas between them, are from the claim's paper: the farthest
    counts.
    """
    return max(nearness(name, record_of(claim)["own"]) for name in networks.split(", "))


def deep(m: Measurement, scores: Scores) -> str:
    """Depth cannot be told from a network of two or three layers."""
    few = {name: BLOCKS.get(name, FEWEST_BLOCKS) for name in m.network.split(", ")}
    said = [f"{name} has {blocks} blocks" for name, blocks in few.items() if blocks < FEWEST_BLOCKS]
    return f"at least {FEWEST_BLOCKS} blocks: {', '.join(said)}" if said else ""


def chosen_on_dev(m: Measurement, scores: Scores) -> str:
    """Settings that nobody chose for a network say little of what training can do with it."""
    known = {*record_of(m.claim_id)["own"], *(Path(own).name for own, _ in ANGLE_RECIPES)}
    lacking = [n for n in m.network.split(", ") if Path(n).name not in known]
    return f"settings chosen on dev: {', '.join(lacking)} has the paper's" if lacking else ""


def above_words(m: Measurement, scores: Scores) -> str:
    """A network that says less of similarity than counted words do cannot say what its size does to
    it.
    """
    floor = full_size_scores().get(BASELINES["tfidf"], nan)
    known = {
        name: score for name in m.network.split(", ") if (score := scores.get(name)) is not None
    }
    said = [f"{name} has {score:.1f}" for name, score in known.items() if score <= floor]
    return (
        f"a full-size score on STS-B above counted words' {floor:.1f}: {', '.join(said)}"
        if said
        else ""
    )


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


CONDITIONS = {condition.__name__: condition for condition in (deep, chosen_on_dev, above_words)}
"""What a claim may ask of a network: in words, what the network lacks."""


def asked(m: Measurement, scores: Scores) -> str:
    """What a network lacks of all that the claim asks of it, for what was measured."""
    record = record_of(m.claim_id)
    if not re.search(record.get("asked_of", ""), m.what):
        return ""
    lacking = [CONDITIONS[name](m, scores) for name in record["asks"]]
    return "; ".join(filter(None, lacking))


def placed(found: Iterable[Measurement], rows: pd.DataFrame) -> Iterator[Measurement]:
    """Measurements with what their rows say of who speaks: network, generated text, scope, the
    condition that fails.

    A measurement that names no network of its rows speaks for all of them. Parts of a claim are
    counted on all networks that can bear on it, since where one cannot tell the word passes to the
    next.
    """
    everyone = [str(name) for name in rows["backbone"].dropna().unique()]
    generated = (rows["data_source"] == "microworld").any()
    # a page without STS-B says nothing of its networks' scores there, but recorded ones do
    known = (
        pd.concat([rows, recorded_rows("sbertlp_table1")])
        if (rows["dataset"] != "stsb").all()
        else rows
    )
    scores = {name: full_score(known[known["backbone"] == name]) for name in everyone}
    whole = []
    for m in found:
        record = record_of(m.claim_id)
        network = m.network or ", ".join(named(m.what, everyone) or everyone)
        m = replace(m, network=network, generated=bool(generated))
        speakers = network.split(", ")
        # By us; the paper's own training is its profile's
        smaller = (
            record["trained"]
            and (rows.loc[rows["backbone"].isin(speakers), "profile"] != "paper").any()
        )
        of_paper = all(Path(name).name in record["own"] for name in speakers)
        same = bool(m.network) and not smaller and of_paper
        unmet = m.unmet or asked(m, scores)
        whole.append(replace(m, scope="same" if same else "substitute", unmet=unmet))
    parts = Counter(m.claim_id for m in whole if not (m.unmet or isnan(m.low)))
    for m in whole:
        tasks = record_of(m.claim_id).get("tasks", 1)
        yield replace(m, parts=tasks * max(1, parts[m.claim_id]))


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
