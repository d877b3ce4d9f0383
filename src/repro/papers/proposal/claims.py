"""What rows measure of the proposal's four claims: PROP-T-1, PROP-T-2, PROP-E-1 and PROP-Q-1."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from repro.evaluation.seeds import Estimate, estimate
from repro.methods import AVERAGE, BEST_REDUCED, FULL_SIZE, TRAINED_PROJECTION, TWO_STEP_PROJECTION
from repro.report.judge import Facts, Judge, Measurement, Split, effect, judge, lowest, trend

EXPECTED_SIGN = {"info_nce": -1, "uniformity": -1}
"""Both fall as the dimension grows, by the equations of the page; for alignment they name no
direction.
"""
# Of ln(root mean square error of cosines) against ln(dim), as PROP-T-2 has it
SLOPE, TOLERANCE = -0.5, 0.1
TASKS = ("stsb", "sickr", AVERAGE, "hotpotqa")  # in the order of tables and figures
CLOSE, SHORT = 1 / 3, 1 / 6
"""256 and 128 of BERT's 768, as shares of the full size: from the first on PROP-Q-1 expects hardly
a loss, to the second only of the two-step method.
"""


def alignment_uniformity(rows: pd.DataFrame) -> list[Measurement]:
    """Kendall's τ of InfoNCE, alignment and uniformity against dim, over trained encoders.

    The proposal names no direction. The loss and uniformity are judged by the one that the theory
    gives them; alignment by whichever it shows, so that only the absence of a trend speaks against
    the claim.
    """
    found = []
    for network, metric in product(
        rows["backbone"].unique(),
        ("info_nce", "alignment", "uniformity"),
    ):
        own = rows[(rows["backbone"] == network) & (rows["metric"] == metric)]
        if own["dim"].nunique() < 3:
            continue
        sign = EXPECTED_SIGN.get(metric)
        words = f"{metric} against dim" + ("" if sign else ", either direction")
        m = replace(trend("PROP-T-1", own, sign or 1, words), network=str(network))
        found.append(m if sign or m.value >= 0 else replace(m, direction=-1))
    return found


def slopes(rows: pd.DataFrame) -> pd.Series:
    """Slope of ln(rms change of cosines) against ln(dim), by backbone and draw; needs three dims of
    a draw.
    """
    own = rows[(rows["metric"] == "cosine_rms") & (rows["method"] == "GRP")]
    found = {
        key: float(
            np.polyfit(
                np.log(group["dim"].to_numpy(float)),
                np.log(group["value"].to_numpy(float)),
                1,
            )[0]
        )
        for key, group in own.groupby(["backbone", "seed"])
        if group["dim"].nunique() >= 3
    }
    return pd.Series(
        found,
        dtype=float,
        index=pd.MultiIndex.from_tuples(found, names=["backbone", "draw"]),
    )


def johnson_lindenstrauss(rows: pd.DataFrame) -> list[Measurement]:
    """Slope less −½ of every encoder, with its t interval over draws; one draw alone says
    nothing.
    """
    found = []
    for backbone, of_one in (
        slopes(rows).groupby(level="backbone") if (rows["metric"] == "cosine_rms").any() else ()
    ):
        off = (of_one.droplevel("backbone") - SLOPE).to_dict()
        what = f"{backbone}: slope of ln(rms cosine error) against ln(dim), less −0.5"
        found.append(
            effect(
                "PROP-T-2",
                Estimate(off),
                what,
                test="sameness",
                margin=TOLERANCE,
                network=str(backbone),
            )
        )
    return found


def in_task_order(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows by task, those of one task in their old order; recorded rows come sorted by name."""
    known = {task: i for i, task in enumerate(TASKS)}
    return rows.sort_values(
        "dataset", key=lambda names: names.map(known).fillna(len(known)), kind="stable"
    )


