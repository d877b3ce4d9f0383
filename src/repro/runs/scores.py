"""The score of any task; fitted probes are kept in the store, named by embeddings, labels, form and protocol."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from repro.config import digest
from repro.evaluation.protocol import Score, score_classification, score_sts
from repro.runs.embeddings import TextTable
from repro.sets import DataSet, LabelledPairs, LabelledTexts, ScoredPairs
from repro.store import Store

CODE = (
    "repro.evaluation.protocol",
    "repro.evaluation.classify",
    "repro.evaluation.logistic",
    "repro.evaluation.senteval",
    "repro.evaluation.stats",
    "repro.evaluation.resample",
)


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
    key = digest({"splits": probed, "protocol": protocol, "seed": seed}, code=CODE)

    def make(target: Path, work: Path) -> None:
        score = score_classification(table.__getitem__, splits, protocol=protocol, seed=seed)
        np.save(target / "correct.npy", score.items, allow_pickle=False)
        note = {
            "metric": score.metric,
            "value": score.value,
            "low": score.ci_low,
            "high": score.ci_high,
            "floor": score.floor,
        }
        (target / "score.json").write_text(json.dumps(note), encoding="utf-8")

    made = store.get_or_make("scores", key, make, config={"dataset": name, "protocol": protocol, "seed": seed})
    note = json.loads((made.folder / "score.json").read_text(encoding="utf-8"))
    correct = np.load(made.folder / "correct.npy", allow_pickle=False)
    return Score(note["metric"], note["value"], note["low"], note["high"], len(correct), correct, note["floor"])


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
