"""Networks: their names, whose place they take, their full-size scores, and which claims they may judge (§5.10)."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from math import nan

import pandas as pd

from repro.methods import BASELINES, OWN_NETWORKS, shown
from repro.report.verdict import Measurement
from repro.rows import recorded_rows

PLACES: dict[str, dict[str, str]] = {
    "wang": {"": "RoBERTa-base"},
    "zhang": {"all-MiniLM-L6-v2": "all-mpnet-base-v2", "repro-tiny + SimCSE": "sup-simcse-roberta-large"},
    "sbertlp": {
        "repro-tiny": "Sentence-BERT on BERT-base",
        "all-MiniLM-L6-v2": "Sentence-BERT on BERT-large",
        "distiluse-base-multilingual-cased-v1": "the Universal Sentence Encoder",
    },
    "ese": {"": "bge-base-en-v1.5"},
}
"""by the first word of an experiment: our network, or any for "", to the one that the paper has in its place"""
STATES = {
    "": "as published",
    ", mean of states": "untrained",
    " after SimCSE": "after SimCSE",
    " after NLI": "after NLI",
}
"""what follows a network's name where readers are shown it, to the words for how it was trained"""


def names(*frames: pd.DataFrame) -> dict[str, str]:
    """Every method of some rows by what readers are shown; of two networks under one method, both are named.

    A method of no one network, such as the majority class, keeps its name.
    """
    found: dict[str, list[str]] = {}
    for frame in frames:
        kept = frame[["method", "backbone", "data_source"]].dropna(subset="method").drop_duplicates()
        for method, backbone, source in kept.itertuples(index=False):
            generated = str(source) == "microworld"
            said = method if pd.isna(backbone) else shown(str(method), str(backbone), generated=generated)
            found.setdefault(str(method), []).append(said)
    return {method: "; ".join(dict.fromkeys(each)) for method, each in found.items()}


@lru_cache
def full_size_scores() -> dict[str, float]:
    """Spearman × 100 on STS-B's test pairs at full size, of recorded networks and TF-IDF, by what readers are shown."""
    frames = [recorded_rows("proposal_baselines"), recorded_rows("sbertlp_table1")]
    rows = pd.concat([f[(f["dataset"] == "stsb") & (f["metric"] == "spearman")] for f in frames])
    rows = rows[(rows["setting"].fillna("") == "") & ~rows["backbone"].isin(set(BASELINES) - {"tfidf"})]
    said = names(rows)
    return (100 * rows.groupby(rows["method"].map(said), sort=False)["value"].first()).to_dict()


def networks_line(rows: pd.DataFrame) -> str:
    """One sentence: which network has the place of which of the paper's, and its full-size scores beside TF-IDF's.

    Empty where no network of the rows has another one's place or a recorded score.
    """
    scores, said = full_size_scores(), []
    places = PLACES.get(str(rows["experiment"].iloc[0]).split("_")[0], {})
    for name in (str(name) for name in rows["backbone"].dropna().unique() if ", " not in name):
        place, network = places.get(name, places.get("")), name.removesuffix(" + SimCSE")
        own = {words: scores[network + end] for end, words in STATES.items() if network + end in scores}
        if name not in (*OWN_NETWORKS, place) and own:
            listed = ", ".join(f"{score:.1f} {words}" for words, score in own.items())
            said.append(f"{name}{f' (the paper: {place})' if place else ''} {listed}")
    if not said:
        return ""
    counted = BASELINES["tfidf"]
    floor = [f"counted words ({counted}) {scores[counted]:.1f}"] if counted in scores else []
    return f"Spearman × 100 at full size on STS-B's test pairs (recorded): {'; '.join([*said, *floor])}."


# Which network may judge which claim

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
    return max(order.index(name) if name in order else len(order) for name in networks.split(", "))


def deep(m: Measurement, scores: Scores) -> str:
    """Depth cannot be told from a network of two or three layers."""
    few = {name: BLOCKS.get(name, FEWEST_BLOCKS) for name in m.network.split(", ")}
    said = [f"{name} has {blocks} blocks" for name, blocks in few.items() if blocks < FEWEST_BLOCKS]
    return f"at least {FEWEST_BLOCKS} blocks: {', '.join(said)}" if said else ""


def above_words(m: Measurement, scores: Scores) -> str:
    """A network that says less of similarity than counted words do cannot say what its size does to it."""
    floor = full_size_scores().get(BASELINES["tfidf"], nan)
    known = {name: score for name in m.network.split(", ") if (score := scores.get(name)) is not None}
    said = [f"{name} has {score:.1f}" for name, score in known.items() if score <= floor]
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


CONDITIONS: tuple[tuple[str, Callable[[Measurement, Scores], str], str], ...] = (
    (r"ESE-(T1-[34]|F3-|F4-|T2-)", deep, ""),
    (r"WANG-(T1|T2|T3|F3|F4|S43|LIM)-|LP-T1-|LP-T4-|LP-S462-2|ESE-(T1|T2|F3|F4|F5)-", above_words, ""),
    (r"PROP-", above_words, r", stsb, |, sickr, "),
    (r"WANG-F2-|LP-F2-", above_words, r"\bstsb\b|\bsickr\b"),
    (r"WANG-S53-", above_words, r"^STS"),
    (r"ZHANG-(?!S42-9)", above_words, r"^STS-B"),
)
"""patterns of claims, what they ask of a network (in words what it lacks), and of which parts of what was measured"""


def placed(found: Iterable[Measurement], rows: pd.DataFrame) -> Iterator[Measurement]:
    """Measurements with what their rows say of who speaks: network, generated text, scope, the condition that fails.

    A measurement that names no network of its rows speaks for all of them.
    """
    everyone = [str(name) for name in rows["backbone"].dropna().unique()]
    generated = (rows["data_source"] == "microworld").any()
    scores = {name: full_score(rows[rows["backbone"] == name]) for name in everyone}
    for m in found:
        own = OWN.get(m.claim_id.split("-")[0], ())
        network = m.network or ", ".join(named(m.what, everyone) or everyone)
        m = replace(m, network=network, generated=bool(generated))
        same = bool(m.network) and all(name in own for name in m.network.split(", "))
        asked = [lacks for claims, lacks, of in CONDITIONS if re.match(claims, m.claim_id) and re.search(of, m.what)]
        unmet = "; ".join(filter(None, (lacks(m, scores) for lacks in asked)))
        yield replace(m, scope="same" if same else "substitute", unmet=m.unmet or unmet)
