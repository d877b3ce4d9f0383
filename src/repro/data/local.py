"""The menu of datasets, and the local source: a folder of benchmark files named by REPRO_DATA, or a
file of the user's.

What is known about a dataset before it is read stands in `assets/datasets.toml`: one record for
each. A user's table says by its column names what it is: score, sentence1, sentence2 are graded
pairs; label, text are labelled texts; label, sentence1, sentence2 are labelled pairs; any other
table with a column `text` (or any .txt file, one sentence per line) is a corpus. The columns split
and subset are optional, and further ones are not read. A folder with `corpus.jsonl`,
`queries.jsonl` and `qrels`, as BEIR's and many of MTEB's have, is retrieval. A file without a split
column is one split: it answers to `all` and, so that it can stand where a benchmark stands, to
`test`.
"""

import atexit
import os
import re
import shutil
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from repro.data.files import (
    ENDINGS,
    NOTHING,
    OTHER_NAMES,
    Table,
    ending,
    filled_lines,
    read_lines,
    read_vectors,
)
from repro.paths import ASSETS, data_folder
from repro.sets import Corpus, DataSet, LabelledPairs, LabelledTexts, Retrieval, ScoredPairs
from repro.terminal import complain
from repro.types import InputError, one_of

FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "pairs": ("sentence1", "sentence2", "score"),
        "texts": ("text", "label"),
        "labelled_pairs": ("sentence1", "sentence2", "label"),
        "corpus": ("text",),
        "captions": ("caption", "image"),
    }
)
"""The columns that a kind needs, by the names that local files use, in the order in which its set
takes them.
"""


@dataclass(frozen=True)
class HubSource:
    """Where a dataset lies on the Hugging Face hub, and how its columns and labels map to ours."""

    id: str
    splits: Mapping[str, list[str]]  # our split → the hub splits that are concatenated to make it
    config: str | None = None
    revision: str | None = None  # a pinned commit where one is known; None reads the newest
    # Our column → the hub's, where the names differ
    columns: Mapping[str, str] = field(default_factory=dict)
    # The hub's label → ours, where they differ
    labels: Mapping[str, str] = field(default_factory=dict)
    # Of a split, `{part}` for the hub's, where names do not tell the hub which they are
    data_files: str | None = None
    # Our split → another mirror, if this hides it
    elsewhere: Mapping[str, "HubSource"] = field(default_factory=dict)
    # Leave out blank texts: the mirror removed headers and kept the empty remainder
    drop_blank: bool = False
    note: str = ""  # where count or text differ from the local file


