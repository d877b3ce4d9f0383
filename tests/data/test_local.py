import gzip

import numpy as np
import pytest

from repro.data import Corpus, LabelledPairs, LabelledTexts, Retrieval, ScoredPairs, check, load, load_splits
from repro.types import InputError

PAIRS = "score\tsentence1\tsentence2"


def test_the_header_says_what_a_users_file_is(write):
    scored = load(write("a.tsv", PAIRS, '5\ta "bare quote\tb', "0.5\tc\td"))
    assert isinstance(scored, ScoredPairs) and scored.scores.tolist() == [5, 0.5]
    assert scored.texts1[0] == 'a "bare quote' and scored.source == "local" and scored.name == "a"
    labelled = load(write("b.tsv.gz", "label\ttext", "pos\tgood"))
    assert isinstance(labelled, LabelledTexts) and labelled.labels.tolist() == ["pos"]
    assert isinstance(load(write("c.tsv", "label\tsentence1\tsentence2", "1\ta\tb")), LabelledPairs)
    assert load(write("d.txt", "one", "two", "")).texts == ("one", "two")
    corpus = load(write("e.tsv", "text", "one", "two"))
    assert isinstance(corpus, Corpus) and corpus.texts == ("one", "two")


def test_split_and_subset_columns(write):
    path = write(
        "a.tsv", f"split\tsubset\t{PAIRS}", "train\tnews\t1\ta\tb", "test\tweb\t2\tc\td", "test\tnews\t3\te\tf"
    )
    assert load(path).texts1 == ("c", "e")  # test is the default where there is one
    assert load(path, split="test").subsets.tolist() == ["web", "news"]
    assert len(load(path, split="all")) == 3
    assert list(load_splits(path)) == ["train", "test"]
    with pytest.raises(InputError, match="no split 'dev': it has test, train"):
        load(path, split="dev")


def test_a_file_without_splits_answers_to_all_and_test_only(write):
    path = write("a.tsv", PAIRS, "1\ta\tb")
    assert len(load(path)) == len(load(path, split="test")) == len(load(path, split="all")) == 1
    assert list(load_splits(path)) == ["all"]
    with pytest.raises(InputError, match="no split 'train'"):
        load(path, split="train")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((PAIRS, "1\ta\tb", "2\tc"), "line 3: 2 columns, expected 3"),
        ((PAIRS, "1\ta\tb\tc"), "line 2: 4 columns, expected 3"),
        ((PAIRS, "high\ta\tb"), "line 2, column score: 'high' is not a finite number"),
        ((PAIRS, "nan\ta\tb"), "line 2, column score"),
        ((PAIRS, "1\ta\tb", "1\t \tb"), "line 3, column sentence1: empty"),
        (("score\tleft\tright", "1\ta\tb"), "fits no kind"),
        (("text\ttext", "a\tb"), "'text' occurs twice"),
        ((PAIRS,), "texts1 is empty"),
        ((), "is empty"),
    ],
)
def test_a_malformed_row_is_named_by_file_line_and_column(write, lines, message):
    path = write("bad.tsv", *lines)
    with pytest.raises(InputError, match=message) as error:
        load(path)
    assert "bad" in str(error.value)


def test_damaged_files(write, tmp_path):
    with pytest.raises(InputError, match=r"line 2, column 3: byte 0xe9 is not UTF-8"):
        load(write("latin.tsv", PAIRS, "1\ta\tcafé", encoding="latin-1"))
    with pytest.raises(InputError, match="check the path"):
        load(tmp_path / "missing.tsv")
    path = tmp_path / "cut.tsv.gz"
    rows = "\n".join([PAIRS, *(f"{i % 5}\tleft {i * 7919}\tright {i * 104729}" for i in range(5000))])
    path.write_bytes(gzip.compress(rows.encode())[:-2000])
    with pytest.raises(InputError, match=r"cut\.tsv\.gz ends in the middle of its gzip stream after line \d+"):
        load(path)
    plain = tmp_path / "plain.tsv.gz"
    plain.write_text(rows)
    with pytest.raises(InputError, match="not gzip"):
        load(plain)


