"""Which sets of documents can be retrieved at all: every two of n as the first two of some query (Weller et al., 2025).

By cosine, a query that ranks documents i and j first exists if and only if the segment between them is an edge of the
convex hull of the documents: from j, which lies on the sphere and so is a corner, some edge leads upwards, and only i
is higher. Polytopes whose every two corners share an edge exist with any number of corners from four dimensions on
(Gale, 1963), in three only with four, in two only with three.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from repro.evaluation import retrieval_scores
from repro.report.wide import in_order
from repro.rows import make_rows
from repro.runs.embeddings import unit_rows
from repro.seeding import derive_seed, make_rng
from repro.sets import Retrieval
from repro.types import Array, InputError, check_dim, check_embeddings

Pairs = NDArray[np.int64]
FREE, CURVE, MOST = "gradient descent", "curve", "most possible"
COOLING = (1.0, 0.02)
"""first and last temperature of the descent: a cold start is stuck, a warm end leaves narrow gaps open"""
LEARNING_RATE = 0.05
"""of the descent, by Adam"""
NAMES = "Alice Boris Clara David Elena Frank Grace Henry Irene Jakob Karen Louis Maria Nolan Olive Peter"
PEOPLE = tuple(NAMES.split())
WORDS = """
apples bridges candles dragons eagles ferries gardens hockey igloos jazz kites lemons mirrors noodles owls
puzzles quilts rivers sailing tennis umbrellas violins whales yoghurt zebras almonds beaches castles dancing
elephants fishing glaciers horses islands jewels kayaks lakes mountains needles oranges pianos quarries
rabbits statues trains urchins valleys walnuts yachts bicycles chess deserts engines forests guitars hammers
insects jungles knitting lanterns museums nectarines opera pottery roses skiing tulips volcanoes waterfalls
archery ballet cycling drums emeralds fossils grapes harbours jigsaws kangaroos lobsters maps novels orchids
parrots robots spiders tractors vinegar windmills acrobats baskets comets dolphins easels flutes geysers
hedgehogs jackets lighthouses magnets nightingales otters peacocks rockets sundials telescopes vases wolves
anchors beetles cactuses daisies eclipses foxes gloves honey ivy jellyfish ponds saddles turnips
"""
THINGS = tuple(WORDS.split())


def two_sets(n: int) -> Pairs:
    """All sets of two of n documents (n(n − 1)/2, 2).

    Raises:
        InputError: for fewer than three documents, where the first two are all there are.
    """
    if check_dim(n, what="n") < 3:
        raise InputError(f"n is {n}: expected at least 3 documents, of which a query ranks two first")
    return np.array(list(combinations(range(n), 2)), np.int64)


def most_sets(n: int, dim: int) -> int:
    """How many of the sets of two can be realised at once: n on a circle, 3n − 6 on a sphere, then all.

    Raises:
        InputError: below two dimensions, where cosines are 1 or −1.
    """
    if check_dim(dim) < 2:
        raise InputError("dim is 1: cosines are 1 or -1 there, and rank nothing")
    edges = {2: n, 3: 3 * n - 6}.get(dim, len(two_sets(n)))
    return min(edges, len(two_sets(n)))


def margins(Q: Array, C: Array, relevant: Pairs) -> Array:
    """Cosine of the farther relevant document less that of the nearest other, per query: above 0 is realised.

    Args:
        Q: queries (m, d).
        C: documents (n, d).
        relevant: rows of C that each query is to rank first (m, 2).

    Raises:
        InputError: for unusable embeddings, or as many queries as there are no sets for.
    """
    Q, C = check_embeddings(Q, "Q").astype(np.float64), check_embeddings(C, "C").astype(np.float64)
    if len(Q) != len(relevant):
        raise InputError(
            f"lengths differ: Q has {len(Q)} rows, relevant has {len(relevant)}; expected one set per query"
        )
    cosines = unit_rows(Q) @ unit_rows(C).T  # (m, n)
    own = np.take_along_axis(cosines, relevant, axis=1).min(axis=1)
    np.put_along_axis(cosines, relevant, -np.inf, axis=1)
    return np.asarray(own - cosines.max(axis=1))


def realised(Q: Array, C: Array, relevant: Pairs) -> dict[str, float]:
    """Share of the sets that are realised, and the smallest margin, which is negative unless all are."""
    gaps = margins(Q, C, relevant)
    return {"sets_realised": float((gaps > 0).mean()), "margin": float(gaps.min())}


def free_retrieval(n: int, dim: int, *, steps: int = 400, restarts: int = 3, seed: int = 0) -> tuple[Array, Array]:
    """Queries and documents on the sphere that descend towards ranking every two documents first, free of any text.

    Args:
        n: documents; there are n(n − 1)/2 queries.
        dim: of the sphere's space.
        steps: of Adam, while the temperature cools.
        restarts: descents side by side, of which the one that realises most sets is returned.
        seed: of the starts.

    Returns:
        Queries (n(n − 1)/2, dim) and documents (n, dim), float64.
    """
    pairs = torch.from_numpy(two_sets(n))
    generator = torch.Generator().manual_seed(derive_seed(seed, "free retrieval", n, dim))
    shape = (check_dim(restarts, what="restarts"), len(pairs), check_dim(dim))
    Q = torch.randn(*shape, generator=generator).requires_grad_(True)
    C = torch.randn(shape[0], n, dim, generator=generator).requires_grad_(True)
    wanted = torch.zeros(len(pairs), n, dtype=torch.bool).scatter_(1, pairs, True)
    adam = torch.optim.Adam([Q, C], lr=LEARNING_RATE)
    for temperature in np.geomspace(*COOLING, steps):
        logits = F.normalize(Q, dim=-1) @ F.normalize(C, dim=-1).transpose(1, 2) / float(temperature)
        # how far the best of the others stands above the worse of the two, softly
        others = logits.masked_fill(wanted, -torch.inf).logsumexp(-1)
        own = (-logits).masked_fill(~wanted, -torch.inf).logsumexp(-1)
        adam.zero_grad()
        F.softplus(others + own).mean().backward()
        adam.step()
    found = [(Q[r].detach().double().numpy(), C[r].detach().double().numpy()) for r in range(restarts)]
    return max(found, key=lambda f: realised(f[0], f[1], two_sets(n))["sets_realised"])


def free_limit_rows(
    counts: Sequence[int],
    dims: Sequence[int],
    curve: Callable[[int], tuple[Array, Array]],
    *,
    steps: int = 400,
    restarts: int = 3,
    seed: int = 0,
    **shared: Any,
) -> pd.DataFrame:
    """Sets realised and smallest margin of free embeddings, of a curve in four dimensions, and the most possible.

    Args:
        counts: numbers of documents.
        dims: of free embeddings.
        curve: number of documents to documents and queries in four dimensions that realise every set.
        steps: of the descent.
        restarts: descents of which the best counts.
        seed: of the starts.
        shared: columns of every row.
    """
    rows: list[dict[str, Any]] = []
    for n in counts:
        sets = two_sets(n)
        C, Q = curve(n)
        found = {(CURVE, 4): realised(Q, C, sets)}
        for dim in dims:
            found[FREE, dim] = realised(*free_retrieval(n, dim, steps=steps, restarts=restarts, seed=seed), sets)
            found[MOST, dim] = {"sets_realised": most_sets(n, dim) / len(sets)}
        for (method, dim), values in found.items():
            at = {"setting": f"{n} documents", "method": method, "dim": dim}
            rows += [{**at, "metric": m, "value": v} for m, v in values.items()]
    return make_rows(rows, seed=seed, **shared)


def limit_texts(n: int, *, seed: int = 0) -> Retrieval:
    """Make n people documents, and queries of the n(n − 1)/2 things, each of which two of them like.

    Raises:
        InputError: for more people or things than there are words for.
    """
    pairs = two_sets(n)
    if n > len(PEOPLE) or len(pairs) > len(THINGS):
        raise InputError(f"n is {n}: there are names for {len(PEOPLE)} people and {len(THINGS)} things")
    things = np.array(THINGS)[make_rng(seed, "limit texts", n).permutation(len(THINGS))[: len(pairs)]]
    documents = []
    for person in range(n):
        liked = things[(pairs == person).any(axis=1)]
        documents.append(f"{PEOPLE[person]} likes {', '.join(liked[:-1])} and {liked[-1]}.")
    queries = tuple(f"Who likes {thing}?" for thing in things)
    qrels = {q: {PEOPLE[i]: 1, PEOPLE[j]: 1} for q, (i, j) in zip(queries, pairs.tolist(), strict=True)}
    return Retrieval("limit", "microworld", queries, queries, PEOPLE[:n], tuple(documents), qrels)


def encoder_limit_rows(
    encoders: Mapping[str, Callable[[Sequence[str]], Array]], texts: Retrieval, dims: Sequence[int], **shared: Any
) -> pd.DataFrame:
    """Sets realised, smallest margin and recall@2 of encoders' first columns, and of all of them.

    Args:
        encoders: by name, what turns texts into embeddings.
        texts: queries with two relevant documents each.
        dims: numbers of columns; those of full size and above are left out in favour of the full size.
        shared: columns of every row.
    """
    place = {name: i for i, name in enumerate(texts.document_ids)}
    relevant = np.array([[place[d] for d in texts.qrels[q]] for q in texts.query_ids], np.int64)
    rows: list[dict[str, Any]] = []
    for name, embed in encoders.items():
        Q, C = embed(texts.queries), embed(texts.documents)
        for dim in (*(d for d in sorted(dims) if d < Q.shape[1]), Q.shape[1]):
            q, c = Q[:, :dim], C[:, :dim]
            if not (q.any(axis=1).all() and c.any(axis=1).all()):
                continue  # a zero row is as near to everything as to nothing
            ids = {"query_ids": texts.query_ids, "corpus_ids": texts.document_ids}
            recall = retrieval_scores(q, c, texts.qrels, ks=(2,), **ids)["recall@2"]
            values = {**realised(q, c, relevant), "recall@2": recall}
            rows += [{"method": name, "backbone": name, "dim": dim, "metric": m, "value": v} for m, v in values.items()]
    return make_rows(rows, dataset=texts.name, setting=f"{len(texts.documents)} documents", **shared)


def limit_table(rows: pd.DataFrame, margin: float) -> pd.DataFrame:
    """A line per number of documents: the smallest dim that suffices in principle, by descent, and with a margin.

    A missing number: no dim that was tried.
    """
    lines = []
    for setting, group in rows[rows["metric"].isin(["sets_realised", "margin"])].groupby("setting", sort=False):
        by = group.pivot_table(index=["method", "dim"], columns="metric", values="value")
        free = by.xs(FREE)
        lines.append(
            {
                "documents": int(str(setting).split()[0]),
                MOST: by.xs(MOST).query("sets_realised >= 1").index.min(),
                FREE: free.query("sets_realised >= 1").index.min(),
                f"with a margin of {margin:g}": free.index[free["margin"] >= margin].min(),
                "margin of the curve, 4 dims": f"{by.xs(CURVE)['margin'].iloc[0]:.2g}",
            }
        )
    table = in_order(lines, "documents")
    return table.astype(dict.fromkeys(list(table)[:-1], "Int64"))


def encoder_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Per encoder and number of columns: sets realised and recall@2, in per cent, and the smallest margin."""
    table = rows.pivot_table(index=["method", "dim"], columns="metric", values="value", sort=False).reset_index()
    table[["sets_realised", "recall@2"]] *= 100
    names = {"method": "encoder", "sets_realised": "sets realised, %", "recall@2": "recall@2, %"}
    return table.rename(columns=names)[["encoder", "dim", "sets realised, %", "recall@2, %", "margin"]]
