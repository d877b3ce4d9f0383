"""Is the pooler "a rough approximation of a PCA layer"? (Wang et al., 2023, Limitations), by principal angles."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from repro.models import Pooler
from repro.rows import make_rows
from repro.runs.sweep import Sweep, states_of
from repro.runs.texts import training_sentences
from repro.store import Store
from repro.types import Array


def subspace_rows(sweeps: Mapping[str, Sweep], store: Store, *, sentences: int = 2000, **shared: Any) -> pd.DataFrame:
    """How near the pooler's row space is to the top principal components of its own encoder's states (Limitations).

    Per activation and dim d < hidden_dim, on states of training sentences: `subspace_overlap`, the mean cos² of the
    principal angles between the two d-dimensional spaces (method `chance`: d / hidden_dim, two random spaces; method
    `untrained pooler`: before training), and `variance_kept`, the share of the variance inside a space.

    Args:
        sweeps: by activation of the pooler, trained alike.
        store: where states are kept.
        sentences: how many training sentences the components are taken from.
        shared: columns common to all rows.
    """
    parts = []
    for activation, sweep in sweeps.items():
        rows: list[dict[str, Any]] = []
        for d, cell in sorted(sweep.cells.items()):
            hidden = cell.pooler.hidden_dim
            if d >= hidden:
                continue
            texts = training_sentences(replace(cell.config, sentences=sentences), store)
            components, variances = principal_components(states_of(cell, texts, store)[texts])
            learned = row_space(cell.pooler)
            fresh = row_space(Pooler(hidden, d).initialise(cell.config.seed))
            total = variances.sum()
            found = {
                ("trained pooler", "subspace_overlap"): overlap(learned, components[:, :d]),
                ("untrained pooler", "subspace_overlap"): overlap(fresh, components[:, :d]),
                ("chance", "subspace_overlap"): d / hidden,
                ("trained pooler", "variance_kept"): float((variances @ (components.T @ learned) ** 2).sum() / total),
                ("PCA", "variance_kept"): float(variances[:d].sum() / total),
                ("chance", "variance_kept"): d / hidden,
            }
            rows += [
                {"method": method, "metric": metric, "value": value, "dim": d, "setting": f"activation={activation}"}
                for (method, metric), value in found.items()
            ]
        parts.append(make_rows(rows, readout="encoder", dataset=sweep.config.corpus, **sweep.shared(), **shared))
    return pd.concat(parts, ignore_index=True)


def principal_components(X: Array) -> tuple[Array, Array]:
    """Eigenvectors (D, D), by falling variance, and variances (D,) of the centred rows of X, in float64."""
    centred = np.asarray(X, np.float64) - X.mean(0, dtype=np.float64)
    variances, vectors = np.linalg.eigh(centred.T @ centred / len(X))
    return vectors[:, ::-1], variances[::-1]


def row_space(pooler: Pooler) -> Array:
    """Orthonormal basis (D, d) of the space that the pooler's weight reads."""
    weight = pooler.linear.weight.detach().cpu().numpy().astype(np.float64)
    return np.asarray(np.linalg.qr(weight.T)[0])


def overlap(A: Array, B: Array) -> float:
    """Mean cos² of the principal angles between two subspaces given by orthonormal columns (D, d): 0 to 1."""
    return float(((A.T @ B) ** 2).sum() / min(A.shape[1], B.shape[1]))
