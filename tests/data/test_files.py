"""Files in the forms people have, the menu of datasets, and the sets that they become: checked and
in a fixed order.
"""

import gzip
import io
import shutil
from unittest.mock import Mock

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from microworld import SIZES
from repro.data import (
    DATASETS,
    check,
    column_names,
    default_source,
    describe,
    get_spec,
    load,
    load_splits,
    stream,
)
from repro.data.hub import fetch
from repro.data.lines import LONGEST
from repro.data.own import stdin
from repro.data.samples import fingerprint
from repro.sets import (
    Corpus,
    LabelledPairs,
    LabelledTexts,
    Retrieval,
    ScoredPairs,
    WordVectors,
    texts_of,
)
from repro.types import InputError

PAIRS = "score\tsentence1\tsentence2"
ROWS = [("test", 4.5, 'a "bare" quote, and a comma', "b"), ("train", 1, "c\td", "é")]


def frame(tmp_path, name, rows, header):
    """Write a table in the form that its name says."""
    path, table = tmp_path / name, pd.DataFrame(rows, columns=header)
    if name.endswith("parquet"):
        table.to_parquet(path)
    elif "json" in name:
        table.to_json(path, orient="records", lines=True)
    else:
        form = {
            "sep": ";" if "semicolon" in name else ",",
            "lineterminator": "\r\n",
            "encoding": "utf-8-sig",
        }
        table.to_csv(path, index=False, **form)
    return path


@pytest.fixture
def pipe(monkeypatch):
    """Put bytes on standard input."""

    def put(content):
        stdin.cache_clear()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))

    yield put
    stdin.cache_clear()


@pytest.mark.parametrize(
    "name",
    ["a.csv", "semicolon.csv", "a.jsonl", "a.ndjson", "a.json", "a.parquet"],
)
@pytest.mark.parametrize(
    "columns",
    ["split score sentence1 sentence2", "Split similarity_score Sentence-1 text_b"],
)
def test_tables_are_read_in_every_form_and_case(tmp_path, name, columns):
    path = frame(tmp_path, name, ROWS, columns.split())
    data = load(path, split="all")
    assert (
        isinstance(data, ScoredPairs)
        and data.name == path.stem
        and data.scores.tolist() == [4.5, 1]
    )
    assert data.texts1 == (ROWS[0][2], ROWS[1][2]) and data.texts2 == ("b", "é")
    assert {split: len(part) for split, part in load_splits(path).items()} == {
        "test": 1,
        "train": 1,
    }


def test_columns_of_any_name_can_be_named(tmp_path):
    path = frame(tmp_path, "a.csv", [(3, "x", "y", "z")], ("Rating", "Left", "Right", "text"))
    named = column_names(["score=Rating", "sentence1=Left", "sentence2=Right"])
    data = load(path, columns=named)
    assert isinstance(data, ScoredPairs) and (data.texts1, data.texts2) == (("x",), ("y",))
    both = frame(tmp_path, "b.csv", [("no", "yes", "good")], ("label", "verdict", "text"))
    assert load(both).labels.tolist() == ["no"]
    assert load(both, columns=column_names(["label=verdict"])).labels.tolist() == ["yes"]
    other = frame(tmp_path, "c.csv", [(3, "x", "y")], ("Rating", "Left", "Right"))
    with pytest.raises(InputError, match=r"fits no kind of set.*--columns NAME=COLUMN"):
        load(other)
    with pytest.raises(
        InputError,
        match="no column 'Grade' for score: it has Rating, Left, Right, text",
    ):
        load(path, columns={"score": "Grade"})
    for wrong in ("score=", "grade=Rating"):
        with pytest.raises(
            InputError,
            match="expected NAME=COLUMN, COLUMN as in the file and NAME one of sentence1",
        ):
            column_names([wrong])


@pytest.mark.parametrize("name", ["a.csv", "semicolon.csv", "a.jsonl", "a.parquet"])
def test_texts_are_read_beside_any_other_columns(tmp_path, name):
    path = frame(
        tmp_path,
        name,
        [(7, "one", 2.5, "other"), (8, "two", 1, "body")],
        ("id", "Text", "score", "Body"),
    )
    data = load(path)
    assert isinstance(data, Corpus) and data.texts == ("one", "two")
    assert list(stream(path)()) == ["one", "two"]
    named = column_names(["text=Body"])
    assert load(path, columns=named).texts == tuple(stream(path, named)()) == ("other", "body")
    apart = frame(
        tmp_path,
        f"apart-{name}",
        [("dev", "one", 1), ("test", "two", 2)],
        ("split", "text", "id"),
    )
    assert load(apart).texts == tuple(stream(apart)()) == ("two",) and load(
        apart,
        split="dev",
    ).texts == ("one",)


