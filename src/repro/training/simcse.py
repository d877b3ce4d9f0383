"""Unsupervised SimCSE, step 1 of Wang et al. (2023), and with other wordings as positives (Gao et
al., 2021; method-info-nce, method-augmentation in the book).
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from repro.losses import duplicate_mask, info_nce
from repro.models.encoder import SentenceEncoder
from repro.models.packing import merge_equal
from repro.settings import TrainConfig
from repro.training.end_to_end import LossAt, batches, two_views

Example: TypeAlias = str | tuple[str, str | None]
"""A sentence, its own positive; or a sentence and its positive, None where it has none."""


def contrastive(
    config: TrainConfig,
    encoder: SentenceEncoder,
    examples: Sequence[Example],
) -> tuple[SentenceEncoder, LossAt]:
    """A sentence finds itself, or a given rewording, among those of its batch, their dropout drawn
    apart.

    A sentence whose positive is None is passed over and the next takes its place, so that trainings
    with different positives stay comparable.
    """
    pairs = [(example, example) if isinstance(example, str) else example for example in examples]
    anchors, n = [sentence for sentence, _ in pairs], len(pairs)
    # A sentence left out keeps its row, so that rows are sentences, but the row is never read
    given = [sentence if positive is None else positive for sentence, positive in pairs]
    texts = anchors if given == anchors else [*anchors, *given]
    ids, _ = encoder.backbone.tokenize(texts, config.max_length)
    keys = torch.from_numpy(merge_equal(texts)[1]).to(encoder.backbone.device)
    batch = batches(config, n, np.array([positive is not None for _, positive in pairs]))

    def loss_at(step: int) -> Tensor:
        members = batch(step)
        others = members + len(texts) - n
        z1, z2 = two_views(encoder, [ids[i] for i in members], [ids[i] for i in others])
        a, p = keys[members], keys[others]
        # A row with the text of another is no negative of it: two anchors or two positives are
        # equal, or the anchor of one is the positive of the other
        mask = (
            duplicate_mask(a) | duplicate_mask(p) | duplicate_mask(a, p)
            if config.mask_duplicates
            else None
        )
        return info_nce(z1, z2, temperature=config.temperature, mask=mask)

    return encoder, loss_at
