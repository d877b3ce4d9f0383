"""Comparisons as lines for a terminal (what `repro compare` prints)."""

from collections.abc import Iterator

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
    keys = ["method", "dataset", "metric", "dim"]
    printed = paper_values(PAPERS[short], table)
    recorded = recorded_rows(experiment)
    recorded = recorded[recorded["readout"] == "pooler"]
    shown = side_by_side(printed.drop_duplicates(keys), recorded, make_rows([]), keys=keys)
    yield f"{experiment}: {KINDS[0]} and {KINDS[1]} numbers (x100); live numbers are on the page of the book"
    yield from shown[[*keys, "paper", "recorded", "recorded_sd", "seeds"]].to_string(index=False).splitlines()
