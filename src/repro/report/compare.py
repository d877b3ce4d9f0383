"""Paper, recorded and live: three kinds of number side by side, never mixed; and the scorecard of all claims."""

import logging
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

import pandas as pd

from repro import paths
from repro.paths import replacing
from repro.report.networks import placed, rank
from repro.report.verdict import ON_GENERATED, OUTCOMES, SILENT, Measurement, Outcome, worst
from repro.types import InputError

log = logging.getLogger(__name__)
KINDS = ("paper", "recorded", "live")
HEADINGS = (
    *("STS-B", "SICK-R", "STS12", "STS13", "STS14", "STS15", "STS16"),
    *("TREC", "CR", "MR", "SUBJ", "MPQA", "SST", "MRPC", "SICK-E", "20 Newsgroups"),
)
DATASETS = {title: title.lower().replace("-", "") for title in HEADINGS} | {"SST": "sst2", "20 Newsgroups": "20news"}
"""a table's column heading to the dataset's name here"""
SPELLINGS = {"STS-b": "STS-B"}
"""headings that a document spells otherwise"""


@lru_cache
def paper_values(paper: str, table: str) -> pd.DataFrame:
    """The printed numbers of one table, as rows: values are fractions where the paper prints per cent."""
    path = paths.PAPER_VALUES / f"{paper}_{table}.csv"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in paths.PAPER_VALUES.glob("*.csv")))
        raise InputError(f"no printed values for {paper}_{table}: choose one of {known}")
    frame = pd.read_csv(path, dtype={"note": "string"})
    percent = frame["unit"] == "percent"
    frame["value"] = frame["value"].where(~percent, frame["value"] / 100)
    column = frame["column"].replace(SPELLINGS)
    frame["dataset"] = column.map(DATASETS).fillna(column)
    frame["dim"] = pd.to_numeric(frame["dim"], errors="coerce").astype("Int64")
    return frame.rename(columns={"row": "method"})


@lru_cache
def claims() -> pd.DataFrame:
    """All checkable statements of the five documents."""
    return pd.read_csv(paths.CLAIMS)


def join_kinds(paper: pd.DataFrame, recorded: pd.DataFrame, live: pd.DataFrame) -> pd.DataFrame:
    """One tidy frame of all three kinds, for figures; each row says which it is."""
    kinds = zip(KINDS, (paper, recorded, live), strict=True)
    return pd.concat([rows.assign(kind=kind) for kind, rows in kinds if len(rows)], ignore_index=True)


def side_by_side(
    paper: pd.DataFrame, recorded: pd.DataFrame, live: pd.DataFrame, *, keys: Sequence[str] = ("method", "dim")
) -> pd.DataFrame:
    """One line per cell with columns paper | recorded | recorded_sd | seeds | live | live_low | live_high | gap.

    Scores are ×100. `gap` is live − paper where both exist. Recorded seeds are averaged; a number that is the same in
    all of them has none: nothing was drawn.
    """
    keys = list(keys)
    if live.duplicated(keys).any():
        twice = live.loc[live.duplicated(keys), keys].iloc[0].to_dict()
        raise InputError(f"live rows name the cell {twice} twice: select one metric, readout and seed first")
    grouped = recorded.groupby(keys, dropna=False)["value"]
    drawn = (grouped.size() == 1) | (grouped.nunique() > 1)
    measured = 100 * live.set_index(keys)[["value", "ci_low", "ci_high"]]
    columns = {
        "paper": 100 * paper.set_index(keys)["value"],
        "recorded": (100 * grouped.mean()),
        "recorded_sd": 100 * grouped.std().where(drawn),
        "seeds": grouped.size().where(drawn),
        **dict(zip(("live", "live_low", "live_high"), (column for _, column in measured.items()), strict=True)),
    }
    table = pd.concat([column.rename(name) for name, column in columns.items()], axis=1)
    table["gap"] = table["live"] - table["paper"]
    return table.reset_index()


def verdict_frame(kind: str, measurements: Iterable[Measurement], rows: pd.DataFrame | None = None) -> pd.DataFrame:
    """Measurements of one kind of number with their verdicts, one line each; their rows say who speaks, if given."""
    known = set(claims()["claim_id"])
    lines = []
    for m in measurements if rows is None else placed(measurements, rows):
        if m.claim_id not in known:
            raise InputError(f"unknown claim {m.claim_id!r}: claims.csv lists {len(known)}, such as {min(known)}")
        lines.append({**asdict(m), "kind": kind, "verdict": m.verdict, "why": m.why})
    columns = ["claim_id", "what", "kind", "network", "paper", "value", "low", "high", "verdict", "why", "test"]
    return pd.DataFrame(lines, columns=[*columns, "scope", "seeds", "null", "direction", "margin"])


