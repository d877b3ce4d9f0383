"""The baselines beside each other, and whether printed differences between them are found here."""

from itertools import combinations

import numpy as np
import pandas as pd

from repro.methods import BASELINES, PRINTED_BASELINES
from repro.report import judge
from repro.report.claims_proposal.train_or_reduce import in_task_order
from repro.report.compare import paper_values
from repro.report.networks import names

COSTS = {"gb_per_million": "GB per million", "encode_seconds": "seconds per million"}


def printed_baselines(datasets: tuple[str, ...]) -> pd.DataFrame:
    """The printed scores, as rows: method, dataset and value, each with the paper that prints it."""
    found = []
    for method, (paper, table, row) in PRINTED_BASELINES.items():
        own = paper_values(paper, table)
        own = own[(own["method"] == row) & own["dataset"].isin(datasets) & (own["metric"] == "spearman")]
        found.append(own.assign(method=method, printed=f"{row} ({paper})"))
    return pd.concat(found, ignore_index=True)[["method", "dataset", "value", "printed"]]


def baseline_table(rows: pd.DataFrame, missing: pd.DataFrame) -> pd.DataFrame:
    """A line per method: size, memory, cost and scores; one without numbers for each that is not at hand.

    Args:
        rows: of `experiments.proposal.baseline_rows`; of several seeds the mean is shown.
        missing: method and what is missing.
    """
    scores = in_task_order(rows[rows["metric"] == "spearman"])
    found = []
    for method, group in scores.groupby("method", sort=False):
        own = rows[rows["method"] == method]
        line: dict[str, object] = {"method": method, "dims": int(group["dim"].iloc[0])}
        for dataset, at in group.groupby("dataset", sort=False):
            value, low, high = (100 * at[c].mean() for c in ("value", "ci_low", "ci_high"))
            line[str(dataset)] = f"{value:.2f} [{low:.2f}, {high:.2f}]"
        memory = own[own["metric"] == "gb_per_million"].groupby("setting")["value"].mean()
        line["GB per million"] = _size(memory["dense"])
        if "sparse" in memory:
            line["GB per million"] = f"{_size(memory['dense'])} dense, {_size(memory['sparse'])} sparse"
        seconds = own.loc[own["metric"] == "encode_seconds", "value"].mean()
        line["seconds per million"] = f"{seconds:,.0f}"
        found.append(line)
    found += [{"method": method} for method in missing["method"]]
    columns = ["method", "dims", *scores["dataset"].unique(), *COSTS.values()]
    table = pd.DataFrame(found, columns=columns).astype({"dims": "Int64"})
    return in_order(table).replace({"method": names(rows)})


def _size(gigabytes: float) -> str:
    return f"{gigabytes:,.0f}" if gigabytes >= 100 else f"{gigabytes:.3g}"


def lines_table(lines: dict[str, str], missing: pd.DataFrame) -> pd.DataFrame:
    """What each method is here, or which file it waits for.

    Args:
        lines: what a method is, by method.
        missing: method and what is missing.
    """
    found = [{"method": method, "what it is here": line} for method, line in lines.items()]
    absent = zip(missing["method"], missing["missing"], strict=True)
    found += [{"method": method, "what it is here": f"not here: {what}"} for method, what in absent]
    return in_order(pd.DataFrame(found, columns=["method", "what it is here"]))


def in_order(table: pd.DataFrame) -> pd.DataFrame:
    """The lines in the order in which the proposal names the methods."""
    order = {method: i for i, method in enumerate(BASELINES.values())}
    return table.sort_values("method", key=lambda names: names.map(order), kind="stable", ignore_index=True)


def smallest_memory(rows: pd.DataFrame) -> pd.Series:
    """Gigabytes of a million vectors by method, in the form that takes less."""
    return rows[rows["metric"] == "gb_per_million"].groupby("method", sort=False)["value"].min()


def front(rows: pd.DataFrame, metric: str = "gb_per_million") -> list[str]:
    """The methods that no other equals or beats both in mean score and in memory or seconds, cheapest first."""
    score = rows[rows["metric"] == "spearman"].groupby("method", sort=False)["value"].mean()
    own = rows[rows["metric"] == metric]
    cost = smallest_memory(rows) if metric == "gb_per_million" else own.groupby("method", sort=False)["value"].mean()
    table = pd.DataFrame({"score": score, "cost": cost.reindex(score.index)}).sort_values(
        ["cost", "score"], ascending=[True, False]
    )
    best = table["score"].cummax().shift(fill_value=-np.inf)
    return [str(name) for name in table.index[table["score"] > best]]


def front_table(rows: pd.DataFrame) -> pd.DataFrame:
    """The methods that nothing as small, or as fast, equals in score."""
    said = names(rows)
    return pd.DataFrame(
        [
            {"of": name, "on the front": ", ".join(said[m] for m in front(rows, metric))}
            for metric, name in COSTS.items()
        ]
    )


def printed_differences(rows: pd.DataFrame) -> pd.DataFrame:
    """Of every two methods with printed scores: the printed difference, ours with its interval, and a verdict.

    Rule `effect`: reproduced where ours lies on the printed side and is of that size.
    """
    leads, said = rows[rows["metric"] == "spearman_lead"], names(rows)
    printed = printed_baselines(tuple(leads["dataset"].unique())).set_index(["method", "dataset"])["value"]
    lines = []
    for dataset, group in leads.groupby("dataset", sort=False):
        for a, b in combinations(PRINTED_BASELINES, 2):
            own = group[group["method"] == f"{b} − {a}"]
            if own.empty or (a, dataset) not in printed.index or (b, dataset) not in printed.index:
                continue
            paper = 100 * float(printed[b, dataset] - printed[a, dataset])
            e = judge.estimate(own)
            m = judge.effect("", e, "", paper=paper)
            lines.append(
                {
                    "difference": f"{said.get(b, b)} − {said.get(a, a)}",
                    "dataset": dataset,
                    "paper": paper,
                    "verdict": m.verdict,
                    "ours": f"{e.value:.2f} [{e.low:.2f}, {e.high:.2f}]",
                }
            )
    return pd.DataFrame(lines, columns=["difference", "dataset", "paper", "ours", "verdict"])
