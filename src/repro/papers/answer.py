"""The book's answer: how many dimensions, and bits of each, one needs by the recorded rows.

Every share is of the full-size score of an encoder. Reducers learnt from other texts than those
judged: from a training split or other folds; for searches, from sentences and the paragraphs
searched. `python -m repro.papers.answer` draws the README's figure again, after recording.
"""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from dimadvise.bounds import smallest_sufficient
from repro import paths
from repro.evaluation.of_rows import interval_over_runs
from repro.methods import FULL_SIZE
from repro.report.curves import curves
from repro.report.tables import MISSING, NO_BREAK
from repro.results import recorded_rows
from repro.rows import only, ordered
from repro.writing import write_text

ENCODER = "all-MiniLM-L6-v2"
PCA, FIRST = "PCA", "first columns"
REDUCERS = {"PCA": PCA, "Truncate": FIRST}  # Names in the rows of scores by dimension, and here
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
    names = only(reduced, metric="spearman")["backbone"].dropna().unique()
    return sorted(
        (name for name in names if "repro" not in name), key=lambda name: (name != ENCODER, name)
    )


def of_uses(rows: pd.DataFrame, encoder: str) -> pd.DataFrame:
    """An encoder's scores, and what changes them, with the use that each tells of as `use`."""
    rows = only(rows, backbone=encoder)
    metrics = rows["metric"].str.replace("_(lead|change)$", "", regex=True)
    uses = map(USES.get, zip(rows["dataset"], metrics, strict=True))
    return rows.assign(use=list(uses)).dropna(subset="use")


def shares(reduced: pd.DataFrame, coded: pd.DataFrame, encoder: str = ENCODER) -> pd.DataFrame:
    """Share of an encoder's full-size score by use, reducer and dim, with its 95 % interval.

    `reduced` are scores by dimension, `coded` scores by level and bytes, both with their
    differences from the full size, paired by item: of texts that no reducer has seen, or of what is
    searched. Each run's share is of its own full size; the interval is over runs and items.
    """
    scores = of_uses(reduced, encoder)
    leads = scores.query("rival == @FULL_SIZE and setting == 'inductive' and winner in @REDUCERS")
    leads = leads.assign(reducer=leads["winner"].map(REDUCERS))
    share = _of_full(leads, scores, ["use", "reducer", "dim"])
    floats = stored(coded, encoder).query("code in ('float32', 'float16')")
    # Float32 first
    floats = floats.sort_values("code", ascending=False, kind="stable")
    floats = floats.drop_duplicates(["use", "reducer", "dim"])
    share = pd.concat([share, floats[~floats["use"].isin(share["use"])]])
    all_scores = pd.concat([scores, of_uses(coded, encoder)])
    full = only(all_scores, method=FULL_SIZE)["dim"].max()
    all_kept = dict.fromkeys(POINT, 1.0)
    whole = share[["use"]].drop_duplicates().assign(reducer=FIRST, dim=full, **all_kept)
    share = pd.concat([share[share["dim"] < full], whole]).assign(encoder=encoder)
    share = ordered(share[["reducer", "dim", *POINT, "use", "encoder"]], "use", USES.values())
    return share.astype({"dim": int})


def stored(coded: pd.DataFrame, encoder: str = ENCODER) -> pd.DataFrame:
    """Share of an encoder's full-size score by use, reducer, code, dim and bytes of a vector, with
    the 95 % interval of differences paired by item.
    """
    scores = of_uses(coded, encoder)
    changes = scores[scores["metric"].str.endswith("_change")]
    ways = changes["setting"].str.extract(rf"^({PCA}|{FIRST}), [\d,]+ bytes$")
    changes = changes.assign(code=changes["method"], reducer=ways[0])
    share = _of_full(changes, scores, ["use", "reducer", "code", "dim", "bytes"])
    share = ordered(share.assign(encoder=encoder), "use", USES.values())
    return share.astype({"dim": int, "bytes": int})


