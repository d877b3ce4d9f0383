"""The score of any task; fitted probes are kept in the store, named by embeddings, labels, form and protocol."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict

import numpy as np

from repro.digests import digest
from repro.evaluation.protocol import Score, score_classification, score_sts
from repro.runs.embeddings import TextTable
from repro.sets import DataSet, LabelledPairs, LabelledTexts, ScoredPairs
from repro.store import Store
from repro.types import Array


def score_task(
    table: TextTable, name: str, splits: Mapping[str, DataSet], store: Store, *, protocol: str = "logreg", seed: int = 0
) -> Score:
    """The task's own score: test Spearman of scored pairs, else accuracy of a linear probe."""
    last = splits.get("test", next(iter(splits.values())))
    if isinstance(last, ScoredPairs):
        return score_sts(table.__getitem__, last, seed=seed)
    return stored_classification(table, name, splits, store, protocol=protocol, seed=seed)


def stored_classification(
    table: TextTable, name: str, splits: Mapping[str, DataSet], store: Store, *, protocol: str = "logreg", seed: int = 0
) -> Score:
    """`score_classification`, from the store if these very embeddings were probed before."""
    probed = {split: _content(table, part) for split, part in splits.items()}

    def probe() -> dict[str, Array]:
        score = score_classification(table.__getitem__, splits, protocol=protocol, seed=seed)
        return {name: np.array(value) for name, value in asdict(score).items()}

    kept = store.remember(
        "scores",
        {"dataset": name, "splits": probed, "protocol": protocol, "seed": seed},
        probe,
        code="repro.evaluation.protocol",
    )
    return Score(**{field: part if field == "items" else part.item() for field, part in kept.items()})


def _content(table: TextTable, part: DataSet) -> str:
    """Digest of a part's embeddings and labels, row by row."""
    if isinstance(part, LabelledTexts):
        sides, labels = [part.texts], part.labels
    elif isinstance(part, LabelledPairs):
        sides, labels = [part.texts1, part.texts2], part.labels
    else:
        return part.name  # score_classification says what is wrong with it
    digests = [hashlib.sha256(np.ascontiguousarray(table[side]).tobytes()).hexdigest() for side in sides]
    return digest({"X": digests, "y": list(labels)})
