"""The local source: a folder of benchmark files named by REPRO_DATA, or any file of the user's own.

A user's table says by its column names what it is: score, sentence1, sentence2 are graded pairs; label, text are
labelled texts; label, sentence1, sentence2 are labelled pairs; a single column `text` (or any .txt file, one
sentence per line) is a corpus. The columns split and subset are optional. A file without a split column is one
split: it answers to `all` and, so that it can stand where a benchmark stands, to `test`.
"""

import atexit
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from repro.data.lines import filled_lines, read_lines
from repro.data.spec import FIELDS, NOTHING, DatasetSpec, set_of
from repro.data.tables import ENDINGS, OTHER_NAMES, Table, ending
from repro.data.vectors import read_vectors
from repro.paths import data_folder
from repro.sets import Corpus, DataSet, Retrieval
from repro.types import InputError, one_of

TEXT_FORMS = ("senteval", "raw")


def load_local(spec: DatasetSpec, split: str, *, text: str = "senteval") -> DataSet:
    """Read one split of a dataset from REPRO_DATA.

    Raises:
        InputError: if REPRO_DATA is unset, the file is missing or malformed, or the split has no rows.
    """
    path = local_path(spec, text)
    match spec.kind:
        case "retrieval":
            return _retrieval(path.parent, spec.file.rpartition("/")[2], spec.name)
        case "vectors":
            return read_vectors(path, name=spec.name)
        case "corpus":
            return Corpus(spec.name, "local", tuple(line for _, line in read_lines(path) if line.strip()))
    table = Table(path, spec.columns, FIELDS[spec.kind])
    if "split" in table.columns:
        for (number, _), found in zip(table.rows, table["split"], strict=True):
            if found not in spec.splits:
                where = f"{path} line {number}, column split"
                raise InputError(f"{where}: unknown split {found!r}; expected {', '.join(spec.splits)}")
    if spec.kind == "captions":
        _drop_sts_images(table)
    form = text if spec.raw_file else "raw"
    return _split_of(table, spec.kind, spec.name, split, ("all", "test", *spec.splits), form)


def local_path(spec: DatasetSpec, text: str = "senteval") -> Path:
    """Where the local file of a dataset lies (of retrieval's three files, the queries).

    Raises:
        InputError: if REPRO_DATA is unset, the file is not there, or the text form is unknown.
    """
    one_of(text, TEXT_FORMS, "text form")
    name = (spec.raw_file if text == "raw" and spec.raw_file else spec.file).format(part="queries")
    folder = data_folder()
    if folder is None:
        raise InputError(
            f"{spec.name} was asked for from local files but REPRO_DATA is not set: set it to the folder that holds "
            f"{name}, or use source='microworld' or source='hub'"
        )
    if not (folder / name).is_file():
        raise InputError(
            f"{spec.name}: no file {name} in REPRO_DATA={folder}: put it there, or use source='microworld' "
            "or source='hub'"
        )
    return folder / name


def load_file(path: Path, split: str | None = None, columns: Mapping[str, str] = NOTHING) -> DataSet:
    """Read a user's own file; what it is follows from its header (see the module's first lines).

    Args:
        path: The file.
        split: The split to read; None takes test, the only one, or all.
        columns: Our column → the file's, where it goes by a name of its own.

    Raises:
        InputError: if the file is missing or malformed, the header fits no kind, or the split has no rows.
    """
    name = path.name.removesuffix(".gz")
    if ending(path) in (".txt", *ENDINGS):
        name = name[: -len(ending(path))]
    if ending(path) == ".txt":
        if split not in (None, "all", "test", "train"):
            raise InputError(f"{path} is plain text without splits, so no split {split!r}: ask for 'all'")
        return Corpus(name, "local", tuple(filled_lines(path)), split or "all")
    table = Table(path, columns)
    kind = _kind_of(table)
    splits = _splits_of(table)
    split = split or ("test" if "test" in splits else splits[0] if len(splits) == 1 else "all")
    return _split_of(table, kind, name, split, ("all", "test"))


def file_splits(path: Path, columns: Mapping[str, str] = NOTHING) -> tuple[str, ...]:
    """The splits of a file in order of appearance; `all` where it has no split column."""
    return ("all",) if ending(path) == ".txt" else _splits_of(Table(path, columns))


