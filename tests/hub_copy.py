"""A toy copy of every hub repository in use, in the hub's own form: ids, configurations, splits,
columns, labels.

`python tests/hub_copy.py FOLDER` writes it; with `REPRO_HUB=FOLDER`, source='hub' then works
without a network, in every process that inherits the variable. What the rows say is generated,
every class occurs in every split.
"""

import io
import itertools
import sys
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from repro import data
from repro.data.hub import hub_source, hub_splits
from repro.data.menu import FIELDS, DatasetSpec, HubSource
from repro.data.senteval import ARCHIVE

ROWS = {"wiki": 1200, "nli": 1200, "flickr30k": 240}
"""Rows in each hub split; 120 of the other sets."""
BESIDE = {
    "SetFit/20_newsgroups": {"label": 0},
}
"""Columns that the hub has and we do not read."""


def make_hub(folder: Path) -> Path:
    """Write the copies; the folder is returned."""
    configs: dict[Path, dict[str, list[str]]] = {}
    archived: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for spec in data.DATASETS.values():
        for split in hub_splits(spec) if spec.hub else ():
            source = hub_source(spec, split)
            if source.data_files == ARCHIVE:
                rows = archived.setdefault(spec.name, {})
                rows[split] = list(_rows(spec, source, split, ROWS.get(spec.name, 120)))
                archive = folder / source.id / ARCHIVE
                continue
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
    _write_archive(archive, archived)
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
    if path.is_file():  # Two of our datasets are columns of one repository
        rows = [old | new for old, new in zip(pq.read_table(path).to_pylist(), rows, strict=True)]
    pq.write_table(pa.Table.from_pylist(rows), path)


def _write_archive(path: Path, rows: dict[str, dict[str, list[dict[str, Any]]]]) -> None:
    """SentEval's files in a tar, as SimCSE's authors publish them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as archive:
        for name, text in _senteval_files(rows):
            content = f"{text}\n".encode("latin-1")
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def _senteval_files(
    rows: dict[str, dict[str, list[dict[str, Any]]]],
) -> Iterator[tuple[str, str]]:
    def pair(row: dict[str, Any]) -> str:
        return f"{row['sentence1']}\t{row['sentence2']}"

    for year in ("sts12", "sts13", "sts14", "sts15", "sts16"):
        parts = list(data.DATASETS[year].subset_sizes)
        for place, part in enumerate(parts):
            of_part = rows[year]["test"][place :: len(parts)]
            folder = f"STS/{year.upper()}-en-test"
            # The first pair of each part nobody judged
            inputs = ["a pair\tnobody judged", *map(pair, of_part)]
            golds = ["", *(f"{row['score']}" for row in of_part)]
            yield f"{folder}/STS.input.{part}.txt", "\n".join(inputs)
            yield f"{folder}/STS.gs.{part}.txt", "\n".join(golds)
    for split, made in rows["stsb"].items():
        told = [f"main\tfile\t2012\t7\t{row['score']}\t{pair(row)}" for row in made]
        yield f"STS/STSBenchmark/sts-{split}.csv", "\n".join(told)
    for split, part in {"train": "train", "dev": "trial", "test": "test_annotated"}.items():
        told = ["pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"]
        for scored, judged in zip(rows["sickr"][split], rows["sicke"][split], strict=True):
            told.append(f"7\t{pair(judged)}\t{scored['score']}\t{judged['label']}")
        yield f"SICK/SICK_{part}.txt", "\n".join(told)
    files = {"mr": "MR/rt-polarity", "cr": "CR/custrev", "mpqa": "MPQA/mpqa", "subj": "SUBJ/subj"}
    for name, stem in files.items():
        by_label: dict[str, list[str]] = defaultdict(list)
        for row in rows[name]["all"]:
            by_label[row["label"]].append(row["text"])
        for label, texts in by_label.items():
            ending = {"positive": "pos", "negative": "neg"}.get(label, label)
            yield f"{stem}.{ending}", "\n".join([*texts, " "])  # As CR and MPQA, with a blank line
    for split, made in rows["sst2"].items():
        told = [f"{row['text']}\t{row['label']}" for row in made]
        yield f"SST/binary/sentiment-{split}", "\n".join(told)
    for split, part in {"train": "train_5500", "test": "TREC_10"}.items():
        told = [f"{row['label']}:other {row['text']}" for row in rows["trec"][split]]
        yield f"TREC/{part}.label", "\n".join(told)
    for split, made in rows["mrpc"].items():
        told = ["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"]
        told += [f"{row['label']}\t1\t2\t{pair(row)}" for row in made]
        yield f"MRPC/msr_paraphrase_{split}.txt", "\n".join(told)


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
