"""End-to-end training of an encoder: one skeleton for every objective.

Batches depend on the seed alone, so that a sweep over dims is paired.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from repro.data.sampling import Triples, epoch_order
from repro.losses.distributed import world_size
from repro.models.encoder import SentenceEncoder
from repro.models.lora import add_lora
from repro.sets import LabelledPairs
from repro.settings import TrainConfig
from repro.training.loop import LoopConfig, train
from repro.training.state import History
from repro.types import InputError

DevScore: TypeAlias = Callable[[SentenceEncoder, str], float]
"""Dev Spearman of one readout of an encoder."""
LossAt: TypeAlias = Callable[[int], Tensor]
"""The loss of a step, by its number."""
MakeLoss: TypeAlias = Callable[[TrainConfig, SentenceEncoder, Any], tuple[nn.Module, LossAt]]
"""Configuration, encoder and examples to the module that is trained, and the loss of every step."""
WEIGHT_RATE = 1e-2
"""Learning rate of learned layer weights: at a network's own, a short run would leave them where
they start.
"""


@dataclass(frozen=True)
class Trained:
    """A trained encoder and what happened on the way."""

    encoder: SentenceEncoder
    history: History
    dev_before: float  # Dev Spearman of the untrained encoder readout
    head: nn.Linear | None = None  # Classifier that was trained along, if the objective has one
    # Layer weights (n_shallow,) that ESE learned, as s in e^(−s); None where they are fixed
    log_weights: Tensor | None = None


def train_encoder(
    config: TrainConfig,
    make_loss: MakeLoss,
    examples: Any,
    dev_score: DevScore,
    *,
    encoder: SentenceEncoder | None = None,
    pooler: bool = True,
    **carrying: Any,
) -> Trained:
    """Train one encoder, from the configuration's backbone if none is given: with a fresh pooler,
    or without one.

    The checkpoint with the best dev score is kept: by the readout that the configuration names,
    without a pooler by the states. How it is carried out is said as to `train`: a killed run goes
    on from `state_path`; bars and messages, if there is to be `progress`, call the training by its
    `description`.

    Raises:
        InputError: if the examples do not fill one batch, or are none that the objective can learn
            from.
        TrainingDiverged: when the loss is not finite.
    """
    unit = config.examples if isinstance(examples, LabelledPairs | Triples) else "sentences"
    steps = count_steps(config, len(examples), unit)
    encoder = encoder or fresh_encoder(config, pooler=pooler)
    module, loss_at = make_loss(config, encoder, examples)
    parts = dict(module.named_children())
    head, weights = parts.get("head"), parts.get("layer_weights")
    readout = config.checkpoint_by if encoder.pooler is not None else "encoder"
    dev_before = dev_score(encoder, "encoder")
    history = train(
        module,
        loss_at,
        LoopConfig.of(config, steps=steps),
        check=lambda: dev_score(encoder, readout),
        rates={"layer_weights": WEIGHT_RATE / config.learning_rate},
        **carrying,
    )
    assert head is None or isinstance(head, nn.Linear)
    log_weights = None if weights is None else next(weights.parameters()).detach()
    return Trained(encoder, history, dev_before, head, log_weights)


def fresh_encoder(config: TrainConfig, *, pooler: bool = True) -> SentenceEncoder:
    """The backbone of a configuration, cut to its depth, with its dropout, an untrained pooler or
    none, and untrained adapters.
    """
    encoder = SentenceEncoder.load(
        config.backbone,
        dim=config.dim if pooler else None,
        pooling=config.pooling,
        activation=config.activation,
        seed=config.seed,
        bidirectional=config.bidirectional or None,
        final_norm=None if config.final_norm == "last" else config.final_norm,
        prompt="",  # Texts are learned from as they are
    )
    if not pooler:
        encoder.pooler = None  # The folder may bring one
    if config.layers is not None:
        encoder.backbone.keep(config.layers)
    if config.dropout is not None:
        encoder.backbone.set_dropout(config.dropout)
    if config.lora is not None:
        add_lora(encoder.backbone, config.lora, seed=config.seed)
    return encoder


def count_steps(config: Any, n: int, what: str = "sentences") -> int:
    """Steps of `batch_size` over n examples in `epochs`; the last batch of an epoch is dropped if
    it is not full.
    """
    if steps := round(config.epochs * (n // config.batch_size)):
        return steps
    raise InputError(
        f"{n} {what} do not fill one batch of {config.batch_size} in {config.epochs:g} epochs: "
        "give more `sentences`, a smaller `batch_size` or more `epochs`"
    )


def batches(
    config: TrainConfig,
    n: int,
    kept: NDArray[np.bool_] | None = None,
) -> Callable[[int], NDArray[np.int64]]:
    """Step to the items of this process's share of its batch; those that are not `kept` (n,) are
    passed over.
    """
    kept = np.ones(n, bool) if kept is None else kept
    per_epoch = int(kept.sum()) // config.batch_size
    if per_epoch < 1:
        raise InputError(
            f"{kept.sum()} of {n} sentences have a positive, less than one batch of "
            f"{config.batch_size}: train on more sentences, or raise the chance of a change"
        )

    @lru_cache(maxsize=1)
    def order(epoch: int) -> NDArray[np.int64]:
        everyone = epoch_order(n, seed=config.seed, epoch=epoch)
        return everyone[kept[everyone]]

    def members(step: int) -> NDArray[np.int64]:
        epoch, position = divmod(step, per_epoch)
        whole = order(epoch)[position * config.batch_size : (position + 1) * config.batch_size]
        processes = world_size()
        if len(whole) % processes:
            raise InputError(f"batch_size {len(whole)} does not divide among {processes} processes")
        return np.split(whole, processes)[torch.distributed.get_rank() if processes > 1 else 0]

    return members


def two_views(
    encoder: SentenceEncoder,
    ids: list[list[int]],
    others: list[list[int]],
) -> tuple[Tensor, Tensor]:
    """Embeddings (B, d) of both sides of a batch from one pass, every row under a dropout mask of
    its own.
    """
    z = encoder(*encoder.padded(ids + others))[1]  # (2B, d)
    return z[: len(ids)], z[len(ids) :]