def test_a_document_of_beir_is_its_title_and_its_text_and_that_is_said_once(write, capsys):
    rows = [
        '{"_id": "d0", "title": "Bell", "text": "He was.", "metadata": {}}',
        '{"_id": "d1", "text": "It was."}',
    ]
    rows += ['{"_id": "d2", "title": "Only this", "text": "", "metadata": {"url": null}}']
    corpus = write("corpus.jsonl", *rows)
    documents = ("Bell He was.", "It was.", "Only this")
    assert load(corpus).texts == tuple(stream(corpus)()) == documents
    told = capsys.readouterr().err
    assert told.count("title and text are read as one text, as BEIR does") == 1
    alone = write("alone.jsonl", *rows[:2])
    assert load(alone, columns={"text": "text"}).texts == ("He was.", "It was.")
    plain = write("plain.jsonl", '{"id": 1, "title": "Bell", "text": "He was."}')
    assert load(plain).texts == ("He was.",) and not capsys.readouterr().err, "no file of BEIR's"


def test_columns_of_sick_are_known(tmp_path):
    header = ("pair_ID", "sent_A", "sent_B", "relatedness_score", "entailment_judgment")
    data = load(frame(tmp_path, "sick.csv", [(1, "a", "b", 4.5, "NEUTRAL")], header))
    assert isinstance(data, ScoredPairs) and (data.texts1, data.texts2) == (("a",), ("b",))


@pytest.fixture
def saved(tmp_path):
    """Write folders as `save_to_disk` does: a set in two files, and one with two splits."""
    rows = datasets.Dataset.from_dict(
        {"id": [1, 2, 3], "text": ["a", "b", "c"], "vector": [[0.5], [1.0], [2.0]]}
    )
    rows.select([2, 0, 1]).save_to_disk(tmp_path / "rows", num_shards=2)
    parts = {"train": {"label": [0, 1], "text": ["a", "b"]}, "test": {"label": [1], "text": ["c"]}}
    splits = {name: datasets.Dataset.from_dict(columns) for name, columns in parts.items()}
    datasets.DatasetDict(splits).save_to_disk(tmp_path / "splits")
    return tmp_path


def test_a_folder_that_datasets_saved_is_read_by_its_path_or_its_name(saved, monkeypatch):
    monkeypatch.chdir(saved)
    assert (
        load("rows").texts
        == load(saved / "rows").texts
        == tuple(stream("rows")())
        == ("c", "a", "b")
    )
    data = load("./splits")
    assert isinstance(data, LabelledTexts) and (data.texts, data.labels.tolist()) == (("c",), ["1"])
    assert {split: part.texts for split, part in load_splits("splits").items()} == {
        "train": ("a", "b"),
        "test": ("c",),
    }
    first = fingerprint("rows", "local")
    assert fingerprint("rows", "local") == first != fingerprint("splits", "local")
    with pytest.raises(InputError, match="no column 'grade' for score: it has split, label, text"):
        load("splits", columns={"score": "grade"})


@pytest.mark.parametrize(
    ("note", "said", "message"),
    [
        ("state.json", '{"_data_files": [{"filename": "../../secret.arrow"}]}', "leads outside"),
        (
            "state.json",
            '{"_data_files": [{"filename": "state.json"}]}',
            "no Arrow file that can be read",
        ),
        (
            "state.json",
            '{"_data_files": [{"filename": "none.arrow"}]}',
            "no Arrow file that can be read",
        ),
        ("state.json", '{"_data_files": [1]}', "names no files that can be read"),
        ("state.json", '{"_data_files": {}}', "expected a list; save the set again"),
        ("state.json", "[" * 100_000, "cannot be read"),
        ("dataset_dict.json", '{"splits": ["../splits"]}', "leads outside"),
        (
            "state.json",
            None,
            "is a folder without state.json or dataset_dict.json: give a file, or a folder",
        ),
    ],
)
def test_a_damaged_folder_is_refused_with_the_file_at_fault(saved, note, said, message):
    path = saved / "rows" / note
    if said is None:
        path.unlink()
    else:
        path.write_text(said)
    with pytest.raises(InputError, match=message):
        load(saved / "rows")


