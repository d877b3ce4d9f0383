"""Which encoder stands for which of Zhang et al. (2024), its score at full size, and what a method leads it by."""

import pandas as pd

from repro.evaluation.seeds import Estimate, estimates
from repro.methods import FULL_SIZE
from repro.types import InputError

ENCODERS = {
    "mpnet": ("all-mpnet-base-v2", 768),
    "sbert-b": ("stsb-bert-base", 768),
    "roberta": ("msmarco-roberta-base-v2", 768),
    "xlm-r": ("paraphrase-xlm-r-multilingual-v1", 768),
    "sbert-l": ("stsb-bert-large", 1024),
    "simcse": ("sup-simcse-roberta-large", 1024),
}
"""the paper's encoders by the short names it gives them, with their full size"""
STAND_INS = {"mpnet": "all-MiniLM-L6-v2", "simcse": "+ SimCSE"}
"""ends of the names of encoders made the same way: on the same pairs, or by the same contrastive loss"""
SCORES = {"spearman": "Spearman × 100", "accuracy": "accuracy × 100"}  # metrics of the tasks to what figures call them
AUTOENCODER = "Autoencoder"
RANDOM = {"GRP", AUTOENCODER}
"""methods with a draw of their own; the others give one answer, so one seed of theirs has no noise"""
WITHIN = ("inductive", "transductive")  # the paper's settings
BETWEEN = "transductive − inductive"  # setting of the rows that compare the two
SETTINGS = (*WITHIN, "wiki")
"""what a reducer is fitted on: training sentences, those and the test sentences, or sentences of another kind"""


def encoder_for_role(rows: pd.DataFrame, role: str) -> str | None:
    """The encoder of these rows that stands for one of the paper's: the paper's own, else its stand-in, else None."""
    names = sorted(str(name) for name in rows["backbone"].dropna().unique())
    own = [name for name in names if name == ENCODERS[role][0]]
    return next(iter([*own, *(n for n in names if role in STAND_INS and n.endswith(STAND_INS[role]))]), None)


def encoders_of(rows: pd.DataFrame) -> list[str]:
    """All encoders that have a score at full size, as they first appear."""
    return [str(name) for name in rows.loc[rows["method"] == FULL_SIZE, "backbone"].dropna().unique()]


def full_size(rows: pd.DataFrame, encoder: str) -> tuple[int, float]:
    """Full dim of an encoder, and its score there in points, averaged over seeds.

    Raises:
        InputError: if the rows hold no such score.
    """
    own = rows[(rows["backbone"] == encoder) & (rows["method"] == FULL_SIZE) & rows["metric"].isin(SCORES)]
    if own.empty:
        raise InputError(f"no full-size score of {encoder!r}: nothing to measure a loss against")
    return int(own["dim"].max()), 100 * float(own["value"].mean())


def lead(rows: pd.DataFrame, encoder: str, method: str, setting: str) -> dict[int, Estimate]:
    """By dim, a method's score less that of full size in one setting, in points."""
    kept = rows[(rows["method"] == f"{method} − {FULL_SIZE}") & (rows["backbone"] == encoder)]
    return estimates(kept[kept["setting"] == setting], deterministic=method not in RANDOM)
