"""Made-up rows of numbers with intervals, and the verdicts that a claim's measurements deserve."""

from functools import cache
from itertools import product

import pandas as pd

from repro.papers.proposal import choosing
from repro.papers.recorded import recorded_verdicts
from repro.report.verdict import Measurement
from repro.report.verdict_frames import verdict_frame
from repro.rows import make_rows

HOLDS, FAILS, UNSURE, ABSENT = "holds here", "not seen here", "cannot tell", "not attempted"
LESS = "direction only"  # The claimed sign, but not the printed size
SEEDS = (0, 1, 2)


def around(value, half=0.002):
    """A number in the middle of its interval."""
    return {"value": value, "ci_low": value - half, "ci_high": value + half}


def seeded(entries, step=0.001, half=0.002, seeds=SEEDS, **shared):
    """Rows of some seeds that differ by a step, a tenth of a point; a number without an interval is
    ± 0.2 points.
    """
    rows = []
    for e, s in product(entries, seeds):
        moved = e["value"] + (0 if e["metric"] == "optimal_dim" else step * s)
        rows.append(around(e["value"], half) | e | {"value": moved, "seed": s})
    return make_rows(rows, **shared)


def measured(claim, value, network="all-MiniLM-L6-v2"):
    """A gain on a network, with an interval of a point to either side."""
    fields = {"seeds": 3, "what": "gain", "network": network}
    return Measurement(claim, "effect", value, value - 1, value + 1, **fields)


def verdicts_of(measurements):
    """By claim, without the paper's name, all verdicts that some measurements give, in their
    order.
    """
    table = verdict_frame("live", measurements)
    return table.groupby(table["claim_id"].str.partition("-")[2])["verdict"].agg(list).to_dict()


def verdicts_of_parts(measurements):
    """Verdicts by claim and the beginning of what was measured."""
    return {(m.claim_id, m.what.split(" (")[0]): m.verdict for m in measurements}


def made_curves(off=0.0):
    """Rows of a trial of the advisor: two encoders, three tasks; the spectrum is always right, or
    off by so much.
    """
    rows = []
    for (encoder, full), task in product((("a", 64), ("b", 128)), range(3)):
        at = {"backbone": encoder, "dataset": f"t{task}"}
        rows.append(
            {
                **at,
                "method": "full size",
                "metric": "participation_ratio",
                "value": 6.0 + task,
                "dim": full,
            }
        )
        steep_of = {"pca": 6 + task, "truncate": 12 + 2 * task}
        for (reducer, steep), dim in product(
            steep_of.items(),
            (full, full // 2, full // 4, full // 8),
        ):
            share = 1 - max(steep / dim - steep / full, 0)
            here = {**at, "method": reducer, "dim": dim}
            rows += [
                {**here, "metric": "share_kept", "value": share, "ci_low": share},
                {**here, "metric": "predicted", "value": min(share + off, 1.0)},
                {**here, "metric": "neighbours_kept", "value": share**4},
            ]
    shared = {"experiment": "x", "data_source": "made", "seed": 0}
    curves = make_rows(rows, **shared)
    return pd.concat([curves, choosing.rule_rows(curves, (0.9, 0.95), **shared)], ignore_index=True)


@cache
def verdicts_of_rows():
    """The verdict of every measurement in the recorded rows, which take a minute to judge."""
    return recorded_verdicts()
