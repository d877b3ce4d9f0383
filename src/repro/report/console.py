"""Comparisons as lines for a terminal (what `repro compare` prints)."""

from collections.abc import Iterator

import pandas as pd

from repro.report import claims_ese
from repro.report.compare import KINDS, counts, paper_values, read_verdicts, scorecard, side_by_side
from repro.report.recorded import recorded_verdicts
from repro.rows import make_rows, recorded_rows
from repro.types import InputError

SCORES = (
    r"spearman|accuracy|majority|exact_match|answer|hit@|recall@|same_first|nmi|ari|purity|turned|(depth|drop)_lead"
)
"""beginnings of the metrics that are shown x100; any other, such as seconds, is shown as it is"""
PAPERS = {"wang": "wang2023", "zhang": "zhang2024", "sbertlp": "sbertlp2021", "ese": "ese2025"}


def scorecard_lines() -> Iterator[str]:
    """All claims with the verdicts of the recorded rows and, once the book is built, of live ones; then the counts."""
    live = read_verdicts().query("kind == 'live'")
    card = scorecard(given=pd.concat([recorded_verdicts(), live], ignore_index=True))
    for row in card.itertuples():
        shown = f" live: {row.live:<15}" if len(live) else ""
        yield f"{row.claim_id:<14} recorded: {row.recorded:<15}{shown} {row.statement}"
    yield ""
    table = counts(card)
    yield from (table if len(live) else table[table["numbers"] == "recorded"]).to_string(index=False).splitlines()
    if live.empty:
        yield "no live verdicts, as no book is built here: `make book` makes them"


def experiment_lines(experiment: str) -> Iterator[str]:
    """The printed and recorded numbers of one experiment, such as `wang_table1`.

    Raises:
        InputError: for a name that is not `<paper>_<table>`.
    """
    short, _, table = experiment.partition("_")
    if short not in PAPERS or not table:
        raise InputError(f"unknown experiment {experiment!r}: expected <paper>_<table> with {', '.join(PAPERS)}")
    yield (
        f"{experiment}: {KINDS[0]} and {KINDS[1]} numbers, scores x100, others (seconds, sizes) as they are; live "
        "numbers are on the page of the book"
    )
    recorded = recorded_rows(experiment)
    if experiment == "ese_table1":
        yield from _ese_lines(recorded)
        return
    keys = ["method", "dataset", "metric", "dim"]
    printed = paper_values(PAPERS[short], table)
    if (recorded["readout"] == "pooler").any():  # Wang's tables print the pooler's output
        recorded = recorded[recorded["readout"] == "pooler"]
    yield from _side_by_side(printed.drop_duplicates(keys), recorded, keys)


def _ese_lines(recorded: pd.DataFrame) -> Iterator[str]:
    """Every network of ours beside the printed one, whose numbers are for order and not for level."""
    printed = claims_ese.printed("table1").query("backbone == @claims_ese.PRINTED_BACKBONE")
    cells = claims_ese.table1_cells(recorded)
    for backbone, own in cells.groupby("backbone", sort=False):
        yield f"\n{claims_ese.PRINTED_BACKBONE} as printed, {backbone} as recorded"
        yield from _side_by_side(printed, own, ["method", "dataset"])


def _side_by_side(printed: pd.DataFrame, recorded: pd.DataFrame, keys: list[str]) -> list[str]:
    shown = side_by_side(printed, recorded, make_rows([]), keys=keys)
    if "metric" in shown:
        plain = ~shown["metric"].str.match(SCORES)
        shown.loc[plain, ["paper", "recorded", "recorded_sd"]] /= 100
    return shown[[*keys, "paper", "recorded", "recorded_sd", "seeds"]].to_string(index=False).splitlines()
