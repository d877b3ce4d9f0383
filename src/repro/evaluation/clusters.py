"""K-means clusters of frozen embeddings, held against classes (method-clusters in the book)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb, entr
from scipy.stats.contingency import crosstab

from repro.evaluation.labels import check_labels
from repro.seeding import derive_seed
from repro.types import Array, check_dim, check_embeddings, check_same_length, plain_array


def cluster_scores(X: Any, y: Any, *, seed: int) -> dict[str, float]:
    """Agreement of the classes of X's rows (n, dim) with as many K-means clusters: mi (nats), nmi,
    ari and purity.
    """
    y = np.ravel(plain_array(y, "y"))  # A column of classes is as good as a row
    check_labels(y, "y")
    return partition_scores(kmeans(X, len(np.unique(y)), seed=seed), y)


def kmeans(X: Any, clusters: int, *, seed: int) -> NDArray[np.int64]:
    """The cluster of every row (n,): K-means with k-means++ starts, the best of ten, at most 300
    iterations each.
    """
    from sklearn.cluster import KMeans  # Slow to import, which pages that compare scores do without

    X = check_embeddings(X)
    check_dim(clusters, limit=len(X), what="clusters")
    state = derive_seed(seed, "kmeans") % 2**32
    fitted = KMeans(clusters, init="k-means++", n_init=10, max_iter=300, random_state=state).fit(X)
    return np.asarray(fitted.labels_, np.int64)


def partition_scores(found: Any, y: Any) -> dict[str, float]:
    """The four indicators of a partition against classes; names of clusters and classes play no
    part.
    """
    check_same_length(found=found, y=y)
    # Rows of each class in each cluster: n_cy (clusters, classes)
    counts = crosstab(found, y).count
    return {name: float(values[0]) for name, values in indicators(counts[None]).items()}


def indicators(counts: NDArray[Any]) -> dict[str, Array]:
    """The four indicators of many tables at once: counts n_cy (R, clusters, classes) gives (R,)
    each.

    mi = Σ p_cy ln(p_cy / p_c p_y) in nats; nmi = mi over the mean of the two entropies, 1 where
    both are 0; ari = the Rand index corrected for chance; purity = (1/n) Σ_c max_y n_cy, which
    grows with the number of clusters.
    """
    counts = np.asarray(counts, np.float64)
    n = counts.sum((1, 2))  # (R,)
    in_clusters = counts.sum(2)
    in_classes = counts.sum(1)
    of_clusters = _entropy(in_clusters)
    of_classes = _entropy(in_classes)
    joint = _entropy(counts.reshape(len(n), -1))
    mi = np.maximum(of_clusters + of_classes - joint, 0.0)
    mean = (of_clusters + of_classes) / 2
    nmi = np.divide(mi, mean, out=np.ones_like(mi), where=mean > 0)
    # Hubert and Arabie (1985): pairs together in both, less what chance gives
    pairs = comb(n, 2)
    together = comb(counts, 2).sum((1, 2))
    in_one_cluster = comb(in_clusters, 2).sum(1)
    in_one_class = comb(in_classes, 2).sum(1)
    by_chance = np.zeros_like(n)
    np.divide(in_one_cluster * in_one_class, pairs, out=by_chance, where=pairs > 0)
    spread = (in_one_cluster + in_one_class) / 2 - by_chance
    ari = np.divide(together - by_chance, spread, out=np.ones_like(n), where=spread > 0)
    purity = counts.max(2).sum(1) / n
    return {"mi": mi, "nmi": nmi, "ari": ari, "purity": purity}


def _entropy(sizes: Array) -> Array:
    """Entropy in nats (R,) of parts of these sizes (R, parts)."""
    return np.asarray(entr(sizes / sizes.sum(1, keepdims=True)).sum(1))
