"""Networks as their authors published them: which states are read, and how long their rows are."""

import numpy as np

from repro.digests import digest
from repro.models.pretrained import MINILM, identity
from repro.runs.embeddings import TextTable
from repro.types import Array

UNIT = {MINILM, "all-mpnet-base-v2"}
"""published with a last module that divides every row by its length"""


def states_identity(backbone: str, pooling: str | None) -> str:
    """Digest of what decides a network's pooled states; one for all pages, so that they share what was encoded."""
    return digest({"backbone": identity(backbone), "pooling": pooling})


def as_published(backbone: str, table: TextTable) -> TextTable:
    """Pooled states of a network, with rows of unit length where its authors publish such."""
    return table.map(unit_rows) if backbone.rstrip("/").split("/")[-1] in UNIT else table


def unit_rows(X: Array) -> Array:
    """Rows of X (n, D) divided by their lengths; a zero row stays."""
    return np.asarray(X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12), X.dtype)
