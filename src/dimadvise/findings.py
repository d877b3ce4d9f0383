"""What was found of some vectors, and the advice in words."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dimadvise.coding import MENU, level_bytes
from dimadvise.measured import read_measured

MEANS = {
    "truncate": "the first ones",
    "pca": "principal components",
    "pca-rotated": "principal components, turned at random",
    "svd": "singular directions",
    "svd-rotated": "singular directions, turned at random",
    "random": "a random projection",
    "opq": "turned for product codes",
}
"""Methods in a reader's words."""
SCORES = {"spearman": "Spearman correlation", "ndcg@10": "nDCG@10", "accuracy": "accuracy"}
"""Scores of labels in a reader's words."""
TIED = 0.01  # Recall that near ties must bring before it is told


@dataclass(frozen=True)
class Findings:
    """Everything that a report says.

    Of `options` there is a row for each way to store that was tried: method, dim, level, bytes of a
    vector, rerank (how many times as many candidates as are wanted the full vectors re-rank; 0 is
    none), recall@k with its interval low@k to high@k for k = 1, 10, 100, tail@10 (share of queries
    that find less than half of their ten), alike@10 (where near ties count too), expected@10 (where
    there are more rows than were searched a projection, and no promise), ms of a query here, front
    (no other has fewer bytes and more recall@10) and answer, True once at most. Of `shares`, where
    there are labels: method, dim, level, share of the score at full size, and its lower bound, low.
    """

    source: str  # What the vectors are, in words, such as their file
    rows: int
    full_dim: int
    kind: str  # Of the numbers in the file, such as float16
    similarity: str  # Cosine, ip or l2
    target: tuple[str, float]  # What was asked for: recall, retain or bytes, and how much of it
    options: pd.DataFrame
    notes: Sequence[str] = ()  # What is odd about the vectors, and what to do about it
    measured: Sequence[str] = ()  # How it was measured
    shares: pd.DataFrame | None = None
    metric: str | None = None  # Of the labels' score
    # What is expected of a score where nothing measures it, with its error
    predicted: Sequence[str] = ()
    other_row: int | None = None
    """Of the option that is best with re-scoring by the full vectors, or without where the answer
    is with it; None where there is none, or labels chose.
    """
    searched: int = 0  # Rows among which recall was measured
    total: int = 0  # Rows to which it is projected; 0 are those that there are

    @property
    def score(self) -> str:
        """The score of the labels in a reader's words."""
        return SCORES.get(self.metric or "", "score")

    @property
    def other(self) -> Any:
        """The row of the option that is best where re-scoring is done, or not done, unlike in the
        answer.
        """
        return None if self.other_row is None else self.options.loc[self.other_row]

    @property
    def other_is_unknown(self) -> bool:
        """Whether labels chose, or what is expected of them, which tell nothing of re-scoring."""
        criterion, _ = self.target
        return criterion == "retain" or (criterion == "bytes" and self.metric is not None)

    @property
    def answer(self) -> Any:
        """The row of the option that is recommended; None where all is to be kept as it is."""
        chosen = self.options[self.options["answer"]]
        return None if chosen.empty else chosen.iloc[0]

    @property
    def full_bytes(self) -> int:
        """Of one vector as it is in the file."""
        return self.full_dim * number_bytes(self.kind)


def number_bytes(kind: str) -> int:
    """Of one number of a file, of shards of several kinds the largest; those that are written out
    count as float32.
    """
    return max(
        {"bfloat16": 2, "JSON numbers": 4}.get(dtype) or np.dtype(dtype).itemsize
        for dtype in kind.split(" and ")
    )


def headline(findings: Findings) -> str:
    """The recommendation in a sentence or two."""
    return sentence(findings, findings.answer)


