"""Where a narrow pooler loses: in the encoder beneath it, and in itself (Wang et al., 2023, §4.1, Figure 3)."""

from typing import Any

import pandas as pd

from repro import data
from repro.evaluation.protocol import score_sts
from repro.evaluation.stats import paired_spearman_difference
from repro.experiments.sweep import Sweep, score_columns
from repro.methods import END_TO_END
from repro.rows import make_rows
from repro.types import InputError


def decomposition_rows(
    sweep: Sweep, pairs: data.ScoredPairs, *, reference: int | str | None = None, experiment: str, profile: str
) -> pd.DataFrame:
    """Both readouts of every end-to-end trained model, and how its loss splits (PROTOCOLS §3.5).

    With S_h and S_z the scores of encoder and pooler readout, and D₀ the reference dim:
    encoder_loss(d) = S_h(D₀) − S_h(d), pooler_loss(d) = S_h(d) − S_z(d); they sum to total_loss = S_h(D₀) − S_z(d).

    Args:
        sweep: end-to-end trained encoders.
        pairs: what they are scored on.
        reference: D₀; None is the hidden size, `best` the dim with the highest S_h.
        experiment: name of the experiment, for the rows.
        profile: name of the profile, for the rows.

    Raises:
        InputError: if no encoder was trained with the reference dim.
    """
    seed, dims = sweep.config.seed, sorted(sweep.cells)
    h = {d: score_sts(sweep.embeddings(d).__getitem__, pairs, seed=seed) for d in dims}
    z = {d: score_sts(sweep.embeddings(d, d).__getitem__, pairs, seed=seed) for d in dims}
    full = sweep.cells[dims[0]].pooler.hidden_dim if reference is None else reference
    if full == "best":
        full = max(dims, key=lambda d: h[d].value)
    if not isinstance(full, int) or full not in sweep.cells:
        listed = ", ".join(map(str, dims))
        raise InputError(f"reference is {full!r}: expected 'best' or a trained dim ({listed}); add it to dims")

    def loss(metric: str, of: Any, against: Any, dim: int, readout: str) -> dict[str, Any]:
        found = paired_spearman_difference(of.items, against.items, pairs.scores, subsets=pairs.subsets, seed=seed)
        return {"metric": metric, "value": found.value, "ci_low": found.low, "ci_high": found.high, "dim": dim,
                "readout": readout}  # fmt: skip

    rows: list[dict[str, Any]] = []
    for d in dims:
        rows += [
            {**score_columns(h[d]), "dim": d, "readout": "encoder"},
            {**score_columns(z[d]), "dim": d, "readout": "pooler"},
            loss("encoder_loss", h[full], h[d], d, "encoder"),
            loss("pooler_loss", h[d], z[d], d, "pooler"),
            loss("total_loss", h[full], z[d], d, "pooler"),
        ]
    return make_rows(
        rows, experiment=experiment, paper_table="fig3", method=END_TO_END, dataset=pairs.name, profile=profile,
        setting=f"{pairs.split}, reference={full}", **sweep.shared(),
    )  # fmt: skip
