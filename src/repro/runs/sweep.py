"""A sweep: one encoder per pooler width, trained once, with the states of all texts under each, encoded once.

Pairs of encoder and pooler, tasks and stages are then products of small matrices.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from repro import data
from repro.data.sampling import take
from repro.evaluation.protocol import all_texts
from repro.evaluation.stats import Interval, paired_spearman_difference
from repro.evaluation.sts import prefix_cosines, sts_spearman
from repro.models.backbone import load_backbone
from repro.objectives import TrainConfig
from repro.runs.cell import TrainedCell
from repro.runs.embeddings import TextTable, encode_once
from repro.runs.pool import train_all
from repro.seeding import cpu_count
from repro.sets import DataSet
from repro.store import Store
from repro.types import Array, InputError


@dataclass(frozen=True)
class Sweep:
    """Encoders of several dims under one seed, with the states of all texts under each."""

    cells: Mapping[int, TrainedCell]
    states: Mapping[int, TextTable]
    hits: int
    """cells found in the store, not trained, by this call"""

    @property
    def config(self) -> TrainConfig:
        """Settings the cells share; `dim` is the first cell's."""
        return next(iter(self.cells.values())).config

    def embeddings(self, encoder: int, pooler: int | None = None) -> TextTable:
        """Z of encoder_i with pooler_j, by the dims they were trained with; h where no pooler is given."""
        h = self.states[encoder]
        return h if pooler is None else h.map(self.cells[pooler].pooler.project)

    def shared(self) -> dict[str, Any]:
        """Row columns that all numbers of the sweep share."""
        c = self.config
        device = "cuda" if torch.cuda.is_available() else "cpu"
        return {
            "backbone": c.backbone,
            "layer": c.layers,
            "seed": c.seed,
            "data_source": c.source,
            "n_train": c.sentences,
            "device": device,
            **c.columns,
        }


def train_sweep(
    config: TrainConfig, dims: Sequence[int], sets: Sequence[DataSet], store: Store, *, progress: bool = True
) -> Sweep:
    """Train one encoder per dim (or find it) and encode all texts of `sets` under each, once.

    Raises:
        InputError: for no dim at all, or repeated ones.
    """
    if not dims or len(set(dims)) != len(dims):
        raise InputError(f"dims is {list(dims)}: expected one or more different sizes")
    torch.set_num_threads(cpu_count())
    cells = train_all([replace(config, dim=dim) for dim in dims], store, progress=progress)
    texts = all_texts(sets)
    states = {cell.config.dim: states_of(cell, texts, store) for cell in cells}
    return Sweep({c.config.dim: c for c in cells}, states, sum(c.hit for c in cells))


def states_of(cell: TrainedCell, texts: Iterable[str], store: Store) -> TextTable:
    """States h of texts under a cell's encoder, which is loaded only if the store does not hold them."""
    return encode_once(partial(getattr, cell, "encoder"), cell.key, texts, store)


def hidden_dim_of(config: TrainConfig) -> int:
    """Hidden size D of a configuration's backbone."""
    return load_backbone(config.backbone).hidden_dim


def load_tasks(
    names: Sequence[str], source: str, *, text: str = "senteval", probe_rows: int | None = None
) -> dict[str, dict[str, DataSet]]:
    """The splits each task needs: dev and test of scored pairs, all splits of the others.

    Args:
        names: of datasets.
        source: local, hub or microworld.
        text: form of the STS sets.
        probe_rows: rows kept of every split that is not of scored pairs, drawn at random; None keeps all.
    """
    tasks: dict[str, dict[str, DataSet]] = {}
    for name in names:
        splits = data.load_splits(name, source=source, text=text)
        first = next(iter(splits.values()))
        if isinstance(first, data.ScoredPairs):
            tasks[name] = {split: part for split, part in splits.items() if split in ("dev", "test")}
        else:
            tasks[name] = {split: take(part, probe_rows) for split, part in splits.items()}
    return tasks


def sets_of(tasks: Mapping[str, Mapping[str, DataSet]]) -> list[DataSet]:
    """All sets of some tasks."""
    return [part for splits in tasks.values() for part in splits.values()]


def cosines_of(table: TextTable, pairs: data.ScoredPairs) -> Array:
    """Cosine of every pair (n,)."""
    X1, X2 = table[pairs.texts1], table[pairs.texts2]
    return np.asarray(prefix_cosines(X1, X2, [X1.shape[1]])[0])


def spearman_of(table: TextTable, pairs: data.ScoredPairs) -> float:
    """Spearman of the cosines with the gold scores of some pairs."""
    return float(sts_spearman(table[pairs.texts1], table[pairs.texts2], pairs.scores))


def gain_over(a: Array, b: Array, pairs: data.ScoredPairs, *, seed: int) -> Interval:
    """Spearman of cosines a (n,) less that of cosines b (n,), on the same resampled pairs."""
    return paired_spearman_difference(a, b, pairs.scores, subsets=pairs.subsets, seed=seed)
