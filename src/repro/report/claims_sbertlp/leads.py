"""What all claims of SBERT-LP rest on: the lead of a mapped system over the system itself, paired by item."""

from collections.abc import Sequence
from math import nan

import pandas as pd

from repro.evaluation.stats import wilson
from repro.report.compare import paper_values
from repro.report.judge import Estimate, estimate
from repro.report.lines_sbertlp import here
from repro.report.verdict import Measurement

SIZES = ("SBERTbase", "SBERTlarge")
"""the paper's two systems, as the keys of rows"""
USE = "Universal Sentence Encoder"
HONEST = "transductive, chosen on dev"
"""setting that claims are judged in: fitted on the evaluated sentences as in the paper, chosen without their scores"""


def lead(rows: pd.DataFrame, method: str, metric: str, dataset: str, *, setting: str = HONEST) -> Estimate | None:
    """The lead of a mapped system over the system; None where it was not measured."""
    kept = rows[(rows["method"] == f"{method}-LP − {method}") & (rows["metric"] == f"{metric}_lead")]
    kept = kept[(kept["dataset"] == dataset) & (kept["setting"] == setting)]
    if kept.empty:
        return None
    # a system that this book did not train has no seed of its own, and the mapping draws nothing
    return estimate(kept, deterministic=bool(kept["n_train"].isna().all()))


def printed_leads(table: str, method: str) -> pd.Series:
    """The printed lead of a mapped system by dataset (Table 3: by indicator), in points."""
    paper = paper_values("sbertlp2021", table)
    key = "metric" if table == "table3" else "dataset"
    at = {name: paper[paper["method"] == name].set_index(key)["value"] for name in (method, f"{method}-LP")}
    return 100 * (at[f"{method}-LP"] - at[method])


def won(claim: str, wins: int, n: int, what: str, *, paper: float, null: float = 50.0, seeds: int = 1) -> Measurement:
    """A count of sets as a share in per cent, with Wilson's interval over sets."""
    share = wilson(wins, n).times(100)
    return Measurement(
        claim,
        "effect",
        share.value,
        share.low,
        share.high,
        paper=paper,
        null=null,
        seeds=seeds,
        what=f"per cent of {n} sets {what} ({wins})",
    )


def count_gains(
    claim: str, rows: pd.DataFrame, table: str, method: str, metric: str, datasets: Sequence[str]
) -> list[Measurement]:
    """On how many sets the mapping gains, beside the printed count; nothing where a set is lacking."""
    leads = [found for name in datasets if (found := lead(rows, method, metric, name)) is not None]
    if len(leads) < len(datasets):
        return []
    paper = 100 * float((printed_leads(table, method) > 0).mean())
    wins = sum(e.value > 0 for e in leads)
    what = f"on which the mapping gains ({here(rows, method)})"
    return [won(claim, wins, len(leads), what, paper=paper, seeds=leads[0].seeds)]


def not_at_hand(claim: str, what: str) -> Measurement:
    """A part of a claim that cannot be measured here."""
    return Measurement(claim, "effect", nan, nan, nan, what=f"{what}: not measured, weights are not at hand")
