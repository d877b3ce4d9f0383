"""How rows of Wang et al. (2023) are read for the table of its claims, `papers/wang.toml`; what its
parts name stands here if several pages share it, else in the file of its figure or tables.

"At every dim" and "for every network" are judged where the claim is hardest to hold. A printed
dim is judged where the network has it, its share of the full size only where it has not.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pandas as pd

from repro.evaluation.of_rows import estimates
from repro.evaluation.power import FEWEST_SEEDS
from repro.evaluation.seeds import doublings
from repro.methods import (
    AVERAGE,
    STEP_1,
    STEP_2,
)
from repro.papers.wang import decomposition, gains, grid, optimal_dims, suites
from repro.papers.wang.decomposition import network_names
from repro.papers.wang.suites import smallest_fit
from repro.report.cells import farthest
from repro.report.claims import judges_of
from repro.report.judge import Rule, judge
from repro.report.measurements import change, trend
from repro.report.speakers import SIZES
from repro.report.verdict import Measurement
from repro.report.verdict_frames import verdict_frame
from repro.report.verdict_table import told_number
from repro.rows import only


def judged(rules: Sequence[Rule], rows: pd.DataFrame, full: int | None = None) -> list[Measurement]:
    """What the rows of each network say of the rules of a figure or table; they get a column
    `full`, its full size.

    A network that is not in `SIZES` has the size given, or its largest dim. What a rule says
    without naming anybody is said of the network whose rows it read.
    """
    measurements = []
    for name, rows_of_network in rows.groupby("backbone", sort=False, dropna=False):
        size = SIZES.get(str(name)) or full or int(rows_of_network["dim"].max())
        for m in judge(rules, rows_of_network.assign(full=size)):
            measurements.append(replace(m, network=m.network or str(name)))
    return measurements


def of_set(names: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Of a network that has scores on both, those on STS-B or those on the average over the seven
    sets alone, whichever is wanted; dev pairs and seconds stay.
    """
    test = ~rows["setting"].fillna("").str.startswith("dev") & (rows["metric"] != "train_seconds")
    wanted_rows = test & rows["dataset"].isin([names])
    other_rows = test & rows["dataset"].isin({"stsb", AVERAGE} - {names})
    has_wanted = rows["backbone"].isin(rows.loc[wanted_rows, "backbone"].unique())
    return rows[~(has_wanted & other_rows)]


def on_stsb(
    rules: Sequence[Rule], rows: pd.DataFrame, full: int | None = None
) -> list[Measurement]:
    """What scores on STS-B say, the set of Figures 3 and 4 and of Tables 1 and 2."""
    return judged(rules, of_set("stsb", rows), full)


def on_average(
    rules: Sequence[Rule], rows: pd.DataFrame, full: int | None = None
) -> list[Measurement]:
    """What the average over the seven sets says, surer than any, where the paper names no set."""
    return judged(rules, of_set(AVERAGE, rows), full)


def on_seven_sets(experiment: str, rows: pd.DataFrame) -> pd.DataFrame:
    """What the statements of an experiment come to on the average over the seven sets, surer than
    STS-B, which the paper shows: a line per measurement of three seeds; it judges nothing.
    """
    averaged = only(rows, dataset=AVERAGE)["backbone"].unique()
    scores = rows[rows["backbone"].isin(averaged) & (rows["metric"] != "train_seconds")]
    measured = verdict_frame("recorded", JUDGES[experiment](of_set(AVERAGE, scores)))
    measured = measured[(measured["seeds"] >= FEWEST_SEEDS) & measured["low"].notna()]
    # Figure 3's measurements name their network themselves
    network = measured["network"].where(measured["network"] == "", measured["network"] + ": ")
    return pd.DataFrame(
        {
            "measured": network + measured["what"],
            "average of seven sets": [told_number(line) for _, line in measured.iterrows()],
        }
    )


def trending(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    query: str,
    direction: int,
    paper: float | None = None,
    least: bool = False,
) -> Iterator[Measurement]:
    """The values rise (1) or fall (-1) with the dim, by Kendall's tau; three dims at least.

    Of several leads at one dim the `least`, seed by seed, is the one over the best rival.
    """
    value_rows = rows.query(query, engine="python")
    if least:
        value_rows = value_rows.sort_values("value").drop_duplicates(["seed", "dim"])
    if value_rows["dim"].nunique() >= 3:
        quantity = what.format(network=value_rows.get("network", value_rows["backbone"]).iloc[0])
        yield trend(claim, estimates(value_rows), direction, quantity, paper=paper)


def blocks_apart(rules: Sequence[Rule], rows: pd.DataFrame) -> list[Measurement]:
    """What the rows of every network say, of one with fewer blocks by themselves; they get a column
    `network`.
    """
    measurements = []
    for name, rows_of_network in of_set("stsb", rows).groupby(network_names(rows), sort=False):
        measurements += judge(rules, rows_of_network.assign(network=name))
    return measurements


def width_cost(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    margin: float,
) -> Iterator[Measurement]:
    """How encoding time changes with the pooler's width, where it changes most, run by run."""
    ratios = rows[(rows["metric"] == "encode_ratio") & (rows["dim"] != rows["full"])]
    ratio_by_dim = {}
    for dim, rows_of_dim in ratios.groupby("dim"):
        by_seed = rows_of_dim.set_index("seed")["value"]
        ratio_by_dim[dim] = doublings(by_seed.to_dict())
    if ratio_by_dim:
        dim, e = farthest(ratio_by_dim)
        quantity = what.format(full=int(rows["full"].iloc[0]), dim=dim)
        yield change(claim, e, quantity, margin=margin)


def stages(
    rules: Sequence[Rule],
    rows: pd.DataFrame,
    full: int | None = None,
) -> list[Measurement]:
    """Tables 1 and 2 on the rows of Algorithm 1, if there are some with the absolute difference on
    those alone.
    """
    rows = rows[rows["setting"].str.contains("select_by=encoder")]
    absolute = rows["setting"].str.endswith("difference=abs")
    rows = rows[absolute] if absolute.any() else rows
    if not {STEP_1, STEP_2} <= set(only(rows, metric="spearman_gain")["method"]):
        return []
    opt = rows["value"].where(rows["metric"] == "optimal_dim")
    same = [rows[column] for column in ("backbone", "seed", "dim")]
    rows = rows.assign(opt=opt.groupby(same, dropna=False).transform("max"))
    return on_stsb(rules, rows, full)


def suite(rules: Sequence[Rule], rows: pd.DataFrame, full: int | None = None) -> list[Measurement]:
    """Tables 3 and 4, reducers as the paper fitted them, on the smallest fit set."""
    as_in_paper = rows["setting"].fillna("").isin(["", smallest_fit(rows)])
    return judged(rules, rows[as_in_paper], full)


FILES = (optimal_dims, decomposition, grid, gains, suites)
JUDGES = judges_of("wang", *map(vars, FILES), globals())
figure2, figure3, figure4, table1, table2, table3, table4, ablations = JUDGES.values()
"""Rows, and the full size of a network that is not known, to what they say of the claims of one
page.
"""
