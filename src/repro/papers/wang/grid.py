"""Figure 4 of Wang et al. (2023): what a pooler gains from the encoder of another dim.

Encoders are ranked by what they score alone, on the dev pairs where the rows hold them, so that the
pairs that rank are not the pairs that judge.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from repro.evaluation.of_rows import estimate_cells
from repro.evaluation.seeds import Estimate, of_parts
from repro.evaluation.stats import Floats
from repro.report.judge import Group, Judge
from repro.report.kinds import paper_values
from repro.report.measurements import effect
from repro.report.verdict import Measurement


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
    score_rows = on_dev(rows).query("metric == 'spearman' and readout == 'encoder'")
    return score_rows.pivot_table(index="seed", columns="dim", values="value")


def printed_exchange() -> float:
    """What encoder_64 is printed to gain over encoder_16 under pooler_16."""
    printed = 100 * printed_cells().set_index("method")["value"]
    return float(printed["encoder_64"] - printed["encoder_16"])


def ranking_pairs(rows: pd.DataFrame) -> Iterator[Group]:
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
    gains = gains[gains["encoder"].isin(ranks) & gains["dim"].isin(ranks)]
    gains = gains[gains["seed"].isin(ranks.index)]
    cells = estimate_cells(gains.sort_values(["encoder", "dim"]), ["encoder", "dim"])
    alone = [Estimate(scores.to_dict()) for _, scores in ranks.items()]
    place = {dim: position for position, dim in enumerate(ranks)}
    other_encoder = [place[dim] for dim, _ in cells]
    own_encoder = [place[dim] for _, dim in cells]

    def raised(numbers: Floats) -> Floats:
        gain, score = np.split(numbers, [len(cells)], axis=-1)
        better = score[..., other_encoder] > score[..., own_encoder]
        raising = (better & (gain > 0)).sum(-1)
        return 100 * raising / np.maximum(better.sum(-1), 1)

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
