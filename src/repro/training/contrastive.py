"""SimCSE: a sentence finds itself under another dropout mask, or a given rewording, among those of its batch.

References:
    Gao et al. (2021), SimCSE; step 1 of Wang et al. (2023). With positives PROTOCOLS §7.7.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from repro.losses.contrastive import duplicate_mask, info_nce
from repro.losses.distributed import gather_with_grad
from repro.models.encoder import SentenceEncoder
from repro.models.packing import merge_equal
from repro.objectives import TrainConfig
from repro.training.end_to_end import batches

Example: TypeAlias = str | tuple[str, str | None]
"""a sentence, its own positive; or a sentence and its positive, None where it has none"""


def contrastive(
    config: TrainConfig, encoder: SentenceEncoder, examples: Sequence[Example]
) -> tuple[SentenceEncoder, Callable[[int], Tensor]]:
    """The objective on plain sentences, or on sentences with positives, their dropout drawn apart either way.

    A sentence whose positive is None is passed over and the next takes its place, so that trainings with different
    positives stay comparable.

    Raises:
        InputError: if the sentences that have a positive do not fill one batch.
    """
    pairs = [(example, example) if isinstance(example, str) else example for example in examples]
    anchors, n = [sentence for sentence, _ in pairs], len(pairs)
    # one left out keeps its row, so that rows are sentences; what stands there is never read
    given = [sentence if positive is None else positive for sentence, positive in pairs]
    texts = anchors if given == anchors else [*anchors, *given]
    ids, _ = encoder.backbone.tokenize(texts, config.max_length)
    keys = torch.from_numpy(merge_equal(texts)[1])
    batch = batches(config, n, np.array([positive is not None for _, positive in pairs]))

    def loss_at(step: int) -> Tensor:
        members = batch(step)
        others = members + len(texts) - n
        z1, z2 = two_views(encoder, [ids[i] for i in members], [ids[i] for i in others])
        mask = same_text(keys[members].to(z1.device), keys[others].to(z1.device)) if config.mask_duplicates else None
        return info_nce(z1, z2, temperature=config.temperature, mask=mask)

    return encoder, loss_at


def two_views(encoder: SentenceEncoder, ids: list[list[int]], others: list[list[int]]) -> tuple[Tensor, Tensor]:
    """Embeddings z1, z2 (B, d) of one batch and of its positives, every row under a dropout mask of its own.

    From one pass over 2B rows.
    """
    tokens, mask = encoder.padded(ids + others)
    z = encoder(tokens, mask)[1]  # (2B, d)
    return z[: len(ids)], z[len(ids) :]


def same_text(anchors: Tensor, positives: Tensor) -> Tensor:
    """Mask (B, W·B) of positives that say what a row says: the anchors are equal, the positives are, or one is both.

    Args:
        anchors: keys (B,), equal iff the texts are.
        positives: keys (B,) of their positives, from the same numbering.
    """
    crossed = anchors.unsqueeze(1) == gather_with_grad(positives).unsqueeze(0)
    return duplicate_mask(anchors) | duplicate_mask(positives) | crossed
