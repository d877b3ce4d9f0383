"""What real engines find of an advice for them beside what it promised: `python -m bench.stores`.

Each engine that is installed, of `pip install usearch sqlite-vec lancedb qdrant-client`, holds the
vectors or codes of one way for each level that its record names, and is asked for the ten nearest
of fresh queries. Printed is the share of the full vectors' ten that it finds, beside what the
advisor counts by the same comparison; exit 1 where they differ by more than `APART`.
"""

import sqlite3
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from bench.advisor import made_vectors
from dimadvise.coding import Deployment
from dimadvise.search import searched
from dimadvise.stores import STORES, levels_of
from dimadvise.vectors import in_memory
from dimadvise.ways import Ways

ROWS, QUERIES, DIM, SIZE, NEAREST = 4_000, 200, 128, 64, 10
APART = 0.02
Found = Any  # numbers of rows (queries, NEAREST)


def usearch(way: Deployment, X: Any, Q: Any) -> Found:
    """By graph, asked widely enough to be as good as exact."""
    from usearch.index import Index

    record = STORES["usearch"]
    metric = record["metrics"]["binary" if way.level == "binary" else way.similarity]
    dtype = record["types"][way.level]
    index = Index(ndim=way.transform.dim, metric=metric, dtype=dtype, expansion_search=1_000)
    codes = way.codes if way.symmetric else way.vectors
    index.add(np.arange(len(X)), codes(X))
    return index.search(codes(Q), NEAREST).keys


def sqlite_vec(way: Deployment, X: Any, Q: Any) -> Found:
    """By going through all rows."""
    import sqlite_vec as engine

    record = STORES["sqlite-vec"]
    metric = record["metrics"]["binary" if way.level == "binary" else way.similarity]
    wrapped = record["wrapped"][way.level]
    kind = f"{record['types'][way.level]}[{way.transform.dim}]"
    base = sqlite3.connect(":memory:")
    base.enable_load_extension(True)
    engine.load(base)
    base.execute(
        f"CREATE VIRTUAL TABLE items USING vec0(id integer primary key, short {kind}{metric})"
    )
    codes = way.codes if way.symmetric else way.vectors
    rows = [(i, row.tobytes()) for i, row in enumerate(codes(X))]
    base.executemany(f"INSERT INTO items(id, short) VALUES (?, {wrapped})", rows)
    ask = f"SELECT id FROM items WHERE short MATCH {wrapped} AND k = {NEAREST}"
    return np.array([[i for (i,) in base.execute(ask, (q.tobytes(),))] for q in codes(Q)])


def lancedb(way: Deployment, X: Any, Q: Any) -> Found:
    """By going through all rows."""
    import lancedb as engine
    import pyarrow as pa

    record = STORES["lancedb"]
    metric = record["metrics"]["binary" if way.level == "binary" else way.similarity]
    codes = way.codes if way.level != "float32" else way.vectors
    stored = codes(X)
    kind = pa.list_(getattr(pa, record["types"][way.level])(), stored.shape[1])
    short = pa.FixedSizeListArray.from_arrays(pa.array(stored.ravel()), type=kind)
    with tempfile.TemporaryDirectory() as place:
        table = engine.connect(place).create_table(
            "items", pa.table({"id": np.arange(len(X)), "short": short})
        )
        found = []
        for q in codes(Q):
            asked = table.search(q, vector_column_name="short").distance_type(metric)
            found.append(asked.limit(NEAREST).to_arrow()["id"].to_pylist())
    return np.array(found)


def qdrant_client(way: Deployment, X: Any, Q: Any) -> Found:
    """Within this process, where every number is a float."""
    from qdrant_client import QdrantClient, models

    client = QdrantClient(":memory:")
    metric = STORES["qdrant"]["metrics"][way.similarity]
    size = models.VectorParams(size=way.transform.dim, distance=models.Distance(metric))
    client.create_collection("items", vectors_config=size)
    points = [models.PointStruct(id=i, vector=row.tolist()) for i, row in enumerate(way.stored(X))]
    client.upsert("items", points)
    found = []
    for q in way.queries(Q):
        near = client.query_points("items", query=q.tolist(), limit=NEAREST).points
        found.append([point.id for point in near])
    return np.array(found)


ENGINES: dict[str, Callable[[Deployment, Any, Any], Found]] = {
    "usearch": usearch,
    "sqlite-vec": sqlite_vec,
    "lancedb": lancedb,
    "qdrant": qdrant_client,
}


def main() -> int:
    """Ask each engine, and compare."""
    X = np.concatenate(list(made_vectors(ROWS + QUERIES, DIM)))
    X, Q = X[:ROWS], X[ROWS:]
    over = 0
    for store, ask in ENGINES.items():
        if find_spec(ask.__name__) is None:
            print(f"{store}: not installed")
            continue
        if ask is sqlite_vec and not hasattr(sqlite3.Connection, "enable_load_extension"):
            print(f"{store}: this Python's sqlite loads no extensions")
            continue
        made = Ways(in_memory(X), np.arange(ROWS), "cosine", 0, store=store)
        for level in levels_of(store):
            way = made.way("svd", SIZE, level)
            nobody = np.full(len(Q), -1)
            (end,) = searched([made.way(*made.full), way], Q, nobody, [X], NEAREST, [ROWS])
            truth, promised = (_overlap(end.places[0], places) for places in end.places)
            reached = _overlap(end.places[0], ask(way, X, Q))
            over += abs(reached - promised) > APART
            print(f"{store} {level}: promised {promised:.3f}, found {reached:.3f} of {truth:.0f}")
    return int(over > 0)


def _overlap(wanted: Any, found: Any) -> float:
    return float(np.mean([len({*a} & {*b}) / NEAREST for a, b in zip(wanted, found, strict=True)]))


if __name__ == "__main__":
    sys.exit(main())
