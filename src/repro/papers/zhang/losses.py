"""What rows of reduced embeddings say: which encoder stands for which, leads, losses, and sizes that lose little."""

from collections.abc import Mapping

import pandas as pd

from repro.methods import FULL_SIZE, TRUNCATE, ZHANG_METHODS
from repro.report.judge import Estimate, estimates, scaled
from repro.report.tables import MISSING, interval, mean, wide
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
TOLERANCE = 1.0
"""per cent of the full-size score that a size may lose and still count as enough"""
AUTOENCODER = "Autoencoder"
RANDOM = {"GRP", AUTOENCODER}
"""methods with a draw of their own; the others give one answer, so one seed of theirs has no noise"""
WITHIN = ("inductive", "transductive")
"""the paper's settings"""
BETWEEN = "transductive − inductive"
"""setting of the rows that compare the two"""
SETTINGS = (*WITHIN, "wiki")
"""what a reducer is fitted on: training sentences, those and the test sentences, or sentences of another kind"""
ORDER = (*ZHANG_METHODS, TRUNCATE)


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
    own = rows[(rows["backbone"] == encoder) & (rows["method"] == FULL_SIZE)]
    own = own[own["metric"].isin(["spearman", "accuracy"])]
    if own.empty:
        raise InputError(f"no full-size score of {encoder!r}: nothing to measure a loss against")
    return int(own["dim"].max()), 100 * float(own["value"].mean())


def lead(rows: pd.DataFrame, encoder: str, winner: str, rival: str, setting: str) -> dict[int, Estimate]:
    """By dim, a method's score less a rival's in one setting, in points."""
    kept = rows[(rows["method"] == f"{winner} − {rival}") & (rows["backbone"] == encoder)]
    return estimates(kept[kept["setting"] == setting], deterministic=not {winner, rival} & RANDOM)


def loss(rows: pd.DataFrame, encoder: str, method: str, setting: str) -> dict[int, Estimate]:
    """By dim, what a method loses of the full-size score, in per cent of it.

    The full-size score that it is divided by is taken as exact: its interval would move the loss by a small part of it.
    """
    _, full = full_size(rows, encoder)
    found = lead(rows, encoder, method, FULL_SIZE, setting)
    return {d: scaled(e, -100 / full) for d, e in found.items()}


