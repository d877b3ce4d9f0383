"""The hub source: mirrors on the Hugging Face hub, fetched once and kept in the store as parquet.

The only importer of `datasets`. Fetching and mapping are apart: `load_hub` talks to the network at most once per
hub split, `to_set` turns rows into our sets and knows nothing of where they came from.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from repro.data.sets import Corpus, DataSet, LabelledPairs, LabelledTexts, Retrieval, ScoredPairs
from repro.data.spec import FIELDS, DatasetSpec, HubSource
from repro.optional import optional
from repro.paths import home
from repro.types import InputError
from repro.writing import replacing

Rows = list[dict[str, Any]]


def load_hub(spec: DatasetSpec, split: str) -> DataSet:
    """One split from the hub, or from the snapshot that an earlier call left in the store.

    Raises:
        InputError: if the dataset has no hub mirror or the mirror no such split, or the hub cannot be reached.
    """
    source = hub_source(spec)
    if split not in source.splits and split != "all":
        raise InputError(
            f"{spec.name} on the hub ({source.id}) has no split {split!r}: it has {', '.join(source.splits)}"
            + (f"; {source.note}" if source.note else "")
        )
    ours = source.splits.values() if split == "all" else [source.splits[split]]
    rows = [row for parts in ours for part in parts for row in pq.read_table(snapshot(spec, part)).to_pylist()]
    return to_set(spec, split, rows)


def fetch_hub(spec: DatasetSpec) -> list[Path]:
    """Snapshot every hub split of a dataset; the files are returned.

    Raises:
        InputError: if the dataset has no hub mirror, or the hub cannot be reached.
    """
    return [snapshot(spec, part) for parts in hub_source(spec).splits.values() for part in parts]


def hub_source(spec: DatasetSpec) -> HubSource:
    """Where the dataset lies on the hub.

    Raises:
        InputError: if no mirror of it is known.
    """
    if spec.hub is None:
        raise InputError(
            f"{spec.name} has no hub mirror ({spec.note}): set REPRO_DATA to a folder with {spec.file}, "
            "or use source='microworld'"
        )
    return spec.hub


def snapshot(spec: DatasetSpec, part: str) -> Path:
    """The parquet file of one hub split in the store, downloaded if it is not there yet.

    Raises:
        InputError: if it is not there and the hub cannot be reached.
    """
    source = hub_source(spec)
    path = home() / "data" / spec.name / f"{source.revision or 'main'}-{part}.parquet"
    if path.is_file():
        return path
    table = _download(spec, source, part)
    with replacing(path) as partial:  # a broken download is never taken for a snapshot
        table.to_parquet(str(partial))
    return path


def to_set(spec: DatasetSpec, split: str, rows: Rows) -> DataSet:
    """Turn rows as the hub gives them into the set of the dataset's kind.

    Args:
        spec: Names the kind and, in its hub source, the columns and labels that differ from ours.
        split: The name of the split.
        rows: One dict per row, by the hub's column names.

    Raises:
        InputError: if a column is missing, a label is hidden or unknown, or a text is blank.
    """
    source = hub_source(spec)
    if spec.kind == "retrieval":
        return _retrieval(spec, split, rows)
    if spec.kind == "captions":
        return _captions(spec, split, rows, _column(rows, source, "caption", spec.name))
    columns = {field: _column(rows, source, field, spec.name) for field in FIELDS[spec.kind]}
    if source.drop_blank:
        texts = [columns[field] for field in columns if field not in ("label", "score")]
        kept = [row for row in range(len(rows)) if all(text[row].strip() for text in texts)]
        columns = {field: [values[row] for row in kept] for field, values in columns.items()}
    name = spec.name
    if "label" in columns:
        columns["label"] = [_label(source, label, name) for label in columns["label"]]
    match spec.kind:
        case "pairs":
            subsets = np.full(len(columns["score"]), name)
            sides = tuple(columns["sentence1"]), tuple(columns["sentence2"])
            return ScoredPairs(name, "hub", split, *sides, np.array(columns["score"], dtype=float), subsets)
        case "labelled_pairs":
            sides = tuple(columns["sentence1"]), tuple(columns["sentence2"])
            return LabelledPairs(name, "hub", split, *sides, np.array(columns["label"]))
        case "texts":
            return LabelledTexts(name, "hub", split, tuple(columns["text"]), np.array(columns["label"]))
        case _:
            return Corpus(name, "hub", tuple(columns["text"]), split)


def _download(spec: DatasetSpec, source: HubSource, part: str) -> Any:
    datasets = optional("datasets", "train")
    try:
        return datasets.load_dataset(
            source.id, source.config, split=part, revision=source.revision, data_files=source.data_files
        )
    except InputError:
        raise
    except Exception as error:  # the hub's clients raise a dozen unrelated types when there is no network
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise InputError(
            f"could not fetch {spec.name} ({source.id}, split {part}) from the hub: {reason}. Without a network, set "
            f"REPRO_DATA to a folder that holds {spec.file} and use source='local', or run `repro data fetch "
            f"{spec.name}` on a machine that has one and copy {home() / 'data' / spec.name} over"
        ) from error


def _column(rows: Rows, source: HubSource, field: str, name: str) -> list[Any]:
    column = source.columns.get(field, field)
    if rows and column not in rows[0]:
        raise InputError(
            f"{name} from {source.id}: no column {column!r} among {', '.join(rows[0])}; the mirror changed"
        )
    return [row[column] for row in rows]


def _label(source: HubSource, label: Any, name: str) -> str:
    text = str(label)
    if text == "-1":
        raise InputError(f"{name} from {source.id}: label -1 marks hidden labels; use a split that has them")
    if source.labels and text not in source.labels:
        raise InputError(f"{name} from {source.id}: label {text!r}, expected one of {', '.join(source.labels)}")
    return source.labels.get(text, text)


def _captions(spec: DatasetSpec, split: str, rows: Rows, captions: list[list[str]]) -> DataSet:
    """Rows of several captions each: one text per caption, labelled by its row."""
    pairs = [(text, f"{split}-{image:05d}") for image, group in enumerate(captions) for text in group if text.strip()]
    texts, labels = zip(*pairs, strict=True)
    return LabelledTexts(spec.name, "hub", split, texts, np.array(labels))


def _retrieval(spec: DatasetSpec, split: str, rows: Rows) -> DataSet:
    """HotpotQA's distractor form: every question brings ten paragraphs, of which its supporting facts name two."""
    documents: dict[tuple[str, str], str] = {}
    qrels: dict[str, dict[str, int]] = {}
    for row in rows:
        gold = set(row["supporting_facts"]["title"])
        judged = qrels.setdefault(row["id"], {})
        for title, text in _paragraphs(row):
            document = documents.setdefault((title, text), f"d{len(documents):06d}")
            judged[document] = int(title in gold)
    return Retrieval(
        spec.name,
        "hub",
        tuple(row["id"] for row in rows),
        tuple(row["question"] for row in rows),
        tuple(documents.values()),
        tuple(f"{title} {text}" for title, text in documents),
        qrels,
        tuple(row["answer"] for row in rows),
        split,
    )


def _paragraphs(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for title, sentences in zip(row["context"]["title"], row["context"]["sentences"], strict=True):
        text = " ".join(sentence.strip() for sentence in sentences).strip()
        if text:
            yield title, text
