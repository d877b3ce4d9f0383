"""What every end-to-end training of backbone and pooler shares: fresh weights, batches, schedule, checkpoints."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from repro.data.batching import epoch_order
from repro.losses.distributed import world_size
from repro.models import SentenceEncoder
from repro.models.lora import add_lora
from repro.objectives import SCALING, StepTwoConfig, TrainConfig
from repro.training.loop import History, LoopConfig, train
from repro.types import InputError

DevScore = Callable[[SentenceEncoder, str], float]
"""dev Spearman of one readout of an encoder"""


@dataclass(frozen=True)
class Trained:
    """A trained encoder and what happened on the way."""

    encoder: SentenceEncoder
    history: History
    dev_before: float
    """dev Spearman of the untrained encoder readout"""
    head: nn.Linear | None = None
    """classifier that was trained along, if the objective has one"""
    log_weights: Tensor | None = None
    """learned layer weights of ESE (n_shallow,), as s in e^(−s); None where they are fixed"""


def fresh_encoder(config: TrainConfig) -> SentenceEncoder:
    """The backbone of a configuration, cut to its depth, with its dropout, and an untrained pooler or adapters.

    The objectives of ESE's comparison have no pooler: their sizes are prefixes of the pooled state.
    """
    encoder = SentenceEncoder.load(
        config.backbone,
        dim=None if config.objective in SCALING else config.dim,
        pooling=config.pooling,
        activation=config.activation,
        seed=config.seed,
        bidirectional=config.bidirectional or None,
        final_norm=None if config.final_norm == "last" else config.final_norm,
    )
    if config.objective in SCALING:
        encoder.pooler = None  # one that the folder may bring
    if config.layers is not None:
        encoder.backbone.keep(config.layers)
    if config.dropout is not None:
        encoder.backbone.set_dropout(config.dropout)
    if config.lora is not None:
        add_lora(encoder.backbone, config.lora, seed=config.seed)
    return encoder


def title(config: TrainConfig) -> str:
    """What progress bars and messages call a training."""
    names = {
        "simcse": f"SimCSE dim {config.dim}",
        "nli": f"NLI dim {config.dim}",
        "angle": "AnglE",
        "matryoshka": "Matryoshka",
        "ese": f"ESE size {config.dim}",
    }
    return names[config.objective]


def count_steps(config: TrainConfig | StepTwoConfig, n: int, what: str = "sentences") -> int:
    """Optimiser steps over n items; the last batch of an epoch is dropped if it is not full.

    Raises:
        InputError: if they do not fill one batch.
    """
    steps = round(config.epochs * (n // config.batch_size))
    if steps < 1:
        raise InputError(
            f"{n} {what} do not fill one batch of {config.batch_size} in {config.epochs:g} epochs: give more "
            "`sentences`, a smaller `batch_size` or more `epochs`"
        )
    return steps


def batches(config: TrainConfig, n: int) -> Callable[[int], NDArray[np.int64]]:
    """A function from the step to the items of this process's share of its batch.

    The order depends on the seed alone, so that a sweep over dims is paired.
    """
    per_epoch = n // config.batch_size

    @lru_cache(maxsize=1)
    def order(epoch: int) -> NDArray[np.int64]:
        return epoch_order(n, seed=config.seed, epoch=epoch)

    def members(step: int) -> NDArray[np.int64]:
        epoch, position = divmod(step, per_epoch)
        return own_share(order(epoch)[position * config.batch_size : (position + 1) * config.batch_size])

    return members


def own_share(members: NDArray[np.int64]) -> NDArray[np.int64]:
    """The part of a batch that this process works on: contiguous shares in rank order.

    Raises:
        InputError: if the batch does not divide evenly among the processes.
    """
    processes = world_size()
    if processes == 1:
        return members
    if len(members) % processes:
        raise InputError(f"batch_size {len(members)} does not divide among {processes} processes")
    share = len(members) // processes
    rank = torch.distributed.get_rank()
    return members[rank * share : (rank + 1) * share]


def minimise(
    module: nn.Module,
    loss_at: Callable[[int], Tensor],
    config: TrainConfig,
    steps: int,
    check: Callable[[], float],
    *,
    state_path: Path | None,
    save_every: int,
    progress: bool,
    rates: Mapping[str, float] | None = None,
) -> History:
    """`loop.train` on the schedule of a configuration; `rates` as there."""
    loop = LoopConfig(
        steps=steps,
        learning_rate=config.learning_rate,
        warmup=config.warmup,
        check_every=config.check_every,
        save_every=save_every,
        bf16=config.bf16,
        seed=config.seed,
    )
    return train(
        module,
        loss_at,
        loop,
        check=check,
        state_path=state_path,
        description=title(config),
        progress=progress,
        rates=rates,
    )