def sentence(findings: Findings, chosen: Any) -> str:
    """An option that is recommended, in a sentence or two; None keeps all as it is."""
    criterion, amount = findings.target
    if chosen is None:
        condition = {
            "recall": f"is sure to have a recall@10 of {amount:g}",
            "retain": f"is sure to keep {100 * amount:g} % of the score",
            "bytes": f"fits into {amount:,.0f} bytes a vector",
        }[criterion]
        return f"Keep the vectors as they are: nothing smaller that was tried {condition}."
    opening = (
        f"Store {in_words(chosen, findings.full_dim)}: {chosen['bytes']:,} bytes a vector instead "
        f"of {findings.full_bytes:,}. "
    )
    share = _share_of(findings, chosen)
    if criterion != "recall" and share is not None:
        # Of its own bound, for which it was picked, less can be said than of what was asked for
        bound = ""
        if criterion == "retain" and not np.isnan(share["low"]):
            bound = f", with 95 % confidence at least {100 * amount:g} %"
        kept = f"{100 * share['share']:.1f} % of the {findings.score}"
        return f"{opening}This keeps {kept}{bound}."
    ranked = (
        f", the first {10 * chosen['rerank']} re-ranked by the full vectors"
        if chosen["rerank"]
        else ""
    )
    recall, among = chosen["recall@10"], ""
    recall_words = f"recall@10 {interval_words(chosen)}"
    rows = findings.total or findings.rows
    if findings.searched and rows > findings.searched and not np.isnan(chosen["expected@10"]):
        recall, among = chosen["expected@10"], f" among {rows:,}"
        recall_words = f"recall@10 {recall:.3f}, projected from {interval_words(chosen)} measured"
        recall_words += f" among {findings.searched:,}"
    return (
        f"{opening}{10 * recall:.2g} of the ten nearest neighbours are found{among} "
        f"({recall_words}){ranked}."
    )


def in_words(option: Any, full_dim: int) -> str:
    """One way to store, such as: 96 of 384 dimensions (principal components) as int8."""
    dim, method = option["dim"], option["method"]
    noun = "dimension" if full_dim == 1 else "dimensions"
    which = f"all {full_dim} {noun}" if dim == full_dim else f"{dim} of {full_dim} {noun}"
    if (dim, method) != (full_dim, "truncate"):
        which += f" ({MEANS.get(method, method)})"
    return f"{which} as {family_of(option['level'])}"


def explanation(findings: Findings) -> list[str]:
    """The recommendation, and sentence by sentence what stands behind it: what it saves, what is
    odd, how it was measured.
    """
    reasons = [*findings.predicted, *findings.notes, *findings.measured]
    return [headline(findings), *consequences(findings), *reasons]


def consequences(findings: Findings) -> list[str]:
    """What follows from the recommendation, in paragraphs."""
    paragraphs = [*_of_answer(findings), *_nearest_miss(findings), *two_answers(findings)]
    return [*paragraphs, *_projection(findings)]


def _nearest_miss(findings: Findings) -> list[str]:
    """Where labels keep all as it is: what came closest, and by how much it fell short."""
    criterion, amount = findings.target
    if findings.answer is not None or findings.shares is None or criterion != "retain":
        return []
    ways = with_bytes(findings.shares)
    ways = ways[(ways["bytes"] < findings.full_bytes) & (ways["low"] < amount)]
    if ways.empty:
        return []
    best = ways.sort_values(["low", "bytes"], ascending=[False, True], kind="stable").iloc[0]
    return [
        f"Closest came {in_words(best, findings.full_dim)}, {best['bytes']:,} bytes: it keeps "
        f"{100 * best['share']:.1f} % of the {findings.score}, with 95 % confidence at least "
        f"{100 * best['low']:.1f} %, which is {100 * (amount - best['low']):.1f} points short."
    ]


def with_bytes(shares: pd.DataFrame) -> pd.DataFrame:
    """The same with the bytes of a vector."""
    return shares.assign(bytes=[level_bytes(way.level, way.dim) for way in shares.itertuples()])


def two_answers(findings: Findings) -> list[str]:
    """What lies in memory alone, and what suffices where the first few are re-scored, in a
    paragraph; none where one of the two is unknown or saves nothing.
    """
    alone, rescored, full = findings.answer, findings.other, findings.full_bytes
    if alone is not None and alone["rerank"]:
        alone, rescored = rescored, alone
    if findings.other_row is None or rescored is None:
        return []
    in_memory = f"the vectors as they are, {full:,} bytes each"
    if alone is not None:
        if findings.target[0] == "recall" and alone["bytes"] <= rescored["bytes"]:
            return []
        in_memory = _briefly(alone, findings.full_dim)
    depth = int(rescored["rerank"])
    hint = (
        f" `--depth {depth}` writes the second."
        if findings.answer is None or not findings.answer["rerank"]
        else ""
    )
    return [
        f"In memory alone: {in_memory}. Re-scored: {_briefly(rescored, findings.full_dim)}, if the "
        f"full vectors, {full:,} bytes each, are read from a disk for the first {10 * depth} found "
        f"and put them in order.{hint}"
    ]


