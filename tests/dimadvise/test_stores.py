"""What each vector store holds, how it compares, and what is pasted into it."""

import json
import sys
from contextlib import nullcontext
from dataclasses import replace
from unittest.mock import MagicMock
from urllib.error import HTTPError

import numpy as np
import pyarrow as pa
import pytest

from deployment import deployed, rows, surveyed
from dimadvise import deploy
from dimadvise.apply import apply
from dimadvise.coding import MENU, SIMILARITIES, Deployment
from dimadvise.deploy import read
from dimadvise.loading import batches
from dimadvise.stores import (
    STORES,
    check_store,
    codes_queries,
    filled_by,
    holds,
    levels_of,
    paste,
)
from dimadvise.transform import Transform, unchanged
from dimadvise.vectors import in_memory
from dimadvise.ways import Ways, fitted
from repro.types import InputError, unit_rows
from shown_code import on_page
from stand_ins import elasticsearch, weaviate

NAMED = (
    "pgvector",
    "qdrant",
    "lancedb",
    "weaviate",
    "milvus",
    "elasticsearch",
    "usearch",
    "sqlite-vec",
    "faiss",
)


def test_nine_stores_are_known_and_each_record_speaks_of_levels_and_similarities_alone():
    assert tuple(STORES) == NAMED
    for record in STORES.values():
        types = set(record["types"])
        assert types <= set(MENU) and set(record["coded"]) <= types
        assert set(record["limits"]) <= types
        assert set(record["metrics"]) <= {*SIMILARITIES, "binary"}


@pytest.mark.parametrize("store", NAMED)
@pytest.mark.parametrize("rerank", [0, 4])
def test_what_is_pasted_names_the_size_and_as_many_candidates_as_were_measured(store, rerank):
    for level in levels_of(store):
        named = "pq7" if level == "pq" else level
        pasted = paste(store, replace(deployed(level=named), rerank=rerank))
        assert "$" not in pasted.replace("$1", "").replace("$2", "")
        assert ("40" if rerank else "10") in pasted
        assert store == "faiss" or "21" in pasted or (level == "binary" and "3" in pasted)
    if store == "pgvector":
        table = paste(store, deployed(level="float16"))
        assert "halfvec(21)" in table and "halfvec_cosine_ops" in table and "<=> $1" in table


def test_full_vectors_wider_than_a_column_of_postgres_are_left_to_the_reader():
    """It refuses the type `vector(16001)`."""
    for width, rescored in ((16000, True), (16001, False)):
        narrow = Transform(
            "svd", 8, np.zeros((width, 8), np.float32), np.zeros(8, np.float32), True
        )
        pasted = paste("pgvector", Deployment(narrow, "cosine", rerank=4))
        assert (f"whole vector({width})" in pasted) == rescored
        assert ("Then order the 40 candidates" in pasted) != rescored


@pytest.mark.parametrize(
    ("store", "similarity", "levels", "words"),
    [
        ("pgvector", "cosine", ["int8"], "pgvector holds no int8: expected vector"),
        ("sqlite-vec", "ip", [], "sqlite-vec does not rank by ip: expected cosine, l2"),
        ("oracle", "cosine", [], "unknown store 'oracle'"),
    ],
)
def test_what_a_store_cannot_do_is_refused_in_a_sentence(store, similarity, levels, words):
    with pytest.raises(InputError) as refused:
        check_store(store, similarity, levels)
    assert words.replace("expected vector", "expected float32") in str(refused.value)


def test_sizes_beyond_what_a_store_indexes_and_odd_bits_are_not_tried():
    assert holds("pgvector", 2000, "float32") and not holds("pgvector", 2001, "float32")
    assert holds("pgvector", 2001, "float16") and not holds("faiss", 8, "int6")
    assert holds("pgvector", 21, "binary") and not holds("usearch", 21, "binary")
    assert holds("faiss", 64, "pq8") and not holds("qdrant", 64, "pq8")
    made = Ways(in_memory(rows(200)), np.arange(200), "cosine", 0, store="usearch")
    tried = made.all(["svd"], [], [40, 20, 16])
    assert {level for *_, level in tried} == {"float32", "float16", "int8", "binary"}
    assert {dim for _, dim, level in tried if level == "binary"} == {40, 16}
    with pytest.raises(InputError, match="usearch holds none of the ways that are tried"):
        made.all(["svd"], ["binary"], [20, 12])


