"""Every form that vectors come in reads as the same numbers, whole or in parts; every broken file
is told in words.
"""

import base64
import errno
import gzip
import io
import json
import os
import struct
import zipfile
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file
from scipy.sparse import csr_matrix, save_npz

from dimadvise import files
from dimadvise.vectors import in_memory, open_vectors
from repro.types import InputError

N, D = 37, 12
# What every form can hold
WHOLE = np.round(np.random.default_rng(0).normal(size=(N, D)) * 40).clip(-128, 127)
DEEP = "[" * 100_000  # Deeper than any reader of JSON goes
BROKEN, ROW = WHOLE.copy(), WHOLE[5].tobytes()
BROKEN[7, 3] = np.nan


def raw(path, header, body):
    path.write_bytes(header + body.tobytes())


def bfloat16(X):
    return (X.astype("<f4").view("<u4") >> 16).astype("<u2")


def safetensors_bf16(path, X):
    bits = bfloat16(X)
    about = {
        "X": {"dtype": "BF16", "shape": list(X.shape), "data_offsets": [0, bits.nbytes]},
        "__metadata__": {},
    }
    header = json.dumps(about).encode()
    raw(path, struct.pack("<Q", len(header)) + header, bits)


def parquet(path, X, kind=None, **more):
    lists = pa.array(X.tolist(), kind or pa.list_(pa.float32()))
    pq.write_table(
        pa.table({"id": range(len(X)), "vector": lists, **more}),
        path,
        row_group_size=10,
    )


def vecs(path, X, dtype):
    lead = np.full((len(X), 1), X.shape[1], "<i4")
    raw(
        path,
        b"",
        np.hstack([lead.view("u1"), np.ascontiguousarray(X, dtype).view("u1").reshape(len(X), -1)]),
    )


def lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def gzipped(path, rows):
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))


def tensors(path, X, shape):
    flat = pa.FixedSizeListArray.from_arrays(pa.array(np.ravel(X).astype(np.float32)), X.shape[1])
    typed = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float32(), shape), flat)
    pq.write_table(pa.table({"id": range(len(X)), "v": typed}), path, row_group_size=10)


def counted(path, X, dtype):
    raw(path, np.array(X.shape, "<u4").tobytes(), np.ascontiguousarray(X, dtype))


def shards_and_more(path, X):
    shards(path, X)
    np.save(path / "ids.npy", np.array([f"row {i}" for i in range(len(X))]))
    np.save(path / "part-0.ids.npy", np.arange(4))
    pq.write_table(pa.table({"text": ["a"] * len(X)}), path / "metadata.parquet")
    lines(path / "metadata.jsonl", [{"text": "a", "length": 3}] * len(X))


def shards(path, X):
    path.mkdir()
    (path / "README.md").write_text("what it is")
    np.save(path / ".part-0.npy", X + 1)  # Hidden, such as what a tool keeps for itself
    for number, start in enumerate(range(0, len(X), 3)):  # Thirteen: part-2 stands before part-10
        np.save(path / f"part-{number}.npy", X[start : start + 3].astype(np.float16))


FORMS = {
    **{
        f"{kind}.npy": lambda p, X, kind=kind: np.save(p, X.astype(kind))
        for kind in ("f2", "f4", "f8", "i1", ">f4")
    },
    "columns.npy": lambda p, X: np.save(p, np.asfortranarray(X)),
    "bfloat16.npy": lambda p, X: np.save(p, bfloat16(X).view("V2")),
    "one.npz": lambda p, X: np.savez_compressed(p, X=X),
    "float.safetensors": lambda p, X: save_file(
        {"other": X[0].copy(), "X": X.astype(np.float16)},
        p,
    ),
    "single.safetensors": lambda p, X: save_file({"X": X.astype(np.float32)}, p),
    "bfloat16.safetensors": safetensors_bf16,
    "list.parquet": parquet,
    "fixed.parquet": lambda p, X: parquet(p, X, pa.list_(pa.float32(), D)),
    "half.parquet": lambda p, X: parquet(p, X.astype(np.float16), pa.list_(pa.float16())),
    "vectors.fvecs": lambda p, X: vecs(p, X, "<f4"),
    "vectors.bvecs": lambda p, X: vecs(p, X, "u1"),
    "field.jsonl": lambda p, X: lines(p, [{"id": i, "v": x} for i, x in enumerate(X.tolist())]),
    "spelt.jsonl": lambda p, X: lines(
        p,
        [{"id": str(i), "v": json.dumps(x)} for i, x in enumerate(X.tolist())],
    ),
    "packed.jsonl.gz": lambda p, X: gzipped(
        p,
        [{"id": i, "v": x} for i, x in enumerate(X.tolist())],
    ),
    "bare.NDJSON.GZ": lambda p, X: gzipped(p, X.tolist()),
    "UPPER.NPY": lambda p, X: np.save(p.open("wb"), X),
    "UPPER.Parquet": parquet,
    "beside.npz": lambda p, X: np.savez(
        p,
        X=X,
        ids=np.arange(len(X)),
        texts=np.array(["a"] * len(X)),
        y=X[0],
    ),
    "objects_beside.npz": lambda p, X: np.savez(p, X=X, ids=np.array(list("abc"), object)),
    "tensor.parquet": lambda p, X: tensors(p, X, [X.shape[1]]),
    "large.parquet": lambda p, X: parquet(p, X, pa.large_list(pa.float64())),
    "spelt.parquet": lambda p, X: pq.write_table(
        pa.table({"id": range(len(X)), "v": [json.dumps(x) for x in X.tolist()]}),
        p,
        row_group_size=10,
    ),
    "vectors.fbin": lambda p, X: counted(p, X, "<f4"),
    "vectors.U8BIN": lambda p, X: counted(p, X, "u1"),
    "vectors.i8bin": lambda p, X: counted(p, X, "i1"),
    "vectors.ibin": lambda p, X: counted(p, X, "<i4"),
    "shards_and_more": lambda p, X: shards_and_more(p, X),
    "bare.ndjson": lambda p, X: p.write_text("\n".join(map(json.dumps, X.tolist())) + "\n\n"),
    "shards": shards,
}