def _of_full(changes: pd.DataFrame, scores: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Changes from the full size as shares of it, run by run: a line for each value of `by`."""
    run = ["use", "seed"]
    full_rows = only(scores, method=FULL_SIZE)
    full = full_rows.groupby(run, dropna=False)["value"].mean().rename("full")
    changes = changes.merge(full.reset_index(), on=run)
    shares_of_rows = 1 + changes[POINT].div(changes["full"], axis=0).to_numpy(float)
    seeds = changes["seed"].fillna(-1).to_numpy()
    lines = []
    for place, cell in sorted(changes.groupby(by).indices.items()):
        e = interval_over_runs(shares_of_rows[cell], seeds[cell].tolist())
        lines.append((*place, e.value, e.low, e.high))
    return pd.DataFrame(lines, columns=[*by, *POINT])


def enough(share_rows: pd.DataFrame, target: float, bound: str = "ci_low") -> tuple[int, str]:
    """The smallest dim, and its reducer, from which every size recorded keeps the target; the full
    size always does.
    """
    lines = share_rows.groupby("reducer")
    dims = {
        str(name): smallest_sufficient(list(line["dim"]), list(line[bound]), target)
        for name, line in lines
    }
    return min((dim, name) for name, dim in dims.items() if dim)


def needed(share_rows: pd.DataFrame, keep: Sequence[float]) -> pd.DataFrame:
    """A line per use and encoder, a column per share to keep: dims for sure, of PCA or the first;
    dims as measured.
    """
    lines = []
    for (use, encoder), of_encoder in share_rows.groupby(["use", "encoder"], sort=False):
        line = {"use": str(use), "encoder": str(encoder)}
        for target in keep:
            (dim, reducer), (measured, other) = (
                enough(of_encoder, target, bound) for bound in ("ci_low", "value")
            )
            how = "all" if dim == of_encoder["dim"].max() else reducer.split()[0]
            less = f" ({other.split()[0]} {measured})" if measured < dim else ""
            line[f"keep {100 * target:g} %"] = f"{how} {dim}{less}".replace(" ", NO_BREAK)
        lines.append(line)
    return pd.DataFrame(lines)


def bits(coded: pd.DataFrame) -> pd.DataFrame:
    """A line per way of `LADDER` to store a vector: bytes, code, and the shares of the full-size
    score by use, in %.
    """
    scores = of_uses(coded, ENCODER)
    scores = scores[scores["metric"].isin([metric for _, metric in USES])]
    full = only(scores, method=FULL_SIZE)
    if full.empty:
        return pd.DataFrame()
    most = full["dim"].max()
    floats = full.assign(method="float32", bytes=4 * most, setting=f"{FIRST}, bytes")
    ways = pd.concat([scores, floats])
    share = 100 * ways["value"] / ways["use"].map(full.set_index("use")["value"])
    ways = ways.assign(share=share.map("{:.1f}".format))
    lines = []
    for level, dim in LADDER:
        reducer = FIRST if dim == most else PCA
        way = only(ways, method=level, dim=dim)
        way = way[way["setting"].str.match(rf"{reducer}, [\d, ]*bytes")]
        if len(way):
            code = f"{level} × {dim}" + (f", {PCA}" if dim < most else "")
            line = {"bytes": f"{int(way['bytes'].iloc[0]):,}", "code": code}
            lines.append(line | dict(zip(way["use"], way["share"], strict=True)))
    table = pd.DataFrame(lines, columns=["bytes", "code", *USES.values()])
    return table.dropna(axis=1, how="all").fillna(MISSING)


def statement(share_rows: pd.DataFrame) -> str:
    """The answer in two sentences, from `shares` of `ENCODER`."""
    if share_rows.empty:
        return "No rows are recorded."
    full = int(share_rows["dim"].max())
    *scores, neighbours = (f"{share:.0f} %" for share in 100 * at_half(share_rows)["value"])
    return (
        f"Cut {ENCODER} from {full} to {full // 2} dimensions by PCA: it keeps {scores[0]} of its "
        f"similarity score, but {neighbours} of its ten nearest neighbours. Of its classification "
        f"accuracy it keeps {scores[1]}, of its retrieval score {scores[2]}."
    )


def how_surely(share_rows: pd.DataFrame, ways: pd.DataFrame) -> str:
    """The low ends of the answer's scores, and what bits cost, from `shares` of `ENCODER` and
    `bits`.
    """
    if share_rows.empty or ways.empty:
        return ""
    full = int(share_rows["dim"].max())
    low = 100 * at_half(share_rows)["ci_low"]
    sure = "{:.0f}, {:.0f} and {:.0f} %".format(*low.iloc[:3] // 1)
    byte, floats = (
        ways.set_index("code").loc[code]
        for code in (f"int8 × {full}", f"float32 × {full // 4}, {PCA}")
    )
    first, second = (
        "{}, {} and {} %".format(*(way[use] for use in USES.values() if use in ways))
        for way in (byte, floats)
    )
    return (
        f"At the low ends of their 95 % intervals, half of the dimensions keep at least {sure} "
        "of the scores for similarity, classification and retrieval. Bits are cheaper to drop than "
        f"dimensions. In {byte['bytes']} bytes a vector, {full} numbers of one byte keep {first} "
        f"of similarity, retrieval and neighbours; {full // 4} numbers of four bytes keep {second}."
    )


def at_half(share_rows: pd.DataFrame) -> pd.DataFrame:
    """What PCA to half of the dimensions keeps for each use, as `value` and `ci_low`."""
    of_half = share_rows["dim"] == share_rows["dim"].max() // 2
    half = share_rows[of_half & (share_rows["reducer"] == PCA)].set_index("use")
    return half.loc[list(USES.values()), list(POINT)]


def write_readme_figure(path: Path | None = None) -> Path:
    """The share of the full-size score by bytes of a vector, with fewer dimensions and with fewer
    bits, where the README shows it, or at another path.
    """
    coded = recorded_rows("beyond_quantisation")
    dims = shares(reduced_rows(), coded)
    full = int(dims["dim"].max())
    way = "reducer == @PCA or dim == @full"
    dims = dims.query(way).assign(bytes=4 * dims["dim"], way="fewer dimensions")
    ways = stored(coded)
    codes = ways.query("dim == @full and reducer == @FIRST and code in @WHOLE_CODES")
    codes = pd.concat([codes, only(dims, dim=full)])
    codes = codes[codes["use"].isin(ways["use"])].assign(way="fewer bits")
    figure_rows = pd.concat([dims, codes]).query("bytes >= 48")
    figure = curves(
        figure_rows.assign(kind="recorded", dim=figure_rows["bytes"].astype(int)),
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


if __name__ == "__main__":
    write_readme_figure()
