"""Whatever is wrong with what a user gives, `repro advise` ends with 2 and one message that names
it.
"""

import gzip

import numpy as np
import pytest

PAIRS = [(i, i + 1, i % 5) for i in range(60)]
JUDGED = [(i, i, 1) for i in range(40)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Matrices and files of evidence, each with one thing wrong; X.npy is sound: 200 rows of 16
    columns.
    """
    place = tmp_path_factory.mktemp("given")
    X = np.random.default_rng(0).normal(size=(200, 16)).astype(np.float32)
    nan = X.copy()
    nan[7, 3] = np.nan
    arrays = {"X": X, "nan": nan, "equal": np.ones((150, 8)), "none": X[:0], "Q": X[:40]}
    for name, array in {**arrays, "narrow": X[:40, :8], "few": X[:5]}.items():
        np.save(place / f"{name}.npy", array)
    signs = (
        np.random.default_rng(1).normal(size=(200, 128))
        + np.random.default_rng(2).normal(size=128) / 2
    )
    np.save(place / "packed.npy", np.packbits(signs > 0, axis=1))
    np.savez(place / "two.npz", a=X[:40], b=X[:40, :8])
    (place / "X.csv").write_text("1,2\n")
    pairs, qrels = ("row1", "row2", "score"), ("query", "document", "relevance")
    tables = {
        "pairs_beyond": (pairs, [*PAIRS, (0, 200, 1)]),
        "pairs_negative": (pairs, [*PAIRS, (3, -1, 1)]),
        "qrels_negative": (qrels, [*JUDGED, (-2, 3, 1)]),
        "qrels_beyond": (qrels, [*JUDGED, (39, 200, 1)]),
        "pairs_text": (pairs, [("x", 1, 1)]),
        "pairs_few": (pairs, PAIRS[:5]),
        "pairs_same": (pairs, [(i, i + 1, 3) for i in range(60)]),
        "pairs_self": (pairs, [(i, i, i) for i in range(60)]),
        "pairs_noise": (pairs, PAIRS),
        "pairs_columns": ("abc", PAIRS),
        "qrels": (qrels, JUDGED),
        "qrels_twice": (qrels, [*JUDGED, (0, 0, 2)]),
        "qrels_nothing": (qrels, [(q, d, 0) for q, d, _ in JUDGED]),
    }
    for name, (header, rows) in tables.items():
        (place / f"{name}.tsv").write_text(
            "".join("\t".join(map(str, row)) + "\n" for row in (header, *rows))
        )
    few = (place / "pairs_few.tsv").read_bytes()
    (place / "FEW.TSV.GZ").write_bytes(gzip.compress(few))
    (place / "labels_short.txt").write_text("a\nb\n")
    return place


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", "give either a file of vectors"),
        ("--encoder repro-tiny", "--encoder needs --texts"),
        ("X.npy --texts stsb", "--texts belongs to --encoder"),
        ("--encoder repro-tiny --texts stsb --pairs p.tsv", "--pairs belongs to a file of vectors"),
        ("none.npy", "has shape (0, 16): expected at least one row"),
        ("nan.npy", "nan.npy row 7 holds NaN or an infinite number"),
        ("equal.npy", "all 150 embeddings are equal"),
        ("X.npy --retain 1.5", "retain is 1.5: expected a share"),
        ("X.npy --dims 8 32", "dim is 32: expected 1 to 16"),
        ("X.npy --recall 0", "recall is 0.0: expected a share"),
        ("X.npy --recall 0.9 --bytes 9", "--recall and --bytes are given: expected one target"),
        ("X.npy --bytes 0", "bytes is 0: expected 1 or more"),
        ("X.npy --depth 1", "--depth is 1: expected 2 to 50, or 0"),
        (
            "X.npy --queries Q.npy --qrels qrels_twice.tsv",
            "query 0 has document 0 twice, with different relevance",
        ),
        ("X.npy --sample 5", "--sample is 5: expected 100 or more"),
        ("Q.npy", "40 rows of Q.npy: expected at least 100"),
        (
            "packed.npy",
            "packed.npy looks like packed bits, eight to each of its 16 bytes a row: unpack them",
        ),
        ("X.csv", "make a matrix of its numbers"),
        ("X.npy --queries two.npz", "a, b are each a matrix of numbers: name one by --column"),
        ("X.npy --queries two.npz --queries-column b", "two.npz b has 8 columns, X.npy 16"),
        (
            "X.npy --queries two.npz --column a --queries-column b",
            "two.npz b has 8 columns, X.npy 16",
        ),
        ("X.npy --queries-column b", "--queries-column belongs to --queries, which is not given"),
        ("X.npy --queries few.npy", "5 queries in few.npy: expected at least 8"),
        ("X.npy --queries narrow.npy", "narrow.npy has 8 columns, X.npy 16"),
        ("X.npy --column v --labels labels_short.txt --encoder e", "give either a file of vectors"),
        ("X.npy --output X.npy", "is not a folder"),
        ("X.npy --pairs pairs_beyond.tsv", "pairs_beyond.tsv line 62: row 200: expected 0 to 199"),
        ("X.npy --pairs pairs_negative.tsv", "line 62: row -1: expected 0 to 199"),
        ("X.npy --queries Q.npy --qrels qrels_negative.tsv", "line 42: row -2: expected 0 to 39"),
        ("X.npy --queries Q.npy --qrels qrels_beyond.tsv", "line 42: row 200: expected 0 to 199"),
        ("X.npy --pairs pairs_text.tsv", "line 2: 'x' is no row number: expected 0 to "),
        ("X.npy --pairs pairs_columns.tsv", "lacks row1, row2"),
        ("X.npy --pairs pairs_few.tsv", "5 pairs: at least 30"),
        ("X.npy --pairs FEW.TSV.GZ", "5 pairs: at least 30"),
        ("X.npy --pairs pairs_same.tsv", "all 60 pairs have the grade 3.0"),
        ("X.npy --pairs pairs_self.tsv", "pairs_self.tsv pairs each row with itself"),
        ("X.npy --column zzz", "--column zzz: X.npy has no columns by name; leave it out"),
        ("X.npy --pairs pairs_noise.tsv", "a share of what may be zero says nothing"),
        ("X.npy --labels labels_short.txt", "has 2 labels"),
        ("X.npy --qrels qrels.tsv", "--qrels needs --queries: give both, or queries alone"),
        ("X.npy --queries narrow.npy --qrels qrels.tsv", "narrow.npy has 8 columns"),
        ("X.npy --queries Q.npy --qrels qrels_nothing.tsv", "0 queries with a relevant document"),
        (
            "X.npy --queries Q.npy --qrels qrels.tsv --pairs pairs_noise.tsv",
            "one kind of evidence at a time",
        ),
    ],
)
def test_a_mistake_is_named_in_one_message(repro, folder, monkeypatch, tmp_path, arguments, words):
    monkeypatch.chdir(folder)
    more = [] if "--output" in arguments else ["--output", tmp_path / "out"]
    text, errors = repro("advise", *arguments.split(), *more, ends=2)
    assert words in " ".join(errors.split())
    assert not text and not (tmp_path / "out").exists(), "nothing is written before all is well"


def test_where_memory_is_short_it_is_said_with_a_way_out(repro, folder, monkeypatch, tmp_path):
    def short(*_, **__):
        raise MemoryError("Unable to allocate 7 TiB")

    monkeypatch.setattr("dimadvise.answer.survey", short)
    errors = repro("advise", folder / "X.npy", "--output", tmp_path / "out", ends=2).err
    assert "not enough memory to advise on" in errors and "7 TiB" in errors and "--sample" in errors
