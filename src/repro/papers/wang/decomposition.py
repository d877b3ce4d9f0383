"""Where a narrow pooler loses: in the encoder beneath it, and in itself (Wang et al., 2023, §4.1, Figure 3)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from repro.config import Profile, override
from repro.config import profile as profile_named
from repro.evaluation.protocol import score_sts
from repro.methods import END_TO_END
from repro.models.backbone import load_backbone
from repro.models.folders import own_pooling
from repro.objectives import TrainConfig
from repro.papers.wang.two_step import rows_of
from repro.recipes import RECIPES
from repro.runs.pool import train_all
from repro.runs.sweep import Sweep, gain_over, train_sweep
from repro.sets import DataSet, ScoredPairs
from repro.store import Store
from repro.types import InputError, check_dim

SMALL = ("repro-tiny:1", "repro-tiny", "all-MiniLM-L6-v2:3", "all-MiniLM-L6-v2")
NETWORKS: dict[str, tuple[str, ...]] = {
    "embedded": SMALL,
    "gpu": SMALL,
    "paper": ("bert-base-uncased", "bert-large-uncased", "roberta-base", "roberta-large"),
}
"""the four networks of Figure 3 by profile, as `name` or `name:blocks`; without a hub, two networks at two depths"""
# MiniLM costs far more than repro-tiny. With one check, at the end, the validation pairs choose nothing, so the
# smallest set of them does.
MINILM: dict[str, Any] = {"sentences": 128, "batch_size": 32, "check_every": 10_000, "validation": "sickr"}
BRIEF: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    "repro-tiny:1": ({}, (128, 32, 8)),
    "all-MiniLM-L6-v2": (MINILM, (384, 8)),
}
"""network, or backbone at any depth, to settings and dims that fit the profile `embedded` to two cores"""


@dataclass(frozen=True)
class Network:
    """One of the figure's networks: what is trained, and with which dims."""

    name: str
    """`name`, or `name:blocks` where blocks were taken off"""
    blocks: int
    hidden_dim: int
    config: TrainConfig
    dims: tuple[int, ...]


def parse_network(name: str) -> tuple[str, int | None]:
    """`backbone:blocks` as its two parts; None without a colon: all blocks.

    Raises:
        InputError: for an empty name, or blocks that are not a whole number of at least 1.
    """
    backbone, colon, blocks = name.partition(":")
    if not backbone or (colon and not (blocks.isdecimal() and int(blocks) > 0)):
        raise InputError(f"unknown backbone {name!r}: expected a name, or name:blocks such as repro-tiny:1")
    return backbone, int(blocks) if colon else None


def plan_networks(
    profile: Profile,
    names: Sequence[str] | None = None,
    dims: Sequence[int] | None = None,
    *,
    reference: int | str | None = None,
    **train: Any,
) -> list[Network]:
    """What to train for Figure 3: every network with its recipe, and dims that hold the reference.

    Args:
        profile: where it runs; names the networks, the candidate dims and the data.
        names: networks as `name` or `name:blocks`; None takes the profile's.
        dims: pooler widths of every network, to which the reference is added; None is the hidden size and the profile's
            candidates below it.
        reference: as in `decomposition_rows`.
        train: fields of `TrainConfig` that replace all recipes; None keeps them.

    Raises:
        InputError: for a name or a number of blocks that does not exist, or repeated networks.
    """
    planned = []
    for name in names or NETWORKS[profile.name]:
        backbone, blocks = parse_network(name)
        network = load_backbone(backbone, device="cpu")
        if blocks is not None:
            check_dim(blocks, limit=network.n_layers, what=f"number of blocks of {backbone}")
        brief = BRIEF if profile.name == "embedded" else {}
        settings, few = brief.get(name) or brief.get(backbone) or ({}, ())
        config = profile_named(
            profile.name,
            backbone=backbone,
            source=profile.source,
            layers=None if blocks == network.n_layers else blocks,
        ).train
        if config.pooling == "cls" and not any(known == backbone for known, _ in RECIPES):
            config = override(config, pooling=own_pooling(backbone) or "cls")
        config = override(config, **settings)
        config = override(config, **train)
        widths = set(dims or few or {network.hidden_dim, *(d for d in profile.candidates if d < network.hidden_dim)})
        full = network.hidden_dim if reference is None else reference
        widths |= {full} if isinstance(full, int) else set()
        label = backbone if config.layers is None else f"{backbone}:{config.layers}"
        planned.append(Network(label, blocks or network.n_layers, network.hidden_dim, config, tuple(sorted(widths))))
    labels = [network.name for network in planned]
    if len(set(labels)) < len(labels):
        raise InputError(f"backbones are {', '.join(labels)}: expected different ones")
    return planned


def train_networks(
    networks: Sequence[Network], sets: Sequence[DataSet], store: Store, *, progress: bool = True
) -> dict[str, Sweep]:
    """A sweep per network, by its name; cells of all networks are trained in one pool, so that no core waits."""
    cells = train_all([replace(n.config, dim=d) for n in networks for d in n.dims], store, progress=progress)
    hit = {cell.key: cell.hit for cell in cells}
    sweeps = {n.name: train_sweep(n.config, n.dims, sets, store, progress=progress) for n in networks}
    return {
        name: replace(sweep, hits=sum(hit[cell.key] for cell in sweep.cells.values())) for name, sweep in sweeps.items()
    }


def decomposition_rows(
    sweep: Sweep, pairs: ScoredPairs, *, reference: int | str | None = None, **shared: Any
) -> pd.DataFrame:
    """Both readouts of every end-to-end trained model, and how its loss splits (PROTOCOLS §3.5).

    With S_h and S_z the scores of encoder and pooler readout, and D₀ the reference dim:
    encoder_loss(d) = S_h(D₀) − S_h(d), pooler_loss(d) = S_h(d) − S_z(d); they sum to total_loss = S_h(D₀) − S_z(d).

    Args:
        sweep: end-to-end trained encoders.
        pairs: what they are scored on.
        reference: D₀; None is the hidden size, `best` the dim with the highest S_h.
        shared: columns common to all rows.

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
    rows: list[dict[str, Any]] = []
    for d in dims:
        rows += [{**h[d].columns, "dim": d, "readout": "encoder"}, {**z[d].columns, "dim": d, "readout": "pooler"}]
        losses = {"encoder": (h[full], h[d]), "pooler": (h[d], z[d]), "total": (h[full], z[d])}
        for part, (before, after) in losses.items():
            found = gain_over(before.items, after.items, pairs, seed=seed).columns
            readout = "encoder" if part == "encoder" else "pooler"
            rows.append({**found, "metric": f"{part}_loss", "dim": d, "readout": readout})
    setting = f"{pairs.split}, reference={full}{' (best)' if reference == 'best' else ''}"
    return rows_of(sweep, rows, shared, paper_table="fig3", method=END_TO_END, dataset=pairs.name, setting=setting)