def verdicts_folder() -> Path:
    """Where the pages of the book leave their verdicts for the scorecard: beside the build they belong to."""
    return paths.project_root() / "_build" / "verdicts"


def write_verdicts(page: str, *frames: pd.DataFrame, folder: Path | None = None) -> Path | None:
    """Leave a page's verdicts behind for the scorecard, whole or not at all; returns where, or None.

    Without a folder, only while the book is being built (`REPRO_BOOK` is set): a run with other dims or
    backbones must not speak for the book.
    """
    if folder is None and not os.environ.get("REPRO_BOOK"):
        return None
    path = paths.inside(folder or verdicts_folder(), f"{page}.parquet")
    joined = pd.concat([frame for frame in frames if len(frame)] or list(frames[:1]), ignore_index=True)
    with replacing(path) as partial:
        joined.to_parquet(partial, index=False)
    return path


def read_verdicts(folder: Path | None = None) -> pd.DataFrame:
    """The verdicts of all pages built so far; empty where none are.

    A damaged file is left out with a warning: the next build executes its page again.
    """
    frames = [verdict_frame("live", []).assign(page="")]
    for path in sorted((folder or verdicts_folder()).glob("*.parquet")):
        try:
            found = pd.read_parquet(path).assign(page=path.stem)
            if not set(found["verdict"]) <= set(OUTCOMES) or not set(found["kind"]) <= set(KINDS):
                raise ValueError("its columns hold other words than verdicts and kinds")
            frames.append(found[frames[0].columns])
        except Exception as error:  # damage shows in whatever the reader stumbles over
            log.warning("%s holds no verdicts that can be read (%s): left out, `repro book` makes it anew", path, error)
    whole = [frame for frame in frames if len(frame)]
    return pd.concat(whole, ignore_index=True) if whole else frames[0]


def scorecard(folder: Path | None = None, *, given: pd.DataFrame | None = None) -> pd.DataFrame:
    """Every claim with its recorded and its live verdict, each by the network nearest the paper's that can bear on it.

    On one network a claim of several parts has the verdict of its worst part. Generated text judges nothing. What other
    recorded networks say stands in the column `others`, what it would take to tell in `why`. Verdicts are those that
    pages left in a folder, by default the build's, or those given.
    """
    given = read_verdicts(folder) if given is None else given
    card = claims()[["claim_id", "paper", "place", "statement"]].copy()
    for kind in ("recorded", "live"):
        own = given[(given["kind"] == kind) & ~given["verdict"].isin(ON_GENERATED)]
        found = {claim: list(by_network(str(claim), parts).items()) for claim, parts in own.groupby("claim_id")}
        said = [found.get(claim, [("", "not attempted")]) for claim in card["claim_id"]]
        card[kind] = [first[1] for first, *_ in said]
        if kind == "recorded":
            card["network"] = [first[0] for first, *_ in said]
            card["others"] = ["; ".join(f"{network}: {verdict}" for network, verdict in rest) for _, *rest in said]
            why = own.groupby(["claim_id", "network", "verdict"])["why"].first()
            keys = zip(card["claim_id"], card["network"], card["recorded"], strict=True)
            card["why"] = [why.get(key, "") for key in keys]
    pages = given.groupby("claim_id")["page"].first()
    card["page"] = [pages.get(claim, "") for claim in card["claim_id"]]
    return card


def by_network(claim: str, parts: pd.DataFrame) -> dict[str, Outcome]:
    """The worst part of a claim on every network, first those that can bear on it, the nearest to the paper's first."""
    said = {str(name): worst(list(own["verdict"])) for name, own in parts.groupby("network", sort=False)}
    return dict(sorted(said.items(), key=lambda item: (item[1] in SILENT, rank(claim, item[0]))))


def counts(card: pd.DataFrame) -> pd.DataFrame:
    """How many claims of each document have which verdict, recorded and live."""
    long = card.rename(columns={"paper": "document"})
    long = long.melt(["claim_id", "document"], ["recorded", "live"], "numbers", "verdict")
    table = long.groupby(["document", "numbers", "verdict"]).size().unstack(fill_value=0)
    return table.reindex(columns=[o for o in OUTCOMES if o not in ON_GENERATED], fill_value=0).reset_index()