WHOLE_NUMBERS = ("i1.npy", "vectors.bvecs", "vectors.U8BIN", "vectors.i8bin", "vectors.ibin")
NUMPYS = ("f2", "f4", "f8", "i2", "u2", "i4", "u4", "i8")


@pytest.mark.parametrize("name", FORMS)
def test_every_form_reads_as_the_same_numbers(tmp_path, name):
    X = np.abs(WHOLE) if name in ("vectors.bvecs", "vectors.U8BIN") else WHOLE  # Bytes have no sign
    FORMS[name](tmp_path / name, X)
    vectors = open_vectors(tmp_path / name)
    assert vectors.shape == (N, D)
    asked = np.array([36, 0, 5, 6, 7, 5, 20])
    taken = vectors.take(asked)
    assert (
        taken.dtype == np.float32 and (taken == X[asked]).all() and vectors.take([]).shape == (0, D)
    )
    assert ("bfloat16" in name) == (vectors.kind == "bfloat16")
    assert (name in ("vectors.bvecs", "vectors.U8BIN")) == (vectors.kind == "uint8")
    for size, start in ((None, 0), (5, 0), (5, 13), (100, 36), (3, 37)):
        blocks = list(vectors.blocks(size, start))
        assert sum(map(len, blocks)) == N - start and all(
            len(b) <= (size or N) and len(b) for b in blocks
        )
        assert not blocks or (np.concatenate(blocks) == X[start:]).all()


@pytest.mark.parametrize("name", FORMS)
def test_rows_that_do_not_lie_side_by_side_are_those_asked_for(tmp_path, name):
    X = np.abs(WHOLE)
    FORMS[name](tmp_path / name, X)
    vectors, held = open_vectors(tmp_path / name), in_memory(X)
    for asked in ([0, 2], [2, 0], [0, 1, 3], [1, 3, 5], [9, 11], [0, 36], [35, 36], [3, 3, 5]):
        for found in (vectors.take(asked), held.take(asked), *vectors.taken(np.array(asked))):
            np.testing.assert_array_equal(found, X[asked])


@pytest.mark.parametrize("kind", ["f8", "f4", "f2", "i1", "u1", "i2", "i4"])
def test_safetensors_of_every_kind_of_number_are_read_as_their_authors_write_them(tmp_path, kind):
    X = np.abs(WHOLE).astype(kind)
    X[0, :2] = 1, 3  # Of two and more bytes the first is the low one
    save_file({"before": np.arange(5, dtype="i1"), "X": X}, tmp_path / "X.safetensors")
    vectors = open_vectors(tmp_path / "X.safetensors", "X")
    assert vectors.kind == str(X.dtype)
    np.testing.assert_array_equal(vectors.take(range(N)), X)


@pytest.mark.parametrize("kind", ["u1", *(f"{end}{kind}" for end in "<>" for kind in NUMPYS)])
def test_numpys_numbers_are_read_in_the_order_of_bytes_that_they_have(tmp_path, kind):
    np.save(tmp_path / "X.npy", np.abs(WHOLE).astype(kind))
    np.testing.assert_array_equal(open_vectors(tmp_path / "X.npy").take(range(N)), np.abs(WHOLE))


@pytest.mark.parametrize("name", [name for name in FORMS if name not in WHOLE_NUMBERS])
def test_a_number_that_is_not_finite_is_named_by_its_row_in_its_file(tmp_path, name):
    X = WHOLE.copy()
    X[30, 3] = np.nan
    FORMS[name](tmp_path / name, X)
    vectors = open_vectors(tmp_path / name)
    where = r"part-10\.npy row 0 " if name.startswith("shards") else f"{name}.* row 30 "
    for read in (
        lambda: list(vectors.blocks()),
        lambda: list(vectors.blocks(4)),
        lambda: list(vectors.blocks(5, 13)),
        lambda: vectors.take([36, 30, 2]),
        lambda: list(vectors.taken(np.arange(20, 37))),
    ):
        with pytest.raises(InputError, match=where):
            read()
    assert len(vectors.take([29, 31])) == 2, "sound rows are read"


