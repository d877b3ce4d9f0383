"""Made-up rows of numbers with intervals, and the verdicts that a claim's measurements deserve."""

from repro.report.scorecard import verdict_frame

HOLDS, FAILS, UNSURE, ABSENT = "holds here", "does not hold here", "cannot tell", "not attempted"


def around(value, half=0.002):
    """A number in the middle of its interval."""
    return {"value": value, "ci_low": value - half, "ci_high": value + half}


def verdicts_of(measurements):
    """By claim, without the paper's name, all verdicts that some measurements give, in their order."""
    table = verdict_frame("live", measurements)
    return table.groupby(table["claim_id"].str.partition("-")[2])["verdict"].agg(list).to_dict()