def piped(columns: Mapping[str, str] = NOTHING) -> Path:
    """A file that holds standard input, named by its form: a table that names columns we know, else lines of text.

    Args:
        columns: Our column → the table's, where it goes by a name of its own.
    """
    content = stdin()
    if content.startswith((b"PAR1", b"{")):
        return piped_file("stdin.parquet" if content.startswith(b"PAR1") else "stdin.jsonl")
    for name in ("stdin.tsv", "stdin.csv"):
        try:
            header = Table(piped_file(name), columns).columns
        except InputError:
            continue
        if len(header) > 1 and set(header) & set(OTHER_NAMES):
            return piped_file(name)
    return piped_file("stdin.txt")


@lru_cache(maxsize=1)
def stdin() -> bytes:
    """Standard input, read once."""
    return sys.stdin.buffer.read()


@lru_cache(maxsize=8)
def piped_file(name: str) -> Path:
    """A file of this name with what was piped in, which goes when the program ends."""
    folder = Path(tempfile.mkdtemp(prefix="repro-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / name).write_bytes(stdin())
    return folder / name


def _kind_of(table: Table) -> str:
    """What a user's table holds: pairs, labelled_pairs, texts or corpus."""
    header = set(table.columns)
    for kind in ("pairs", "labelled_pairs", "texts"):
        if set(FIELDS[kind]) <= header:
            return kind
    if header - {"split"} == {"text"}:
        return "corpus"
    raise InputError(
        f"{table.path} line 1: the header {', '.join(table.columns)} fits no kind of set; expected score, sentence1, "
        "sentence2 (graded pairs), label, text (labelled texts), label, sentence1, sentence2 (labelled pairs) or text "
        "(a corpus); say by --columns NAME=COLUMN which column is which"
    )


def _splits_of(table: Table) -> tuple[str, ...]:
    return tuple(dict.fromkeys(table["split"])) if "split" in table.columns else ("all",)


def _split_of(
    table: Table, kind: str, name: str, split: str, whole: tuple[str, ...], text_form: str = "raw"
) -> DataSet:
    """One split of a table as the set of its kind; one without a split column answers to the names in `whole`."""
    if "split" in table.columns and split != "all":
        splits = table["split"]
        if split not in splits:
            found = ", ".join(sorted(set(splits))) or "no rows"
            raise InputError(f"{table.path} has no split {split!r}: it has {found}")
        table.rows = [row for row, own in zip(table.rows, splits, strict=True) if own == split]
    elif "split" not in table.columns and split not in whole:
        raise InputError(f"{table.path} has no split column, so no split {split!r}: ask for 'all', or add the column")
    columns: dict[str, Sequence[Any]] = {
        field: table.numbers(field) if field == "score" else table.texts(field) for field in FIELDS[kind]
    }
    if "subset" in table.columns:
        columns["subset"] = table["subset"]
    return set_of(kind, name, "local", split, columns, text_form)


def _drop_sts_images(table: Table) -> None:
    """Drop every caption of an image one of whose captions is an STS test sentence: training on it would leak."""
    if "in_sts_eval" in table.columns:
        splits = table["split"] if "split" in table.columns else [""] * len(table.rows)
        images = list(zip(splits, table["image"], strict=True))
        leaked = {image for image, own in zip(images, table["in_sts_eval"], strict=True) if own == "1"}
        table.rows = [row for row, image in zip(table.rows, images, strict=True) if image not in leaked]


def _retrieval(folder: Path, pattern: str, name: str) -> Retrieval:
    """Queries, corpus and qrels from three files; a document is its title and its text, joined by a space."""
    paths = {part: folder / pattern.format(part=part) for part in ("queries", "corpus", "qrels")}
    queries = Table(paths["queries"], needed=("query_id", "question", "answer"))
    corpus = Table(paths["corpus"], needed=("doc_id", "title", "text"))
    judged = Table(paths["qrels"], needed=("query_id", "doc_id", "relevance"))
    qrels: dict[str, dict[str, int]] = {}
    for query, document, relevance in zip(
        judged["query_id"], judged["doc_id"], judged.numbers("relevance"), strict=True
    ):
        qrels.setdefault(query, {})[document] = int(relevance)
    documents = tuple(f"{title} {text}" for title, text in zip(corpus["title"], corpus.texts("text"), strict=True))
    ids = tuple(queries["query_id"]), tuple(corpus["doc_id"])
    return Retrieval(
        name, "local", ids[0], queries.texts("question"), ids[1], documents, qrels, queries.texts("answer")
    )