@pytest.mark.parametrize("kind", [pa.float32(), pa.float16(), pa.int8()], ids=str)
def test_a_list_with_a_hole_is_refused(tmp_path, kind):
    rows = pa.array([[1, 2], [3, None], [5, 6]], pa.list_(kind), from_pandas=True)
    pq.write_table(pa.table({"v": rows}), tmp_path / "hole.parquet")
    with pytest.raises(
        InputError, match=r"hole\.parquet row 1 has a null at 1 among its 2 numbers"
    ):
        list(open_vectors(tmp_path / "hole.parquet").blocks())


@pytest.mark.parametrize(
    "first, second, words",
    [
        (None, [1.0, 2.0], "row 0 holds no list of numbers: drop"),
        ([], [1.0, 2.0], "row 0 is empty: drop"),
        ([1.0, 2.0], [1.0], "row 1 has 1 numbers, row 0 has 2: drop"),
    ],
)
def test_what_is_wrong_with_a_row_of_parquet_is_told(tmp_path, first, second, words):
    rows = pa.array([first, second, [5.0, 6.0]], pa.list_(pa.float32()))
    pq.write_table(pa.table({"v": rows}), tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=words):
        list(open_vectors(tmp_path / "rows.parquet").blocks())


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_texts_of_every_kind_that_arrow_has_name_rows(tmp_path, kind):
    named = pa.array(["a", None, "c"], kind)
    pq.write_table(pa.table({"id": named, "v": [[1.0], [2.0], [3.0]]}), tmp_path / "X.parquet")
    assert open_vectors(tmp_path / "X.parquet").ids(0, 3) == ["a", None, "c"]


def test_a_column_is_named_where_there_are_several(tmp_path):
    np.savez(tmp_path / "two.npz", a=WHOLE, b=-WHOLE)
    parquet(tmp_path / "two.parquet", -WHOLE, a=pa.array(WHOLE.tolist()))
    lines(tmp_path / "two.jsonl", [{"a": x, "b": x[::-1]} for x in WHOLE.tolist()])
    save_file({"a": WHOLE, "b": -WHOLE}, tmp_path / "two.safetensors")
    for form in ("npz", "parquet", "jsonl", "safetensors"):
        assert (open_vectors(tmp_path / f"two.{form}", "a").take(range(N)) == WHOLE).all()
        with pytest.raises(InputError, match=r"are each .*: name one by --column"):
            open_vectors(tmp_path / f"two.{form}")
        with pytest.raises(InputError, match="'c' is not a "):
            open_vectors(tmp_path / f"two.{form}", "c")


def header_of(shape, by_columns=False):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header,
        {"descr": "<f8", "fortran_order": by_columns, "shape": shape},
    )
    return header.getvalue()


def cut(path, write, keep):
    write(path, WHOLE)
    path.write_bytes(path.read_bytes()[:keep])


