"""One table to one set: pairs, labelled texts, labelled pairs, captions or a corpus."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from repro.data.forms import ending
from repro.data.lines import filled_lines, read_lines
from repro.data.rows import number_value, read_header, read_rows, text_value
from repro.data.spec import FIELDS, NOTHING
from repro.sets import Corpus, DataSet, LabelledPairs, LabelledTexts, ScoredPairs
from repro.types import InputError


def infer_kind(path: Path, named: Mapping[str, str] = NOTHING) -> str:
    """What a user's file holds, by its ending and header: pairs, labelled_pairs, texts or corpus.

    Raises:
        InputError: if the header fits none of them.
    """
    if is_plain_text(path):
        return "corpus"
    header = read_header(path, named)
    for kind in ("pairs", "labelled_pairs", "texts"):
        if set(FIELDS[kind]) <= set(header):
            return kind
    if set(header) - {"split"} == {"text"}:
        return "corpus"
    raise InputError(
        f"{path} line 1: the header {', '.join(header)} fits no kind of set; expected score, sentence1, sentence2 "
        "(graded pairs), label, text (labelled texts), label, sentence1, sentence2 (labelled pairs) or text "
        "(a corpus); say by --columns NAME=COLUMN which column is which"
    )


def is_plain_text(path: Path) -> bool:
    """Whether a file is .txt or .txt.gz: one sentence per line, no header."""
    return ending(path) == ".txt"


def file_splits(path: Path, named: Mapping[str, str] = NOTHING) -> tuple[str, ...]:
    """The splits of a file in order of appearance; `all` where it has no split column."""
    if is_plain_text(path) or "split" not in read_header(path, named):
        return ("all",)
    return tuple(dict.fromkeys(row["split"] for _, row in read_rows(path, ("split",), named)))


def read_corpus(path: Path, *, skip_blank: bool = False) -> tuple[str, ...]:
    """The sentences of a plain text file, one per line.

    Raises:
        InputError: for a blank line before the last sentence, unless such lines are skipped.
    """
    return tuple(line for _, line in read_lines(path) if line.strip()) if skip_blank else tuple(filled_lines(path))


def read_table(
    path: Path,
    kind: str,
    name: str,
    split: str,
    *,
    columns: Mapping[str, str] = NOTHING,
    splits: tuple[str, ...] = (),
    text_form: str = "raw",
) -> DataSet:
    """Read one split (`all`: every split) of a table into the set of its kind.

    Args:
        path: The file.
        kind: One of `FIELDS`.
        name: The name the set gets.
        split: The split to read.
        columns: Our column → the file's, where the names differ.
        splits: The only splits that may occur; empty allows any.
        text_form: Recorded in graded pairs.

    Raises:
        InputError: for a malformed row, an unknown split, or a split without rows.
    """
    rows = list(_split_rows(path, FIELDS[kind], split, splits, columns))
    if kind == "captions":
        rows = _without_sts_images(rows)

    def texts(column: str) -> tuple[str, ...]:
        return tuple(text_value(row, column, path, number) for number, row in rows)

    match kind:
        case "pairs":
            scores = [number_value(row, "score", path, number) for number, row in rows]
            subsets = [row.get("subset") or name for _, row in rows]
            sides = texts("sentence1"), texts("sentence2")
            return ScoredPairs(name, "local", split, *sides, np.array(scores), np.array(subsets), text_form)
        case "labelled_pairs":
            sides = texts("sentence1"), texts("sentence2")
            return LabelledPairs(name, "local", split, *sides, np.array(texts("label")))
        case "captions":
            return LabelledTexts(name, "local", split, texts("caption"), np.array(texts("image")))
        case "texts":
            return LabelledTexts(name, "local", split, texts("text"), np.array(texts("label")))
        case _:
            return Corpus(name, "local", texts("text"), split)


def _split_rows(
    path: Path, columns: tuple[str, ...], split: str, splits: tuple[str, ...], named: Mapping[str, str]
) -> Iterator[tuple[int, dict[str, str]]]:
    has_splits = "split" in read_header(path, named)
    if not has_splits and split not in ("all", "test", *splits):
        raise InputError(f"{path} has no split column, so no split {split!r}: ask for 'all', or add the column")
    seen: set[str] = set()
    for number, row in read_rows(path, columns, named):
        if has_splits:
            seen.add(row["split"])
            if splits and row["split"] not in splits:
                raise InputError(
                    f"{path} line {number}, column split: unknown split {row['split']!r}; expected {', '.join(splits)}"
                )
        if not has_splits or split in ("all", row["split"]):
            yield number, row
    if has_splits and split != "all" and split not in seen:
        raise InputError(f"{path} has no split {split!r}: it has {', '.join(sorted(seen)) or 'no rows'}")


def _without_sts_images(rows: list[tuple[int, dict[str, str]]]) -> list[tuple[int, dict[str, str]]]:
    """Drop every caption of an image one of whose captions is an STS test sentence: training on it would leak."""
    leaked = {(row.get("split"), row["image"]) for _, row in rows if row.get("in_sts_eval") == "1"}
    return [(number, row) for number, row in rows if (row.get("split"), row["image"]) not in leaked]
