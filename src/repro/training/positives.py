"""Contrastive training with a given positive for every sentence, its dropout drawn apart (PROTOCOLS §7.7).

What supervised SimCSE does with entailed hypotheses (Gao et al., 2021), with rewordings. A sentence that is its own
positive is unsupervised SimCSE: then this training is that one, step by step.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from repro.data.batching import epoch_order
from repro.losses import duplicate_mask, info_nce
from repro.losses.distributed import gather_with_grad
from repro.models.encoder import merge_equal
from repro.objectives import TrainConfig
from repro.training.end_to_end import DevScore, Trained, count_steps, fresh_encoder, minimise, own_share
from repro.types import InputError, check_same_length


def train_positives(
    config: TrainConfig,
    sentences: Sequence[str],
    positives: Sequence[str | None],
    dev_score: DevScore,
    *,
    state_path: Path | None = None,
    save_every: int = 0,
    progress: bool = True,
) -> Trained:
    """Train one encoder with one pooler to find the positive of every sentence among those of its batch.

    The number of steps is that of all sentences, and their order depends on the seed alone: what has no positive is
    passed over and the next takes its place, so that trainings with different positives stay comparable.

    Args:
        config: what to train and how, as for SimCSE.
        sentences: the anchors.
        positives: another wording of each, or itself; None leaves a sentence out.
        dev_score: `dev_score(encoder, readout)`, dev Spearman of one readout; picks the checkpoint.
        state_path: resumable state.
        save_every: steps between resumable states; 0 saves only at the end.
        progress: show a progress bar.

    Raises:
        InputError: if the sentences do not fill one batch, or those with a positive do not.
        TrainingDiverged: when the loss is not finite.
    """
    check_same_length(sentences=sentences, positives=positives)
    steps = count_steps(config, len(sentences))
    encoder = fresh_encoder(config)
    dev_before = dev_score(encoder, "encoder")
    # one left out keeps its row, so that rows are sentences; what stands there is never read
    given = [text if positive is None else positive for text, positive in zip(sentences, positives, strict=True)]
    ids, _ = encoder.backbone.tokenize([*sentences, *given], config.max_length)
    keys = torch.from_numpy(merge_equal([*sentences, *given])[1])
    n = len(sentences)
    batch = surviving_batches(config, np.array([positive is not None for positive in positives]))

    def loss_at(step: int) -> Tensor:
        members = batch(step)
        tokens, padding = encoder.padded([ids[i] for i in members] + [ids[n + i] for i in members])
        z = encoder(tokens, padding)[1]  # (2B, d): sentences, then their positives
        mask = None
        if config.mask_duplicates:
            mask = same_text(keys[members].to(z.device), keys[n + members].to(z.device))
        return info_nce(z[: len(members)], z[len(members) :], temperature=config.temperature, mask=mask)

    history = minimise(
        encoder,
        loss_at,
        config,
        steps,
        lambda: dev_score(encoder, config.checkpoint_by),
        state_path=state_path,
        save_every=save_every,
        progress=progress,
    )
    return Trained(encoder, history, dev_before)


def same_text(anchors: Tensor, positives: Tensor) -> Tensor:
    """Mask (B, W·B) of positives that say what a row says: the anchors are equal, the positives are, or one is both.

    Args:
        anchors: keys (B,), equal iff the texts are.
        positives: keys (B,) of their positives, from the same numbering.
    """
    crossed = anchors.unsqueeze(1) == gather_with_grad(positives).unsqueeze(0)
    return duplicate_mask(anchors) | duplicate_mask(positives) | crossed


def surviving_batches(config: TrainConfig, kept: NDArray[np.bool_]) -> Callable[[int], NDArray[np.int64]]:
    """A function from the step to the items of this process's share of its batch, those that are not kept passed over.

    Raises:
        InputError: if those kept do not fill one batch.
    """
    per_epoch = int(kept.sum()) // config.batch_size
    if per_epoch < 1:
        raise InputError(
            f"{int(kept.sum())} of {len(kept)} sentences have a positive, less than one batch of {config.batch_size}: "
            "train on more sentences, or raise the chance of a change"
        )

    @lru_cache(maxsize=1)
    def order(epoch: int) -> NDArray[np.int64]:
        everyone = epoch_order(len(kept), seed=config.seed, epoch=epoch)
        return everyone[kept[everyone]]

    def members(step: int) -> NDArray[np.int64]:
        epoch, position = divmod(step, per_epoch)
        return own_share(order(epoch)[position * config.batch_size : (position + 1) * config.batch_size])

    return members