@pytest.mark.parametrize("level", ["int8", "binary"])
def test_codes_are_compared_with_codes_where_the_store_does_so(level):
    """Signs by Hamming's distance, numbers of eight bits by their products."""
    X = rows(300)
    made = Ways(in_memory(X), np.arange(300), "cosine", 0, store="usearch").way("svd", 24, level)
    assert made.symmetric and codes_queries("usearch", level)
    codes, asked = made.codes(X), made.codes(X[:5])
    scores = made.queries(X[:5]) @ made.stored(X).T
    if level == "binary":
        differing = np.unpackbits(asked[:, None] ^ codes, axis=2)[:, :, :24].sum(2)
        np.testing.assert_array_equal(scores, 24 - 2.0 * differing)
    else:
        assert codes.dtype == np.int8
        products = asked.astype(np.int64) @ codes.T.astype(np.int64)
        np.testing.assert_allclose(scores, products * made.codebook.step[0] ** 2, atol=1e-5)


def test_symmetric_codes_have_one_scale_and_no_offset_and_are_read_again(tmp_path):
    Y = Deployment(unchanged(40), "cosine").vectors(rows(200))
    made = fitted(unchanged(40), "cosine", "int8", Y, symmetric=True)
    assert np.ptp(made.codebook.step) == 0
    assert (made.codes(-rows(9)) == -made.codes(rows(9))).all()
    deploy.write(tmp_path, made)
    again = read(tmp_path)
    assert again.symmetric
    np.testing.assert_array_equal(again.codes(rows(9)), made.codes(rows(9)))


def test_hamming_finds_fewer_than_queries_that_stay_floats_and_it_is_measured():
    X = rows(1500)
    given = {"methods": ["svd"], "levels": ["binary"], "dims": [40]}
    recalls = {}
    for store in ("", "usearch"):
        options = surveyed(in_memory(X), **given, store=store).options
        recalls[store] = options.query("level == 'binary' and rerank == 0")["recall@10"].item()
    assert recalls["usearch"] < recalls[""] - 0.03


def test_what_is_pasted_for_faiss_runs_as_it_stands(tmp_path, repro):
    X = rows(400)
    np.save(tmp_path / "X.npy", X)
    given = ("--store", "faiss", "--recall", 0.8, "--output", tmp_path / "my advice")
    told = repro("advise", tmp_path / "X.npy", *given).out
    code = told[told.index("from dimadvise") :]
    names = {"X": X, "Q": X[:7]}
    exec(code.replace("index.search", "found = index.search"), names)
    assert (names["found"][1][:, 0] == np.arange(7)).mean() > 0.5, "rows find themselves"


def test_what_is_pasted_for_faiss_rescores_by_itself(tmp_path):
    made, X = replace(deployed(level="binary"), rerank=4), rows(400)
    deploy.write(tmp_path, made)
    code = paste("faiss", made, str(tmp_path))
    names = {"X": X, "Q": X[:9]}
    exec(code.replace("index.search", "found = index.search"), names)
    cosines, places = names["found"]
    full = unit_rows(X)
    expected = np.einsum("ij,ikj->ik", full[:9], full[places])
    np.testing.assert_allclose(cosines, expected, atol=1e-5)
    assert places.shape == (9, 10) and "Then order" not in code


def test_the_answer_for_a_store_ends_in_what_to_paste(tmp_path, repro):
    np.save(tmp_path / "X.npy", rows(400))
    out = tmp_path / "out"
    told = repro(
        "advise", tmp_path / "X.npy", "--store", "pgvector", "--recall", 0.8, "--output", out
    ).out
    note = json.loads((out / "reducer.json").read_text())
    assert note["level"] in ("float32", "float16", "binary")
    assert "LIMIT 10;\n\n# In Python" in told and "CREATE TABLE" in told
    assert told.rstrip().splitlines()[-1].startswith("    return [id for (id,) in db.execute(ask")
    assert "SET hnsw.ef_search = 200;" in told, "an index gives no more rows than it has searched"
    X = tmp_path / "X.npy"
    assert f"`dimadvise apply {X} --advice {out}` writes its rows" in " ".join(told.split())
    page = (out / "report.html").read_text()
    assert "CREATE TABLE" in page and "def nearest(q):" in page
    refused = repro(
        "advise", tmp_path / "X.npy", "--store", "weaviate", "--levels", "int4", ends=2
    ).err
    assert "weaviate holds no int4: expected float32" in " ".join(refused.split())


ENGINES = (
    "lancedb",
    "pgvector",
    "pgvector.psycopg",
    "psycopg",
    "pymilvus",
    "qdrant_client",
    "sqlite3",
    "sqlite_vec",
    "usearch.index",
)
"""Modules that printed code imports; they may be there or not."""


