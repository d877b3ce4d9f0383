"""What the recorded rows say, without a build: the book's answer, verdicts, lines for `repro
compare`, a figure.

`python -m repro.papers.recorded` draws the README's figure again, after recording.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from dimadvise.bounds import smallest_sufficient
from repro import paths
from repro.evaluation.seeds import over_runs
from repro.methods import FULL_SIZE
from repro.papers.ese import claims as ese
from repro.papers.ese.claims import PRINTED_BACKBONE, only, printed, table1_cells
from repro.papers.proposal import claims as proposal
from repro.papers.sbertlp import claims as sbertlp
from repro.papers.wang import claims as wang
from repro.papers.zhang import claims as zhang
from repro.paths import write_text
from repro.report.claims import OfExperiment, folded
from repro.report.scorecard import (
    counts,
    read_verdicts,
    recorded_frame,
    scorecard,
    verdict_frame,
    verdict_table,
)
from repro.report.tables import KINDS, MISSING, Shown, paper_values
from repro.report.verdict import NOT_SEEN, OUTCOMES, SILENT
from repro.rows import recorded_rows, results_folder
from repro.types import InputError, choices

SCORES = (
    r"spearman|accuracy|majority|exact_match|answer|hit@|recall@|same_first|nmi|ari|purity|turned|"
    r"(depth|drop)_lead"
)
"""Beginnings of the metrics that are shown x100; any other, such as seconds, is shown as it is."""
CELL = ["method", "setting", "readout", "layer", "dataset", "metric", "dim"]
"""What tells the recorded numbers of one network apart."""
RANKED = ("zhang_figure2", "zhang_figure3", "zhang_figure4")
"""Experiments of the three tasks that methods are ranked on."""
PAPERS = {"wang": "wang2023", "zhang": "zhang2024", "sbertlp": "sbertlp2021", "ese": "ese2025"}


def with_folds(rows: pd.DataFrame) -> pd.DataFrame:
    """Recorded rows of a task with those over folds of all its items, and with the ranks on the
    other tasks.
    """
    own = set(rows["experiment"]) or {""}
    ranks = [
        recorded_rows(name).query("metric == @zhang.RANKS")
        for name in RANKED
        if own <= {*RANKED} - {name}
    ]
    return pd.concat([rows, *(recorded_rows(f"{name}_folds") for name in own), *ranks])


JUDGES: dict[str, OfExperiment] = {
    **wang.JUDGES,
    **zhang.JUDGES,
    **sbertlp.JUDGES,
    **ese.JUDGES,
    **proposal.JUDGES,
}
"""Experiment to what judges its recorded rows."""


def recorded_verdicts(document: str = "") -> pd.DataFrame:
    """A verdict of every measurement in the recorded rows, of all documents or one, with the
    experiment as its page.
    """
    frames = [verdict_frame("recorded", []).assign(page="")]
    for experiment, judge in JUDGES.items():
        if experiment.startswith(document) and len(rows := recorded_rows(experiment)):
            judged = with_folds(rows) if folded(experiment) else rows
            frames.append(recorded_frame(judge, judged, rows).assign(page=experiment))
    return pd.concat(frames, ignore_index=True)


def decided(document: str) -> Shown:
    """The claims of a document, by the beginning of its experiments, that recorded rows decide: a
    line each.
    """
    verdicts = recorded_verdicts(document).assign(page="")
    card = scorecard(verdicts)
    card = card[~card["recorded"].isin(["cannot tell", *SILENT])]
    return verdict_table(
        verdicts,
        card.sort_values("recorded", key=lambda words: words.map(OUTCOMES.index)),
    )


def scorecard_lines() -> Iterator[str]:
    """All claims with the verdicts of the recorded rows and, once the book is built, of live ones;
    then the counts.
    """
    live = read_verdicts().query("kind == 'live'")
    card = scorecard(pd.concat([recorded_verdicts(), live], ignore_index=True))
    for row in card.itertuples():
        shown = f" live: {row.live:<18}" if len(live) else ""
        tally = f" ({row.tally})" if row.tally else ""
        told = f"{row.recorded}{tally}"
        yield f"{row.claim_id:<14} recorded: {told:<24}{shown} {row.statement}"
        if row.recorded in NOT_SEEN and row.why:
            yield f"{'':<14} {row.why}"
    yield ""
    table = counts(card)
    yield from (
        (table if len(live) else table[table["numbers"] == "recorded"])
        .to_string(index=False)
        .splitlines()
    )
    if live.empty:
        yield "no live verdicts, as no book is built here: `make book` makes them"


def experiment_lines(experiment: str) -> Iterator[str]:
    """The recorded numbers of one experiment, network by network, beside what the paper prints of
    the same line.

    A number is a mean over seeds, with their standard deviation and count where anything was drawn.
    Below the numbers of a network stand the commands that make them again.
    """
    recorded = recorded_rows(experiment)
    if recorded.empty:
        known = sorted(path.stem for path in results_folder().glob("*.parquet"))
        raise InputError(f"no recorded rows of {experiment!r}: {choices(experiment, known)}")
    said = f"{KINDS[0]} and {KINDS[1]} numbers, scores x100, others (seconds, sizes) as they are"
    yield f"{experiment}: {said}; live numbers are on the page of the book"
    # The rows that the paper's table has, beside a network whose numbers are for order
    if experiment == "ese_table1":
        recorded = table1_cells(recorded)
    paper, pooled = _printed(experiment), (recorded["readout"] == "pooler").any()
    for backbone, own in recorded.groupby("backbone", sort=False, dropna=False):
        cells = own.groupby(CELL, sort=False, dropna=False)["value"]
        drawn = (cells.size() == 1) | (cells.nunique() > 1)
        seeds = cells.size().where(drawn).astype("Int64")
        numbers = {"recorded": cells.mean(), "sd": cells.std().where(drawn), "seeds": seeds}
        shown = (
            pd.DataFrame(numbers)
            .reset_index()
            .merge(paper, "left", on=[c for c in paper if c != "paper"])
        )
        if pooled:  # Wang's tables print the pooler's output
            shown.loc[shown["readout"] != "pooler", "paper"] = float("nan")
        score = shown["metric"].str.match(SCORES)
        shown.loc[score, ["paper", "recorded", "sd"]] *= 100
        drawn_with, hardware = (
            ", ".join(dict.fromkeys(own[c].dropna().astype(str))) for c in ("seed", "hardware")
        )
        yield f"\n{'no network' if pd.isna(backbone) else backbone}: seeds {drawn_with}; {hardware}"
        shown = shown[[*CELL, "paper", "recorded", "sd", "seeds"]].dropna(axis="columns", how="all")
        yield from shown.to_string(
            index=False,
            na_rep="",
            float_format="{:.4g}".format,
        ).splitlines()
        yield from (f"  {command}" for command in own["command"].dropna().unique())


def _printed(experiment: str) -> pd.DataFrame:
    """What the paper prints of an experiment in a column `paper`, beside those that tell its lines
    apart.
    """
    short, _, table = experiment.partition("_")
    if not (paths.PAPER_VALUES / f"{PAPERS.get(short)}_{table}.csv").is_file():
        return pd.DataFrame({"method": [], "paper": []})
    frame = (
        paper_values(PAPERS[short], table)
        if short != "ese"
        else only(printed(table), backbone=PRINTED_BACKBONE)
    )
    told = [
        "method",
        *(column for column in ("dataset", "metric", "dim") if frame[column].notna().any()),
    ]
    return frame.drop_duplicates(told)[[*told, "value"]].rename(columns={"value": "paper"})


def write_readme_figure(path: Path | None = None) -> Path:
    """The share of the full-size score by bytes of a vector, with fewer dimensions and with fewer
    bits, where the README shows it, or at another path.
    """
    from repro.report.figures import curves  # matplotlib is slow to load for lines of a terminal

    coded = recorded_rows("beyond_quantisation")
    dims = shares(reduced_rows(), coded)
    full = int(dims["dim"].max())
    way = "reducer == @PCA or dim == @full"
    dims = dims.query(way).assign(bytes=4 * dims["dim"], way="fewer dimensions")
    codes = stored(coded).query("dim == @full and reducer == @FIRST and code in @WHOLE_CODES")
    codes = pd.concat([codes, dims[dims["dim"] == full]])
    codes = codes[codes["use"].isin(stored(coded)["use"])].assign(way="fewer bits")
    drawn = pd.concat([dims, codes]).query("bytes >= 48")
    figure = curves(
        drawn.assign(kind="recorded", dim=drawn["bytes"].astype(int)),
        color="use",
        panel="way",
        order=list(USES.values()),
        levels=pd.DataFrame([{"value": 95.0, "label": "95 %"}]),
        ylabel="share of full size, %",
        xlabel="bytes a vector",
        share=True,
    )
    figure.alt = (
        f"Share of its full-size score that {ENCODER} keeps with fewer dimensions and with fewer "
        "bits, against bytes a vector"
    )
    path = path or paths.project_root() / "book" / "_static" / "readme_figure.svg"
    write_text(path, figure.svg())
    return path


# How many dimensions one needs: every share is of the full-size score of an encoder. Reducers
# learnt from other texts than those judged: from a training split or other folds; for searches,
# from sentences and the paragraphs searched.

ENCODER = "all-MiniLM-L6-v2"
PCA, FIRST = "PCA", "first columns"
REDUCERS = {"PCA": PCA, "Truncate": FIRST}  # names in the rows of scores by dimension, and here
USES = {
    ("stsb", "spearman"): "similarity (STS-B)",
    ("trec", "accuracy"): "classification (TREC)",
    ("hotpotqa", "ndcg@10"): "retrieval (HotpotQA)",
    ("stsb", "neighbours_kept"): "ten neighbours kept",
}
WHOLE_CODES = ("int8", "int4", "binary")
"""What all dimensions are stored as, besides float32."""
LADDER = (
    ("float32", 384),
    ("int8", 384),
    ("float32", 96),
    ("int4", 192),
    ("float32", 24),
    ("binary", 384),
    ("binary, then float", 384),
    ("float32", 12),
)
"""Some ways to store a vector: below the full size by PCA, at the full size as it is, whichever
score is the better.
"""
POINT = ["value", "ci_low", "ci_high"]


def reduced_rows() -> pd.DataFrame:
    """Scores by dimension on all test pairs of STS-B and all questions of TREC."""
    return pd.concat(
        [recorded_rows("zhang_figure2"), recorded_rows("zhang_figure3_folds")],
        ignore_index=True,
    )


def published(reduced: pd.DataFrame) -> list[str]:
    """The encoders with recorded scores by dimension that this book did not train, `ENCODER`
    first.
    """
    names = reduced.loc[reduced["metric"] == "spearman", "backbone"].dropna().unique()
    return sorted(
        (name for name in names if "repro" not in name), key=lambda name: (name != ENCODER, name)
    )


def shares(reduced: pd.DataFrame, coded: pd.DataFrame, encoder: str = ENCODER) -> pd.DataFrame:
    """Share of an encoder's full-size score by use, reducer and dim, with its 95 % interval.

    `reduced` are scores by dimension, `coded` scores by level and bytes, both with their
    differences from the full size, paired by item: of texts that no reducer has seen, or of what is
    searched. Each run's share is of its own full size; the interval is over runs and items.
    """
    paired = reduced.query("rival == @FULL_SIZE and setting == 'inductive' and winner in @REDUCERS")
    paired = paired.assign(
        reducer=paired["winner"].map(REDUCERS),
        metric=paired["metric"].str.removesuffix("_lead"),
    )
    floats = stored(coded, encoder).query("code in ('float32', 'float16')")
    # Float32 first
    floats = floats.sort_values("code", ascending=False, kind="stable")
    floats = floats.drop_duplicates(["use", "reducer", "dim"])
    found = []
    for (dataset, metric), use in USES.items():
        here = f"dataset == '{dataset}' and metric == '{metric}' and backbone == @encoder"
        full, own = reduced.query(here).query("method == @FULL_SIZE"), paired.query(here)
        if len(full) and len(own):
            share = _of_full(own, full, ["reducer", "dim"])
        else:
            full = coded.query(here).query("method == @FULL_SIZE")
            share = floats[floats["use"] == use][["reducer", "dim", *POINT]]
        if len(share):
            whole = {"reducer": FIRST, "dim": full["dim"].iloc[0], **dict.fromkeys(POINT, 1.0)}
            share = share[share["dim"] < whole["dim"]]
            share = pd.concat([share, pd.DataFrame([whole])], ignore_index=True)
            found.append(share.assign(use=use, encoder=encoder).astype({"dim": int}))
    nothing = pd.DataFrame(columns=["use", "encoder", "reducer", "dim", *POINT])
    return pd.concat(found, ignore_index=True) if found else nothing


def stored(coded: pd.DataFrame, encoder: str = ENCODER) -> pd.DataFrame:
    """Share of an encoder's full-size score by use, reducer, code, dim and bytes of a vector, with
    the 95 % interval of differences paired by item.
    """
    own = coded[(coded["backbone"] == encoder) & coded["metric"].str.endswith("_change")]
    ways = own["setting"].str.extract(rf"^({PCA}|{FIRST}), ([\d,]+) bytes$")
    own = own.assign(
        metric=own["metric"].str.removesuffix("_change"),
        code=own["method"],
        reducer=ways[0],
        bytes=pd.to_numeric(ways[1].str.replace(",", "")),
    )
    found = [pd.DataFrame(columns=["use", "encoder", "reducer", "code", "dim", "bytes", *POINT])]
    for (dataset, metric), use in USES.items():
        here = f"dataset == '{dataset}' and metric == '{metric}' and backbone == @encoder"
        full = coded.query(here).query("method == @FULL_SIZE")
        share = _of_full(own.query(here), full, ["reducer", "code", "dim", "bytes"])
        found.append(share.assign(use=use, encoder=encoder))
    found = [share for share in found if len(share)] or found[:1]
    return pd.concat(found, ignore_index=True).astype({"dim": int, "bytes": int})


def _of_full(changes: pd.DataFrame, full: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Changes from the full size as shares of it, run by run: a line for each value of `by`."""
    at_full = full.groupby("seed", dropna=False)["value"].mean().astype(float)
    own = changes.astype(dict.fromkeys(POINT, float))
    own[POINT] = 1 + own[POINT].div(own["seed"].map(at_full), axis=0)
    lines = []
    for place, cell in own.groupby(by):
        e = over_runs(cell)
        point = dict(zip(POINT, (e.value, e.low, e.high), strict=True))
        lines.append({**dict(zip(by, place, strict=True)), **point})
    return pd.DataFrame(lines, columns=[*by, *POINT])


