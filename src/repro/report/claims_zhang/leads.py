"""Rows of reduced embeddings as estimates: which encoder stands in for which, leads, losses against full size."""

import pandas as pd

from repro.methods import FULL_SIZE
from repro.report.judge import Estimate, estimates
from repro.report.verdict import Measurement
from repro.types import InputError

PAPER = {
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
RANDOM = ("GRP", "Autoencoder")
"""methods with a draw of their own; the others give one answer, so one seed of theirs has no noise"""
WITHIN = ("inductive", "transductive")
"""the paper's settings"""
BETWEEN = "transductive − inductive"


def playing(rows: pd.DataFrame, role: str) -> str | None:
    """The encoder of these rows that plays a role: the paper's own, else its stand-in, else None."""
    names = sorted(str(name) for name in rows["backbone"].dropna().unique())
    own = [name for name in names if name == PAPER[role][0]]
    others = [name for name in names if role in STAND_INS and name.endswith(STAND_INS[role])]
    return next(iter([*own, *others]), None)


def encoders_of(rows: pd.DataFrame) -> list[str]:
    """All encoders that have a score at full size, as they first appear."""
    return [str(name) for name in rows.loc[rows["method"] == FULL_SIZE, "backbone"].dropna().unique()]


def full_size(rows: pd.DataFrame, encoder: str) -> tuple[int, float]:
    """Full dim of an encoder, and its score there in points, averaged over seeds.

    Raises:
        InputError: if the rows hold no such score.
    """
    own = rows[(rows["backbone"] == encoder) & (rows["method"] == FULL_SIZE)]
    own = own[own["metric"].isin(["spearman", "accuracy"])]
    if own.empty:
        raise InputError(f"no full-size score of {encoder!r}: nothing to measure a loss against")
    return int(own["dim"].max()), 100 * float(own["value"].mean())


def lead(rows: pd.DataFrame, encoder: str, winner: str, rival: str, setting: str) -> dict[int, Estimate]:
    """By dim, a method's score less a rival's in one setting, in points."""
    kept = rows[rows["metric"].isin(["spearman_lead", "accuracy_lead"]) & (rows["method"] == f"{winner} − {rival}")]
    kept = kept[(kept["backbone"] == encoder) & (kept["setting"] == setting)]
    return estimates(kept, deterministic=not {winner, rival} & set(RANDOM))


def loss(rows: pd.DataFrame, encoder: str, method: str, setting: str) -> dict[int, Estimate]:
    """By dim, what a method loses of the full-size score, in per cent of it.

    The full-size score that it is divided by is taken as exact: its interval would move the loss by a small part of it.
    """
    _, full = full_size(rows, encoder)
    found = lead(rows, encoder, method, FULL_SIZE, setting)
    return {d: Estimate(-100 * e.value / full, 100 * e.half / full, e.seeds) for d, e in found.items()}


def equivalent(dim: int, role: str, full: int) -> float:
    """The size of an encoder of `full` dims that is the same share of it as `dim` is of the paper's encoder."""
    return dim / PAPER[role][1] * full


def absent(claim: str, roles: str) -> Measurement:
    """A claim on encoders of which no weights are at hand."""
    nan = float("nan")
    why = f"needs {roles}: published weights, no stand-in at hand (profile `paper` fetches them)"
    return Measurement(claim, "effect", nan, nan, nan, seeds=0, what=why)
