"""Reducers beside scikit-learn's, fit and transform, on embeddings of distinct texts."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn import decomposition, manifold, random_projection
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from bench.encode import distinct_texts
from bench.timing import BenchRow, alternate
from repro.models import SentenceEncoder
from repro.models.sources import MINILM
from repro.reducers import GRP, KPCA, LLE, PCA, SVD, Isomap
from repro.seeding import cpu_count

ROWS = 2758
"""Texts of STS-B's test pairs."""
TRAIN_ROWS = 11498
"""Texts of STS-B's training pairs, the size of Zhang (2024), Table 1."""
DIM = 128


def run(quick: bool) -> list[BenchRow]:
    rows, many, dim = (300, 900, 16) if quick else (ROWS, TRAIN_ROWS, DIM)
    some = distinct_texts(3 * rows)
    texts = list(dict.fromkeys([*some, *distinct_texts(2 * many)]))[:many]
    embeddings = SentenceEncoder.load(MINILM, device="cpu").encode(texts, readout="encoder")
    X = np.random.default_rng(0).permutation(np.unique(embeddings[: len(some)], axis=0))
    everything = np.unique(embeddings, axis=0)
    fitted, asked = X[:rows], X[rows : 2 * rows]
    # With several threads the peer takes 80 ms a row at 130 neighbours
    few = asked[: len(asked) // 8]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Of graphs in pieces, which both sides join
        measured = [
            _pca(fitted.astype(np.float64), dim, quick),
            _grp(fitted, dim, quick),
            _isomap(fitted.astype(np.float64), dim, quick),
            _lle_fit(fitted, dim, quick),
            _lle_transform(fitted, asked, dim, 20, quick),
            _lle_transform(fitted, few, dim, 130, quick),
            _pca_single(everything, dim, quick),
            *(_svd(everything, size, quick) for size in ((dim, dim // 2) if quick else (300, dim))),
            _kpca(everything, dim),
        ]
        # Where the peer's small systems are shared out among them
        with threadpool_limits(cpu_count()):
            crowded = _lle_transform(fitted, few, dim, 130, True)
    return [*measured, replace(crowded, threads=cpu_count(), work=f"{crowded.work}, all threads")]


def _pca(X: np.ndarray, dim: int, quick: bool) -> BenchRow:
    """Both exact and in double precision; the peer's default at these sizes is a randomised
    approximation.
    """
    ours, peer = PCA(dim), decomposition.PCA(dim, svd_solver="covariance_eigh")
    approximate = decomposition.PCA(dim, random_state=0)
    works = {
        "ours": lambda: ours.fit_transform(X),
        "peer": lambda: peer.fit_transform(X),
        "default": lambda: approximate.fit_transform(X),
    }
    results, seconds = alternate(works, 1 if quick else 25)
    row = _compared(f"PCA {_size(X, dim)}", 1, seconds, results["ours"], results["peer"])
    return replace(row, note=f"PCA: the peer's default solver takes {seconds['default']:.3f} s")


def _pca_single(X: np.ndarray, dim: int, quick: bool) -> BenchRow:
    """Of single precision: the peer's products are in that of its input, ours in double."""
    ours, peer = PCA(dim), decomposition.PCA(dim, svd_solver="covariance_eigh")
    works = {"ours": lambda: ours.fit_transform(X), "peer": lambda: peer.fit_transform(X)}
    results, seconds = alternate(works, 1 if quick else 9)
    row = _compared(
        f"PCA {_size(X, dim)}, single precision",
        1,
        seconds,
        results["ours"],
        results["peer"],
    )
    return _with_parts(row, X, dim)


def _with_parts(row: BenchRow, X: np.ndarray, dim: int) -> BenchRow:
    """The row beside what its exact components cannot do without: a Gram matrix, its eigenvectors,
    a product.
    """
    double = X.astype(np.float64)
    gram, V = double.T @ double, np.zeros((X.shape[1], dim), X.dtype)
    works = {
        "gram": lambda: double.T @ double,
        "single": lambda: X.T @ X,
        "eigenvectors": lambda: np.linalg.eigh(gram),
        "product": lambda: X @ V,
    }
    seconds = alternate(works, 3)[1]
    least = seconds["gram"] + seconds["eigenvectors"] + seconds["product"]
    told = ", ".join(f"{name} {1000 * s:.0f} ms" for name, s in seconds.items())
    return replace(
        row,
        shares={"within_reach": row.peer_s / least},
        note=f"of it: {told} (Gram matrix in double, single)",
    )


def _grp(X: np.ndarray, dim: int, quick: bool) -> BenchRow:
    ours, peer = GRP(dim), random_projection.GaussianRandomProjection(dim, random_state=0)
    works = {"ours": lambda: ours.fit_transform(X), "peer": lambda: peer.fit_transform(X)}
    _, seconds = alternate(works, 1 if quick else 25)
    # The same draw, to compare what they make of it
    peer.components_ = ours.components_.astype(X.dtype)
    return _compared(f"GRP {_size(X, dim)}", 1, seconds, ours.transform(X), peer.transform(X))


def _svd(X: np.ndarray, dim: int, quick: bool) -> BenchRow:
    """The peer's default is randomised: our exact vectors lose nothing to it, and it finds the
    leading half of ours.
    """
    ours, peer = SVD(dim), decomposition.TruncatedSVD(dim, random_state=0)
    works = {"ours": lambda: ours.fit_transform(X), "peer": lambda: peer.fit_transform(X)}
    results, seconds = alternate(works, 1 if quick else 5)
    lost = 1 - float(
        (results["peer"] ** 2).sum(dtype=float) / (results["ours"] ** 2).sum(dtype=float)
    )
    cosine = float(
        np.linalg.svd(ours.components_[: dim // 2] @ peer.components_.T, compute_uv=False).min()
    )
    row = _compared(f"truncated SVD {_size(X, dim)}", 8, seconds, results["ours"], results["peer"])
    checked = (
        f"peer loses {lost:.0e} ≤ 1e-3 of squares; half ours in its space, 1 - cos "
        f"{1 - cosine:.0e} ≤ 1e-3"
    )
    row = replace(row, equal=-1e-6 <= lost <= 1e-3 and 1 - cosine <= 1e-3, checked=checked)
    return _with_parts(row, X, dim)


def _kpca(X: np.ndarray, dim: int) -> BenchRow:
    """Once each: the peer's default takes minutes."""
    ours = KPCA(dim)
    peer, random = (
        decomposition.KernelPCA(dim, kernel="rbf", eigen_solver=solver, random_state=0)
        for solver in ("auto", "randomized")
    )
    double = X.astype(np.float64)
    works = {
        "ours": lambda: ours.fit_transform(X),
        "randomised": lambda: random.fit_transform(double),
        "peer": lambda: peer.fit_transform(double),
    }
    results, seconds = alternate(works, 1)
    row = _compared(f"KPCA rbf {_size(X, dim)}", 20, seconds, results["ours"], results["peer"])
    faster, gap = (
        seconds["randomised"] / seconds["ours"],
        _gap(results["randomised"], results["peer"]),
    )
    note = (
        f"KPCA: the peer's randomised solver takes {seconds['randomised']:.1f} s, {faster:.1f}× "
        f"ours, {gap:.0e} off"
    )
    return replace(row, note=note)


def _isomap(X: np.ndarray, dim: int, quick: bool) -> BenchRow:
    ours, peer = Isomap(dim, n_neighbors=20), manifold.Isomap(n_components=dim, n_neighbors=20)
    return _row(
        f"Isomap {_size(X, dim)}, k 20",
        1,
        quick,
        lambda: ours.fit_transform(X),
        lambda: peer.fit_transform(X),
    )


def _lle_fit(X: np.ndarray, dim: int, quick: bool) -> BenchRow:
    ours, peer = LLE(dim, n_neighbors=20, scale="unit_norm"), _peer_lle(dim, 20)
    return _row(
        f"LLE fit {_size(X, dim)}, k 20",
        2,
        quick,
        lambda: ours.fit(X).embedding_,
        lambda: peer.fit_transform(X),
    )


def _lle_transform(X: np.ndarray, asked: np.ndarray, dim: int, k: int, quick: bool) -> BenchRow:
    """Both map new rows into the same embedding: the peer takes ours, so that signs and rounding of
    fits drop out.
    """
    ours, peer = LLE(dim, n_neighbors=k).fit(X), _peer_lle(dim, k)
    peer.embedding_, peer.n_features_in_ = ours.embedding_, X.shape[1]
    peer.nbrs_ = NearestNeighbors(n_neighbors=k).fit(X.astype(np.float64))
    work = f"LLE transform {len(asked)} rows by {_size(X, dim)}, k {k}"
    return _row(
        work,
        1,
        quick,
        lambda: ours.transform(asked),
        lambda: peer.transform(asked.astype(np.float64)),
    )


def _peer_lle(dim: int, k: int) -> manifold.LocallyLinearEmbedding:
    return manifold.LocallyLinearEmbedding(n_neighbors=k, n_components=dim, random_state=0)


def _row(
    work: str,
    goal: float,
    quick: bool,
    ours: Callable[[], Any],
    peer: Callable[[], Any],
) -> BenchRow:
    results, seconds = alternate({"ours": ours, "peer": peer}, 1 if quick else 3)
    return _compared(work, goal, seconds, results["ours"], results["peer"])


def _gap(ours: np.ndarray, peer: np.ndarray) -> float:
    """Largest difference of two outputs, each column turned to the same sign, against the largest
    entry.
    """
    return float(np.abs(ours * np.sign((ours * peer).sum(0)) - peer).max() / np.abs(peer).max())


def _compared(
    work: str,
    goal: float,
    seconds: dict[str, float],
    ours: np.ndarray,
    peer: np.ndarray,
) -> BenchRow:
    gap = _gap(ours, peer)
    return BenchRow(
        work=work,
        peer="scikit-learn",
        goal=goal,
        ours_s=seconds["ours"],
        peer_s=seconds["peer"],
        equal=gap <= 1e-3,
        checked=f"output up to sign, {gap:.0e} ≤ 1e-3",
        columns={"backbone": MINILM, "dim": ours.shape[1]},
    )


def _size(X: np.ndarray, dim: int) -> str:
    return f"{len(X)} × {X.shape[1]} → {dim}"
