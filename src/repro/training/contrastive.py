"""End-to-end SimCSE training of backbone and pooler (Gao et al., 2021; step 1 of Wang et al., 2023)."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from repro.config import TrainConfig
from repro.data.batching import epoch_order
from repro.losses import duplicate_mask, info_nce
from repro.losses.distributed import world_size
from repro.models import SentenceEncoder
from repro.models.encoder import merge_equal
from repro.training.loop import History, LoopConfig, train
from repro.types import InputError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Trained:
    """A trained encoder and what happened on the way."""

    encoder: SentenceEncoder
    history: History
    dev_before: float
    """dev Spearman of the untrained encoder readout"""


def train_contrastive(
    config: TrainConfig,
    sentences: Sequence[str],
    dev_score: Callable[[SentenceEncoder, str], float],
    *,
    state_path: Path | None = None,
    save_every: int = 0,
    progress: bool = True,
) -> Trained:
    """Train one encoder with one pooler on `sentences`.

    The order of the data and the dropout streams depend on the seed alone, so that a sweep over dims is paired.

    Args:
        config: what to train and how.
        sentences: training texts; `config.epochs` passes over them.
        dev_score: `dev_score(encoder, readout)`, dev Spearman of one readout; picks the checkpoint.
        state_path: resumable state.
        save_every: steps between resumable states; 0 saves only at the end.
        progress: show a progress bar.

    Raises:
        InputError: if the sentences do not fill one batch.
        TrainingDiverged: when the loss is not finite.
    """
    steps = round(config.epochs * (len(sentences) // config.batch_size))
    if steps < 1:
        raise InputError(
            f"{len(sentences)} sentences do not fill one batch of {config.batch_size} in {config.epochs} epochs"
        )
    encoder = SentenceEncoder.load(
        config.backbone, dim=config.dim, pooling=config.pooling, activation=config.activation, seed=config.seed
    )
    if config.dropout is not None:
        encoder.backbone.set_dropout(config.dropout)
    dev_before = dev_score(encoder, "encoder")
    ids, _ = encoder.backbone.tokenize(sentences, config.max_length)
    keys = torch.from_numpy(merge_equal(sentences)[1])
    per_epoch = len(sentences) // config.batch_size
    orders: dict[int, np.ndarray] = {}

    def loss_at(step: int) -> Tensor:
        epoch, position = divmod(step, per_epoch)
        if epoch not in orders:
            orders.clear()
            orders[epoch] = epoch_order(len(ids), seed=config.seed, epoch=epoch)
        members = own_share(orders[epoch][position * config.batch_size : (position + 1) * config.batch_size])
        z1, z2 = two_views(encoder, [ids[i] for i in members])
        mask = duplicate_mask(keys[members].to(z1.device)) if config.mask_duplicates else None
        return info_nce(z1, z2, temperature=config.temperature, mask=mask)

    loop = LoopConfig(
        steps=steps,
        learning_rate=config.learning_rate,
        check_every=config.check_every,
        save_every=save_every,
        bf16=config.bf16,
        seed=config.seed,
    )
    history = train(
        encoder,
        loss_at,
        loop,
        check=lambda: dev_score(encoder, config.checkpoint_by),
        state_path=state_path,
        description=f"SimCSE dim {config.dim}",
        progress=progress,
    )
    return Trained(encoder, history, dev_before)


def two_views(encoder: SentenceEncoder, ids: list[list[int]]) -> tuple[Tensor, Tensor]:
    """Embeddings z1, z2 (B, d) of one batch under two dropout masks, from one pass over 2B rows."""
    tokens, mask = encoder.padded(ids + ids)
    z = encoder(tokens, mask)[1]
    return z[: len(ids)], z[len(ids) :]


def own_share(members: np.ndarray) -> np.ndarray:
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
