"""What the recorded rows say, without a build: verdicts, lines for `repro compare`, the README's figure.

`python -m repro.papers.recorded` draws the figure again, after recording.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd

from repro import paths
from repro.methods import STAGE_NAMES
from repro.papers.ese import claims as ese
from repro.papers.ese import claims_use as ese_use
from repro.papers.ese.claims import PRINTED_BACKBONE, printed, table1_cells
from repro.papers.proposal import claims as proposal
from repro.papers.sbertlp import claims as sbertlp
from repro.papers.wang import claims as wang
from repro.papers.wang import claims_figures as wang_figures
from repro.papers.zhang import claims as zhang
from repro.papers.zhang import seconds
from repro.paths import replacing
from repro.report.judge import Measurement
from repro.report.scorecard import counts, read_verdicts, scorecard, verdict_frame
from repro.report.tables import KINDS, paper_values, side_by_side
from repro.rows import make_rows, recorded_rows
from repro.types import InputError

SCORES = (
    r"spearman|accuracy|majority|exact_match|answer|hit@|recall@|same_first|nmi|ari|purity|turned|(depth|drop)_lead"
)
"""beginnings of the metrics that are shown x100; any other, such as seconds, is shown as it is"""
PAPERS = {"wang": "wang2023", "zhang": "zhang2024", "sbertlp": "sbertlp2021", "ese": "ese2025"}

JUDGES: dict[str, Callable[[pd.DataFrame], list[Measurement]]] = {
    "wang_figure2": wang_figures.figure2,
    "wang_figure3": wang_figures.figure3,
    "wang_figure4": wang_figures.figure4,
    "wang_table1": wang.table1,
    "wang_table2": wang.table2,
    "wang_table3": wang.table3,
    "wang_table4": wang.table4,
    "wang_ablations": wang.ablations,
    "zhang_figure2": zhang.figure2,
    "zhang_figure3": zhang.figure3,
    "zhang_figure4": zhang.figure4,
    "zhang_table1": seconds.table1,
    "sbertlp_table1": sbertlp.table1,
    "sbertlp_table2": sbertlp.table2,
    "sbertlp_table3": sbertlp.table3,
    "sbertlp_table4": lambda rows: sbertlp.table4(rows.iloc[:0], rows),
    "sbertlp_figures": sbertlp.figures,
    "ese_table1": ese.table1,
    "ese_table2": lambda rows: [m for _, own in rows.groupby("backbone", sort=False) for m in ese.table2(own)],
    "ese_table3": ese_use.table3,
    "ese_figure3": lambda rows: [*ese.figure3(rows), *ese.figure4(rows)],
    "ese_figure6": ese_use.figure6,
    "ese_figure7": ese_use.figure7,
    "proposal_alignment_uniformity": proposal.alignment_uniformity,
    "proposal_johnson_lindenstrauss": proposal.johnson_lindenstrauss,
    "proposal_train_or_reduce": proposal.train_or_reduce,
}
"""experiment to what judges its recorded rows"""


def recorded_verdicts() -> pd.DataFrame:
    """A verdict of every measurement in the recorded rows, with the experiment as its page."""
    frames = [verdict_frame("recorded", []).assign(page="")]
    for experiment, judge in JUDGES.items():
        if len(rows := recorded_rows(experiment)):
            frames.append(verdict_frame("recorded", judge(rows), rows).assign(page=experiment))
    return pd.concat(frames, ignore_index=True)


def scorecard_lines() -> Iterator[str]:
    """All claims with the verdicts of the recorded rows and, once the book is built, of live ones; then the counts."""
    live = read_verdicts().query("kind == 'live'")
    card = scorecard(pd.concat([recorded_verdicts(), live], ignore_index=True))
    for row in card.itertuples():
        shown = f" live: {row.live:<18}" if len(live) else ""
        yield f"{row.claim_id:<14} recorded: {row.recorded:<18}{shown} {row.statement}"
    yield ""
    table = counts(card)
    yield from (table if len(live) else table[table["numbers"] == "recorded"]).to_string(index=False).splitlines()
    if live.empty:
        yield "no live verdicts, as no book is built here: `make book` makes them"


def experiment_lines(experiment: str) -> Iterator[str]:
    """The printed and recorded numbers of one experiment, such as `wang_table1`."""
    short, _, table = experiment.partition("_")
    if short not in PAPERS or not table:
        raise InputError(f"unknown experiment {experiment!r}: expected <paper>_<table> with {', '.join(PAPERS)}")
    said = f"{KINDS[0]} and {KINDS[1]} numbers, scores x100, others (seconds, sizes) as they are"
    yield f"{experiment}: {said}; live numbers are on the page of the book"
    recorded = recorded_rows(experiment)
    if experiment == "ese_table1":  # every network of ours, beside a printed one whose numbers are for order, not level
        paper = printed("table1").query("backbone == @PRINTED_BACKBONE")
        for backbone, own in table1_cells(recorded).groupby("backbone", sort=False):
            yield f"\n{PRINTED_BACKBONE} as printed, {backbone} as recorded"
            yield from _side_by_side(paper, own, ["method", "dataset"])
        return
    keys = ["method", "dataset", "metric", "dim"]
    if (recorded["readout"] == "pooler").any():  # Wang's tables print the pooler's output
        recorded = recorded[recorded["readout"] == "pooler"]
    yield from _side_by_side(paper_values(PAPERS[short], table).drop_duplicates(keys), recorded, keys)


def _side_by_side(printed: pd.DataFrame, recorded: pd.DataFrame, keys: list[str]) -> list[str]:
    shown = side_by_side(printed, recorded, make_rows([]), keys=keys)
    if "metric" in shown:
        plain = ~shown["metric"].str.match(SCORES)
        shown.loc[plain, ["paper", "recorded", "recorded_sd"]] /= 100
    return shown[[*keys, "paper", "recorded", "recorded_sd", "seeds"]].to_string(index=False).splitlines()


def write_readme_figure(path: Path | None = None) -> Path:
    """The stages of Wang et al.'s Table 1, printed and recorded, where the README shows them, or at another path."""
    from repro.report.figures import curves  # matplotlib is slow to load for lines of a terminal

    where = {"paper": "paper (RoBERTa-base)", "recorded": "recorded (repro-tiny)"}
    ours = recorded_rows("wang_table1").query("readout == 'pooler' and paper_table == 'table1'")
    rows = pd.concat([paper_values("wang2023", "table1").assign(kind="paper"), ours.assign(kind="recorded")])
    rows = rows[rows["metric"] == "spearman"].assign(stage=rows["method"].map(STAGE_NAMES))
    figure = curves(
        rows,
        color="stage",
        panel="kind",
        order=list(STAGE_NAMES.values()),
        title=where.__getitem__,
        ylabel="STS-B, Spearman × 100",
    )
    figure.alt = "STS-B score of two-step training against embedding dimension, as printed and as recorded"
    path = path or paths.project_root() / "book" / "_static" / "readme_figure.svg"
    with replacing(path) as partial:
        partial.write_text(figure.svg(), encoding="utf-8")
    return path


if __name__ == "__main__":
    write_readme_figure()
