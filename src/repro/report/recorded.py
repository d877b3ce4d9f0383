"""Verdicts of the recorded rows, judged as the pages of the book judge them: no build is needed."""

from collections.abc import Callable, Iterator

import pandas as pd

from repro.report import claims_ese as ese
from repro.report import claims_proposal as proposal
from repro.report import claims_sbertlp as sbertlp
from repro.report import claims_wang as wang
from repro.report import claims_zhang as zhang
from repro.report.compare import verdict_frame
from repro.report.verdict import Measurement
from repro.rows import recorded_rows

SIZES = {"repro-tiny": 128, "repro-mini": 256, "all-MiniLM-L6-v2": 384, "roberta-base": 768, "bert-base-uncased": 768}
"""hidden sizes of networks with rows; to ask the networks themselves would load torch"""
Judge = Callable[[pd.DataFrame], list[Measurement]]


def _each_network(judge: Judge) -> Judge:
    """Judge the rows of each network by themselves."""
    return lambda rows: [m for _, own in rows.groupby("backbone", sort=False) for m in judge(own)]


def _at_size(judge: Callable[[pd.DataFrame, int], list[Measurement]]) -> Judge:
    """The same, of a judge who has to know the network's own size."""
    return _each_network(lambda own: judge(own, SIZES.get(own["backbone"].iloc[0], int(own["dim"].max()))))


def _tested(rows: pd.DataFrame, how: str = "") -> pd.DataFrame:
    return rows[rows["setting"].str.startswith("test") & rows["setting"].str.endswith(how)]


JUDGES: dict[str, Judge] = {
    "wang_figure2": _at_size(wang.figure2),
    "wang_figure3": wang.figure3,
    "wang_figure4": _each_network(wang.figure4),
    "wang_table1": _each_network(lambda rows: wang.table1(_tested(rows))),
    "wang_table2": _each_network(lambda rows: wang.table2(_tested(rows, "difference=abs"))),
    "wang_table3": _at_size(wang.table3),
    "wang_table4": _at_size(wang.table4),
    "wang_ablations": _at_size(wang.ablations),
    "zhang_figure2": zhang.figure2,
    "zhang_figure3": zhang.figure3,
    "zhang_figure4": zhang.figure4,
    "zhang_table1": zhang.table1,
    "sbertlp_table1": sbertlp.table1,
    "sbertlp_table2": sbertlp.table2,
    "sbertlp_table3": sbertlp.table3,
    "sbertlp_table4": lambda rows: sbertlp.table4(rows.iloc[:0], rows),
    "sbertlp_figures": sbertlp.neighbours_and_dims,
    "ese_table1": ese.table1,
    "ese_table2": _each_network(ese.table2),
    "ese_table3": ese.table3,
    "ese_figure3": lambda rows: [*ese.figure3(rows, None), *ese.figure4(rows)],
    "ese_figure6": ese.figure6,
    "ese_figure7": ese.figure7,
    "proposal_alignment_uniformity": proposal.alignment_uniformity,
    "proposal_johnson_lindenstrauss": proposal.johnson_lindenstrauss,
    "proposal_train_or_reduce": _each_network(
        lambda rows: [*proposal.trained_or_reduced(rows), *proposal.size_kept(rows)]
    ),
}
"""experiment to what judges its recorded rows"""


def recorded_verdicts() -> pd.DataFrame:
    """A verdict of every measurement in the recorded rows, with the experiment as its page."""
    return pd.concat(list(_judged()), ignore_index=True)


def _judged() -> Iterator[pd.DataFrame]:
    yield verdict_frame("recorded", []).assign(page="")
    for experiment, judge in JUDGES.items():
        rows = recorded_rows(experiment)
        if len(rows):
            yield verdict_frame("recorded", judge(rows)).assign(page=experiment)
