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
from repro.rows import make_rows
from repro.seeding import derive_seed
from repro.sets import Retrieval
from repro.types import Array, InputError, check_dim, check_embeddings

Pairs = NDArray[np.int64]
FREE, CURVE, MOST = "gradient descent", "curve", "most possible"
COOLING = (1.0, 0.02)
"""first and last temperature of the descent: a cold start is stuck, a warm end leaves narrow gaps open"""


def two_sets(n: int) -> Pairs:
    """All sets of two of n documents (n(n − 1)/2, 2).

    Raises:
        InputError: for fewer than three documents, where the first two are all there are.
    """
    if check_dim(n, what="n") < 3:
        raise InputError(f"n is {n}: expected at least 3 documents, of which a query ranks two first")
    return np.array(list(combinations(range(n), 2)), np.int64)


def smallest_dim(n: int) -> int:
    """The smallest dimension in which n documents can lie so that every two are the first two of some query."""
    return next(dim for dim in (2, 3, 4) if most_sets(n, dim) == len(two_sets(n)))


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
    cosines = _unit(Q) @ _unit(C).T  # (m, n)
    own = np.take_along_axis(cosines, relevant, axis=1).min(axis=1)
    np.put_along_axis(cosines, relevant, -np.inf, axis=1)
    return np.asarray(own - cosines.max(axis=1))


def circle_curve(n: int) -> tuple[Array, Array]:
    """Documents and queries in four dimensions that realise every set of two, whatever n is.

    Document k is (cos θ, sin θ, cos 2θ, sin 2θ)/√2 at θ = 2πk/n. The query of i and j has the coefficients of
    −(1 − cos(θ − θᵢ))(1 − cos(θ − θⱼ)), which is 0 at both and negative elsewhere; its constant part moves no rank.

    Returns:
        Documents (n, 4) and queries (n(n − 1)/2, 4), rows of length 1.
    """
    pairs = two_sets(n)
    theta = 2 * np.pi * np.arange(n) / n
    C = np.stack([np.cos(theta), np.sin(theta), np.cos(2 * theta), np.sin(2 * theta)], axis=1) / np.sqrt(2)
    a, b = theta[pairs[:, 0]], theta[pairs[:, 1]]
    # cos(θ − a)cos(θ − b) = ½cos(a − b) + ½cos(2θ − a − b)
    Q = np.stack([np.cos(a) + np.cos(b), np.sin(a) + np.sin(b), -np.cos(a + b) / 2, -np.sin(a + b) / 2], axis=1)
    return C, _unit(Q)


def free_retrieval(
    n: int, dim: int, *, steps: int = 400, restarts: int = 3, learning_rate: float = 0.05, seed: int = 0
) -> tuple[Array, Array]:
    """Queries and documents on the sphere that descend towards ranking every two documents first, free of any text.

    Args:
        n: documents; there are n(n − 1)/2 queries.
        dim: of the sphere's space.
        steps: of Adam, while the temperature cools.
        restarts: descents side by side, of which the one that realises most sets is returned.
        learning_rate: of Adam.
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
    adam = torch.optim.Adam([Q, C], lr=learning_rate)
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


def realised(Q: Array, C: Array, relevant: Pairs) -> dict[str, float]:
    """Share of the sets that are realised, and the smallest margin, which is negative unless all are."""
    gaps = margins(Q, C, relevant)
    return {"sets_realised": float((gaps > 0).mean()), "margin": float(gaps.min())}


def free_limit_rows(
    counts: Sequence[int], dims: Sequence[int], *, steps: int = 400, restarts: int = 3, seed: int = 0, **shared: Any
) -> pd.DataFrame:
    """Sets realised and smallest margin of free embeddings, of the curve in four dimensions, and the most possible."""
    rows: list[dict[str, Any]] = []
    for n in counts:
        sets, at = two_sets(n), {"setting": f"{n} documents"}
        C, Q = circle_curve(n)
        found = {(CURVE, 4): realised(Q, C, sets)}
        for dim in dims:
            found[FREE, dim] = realised(*free_retrieval(n, dim, steps=steps, restarts=restarts, seed=seed), sets)
            found[MOST, dim] = {"sets_realised": most_sets(n, dim) / len(sets)}
        for (method, dim), values in found.items():
            rows += [{**at, "method": method, "dim": dim, "metric": m, "value": v} for m, v in values.items()]
    return make_rows(rows, seed=seed, **shared)


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
            # a zero row is as near to everything as to nothing
            usable = (np.abs(Q[:, :dim]).max(axis=1) > 0).all() and (np.abs(C[:, :dim]).max(axis=1) > 0).all()
            if not usable:
                continue
            ids = {"query_ids": texts.query_ids, "corpus_ids": texts.document_ids}
            scores = retrieval_scores(Q[:, :dim], C[:, :dim], texts.qrels, ks=(2,), **ids)
            values = {**realised(Q[:, :dim], C[:, :dim], relevant), "recall@2": scores["recall@2"]}
            rows += [{"method": name, "backbone": name, "dim": dim, "metric": m, "value": v} for m, v in values.items()]
    return make_rows(rows, dataset=texts.name, setting=f"{len(texts.documents)} documents", **shared)


def _unit(X: Array) -> Array:
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))
