"""What the advisor promises beside what a faiss index built from its files gives, on vectors that
it did not see.

`python -m bench.promise ENCODER …` does so for encoders of real sentences (REPRO_DATA), encoded
once and kept. Half of the sentences are advised on; the index holds others, as many, and is asked
for the neighbours of others still.
"""

import argparse
import json
import sys
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from bench.timing import BenchRow, alternate
from dimadvise.command import Request, advise
from dimadvise.deploy import faiss_index, read
from dimadvise.findings import in_words
from repro import data
from repro.config import profile
from repro.runs.encoders import load_encoders
from repro.sets import all_texts
from repro.store import Store
from repro.types import unit_rows

TARGETS = (0.95, 0.8, 0.99)
"""recall@10 that is asked for."""
# Product codes take minutes to train
LEVELS: Any = ("float32", "float16", "int8", "int4", "binary")
SETS = (("stsb", "train"), ("trec", "train"), ("stsb", "test"))
QUERIES = 2000
NEAREST = 10


def run(quick: bool) -> list[BenchRow]:
    """Vectors of a known shape: a few strong directions, many weak ones, and a mean that is not
    0.
    """
    rng, D = np.random.default_rng(0), 64
    turn = np.linalg.qr(rng.normal(size=(D, D)))[0] * (np.arange(D) + 1.0) ** -0.5
    X = (rng.normal(size=(4_000 if quick else 20_000, D)) @ turn + 0.1).astype(np.float32)
    return promised(f"{len(X):,} × {D} normal vectors", X, TARGETS[:1] if quick else TARGETS)


def promised(name: str, X: np.ndarray, targets: tuple[float, ...] = TARGETS) -> list[BenchRow]:
    """A row for each recall that is asked for."""
    order = np.random.default_rng(1).permutation(len(X))
    queries = min(QUERIES, len(X) // 4)
    half = (len(X) - queries) // 2
    Q, seen, unseen = (
        np.ascontiguousarray(X[part]) for part in np.split(order, [queries, queries + half])
    )
    exact = faiss.IndexFlatIP(X.shape[1])
    exact.add(unit_rows(unseen))
    rows = []
    for target in targets:
        with tempfile.TemporaryDirectory() as folder:
            np.save(Path(folder) / "seen.npy", seen)
            with redirect_stdout(StringIO()):
                advise(
                    Request(
                        Path(folder) / "seen.npy",
                        recall=target,
                        levels=LEVELS,
                        output=Path(folder) / "advice",
                    )
                )
            rows.append(
                _row(f"{name}, recall {target:g}", Path(folder) / "advice", exact, unseen, Q)
            )
    return rows


def _row(
    work: str,
    advice: Path,
    exact: faiss.IndexFlatIP,
    unseen: np.ndarray,
    Q: np.ndarray,
) -> BenchRow:
    note = json.loads((advice / "reducer.json").read_text(encoding="utf-8"))
    index, deployment = faiss_index(advice), read(advice)
    index.add(unseen)
    works = {
        "ours": lambda: index.search(Q, NEAREST)[1],
        "peer": lambda: exact.search(unit_rows(Q), NEAREST)[1],
    }
    found, seconds = alternate(works, 3)
    hits = [
        len(set(a) & set(b)) / NEAREST for a, b in zip(found["ours"], found["peer"], strict=True)
    ]
    recall, error = float(np.mean(hits)), 1.96 * float(np.std(hits)) / np.sqrt(len(hits))
    value, low, high = note["promised"]["recall@10"]
    within = low - error <= recall <= high + error
    way = {
        "method": deployment.transform.method,
        "dim": deployment.transform.dim,
        "level": deployment.level,
    }
    said = (
        f"promised {value:.4f} [{low:.4f}, {high:.4f}], the index gives {recall:.4f} ± {error:.4f}"
    )
    return BenchRow(
        work=work,
        peer="exact search of all floats",
        goal=None,
        ours_s=seconds["ours"],
        peer_s=seconds["peer"],
        equal=bool(within),
        checked=said,
        columns={"dim": deployment.transform.dim},
        shares={"promised": value, "promised_low": low, "promised_high": high, "given": recall},
        note=f"{in_words(way | {'bytes': deployment.bytes}, Q.shape[1])}, "
        f"{deployment.bytes} bytes, "
        f"re-ranked: {deployment.rerank}; {len(unseen):,} vectors, {len(Q):,} "
        "queries; promised over "
        f"{note['promised']['corpus']:,}, {note['promised']['queries']:,} queries",
    )


def sentences(name: str) -> np.ndarray:
    """Embeddings of distinct real sentences by one encoder, from the store if they are there."""
    (encoder,) = load_encoders([name], profile("embedded"), Store())
    parts = {
        f"{task} {split}": {split: data.load(task, split=split, source="local")}
        for task, split in SETS
    }
    texts = dict.fromkeys(text for own in parts.values() for text in all_texts(list(own.values())))
    return encoder.embed(parts, Store())[list(texts)]


def main() -> int:
    """A line for each encoder and recall; 1 where an index gives another recall than was
    promised.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.promise", description=__doc__)
    parser.add_argument("encoders", nargs="+", metavar="ENCODER", help="name or folder")
    parser.add_argument(
        "--recall",
        nargs="+",
        type=float,
        default=TARGETS,
        help="what is asked for",
    )
    options, kept = parser.parse_args(), True
    for name in options.encoders:
        X = sentences(name)
        for row in promised(
            f"{Path(name).name}, {len(X):,} sentences × {X.shape[1]}",
            X,
            tuple(options.recall),
        ):
            print(
                f"{row.work}: {row.checked}{'' if row.equal else '  NOT KEPT'}\n    {row.note}",
                flush=True,
            )
            kept &= row.equal
    return int(not kept)


if __name__ == "__main__":
    sys.exit(main())
