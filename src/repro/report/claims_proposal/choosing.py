"""Which rule names the right size without labels: errors side by side, and whether any beats taking half blindly."""

import pandas as pd

from repro.evaluation.stats import bootstrap_mean
from repro.report.verdict import Measurement

LOOKING = ("spectrum", "neighbours", "calibrated")
"""rules that look at embeddings"""
HALF = "half of D"
BLIND = ("size alone", "share of D", "PR × constant", HALF, "all of D")
"""controls: they look at no embedding, or at the participation ratio PR alone"""
LABELS, KNEE, EVERY = "labels", "knee", "all"
TASK, UNSEEN = "task left out", "task and encoder left out"


def rule_table(rows: pd.DataFrame, reducer: str, target: float) -> pd.DataFrame:
    """A line per rule with the errors of §7.6; factors are 2^|log₂(predicted / labelled)|.

    Args:
        rows: of `rule_rows`.
        reducer: pca or truncate.
        target: share of the score that is asked for.
    """
    whole = rows[rows["dataset"] == EVERY]
    lines = []
    for rule in LOOKING + BLIND:
        own = whole[whole["method"] == rule]
        at, curve, unseen = (
            own[own["setting"] == setting].set_index("metric")["value"]
            for setting in (_setting(reducer, TASK, target), f"{reducer}, {TASK}", _setting(reducer, UNSEEN, target))
        )
        if at.empty:
            continue
        line: dict[str, object] = {
            "rule": rule,
            "median factor": f"{2 ** at['log2_error_median']:.2f}",
            "worst": f"{2 ** at['log2_error_worst']:.1f}",
        }
        if len(unseen):
            line["median, encoder unseen too"] = f"{2 ** unseen['log2_error_median']:.2f}"
        line["target met, %"] = f"{100 * at['target_met_share']:.0f}"
        line["median size, % of D"] = f"{100 * at['share_of_size_median']:.0f}"
        line["curve off by, points"] = f"{100 * curve['curve_error_mean']:.1f}" if len(curve) else "–"
        lines.append(line)
    return pd.DataFrame(lines)


def answer_table(rows: pd.DataFrame, reducer: str, target: float) -> pd.DataFrame:
    """A line per encoder and task: sizes by labels, and as each rule that looks at embeddings names them."""
    own = rows[(rows["metric"] == "answer") & (rows["setting"] == _setting(reducer, TASK, target))]
    names = [LABELS, KNEE, *LOOKING, HALF]
    table = own.pivot_table(index=["backbone", "dataset", "dim"], columns="method", values="value", sort=False)
    table = table[[name for name in names if name in table]].round().astype("Int64").reset_index()
    return table.rename(columns={"backbone": "encoder", "dataset": "task", "dim": "D"})


def against_half(rows: pd.DataFrame, reducer: str, target: float, *, seed: int = 0) -> pd.DataFrame:
    """How much nearer to labels each rule is than half of all dimensions: difference in |log₂|, with its verdict.

    Encoders share a task, so that tasks are resampled: a single one says little of others.
    """
    own = rows[
        (rows["metric"] == "log2_error")
        & (rows["setting"] == _setting(reducer, TASK, target))
        & (rows["dataset"] != EVERY)
    ]
    if own.empty:
        return pd.DataFrame()
    wide = own.assign(value=own["value"].abs()).pivot_table(
        index=["dataset", "backbone"], columns="method", values="value"
    )
    lines = []
    for rule in LOOKING:
        gain = (wide[HALF] - wide[rule]).groupby("dataset").mean()
        found = bootstrap_mean(gain.to_numpy(), seed=seed)
        judged = Measurement("", "effect", found.value, found.low, found.high)
        lines.append(
            {
                "rule": rule,
                "by, in |log₂|": f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]",
                "tasks": len(gain),
                "nearer than half of D?": judged.verdict,
            }
        )
    return pd.DataFrame(lines)


def trusted(rows: pd.DataFrame, reducer: str, target: float) -> str:
    """Which rule to trust, in words made from the errors."""
    whole = rows[(rows["dataset"] == EVERY) & (rows["setting"] == _setting(reducer, TASK, target))]
    error = whole[whole["metric"] == "log2_error_mean"].set_index("method")["value"]
    if error.empty:
        return f"{reducer}, to keep {100 * target:g} %: no rule was judged."
    met = whole[whole["metric"] == "target_met_share"].set_index("method")["value"]
    size = whole[whole["metric"] == "share_of_size_median"].set_index("method")["value"]
    best, control = error[list(LOOKING)].idxmin(), error[list(BLIND)].idxmin()

    def said(rule: str) -> str:
        return (
            f"{rule} (mean |log₂| {error[rule]:.2f}, target met in {100 * met[rule]:.0f} %, median size "
            f"{100 * size[rule]:.0f} % of D)"
        )

    compared = "nearer than" if error[best] < error[control] else "no nearer than"
    return (
        f"{reducer}, to keep {100 * target:g} %: of the rules that look at embeddings, nearest to labels is "
        f"{said(best)}, {compared} the best blind rule, {said(control)}."
    )


def _setting(reducer: str, left_out: str, target: float) -> str:
    return f"{reducer}, {left_out}, keep {target:g}"
