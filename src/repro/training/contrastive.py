"""End-to-end SimCSE training of backbone and pooler (Gao et al., 2021; step 1 of Wang et al., 2023)."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from repro.losses import duplicate_mask, info_nce
from repro.models import SentenceEncoder
from repro.models.encoder import merge_equal
from repro.objectives import TrainConfig
from repro.training.end_to_end import DevScore, Trained, batches, count_steps, fresh_encoder, minimise


def train_contrastive(
    config: TrainConfig,
    sentences: Sequence[str],
    dev_score: DevScore,
    *,
    encoder: SentenceEncoder | None = None,
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
        encoder: where training starts; None is the configuration's backbone with a fresh pooler.
        state_path: resumable state.
        save_every: steps between resumable states; 0 saves only at the end.
        progress: show a progress bar.

    Raises:
        InputError: if the sentences do not fill one batch.
        TrainingDiverged: when the loss is not finite.
    """
    steps = count_steps(config, len(sentences))
    encoder = encoder or fresh_encoder(config)
    dev_before = dev_score(encoder, "encoder")
    ids, _ = encoder.backbone.tokenize(sentences, config.max_length)
    keys = torch.from_numpy(merge_equal(sentences)[1])
    batch = batches(config, len(ids))

    def loss_at(step: int) -> Tensor:
        members = batch(step)
        z1, z2 = two_views(encoder, [ids[i] for i in members])
        mask = duplicate_mask(keys[members].to(z1.device)) if config.mask_duplicates else None
        return info_nce(z1, z2, temperature=config.temperature, mask=mask)

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


def two_views(encoder: SentenceEncoder, ids: list[list[int]]) -> tuple[Tensor, Tensor]:
    """Embeddings z1, z2 (B, d) of one batch under two dropout masks, from one pass over 2B rows."""
    tokens, mask = encoder.padded(ids + ids)
    z = encoder(tokens, mask)[1]
    return z[: len(ids)], z[len(ids) :]
