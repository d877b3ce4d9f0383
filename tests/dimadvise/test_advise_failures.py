"""Whatever is wrong with what a user gives, `repro advise` ends with 2 and one message that names it."""

import numpy as np
import pytest

PAIRS = [(i, i + 1, i % 5) for i in range(60)]
JUDGED = [(i, i, 1) for i in range(40)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Matrices and files of evidence, each with one thing wrong; X.npy is sound: 200 rows of 16 columns."""
    place = tmp_path_factory.mktemp("given")
    X = np.random.default_rng(0).normal(size=(200, 16)).astype(np.float32)
    nan, infinite, dull = X.copy(), X.copy(), X.copy()
    nan[7, 3], infinite[9, 0], dull[:, 4] = np.nan, np.inf, 2
    arrays = {
        "X": X,
        "two": X[:2],
        "nan": nan,
        "inf": infinite,
        "equal": np.ones((50, 8)),
        "dull": dull,
        "vector": X[0],
        "cube": X.reshape(10, 20, 16),
        "none": X[:0],
        "words": np.array([["a", "b"]]),
        "complex": X.astype(complex),
        "Q": X[:40],
        "narrow": X[:40, :8],
    }
    for name, array in arrays.items():
        np.save(place / f"{name}.npy", array)
    np.save(place / "objects.npy", np.array([{"a": 1}, 2], object), allow_pickle=True)
    (place / "text.npy").write_text("hello")

    def table(name, header, rows):
        lines = ["\t".join(header.split()), *("\t".join(map(str, row)) for row in rows)]
        (place / f"{name}.tsv").write_text("\n".join(lines) + "\n")

    for name, rows in {
        "pairs_beyond": [*PAIRS, (0, 200, 1)],
        "pairs_negative": [*PAIRS, (-1, 2, 1)],
        "pairs_text": [("x", 1, 1)],
        "pairs_grade": [(1, 2, "high")],
        "pairs_nan": [(1, 2, "nan")],
        "pairs_few": PAIRS[:5],
        "pairs_none": [],
        "pairs_same": [(i, i + 1, 3) for i in range(60)],
        "pairs_ragged": [(0, 1)],
        "pairs_noise": PAIRS,
    }.items():
        table(name, "row1 row2 score", rows)
    table("pairs_columns", "a b score", PAIRS)
    for name, rows in {
        "qrels": JUDGED,
        "qrels_document": [*JUDGED, (0, 999, 1)],
        "qrels_query": [*JUDGED, (40, 0, 1)],
        "qrels_few": JUDGED[:3],
        "qrels_nothing": [(q, d, 0) for q, d, _ in JUDGED],
    }.items():
        table(name, "query document relevance", rows)
    table("qrels_columns", "q d r", JUDGED)
    (place / "pairs_empty.tsv").write_text("")
    (place / "labels_short.txt").write_text("a\nb\n")
    (place / "labels_one.txt").write_text("a\n" * 200)
    (place / "labels_rare.txt").write_text("a\n" * 199 + "b\n")
    return place


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("two.npy", "2 embeddings: neither a direction"),
        ("none.npy", "has shape (0, 16): expected at least one row"),
        ("nan.npy", "NaN or infinite values in 1 of 200 rows, first in row 7"),
        ("inf.npy", "NaN or infinite values in 1 of 200 rows, first in row 9"),
        ("equal.npy", "all 50 embeddings are equal"),
        ("vector.npy", "has shape (16,): expected a matrix"),
        ("cube.npy", "has shape (10, 20, 16): expected a matrix"),
        ("objects.npy", "holds Python objects"),
        ("words.npy", "holds <U1 values: expected numbers"),
        ("complex.npy", "holds complex128 values: expected numbers"),
        ("text.npy", "is not a whole .npy file"),
        ("absent.npy", "no file"),
        ("X.npy --retain 1.5", "retain is 1.5: expected a share"),
        ("X.npy --retain 0", "retain is 0.0: expected a share"),
        ("X.npy --retain nan", "retain is nan: expected a share"),
        ("X.npy --dims 8 32", "dim is 32: expected 1 to 16"),
        ("X.npy --dims 0", "dim is 0: expected 1 to 16"),
        ("X.npy --reducers", "at least one reducer"),
        ("X.npy --output X.npy", "is a file: expected a folder"),
        ("X.npy --pairs pairs_beyond.tsv", "pairs_beyond.tsv line 62: row 200: expected 0 to 199"),
        ("X.npy --pairs pairs_negative.tsv", "line 62: row -1: expected 0 to 199"),
        ("X.npy --pairs pairs_text.tsv", "line 2: 'x' is no row number"),
        ("X.npy --pairs pairs_grade.tsv", "column score: 'high' is not a finite number"),
        ("X.npy --pairs pairs_nan.tsv", "column score: 'nan' is not a finite number"),
        ("X.npy --pairs pairs_columns.tsv", "lacks row1, row2"),
        ("X.npy --pairs pairs_ragged.tsv", "line 2: 2 columns, expected 3"),
        ("X.npy --pairs pairs_empty.tsv", "is empty"),
        ("X.npy --pairs pairs_none.tsv", "0 pairs: at least 30"),
        ("X.npy --pairs pairs_few.tsv", "5 pairs: at least 30"),
        ("X.npy --pairs pairs_same.tsv", "all 60 pairs have the grade 3.0"),
        ("X.npy --pairs pairs_noise.tsv", "a share of what may be zero says nothing"),
        ("X.npy --pairs absent.tsv", "no file"),
        ("X.npy --labels labels_short.txt", "has 2 labels"),
        ("X.npy --labels labels_one.txt", "only one class ('a')"),
        ("X.npy --labels labels_rare.txt", "5 folds need at least 5, and 2 of a second class"),
        ("X.npy --labels absent.txt", "no file"),
        ("X.npy --queries Q.npy", "queries and qrels belong together"),
        ("X.npy --qrels qrels.tsv", "queries and qrels belong together"),
        ("X.npy --queries narrow.npy --qrels qrels.tsv", "queries have 8 columns"),
        ("X.npy --queries nan.npy --qrels qrels.tsv", "nan.npy has NaN"),
        ("X.npy --queries Q.npy --qrels qrels_document.tsv", "line 42: row 999: expected 0 to 199"),
        ("X.npy --queries Q.npy --qrels qrels_query.tsv", "line 42: row 40: expected 0 to 39"),
        ("X.npy --queries Q.npy --qrels qrels_few.tsv", "3 queries with a relevant document"),
        ("X.npy --queries Q.npy --qrels qrels_nothing.tsv", "0 queries with a relevant document"),
        ("X.npy --queries Q.npy --qrels qrels_columns.tsv", "lacks query, document, relevance"),
        ("X.npy --queries Q.npy --qrels qrels.tsv --pairs pairs_noise.tsv", "one kind of evidence at a time"),
    ],
)
def test_a_mistake_is_named_in_one_message(repro, folder, monkeypatch, tmp_path, arguments, words):
    monkeypatch.chdir(folder)
    more = [] if "--output" in arguments else ["--output", tmp_path / "out"]
    code, text, errors = repro("advise", "--embeddings", *arguments.split(), *more)
    message = " ".join(errors.split())
    assert code == 2 and words in message and message.count("error:") == 1 and "Traceback" not in message
    assert not text and not (tmp_path / "out").exists(), "nothing is written before all is well"


def test_a_constant_column_is_told_and_does_no_harm(repro, folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    code, text, errors = repro("advise", "--embeddings", "dull.npy", "--output", tmp_path / "out")
    assert code == 0 and not errors and "1 of 16 columns hold one value in every row" in text
