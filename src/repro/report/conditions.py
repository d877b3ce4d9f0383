"""Which network may judge which claim: the papers' own, the order of others, and what claims ask of them (§5.10)."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import pandas as pd

from repro.methods import BASELINES
from repro.report.networks import full_size_scores
from repro.report.verdict import Measurement

OWN: dict[str, tuple[str, ...]] = {
    "WANG": ("roberta-base", "bert-base-uncased"),
    "ZHANG": ("all-mpnet-base-v2", "sup-simcse-roberta-large", "msmarco-roberta-base-v2"),
    "LP": ("bert-base-nli-mean-tokens", "bert-large-nli-mean-tokens"),
    "ESE": ("bge-base-en-v1.5", "UAE-Large-V1", "Qwen1.5-0.5B"),
    "PROP": ("bert-base-uncased",),
}
"""the papers' own networks by the beginning of a claim; on these the printed size is judged"""
STAND_INS = ("all-mpnet-base-v2", "e5-small-en", "all-MiniLM-L6-v2", "repro-mini", "repro-tiny", "repro-tiny + SimCSE")
"""every other network, from the nearest to a paper's to the farthest"""
MENDED = "flow|whitening|-LP"
"""in the names of such lines"""
BLOCKS = {"repro-tiny": 2, "all-MiniLM-L6-v2": 6, "e5-small-en": 12, "all-mpnet-base-v2": 12}
Scores = Mapping[str, float | None]
"""full-size scores of networks on STS-B; None where the rows hold none"""
FEWEST_BLOCKS = 4
"""of a network that is asked about depth"""


def rank(claim: str, networks: str) -> int:
    """How far networks, with commas between them, are from the claim's paper: the farthest counts."""
    order = (*OWN[claim.split("-")[0]], *STAND_INS)
    names = networks.split(", ")
    return max(order.index(name) if name in order else len(order) for name in names)


def deep(m: Measurement, scores: Scores) -> str:
    """Depth cannot be told from a network of two or three layers."""
    few = {name: BLOCKS.get(name, FEWEST_BLOCKS) for name in m.network.split(", ")}
    said = [f"{name} has {blocks} blocks" for name, blocks in few.items() if blocks < FEWEST_BLOCKS]
    return f"at least {FEWEST_BLOCKS} blocks: {', '.join(said)}" if said else ""


def above_words(m: Measurement, scores: Scores) -> str:
    """A network that says less of similarity than counted words do cannot say what its size does to it."""
    said, floor = [], full_size_scores().get(BASELINES["tfidf"])
    for name in m.network.split(", "):
        score = scores.get(name)
        if floor is not None and score is not None and score <= floor:
            said.append(f"{name} has {score:.1f}")
    return f"a full-size score on STS-B above counted words' {floor:.1f}: {', '.join(said)}" if said else ""


def full_score(rows: pd.DataFrame) -> float | None:
    """The best Spearman × 100 on STS-B's test pairs of any line at the largest size; None where rows hold none.

    What was mended after training, by a flow or a mapping, says nothing of the network.
    """
    own = rows[(rows["metric"] == "spearman") & (rows["dataset"] == "stsb") & rows["dim"].notna()]
    own = own[(own["dim"] == own["dim"].max()) & ~own["method"].str.contains(MENDED)]
    means = own.groupby(["method", "readout", "layer"], dropna=False)["value"].mean()
    return 100 * float(means.max()) if len(means) else None


def named(what: str, networks: list[str]) -> list[str]:
    """The networks that a text names; a name within a longer one that it names does not count."""
    found = [name for name in networks if name in what]
    return [name for name in found if not any(name in other and name != other for other in found)]


@dataclass(frozen=True)
class Condition:
    """What some claims ask of a network."""

    claims: str
    """a regular expression"""
    unmet: Callable[[Measurement, Scores], str]
    """in words, what the network lacks; empty where it lacks nothing"""
    parts: str = ""
    """a regular expression for what was measured, of claims that have parts of several kinds"""


CONDITIONS = (
    Condition(r"ESE-(T1-[34]|F3-|F4-|T2-)", deep),
    Condition(r"WANG-(T1|T2|T3|F3|F4|S43|LIM)-|LP-T1-|LP-T4-|LP-S462-2|ESE-(T1|T2|F3|F4|F5)-", above_words),
    Condition(r"PROP-", above_words, r", stsb, |, sickr, "),
    Condition(r"WANG-F2-|LP-F2-", above_words, r"\bstsb\b|\bsickr\b"),
    Condition(r"WANG-S53-", above_words, r"^STS"),
    Condition(r"ZHANG-(?!S42-9)", above_words, r"^STS-B"),
)


def placed(found: Iterable[Measurement], rows: pd.DataFrame) -> Iterator[Measurement]:
    """Measurements with what their rows say of who speaks: network, generated text, scope, the condition that fails.

    Args:
        found: what the rows measure.
        rows: those they were measured on; a measurement that names no network of theirs speaks for all.
    """
    everyone = [str(name) for name in rows["backbone"].dropna().unique()]
    generated = (rows["data_source"] == "microworld").any()
    scores = {name: full_score(rows[rows["backbone"] == name]) for name in everyone}
    for m in found:
        own = OWN.get(m.claim_id.split("-")[0], ())
        network = m.network or ", ".join(named(m.what, everyone) or everyone)
        m = replace(m, network=network, generated=bool(generated))
        same = bool(m.network) and all(name in own for name in m.network.split(", "))
        asked = [c for c in CONDITIONS if re.match(c.claims, m.claim_id) and re.search(c.parts, m.what)]
        unmet = "; ".join(filter(None, (c.unmet(m, scores) for c in asked)))
        yield replace(m, scope="same" if same else "substitute", unmet=m.unmet or unmet)