@dataclass(frozen=True)
class DatasetSpec:
    """One dataset of the five documents."""

    name: str
    kind: str  # one of `FIELDS`, retrieval or vectors
    title: str
    sizes: Mapping[str, int]  # rows per split as published
    licence: str
    file: str  # local file, relative to REPRO_DATA (SentEval text for STS)
    raw_file: str = ""  # local file of the original text, where there are two forms
    # Our column → the file's, where the names differ
    columns: Mapping[str, str] = field(default_factory=dict)
    # Rows of the local file, where they differ
    local_sizes: Mapping[str, int] = field(default_factory=dict)
    # Rows per subset of the test split
    subset_sizes: Mapping[str, int] = field(default_factory=dict)
    hub: HubSource | None = None
    note: str = ""

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits it comes in, in file order."""
        return tuple(self.sizes)

    @property
    def default_split(self) -> str:
        """The split that `load` reads when none is named: test, else all, else the first."""
        return next((split for split in ("test", "all") if split in self.sizes), self.splits[0])


def _mirror(entry: dict[str, Any]) -> HubSource:
    return HubSource(
        **{
            **entry,
            "elsewhere": {split: _mirror(e) for split, e in entry.get("elsewhere", {}).items()},
        }
    )


DATASETS: dict[str, DatasetSpec] = {}
"""The menu: every dataset that the five documents use."""
for _name, _entry in tomllib.loads((ASSETS / "datasets.toml").read_text(encoding="utf-8")).items():
    _hub = _mirror(_entry.pop("hub")) if "hub" in _entry else None
    DATASETS[_name] = DatasetSpec(name=_name, hub=_hub, **_entry)


def get_spec(name: str) -> DatasetSpec:
    """Look a dataset up by name."""
    return DATASETS[one_of(name, tuple(DATASETS), "dataset")]


def set_of(kind: str, name: str, source: str, split: str, columns: Mapping[str, Any]) -> DataSet:
    """The set that columns by the names of `FIELDS` make."""
    values = [columns[field] for field in FIELDS[kind]]
    if kind == "corpus":
        [texts] = values
        return Corpus(name, source, texts, split)
    if kind == "pairs":
        subsets = [subset or name for subset in columns.get("subset", [""] * len(values[0]))]
        values.append(subsets)
        return ScoredPairs(name, source, split, *values)
    return (LabelledPairs if kind == "labelled_pairs" else LabelledTexts)(
        name,
        source,
        split,
        *values,
    )


# local files

PINNED = re.compile("[0-9a-f]{40}")


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
    return _split_of(table, spec.kind, spec.name, split, ("all", "test", *spec.splits))


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


def load_file(
    given: str | Path,
    split: str | None = None,
    columns: Mapping[str, str] = NOTHING,
) -> DataSet:
    """Read a user's own file; what it is follows from its header.

    Without a split: test, the only one, or all.
    """
    path = _file(given, columns)
    if (path / CORPUS).is_file():
        return _beir(path, split)
    known = ending(path) if ending(path) in (".txt", *ENDINGS) and not path.is_dir() else ""
    name = Path(path.name.removesuffix(".gz")).stem if known else path.name.removesuffix(".gz")
    if known == ".txt":
        if split not in (None, "all", "test", "train"):
            raise InputError(
                f"{path} is plain text without splits, so no split {split!r}: ask for 'all'"
            )
        return Corpus(name, "local", tuple(filled_lines(path)), split or "all")
    table = Table(path, columns)
    kind, splits = _kind_of(table), _splits_of(table)
    if table.titled and "text" in FIELDS[kind]:
        tell_titles(path)
    split = split or ("test" if "test" in splits else splits[0] if len(splits) == 1 else "all")
    return _split_of(table, kind, name, split, ("all", "test"))


def stream_file(given: str | Path, columns: Mapping[str, str] = NOTHING) -> Iterator[str] | None:
    """The rows of a file of lines, or of a corpus in one split, read as they are asked for; None of
    other tables.
    """
    path = _file(given, columns)
    if _is_lines(path):
        return filled_lines(path)
    table = Table(path, columns)
    if _kind_of(table) != "corpus" or "split" in table.columns:
        return None
    if table.titled:
        tell_titles(path)
    return table.stream_texts("text", table.stream())


@lru_cache
def tell_titles(path: Path) -> None:
    """Say, once a file, that titles are read along: the texts of a user's table are not what one
    column holds.
    """
    complain(
        f"{path}: title and text are read as one text, as BEIR does; --columns "
        "text=text leaves titles out"
    )


def file_splits(given: str | Path, columns: Mapping[str, str]) -> tuple[str, ...]:
    """The splits of a file in order of appearance; `all` where it has no split column."""
    path = _file(given, columns)
    if (path / CORPUS).is_file():
        return tuple(_qrels_of(path))
    return ("all",) if _is_lines(path) else _splits_of(Table(path, columns))


def _file(given: str | Path, columns: Mapping[str, str]) -> Path:
    """Its path; `-` is standard input, named by its form: a table that names columns we know, else
    lines of text.

    Raises:
        InputError: for names of columns where there are none to choose from.
    """
    path = _stdin(columns) if str(given) == "-" else Path(os.path.expanduser(given))
    if columns and (_is_lines(path) or (path / CORPUS).is_file()):
        form = "holds lines of text" if _is_lines(path) else "is a folder in BEIR's form"
        raise InputError(f"columns {', '.join(columns)}: {path} {form}; leave --columns out")
    return path


def _is_lines(path: Path) -> bool:
    """Whether a file holds lines of text, not a table."""
    return ending(path) == ".txt" and not path.is_dir()


def _stdin(columns: Mapping[str, str]) -> Path:
    """Standard input as a file that is named by its form."""
    lines = stdin()
    with lines.open("rb") as file:
        start = file.read(4)
    for form in (
        (".parquet",)
        if start == b"PAR1"
        else (".jsonl",)
        if start.startswith(b"{")
        else (".tsv", ".csv")
    ):
        table = lines.with_suffix(form)
        if not table.exists():
            table.symlink_to(lines)
        if form in (".parquet", ".jsonl"):
            return table
        try:
            header = Table(table, columns).columns
        except InputError:
            continue
        if len(header) > 1 and set(header) & set(OTHER_NAMES):
            return table
    return lines


@lru_cache(maxsize=1)
def stdin() -> Path:
    """A file with all of standard input, which is read once; it goes when the program ends."""
    folder = Path(tempfile.mkdtemp(prefix="repro-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with (folder / "stdin.txt").open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return folder / "stdin.txt"


def _kind_of(table: Table) -> str:
    """What a user's table holds: pairs, labelled_pairs, texts or corpus."""
    header = set(table.columns)
    for kind in ("pairs", "labelled_pairs", "texts"):
        if set(FIELDS[kind]) <= header:
            return kind
    if "text" in header:
        return "corpus"
    raise InputError(
        f"{table.path} line 1: the header {', '.join(table.columns)} fits no kind "
        "of set; expected score, sentence1, "
        "sentence2 (graded pairs), label, text (labelled texts), label, "
        "sentence1, sentence2 (labelled pairs) or text "
        "(a corpus), beside any others; say by --columns NAME=COLUMN which column is which"
    )


