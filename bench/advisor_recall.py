"""Do the advisor's intervals cover the recall that all queries have? `python -m bench.advisor_recall [X.npy] [SEEDS]`.

Of 50,000 vectors (or those in a file), each is asked for among all others: exact recall@10 of every way of storing that
an advice measured by 1,000 of them. Without a file the vectors are made. Printed is how often intervals cover, and how
often the way that was recommended has the recall asked for; exit 1 below 93 %.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from bench.advisor import made_vectors
from dimadvise.measure import KS, choose, survey
from dimadvise.search import ranks, searched
from dimadvise.vectors import in_memory, open_vectors
from repro.seeding import cpu_count

ROWS, DIM, ASKED = 50_000, 384, 2_000
OPTIONS: dict[str, Any] = {
    "methods": ["truncate", "svd", "pca-rotated"],
    "levels": ["int8", "int4", "binary"],
    "dims": [384, 192, 96, 48],
}


def exact(ways, X):
    """Recall@k of every way (ways, ks, 2), without re-ranking and with it, over all rows as queries."""
    total = np.zeros((len(ways), len(KS), 2))
    blocks = [X[i : i + 8192] for i in range(0, len(X), 8192)]
    for start in range(0, len(X), ASKED):
        own = np.arange(start, min(start + ASKED, len(X)))
        (end,) = searched(ways, X[own], own, blocks, 4 * max(KS), [len(X)])
        for i, places in enumerate(end.places):
            ranked = ranks(end.places[0][:, : max(KS)], places)
            total[i] += [[(ranked[:, :k] < k * m).mean(1).sum() for m in (1, 4)] for k in KS]
    return total / len(X)


def main() -> int:
    """Compare intervals of several advices with what is exact."""
    paths = [each for each in sys.argv[1:] if not each.isdigit()]
    seeds = next((int(each) for each in sys.argv[1:] if each.isdigit()), 3)
    X = open_vectors(Path(paths[0])).take(np.arange(open_vectors(Path(paths[0])).shape[0])[:ROWS]) if paths else None
    if X is None:
        X = np.concatenate(list(made_vectors(ROWS, DIM)))
    covered, kept = [], []
    with threadpool_limits(cpu_count()):
        for seed in range(seeds):
            found = survey(in_memory(X), **OPTIONS, seed=seed)
            truth = exact(found.ways, X)
            for row in found.options[found.options["way"] > 0].to_dict("records"):
                for k, values in zip(KS, truth[row["way"]], strict=True):
                    covered.append(row[f"low@{k}"] <= values[int(row["rerank"] > 0)] <= row[f"high@{k}"])
            for rerank in (0, 4):
                for target in (0.8, 0.9, 0.95, 0.99):
                    chosen = choose(found.options, "recall", target, rerank)
                    if chosen is not None:
                        kept.append(truth[found.options.loc[chosen, "way"], 1, int(rerank > 0)] >= target)
            print(f"seed {seed}: {len(found.ways)} ways; {np.mean(covered):.3f} of {len(covered)} intervals hold")
            print(
                f"  the recommended way has the recall asked for in {np.mean(kept):.3f} of {len(kept)} cases",
                flush=True,
            )
    return int(np.mean(covered) < 0.93)


if __name__ == "__main__":
    raise SystemExit(main())
