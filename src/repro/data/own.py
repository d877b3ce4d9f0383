"""A user's own file or folder of texts, or standard input, as a set.

A table says by its column names what it is: score, sentence1, sentence2 are graded pairs; label,
text are labelled texts; label, sentence1, sentence2 are labelled pairs; any other table with a
column `text` (or any .txt file, one sentence per line) is a corpus. The columns split and subset
are optional, and further ones are not read. A folder with `corpus.jsonl`, `queries.jsonl` and
`qrels`, as BEIR's and many of MTEB's have, is retrieval. A file without a split column is one
split: it answers to `all` and, so that it can stand where a benchmark stands, to `test`.
"""

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from repro.data.forms import ENDINGS, ending
from repro.data.lines import filled_lines
from repro.data.local import qrels_in, split_of
from repro.data.menu import FIELDS
from repro.data.table import NOTHING, OTHER_NAMES, Table
from repro.sets import Corpus, DataSet, Retrieval
from repro.terminal import complain
from repro.types import InputError


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
    return split_of(table, kind, name, split, ("all", "test"))


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
        f"{path}: title and text are read as one text, as BEIR does; --columns text=text leaves "
        "titles out"
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
        f"{table.path} line 1: the header {', '.join(table.columns)} fits no kind of set; expected "
        "score, sentence1, sentence2 (graded pairs), label, text (labelled texts), label, "
        "sentence1, sentence2 (labelled pairs) or text (a corpus), beside any others; say by "
        "--columns NAME=COLUMN which column is which"
    )


def _splits_of(table: Table) -> tuple[str, ...]:
    return tuple(dict.fromkeys(table["split"])) if "split" in table.columns else ("all",)


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
    qrels = qrels_in(judged)
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
