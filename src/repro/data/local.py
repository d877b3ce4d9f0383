"""The local source: a folder of benchmark files named by REPRO_DATA, or any file of the user's own.

A user's table says by its column names what it is: score, sentence1, sentence2 are graded pairs; label, text are
labelled texts; label, sentence1, sentence2 are labelled pairs; a single column `text` (or any .txt file, one
sentence per line) is a corpus. The columns split and subset are optional. A file without a split column is one
split: it answers to `all` and, so that it can stand where a benchmark stands, to `test`.
"""

from collections.abc import Mapping
from pathlib import Path

from repro.data.forms import ENDINGS, ending
from repro.data.rows import number_value, read_rows, text_value
from repro.data.spec import NOTHING, DatasetSpec
from repro.data.tables import file_splits, infer_kind, is_plain_text, read_corpus, read_table
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
            return read_retrieval(path.parent, spec.file.rpartition("/")[2], name=spec.name)
        case "vectors":
            return read_vectors(path, name=spec.name)
        case "corpus":
            return Corpus(spec.name, "local", read_corpus(path, skip_blank=True))
    form = text if spec.raw_file else "raw"
    return read_table(path, spec.kind, spec.name, split, columns=spec.columns, splits=spec.splits, text_form=form)


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
    kind = infer_kind(path, columns)
    splits = file_splits(path, columns)
    split = split or ("test" if "test" in splits else splits[0] if len(splits) == 1 else "all")
    if is_plain_text(path):
        if split not in ("all", "test", "train"):
            raise InputError(f"{path} is plain text without splits, so no split {split!r}: ask for 'all'")
        return Corpus(name, "local", read_corpus(path), split)
    return read_table(path, kind, name, split, columns=columns)


def read_retrieval(folder: Path, pattern: str, *, name: str = "retrieval") -> Retrieval:
    """Queries, corpus and qrels from three files; a document is its title and its text, joined by a space.

    Args:
        folder: Where the files lie.
        pattern: Their name with `{part}` for queries, corpus and qrels.
        name: The name the set gets.

    Raises:
        InputError: if a file is missing or malformed, or qrels name an unknown query or document.
    """
    paths = {part: folder / pattern.format(part=part) for part in ("queries", "corpus", "qrels")}
    queries = list(read_rows(paths["queries"], ("query_id", "question", "answer")))
    documents = list(read_rows(paths["corpus"], ("doc_id", "title", "text")))
    qrels: dict[str, dict[str, int]] = {}
    for number, row in read_rows(paths["qrels"], ("query_id", "doc_id", "relevance")):
        relevance = int(number_value(row, "relevance", paths["qrels"], number))
        qrels.setdefault(row["query_id"], {})[row["doc_id"]] = relevance
    return Retrieval(
        name,
        "local",
        tuple(row["query_id"] for _, row in queries),
        tuple(text_value(row, "question", paths["queries"], number) for number, row in queries),
        tuple(row["doc_id"] for _, row in documents),
        tuple(f"{row['title']} {text_value(row, 'text', paths['corpus'], number)}" for number, row in documents),
        qrels,
        tuple(text_value(row, "answer", paths["queries"], number) for number, row in queries),
    )
