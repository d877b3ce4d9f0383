"""What the table of Wang et al. (2023), `papers/wang.toml`, names; Tables 3 and 4 for the reader.

"At every dim" and "for every network" are judged where the claim is hardest to hold. A printed
dim is judged where the network has it, its share of the full size only where it has not.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, pairwise
from math import log2
from typing import Any

import numpy as np
import pandas as pd

from repro import methods
from repro.evaluation.seeds import (
    FEWEST_SEEDS,
    Estimate,
    doublings,
    estimate,
    estimates,
    kendall,
    mean,
    of_parts,
    scaled,
)
from repro.evaluation.stats import Floats
from repro.methods import (
    AVERAGE,
    END_TO_END,
    FULL,
    MAJORITY,
    REDUCED,
    STEP_1,
    STEP_2,
    TRAINED_NARROW,
    TWO_STEP,
)
from repro.report.cells import farthest, highest, lowest, together
from repro.report.claims import judges_of, record_of
from repro.report.judge import Facts, Judge, Rule, judge
from repro.report.measurements import change, effect, ratio, trend
from repro.report.speakers import SIZES
from repro.report.tables import DATASETS, MISSING, paper_values, wide
from repro.report.verdict import Measurement
from repro.report.verdict_frames import verdict_frame
from repro.report.verdict_table import told_number

PAPER_HIDDEN = 768
PRINTED_THIRD = 256
PAPER_OPTIMAL = {part["task"]: part["printed"] for part in record_of("WANG-F2-5")["parts"]}
"""Figure 2's smallest dims that keep the best score."""
SCORES = "metric in ('spearman', 'accuracy') and readout == 'pooler'"


def judged(rules: Sequence[Rule], rows: pd.DataFrame, full: int | None = None) -> list[Measurement]:
    """What the rows of each network say of the rules of a figure or table; they get a column
    `full`, its full size.

    A network that is not in `SIZES` has the size given, or its largest dim. What a rule says
    without naming anybody is said of the network whose rows it read.
    """
    found = []
    for name, own in rows.groupby("backbone", sort=False, dropna=False):
        size = SIZES.get(str(name)) or full or int(own["dim"].max())
        found += [
            replace(m, network=m.network or str(name)) for m in judge(rules, own.assign(full=size))
        ]
    return found


