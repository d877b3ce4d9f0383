"""Clustering: K-means against known classes, by four indicators (PROTOCOLS §5.6)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb

from repro.seeding import derive_seed
from repro.types import InputError, check_dim, check_embeddings, check_same_length

INDICATORS = ("mi", "nmi", "ari", "purity")
STARTS, ITERATIONS = 10, 300


def cluster_scores(X: Any, y: Any, *, seed: int, clusters: int | None = None) -> dict[str, float]:
    """Agreement of K-means clusters with classes: mi (nats), nmi, ari and purity.

    Args:
        X: embeddings (n, dim).
        y: a class for each row.
        seed: of the starting centres.
        clusters: how many; None as many as classes (20 for 20 Newsgroups).

    Raises:
        InputError: for mismatched lengths, unusable embeddings, or more clusters than rows.
    """
    X, y = check_embeddings(X), np.asarray(y)
    check_same_length(X=X, y=y)
    return partition_scores(kmeans(X, len(np.unique(y)) if clusters is None else clusters, seed=seed), y)


def kmeans(X: Any, clusters: int, *, seed: int) -> NDArray[np.int64]:
    """The cluster of every row (n,): K-means with k-means++ starts, the best of ten, at most 300 iterations each.

    Raises:
        InputError: for unusable embeddings, or a number of clusters that is not 1 … n.
    """
    from sklearn.cluster import KMeans  # slow to import, which pages that compare scores do without

    X = check_embeddings(X)
    check_dim(clusters, limit=len(X), what="clusters")
    state = derive_seed(seed, "kmeans") % 2**32
    fitted = KMeans(clusters, init="k-means++", n_init=STARTS, max_iter=ITERATIONS, random_state=state).fit(X)
    return np.asarray(fitted.labels_, np.int64)


def partition_scores(found: Any, y: Any) -> dict[str, float]:
    """The four indicators of a partition against classes; names of clusters and classes play no part.

    mi = Σ p_cy ln(p_cy / p_c p_y) in nats; nmi = mi over the mean of the two entropies, 1 where both are 0; ari = the
    Rand index corrected for chance; purity = (1/n) Σ_c max_y n_cy, which grows with the number of clusters.

    Raises:
        InputError: for mismatched lengths or no rows.
    """
    found, y = np.asarray(found), np.asarray(y)
    check_same_length(found=found, y=y)
    if not len(y):
        raise InputError("no rows to score: expected at least one cluster and class")
    counts = contingency(found, y)
    scores = indicators(counts[None])
    return {name: float(values[0]) for name, values in scores.items()}


def contingency(found: NDArray[Any], y: NDArray[Any]) -> NDArray[np.int64]:
    """How many rows of each class fell into each cluster: n_cy (clusters, classes)."""
    c, y = (np.unique(side, return_inverse=True)[1] for side in (found, y))
    width = int(y.max()) + 1
    return np.bincount(c * width + y, minlength=(int(c.max()) + 1) * width).reshape(-1, width)


def indicators(counts: NDArray[Any]) -> dict[str, NDArray[np.float64]]:
    """The four indicators of many tables at once: counts (R, clusters, classes) gives (R,) each."""
    counts = np.asarray(counts, np.float64)
    n = counts.sum((1, 2))  # (R,)
    rows, columns = counts.sum(2), counts.sum(1)
    entropy = {name: _entropy(part / n[:, None]) for name, part in (("c", rows), ("y", columns))}
    joint = _entropy(counts.reshape(len(counts), -1) / n[:, None])
    mi = np.maximum(entropy["c"] + entropy["y"] - joint, 0.0)
    mean = (entropy["c"] + entropy["y"]) / 2
    nmi = np.divide(mi, mean, out=np.ones_like(mi), where=mean > 0)
    # Hubert and Arabie (1985): pairs together in both, less what chance gives
    both, in_c, in_y, pairs = comb(counts, 2).sum((1, 2)), comb(rows, 2).sum(1), comb(columns, 2).sum(1), comb(n, 2)
    expected = np.divide(in_c * in_y, pairs, out=np.zeros_like(n), where=pairs > 0)
    spread = (in_c + in_y) / 2 - expected
    ari = np.divide(both - expected, spread, out=np.ones_like(n), where=spread > 0)
    return {"mi": mi, "nmi": nmi, "ari": ari, "purity": counts.max(2).sum(1) / n}


def _entropy(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """−Σ p ln p of each row."""
    return np.asarray(-np.sum(p * np.log(p, out=np.zeros_like(p), where=p > 0), axis=-1))
