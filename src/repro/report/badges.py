"""Where the numbers of a page come from, in a line that a click opens: data, networks, seeds and
the command that makes recorded ones again.
"""

import re
from html import escape

import pandas as pd

from repro.methods import BASELINES, OWN_NETWORKS
from repro.report.claims import places_of
from repro.report.speakers import full_size_scores
from repro.report.tables import Shown, pill

STATES = {
    "": "as published",
    ", mean of states": "untrained",
    " after SimCSE": "after SimCSE",
    " after NLI": "after NLI",
}
"""What follows a network's name where readers are shown it, to the words for how it was trained."""
SOURCES = {
    "microworld": "generated sentences with known meaning, in place of the benchmarks",
    "local": "the real benchmarks, from files",
    "hub": "the real benchmarks, downloaded",
}
"""Data sources, for the reader."""
CODE, CODE_HTML = re.compile("`([^`]*)`"), r"<code>\1</code>"
SAID = {"data_source": "data", "backbone": "backbone", "n_train": "training sentences"}
SAID |= {name: name for name in ("seed", "profile", "hardware", "commit")}
"""Columns that say where numbers come from, for the reader."""


def badge(rows: pd.DataFrame, kind: str = "live", *, small: str = "") -> Shown:
    """Where the live (or recorded) numbers of a page come from: data source first, in a colour of
    its own.

    A second line says which networks stand where the paper had which, and what they are worth at
    full size. `small` says how the page runs on two cores, in Markdown.
    """
    if rows.empty:
        none = (
            "no long run is recorded yet"
            if kind == "recorded"
            else "none can be computed under these parameters"
        )
        return Shown(
            f'<div class="badge-line">{pill(kind, kind)} {none}</div>',
            f"{kind} numbers: {none}",
        )
    origin = {name: ", ".join(map(str, rows[name].dropna().unique())) or "unknown" for name in SAID}
    source = origin.pop("data_source").removesuffix(", none")  # Some rows of the page read no data
    meaning, networks = SOURCES.get(source, source), networks_line(rows)
    again = "\n".join(rows["command"].dropna().unique()) if kind == "recorded" else ""
    of_whom = f"{meaning}. {networks}" if networks else meaning
    columns = " · ".join(f"{SAID[name]}: <b>{escape(value)}</b>" for name, value in origin.items())
    html = (
        f'<details class="badge-line"><summary>{pill(kind, kind)} '
        f'<span class="source-badge source-{escape(source)}">data: '
        f"{escape(source)}</span> {escape(of_whom)}</summary>"
        f"<p>{columns}</p>"
        f"{again and f'<p>Run it again:</p><pre>{escape(again)}</pre>'}"
        f"{small and f'<p>{CODE.sub(CODE_HTML, escape(small))}</p>'}</details>"
    )
    plain = "; ".join(f"{SAID[name]} {value}" for name, value in origin.items())
    return Shown(
        html,
        f"{kind} numbers, **data: {source}** ({meaning}); {plain}{networks and '. ' + networks}",
    )


def networks_line(rows: pd.DataFrame) -> str:
    """One sentence: which network has the place of which of the paper's, and its full-size scores
    beside TF-IDF's.

    Empty where no network of the rows has another one's place or a recorded score.
    """
    scores, sentences = full_size_scores(), []
    places = places_of(str(rows["experiment"].iloc[0]))
    for name in (str(name) for name in rows["backbone"].dropna().unique() if ", " not in name):
        place, network = places.get(name, places.get("any")), name.removesuffix(" + SimCSE")
        scores_here = {
            words: scores[network + end] for end, words in STATES.items() if network + end in scores
        }
        if name not in (*OWN_NETWORKS, place) and scores_here:
            listed = ", ".join(f"{score:.1f} {words}" for words, score in scores_here.items())
            sentences.append(f"{name}{f' (the paper: {place})' if place else ''} {listed}")
    if not sentences:
        return ""
    counted = BASELINES["tfidf"]
    floor = [f"counted words ({counted}) {scores[counted]:.1f}"] if counted in scores else []
    return (
        "Spearman × 100 at full size on STS-B's test pairs (recorded): "
        f"{'; '.join([*sentences, *floor])}."
    )