FAULTS = {
    "no.npy": (lambda p: None, "no file"),
    "x.txt": (lambda p: p.write_text("1 2"), r"not from '\.txt'"),
    "empty.npy": (lambda p: p.touch(), "not a whole .npy"),
    "wide.npy": (lambda p: p.write_bytes(header_of((1, 2**40))), "ends before row 0"),
    "none.npy": (lambda p: np.save(p, WHOLE[:0]), r"shape \(0, 12\): expected at least one row"),
    "flat.npy": (lambda p: np.save(p, WHOLE[0]), "expected a matrix"),
    "text.npy": (lambda p: np.save(p, np.array([["a"]])), "expected numbers"),
    "object.npy": (lambda p: np.save(p, np.array([[None]])), "Python objects"),
    "cut.npy": (lambda p: cut(p, FORMS["f4.npy"], 400), "not a whole|ends before"),
    "zip.npy": (lambda p: np.savez(p.open("wb"), X=WHOLE), "not a whole .npy"),
    "plain.npz": (lambda p: np.save(p.open("wb"), WHOLE), "not a whole .npz"),
    "other.npz": (
        lambda p: (np.savez(p, X=WHOLE), p.write_bytes(p.read_bytes().replace(ROW, ROW[::-1]))),
        "whole .npz",
    ),
    "zip.npz": (lambda p: p.write_bytes(b"PK\x03\x04"), "not a whole .npz"),
    "words.npz": (lambda p: np.savez(p, X=np.array([["a"]])), "expected numbers"),
    "header.safetensors": (lambda p: p.write_bytes(b"12345678123"), "not a whole safetensors"),
    "cut.safetensors": (lambda p: cut(p, safetensors_bf16, 400), "not a whole safetensors"),
    "flat.safetensors": (lambda p: save_file({"a": WHOLE[0].copy()}, p), "none of a is a matrix"),
    "not.parquet": (lambda p: p.write_bytes(b"PAR1"), "not a whole parquet"),
    "ids.parquet": (lambda p: pq.write_table(pa.table({"id": [1]}), p), "none of id is a list"),
    "ragged.parquet": (
        lambda p: pq.write_table(pa.table({"v": [[1.0, 2.0]] * 6 + [[1.0]]}), p),
        "row 6 has 1 numbers, row 0 has 2",
    ),
    "empty.parquet": (
        lambda p: pq.write_table(pa.table({"v": pa.array([[]], pa.list_(pa.float32()))}), p),
        "row 0",
    ),
    "hole.parquet": (
        lambda p: pq.write_table(pa.table({"v": [[1.0, 2.0], [1.0, None]]}), p),
        "row 1 has a null at 1 among its 2 numbers",
    ),
    "null.parquet": (
        lambda p: pq.write_table(pa.table({"v": [[1.0, 2.0], None]}), p),
        "row 1 holds no list of numbers",
    ),
    "zero.parquet": (lambda p: parquet(p, WHOLE[:0]), "at least one"),
    "cut.fvecs": (lambda p: cut(p, FORMS["vectors.fvecs"], 100), "no file of rows of 12 numbers"),
    "wrong.fvecs": (
        lambda p: raw(p, b"", np.array([2, 0, 0, 3, 0, 0], "<i4")),
        "a row from 0 on has not the length 2",
    ),
    "empty.bvecs": (lambda p: p.touch(), "no file of rows of 0 numbers"),
    "empty.jsonl": (lambda p: p.touch(), "is empty"),
    "bad.jsonl": (lambda p: p.write_text("[1, 2]\n[1, 2"), "row 1 is not valid JSON"),
    "deep.jsonl": (lambda p: p.write_text("[1, 2]\n" + DEEP), "row 1 is not valid JSON"),
    "ragged.jsonl": (lambda p: lines(p, [[1, 2], [1]]), "row 1 has 1 numbers, row 0 has 2"),
    "lacking.jsonl": (
        lambda p: lines(p, [{"v": [1, 2]}, {"v": None}]),
        "row 1 holds no list of numbers under 'v'",
    ),
    "words.jsonl": (lambda p: lines(p, [{"text": "a"}]), "none of text is a list"),
    "nan.npy": (lambda p: np.save(p, BROKEN), "row 7 holds NaN"),
    "nan.parquet": (lambda p: parquet(p, BROKEN), "row 7 holds NaN"),
    "long.jsonl": (
        lambda p: p.write_text(f"[1, 2]\n[1, 1{'0' * 400}]"),
        "row 1 holds NaN or an infinite",
    ),
    "nan.jsonl": (lambda p: p.write_text("[1, 2]\n[1, NaN]"), "row 1 holds NaN"),
    "beyond.npy": (lambda p: np.save(p, WHOLE * 1e60), "holds NaN or an infinite"),
    "negative.npy": (
        lambda p: p.write_bytes(header_of((-3, 2))),
        r"shape \(-3, 2\): expected at least one row",
    ),
    "negative.columns.npy": (
        lambda p: p.write_bytes(header_of((3, -2), True)),
        "expected at least one row",
    ),
    "matrices.parquet": (
        lambda p: tensors(p, WHOLE, [3, 4]),
        r"none of id, v is .*; v holds a tensor of shape \[3, 4\] in each row",
    ),
    "bytes.parquet": (
        lambda p: pq.write_table(pa.table({"v": [row.tobytes() for row in WHOLE]}), p),
        r"; v looks like bytes of numbers: decode each, np\.frombuffer\(v, '<f4'\)",
    ),
    "wide.parquet": (
        lambda p: pq.write_table(pa.table({f"x{i}": WHOLE[:, i] for i in range(D)}), p),
        r"columns of single numbers are not read as one vector: make a matrix of them, np\.save",
    ),
    "wide.jsonl": (
        lambda p: lines(p, [dict(zip("abcdefghijkl", x, strict=True)) for x in WHOLE]),
        "make a matrix",
    ),
    "base64.jsonl": (
        lambda p: lines(p, [{"id": 1, "v": base64.b64encode(x.tobytes()).decode()} for x in WHOLE]),
        r"none of id, v is .*; v looks like base64 of numbers: decode each, "
        r"np\.frombuffer\(base64\.b64decode\(v\)",
    ),
    "words.parquet": (
        lambda p: pq.write_table(pa.table({"v": ["[1, 2]", "one, two"]}), p),
        "row 1 holds no list of numbers",
    ),
    "bytes_for_text.parquet": (
        lambda p: pq.write_table(pa.table({"v": pa.array([b"[1, \xff"]).view(pa.string())}), p),
        "is not a whole parquet file .*utf-8",
    ),
    "words_spelt.jsonl": (
        lambda p: lines(p, [{"v": "[1, 2]"}, {"v": "[1, two]"}]),
        "row 1 holds no list of numbers",
    ),
    "deep_spelt.jsonl": (
        lambda p: lines(p, [{"v": "[1, 2]"}, {"v": DEEP}]),
        "row 1 holds no list of numbers",
    ),
    "twice.jsonl": (
        lambda p: p.write_text('{"v": [1, 2]}\n{"v": [1, 2], "v": [3, 4]}\n'),
        r"row 1 is not valid JSON \(the field 'v' occurs twice\)",
    ),
    "twice.parquet": (
        lambda p: pq.write_table(pa.table([pa.array([[1.0]])] * 2, names=["v", "v"]), p),
        "the column 'v' occurs twice; expected every column once",
    ),
    "cut.fbin": (
        lambda p: cut(p, FORMS["vectors.fbin"], 400),
        "of 400 bytes is no file of 37 rows of 12 numbers",
    ),
    "long.fbin": (
        lambda p: raw(p, np.array([1, 2], "<u4").tobytes(), np.zeros(3, "<f4")),
        "no file of 1 rows of 2",
    ),
    "empty.u8bin": (lambda p: p.touch(), "no file of 0 rows of 0 numbers"),
    "none.ibin": (lambda p: counted(p, WHOLE[:0], "<i4"), "at least one row"),
    "cut.jsonl.gz": (
        lambda p: cut(p, FORMS["packed.jsonl.gz"], 90),
        "ends in the middle of its gzip stream",
    ),
    "plain.jsonl.gz": (lambda p: p.write_text("[1, 2]"), "is not gzip"),
    "empty.jsonl.gz": (lambda p: gzipped(p, []), "is empty: expected one vector"),
    "ragged.jsonl.gz": (lambda p: gzipped(p, [[1, 2], [1]]), "row 1 has 1 numbers, row 0 has 2"),
    "ids.npz": (
        lambda p: np.savez(p, ids=np.arange(3), names=np.array(list("abc"))),
        "none of ids, names is a matrix",
    ),
    "objects.npz": (lambda p: np.savez(p, X=np.array([[None]])), "holds Python objects"),
    "sparse.npz": (
        lambda p: save_npz(p, csr_matrix(WHOLE)),
        r"looks like a sparse matrix: save a plain one, .*load_npz\('.*'\)\.toarray\(\)",
    ),
    "table.csv": (
        lambda p: p.write_text("1,2"),
        r"make a matrix of its numbers, np\.save\('X\.npy', pd\.read_csv",
    ),
    "spelt.csv": (
        lambda p: p.write_text('id,v\na,"[1, 2]"\n'),
        r"where one column spells lists write it as parquet, .*to_parquet\('X\.parquet'\)",
    ),
    "table.csv.gz": (
        lambda p: p.write_text("1,2"),
        r"not from '\.csv\.gz'; make a matrix of its numbers",
    ),
    "words.vec": (
        lambda p: p.write_text("a 1 2"),
        r"make a matrix of its numbers, .* by usecols without words",
    ),
    "ann.HDF5": (lambda p: p.write_text("x"), r"h5py\.File\('.*ann\.HDF5'\)\['train'\]"),
    "X.npy.gz": (lambda p: p.write_text("x"), "unpack it first"),
    "X.pkl": (lambda p: p.write_text("x"), "save plain numbers"),
    "X.pt": (lambda p: p.write_text("x"), "save plain numbers"),
    "X.json": (lambda p: p.write_text("[[1, 2]]"), "on a line of its own, jq"),
    "X.arrow": (lambda p: p.write_text("x"), "to_parquet"),
    "X.faiss": (lambda p: p.write_text("x"), "reconstruct_n"),
    "huge.npy": (lambda p: np.save(p, WHOLE * 1e20), "divide it by its largest"),
    "nothing": (lambda p: p.mkdir(), "holds no file of vectors"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_wrong_with_a_file_is_told(tmp_path, name):
    make, words = FAULTS[name]
    make(tmp_path / name)
    with pytest.raises(InputError, match=words):
        list(open_vectors(tmp_path / name).blocks())


X_AT = {"dtype": "F32", "shape": [3, 2], "data_offsets": [0, 24]}
LIES = {
    "a negative offset": {"X": X_AT | {"data_offsets": [-24, 0]}},
    "an offset that is no whole number": {"X": X_AT | {"data_offsets": [0.0, 24]}},
    "an end before the begin": {"X": X_AT | {"data_offsets": [24, 0]}},
    "fewer bytes than the shape needs": {"X": X_AT | {"data_offsets": [0, 20]}},
    "more bytes than the file has": {"X": X_AT | {"shape": [6, 2], "data_offsets": [0, 48]}},
    "bytes of another tensor": {"X": X_AT, "Y": X_AT | {"data_offsets": [12, 36]}},
    "bytes that belong to none": {"X": X_AT | {"data_offsets": [8, 32]}},
    "a shape that is no whole number": {"X": X_AT | {"shape": [3.0, 2]}},
    "a shape whose product is beyond counting": {"X": X_AT | {"shape": [2**40, 2**40]}},
    "an unknown kind of number": {"X": X_AT | {"dtype": "F23"}},
    "a kind that is no text": {"X": X_AT | {"dtype": ["F32"]}},
    "no offsets": {"X": {"dtype": "F32", "shape": [3, 2]}},
    "a tensor that is a number": {"X": 24},
    "a list": [X_AT],
}
"""What a header of safetensors may claim of 24 bytes."""


@pytest.mark.parametrize("lie", LIES)
def test_a_header_of_safetensors_that_lies_is_refused(tmp_path, lie):
    header = json.dumps(LIES[lie]).encode()
    raw(tmp_path / "X.safetensors", struct.pack("<Q", len(header)) + header, np.zeros(6, "<f4"))
    with pytest.raises(InputError, match=r"X\.safetensors is not a whole safetensors file"):
        open_vectors(tmp_path / "X.safetensors")


@pytest.mark.parametrize("length", [0, 7, 10**6, 2**40, 2**64 - 1])
def test_a_header_of_safetensors_that_is_not_as_long_as_said_is_refused(tmp_path, length):
    header = json.dumps({"X": X_AT}).encode()
    raw(tmp_path / "X.safetensors", struct.pack("<Q", length) + header, np.zeros(6, "<f4"))
    with pytest.raises(InputError, match="is not a whole safetensors file"):
        open_vectors(tmp_path / "X.safetensors")


HEADERS = {
    "a deep list": DEEP,
    "a deep note": '{"__metadata__": ' + DEEP,
    "a deep tensor": '{"X": ' * 100_000,
    "other bytes": "\xff",
}


@pytest.mark.parametrize("kind", HEADERS)
def test_a_header_of_safetensors_that_is_no_json_or_too_deep_is_refused(tmp_path, kind):
    content = HEADERS[kind].encode("latin-1")
    raw(tmp_path / "X.safetensors", struct.pack("<Q", len(content)) + content, np.zeros(6, "<f4"))
    with pytest.raises(InputError, match="is not a whole safetensors file"):
        open_vectors(tmp_path / "X.safetensors")


def test_a_tensor_behind_others_of_any_kind_is_read_where_it_lies(tmp_path):
    others = {"a": np.arange(5), "b": np.ones((2, 3), bool), "c": np.zeros((0, 4))}
    save_file({**others, "X": WHOLE, "z": np.arange(3)}, tmp_path / "X.safetensors")
    assert (open_vectors(tmp_path / "X.safetensors", "X").take(range(N)) == WHOLE).all()


def npz_of_shape(path, shape):
    """A few bytes that claim to be an array of any shape."""
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("X.npy", header_of(shape))


def out_of_memory(error):
    def raising(*_, **__):
        raise error

    return raising


def test_where_memory_is_short_no_file_is_called_damaged(tmp_path, monkeypatch):
    npz_of_shape(tmp_path / "X.npz", (10**7, 10**7))  # More than any machine can address
    with pytest.raises(
        InputError,
        match=r"not enough memory to read .*X\.npz \(Unable to allocate .* TiB",
    ):
        open_vectors(tmp_path / "X.npz")
    parquet(tmp_path / "X.parquet", WHOLE)
    opened = open_vectors(tmp_path / "X.parquet")
    kinds = (
        MemoryError(),
        pa.ArrowMemoryError("malloc of size 9 failed"),
        OSError(errno.ENOMEM, "no more"),
    )
    words = pa.ArrowException(
        f"Unknown error: Failed to launch worker thread: {os.strerror(errno.EAGAIN)}"
    )
    for error in (*kinds, words):
        monkeypatch.setattr("pyarrow.parquet.ParquetFile.iter_batches", out_of_memory(error))
        with pytest.raises(InputError, match=r"not enough memory to read .*X\.parquet"):
            opened.take([0])
    # Arrow gives no number
    mapping = OSError(f"Memory mapping file failed: {os.strerror(errno.ENOMEM)}")
    for error in (*kinds, mapping):
        monkeypatch.setattr("pyarrow.parquet.ParquetFile", out_of_memory(error))
        with pytest.raises(InputError, match=r"not enough memory to read .*X\.parquet"):
            open_vectors(tmp_path / "X.parquet")
    FORMS["columns.npy"](tmp_path / "F.npy", WHOLE)
    monkeypatch.setattr("numpy.memmap", out_of_memory(OSError(errno.ENOMEM, "no more")))
    with pytest.raises(InputError, match=r"not enough memory to read .*F\.npy"):
        open_vectors(tmp_path / "F.npy")


@pytest.mark.parametrize("gap, stretch", [(1, 1), (40, 2), (400, 3), (10**6, 1)])
def test_rows_read_at_once_with_others_between_are_those_asked_for(
    tmp_path, monkeypatch, gap, stretch
):
    monkeypatch.setattr(files, "GAP", gap)
    monkeypatch.setattr(files, "STRETCH", stretch)
    X = np.arange(600, dtype=np.float32).reshape(200, 3)
    np.save(tmp_path / "X.npy", X)
    vectors = open_vectors(tmp_path / "X.npy")
    rng = np.random.default_rng(0)
    for count in (1, 5, 60, 200):
        rows = rng.choice(200, count, replace=False)
        np.testing.assert_array_equal(vectors.take(rows), X[rows])
    whole = (tmp_path / "X.npy").read_bytes()
    (tmp_path / "X.npy").write_bytes(whole[:-30])
    with pytest.raises(InputError, match="is cut short"):
        vectors.take([100, 150, 199])


def test_a_huge_file_of_rows_is_read_without_being_mapped(tmp_path, monkeypatch):
    rows = 10**6
    with (tmp_path / "X.npy").open("wb") as file:
        file.write(header_of((rows, 1000)))
        file.truncate(file.tell() + 8000 * rows)  # A hole, which takes no room on the disk
    monkeypatch.setattr("numpy.memmap", out_of_memory(OSError(errno.ENOMEM, "no more")))
    assert not open_vectors(tmp_path / "X.npy").take([0, rows - 1]).any()


def test_a_header_of_numpy_that_python_cannot_parse_is_damage_and_no_lack_of_memory(tmp_path):
    header = (
        "{'descr': '<f4', 'fortran_order': False, 'shape': (" + "-" * 9000 + "3, 2)}"
    ).encode()
    raw(
        tmp_path / "X.npy",
        b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header,
        np.zeros(6, "<f4"),
    )
    with pytest.raises(InputError, match=r"not a whole \.npy file"):
        open_vectors(tmp_path / "X.npy")


DOUBLES, SINGLES = ("f8.npy", "columns.npy", "one.npz", "field.jsonl"), ("f4.npy", "list.parquet")


@pytest.mark.parametrize(
    ("name", "scale"),
    [*product(DOUBLES, (1e-14, 1e-42, 1e-60)), *product(SINGLES, (1e-14, 1e-42))],
)
def test_rows_of_which_single_precision_knows_no_length_are_named_and_never_taken_for_zeros(
    tmp_path,
    name,
    scale,
):
    X = WHOLE.copy()
    X[7] *= scale
    FORMS[name](tmp_path / name, X)
    with pytest.raises(InputError, match="row 7 holds no number beyond"):
        open_vectors(tmp_path / name).take([3, 7])
    with pytest.raises(InputError, match="row 7 holds no number beyond"):
        list(open_vectors(tmp_path / name).blocks(5))


def test_rows_of_zeros_and_rows_that_are_small_are_read(tmp_path):
    X = np.stack([WHOLE[0], 0 * WHOLE[0], 1e-11 * WHOLE[0]])
    np.save(tmp_path / "X.npy", X)
    np.testing.assert_array_equal(
        open_vectors(tmp_path / "X.npy").take(range(3)),
        X.astype(np.float32),
    )


def test_shards_must_be_of_one_form_and_width(tmp_path):
    np.save(tmp_path / "a.npy", WHOLE)
    np.save(tmp_path / "b.npy", WHOLE[:, :5])
    with pytest.raises(InputError, match=r"b\.npy has 5 columns.*expected shards of one width"):
        open_vectors(tmp_path)
    parquet(tmp_path / "c.parquet", WHOLE)
    with pytest.raises(InputError, match=r"files of the forms \.npy, \.parquet"):
        open_vectors(tmp_path)
    with pytest.raises(InputError, match="rows 0 to 37 of embeddings: expected 0 to 36"):
        in_memory(WHOLE).take([37, 0])


@pytest.mark.parametrize(
    "other, mixed", [("i1", True), ("i4", True), ("f2", False), ("f8", False), (">i2", True)]
)
def test_whole_numbers_and_floats_are_no_shards_of_one_matrix(tmp_path, other, mixed):
    np.save(tmp_path / "a-0.npy", WHOLE.astype("f4"))
    np.save(tmp_path / "a-1.npy", WHOLE.astype(other))
    if not mixed:
        assert open_vectors(tmp_path).shape == (2 * N, D)
        return
    with pytest.raises(
        InputError, match=r"a-0\.npy holds float32, .*a-1\.npy int\d+: .* two scales"
    ):
        open_vectors(tmp_path)


def test_whole_numbers_with_and_without_a_sign_are_no_shards_of_one_matrix(tmp_path):
    parquet(tmp_path / "a-0.parquet", WHOLE.astype(int), pa.list_(pa.int8()))
    parquet(tmp_path / "a-1.parquet", abs(WHOLE).astype(int), pa.list_(pa.uint8()))
    with pytest.raises(InputError, match=r"a-0\.parquet holds int8, .*a-1\.parquet uint8"):
        open_vectors(tmp_path)


def test_what_lies_beside_shards_is_left_aside_with_a_warning_and_a_shard_never_is(
    tmp_path,
    caplog,
):
    shards_and_more(tmp_path / "X", WHOLE)
    assert open_vectors(tmp_path / "X").shape == (N, D)
    assert (
        "4 files without a matrix left aside: ids.npy, metadata.jsonl, metadata.parquet"
        in caplog.text
    )
    np.save(tmp_path / "X" / "part-3.npy", WHOLE[12])  # A row that has lost its axis
    with pytest.raises(InputError, match=r"part-3\.npy has shape \(12,\)"):
        open_vectors(tmp_path / "X")
    (tmp_path / "Y").mkdir()
    np.save(tmp_path / "Y" / "ids.npy", np.arange(3))
    with pytest.raises(InputError, match=r"ids\.npy has shape \(3,\): expected a matrix"):
        open_vectors(tmp_path / "Y")
    (tmp_path / "Y" / "ids.npy").rename(tmp_path / "Y" / "train.h5")
    with pytest.raises(InputError, match=r"holds no file of vectors.*h5py"):
        open_vectors(tmp_path / "Y")


def test_ids_are_known_where_a_column_or_array_names_the_rows(tmp_path):
    numbers, words = list(range(N)), [f"row {i}" for i in range(N)]
    expected = {
        "field.jsonl": numbers,
        "spelt.jsonl": [str(i) for i in numbers],
        "packed.jsonl.gz": numbers,
        "list.parquet": numbers,
        "tensor.parquet": numbers,
        "spelt.parquet": numbers,
        "beside.npz": numbers,
        "shards_and_more": words,
    }
    for name, ids in expected.items():
        FORMS[name](tmp_path / name, WHOLE)
        vectors = open_vectors(tmp_path / name)
        assert vectors.id_column in ("id", "ids"), name
        for start, stop in ((0, N), (9, 11), (36, 37), (10, 20)):
            assert vectors.ids(start, stop) == ids[start:stop], name
    for name in (
        set(FORMS)
        - set(expected)
        - {"fixed.parquet", "half.parquet", "large.parquet", "UPPER.Parquet"}
    ):
        FORMS[name](tmp_path / name, np.abs(WHOLE))
        assert not open_vectors(tmp_path / name).id_column, name
    (tmp_path / "two").mkdir()
    for number, rows in enumerate((slice(0, 20), slice(20, N))):
        lines(
            tmp_path / "two" / f"{number}.jsonl",
            [{"_id": words[i], "v": WHOLE[i].tolist()} for i in numbers[rows]],
        )
    assert open_vectors(tmp_path / "two").ids(18, 23) == words[18:23]


@pytest.mark.parametrize("shape", [(N,), (N, 1), (1, N)], ids=str)
@pytest.mark.parametrize("kind", [np.int64, "U5"], ids=str)
def test_ids_beside_shards_are_read_as_an_array_a_column_or_a_row(tmp_path, shape, kind):
    ids = np.arange(N).astype(kind)
    for name, X in (("wide", WHOLE), ("narrow", WHOLE[:, :1])):
        shards(tmp_path / name, X)
        np.save(tmp_path / name / "ids.npy", ids.reshape(shape))
        vectors = open_vectors(tmp_path / name)
        assert vectors.shape == X.shape and vectors.ids(3, 6) == ids[3:6].tolist()
    (tmp_path / "alone").mkdir()
    (tmp_path / "wide" / "ids.npy").rename(tmp_path / "alone" / "ids.npy")
    with pytest.raises(InputError, match=r"ids\.npy"):
        open_vectors(tmp_path / "alone")


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("ids", np.arange(N - 1)),
        ("ids", np.arange(float(N))),
        ("ids", np.arange(N).astype("S5")),
        ("ids_0", np.arange(3)),
        ("part-0.ids", np.arange(3)[:, None]),
    ],
)
def test_of_ids_that_cannot_be_read_the_file_is_known(tmp_path, name, ids):
    shards(tmp_path / "X", WHOLE)
    np.save(tmp_path / "X" / f"{name}.npy", ids)
    vectors = open_vectors(tmp_path / "X")
    assert (vectors.shape, vectors.id_column, vectors.unread_ids) == (
        WHOLE.shape,
        "",
        f"{name}.npy",
    )


