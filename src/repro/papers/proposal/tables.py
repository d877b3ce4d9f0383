"""Tables of the proposal's pages, from rows to lines; a table of plain means is `repro.report.tables`."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import isnan

import numpy as np
import pandas as pd

from repro.methods import BASELINES, BEST_REDUCED, PRINTED_BASELINES, TRAINED_PROJECTION, UNTRAINED
from repro.papers.proposal.claims import TASKS, closest_reductions
from repro.report.compare import DATASETS, paper_values
from repro.report.judge import effect, estimate
from repro.report.networks import names
from repro.report.tables import MISSING, interval, wide
from repro.theory import jl_dim

DROPOUT = "dropout"
"""unsupervised SimCSE's positives, with which the others are compared"""
AUGMENTATIONS = (UNTRAINED, DROPOUT, "synonym", "back-translation", "paraphrase", "mixture")
TITLES = {name: title for title, name in DATASETS.items()}
COSTS = {"gb_per_million": "GB per million", "encode_seconds": "seconds per million"}
GEOMETRY = {
    "alignment": "alignment",
    "uniformity": "uniformity",
    "uniformity_limit": "best possible",
    "uniformity_dim": "dims filled",
    "info_nce": "InfoNCE",
    "expected_info_nce": "expected, all dims filled",
    "expected_info_nce_filled": "expected, dims filled",
}


def written(e: object) -> str:
    """A number with its interval."""
    ends = "" if isnan(e.low) else f" [{e.low:.2f}, {e.high:.2f}]"  # type: ignore[attr-defined]
    return f"{e.value:.2f}{ends}"  # type: ignore[attr-defined]


def geometry_table(rows: pd.DataFrame) -> pd.DataFrame:
    """A line per dim with what was measured and what theory expects; seeds are averaged."""
    own = rows[rows["metric"].isin(list(GEOMETRY))]
    table = own.pivot_table(index="dim", columns="metric", values="value").reindex(columns=list(GEOMETRY))
    table["uniformity_dim"] = table["uniformity_dim"].round().astype("Int64")
    return table.rename(columns=GEOMETRY).reset_index().sort_values("dim", ascending=False)


def sufficient_table(rows: pd.DataFrame, targets: Sequence[float]) -> pd.DataFrame:
    """Per encoder and ε: what the bound asks for, and the smallest tried dim where no sampled pair is off by more.

    Random projection must hold in every draw. A dash: no dim that was tried is enough.
    """
    worst = rows[rows["metric"] == "distortion_worst"].groupby(["backbone", "method", "dim"])["value"].max()
    lines = []
    for backbone, n in rows[rows["metric"] == "sentences"].groupby("backbone")["value"].first().items():
        for eps in targets:
            line = {"encoder": backbone, "sentences": int(n), "ε": eps, "bound": jl_dim(int(n), eps)}
            for method in ("GRP", "PCA"):
                enough = [dim for (b, m, dim), value in worst.items() if (b, m) == (backbone, method) and value <= eps]
                line[method] = min(enough, default=None)
            lines.append(line)
    return pd.DataFrame(lines).astype({"GRP": "Int64", "PCA": "Int64"})