def enough(found: pd.DataFrame, target: float, bound: str = "ci_low") -> tuple[int, str]:
    """The smallest dim, and its reducer, from which every size recorded keeps the target; the full
    size always does.
    """
    lines = found.groupby("reducer")
    dims = {
        str(name): smallest_sufficient(list(line["dim"]), list(line[bound]), target)
        for name, line in lines
    }
    return min((dim, name) for name, dim in dims.items() if dim)


def needed(found: pd.DataFrame, keep: Sequence[float]) -> pd.DataFrame:
    """A line per use and encoder, a column per share to keep: dims for sure, of PCA or the first;
    dims as measured.
    """
    lines = []
    for (use, encoder), own in found.groupby(["use", "encoder"], sort=False):
        line = {"use": str(use), "encoder": str(encoder)}
        for target in keep:
            (dim, reducer), (measured, other) = (
                enough(own, target, bound) for bound in ("ci_low", "value")
            )
            how = "all" if dim == own["dim"].max() else reducer.split()[0]
            less = f" ({other.split()[0]} {measured})" if measured < dim else ""
            line[f"keep {100 * target:g} %"] = f"{how} {dim}{less}"
        lines.append(line)
    return pd.DataFrame(lines)


def bits(coded: pd.DataFrame) -> pd.DataFrame:
    """A line per way of `LADDER` to store a vector: bytes, code, and the shares of the full-size
    score by use, in %.
    """
    own = coded[
        (coded["backbone"] == ENCODER) & coded["metric"].isin([metric for _, metric in USES])
    ]
    full = own[own["method"] == FULL_SIZE].set_index(["dataset", "metric"])
    most = full["dim"].max() if len(full) else 0
    whole = full.reset_index().assign(method="float32", setting=f"{FIRST}, bytes", bytes=4 * most)
    lines = []
    for level, dim in LADDER if len(full) else ():
        reducer = FIRST if dim == most else PCA
        way = (
            pd.concat([own, whole])
            .query("method == @level and dim == @dim")
            .set_index(["dataset", "metric"])
        )
        way = way[way["setting"].str.match(rf"{reducer}, [\d, ]*bytes")]
        share = {
            USES[at]: f"{100 * value / full['value'][at]:.1f}" for at, value in way["value"].items()
        }
        if share:
            code = f"{level} × {dim}" + (f", {PCA}" if dim < most else "")
            lines.append({"bytes": f"{int(way['bytes'].iloc[0]):,}", "code": code, **share})
    return (
        pd.DataFrame(lines, columns=["bytes", "code", *USES.values()])
        .dropna(axis=1, how="all")
        .fillna(MISSING)
    )


