"""How rows of ESE are read: which of them are the cells of a table, and the printed ones beside.

A layer of the paper's backbone, and ESE's compressed size, is read as the same share of ours.
"""

import pandas as pd

from repro.evaluation.of_rows import estimate
from repro.evaluation.power import FEWEST_SEEDS
from repro.methods import (
    AVERAGE,
    CONTROL,
    ESE,
    ESE_DEFAULT,
    ESE_PRINTED,
    ESE_VARIANTS,
    MRL,
    RAW,
    SHALLOW_AVERAGE,
)
from repro.report.kinds import paper_values
from repro.results import recorded_rows
from repro.rows import only

RIVALS = (RAW, MRL)  # What the paper compares ESE with; the control is ours
PRINTED_BACKBONE = "bge-base-en-v1.5"
"""Whose printed numbers stand beside ours: a BERT of twelve layers, trained contrastively before.
"""
PLACES = {"last layer": AVERAGE, "≺ Avg.": SHALLOW_AVERAGE}
"""Where scores are averaged over the seven sets, as tables call it."""


def printed(table: str) -> pd.DataFrame:
    """Printed numbers of a table of ESE with columns backbone and method, methods named as here."""
    frame = paper_values("ese2025", table)
    lines = frame["method"].str.partition(" / ")  # Such as `bge-base-en-v1.5 / + MRL`
    return frame.assign(backbone=lines[0], method=lines[2].replace(ESE_PRINTED))


def printed_variants() -> pd.DataFrame:
    """Table 2 as printed, a line per row with the variant it is here."""
    frame = paper_values("ese2025", "table2")
    rows = frame["method"].str.split(" / ").str[1]
    return frame.assign(printed=rows, method=rows.map(ESE_VARIANTS))


def table1_cells(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that Table 1 shows: the last layer at full size on every set, and the mean over the
    shallow layers.
    """
    cells = [rows.iloc[:0]]
    for _, rows_of_backbone in rows.groupby("backbone", sort=False):
        scores = only(rows_of_backbone, metric="spearman", dim=rows_of_backbone["dim"].max())
        is_last = scores["layer"] == rows_of_backbone["layer"].max()
        cells.append(scores[is_last | (scores["dataset"] == SHALLOW_AVERAGE)])
    return pd.concat(cells)


def tried_sizes(rows: pd.DataFrame) -> dict[int, str]:
    """Compressed sizes that were tried, ascending, with their variants; the default's is among
    them.
    """
    sized = (rows["method"] == ESE_DEFAULT) | rows["method"].str.startswith("k = ")
    size_rows = only(rows[sized], metric="compressed_size")
    return dict(
        sorted(
            (int(size), str(method))
            for size, method in zip(size_rows["value"], size_rows["method"], strict=True)
        )
    )


def at_places(
    rows: pd.DataFrame,
    metric: str = "spearman",
    *,
    every_size: bool = False,
) -> pd.DataFrame:
    """Averages over the sets at the last layer and over the shallow ones, with their `place`; at
    full size alone.
    """
    frames = [rows.iloc[:0].assign(place="")]
    for _, rows_of_backbone in rows.groupby("backbone", sort=False):
        score_rows = only(rows_of_backbone, metric=metric)
        is_last = score_rows["layer"] == rows_of_backbone["layer"].max()
        score_rows = score_rows[score_rows["layer"].isna() | is_last]
        if not every_size:
            score_rows = only(score_rows, dim=rows_of_backbone["dim"].max())
        for place, dataset in PLACES.items():
            frames.append(only(score_rows, dataset=dataset).assign(place=place))
    return pd.concat(frames, ignore_index=True)


def by_pairs(rows: pd.DataFrame, backbone: str, longer: str) -> pd.DataFrame:
    """Rows of a network trained on few pairs and on all, each beside those of the untouched one,
    with the number of pairs in words.

    The lines trained on all pairs are of an experiment of their own, which judges nothing.

    Args:
        rows: recorded ones of an experiment.
        backbone: the network.
        longer: the experiment of the lines trained on all pairs.
    """
    both = pd.concat([rows, recorded_rows(longer)])
    of_network = only(both, backbone=backbone)
    untouched = of_network[of_network["n_train"].isna()]
    return pd.concat(
        [
            pd.concat([untouched, trained]).assign(pairs=f"{n:,} pairs")
            for n, trained in of_network.groupby("n_train")
        ],
        ignore_index=True,
    )


def leads_by_pairs(rows: pd.DataFrame, backbone: str) -> pd.DataFrame:
    """The leads of ESE over RAW, the control and MRL, and those of both over RAW, of a network on
    few pairs and on all.
    """
    leads = at_places(by_pairs(rows, backbone, "ese_table1_longer"), "spearman_lead")
    compared = [f"{ESE} − {rival}" for rival in (RAW, CONTROL, MRL)]
    compared += [f"{line} − {RAW}" for line in (CONTROL, MRL)]
    leads = leads[leads["method"].isin(compared)].sort_values(["method", "n_train"])
    return leads.assign(variant=leads["method"] + ", " + leads["pairs"])


def difference(cell: pd.DataFrame) -> str:
    """Mean over seeds, in points, with its 95 % interval over items; from three seeds on over the
    seeds, too.
    """
    return str(estimate(cell, deterministic=cell["seed"].nunique() < FEWEST_SEEDS))


def printed_beside(rows: pd.DataFrame) -> str:
    """Where in the paper its lead of ESE over RAW on `≺ Avg.` stands, in a paragraph, and what the
    two lines have here.

    Args:
        rows: recorded ones of Table 1.
    """
    leads = {
        name: printed_lead(paper_rows, ESE, RAW)
        for name, paper_rows in printed("table1").groupby("backbone", sort=False)
    }
    of_paper = only(printed("table1"), dataset=SHALLOW_AVERAGE, backbone=PRINTED_BACKBONE)
    ends = 100 * of_paper.set_index("method")["value"]
    others = " and ".join(
        f"{lead:.1f} on {name}" for name, lead in leads.items() if name != PRINTED_BACKBONE
    )
    paper_sentences = (
        f"The paper's {leads[PRINTED_BACKBONE]:.1f} is in its Table 1, column ≺ Avg., rows of "
        f"{PRINTED_BACKBONE}: {ends[ESE]:.2f} with ESE less {ends[RAW]:.2f} for RAW. The same "
        f"column has a lead of {others}."
    )
    ours = only(table1_cells(rows), dataset=SHALLOW_AVERAGE)
    means = 100 * ours.groupby(["backbone", "method"])["value"].mean().unstack()
    lifted = list(means.index[means[ESE] > means[RAW]])
    if not lifted:
        return paper_sentences
    begins = " and ".join(f"{means.loc[name, RAW]:.1f} on {name}" for name in lifted)
    finishes = " and ".join(f"{means.loc[name, ESE]:.1f}" for name in lifted)
    return (
        f"{paper_sentences} Here RAW already has {begins}: there is less to lift, and ESE ends at "
        f"{finishes}, near the paper's {ends[ESE]:.2f}. Training is short here, too."
    )


def printed_lead(rows: pd.DataFrame, winner: str, rival: str) -> float:
    """A printed lead on `≺ Avg.`, in points, such as ESE's 20.67 over RAW."""
    score_rows = only(rows, dataset=SHALLOW_AVERAGE).drop_duplicates("method")
    scores = score_rows.set_index("method")["value"]
    return float(100 * (scores[winner] - scores[rival]))