def sign_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Per task and dim: who is ahead, by the lead over the closest reduction; and the lead over the one dev chose."""
    at = ["dataset", "dim"]
    chosen = rows[rows["method"] == BEST_REDUCED].groupby(at)["setting"]
    chosen = chosen.agg(lambda said: ", ".join(dict.fromkeys(str(v).split(",")[0] for v in said)))
    own = rows[rows["metric"].str.endswith("_lead") & (rows["method"] == f"{TRAINED_PROJECTION} − {BEST_REDUCED}")]
    over = {key: written(estimate(cell)) for key, cell in own.groupby(at)}
    return pd.DataFrame(
        {
            "task": e.dataset,
            "dim": e.dim,
            "ahead": e.ahead,
            "lead over the closest": written(e),
            "closest": e.over,
            "over dev's choice": over[e.dataset, e.dim],
            "dev's choice": chosen[e.dataset, e.dim],
        }
        for e in closest_reductions(rows).itertuples()
    )


def augmentation_table(rows: pd.DataFrame, notes: Mapping[str, str] | None = None) -> pd.DataFrame:
    """A line per augmentation, mean ± sd over seeds: survivors, then geometry and scores; or, with notes, the wordings.

    Args:
        rows: of `augmentation_rows`, or of `wording_rows` with notes.
        notes: by augmentation, what it is made from or lacks; one without rows has its line as well.
    """
    percent = {"survivors": "survivors, %", "token_overlap": "words shared, %"}

    def spread(cell: pd.DataFrame) -> str:
        metric = cell["metric"].iloc[0]
        factor, digits = {"spearman": (100, 2), **dict.fromkeys(percent, (100, 0))}.get(metric, (1, 3))
        sd = f" ± {factor * cell['value'].std():.{digits}f}" if len(cell) > 1 else ""
        return f"{factor * cell['value'].mean():.{digits}f}{sd}"

    score = rows["metric"] == "spearman"
    own = rows.assign(column=rows["metric"].where(~score, rows["dataset"].replace(TITLES)).replace(percent))
    shown = [*percent.values()] if notes else ["survivors, %", "alignment", "uniformity", *TITLES.values()]
    own = own[own["column"].isin(shown)]
    order = {"method": list(notes or AUGMENTATIONS), "column": shown}
    table = wide(own, ["method"], "column", spread, orders=order, names={"method": "positives"})
    if notes:
        table = table.set_index("positives").reindex(list(notes)).reset_index()
        table["made from"] = list(notes.values())
    return table.fillna(MISSING)


def augmentation_leads(rows: pd.DataFrame) -> pd.DataFrame:
    """Every augmentation's Spearman less dropout's on each set, judged as the claim that it is above."""
    own = rows[(rows["metric"] == "spearman_lead") & (rows["method"] != UNTRAINED)]
    own = own.sort_values("method", key=lambda column: column.map(AUGMENTATIONS.index), kind="stable")
    own = own.sort_values("dataset", key=lambda column: column.map(list(TITLES).index), kind="stable")
    lines = []
    for (dataset, name), cell in own.groupby(["dataset", "method"], sort=False):
        e = estimate(cell)
        judged = effect("", e, "")
        line = {"positives": name, "set": TITLES[str(dataset)], "verdict": judged.verdict, "seeds": e.seeds}
        lines.append({**line, "points above dropout": written(e)})
    return pd.DataFrame(lines)


def in_baseline_order(table: pd.DataFrame) -> pd.DataFrame:
    """The lines in the order in which the proposal names the methods."""
    order = {method: i for i, method in enumerate(BASELINES.values())}
    return table.sort_values("method", key=lambda methods: methods.map(order), kind="stable", ignore_index=True)


def baseline_table(rows: pd.DataFrame, missing: pd.DataFrame) -> pd.DataFrame:
    """A line per method: size, memory, cost and scores; one without numbers for each that is not at hand.

    Args:
        rows: of `baseline_rows`; of several seeds the mean is shown.
        missing: method and what is missing.
    """

    def memory(cell: pd.DataFrame) -> str:
        sizes = cell.groupby("setting")["value"].mean()
        said = {form: f"{gb:,.0f}" if gb >= 100 else f"{gb:.3g}" for form, gb in sizes.items()}
        return f"{said['dense']} dense, {said['sparse']} sparse" if "sparse" in said else said["dense"]

    by = dict(iter(rows.groupby("metric")))
    table = wide(by["spearman"], ["method"], "dataset", interval, orders={"dataset": TASKS})
    table.insert(1, "dims", table["method"].map(by["spearman"].groupby("method")["dim"].first()))
    held = {method: memory(cell) for method, cell in by["gb_per_million"].groupby("method")}
    seconds = by["encode_seconds"].groupby("method")["value"].mean()
    table["GB per million"] = table["method"].map(held)
    table["seconds per million"] = [f"{seconds[method]:,.0f}" for method in table["method"]]
    return in_baseline_order(pd.concat([table, missing[["method"]]])).replace({"method": names(rows)})


def pareto_front(rows: pd.DataFrame, metric: str = "gb_per_million") -> list[str]:
    """The methods that no other equals or beats both in mean score and in memory or seconds, cheapest first.

    Of a method that may be kept dense or sparse, the smaller memory counts.
    """
    score = rows[rows["metric"] == "spearman"].groupby("method", sort=False)["value"].mean()
    costs = rows[rows["metric"] == metric].groupby("method", sort=False)["value"]
    cost = costs.min() if metric == "gb_per_million" else costs.mean()
    table = pd.DataFrame({"score": score, "cost": cost.reindex(score.index)})
    table = table.sort_values(["cost", "score"], ascending=[True, False])
    best = table["score"].cummax().shift(fill_value=-np.inf)
    return [str(name) for name in table.index[table["score"] > best]]


def printed_baselines(datasets: Sequence[str]) -> pd.DataFrame:
    """The printed scores, as rows: method, dataset and value, each with the paper that prints it."""
    found = []
    for method, (paper, table, row) in PRINTED_BASELINES.items():
        own = paper_values(paper, table)
        own = own[(own["method"] == row) & own["dataset"].isin(datasets) & (own["metric"] == "spearman")]
        found.append(own.assign(method=method, printed=f"{row} ({paper})"))
    return pd.concat(found, ignore_index=True)[["method", "dataset", "value", "printed"]]


def printed_differences(rows: pd.DataFrame) -> pd.DataFrame:
    """Of every two methods with printed scores: the printed difference, ours with its interval, and a verdict.

    Rule `effect`: it holds where ours lies on the printed side.
    """
    leads, said = rows[rows["metric"] == "spearman_lead"], names(rows)
    printed = printed_baselines(list(leads["dataset"].unique())).set_index(["method", "dataset"])["value"]
    lines = []
    for dataset, group in leads.groupby("dataset", sort=False):
        for a, b in combinations(PRINTED_BASELINES, 2):
            own = group[group["method"] == f"{b} − {a}"]
            if own.empty or (a, dataset) not in printed.index or (b, dataset) not in printed.index:
                continue
            paper, e = 100 * float(printed[b, dataset] - printed[a, dataset]), estimate(own)
            difference = f"{said.get(b, b)} − {said.get(a, a)}"
            lines.append((difference, dataset, paper, written(e), effect("", e, "", paper=paper).verdict))
    return pd.DataFrame(lines, columns=["difference", "dataset", "paper", "ours", "verdict"])