def test_a_benchmark_is_read_from_the_folder_and_from_nowhere_else(write, tmp_path, monkeypatch):
    write("classification/trec.tsv.gz", "split\tlabel\ttext", "train\tHUM\twho?", "test\tLOC\twhere?")
    monkeypatch.setenv("REPRO_DATA", str(tmp_path))
    assert load("trec").texts == ("where?",) and load("trec").source == "local"
    with pytest.raises(InputError, match=r"no file classification/cr.tsv.gz.*microworld"):
        load("cr")
    rows = check("trec")
    assert [(row.split, row.found, row.expected, row.ok) for row in rows] == [
        ("train", 1, (5452,), False),
        ("test", 1, (500,), False),
    ]
    (missing,) = check("cr")
    assert missing.found is None and missing.expected == (3771, 3775) and not missing.ok
    write("classification/trec.tsv.gz", "split\tlabel\ttext", "training\tHUM\twho?")
    with pytest.raises(InputError, match="line 2, column split: unknown split 'training'; expected train, test"):
        load("trec")


def test_without_a_folder_local_is_an_error_not_a_substitute(no_data):
    with pytest.raises(InputError, match="REPRO_DATA is not set"):
        load("stsb", source="local")


def test_images_with_a_caption_in_an_sts_set_are_dropped_whole(write, tmp_path, monkeypatch):
    header = "split\timage\tcaption_no\tin_sts_eval\tcaption"
    rows = ("train\ti0\t1\t0\ta", "train\ti0\t2\t1\tb", "train\ti1\t1\t0\tc", "train\ti1\t2\t0\td")
    write("train/flickr30k_captions.tsv.gz", header, *rows)
    monkeypatch.setenv("REPRO_DATA", str(tmp_path))
    data = load("flickr30k")
    assert data.texts == ("c", "d") and data.labels.tolist() == ["i1", "i1"]


def test_retrieval_joins_three_files(write, tmp_path, monkeypatch):
    write("retrieval/hotpotqa_queries.tsv.gz", "query_id\tquestion\tanswer", "q0\twho?\tBell", "q1\twhen?\t1900")
    write(
        "retrieval/hotpotqa_corpus.tsv.gz", "doc_id\ttitle\ttext", "d0\tBell\tHe was.", "d1\tYear\tIt was.", "d2\tX\tY"
    )
    write("retrieval/hotpotqa_qrels.tsv.gz", "query_id\tdoc_id\trelevance", "q0\td0\t1", "q0\td2\t0", "q1\td1\t1")
    monkeypatch.setenv("REPRO_DATA", str(tmp_path))
    data = load("hotpotqa")
    assert isinstance(data, Retrieval) and data.documents[0] == "Bell He was." and data.answers == ("Bell", "1900")
    assert data.qrels == {"q0": {"d0": 1, "d2": 0}, "q1": {"d1": 1}}
    smaller = load("hotpotqa", limit=1)
    assert len(smaller) == 1 and set(smaller.document_ids) == set(smaller.qrels[smaller.query_ids[0]])


@pytest.mark.real_data
def test_every_benchmark_has_its_official_counts(real_data):
    wrong = [row for row in check() if not row.ok]
    assert not wrong


@pytest.mark.real_data
@pytest.mark.parametrize("text", ["senteval", "raw"])
def test_both_text_forms_hold_the_same_pairs(real_data, text):
    data, other = load("stsb", text=text), load("stsb", text="raw")
    assert data.text_form == text and np.array_equal(data.scores, other.scores)
    squeezed = ["".join(filter(str.isalnum, side[0])).lower() for side in (data.texts1, other.texts1)]
    assert squeezed[0] == squeezed[1]