def test_splits_that_differ_in_their_columns_are_refused(saved):
    other = datasets.Dataset.from_dict({"label": [1], "sentence": ["c"]})
    shutil.rmtree(saved / "splits" / "test")
    other.save_to_disk(saved / "splits" / "test")
    with pytest.raises(
        InputError,
        match="has the columns label, sentence: expected label, text, as the first",
    ):
        load(saved / "splits")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", f"{PAIRS}\n1\ta\tb\n2\tc", "line 3: 2 columns, expected 3"),
        ("a.tsv", f"{PAIRS}\nhigh\ta\tb", "line 2, column score: 'high' is not a finite number"),
        ("a.tsv", f"{PAIRS}\n1\ta\tb\n1\t \tb", "line 3, column sentence1: empty"),
        ("a.tsv", "text\ttext\na\tb", "'text' occurs twice"),
        ("a.jsonl", '{"text": ["a"]}', "column text: empty, or bytes, a list or an object"),
        ("a.jsonl", '{"text": "a", "text": "b"}', "the field 'text' occurs twice"),
        ("a.tsv", PAIRS, "texts1 is empty"),
        (
            "a.csv",
            'score,sentence1,sentence2\n1,a,b\n2,"c',
            "line 3: unexpected end of data; expected CSV",
        ),
        (
            "a.csv",
            'score,sentence1,sentence2\n1,"a\n",b\nhigh,c,d',
            "line 4, column score: 'high' is not a finite",
        ),
        ("a.jsonl", '{"text": "a"}\n{"text": ', "line 2 is not valid JSON"),
        (
            "a.jsonl",
            '{"text": "a"}\n{"text": ' + "[" * 200 + "]" * 200 + "}",
            "line 2 is not valid JSON .nested too deeply",
        ),
        ("a.jsonl", '{"text": "a"}\n["b"]', "line 2 is '.\"b\".': expected one JSON object"),
        ("a.jsonl", '{"text": "a"}\n{"Text": "b"}', "line 2: no 'text', which the first line has"),
        ("a.jsonl", '{"text": "a"}\n{"text": ["b"]}', "line 2, column text: empty"),
        ("a.parquet", "PAR1 and no more", "no parquet file that can be read"),
    ],
)
def test_a_fault_in_any_form_is_named_by_its_line(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        load(path)


def test_memory_that_runs_out_is_not_told_as_a_damaged_file(tmp_path, monkeypatch):
    pd.DataFrame({"text": ["a"]}).to_parquet(tmp_path / "a.parquet")
    error = pa.lib.ArrowMemoryError("malloc of size 64 failed")
    monkeypatch.setattr(pq, "ParquetFile", Mock(side_effect=error))
    with pytest.raises(MemoryError, match="malloc of size 64 failed"):
        load(tmp_path / "a.parquet")


def test_a_blank_line_among_texts_and_an_endless_one_in_a_small_gz_are_refused(write):
    with pytest.raises(InputError, match=r"t.txt line 2 is blank: .* line i is row i.*grep"):
        load(write("t.txt", "one", "", "  ", "two"))
    # Neither blank lines at the end nor a byte order mark shift anything
    assert load(write("t.txt", "one", "two", "", "", encoding="utf-8-sig")).texts == ("one", "two")
    with pytest.raises(InputError, match="line 1 is longer than 16 MiB"):
        load(write("bomb.txt.gz", 2 * LONGEST * "x"))


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"one text, with a comma\nanother\n", Corpus),
        (b"score\tsentence1\tsentence2\n1\ta\tb\n", ScoredPairs),
        (b"Label,Text\n1,a\n", LabelledTexts),
        (b"premise,hypothesis,label\nx,y,1\n", LabelledPairs),
        (b'{"label": 1, "text": "a"}\n', LabelledTexts),
    ],
)
def test_a_pipe_is_read_as_what_it_holds(pipe, content, kind):
    pipe(content)
    data = load("-")
    assert isinstance(data, kind) and data.name == "stdin"


def test_splits(write):
    rows = ("train\tnews\t1\ta\tb", "test\tweb\t2\tc\td", "test\tnews\t3\te\tf")
    path = write("a.tsv", f"split\tsubset\t{PAIRS}", *rows)
    assert load(path).texts1 == ("c", "e")  # Test is the default where there is one
    assert load(path, split="test").subsets.tolist() == ["web", "news"]
    assert len(load(path, split="all")) == 3 and list(load_splits(path)) == ["train", "test"]
    with pytest.raises(InputError, match="no split 'dev': it has test, train"):
        load(path, split="dev")
    path = write("b.tsv", PAIRS, "1\ta\tb")  # Without splits, it answers to all and test only
    assert len(load(path)) == len(load(path, split="test")) == len(load(path, split="all")) == 1
    with pytest.raises(InputError, match="no split 'train'"):
        load(path, split="train")


