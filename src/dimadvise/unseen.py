"""Maps of one method that have not seen the rows that they are judged by.

What a map keeps of its own rows it may keep of no others. So rows that are judged lie in folds, and
a map for some of them is fitted on all rows but those of their folds, which takes one subtraction
of moments and no second pass over the rows; the map that is written is fitted on all.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from dimadvise.files import Block, Rows, Vectors
from dimadvise.transform import Moments, Transform, fit_transform_of, moments_of, most_dims
from repro.seeding import make_rng

Coder: TypeAlias = Callable[[Block], Any]
Split: TypeAlias = tuple[int, ...]
"""Folds that a map has not seen; none is the map that is fitted on all rows."""
NEVER, UNJUDGED = -1, -2  # Folds of rows that no map is fitted on, such as queries, and of others
CODED_ROWS = 2_500  # Rows that ranges and means are fitted on where labels judge
FIT_ROWS = 200_000
"""Rows beside the judged ones that are fitted on, at most: components of some hundred dimensions
settle long before.
"""


class FoldMoments:
    """Moments of all rows, and of those of each fold."""

    def __init__(
        self,
        vectors: Vectors,
        rows: Rows,
        folds: Rows,
        *,
        unit: bool,
        seed: int = 0,
    ) -> None:
        """Read the vectors once; `rows` (m,), ascending, are judged and lie in `folds` (m,), all
        others in none.
        """
        self.vectors, self.unit = vectors, unit
        coded_rows = make_rng(seed, "coded rows").permutation(vectors.shape[0])[:CODED_ROWS]
        self.drawn = coded_rows
        of_judged = pd.Series(folds, rows)
        self.fold_drawn = of_judged.reindex(coded_rows, fill_value=UNJUDGED).to_numpy()
        self.parts = {
            int(f): moments_of(vectors.taken(rows[folds == f]), unit=unit) for f in np.unique(folds)
        }
        if vectors.shape[0] - len(rows) <= FIT_ROWS:
            self.whole = moments_of(vectors.blocks(), unit=unit)
            if NEVER in self.parts:
                self.whole = self.whole - self.parts[NEVER]
            return
        is_unjudged = np.ones(vectors.shape[0], bool)
        is_unjudged[rows] = False
        rng = make_rng(seed, "fit rows")
        fit_rows = rng.choice(np.flatnonzero(is_unjudged), FIT_ROWS, replace=False)
        self.whole = moments_of(vectors.taken(np.sort(fit_rows)), unit=unit)
        for fold, of_fold in self.parts.items():
            self.whole = self.whole if fold == NEVER else self.whole + of_fold

    def unseen(self, split: Split) -> Block:
        """Some rows of no fold of a split, for what codes need beside a map."""
        return self._coded[~np.isin(self.fold_drawn, [*split, NEVER])]

    @cached_property
    def _coded(self) -> Block:
        """The rows drawn, read once: every map and level needs them."""
        return self.vectors.take(self.drawn)

    def without(self, split: Split) -> Moments:
        """Moments of all rows but those of some folds."""
        rest = self.whole
        for fold in split:
            rest = rest - self.parts[fold]
        return rest


class Shortened:
    """One method's maps, one for each split of the folds, at the largest size that all of them
    reach.

    Their `coder` makes of rows (m, d) that a map gave the way in which rows of this size are
    stored; without one they are as the map gives them.
    """

    def __init__(
        self,
        method: str,
        moments: FoldMoments,
        splits: Iterable[Split],
        sizes: Sequence[int],
        *,
        seed: int = 0,
    ) -> None:
        """Fit them; of nested methods the first columns are the smaller sizes. `sizes` are those
        within reach.
        """
        by_split = {split: moments.without(split) for split in {(), *splits}}
        most = min(most_dims(method, of_split) for of_split in by_split.values())
        self.vectors, self.moments = moments.vectors, moments
        self.coder: Coder | None = None
        self.sizes = [d for d in sizes if d <= most]
        top = max(self.sizes, default=1)
        self.maps = {
            s: fit_transform_of(method, m, top, unit=moments.unit, seed=seed)
            for s, m in by_split.items()
        }

    def __call__(self, rows: Rows, split: Split = ()) -> Block:
        """Rows (m,) as (m, largest size), by the map that has not seen the folds of the split."""
        return self.maps[split].apply(self.vectors.take(rows))

    def at_sizes(self, rows: Rows, split: Split = (), *, asked: bool = False) -> Iterator[Block]:
        """Rows (m,) as they are stored at each size, or `asked` for (m, size)."""
        Y = self(rows, split)
        seen = self.maps[split].apply(self.moments.unseen(split)) if self.coder else Y
        for size in self.sizes:
            if self.coder is None:
                yield Y[:, :size]
                continue
            way = self.coder(seen[:, :size])
            yield way.queries(Y[:, :size]) if asked else way.stored(Y[:, :size])

    @property
    def transform(self) -> Transform:
        """The map that was fitted on all rows."""
        return self.maps[()]
