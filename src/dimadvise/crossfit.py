"""Vectors shortened by maps that have not seen them: what a map keeps of its own rows it may keep of no others.

Judged rows lie in folds. A map for some of them is fitted on all rows but those of their folds, which takes one
subtraction of moments and no second pass over the rows; the map that is written is fitted on all.
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dimadvise.transform import Block, Moments, Transform, fit_transform_of, moments_of, most_dims
from dimadvise.vectors import Vectors
from repro.seeding import make_rng
from repro.types import InputError

Rows: TypeAlias = NDArray[np.int64]
Split: TypeAlias = tuple[int, ...]
"""folds that a map has not seen; none is the map that is fitted on all rows"""
NEVER = -1  # fold of rows that no map is fitted on, such as queries
FIT_ROWS = 200_000
"""rows beside the judged ones that are fitted on, at most: components of some hundred dimensions settle long before"""


class FoldMoments:
    """Moments of all rows, and of those of each fold."""

    def __init__(self, vectors: Vectors, rows: Rows, folds: Rows, *, unit: bool, seed: int = 0) -> None:
        """Read the vectors once; `rows` (m,), ascending, are judged and lie in `folds` (m,), all others in none."""
        self.vectors, self.unit = vectors, unit
        self.parts = {int(f): moments_of(vectors.taken(rows[folds == f]), unit=unit) for f in np.unique(folds)}
        if vectors.shape[0] - len(rows) <= FIT_ROWS:
            self.whole = moments_of(vectors.blocks(), unit=unit)
            if NEVER in self.parts:
                self.whole = self.whole - self.parts[NEVER]
            return
        apart = np.ones(vectors.shape[0], bool)
        apart[rows] = False
        drawn = make_rng(seed, "fit rows").choice(np.flatnonzero(apart), FIT_ROWS, replace=False)
        self.whole = moments_of(vectors.taken(np.sort(drawn)), unit=unit)
        for fold, part in self.parts.items():
            self.whole = self.whole if fold == NEVER else self.whole + part

    def without(self, split: Split) -> Moments:
        """Moments of all rows but those of some folds."""
        found = self.whole
        for fold in split:
            found = found - self.parts[fold]
        return found


class Shortened:
    """One method's maps, one for each split of the folds, at the largest size that all of them reach."""

    def __init__(
        self, method: str, moments: FoldMoments, splits: Iterable[Split], sizes: Sequence[int], *, seed: int = 0
    ) -> None:
        """Fit them; of nested methods the first columns are the smaller sizes."""
        known = {split: moments.without(split) for split in {(), *splits}}
        most = min(most_dims(method, each) for each in known.values())
        self.method, self.vectors = method, moments.vectors
        self.sizes = [d for d in sizes if d <= most]
        if not self.sizes:
            fewest = min(each.rows for each in known.values())
            raise InputError(
                f"{method} of the {fewest:,} rows that are not judged with a row gives at most {most} dims: give more "
                "embeddings or a smaller size"
            )
        top = max(self.sizes)
        self.maps = {s: fit_transform_of(method, m, top, unit=moments.unit, seed=seed) for s, m in known.items()}

    def __call__(self, rows: Rows, split: Split = ()) -> Block:
        """Rows (m,) as (m, largest size), by the map that has not seen the folds of the split."""
        return self.maps[split].apply(self.vectors.take(rows))

    @property
    def transform(self) -> Transform:
        """The map that was fitted on all rows."""
        return self.maps[()]