# Benchmark files


def test_damaged_files(write, tmp_path):
    with pytest.raises(InputError, match=r"line 2, column 3: byte 0xe9 is not UTF-8"):
        load(write("latin.tsv", PAIRS, "1\ta\tcafé", encoding="latin-1"))
    with pytest.raises(InputError, match="check the path"):
        load(tmp_path / "missing.tsv")
    path = tmp_path / "cut.tsv.gz"
    rows = "\n".join(
        [PAIRS, *(f"{i % 5}\tleft {i * 7919}\tright {i * 104729}" for i in range(5000))]
    )
    path.write_bytes(gzip.compress(rows.encode())[:-2000])
    with pytest.raises(
        InputError,
        match=r"cut\.tsv\.gz ends in the middle of its gzip stream after line \d+",
    ):
        load(path)
    path.write_text(rows)
    with pytest.raises(InputError, match="not gzip"):
        load(path)


def test_a_benchmark_is_read_from_the_folder_and_from_nowhere_else(write, tmp_path, monkeypatch):
    write(
        "classification/trec.tsv.gz",
        "split\tlabel\ttext",
        "train\tHUM\twho?",
        "test\tLOC\twhere?",
    )
    monkeypatch.setenv("REPRO_DATA", str(tmp_path))
    assert load("trec").texts == ("where?",) and load("trec").source == "local"
    with pytest.raises(InputError, match=r"no file classification/cr.tsv.gz.*microworld"):
        load("cr")
    found = [(row.split, row.found, row.expected, row.ok) for row in check("trec")]
    assert found == [("train", 1, (5452,), False), ("test", 1, (500,), False)]
    (missing,) = check("cr")
    assert missing.found is None and missing.expected == (3771, 3775) and not missing.ok
    write("classification/trec.tsv.gz", "split\tlabel\ttext", "training\tHUM\twho?")
    with pytest.raises(
        InputError,
        match="line 2, column split: unknown split 'training'; expected train, test",
    ):
        load("trec")


def test_images_with_a_caption_in_an_sts_set_are_dropped_whole(write, tmp_path, monkeypatch):
    header = "split\timage\tcaption_no\tin_sts_eval\tcaption"
    rows = ("train\ti0\t1\t0\ta", "train\ti0\t2\t1\tb", "train\ti1\t1\t0\tc", "train\ti1\t2\t0\td")
    write("train/flickr30k_captions.tsv.gz", header, *rows)
    monkeypatch.setenv("REPRO_DATA", str(tmp_path))
    data = load("flickr30k")
    assert data.texts == ("c", "d") and data.labels.tolist() == ["i1", "i1"]


def test_retrieval_joins_three_files(write, tmp_path, monkeypatch):
    write(
        "retrieval/hotpotqa_queries.tsv.gz",
        "query_id\tquestion\tanswer",
        "q0\twho?\tBell",
        "q1\twhen?\t1900",
    )
    documents = ("d0\tBell\tHe was.", "d1\tYear\tIt was.", "d2\tX\tY")
    write("retrieval/hotpotqa_corpus.tsv.gz", "doc_id\ttitle\ttext", *documents)
    write(
        "retrieval/hotpotqa_qrels.tsv.gz",
        "query_id\tdoc_id\trelevance",
        "q0\td0\t1",
        "q0\td2\t0",
        "q1\td1\t1",
    )
    monkeypatch.setenv("REPRO_DATA", str(tmp_path))
    data = load("hotpotqa")
    assert (
        isinstance(data, Retrieval)
        and data.documents[0] == "Bell He was."
        and data.answers == ("Bell", "1900")
    )
    assert data.qrels == {"q0": {"d0": 1, "d2": 0}, "q1": {"d1": 1}}
    smaller = load("hotpotqa", limit=1)
    assert len(smaller) == 1 and set(smaller.document_ids) == set(
        smaller.qrels[smaller.query_ids[0]]
    )


# The menu


def test_every_name_has_a_microworld_stand_in_with_the_same_splits():
    assert set(SIZES) == set(DATASETS)
    assert all(tuple(SIZES[name]) == spec.splits for name, spec in DATASETS.items())


