"""Fitted probes kept in the store: what they got right, named by the embeddings' bytes, the labels and the protocol."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from repro import data
from repro.config import digest
from repro.data.sets import DataSet, LabelledPairs, LabelledTexts
from repro.evaluation.protocol import Score, score_classification
from repro.experiments.embeddings import TextTable
from repro.store import Store

CODE = (
    "repro.evaluation.protocol",
    "repro.evaluation.classify",
    "repro.evaluation.logistic",
    "repro.evaluation.senteval",
)


def stored_classification(
    table: TextTable,
    name: str,
    splits: Mapping[str, DataSet],
    store: Store,
    *,
    protocol: str = "logreg",
    seed: int = 0,
) -> Score:
    """`score_classification` in the dataset's own form, from the store if these very embeddings were probed before."""
    key = digest(
        {
            "splits": {split: _content(table, part) for split, part in splits.items()},
            "protocol": protocol,
            "seed": seed,
        },
        code=CODE,
    )

    def make(target: Path, work: Path) -> None:
        form = data.get_spec(name).form if name in data.DATASETS else None
        score = score_classification(table.__getitem__, splits, form=form, protocol=protocol, seed=seed)
        np.save(target / "correct.npy", score.items, allow_pickle=False)
        note = {"metric": score.metric, "value": score.value, "low": score.ci_low, "high": score.ci_high,
                "floor": score.floor}  # fmt: skip
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