def _briefly(option: Any, full_dim: int) -> str:
    return (
        f"{option['bytes']:,} bytes ({in_words(option, full_dim)}), recall@10 "
        f"{interval_words(option)}"
    )


def _projection(findings: Findings) -> list[str]:
    """What the recall of the answer is expected to be among more rows than were searched."""
    chosen, rows = findings.answer, findings.total or findings.rows
    if chosen is None or rows <= findings.searched or not findings.searched:
        return []
    if np.isnan(chosen["expected@10"]):
        return [unprojected(rows, findings.searched)]
    tenfolds = np.log10(rows / findings.searched)
    error = read_measured().growth.statement
    if tenfolds > 1:
        error += " Further than a tenfold its error is not known."
    return [
        f"Among {rows:,} vectors recall@10 is projected to be {chosen['expected@10']:.3f}: no "
        f"measurement, but the law by which it fell up to {findings.searched:,}, carried on over "
        f"{tenfolds:.1f} tenfolds. {error}"
    ]


def unprojected(rows: int, searched: int) -> str:
    """That recall among so few rows does not tell how it falls."""
    return f"To {rows:,} vectors recall@10 cannot be projected: {searched:,} are too few."


def _of_answer(findings: Findings) -> list[str]:
    chosen = findings.answer
    if chosen is None:
        return []
    rows = findings.total or findings.rows
    memory = (
        f"{rows:,} vectors take {size(rows * chosen['bytes'])} instead of "
        f"{size(rows * findings.full_bytes)}; the index of a store comes on top."
    )
    nearest, hundred, tail = (100 * chosen[name] for name in ("recall@1", "recall@100", "tail@10"))
    disk = ""
    if chosen["rerank"]:
        disk = " The full vectors are kept too, for re-ranking; they may lie on a disk."
    near = f"{tail:.1f} % of queries find less than half of their ten."
    if not chosen["rerank"]:  # Fewer candidates would be re-ranked if fewer were wanted.
        near = (
            f"The nearest neighbour is found for {nearest:.1f} % of queries, and {hundred:.1f} % "
            f"of the hundred nearest; {near}"
        )
    if findings.target[0] != "recall" and _share_of(findings, chosen) is not None:
        near = f"Its recall@10 is {interval_words(chosen)}. {near}"
    if chosen["alike@10"] - chosen["recall@10"] > TIED:
        near += (
            " Many are about as near as the tenth: counting those too, recall@10 is "
            f"{chosen['alike@10']:.3f}."
        )
    return [
        near,
        f"{memory}{disk}",
    ]


def _share_of(findings: Findings, chosen: Any) -> Any:
    """The share of the score that the recommended way keeps, where it was measured."""
    if findings.shares is None:
        return None
    kinds = ["method", "dim", "level"]
    shares = findings.shares[(findings.shares[kinds] == chosen[kinds]).all(axis=1)]
    return None if shares.empty else shares.iloc[0]


def size(count: float) -> str:
    """Bytes as a reader says them."""
    units = ("B", "kB", "MB", "GB", "TB", "PB")
    power = min(max(int(np.log10(max(count, 1)) // 3), 0), len(units) - 1)
    return f"{count / 1000**power:.3g} {units[power]}"


def interval_words(option: Any) -> str:
    """Recall@10 of an option, and its interval."""
    return f"{option['recall@10']:.3f} [{option['low@10']:.3f}, {option['high@10']:.3f}]"


def family_of(level: str) -> str:
    """The level as figures name it: one word for all product codes."""
    return level if level in MENU else "product codes"


def answer_of(findings: Findings, chosen: Any) -> dict[str, Any]:
    """An option for a program: how to store, and what is promised of it; where there is none, that
    vectors are kept as they are.
    """
    if chosen is None:
        return {"said": sentence(findings, None), "keep": True, "bytes": findings.full_bytes}
    columns = ["method", "dim", "level", "bytes", "rerank"]
    columns += ["recall@10", "low@10", "high@10", "tail@10", "expected@10"]
    values = json.loads(chosen[columns].to_json())
    answer = {"said": sentence(findings, chosen), "keep": False, **values}
    share = _share_of(findings, chosen)
    return answer if share is None else {**answer, "share": float(share["share"])}


def other_answer_of(findings: Findings) -> dict[str, Any]:
    """The same with re-scoring, or without where the answer has it; empty where labels chose."""
    return {} if findings.other_is_unknown else answer_of(findings, findings.other)