def test_the_source_is_chosen_by_the_folder_and_recorded(no_data, monkeypatch, tmp_path):
    assert default_source() == load("cr", limit=5).source == "microworld"
    with pytest.raises(InputError, match="REPRO_DATA is not set"):  # An error, not a substitute
        load("stsb", source="local")
    assert {row["name"]: row["local"] for row in describe()} == dict.fromkeys(DATASETS, "–")
    monkeypatch.setenv("REPRO_DATA", str(tmp_path))
    assert default_source() == "local"
    assert load("cr", source="microworld", limit=5).source == "microworld"


# Sets


def pairs(**changes):
    fields = {"texts1": ("a", "b"), "texts2": ("c", "d"), "scores": [1, 2.5], "subsets": ["x", "y"]}
    return ScoredPairs("toy", "local", "test", **(fields | changes))


def retrieval(**changes):
    fields = {"query_ids": ("q0", "q1"), "queries": ("who?", "what?"), "document_ids": ("d0", "d1")}
    fields |= {"documents": ("he", "that"), "qrels": {"q0": {"d0": 1}, "q1": {"d1": 1, "d0": 0}}}
    return Retrieval("toy", "local", **(fields | changes))


def test_texts_of_keeps_sides_in_order_so_that_embeddings_slice_back():
    data = pairs(texts1=("same", "b"), texts2=("same", "d"))
    assert texts_of(data) == ("same", "b", "same", "d")
    assert texts_of(retrieval()) == ("who?", "what?", "he", "that")
    assert texts_of(Corpus("toy", "local", ["x"])) == ("x",)
    assert texts_of(WordVectors("toy", "local", ["x"], np.ones((1, 3)))) == ("x",)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: get_spec("stsbb"), "unknown dataset 'stsbb': did you mean stsb"),
        (lambda: load("trec", split="dev"), "split of trec 'dev': choose one of train, test, all"),
        (lambda: load("trec", source="disk"), r"unknown source 'disk'.*local, hub, microworld"),
        (lambda: load("some/file.tsv", source="hub"), "leave out source='hub'"),
        (lambda: fetch("glove"), r"glove has no hub mirror.*REPRO_DATA"),
        (lambda: pairs(texts1=("a",)), "texts1 has 1, texts2 has 2"),
        (lambda: pairs(texts1=("a", " ")), r"texts1\[1\] is ' '"),
        (lambda: pairs(texts1="ab"), "wrap it in a list"),
        (lambda: pairs(scores=[1, float("nan")]), r"scores\[1\] is nan"),
        (lambda: pairs(scores=["high", "low"]), "no number"),
        (lambda: LabelledPairs("toy", "local", "all", ["a"], ["b"], [""]), r"labels\[0\] is ''"),
        (lambda: retrieval(document_ids=("d0", "d0")), "'d0' more than once"),
        (lambda: retrieval(qrels={"q0": {"d7": 1}}), "'d7'.*not among the 2 documents"),
        (lambda: retrieval(answers=("only one",)), "answers has 1"),
        (
            lambda: WordVectors("toy", "local", ["x", "y"], np.ones((1, 3))),
            "words has 2, vectors has 1",
        ),
    ],
)
def test_unknown_names_list_the_valid_ones_and_broken_sets_name_the_offending_value(
    no_data,
    make,
    message,
):
    with pytest.raises(InputError, match=message):
        make()


# Real files


@pytest.mark.real_data
@pytest.mark.parametrize(
    "name",
    [name for name, spec in DATASETS.items() if sum(spec.sizes.values()) < 12_000],
)
def test_every_benchmark_has_its_official_counts(real_data, name):
    assert all(row.ok for row in check(name))


@pytest.mark.real_data
def test_both_text_forms_hold_the_same_pairs(real_data):
    data, other = load("stsb"), load("stsb", text="raw")
    assert np.array_equal(data.scores, other.scores) and data.texts1 != other.texts1
    squeezed = [
        "".join(filter(str.isalnum, side[0])).lower() for side in (data.texts1, other.texts1)
    ]
    assert squeezed[0] == squeezed[1]


@pytest.mark.parametrize("option", ["source", "split"])
def test_an_option_that_is_given_empty_is_not_taken_for_the_default(option, tmp_path):
    (tmp_path / "pairs.tsv").write_text("score\tsentence1\tsentence2\n1\ta\tb\n2\tc\td\n")
    for name in ("stsb", tmp_path / "pairs.tsv"):
        with pytest.raises(InputError, match=f"{option} is empty: name one"):
            load(name, **{option: ""})
