"""The local source: a folder of benchmark files named by REPRO_DATA."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from repro.data.lines import read_lines
from repro.data.menu import DATASETS, FIELDS, PINNED, DatasetSpec, get_spec, set_of
from repro.data.table import Table
from repro.data.vectors import read_vectors
from repro.paths import data_folder
from repro.sets import Corpus, DataSet, Retrieval, ScoredPairs
from repro.types import InputError, one_of


def load_local(spec: DatasetSpec, split: str, *, text: str = "senteval") -> DataSet:
    """Read one split of a dataset from REPRO_DATA."""
    path = local_path(spec, text)
    match spec.kind:
        case "retrieval":
            return _retrieval(path.parent, spec.file.rpartition("/")[2], spec.name)
        case "vectors":
            return read_vectors(path, name=spec.name)
        case "corpus":
            return Corpus(
                spec.name,
                "local",
                tuple(line for _, line in read_lines(path) if line.strip()),
            )
    table = Table(path, spec.columns, FIELDS[spec.kind])
    for row, found in enumerate(table["split"] if "split" in table.columns else ()):
        if found not in spec.splits:
            raise table.fault(
                row,
                "split",
                f"unknown split {found!r}; expected {', '.join(spec.splits)}",
            )
    if spec.kind == "captions":
        _drop_sts_images(table)
    return split_of(table, spec.kind, spec.name, split, ("all", "test", *spec.splits))


def local_path(spec: DatasetSpec, text: str = "senteval") -> Path:
    """Where the local file of a dataset lies (of retrieval's three files, the queries)."""
    one_of(text, ("senteval", "raw"), "text form")
    name = (spec.raw_file if text == "raw" and spec.raw_file else spec.file).format(part="queries")
    folder = data_folder()
    if folder is not None and (folder / name).is_file():
        return folder / name
    lacking = f"no file {name} in REPRO_DATA={folder}: put it there"
    if folder is None:
        lacking = f"REPRO_DATA is not set: set it to the folder that holds {name}"
    raise InputError(
        f"{spec.name} from local files: {lacking}, or use source='microworld' or source='hub'"
    )


def split_of(table: Table, kind: str, name: str, split: str, whole: tuple[str, ...]) -> DataSet:
    """One split of a table as the set of its kind; one without a split column answers to the names
    in `whole`.
    """
    if "split" in table.columns and split != "all":
        splits = table["split"]
        if split not in splits:
            found = ", ".join(sorted(set(splits))) or "no rows"
            raise InputError(f"{table.path} has no split {split!r}: it has {found}")
        table.rows = [row for row, own in zip(table.rows, splits, strict=True) if own == split]
    elif "split" not in table.columns and split not in whole:
        raise InputError(
            f"{table.path} has no split column, so no split {split!r}: ask for 'all', or add the "
            "column"
        )
    columns: dict[str, Any] = {
        f: (table.numbers if f == "score" else table.texts)(f) for f in FIELDS[kind]
    }
    if "subset" in table.columns:
        columns["subset"] = table["subset"]
    return set_of(kind, name, "local", split, columns)


def _drop_sts_images(table: Table) -> None:
    """Drop every caption of an image one of whose captions is an STS test sentence: training on it
    would leak.
    """
    if "in_sts_eval" in table.columns:
        splits = table["split"] if "split" in table.columns else [""] * len(table.rows)
        images = list(zip(splits, table["image"], strict=True))
        leaked = {
            image for image, own in zip(images, table["in_sts_eval"], strict=True) if own == "1"
        }
        table.rows = [
            row for row, image in zip(table.rows, images, strict=True) if image not in leaked
        ]


def _retrieval(folder: Path, pattern: str, name: str) -> Retrieval:
    """Queries, corpus and qrels from three files; a document is its title and its text, joined by a
    space.
    """
    needed = {
        "queries": ("query_id", "question", "answer"),
        "corpus": ("doc_id", "title", "text"),
        "qrels": ("query_id", "doc_id", "relevance"),
    }
    tables = [
        Table(folder / pattern.format(part=part), needed=names) for part, names in needed.items()
    ]
    queries, corpus, judged = tables
    asked = tuple(queries["query_id"]), queries.texts("question")
    documents = tuple(
        f"{title} {text}" for title, text in zip(corpus["title"], corpus.texts("text"), strict=True)
    )
    return Retrieval(
        name,
        "local",
        *asked,
        tuple(corpus["doc_id"]),
        documents,
        qrels_in(judged),
        queries.texts("answer"),
    )


def qrels_in(judged: Table) -> dict[str, dict[str, int]]:
    """Query id → document id → relevance, from a table of these."""
    qrels: dict[str, dict[str, int]] = {}
    cells = judged["query_id"], judged["doc_id"], judged.numbers("relevance")
    for query, document, relevance in zip(*cells, strict=True):
        if relevance != int(relevance):
            raise InputError(
                f"{judged.path}: the relevance of {document!r} to {query!r} is {relevance:g}: "
                "expected a whole number"
            )
        # Below 0 stands for documents that were judged and are worse than not relevant
        qrels.setdefault(query, {})[document] = max(0, int(relevance))
    return qrels


class CheckRow(NamedTuple):
    """Rows of one split, or of `split:subset`, in a local file, None if it cannot be read; and the
    right counts.

    These are the local file's own and, where that differs, the published one.
    """

    name: str
    split: str
    found: int | None
    expected: tuple[int, ...]
    note: str = ""

    @property
    def ok(self) -> bool:
        """Whether the count is one of the right ones."""
        return self.found in self.expected


def check(name: str | None = None) -> Iterator[CheckRow]:
    """Count the rows of one local dataset, or of all; of a file that cannot be read, the reason is
    the note.
    """
    for spec in [get_spec(name)] if name else DATASETS.values():
        for split, official in spec.sizes.items():
            expected = tuple(dict.fromkeys((spec.local_sizes.get(split, official), official)))
            try:
                data = load_local(spec, split)
            except InputError as error:
                yield CheckRow(spec.name, split, None, expected, str(error))
                continue
            yield CheckRow(
                spec.name,
                split,
                len(data),
                expected,
                spec.note if len(expected) > 1 else "",
            )
            if isinstance(data, ScoredPairs):
                found = Counter(data.subsets.tolist())
                for subset, size in spec.subset_sizes.items():
                    yield CheckRow(spec.name, f"{split}:{subset}", found[subset], (size,))


def describe() -> Iterator[dict[str, str]]:
    """One row per dataset, as strings for a table: what it is, its sizes, and where it can be had
    from.
    """
    for spec in DATASETS.values():
        try:
            local = "yes" if local_path(spec) else ""
        except InputError:
            local = "–"
        pinned = spec.hub is not None and PINNED.fullmatch(spec.hub.revision or "")
        hub = "–" if spec.hub is None else spec.hub.id + ("" if pinned else " (not pinned)")
        sizes = " / ".join(f"{size:,}" for size in spec.sizes.values())
        row = {"name": spec.name, "title": spec.title, "rows": sizes, "licence": spec.licence}
        yield {**row, "local": local, "hub": hub}