def printed_python(pasted):
    """What a program is given of it."""
    words, _, python = pasted.partition("# In Python")
    return f"#{python}" if python else words


@pytest.mark.parametrize(
    "store", ["pgvector", "qdrant", "lancedb", "milvus", "usearch", "sqlite-vec"]
)
@pytest.mark.parametrize("rerank", [0, 4])
def test_printed_python_loads_every_row_by_its_id_and_asks(store, rerank, tmp_path, monkeypatch):
    """Beside stand-ins that take all and find nothing; `bench.stores` asks the engines."""
    for name in ENGINES:
        monkeypatch.setitem(sys.modules, name, MagicMock())
    asked = sys.modules["lancedb"].connect().create_table().search().distance_type().limit()
    asked.to_arrow.return_value = pa.table({"id": [500], "whole": [rows(1)[0]]})
    loaded = []

    def watched(*given, **options):
        for batch in batches(*given, **options):
            loaded.append(batch)
            yield batch

    monkeypatch.setattr("dimadvise.loading.batches", watched)
    X = rows(300)
    np.savez(tmp_path / "X.npz", vectors=X, ids=np.arange(500, 800))
    for level in levels_of(store):
        made = Ways(in_memory(X), np.arange(300), "cosine", 0, store=store).way("svd", 24, level)
        made = replace(made, rerank=rerank)
        folder = tmp_path / level
        deploy.write(folder / "advice", made)
        apply(tmp_path / "X.npz", folder / "advice", folder / "vectors")
        monkeypatch.chdir(folder)
        pasted = paste(store, made)
        names = {}
        exec(printed_python(pasted), names)
        assert isinstance(names["nearest"](X[0]), list)
        (batch,) = loaded
        assert batch.ids == list(range(500, 800))
        np.testing.assert_array_equal(batch.codes, made.codes(X))
        rescored = bool(rerank and STORES[store]["again"])
        assert (batch.full is not None) == rescored
        assert ("Then order" in pasted) == (bool(rerank) and not rescored)
        loaded.clear()


def loaded(store, printed, monkeypatch, address):
    """The function that printed code defines once it has loaded a stand-in."""
    if store == "weaviate":
        for name, module in weaviate().items():
            monkeypatch.setitem(sys.modules, name, module)
    names = {}
    exec(printed_python(printed).replace("http://localhost:9200", address or "nowhere"), names)
    return names["nearest"]


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize(
    ("store", "level"),
    [
        ("weaviate", "float32"),
        ("elasticsearch", "float32"),
        ("elasticsearch", "int8"),
        ("elasticsearch", "binary"),
    ],
)
@pytest.mark.parametrize("rerank", [0, 4])
def test_printed_python_finds_in_a_stand_in_what_the_advice_finds(
    store, level, similarity, rerank, tmp_path, monkeypatch
):
    """No wheel brings these two: stand-ins refuse what has another form than is documented."""
    X, Q = rows(200), rows(6, seed=5)
    np.savez(tmp_path / "X.npz", vectors=X, ids=np.arange(500, 700))
    made = Ways(in_memory(X), np.arange(200), similarity, 0, store=store).way("svd", 24, level)
    made = replace(made, rerank=rerank)
    deploy.write(tmp_path / "advice", made)
    apply(tmp_path / "X.npz", tmp_path / "advice", tmp_path / "vectors")
    monkeypatch.chdir(tmp_path)
    printed = paste(store, made)
    with elasticsearch(printed) if store == "elasticsearch" else nullcontext() as address:
        nearest = loaded(store, printed, monkeypatch, address)
        found = np.array([nearest(q) for q in Q]) - 500
    assert found.shape == (6, 10)
    is_far, near = similarity == "l2", 0.01 if level == "int8" else 1e-4  # Of rounded numbers
    scores = scores_of(made.queries(Q), made.stored(X), is_far and level != "binary")
    if rerank:
        full = [unit_rows(each) if similarity == "cosine" else each for each in (Q, X)]
        among = np.sort(scores, axis=1)[:, -10 * rerank]
        assert (np.take_along_axis(scores, found, 1) >= among[:, None] - near).all()
        scores = scores_of(*full, is_far)
    own = np.take_along_axis(scores, found, 1)
    assert (np.diff(own) <= (1e-4 if rerank else near)).all(), "the nearest comes first"
    if not rerank:
        np.testing.assert_allclose(own, -np.sort(-scores, axis=1)[:, :10], atol=near)