def _splits_of(table: Table) -> tuple[str, ...]:
    return tuple(dict.fromkeys(table["split"])) if "split" in table.columns else ("all",)


def _split_of(table: Table, kind: str, name: str, split: str, whole: tuple[str, ...]) -> DataSet:
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
            f"{table.path} has no split column, so no split {split!r}: ask for 'all', "
            "or add the column"
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
        _qrels(judged),
        queries.texts("answer"),
    )


def _qrels(judged: Table) -> dict[str, dict[str, int]]:
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


CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels"
"""What a folder in BEIR's form holds: two tables, and a folder with a table for each split."""
JUDGED = {"query_id": "query-id", "doc_id": "corpus-id", "relevance": "score"}
"""Our columns of these tables → BEIR's."""


def _beir(folder: Path, split: str | None) -> Retrieval:
    """The queries that one split of a folder in BEIR's form judges, and all of its documents."""
    qrels_of = _qrels_of(folder)
    split = split or ("test" if "test" in qrels_of else next(iter(qrels_of)))
    if split not in qrels_of:
        raise InputError(f"{folder} has no split {split!r}: it has {', '.join(qrels_of)}")
    judged = Table(qrels_of[split], JUDGED, tuple(JUDGED))
    qrels = _qrels(judged)
    corpus, queries = (Table(folder / name, needed=("_id", "text")) for name in (CORPUS, QUERIES))
    texts = dict(zip(queries["_id"], queries.texts("text"), strict=True))
    if unknown := sorted(qrels.keys() - texts.keys()):
        raise InputError(
            f"{judged.path} judges {unknown[0]!r}, which is no _id of {folder / QUERIES}"
        )
    return Retrieval(
        folder.resolve().name,
        "local",
        tuple(qrels),
        tuple(texts[query] for query in qrels),
        tuple(corpus["_id"]),
        corpus.texts("text"),
        qrels,
        split=split,
    )


def _qrels_of(folder: Path) -> dict[str, Path]:
    """The tables of a folder in BEIR's form that say what is relevant, by split."""
    tables = sorted((folder / QRELS).glob("*.tsv"))
    if not tables:
        raise InputError(f"{folder / QRELS} has no .tsv file: expected one a split, as BEIR has")
    return {table.stem: table for table in tables}


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
