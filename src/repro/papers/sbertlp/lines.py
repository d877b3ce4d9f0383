"""Lines of SBERT-LP's tables for the reader: systems and their mappings, in the paper's order and ours."""

from collections.abc import Sequence

import pandas as pd

from repro.methods import AVERAGE, MAJORITY
from repro.report import tables
from repro.report.compare import DATASETS, paper_values, side_by_side
from repro.report.networks import names
from repro.report.tables import Shown, wide

SPELLINGS = {"BERT CLS-TOKEN": "BERT-CLS-TOKEN"}
"""Tables 2 and 3 spell a row of Table 1 otherwise"""


def network_of(rows: pd.DataFrame, method: str) -> str:
    """The network that was measured under a key, and the paper's in whose place it is."""
    name = names(rows[rows["method"] == method]).get(method, method)
    printed_here = method != name and method in set(paper_values("sbertlp2021", "table1")["method"])
    return f"{name}; in the paper {method}" if printed_here else name


def labelled(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The rows of one metric with a column `line`: the method, and the setting of a mapping."""
    kept = frame[frame["metric"] == metric].copy()
    setting = kept["setting"].fillna("") if "setting" in kept else pd.Series("", kept.index)
    kept["method"] = kept["method"].replace(SPELLINGS)
    kept["line"] = kept["method"].where(setting == "", kept["method"] + ", " + setting)
    return kept


def printed(table: str, settings: Sequence[str], datasets: Sequence[str] = ()) -> pd.DataFrame:
    """Printed rows, those of the mapping once for each of our settings, with the average where all sets are printed.

    Args:
        table: of the paper.
        settings: of our mapped lines.
        datasets: sets of the average; none adds none.
    """
    paper = paper_values("sbertlp2021", table)
    paper = paper.assign(method=paper["method"].replace(SPELLINGS))
    if datasets:
        own = paper[paper["dataset"].isin(datasets)].groupby(["method", "metric"], sort=False)["value"]
        whole = own.mean()[own.size() == len(datasets)].reset_index().assign(dataset=AVERAGE)
        paper = pd.concat([paper, whole], ignore_index=True)
    mapped = paper["method"].str.endswith("-LP")
    copies = [paper[mapped].assign(setting=setting) for setting in settings]
    return pd.concat([paper[~mapped].assign(setting=""), *copies], ignore_index=True)


def beside_the_paper(printed: pd.DataFrame, past: pd.DataFrame, live: pd.DataFrame, caption: str) -> Shown:
    """Paper, recorded and live of one number each: the paper's lines, and what stands there here.

    No printed name heads our numbers. Lines are in our order, then the paper's; the majority class comes last.

    Args:
        printed: labelled lines of the paper, of one dataset and metric.
        past: recorded ones.
        live: live ones.
        caption: a line above the table.
    """
    table = side_by_side(printed, past, live, keys=("line",))
    order = [*dict.fromkeys([*live["line"], *printed["line"]])]
    place = {line: i for i, line in enumerate(order)} | {MAJORITY: len(order)}
    table = table.sort_values("line", key=lambda c: c.map(place).fillna(len(order)), kind="stable", ignore_index=True)
    return tables.comparison(named(table, printed, past, live), caption=caption)


def named(table: pd.DataFrame, printed: pd.DataFrame, *ours: pd.DataFrame) -> pd.DataFrame:
    """A table with a column `line` as the paper's lines and the networks that stand there here."""
    here = table["line"].map(names_of_lines(*ours)).fillna("not at hand")
    line = table["line"].str.split(", ").str[0].where(table["line"].isin(printed["line"]), "–")  # it names no setting
    table = table.assign(line=line).rename(columns={"line": "in the paper"})
    table.insert(1, "here", here)
    return table


def by_dataset(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    """One line per system and setting, a column per dataset, scores ×100 averaged over seeds.

    Our lines go by the networks they were measured on.
    """
    kept = labelled(frame, metric)
    if kept.empty:
        return kept
    if "backbone" in kept:
        kept = kept.assign(line=kept["line"].map(names_of_lines(kept)))
    kept = kept[kept["dataset"].isin([*DATASETS.values(), AVERAGE])]
    last = [line for line in dict.fromkeys(kept["line"]) if line != MAJORITY]
    orders = {"line": last, "dataset": [*DATASETS.values(), AVERAGE]}
    return wide(kept, ["line"], "dataset", orders=orders, names={name: title for title, name in DATASETS.items()})


def missing_paper(printed: pd.DataFrame, systems: pd.DataFrame) -> pd.DataFrame:
    """Systems that are not at hand, with what the paper prints for their row and how to get them.

    Args:
        printed: the paper's numbers with `line` and `value`, of one dataset and metric.
        systems: system, row, missing.
    """
    value = (100 * printed.drop_duplicates("line").set_index("line")["value"]).to_dict()
    shown = systems.assign(paper=[value.get(SPELLINGS.get(row, row)) for row in systems["row"]])
    return shown.rename(columns={"row": "the paper's row"})[["system", "the paper's row", "paper", "missing"]]


def names_of_lines(*frames: pd.DataFrame) -> dict[str, str]:
    """Lines of our rows to the networks they were measured on, each with its setting."""
    said = names(*frames)
    return {
        line: line.replace(method, said[method], 1)
        for frame in frames
        for line, method in frame[["line", "method"]].drop_duplicates().itertuples(index=False)
    }
