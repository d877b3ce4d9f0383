"""Files of the user's own in the forms people have; what each test refuses or reads was once read otherwise."""

import gzip
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dimadvise.inputs import from_matrix
from repro.data import Corpus, LabelledPairs, LabelledTexts, ScoredPairs, column_names, load, load_splits
from repro.data.lines import LONGEST
from repro.data.local import piped_file, stdin
from repro.types import InputError

ROWS = [("test", 4.5, 'a "bare" quote, and a comma', "b"), ("train", 1, "c\td", "é")]


def frame(tmp_path, name, rows, header):
    """Write a table in the form that its name says."""
    path = tmp_path / name
    if name.endswith("parquet"):
        pq.write_table(pa.table({column: [row[i] for row in rows] for i, column in enumerate(header)}), path)
    elif "json" in name:
        path.write_text("".join(json.dumps(dict(zip(header, row, strict=True))) + "\n" for row in rows))
    else:
        import csv

        with path.open("w", newline="", encoding="utf-8-sig") as file:
            csv.writer(file, delimiter=";" if "semicolon" in name else ",").writerows([header, *rows])
    return path


@pytest.fixture
def pipe(monkeypatch):
    """Put bytes on standard input."""

    def put(content):
        stdin.cache_clear(), piped_file.cache_clear()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))

    yield put
    stdin.cache_clear(), piped_file.cache_clear()


@pytest.mark.parametrize("name", ["a.csv", "semicolon.csv", "a.jsonl", "a.ndjson", "a.json", "a.parquet"])
@pytest.mark.parametrize(
    "header",
    [
        ("split", "score", "sentence1", "sentence2"),
        ("Split", "Score", "Sentence1", "Sentence 2"),
        ("split", "similarity_score", "text_a", "text_b"),
    ],
)
def test_tables_are_read_in_every_form_and_case(tmp_path, name, header):
    path = frame(tmp_path, name, ROWS, header)
    data = load(path, split="all")
    assert isinstance(data, ScoredPairs) and data.name == path.stem and data.scores.tolist() == [4.5, 1]
    assert data.texts1 == (ROWS[0][2], ROWS[1][2]) and data.texts2 == ("b", "é")
    assert {split: len(part) for split, part in load_splits(path).items()} == {"test": 1, "train": 1}