def of_set(wanted: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Of a network that has scores on both, those on STS-B or those on the average over the seven
    sets alone, whichever is wanted; dev pairs and seconds stay.
    """
    test = ~rows["setting"].fillna("").str.startswith("dev") & (rows["metric"] != "train_seconds")
    wanted_rows = test & rows["dataset"].isin([wanted])
    other_rows = test & rows["dataset"].isin({"stsb", AVERAGE} - {wanted})
    known = rows["backbone"].isin(rows.loc[wanted_rows, "backbone"].unique())
    return rows[~(known & other_rows)]


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
    known = rows["backbone"].isin(rows.loc[rows["dataset"].isin([AVERAGE]), "backbone"].unique())
    scores = rows[known & (rows["metric"] != "train_seconds")]
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
    own = rows.query(query, engine="python")
    if least:
        own = own.sort_values("value").drop_duplicates(["seed", "dim"])
    if own["dim"].nunique() >= 3:
        said = what.format(network=own.get("network", own["backbone"]).iloc[0])
        yield trend(claim, estimates(own), direction, said, paper=paper)


# Figure 2: score against dim


Losses = Mapping[tuple[int, int], Estimate]  # from a dim to a narrower one


def losses_of(rows: pd.DataFrame) -> Iterator[tuple[str, int, list[int], Losses]]:
    """Every task with a score at full size, that size, all dims from wide to narrow, and what is
    lost between them; paired over items where rows hold such changes.
    """
    full = int(rows["full"].iloc[0])
    for task, scores in rows.query(SCORES).groupby("dataset"):
        at = dict(reversed(estimates(scores).items()))
        if full not in at:
            continue
        changes = rows[rows["metric"].str.endswith("_change") & (rows["dataset"] == task)]
        loss = {(w, d): at[w] - at[d] for w, d in combinations(at, 2)}
        for (wider, d), cell in changes.groupby(["setting", "dim"]):
            loss[int(wider.removeprefix("from ")), int(d)] = scaled(estimate(cell), -1.0)
        yield str(task), full, list(at), loss


def above_full(rows: pd.DataFrame, claim: str, what: str) -> Iterator[Measurement]:
    """How the score of every task changes above the full size, where it changes most."""
    for task, full, dims, loss in losses_of(rows):
        if wide := {d: loss[d, full] for d in dims if d > full}:
            said = what.format(task=task, full=full)
            yield effect(claim, farthest(wide)[1], said, test="sameness")


def below_full(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    task: str,
    margin: float,
) -> Iterator[Measurement]:
    """How the score of a task changes below the full size, where it changes most; beside it stands
    what a constant answer would lose.
    """
    for name, full, dims, loss in losses_of(rows):
        narrow = {d: loss[full, d] for d in dims if d < full}
        if name == task and narrow:
            own = rows[rows["dataset"] == task]
            floor = own.loc[own["metric"] == "majority_floor", "value"].mean()
            whole = own.query(SCORES).query("dim == full")["value"].mean()
            said = what.format(full=full, constant=f"{100 * (whole - floor):.1f}")
            e = farthest(narrow)[1]
            yield effect(claim, e, said, test="sameness", margin=margin)


def smallest_step(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    task: str,
) -> Iterator[Measurement]:
    """What a task loses at a step down from the full size, where it is least."""
    for name, full, dims, loss in losses_of(rows):
        below = [full, *(d for d in dims if d < full)]
        if name == task and len(below) > 1:
            d, e = lowest({d: loss[w, d] for w, d in pairwise(below)})
            yield effect(claim, e, what.format(dim=d))


def loss_between(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    task: str,
    from_size: str,
    to_size: str,
    **compared: Any,
) -> Iterator[Measurement]:
    """What a task loses between two of these sizes: full, the paper's 256, its smallest.

    A third of the full size stands for 256 only where that is no smaller size of the network.
    """
    for name, full, dims, loss in losses_of(rows):
        below = [d for d in dims if d < full]
        third = third_of(below, full)
        if name == task and third:
            size = {"full": full, "third": third, "smallest": 8 if 8 in below else min(below)}
            wide, narrow = size[from_size], size[to_size]
            if narrow < wide:
                said = what.format(wide_dim=wide, narrow_dim=narrow)
                m = effect(claim, loss[wide, narrow], said, **compared)
                if third != PRINTED_THIRD < full:
                    m = replace(m, missing=f"needs {PRINTED_THIRD} dims, as printed, of {full}")
                yield m


def third_of(dims: Iterable[int], full: int) -> int | None:
    """The paper's 256 of 768 where it is among dims below the full size, else the dim that stands
    for it: nearest to a third, within a factor of the root of 2.
    """
    if PRINTED_THIRD in dims and full > PRINTED_THIRD:
        return PRINTED_THIRD
    near = [d for d in dims if abs(log2(3 * d / full)) <= 0.5]
    return min(near, key=lambda d: abs(log2(3 * d / full)), default=None)


def log_optimal(dims: Sequence[int], full: int, scores: Floats) -> Floats:
    """log₂ of the smallest dim whose score (…, C), at ascending dims, is within a point of the best
    (method-optimal-dim in the book).

    The dim is counted as a share of the full size.
    """
    good = scores >= scores.max(-1, keepdims=True) - 1.0
    return np.log2(np.asarray(dims, float))[good.argmax(-1)] - log2(full)


def whole_curves(rows: pd.DataFrame) -> dict[str, dict[int, Estimate]]:
    """The scores by dim of every task with a score at full size and near a third of it: without the
    latter there is nowhere between for an optimum to be.
    """
    full = int(rows["full"].iloc[0])
    tasks = {str(task): estimates(own) for task, own in rows.query(SCORES).groupby("dataset")}
    return {task: at for task, at in tasks.items() if full in at and third_of(at, full)}


def optimal(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    task: str,
    paper: int,
) -> Iterator[Measurement]:
    """The optimal dim of every seed as a share of the full size, moved by the items."""
    full, at = int(rows["full"].iloc[0]), whole_curves(rows).get(task)
    if not at:
        return
    best = of_parts(list(at.values()), partial(log_optimal, list(at), full))
    if paper == PAPER_HIDDEN:
        yield effect(claim, best, what, test="sameness", unit="doublings")
    else:
        yield ratio(claim, best, what, null=1.0, paper=paper / PAPER_HIDDEN)


def tasks_below_full(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    **compared: Any,
) -> Iterator[Measurement]:
    """Of how many tasks, four at least, the optimal dim is below the full size."""
    full, tasks = int(rows["full"].iloc[0]), whole_curves(rows)
    if len(tasks) < 4:
        return
    ends = np.cumsum([len(at) for at in tasks.values()])[:-1]

    def below(scores: Floats) -> Floats:
        parts = zip(tasks.values(), np.split(scores, ends, axis=-1), strict=True)
        return np.sum(
            [log_optimal(list(at), full, part) < 0 for at, part in parts],
            axis=0,
            dtype=float,
        )

    count = of_parts([e for at in tasks.values() for e in at.values()], below)
    yield effect(claim, count, what.format(n=len(tasks)), **compared)


# Figure 3: losses of the encoder and of the pooler


def network_names(rows: pd.DataFrame) -> pd.Series:
    """The network of every row: the backbone, with `:blocks` where blocks were taken off."""
    cut = ":" + rows["layer"].astype("string")
    return (rows["backbone"].astype("string") + cut.fillna("")).rename("network")


def blocks_apart(rules: Sequence[Rule], rows: pd.DataFrame) -> list[Measurement]:
    """What the rows of every network say, of one with fewer blocks by themselves; they get a column
    `network`.
    """
    found = []
    for name, own in of_set("stsb", rows).groupby(network_names(rows), sort=False):
        found += judge(rules, own.assign(network=name))
    return found


def narrow_losses(rows: pd.DataFrame) -> dict[str, dict[int, Estimate]]:
    """By dim below the widest, what the encoder loses and what the pooler.

    Losses measured from the best encoder cannot be negative and judge nothing: the encoder's is
    then taken from the widest pooler's.
    """
    at = estimates(rows.query("metric == 'spearman' and readout == 'encoder'"))
    loss = {
        part: estimates(rows[rows["metric"] == f"{part}_loss"]) for part in ("encoder", "pooler")
    }
    full = int(rows["setting"].str.extract(r"reference=(\d+)", expand=False).iloc[0])
    if rows["setting"].str.endswith("(best)").any():
        full = max(at)
        loss["encoder"] = {d: at[full] - e for d, e in at.items()}
    narrow = [d for d in at if d < full]
    return {part: {d: at_dims[d] for d in narrow} for part, at_dims in loss.items()}


def growing_loss(rows: pd.DataFrame, claim: str, what: str) -> Iterator[Measurement]:
    """The encoder's losses, paired over items, grow as the dim falls; three dims at least."""
    losses = narrow_losses(rows)["encoder"]
    if len(losses) >= 3:
        yield trend(claim, losses, -1, what.format(network=rows["network"].iloc[0]))


def narrowest_loss(rows: pd.DataFrame, claim: str, what: str) -> Iterator[Measurement]:
    """What the encoder loses at the paper's smallest dim."""
    if loss := narrow_losses(rows)["encoder"]:
        least = 8 if 8 in loss else min(loss)
        said = what.format(dim=least, network=rows["network"].iloc[0])
        yield effect(claim, loss[least], said)


def smallest_loss(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    readout: str,
    most: int,
) -> Iterator[Measurement]:
    """What the encoder or the pooler loses at small dims, where it is least."""
    loss = narrow_losses(rows)[readout]
    if small := {d: e for d, e in loss.items() if d <= most}:
        d, e = lowest(small)
        yield effect(claim, e, what.format(dim=d, network=rows["network"].iloc[0]))


# Figure 4: encoders are ranked by what they score alone, on the dev pairs where the rows hold them,
# so that the pairs that rank are not the pairs that judge


def printed_cells() -> pd.DataFrame:
    """The two printed cells of the grid, as rows of methods `encoder_16` and `encoder_64` at dim
    16.
    """
    cells = paper_values("wang2023", "text").query("table == 'fig4' and metric == 'spearman'")
    return cells.assign(method=cells["method"].str.split(" ").str[0], readout="pooler")


def on_dev(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the dev pairs, or all where there are none."""
    dev = rows["setting"].fillna("").str.startswith("dev")
    return rows[dev if dev.any() else ~dev]


def ranking(rows: pd.DataFrame) -> pd.DataFrame:
    """Score of each encoder alone (seeds × dims), on dev if there is one."""
    kept = on_dev(rows).query("metric == 'spearman' and readout == 'encoder'")
    return kept.pivot_table(index="seed", columns="dim", values="value")


def printed_exchange() -> float:
    """What encoder_64 is printed to gain over encoder_16 under pooler_16."""
    printed = 100 * printed_cells().set_index("method")["value"]
    return float(printed["encoder_64"] - printed["encoder_16"])


def ranking_pairs(rows: pd.DataFrame) -> Iterator[tuple[Facts, pd.DataFrame]]:
    """The rows of the pairs that rank."""
    yield {}, on_dev(rows)


def exchanges(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    query: str,
    **compared: Any,
) -> Iterator[Measurement]:
    """Of all exchanges for an encoder that is better alone, the share that raise the score, seed by
    seed.
    """
    gains = rows.query(query, engine="python")
    gains = gains.assign(encoder=gains["method"].str.removeprefix("encoder_").astype(int))
    ranks = ranking(rows).dropna()
    gains = gains[
        gains["encoder"].isin(ranks) & gains["dim"].isin(ranks) & gains["seed"].isin(ranks.index)
    ]
    cells = {key: estimate(own) for key, own in gains.groupby(["encoder", "dim"])}
    alone = [Estimate(scores.to_dict()) for _, scores in ranks.items()]
    encoder, own = ([list(ranks).index(key[side]) for key in cells] for side in (0, 1))

    def raised(numbers: Floats) -> Floats:
        gain, score = np.split(numbers, [len(cells)], axis=-1)
        better = score[..., encoder] > score[..., own]
        return 100 * (better & (gain > 0)).sum(-1) / np.maximum(better.sum(-1), 1)

    if cells:
        share = of_parts([*cells.values(), *alone], raised)
        yield effect(claim, share, what, **compared)


def exchanged_example(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    query: str,
    paper: float,
    premise: str,
) -> Iterator[Measurement]:
    """One exchange, which supposes that encoder_64 is better alone than encoder_16."""
    alone = ranking(rows).mean()
    worse = alone.get(64, 0.0) <= alone.get(16, 0.0)
    for m in Judge(claim, what, query, paper=paper).measure(rows):
        yield replace(m, unmet=premise) if worse else m


# Tables 1 and 2: the gains of both steps


def mean_over_dims(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    query: str,
    paper: float | None = None,
) -> Iterator[Measurement]:
    """The mean over dims lies above 0.

    Rows of the mean, of three seeds or more, say how much less the items move it than if all dims
    moved as one.
    """
    for (metric, method), own in rows.query(query).groupby(["metric", "method"]):
        e = mean([*estimates(own).values()])
        known = rows[(rows["metric"] == f"{metric}_mean") & (rows["method"] == method)]
        if known["seed"].nunique() >= FEWEST_SEEDS:
            as_one = mean([*estimates(own[own["seed"].isin(known["seed"])]).values()])
            e = replace(e, item_error=e.item_error * estimate(known).item_error / as_one.item_error)
        yield effect(claim, e, what, paper=paper)


def narrow_less_wide(at: Mapping[tuple[Any, ...], Estimate]) -> tuple[tuple[Any, ...], Estimate]:
    """How far the narrowest of several dims is above the widest."""
    narrow, wide = min(at), max(at)
    return narrow, at[narrow] - at[wide] if narrow != wide else Estimate({})


def printed_trend() -> float:
    """Kendall's tau of Table 1's total gains against the dim."""
    score = (
        paper_values("wang2023", "table1")
        .query("metric == 'spearman'")
        .set_index(["method", "dim"])["value"]
    )
    gain = score[STEP_2] - score[END_TO_END]
    return float(kendall(gain.index.to_numpy(float), gain.to_numpy(float)))


def seconds_of_step_two(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    **compared: Any,
) -> Iterator[Measurement]:
    """Run by run, the ratio of the seconds of both trainings, in doublings."""
    costs = rows[rows["metric"] == "train_seconds"]
    took = costs.pivot_table(index="seed", columns="method", values="value", aggfunc="sum")
    if {STEP_2, END_TO_END} <= set(took):
        ratios = (took[STEP_2] / took[END_TO_END]).dropna().to_dict()
        yield ratio(claim, doublings(ratios), what, **compared)


# Tables 3 and 4: training against reducing afterwards

NAMES = {FULL: "full size", TRAINED_NARROW: "end to end", TWO_STEP: "two-step"}
ORDER = ("full size", *REDUCED, "end to end", "two-step", MAJORITY)
RIVALS = (*REDUCED, TRAINED_NARROW)  # what the paper compares two-step training with, at equal dim


def named_scores(frame: pd.DataFrame) -> pd.DataFrame:
    """The score rows of a suite, printed or ours, with a column `line`: the method as a reader
    names it.

    Ours tell the two readouts of the full-size model apart, and PCA by the number of sentences it
    was fitted on where that is not the smallest.
    """
    kept = frame[frame["metric"].isin(["spearman", "accuracy"])].copy()
    kept["line"] = kept["method"].replace(NAMES)
    if "readout" in kept:
        full = kept["method"] == FULL
        kept["line"] = kept["line"].where(~full, kept["line"] + ", " + kept["readout"].fillna(""))
        fits = kept["setting"].fillna("").map(methods.fitted_sentences).astype(float)
        more = zip(kept["line"], fits, fits > fits.min(), strict=True)
        named = [f"{line}, {n:,.0f}" if larger else line for line, n, larger in more]
        # Text, even of no rows
        kept["line"] = pd.Series(named, index=kept.index, dtype=kept["line"].dtype)
    return kept


def smallest_fit(frame: pd.DataFrame) -> str:
    """The `setting` of the smallest set that reducers of these rows were fitted on; empty if there
    is none.
    """
    sizes = [
        n
        for n in map(methods.fitted_sentences, frame["setting"].dropna().unique())
        if n is not None
    ]
    return methods.fitted_on(min(sizes)) if sizes else ""


def rank(line: str) -> tuple[int, str]:
    """Where a line stands in a table, as the paper orders its methods."""
    return ORDER.index(line.split(",")[0]), line


def table_of(frame: pd.DataFrame) -> pd.DataFrame:
    """One line per method and dim, a column per dataset, scores ×100 averaged over seeds."""
    kept = named_scores(frame)
    dims = list(map(str, sorted(kept["dim"].dropna().unique(), reverse=True)))
    orders = {
        "line": sorted(set(kept["line"]), key=rank),
        "dim": dims,
        "dataset": [*DATASETS.values(), AVERAGE],
    }
    names = {"line": "method", **{name: title for title, name in DATASETS.items()}}
    return wide(
        kept.astype({"dim": "string"}),
        ["line", "dim"],
        "dataset",
        orders=orders,
        names=names,
    )


def won_table(kinds: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """On how many datasets two-step training is above all its rivals, a line per dim and a column
    per kind of number.

    Scores are averaged over seeds first. PCA counts as the paper fitted it, on the smallest fit
    set.
    """
    own, counted = NAMES[TWO_STEP], dict[str, dict[Any, str]]()
    for kind, frame in kinds.items():
        kept = named_scores(frame)
        kept = kept[
            (kept["dataset"] != AVERAGE)
            & kept["line"].isin([own, *(NAMES.get(m, m) for m in RIVALS)])
        ]
        table = kept.pivot_table(
            index=["dim", "dataset"],
            columns="line",
            values="value",
            aggfunc="mean",
        )
        lead = (
            (table[own] - table.drop(columns=own).dropna().max(axis=1)).dropna()
            if own in table
            else pd.Series()
        )
        counted[kind] = {
            dim: f"{(each > 0).sum()} of {len(each)}" for dim, each in lead.groupby(level=0)
        }
    table = pd.DataFrame(counted, dtype=object).rename_axis("dim").sort_index(ascending=False)
    return table.fillna(MISSING).reset_index()


def with_full(rows: pd.DataFrame) -> Iterator[tuple[Facts, pd.DataFrame]]:
    """All rows of a network, with its full size."""
    yield {"full": rows["full"].iloc[0]}, rows


NEIGHBOURS = ("Isomap", "LLE")  # the reducers that look at nearest neighbours


def highest_of_shared(at: Mapping[tuple[Any, ...], Estimate]) -> tuple[tuple[Any, ...], Estimate]:
    """The largest lead over either rival, among the dims that both reach."""
    dims = [dim for dim, _ in at]
    return highest({key: e for key, e in at.items() if dims.count(key[0]) == len(NEIGHBOURS)})


def cells_won(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    paper: int,
) -> Iterator[Measurement]:
    """The lead over the best rival in the worst cell but those that the printed count, of 35,
    leaves to rivals.

    As many cells as printed are won if it is above 0, and surely fewer if its joint upper end is
    below.
    """
    kept = rows[
        rows["method"].isin([f"{TWO_STEP} − {rival}" for rival in RIVALS])
        & (rows["dataset"] != AVERAGE)
    ]
    at = together({cell: estimate(own) for cell, own in kept.groupby(["dataset", "dim", "method"])})
    cells = {
        cell: [e for key, e in at.items() if key[:2] == cell]
        for cell in dict.fromkeys(key[:2] for key in at)
    }
    if not cells:
        return
    lost = (35 - paper) * len(cells) // 35

    def least(of: Callable[[Estimate], float]) -> tuple[float, tuple[Any, ...]]:
        return sorted((min(map(of, own)), cell) for cell, own in cells.items())[lost]

    _, (dataset, dim) = least(lambda e: e.value)
    e = min(cells[dataset, dim], key=lambda e: e.value)
    e = replace(e, ends=(least(lambda e: e.low)[0], least(lambda e: e.high)[0]))
    won = sum(min(e.value for e in own) > 0 for own in cells.values())
    names = {"n": len(cells), "lost": lost, "dataset": dataset, "dim": dim, "won": won}
    yield effect(claim, e, what.format(**names))


# beside the tables


def width_cost(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    margin: float,
) -> Iterator[Measurement]:
    """How encoding time changes with the pooler's width, where it changes most, run by run."""
    ratios = rows[(rows["metric"] == "encode_ratio") & (rows["dim"] != rows["full"])]
    at = {
        dim: doublings(own.set_index("seed")["value"].to_dict())
        for dim, own in ratios.groupby("dim")
    }
    if at:
        dim, e = farthest(at)
        said = what.format(full=int(rows["full"].iloc[0]), dim=dim)
        yield change(claim, e, said, margin=margin)


# what pages judge their rows by


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
    if not {STEP_1, STEP_2} <= set(rows.loc[rows["metric"] == "spearman_gain", "method"]):
        return []
    opt = rows["value"].where(rows["metric"] == "optimal_dim")
    same = [rows[column] for column in ("backbone", "seed", "dim")]
    return judged(
        rules,
        of_set("stsb", rows.assign(opt=opt.groupby(same, dropna=False).transform("max"))),
        full,
    )


def suite(rules: Sequence[Rule], rows: pd.DataFrame, full: int | None = None) -> list[Measurement]:
    """Tables 3 and 4, reducers as the paper fitted them, on the smallest fit set."""
    return judged(rules, rows[rows["setting"].fillna("").isin(["", smallest_fit(rows)])], full)


JUDGES = judges_of("wang", globals())
figure2, figure3, figure4, table1, table2, table3, table4, ablations = JUDGES.values()
"""Rows, and the full size of a network that is not known, to what they say of the claims of one
page.
"""