def scores_of(Q, X, is_far):
    """Of each query and row; the nearer the higher."""
    return -np.linalg.norm(Q[:, None] - X, axis=2) if is_far else Q @ X.T


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('"k": 40', '"kk": 40'),
        ('"_id": str(id)', '"_id": id'),
        ("row.tobytes().hex()", "row.tolist()"),
        ('json.dumps(line) + "\\n"', "json.dumps(line)"),
        ('"query_weight": 0', '"query_weight": 1'),
        ("'whole') + 1", "'whole')"),
        ("application/json", "text/plain"),
    ],
)
def test_the_stand_in_of_elasticsearch_refuses_another_form(right, wrong, tmp_path, monkeypatch):
    X = rows(60)
    np.save(tmp_path / "X.npy", X)
    store = "elasticsearch"
    made = Ways(in_memory(X), np.arange(60), "cosine", 0, store=store).way("svd", 24, "binary")
    made = replace(made, rerank=4)
    deploy.write(tmp_path / "advice", made)
    apply(tmp_path / "X.npy", tmp_path / "advice", tmp_path / "vectors")
    monkeypatch.chdir(tmp_path)
    printed = paste(store, made)
    assert right in printed
    with elasticsearch(printed) as address, pytest.raises(HTTPError, match="400"):
        loaded(store, printed.replace(right, wrong), monkeypatch, address)(X[0])


@pytest.mark.parametrize("rerank", [0, 4])
def test_sql_pasted_whole_leaves_the_index_until_rows_are_loaded(rerank):
    words, python = paste("pgvector", replace(deployed(level="float16"), rerank=rerank)).split(
        "# In"
    )
    run = [line for line in words.splitlines() if not line.startswith("--")]
    assert not any("CREATE INDEX" in line for line in run)
    loading = python.index("copy.write_row")
    assert loading < python.index('db.execute("CREATE INDEX ON items USING hnsw (short halfvec_')


@pytest.mark.parametrize(
    ("store", "number", "text"),
    [
        ("pgvector", "id bigint", "id text PRIMARY KEY"),
        ("pgvector", '"int8"', 'copy.set_types(["text", "halfvec'),
        ("lancedb", "pa.int64()", '("id", pa.string())'),
        ("weaviate", "DataType.INT", "data_type=DataType.TEXT"),
        ("milvus", "DataType.INT64", '"id", DataType.VARCHAR, max_length=512, is_primary=True'),
        ("sqlite-vec", "id integer primary key", "id text primary key"),
    ],
)
@pytest.mark.parametrize("rerank", [0, 4])
def test_ids_that_are_texts_are_pasted_as_texts(store, number, text, rerank):
    level = next(level for level in ("float16", "float32") if level in levels_of(store))
    made = replace(deployed(level=level), rerank=rerank)
    assert number in paste(store, made)
    pasted = paste(store, made, text_ids=True)
    assert number not in pasted and text in pasted


def test_a_file_whose_ids_are_texts_is_answered_by_a_table_for_texts(tmp_path, repro):
    X = rows(300)
    np.savez(tmp_path / "X.npz", vectors=X, ids=np.array([f"row {i}" for i in range(len(X))]))
    given = ["--store", "pgvector", "--recall", 0.8, "--levels", "float16", "--methods", "svd"]
    told = repro("advise", tmp_path / "X.npz", *given, "--output", tmp_path / "out").out
    assert "CREATE TABLE items (id text PRIMARY KEY" in told and 'set_types(["text"' in told
    assert "Queries are compared as pgvector compares them." in told


def test_full_vectors_that_a_store_does_not_keep_are_left_to_its_reader():
    wide = replace(deployed(level="float32"), transform=unchanged(5000), rerank=4)
    assert "# Then order the 40 candidates by the full vectors" in paste("elasticsearch", wide)
    assert "Then order" not in paste("qdrant", wide)


def test_python_that_loads_is_told_of_where_rows_have_to_be_applied():
    assert "The Python below loads them" in filled_by("pgvector", "advice")
    filled = filled_by("weaviate", "my advice", "my vectors.npy")
    assert "`dimadvise apply 'my vectors.npy' --advice 'my advice'` writes its rows" in filled
    assert filled_by("faiss", "advice") == "it takes full vectors and full queries"


def test_a_type_that_is_too_wide_for_the_stores_index_says_so():
    told = on_page("in_your_vector_database", "column_type")["column_type"]
    assert told("vector", 2_000, "float32") == "vector(2000)"
    assert told("vector", 3_072, "float32") == "vector(3072), too wide for its index"
    assert told("bit", 64_000, "binary") == "bit(64000)"