def test_what_has_the_name_of_a_shard_and_is_no_file_is_refused(tmp_path):
    shards(tmp_path / "X", WHOLE)
    odd = tmp_path / "X" / "part-13.npy"
    odd.symlink_to("moved away")
    with pytest.raises(InputError, match=r"part-13\.npy .* is a link that leads nowhere: mend"):
        open_vectors(tmp_path / "X")
    odd.unlink()
    for make in (os.mkfifo, os.mkdir):
        make(odd)
        with pytest.raises(InputError, match=r"part-13\.npy .* is no regular file"):
            open_vectors(tmp_path / "X")
        odd.rename(tmp_path / make.__name__)


def test_shards_whose_names_count_more_than_are_there_are_told(tmp_path, caplog):
    for number in (0, 2):
        np.save(tmp_path / f"x-{number:05d}-of-00003.npy", WHOLE)
    assert open_vectors(tmp_path).shape == (2 * N, D)
    assert "holds 2 of the 3 shards that its names count" in caplog.text
    caplog.clear()
    np.save(tmp_path / "x-00001-of-00003.npy", WHOLE)
    assert open_vectors(tmp_path).shape == (3 * N, D) and not caplog.text


def test_whole_numbers_that_name_rows_are_exact_however_large(tmp_path):
    ids = [2**53 + 1, 10**18 + 1, -7]
    lines(tmp_path / "X.jsonl", [{"id": i, "v": [1, 2.5]} for i in ids])
    vectors = open_vectors(tmp_path / "X.jsonl")
    assert vectors.ids(0, 3) == ids and vectors.take([2]).tolist() == [[1, 2.5]]


def test_a_path_into_objects_is_refused_with_the_words_that_take_it_out(tmp_path):
    lines(
        tmp_path / "X.jsonl",
        [{"id": "a", "response": {"body": {"data": [{"embedding": [1, 2]}]}}}],
    )
    with pytest.raises(
        InputError,
        match=r"jq -c '\.response\.body\.data\[0\]\.embedding' .*X\.jsonl",
    ):
        open_vectors(tmp_path / "X.jsonl", "response.body.data.0.embedding")
    pq.write_table(pa.table({"a": [{"b": [1.0, 2.0]}]}), tmp_path / "X.parquet")
    with pytest.raises(InputError, match="fields of fields are not read"):
        open_vectors(tmp_path / "X.parquet", "a.b")
