"""What the advisor sees of one encoder on one task under one reducer: a case, as rows and from
them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dimadvise.advice import advise
from dimadvise.bounds import NoShareError, smallest_sufficient
from dimadvise.inputs import judged_texts
from dimadvise.request import Request
from repro.methods import FULL_SIZE
from repro.rows import Row, make_rows, only
from repro.runs.encoders import Named
from repro.sets import DataSet
from repro.store import Store
from repro.terminal import complain
from repro.types import Array, InputError


def retention_rows(
    encoder: Named,
    name: str,
    task: DataSet,
    store: Store,
    *,
    reducers: Sequence[str],
    seed: int = 0,
    **shared: Any,
) -> pd.DataFrame:
    """What the advisor sees of one encoder on one task, by reducer and size.

    Metrics: `share_kept` with its lower bound in ci_low, `predicted`, `neighbours_kept`; and, at
    the full size, the score, the number of labelled items and the participation ratio; n_train are
    the rows that reducers were fitted on. No row where the full-size score may be zero, of which
    the terminal tells. Bounds of two reducers are of 97.5 %.
    """
    texts, evidence = judged_texts(task)
    if evidence is None:
        raise InputError(
            f"{name} has neither scores nor labels nor relevant documents: nothing to judge sizes "
            "by"
        )
    X = encoder.embed({name: {name: task}}, store)[texts]
    try:
        advice = advise({None: X}, evidence, Request(methods=tuple(reducers), seed=seed))
    except NoShareError as error:
        complain(f"left out: {encoder.name} on {name}: {error}")
        return make_rows([], **shared)
    facts = {
        "participation_ratio": advice.ratio,
        evidence.metric: advice.reference,
        "items": float(advice.items),
    }
    full = {"method": FULL_SIZE, "dim": advice.full_dim}
    rows: list[Row] = [
        {**full, "metric": metric, "value": value} for metric, value in facts.items()
    ]
    for c in advice.candidates:
        candidate = {"method": c.method, "dim": c.dim}
        rows.append({**candidate, "metric": "share_kept", "value": c.share, "ci_low": c.low})
        rows.append({**candidate, "metric": "predicted", "value": c.predicted})
        rows.append({**candidate, "metric": "neighbours_kept", "value": c.neighbours})
    return make_rows(
        rows,
        backbone=encoder.name,
        dataset=name,
        seed=seed,
        n_train=advice.rows,
        **shared,
    )


@dataclass(frozen=True)
class Case:
    """One encoder on one task under one reducer; arrays over sizes, the largest first."""

    encoder: str
    task: str
    reducer: str
    full: int
    ratio: float  # Participation ratio
    dims: Array
    share: Array  # Share r(d) of the score kept
    low: Array
    predicted: Array
    neighbours: Array

    def reach(self, curve: Array, target: float) -> int:
        """The last size on the way down whose value passes; the full size where none does."""
        return smallest_sufficient(self.dims.tolist(), curve.tolist(), target) or self.full

    def at_least(self, size: float) -> int:
        """The smallest size tried that is no smaller; the full size where there is none."""
        return int(min((d for d in self.dims if d >= size), default=self.full))

    def kept(self, dim: int) -> float:
        """Share of the score at a size; 1 at the full one, where the advice is to leave everything
        as it is.
        """
        return 1.0 if dim == self.full else float(self.share[list(self.dims).index(dim)])


def cases_of(curves: pd.DataFrame) -> list[Case]:
    """Cases from the rows of `retention_rows`."""
    cases = []
    facts = only(curves, metric="participation_ratio").set_index(["backbone", "dataset"])
    names = ["share_kept", "predicted", "neighbours_kept"]
    by_size = curves[curves["metric"].isin(names)]
    for (encoder, task, reducer), group in by_size.groupby(
        ["backbone", "dataset", "method"],
        sort=False,
    ):
        of = {
            name: rows.set_index("dim").sort_index(ascending=False)
            for name, rows in group.groupby("metric")
        }
        share, predicted, neighbours = (of[name]["value"].to_numpy(float) for name in names)
        dims, low = of["share_kept"].index, of["share_kept"]["ci_low"].to_numpy(float)
        fact = facts.loc[(encoder, task)]
        about = (encoder, task, reducer, int(fact["dim"]), float(fact["value"]))
        cases.append(Case(*about, dims.to_numpy(np.int64), share, low, predicted, neighbours))
    return cases