def test_columns_of_any_name_can_be_named(tmp_path):
    path = frame(tmp_path, "a.csv", [(3, "x", "y", "z")], ("Rating", "Left", "Right", "text"))
    named = column_names(["score=Rating", "sentence1=Left", "sentence2=Right"])
    data = load(path, columns=named)
    assert isinstance(data, ScoredPairs) and (data.texts1, data.texts2) == (("x",), ("y",))
    both = frame(tmp_path, "b.csv", [("no", "yes", "good")], ("label", "verdict", "text"))
    assert load(both).labels.tolist() == ["no"]
    assert load(both, columns=column_names(["label=verdict"])).labels.tolist() == ["yes"]
    assert isinstance(
        load(frame(tmp_path, "c.csv", [("x", "y", 1)], ("premise", "hypothesis", "label"))), LabelledPairs
    )
    with pytest.raises(InputError, match=r"fits no kind of set.*--columns NAME=COLUMN"):
        load(path, columns={})
    with pytest.raises(InputError, match="no column 'Grade' for score: it has Rating, Left, Right, text"):
        load(path, columns={"score": "Grade"})
    for wrong in ("Rating", "=x", "score=", "grade=Rating"):
        with pytest.raises(InputError, match="expected NAME=COLUMN, COLUMN as in the file and NAME one of sentence1"):
            column_names([wrong])
    with pytest.raises(InputError, match="stsb is a dataset, so leave them out"):
        load("stsb", source="microworld", columns={"score": "Rating"})


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", 'score,sentence1,sentence2\n1,a,b\n2,"c', "line 3: unexpected end of data; expected CSV"),
        ("a.csv", 'score,sentence1,sentence2\n1,"a\n",b\nhigh,c,d', "line 4, column score: 'high' is not a finite"),
        ("a.csv", "score,sentence1,sentence2\n1,a", "line 2: 2 columns, expected 3"),
        ("a.csv", "score,sentence1,sentence2\n1,,b", "line 2, column sentence1: empty"),
        ("a.csv", "\n\n", "is empty"),
        ("a.jsonl", '{"text": "a"}\n{"text": ', "line 2 is not JSON"),
        ("a.jsonl", '{"text": "a"}\n["b"]', "line 2 is '.\"b\".': expected one JSON object"),
        ("a.jsonl", '{"text": "a"}\n{"Text": "b"}', "line 2: no 'text', which the first line has"),
        ("a.jsonl", '{"text": "a"}\n{"text": ["b"]}', "line 2, column text: empty"),
        ("a.jsonl", '{"text": "a"}\n{"text": null}', "line 2, column text: empty"),
        ("a.parquet", "PAR1 and no more", "no parquet file that can be read"),
    ],
)
def test_a_fault_in_any_form_is_named_by_its_line(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        load(path)


def test_a_byte_order_mark_is_no_part_of_the_first_text_or_label(tmp_path):
    texts, labels = tmp_path / "t.txt", tmp_path / "l.txt"
    texts.write_text("one\ntwo\n", encoding="utf-8-sig")
    labels.write_text("A\n" * 40, encoding="utf-8-sig")
    assert load(texts).texts == ("one", "two")
    assert set(from_matrix(np.eye(40), labels=labels).evidence.labels) == {"A"}


def test_a_blank_line_among_texts_or_labels_is_refused_for_rows_would_shift(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("one\n\n  \ntwo\n")
    for read in (load, lambda path: from_matrix(np.eye(2), labels=path)):
        with pytest.raises(InputError, match=r"t.txt line 2 is blank: .* line i is row i.*grep"):
            read(path)
    path.write_text("one\ntwo\n\n\n")  # blank lines at the end shift nothing
    assert load(path).texts == ("one", "two")


def test_one_endless_line_in_a_small_gz_is_refused_at_once(tmp_path):
    path = tmp_path / "bomb.txt.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(2 * LONGEST >> 20):
            file.write(b"x" * 2**20)
    with pytest.raises(InputError, match="line 1 is longer than 16 MiB"):
        load(path)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"one text, with a comma\nanother\n", Corpus),
        (b"score\tsentence1\tsentence2\n1\ta\tb\n", ScoredPairs),
        (b"Label,Text\n1,a\n", LabelledTexts),
        (b'{"label": 1, "text": "a"}\n', LabelledTexts),
    ],
)
def test_a_pipe_is_read_as_what_it_holds(pipe, content, kind):
    pipe(content)
    data = load("-")
    assert isinstance(data, kind) and data.name == "stdin"


def test_labels_and_judgements_come_from_tables_of_any_form(tmp_path):
    labels = frame(tmp_path, "l.csv", [(row, "A, B") for row in range(40)], ("id", "Label"))
    assert from_matrix(np.eye(40), labels=labels).evidence.labels.tolist() == ["A, B"] * 40
    pairs = frame(tmp_path, "p.jsonl", [(row, 39 - row, row) for row in range(40)], ("row1", "row2", "Rating"))
    evidence = from_matrix(np.eye(40), pairs=pairs, columns={"score": "Rating"}).evidence
    assert evidence.grades.tolist() == list(range(40)) == evidence.first.tolist()


def test_the_commands_take_pipes_and_columns_of_any_name(repro, tiny, pipe, sentences, tmp_path):
    pipe("\n".join(sentences[:3]).encode())
    code, _, errors = repro("encode", "--encoder", tiny, "--texts", "-", "--output", tmp_path / "X.npy")
    assert code == 0, errors
    assert len(np.load(tmp_path / "X.npy")) == 3
    rows = [(5 * (i % 2), sentences[i], sentences[i + 1 - i % 2]) for i in range(40)]
    path = frame(tmp_path, "p.csv", rows, ("Rating", "Left", "Right"))
    named = ("--columns", "score=Rating", "sentence1=Left", "sentence2=Right")
    code, said, errors = repro("evaluate", "--encoder", tiny, "--data", path, *named)
    assert code == 0 and "spearman" in said, errors
    code, said, errors = repro("evaluate", "--encoder", tiny, "--data", path)
    assert code == 2 and "--columns NAME=COLUMN" in errors
    code, said, errors = repro(
        "advise", "--encoder", tiny, "--texts", path, *named, "--dims", 8, "--output", tmp_path / "advice"
    )
    assert code == 0 and "spearman at full size" in said, errors
