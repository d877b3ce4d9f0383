"""A toy copy of every hub repository in use, in the hub's own form: ids, configurations, splits,
columns, labels.

`python tests/hub_copy.py FOLDER` writes it; with `REPRO_HUB=FOLDER`, source='hub' then works
without a network, in every process that inherits the variable. What the rows say is generated,
every class occurs in every split.
"""

import itertools
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from repro import data
from repro.data.hub import hub_source, hub_splits
from repro.data.local import FIELDS, DatasetSpec, HubSource

ROWS = {"wiki": 1200, "nli": 1200, "flickr30k": 240}
"""Rows in each hub split; 120 of the other sets."""
BESIDE = {
    "SetFit/TREC-QC": {"label": 0, "label_text": "manner of an action"},
    "SetFit/20_newsgroups": {"label": 0},
    "RobZamp/sick": {"id": "1", "entailment_AB": "A_neutral_B"},
    "nyu-mll/glue": {"idx": 0},
}
"""Columns that the hub has and we do not read."""


def make_hub(folder: Path) -> Path:
    """Write the copies; the folder is returned."""
    configs: dict[Path, dict[str, list[str]]] = {}
    for spec in data.DATASETS.values():
        for split in hub_splits(spec) if spec.hub else ():
            source = hub_source(spec, split)
            parts = source.splits[split]
            made = list(_rows(spec, source, split, ROWS.get(spec.name, 120) * len(parts)))
            for place, part in enumerate(parts):
                repository = folder / source.id
                _write(repository, source, part, made[place :: len(parts)])
                if source.data_files is None:
                    configs.setdefault(repository, {}).setdefault(
                        source.config or "default",
                        [],
                    ).append(part)
    for repository, parts_of in configs.items():
        lines = ["---", "configs:"]
        for config, parts in parts_of.items():
            lines += [f"- config_name: {config}", "  data_files:"]
            for part in dict.fromkeys(parts):
                lines += [f"  - split: {part}", f"    path: {config}/{part}-*"]
        (repository / "README.md").write_text("\n".join([*lines, "---", ""]), encoding="utf-8")
    return folder


def _write(repository: Path, source: HubSource, part: str, rows: list[dict[str, Any]]) -> None:
    name = source.data_files or f"{source.config or 'default'}/{part}-00000-of-00001.parquet"
    path = repository / name.format(part=part).replace("*", "0000")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".txt":
        path.write_text("".join(f"{row['text']}\n" for row in rows), encoding="utf-8")
        return
    if path.is_file():  # two of our datasets are columns of one repository
        rows = [old | new for old, new in zip(pq.read_table(path).to_pylist(), rows, strict=True)]
    pq.write_table(pa.Table.from_pylist(rows), path)


def _rows(spec: DatasetSpec, source: HubSource, split: str, count: int) -> Iterator[dict[str, Any]]:
    """The microworld's set by the hub's columns and labels, the classes in turn."""
    made = data.load(
        spec.name,
        split=split,
        source="microworld",
        limit=count if spec.kind == "corpus" else None,
    )
    match made:
        case data.Retrieval():
            yield from _questions(made, count)
        case data.LabelledTexts() if spec.kind == "captions":
            for start in range(0, 5 * count, 5):
                yield {source.columns["caption"]: list(made.texts[start : start + 5])}
        case _:
            theirs = {ours: theirs for theirs, ours in source.labels.items()}
            columns: dict[str, Any] = {
                "text": getattr(made, "texts", ()),
                "score": getattr(made, "scores", ()),
            }
            columns |= {
                "sentence1": getattr(made, "texts1", ()),
                "sentence2": getattr(made, "texts2", ()),
            }
            labels = [theirs.get(str(label), str(label)) for label in getattr(made, "labels", ())]
            columns["label"] = [int(label) if label.isdigit() else label for label in labels]
            seen = defaultdict(itertools.count)
            turns = [
                (next(seen[label]), str(label), row) for row, label in enumerate(columns["label"])
            ]
            ordered = [row for *_, row in sorted(turns)][:count]
            if spec.name == "nli":  # A premise has a hypothesis of each kind there
                premises = list(columns["sentence1"])
                for place, row in enumerate(ordered):
                    premises[row] = premises[ordered[place - place % 3]]
                columns["sentence1"] = premises
            for row in ordered if labels else range(min(count, len(made))):
                named = {
                    source.columns.get(field, field): columns[field][row]
                    for field in FIELDS[spec.kind]
                }
                yield BESIDE.get(source.id, {}) | named


def _questions(made: data.Retrieval, count: int) -> Iterator[dict[str, Any]]:
    """HotpotQA's form: ten titled paragraphs a question, two of which support its answer."""
    place = {name: row for row, name in enumerate(made.document_ids)}
    for row, name in enumerate(made.query_ids[:count]):
        gold = [place[document] for document, relevant in made.qrels[name].items() if relevant][:2]
        others = [(row * 7 + step) % len(made.documents) for step in range(10)]
        chosen = list(dict.fromkeys([*gold, *others]))[:10]
        titles = [f"Title {number}" for number in chosen]
        sentences = [
            [f"{part.strip()}." for part in made.documents[n].split(".") if part.strip()]
            for n in chosen
        ]
        support = [f"Title {number}" for number in gold]
        asked = {
            "id": name,
            "question": made.queries[row],
            "answer": (made.answers or made.queries)[row],
        }
        told = {"title": support, "sent_id": [0] * len(support)}
        context = {"title": titles, "sentences": sentences}
        yield {
            **asked,
            "type": "bridge",
            "level": "hard",
            "supporting_facts": told,
            "context": context,
        }


if __name__ == "__main__":
    make_hub(Path(sys.argv[1]))
