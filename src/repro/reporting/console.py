"""Comparisons as lines for a terminal (what `repro compare` prints)."""

from collections.abc import Iterator

import pandas as pd

from repro.reporting import claims_ese
from repro.reporting.compare import KINDS, counts, paper_values, scorecard, side_by_side
from repro.rows import make_rows, recorded_rows
from repro.types import InputError

PAPERS = {"wang": "wang2023", "zhang": "zhang2024", "sbertlp": "sbertlp2021", "ese": "ese2025"}


def scorecard_lines() -> Iterator[str]:
    """All claims with their recorded and live verdicts, then the counts."""
    card = scorecard()
    for row in card.itertuples():
        yield f"{row.claim_id:<14} recorded: {row.recorded:<15} live: {row.live:<15} {row.statement}"
    yield ""
    yield from counts(card).to_string(index=False).splitlines()


def experiment_lines(experiment: str) -> Iterator[str]:
    """The printed and recorded numbers of one experiment, such as `wang_table1`.

    Raises:
        InputError: for a name that is not `<paper>_<table>`.
    """
    short, _, table = experiment.partition("_")
    if short not in PAPERS or not table:
        raise InputError(f"unknown experiment {experiment!r}: expected <paper>_<table> with {', '.join(PAPERS)}")
    yield f"{experiment}: {KINDS[0]} and {KINDS[1]} numbers (x100); live numbers are on the page of the book"
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
    return shown[[*keys, "paper", "recorded", "recorded_sd", "seeds"]].to_string(index=False).splitlines()