def statement(found: pd.DataFrame, ways: pd.DataFrame) -> str:
    """The answer in two sentences, from `shares` of `ENCODER` and `bits`."""
    if found.empty or ways.empty:
        return "No rows are recorded."
    full = int(found["dim"].max())
    half = 100 * found.query("reducer == @PCA and dim == @full // 2").set_index("use")[POINT]
    *kept, neighbours = (f"{half['value'][use]:.0f} %" for use in USES.values())
    sure = "{:.0f}, {:.0f} and {:.0f} %".format(*half["ci_low"][list(USES.values())[:3]] // 1)
    byte, floats = (
        ways.set_index("code").loc[code]
        for code in (f"int8 × {full}", f"float32 × {full // 4}, {PCA}")
    )
    first, second = (
        "{}, {} and {} %".format(*(way[u] for u in USES.values() if u in ways))
        for way in (byte, floats)
    )
    return (
        f"Cut {ENCODER} from {full} to {full // 2} dimensions by PCA, and it keeps {kept[0]} of "
        f"its similarity score, {kept[1]} of its classification accuracy and {kept[2]} of its "
        f"retrieval score, but only {neighbours} of the ten nearest neighbours. By the low ends of "
        f"their 95 % intervals the three scores keep {sure} for sure. "
        f"Bits are cheaper to drop than dimensions: in {byte['bytes']} bytes a vector, {full} "
        f"numbers of one byte keep {first} of similarity, retrieval and neighbours, and "
        f"{full // 4} of four bytes {second}."
    )


if __name__ == "__main__":
    write_readme_figure()