def closest_reductions(rows: pd.DataFrame) -> pd.DataFrame:
    """How far the trained projection is ahead of all reductions: a line per dataset and dim, in
    points.

    Columns: dataset, dim, over (the closest reduction), value, low, high (95 %), seeds, ahead
    (training, reduction or open), estimate. The trained projection is ahead of all where it is
    ahead of each, and behind as soon as it is behind one, by joint intervals.
    """
    own = rows[
        rows["metric"].str.endswith("_lead")
        & rows["method"].str.startswith(f"{TRAINED_PROJECTION} − ")
    ]
    own = own.assign(over=own["method"].str.removeprefix(f"{TRAINED_PROJECTION} − "))
    own = own[~own["over"].isin([FULL_SIZE, TWO_STEP_PROJECTION, BEST_REDUCED])]
    own, lines = in_task_order(own.sort_values("dim", kind="stable")), []
    for (dataset, dim), cell in own.groupby(["dataset", "dim"], sort=False):
        at = {str(over): estimate(seeds) for over, seeds in cell.groupby("over", sort=False)}
        closest, e = lowest(at)
        ahead = "training" if e.low > 0 else "reduction" if e.high < 0 else "open"
        lines.append((str(dataset), int(dim), closest, e.value, e.low, e.high, e.seeds, ahead, e))
    return pd.DataFrame(
        lines,
        columns=["dataset", "dim", "over", "value", "low", "high", "seeds", "ahead", "estimate"],
    )


def trained_or_reduced(rows: pd.DataFrame) -> Iterator[Measurement]:
    """The trained projection less the closest reduction on similarity, at every dim and set.

    The proposal leaves the answer open. Judged is whether training wins: if it does not hold,
    reduction wins.
    """
    network = str(rows["backbone"].iloc[0])
    for e in closest_reductions(rows[rows["metric"] == "spearman_lead"]).itertuples():
        what = (
            f"{network}, {e.dataset}, dim {e.dim}: trained projection less the "
            f"closest reduction, {e.over}"
        )
        yield effect("PROP-E-1", e.estimate, what, network=network)


def _sets(rows: pd.DataFrame) -> Iterator[tuple[Facts, pd.DataFrame]]:
    """The rows of each set, with the full size and the network."""
    full = int(rows.loc[rows["method"] == FULL_SIZE, "dim"].dropna().iloc[0])
    for dataset, own in in_task_order(rows).groupby("dataset", sort=False):
        yield {"full": full, "network": str(own["backbone"].iloc[0]), "dataset": str(dataset)}, own


def _cells(rows: pd.DataFrame) -> Iterator[tuple[Facts, pd.DataFrame]]:
    """The rows of each set and dim."""
    for facts, group in _sets(rows):
        yield from ((facts, own) for _, own in group.groupby("dim"))


def _kept(line: str, share: float, each: Split, **options: Any) -> Judge:
    """A line less full size, at a share of the full size and above."""
    what = f"{{network}}, {{dataset}}, dim {{dim}} of {{full}}: {line} less full size"
    rows = (
        f"metric == 'spearman_lead' and method == '{line} − {FULL_SIZE}' and dim >= {share} * @full"
    )
    return Judge("PROP-Q-1", what, rows, each=each, null=-1.0, **options)


SIZE_KEPT = (
    _kept(TRAINED_PROJECTION, CLOSE, _cells),
    _kept(TWO_STEP_PROJECTION, SHORT, _sets, pick=lambda at: min(at.items())),
)
"""Similarity at a third of the full size and above, and of two-step training at the smallest size
from a sixth on.
"""


def train_or_reduce(rows: pd.DataFrame) -> list[Measurement]:
    """PROP-E-1 and PROP-Q-1, network by network, on the average of seven sets where it is known,
    which is surer.
    """
    networks = (
        (own, own[own["dataset"] == AVERAGE]) for _, own in rows.groupby("backbone", sort=False)
    )
    return [
        m
        for own, mean in networks
        for m in judge([trained_or_reduced, *SIZE_KEPT], mean if len(mean) else own)
    ]
