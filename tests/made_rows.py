"""Made-up rows of numbers with intervals, and the verdicts that a claim's measurements deserve."""

from itertools import product

from repro.report.scorecard import verdict_frame
from repro.rows import make_rows

HOLDS, FAILS, UNSURE, ABSENT = "holds here", "does not hold here", "cannot tell", "not attempted"
SEEDS = (0, 1, 2)


def around(value, half=0.002):
    """A number in the middle of its interval."""
    return {"value": value, "ci_low": value - half, "ci_high": value + half}


def seeded(entries, step=0.001, half=0.002, seeds=SEEDS, **shared):
    """Rows of some seeds that differ by a step, a tenth of a point; a number without an interval is ± 0.2 points."""
    rows = []
    for e, s in product(entries, seeds):
        moved = e["value"] + (0 if e["metric"] == "optimal_dim" else step * s)
        rows.append(around(e["value"], half) | e | {"value": moved, "seed": s})
    return make_rows(rows, **shared)


def verdicts_of(measurements):
    """By claim, without the paper's name, all verdicts that some measurements give, in their order."""
    table = verdict_frame("live", measurements)
    return table.groupby(table["claim_id"].str.partition("-")[2])["verdict"].agg(list).to_dict()


def verdicts_of_parts(measurements):
    """Verdicts by claim and the beginning of what was measured."""
    return {(m.claim_id, m.what.split(" (")[0]): m.verdict for m in measurements}
