"""Which networks a page's numbers are of: their names, whose place they take, and what they score at full size."""

from functools import lru_cache

import pandas as pd

from repro.methods import BASELINES, OWN_NETWORKS, shown
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
    "{}": "as published",
    "{}, mean of states": "untrained",
    "{} after SimCSE": "after SimCSE",
    "{} after NLI": "after NLI",
}
"""what readers are shown of a network, to the words for how it was trained"""


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
        own = {words: scores[line.format(network)] for line, words in STATES.items() if line.format(network) in scores}
        if name not in (*OWN_NETWORKS, place) and own:
            listed = ", ".join(f"{score:.1f} {words}" for words, score in own.items())
            said.append(f"{name}{f' (the paper: {place})' if place else ''} {listed}")
    if not said:
        return ""
    counted = BASELINES["tfidf"]
    floor = [f"counted words ({counted}) {scores[counted]:.1f}"] if counted in scores else []
    return f"Spearman × 100 at full size on STS-B's test pairs (recorded): {'; '.join([*said, *floor])}."
