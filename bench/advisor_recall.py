"""Do the advisor's intervals cover the recall that all queries have? `python -m
bench.advisor_recall [X.npy]`.

The advice is of 50,000 vectors, made or the first of a file, and 10,000 others, which no map has
seen, are queries: it draws some, and exact recall of every way of storing that it measured is that
of all. Printed is how many of the advice's own intervals hold, how many of those of 500 other
samples of as many queries, in the mean over ways and for the way where fewest do, and how often a
recommended way has the recall asked for; exit 1 where the mean is below 93 %.
"""

import sys
from itertools import product
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from bench.advisor import made_vectors
from dimadvise.measure import survey
from dimadvise.recall import KS, interval_of
from dimadvise.request import Request
from dimadvise.screening import choose
from dimadvise.search import ranks, searched
from dimadvise.vectors import in_memory, open_vectors
from repro.seeding import cpu_count

ROWS, FRESH, DIM, ASKED, SAMPLES = 50_000, 10_000, 384, 2_000, 500
WANTED = Request(
    methods=("truncate", "svd", "pca-rotated"),
    levels=("int8", "int4", "binary"),
    dims=(384, 192, 96, 48),
)


def exact(ways, X, Q):
    """Recall@k of each query by every way (ways, ks, 2, queries), without re-ranking and with
    it.
    """
    found = np.empty((len(ways), len(KS), 2, len(Q)), np.float32)
    blocks = [X[i : i + 8192] for i in range(0, len(X), 8192)]
    for start in range(0, len(Q), ASKED):
        own = np.arange(start, min(start + ASKED, len(Q)))
        (end,) = searched(ways, Q[own], np.full(len(own), -1), blocks, 4 * max(KS), [len(X)])
        for i, places in enumerate(end.places):
            ranked = ranks(end.places[0][:, : max(KS)], places)
            for (j, k), (m, times) in product(enumerate(KS), enumerate((1, 4))):
                found[i, j, m, own] = (ranked[:, :k] < k * times).mean(1)
    return found


def main() -> int:
    """Compare an advice's intervals, and those of many samples of queries, with what is exact."""
    if sys.argv[1:]:
        vectors = open_vectors(Path(sys.argv[1]))
        X = vectors.take(np.arange(min(ROWS + FRESH, vectors.shape[0])))
    else:
        X = np.concatenate(list(made_vectors(ROWS + FRESH, DIM)))
    X, Q = np.split(X, [len(X) * ROWS // (ROWS + FRESH)])
    with threadpool_limits(cpu_count()):
        found = survey(in_memory(X), in_memory(Q, "queries"), WANTED)
        recalls = exact(found.ways, X, Q)
    truth = recalls.mean(-1, dtype=np.float64)
    own = [
        row[f"low@{k}"] <= truth[row["way"], j, int(row["rerank"] > 0)] <= row[f"high@{k}"]
        for row in found.options[found.options["way"] > 0].to_dict("records")
        for j, k in enumerate(KS)
    ]
    rng = np.random.default_rng(0)
    covered = np.zeros(truth.shape)
    for _ in range(SAMPLES):
        asked = rng.choice(len(Q), found.queries, replace=False)
        for at in np.ndindex(truth.shape):
            interval = interval_of(recalls[at][asked].astype(np.float64))
            covered[at] += interval.low <= truth[at] <= interval.high
    covered = covered[1:] / SAMPLES  # The first way is the full vectors, which find all
    targets = [
        (t, r, choose(found.options, "recall", t, r))
        for t in (0.8, 0.9, 0.95, 0.99)
        for r in (0, 4)
    ]
    kept = [
        truth[found.options.loc[row, "way"], 1, int(r > 0)] >= t
        for t, r, row in targets
        if row is not None
    ]
    print(
        f"{len(found.ways) - 1} ways; {sum(own)} of the {len(own)} intervals of one advice hold, "
        "on the same queries"
    )
    print(
        f"{SAMPLES} samples of {found.queries:,} queries: {covered.mean():.3f} hold, at least "
        f"{covered.min():.3f}"
    )
    print(f"the recommended way has the recall asked for in {sum(kept)} of {len(kept)} cases")
    return int(covered.mean() < 0.93)


if __name__ == "__main__":
    raise SystemExit(main())