def halved_table(rows: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """What PCA at half the dims loses, per cent of full size, by kind of number: beside what the paper says of its six.

    Args:
        rows: by kind of number, recorded or live.
    """
    lines = []
    for kind, frame in rows.items():
        for encoder in encoders_of(frame):
            full, _ = full_size(frame, encoder)
            for setting in SETTINGS:
                at = loss(frame, encoder, "PCA", setting)
                if at:
                    d = min(at, key=lambda d: abs(d - full / 2))
                    value, low, high = (round(x, 2) + 0.0 for x in (at[d].value, at[d].low, at[d].high))  # no −0.00
                    said = {"paper": "at most 1" if setting in WITHIN else MISSING}
                    said[kind] = f"{value:.2f} [{low:.2f}, {high:.2f}]"
                    lines += [(encoder, f"{d} of {full}", setting, *item) for item in said.items()]
    frame = pd.DataFrame(lines, columns=["encoder", "dims", "setting", "kind", "value"])
    if frame.empty:
        return frame
    orders = {"setting": SETTINGS, "kind": ("paper", *rows)}
    table = wide(frame, ["encoder", "dims", "setting"], "kind", lambda cell: cell["value"].iat[0], orders=orders)
    return table.fillna(MISSING)


def sufficient_dims(rows: pd.DataFrame) -> pd.DataFrame:
    """The smallest size from which on every larger one tried loses at most 1 % of the full-size score.

    `dims` goes by the measured loss, `surely` by the upper end of its 95 % interval; missing where no size tried will
    do. `full` is the full size and `largest` the largest one tried.
    """
    lines = []
    for encoder in encoders_of(rows):
        full, _ = full_size(rows, encoder)
        for method in ORDER:
            for setting in SETTINGS:
                if at := loss(rows, encoder, method, setting):
                    bounds = ({d: e.value for d, e in at.items()}, {d: e.high for d, e in at.items()})
                    found = [smallest_within(losses, TOLERANCE) for losses in bounds]
                    lines.append((encoder, method, setting, *found, full, max(at)))
    frame = pd.DataFrame(lines, columns=["encoder", "method", "setting", "dims", "surely", "full", "largest"])
    return frame.astype({"dims": "Int64", "surely": "Int64"})


def smallest_within(losses: Mapping[int, float], tolerance: float) -> int | None:
    """The smallest size at which, and at every larger one, the loss is within the tolerance."""
    best = None
    for d in sorted(losses, reverse=True):
        if not losses[d] <= tolerance:  # NaN: too few seeds to be sure
            break
        best = d
    return best


def sufficient_table(rows: pd.DataFrame) -> pd.DataFrame:
    """`sufficient_dims` for the reader: a line per encoder and method, a column per setting."""

    def said(cell: pd.DataFrame) -> str:
        line = cell.iloc[0]
        if pd.isna(line["dims"]):
            return f"more than {line['largest']}"
        sure = "not sure at any" if pd.isna(line["surely"]) else f"surely {line['surely']}"
        return f"{line['dims']} ({100 * line['dims'] / line['full']:.0f} %), {sure}"

    found = sufficient_dims(rows)
    if found.empty:
        return found
    orders = {"encoder": sorted(set(found["encoder"])), "method": ORDER, "setting": SETTINGS}
    return wide(found, ["encoder", "method"], "setting", said, orders=orders).fillna("not fitted")


def score_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Scores ×100, means over seeds: a line per encoder, method and setting, a column per size that any of them has."""
    kept = rows[rows["metric"].isin(["spearman", "accuracy"]) & rows["method"].isin((FULL_SIZE, *ORDER))]
    settings = sorted(set(kept["setting"].fillna("")))
    orders = {"backbone": encoders_of(rows), "method": (FULL_SIZE, *ORDER), "setting": settings}
    return wide(kept, ["backbone", "method", "setting"], "dim", orders=orders, names={"backbone": "encoder"})


def variant_table(rows: pd.DataFrame) -> pd.DataFrame:
    """What another form of a method changes against its default one in the same setting, in points over sizes."""
    table = score_table(rows).set_index(["encoder", "method", "setting"])
    lines = []
    for encoder, method, setting in table.index:
        default, _, form = setting.partition(", ")
        if form and (encoder, method, default) in table.index:
            change = (table.loc[(encoder, method, setting)] - table.loc[(encoder, method, default)]).dropna()
            if len(change):
                lines.append((encoder, method, form, float(change.min()), float(change.max())))
    return pd.DataFrame(lines, columns=["encoder", "method", "form", "smallest change", "largest change"])


def rescaled_table(rows: pd.DataFrame, form: str) -> pd.DataFrame:
    """PCA, kernel PCA and kernel PCA in another form at every size, inductive: a line per encoder and size."""
    shown = {("PCA", "inductive"): "PCA", ("KPCA", "inductive"): "KPCA", ("KPCA", f"inductive, {form}"): f"KPCA {form}"}
    kept = rows[rows["metric"].isin(["spearman", "accuracy"])]
    kept = kept.assign(line=[shown.get(key) for key in zip(kept["method"], kept["setting"], strict=True)])
    names = {"backbone": "encoder", "dim": "dims"}
    kept = kept.dropna(subset="line")
    if set(kept["line"]) != set(shown.values()):
        return pd.DataFrame(columns=["encoder", "dims", *shown.values()])
    orders = {"backbone": encoders_of(rows), "line": list(shown.values())}
    table = wide(kept, ["backbone", "dim"], "line", orders=orders, names=names)
    return table.dropna(ignore_index=True)


def roughness_table(rows: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Roughness in points per encoder, setting and method: recorded a mean over seeds, live with its interval."""
    joined = pd.concat([frame.assign(kind=kind) for kind, frame in rows.items()], ignore_index=True)
    kept = joined[joined["metric"] == "roughness"]
    if kept.empty:
        return kept
    return wide(
        kept,
        ["backbone", "setting", "method"],
        "kind",
        lambda cell: interval(cell) if cell["kind"].iat[0] == "live" else mean(cell),
        names={"backbone": "encoder"},
    )
