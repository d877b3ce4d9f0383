"""Printed, recorded and live numbers side by side, never mixed, and what the documents call their
datasets.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pandas as pd

from repro import paths
from repro.types import InputError

KINDS = ("paper", "recorded", "live")
HEADINGS = (
    "STS-B",
    "SICK-R",
    "STS12",
    "STS13",
    "STS14",
    "STS15",
    "STS16",
    "TREC",
    "CR",
    "MR",
    "SUBJ",
    "MPQA",
    "SST",
    "MRPC",
    "SICK-E",
    "20 Newsgroups",
)
DATASETS = {title: title.lower().replace("-", "") for title in HEADINGS} | {
    "SST": "sst2",
    "20 Newsgroups": "20news",
}
"""A table's column heading to the dataset's name here."""
TITLES = {"hotpotqa": "HotpotQA", **{name: title for title, name in DATASETS.items()}}
SPELLINGS = {"STS-b": "STS-B"}  # Headings that a document spells otherwise


@lru_cache
def paper_values(paper: str, table: str) -> pd.DataFrame:
    """The printed numbers of one table, as rows: values are fractions where the paper prints per
    cent.
    """
    frame = pd.read_csv(paths.PAPER_VALUES / f"{paper}_{table}.csv", dtype={"note": "string"})
    percent = frame["unit"] == "percent"
    frame["value"] = frame["value"].where(~percent, frame["value"] / 100)
    column = frame["column"].replace(SPELLINGS)
    frame["dataset"] = column.map(DATASETS).fillna(column)
    frame["dim"] = pd.to_numeric(frame["dim"], errors="coerce").astype("Int64")
    return frame.rename(columns={"row": "method"})


def title_of(name: Any) -> str:
    """A dataset's name as the documents print it; any other name as it is."""
    return TITLES.get(name, str(name))


def join_kinds(paper: pd.DataFrame, recorded: pd.DataFrame, live: pd.DataFrame) -> pd.DataFrame:
    """One tidy frame of all three kinds, for figures; each row says which it is.

    Without any it has live's columns.
    """
    kinds = zip(KINDS, (paper, recorded, live), strict=True)
    frames = [rows.assign(kind=kind) for kind, rows in kinds]
    return pd.concat([frame for frame in frames if len(frame)] or frames[-1:], ignore_index=True)


def over_seeds(cells: "pd.api.typing.SeriesGroupBy[Any, Any]") -> pd.DataFrame:
    """The mean of every cell as `recorded`, its standard deviation as `sd` and the number of its
    `seeds`: neither of a number that all of several seeds give, as nothing was drawn.
    """
    is_random = (cells.size() == 1) | (cells.nunique() > 1)
    sd = cells.std().where(is_random)
    seeds = cells.size().where(is_random)
    return pd.DataFrame({"recorded": cells.mean(), "sd": sd, "seeds": seeds})


def side_by_side(
    paper: pd.DataFrame,
    recorded: pd.DataFrame,
    live: pd.DataFrame,
    *,
    keys: Sequence[str] = ("method", "dim"),
) -> pd.DataFrame:
    """One line per cell with columns paper | recorded | recorded_sd | seeds | live | live_low |
    live_high | gap.

    Scores are ×100. `gap` is live − paper where both exist. Recorded seeds are averaged; a number
    that is the same in all of them has none: nothing was drawn.
    """
    keys = list(keys)
    if live.duplicated(keys).any():
        twice = live.loc[live.duplicated(keys), keys].iloc[0].to_dict()
        raise InputError(
            f"live rows name the cell {twice} twice: select one metric, readout and seed first"
        )
    ours = over_seeds(recorded.groupby(keys, dropna=False)["value"])
    live_numbers = 100 * live.set_index(keys)[["value", "ci_low", "ci_high"]]
    columns = {
        "paper": 100 * paper.set_index(keys)["value"],
        "recorded": 100 * ours["recorded"],
        "recorded_sd": 100 * ours["sd"],
        "seeds": ours["seeds"],
        "live": live_numbers["value"],
        "live_low": live_numbers["ci_low"],
        "live_high": live_numbers["ci_high"],
    }
    table = pd.concat(columns, axis=1)
    table["gap"] = table["live"] - table["paper"]
    return table.reset_index()
