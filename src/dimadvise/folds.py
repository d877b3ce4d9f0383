"""Folds of rows that are judged, so that no map has seen what it is judged by."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dimadvise.files import Rows, Vectors
from repro.seeding import make_rng

FOLDS = 5


@dataclass(frozen=True)
class Folds:
    """Judged rows (m,), ascending, the fold of each, and a number for each that equal vectors
    share.
    """

    rows: Rows
    fold: Rows
    same: Rows

    def fold_of(self, rows: Rows) -> Rows:
        """Folds of some of the rows, in any shape."""
        return self.fold[np.searchsorted(self.rows, rows)]

    def same_of(self, rows: Rows) -> Rows:
        """Numbers of some of the rows."""
        return self.same[np.searchsorted(self.rows, rows)]


NOBODY = Folds(*3 * [np.zeros(0, np.int64)])


def equal_rows(vectors: Vectors, rows: Rows) -> Rows:
    """A number for each row (m,), from 0, that rows of equal vectors share."""
    return pd.Index(vectors.keys(rows)).factorize()[0]


def even_folds(sizes: Rows, seed: int) -> Rows:
    """A fold for each group of so many members, at random, such that folds differ by no more than
    the smallest does.
    """
    order = make_rng(seed, "folds").permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    fold, filled = np.empty(len(sizes), np.int64), [0] * FOLDS
    for group in order.tolist():
        fold[group] = filled.index(min(filled))
        filled[fold[group]] += int(sizes[group])
    return fold
