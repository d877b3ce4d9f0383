"""Is a kernel matrix of sentence embeddings positive definite? (Zhang et al., 2024, §4.2; audit Z4)."""

from typing import Any

import numpy as np
import pandas as pd

from repro.papers.zhang.tasks import Task, fit_texts
from repro.reducers.kernel_matrix import kernel_values, median_gamma
from repro.rows import make_rows
from repro.runs.embeddings import TextTable
from repro.seeding import make_rng
from repro.sets import texts_of
from repro.types import Array

KERNELS = {
    "rbf": ("rbf", None),
    "rbf, median": ("rbf", "median"),
    "poly": ("poly", None),
    "sigmoid": ("sigmoid", None),
    "sigmoid, median": ("sigmoid", "median"),
    "cosine": ("cosine", None),
}
"""kernels by what rows call them; gamma is 1/D unless it is the inverse of the median squared distance"""
ROUNDING = 1e-12
"""share of the largest eigenvalue below which a negative one is rounding, not the kernel's"""
ROWS = 1_500
"""rows of a matrix whose eigenvalues are all computed"""


def spectrum(X: Array, kernel: str, gamma: str | None) -> Array:
    """All eigenvalues (n,), ascending, of the kernel matrix of X (n, D) as it is, uncentred."""
    X = X.astype(np.float64)
    width = median_gamma(X) if gamma == "median" else 1 / X.shape[1]
    K, constant = kernel_values(X, X, kernel, gamma=width)
    K += constant
    return np.asarray(np.linalg.eigvalsh((K + K.T) / 2))


def spectrum_rows(name: str, table: TextTable, task: Task, *, rows: int = ROWS, **shared: Any) -> pd.DataFrame:
    """The smallest eigenvalue per kernel as a share of the largest, and how many of them are negative.

    Of distinct training sentences, and, where some repeat, of the training set as it comes: equal rows make eigenvalues
    of exactly zero, which rounding scatters to both sides.

    Args:
        name: of the encoder.
        table: its embeddings of the task's texts.
        task: whose training sentences are taken.
        rows: at most so many, drawn at random.
        shared: columns common to all rows.
    """
    sets = {"distinct sentences": fit_texts("inductive", task), "with repeats": list(texts_of(task.splits["train"]))}
    if len(sets["with repeats"]) == len(sets["distinct sentences"]):
        del sets["with repeats"]
    found: list[dict[str, Any]] = []
    for setting, texts in sets.items():
        order = make_rng(int(shared["seed"]), "kernel rows").permutation(len(texts))[:rows]
        X = table[[texts[i] for i in order]]
        for label, (kernel, gamma) in KERNELS.items():
            values = spectrum(X, kernel, gamma)
            share = values / values[-1]
            common = {"method": f"KPCA, {label}", "setting": setting, "n_train": len(X), "dim": X.shape[1]}
            found += [
                {**common, "metric": "smallest_eigenvalue", "value": float(share[0])},
                {**common, "metric": "negative_eigenvalues", "value": float((share < -ROUNDING).sum())},
                {**common, "metric": "rounded_eigenvalues", "value": float(((share < 0) & (share >= -ROUNDING)).sum())},
            ]
    return make_rows(found, backbone=name, readout="encoder", dataset=task.name, **shared)
