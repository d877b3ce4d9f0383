"""Objectives that train a pooler: unsupervised SimCSE, and softmax on entailment pairs (Wang et al., 2023, §5).

Gao et al. (2021), SimCSE, with positives of PROTOCOLS §7.7; Reimers & Gurevych (2019), Sentence-BERT.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from repro.data.sampling import LIKE, NEUTRAL, UNLIKE, checked_labels
from repro.losses import duplicate_mask, info_nce, softmax_nli
from repro.losses.nli import CLASSES
from repro.models.encoder import SentenceEncoder, merge_equal
from repro.models.pretrained import default_device
from repro.objectives import TrainConfig
from repro.seeding import derive_seed
from repro.sets import LabelledPairs
from repro.training.end_to_end import LossAt, batches

Example: TypeAlias = str | tuple[str, str | None]
"""a sentence, its own positive; or a sentence and its positive, None where it has none"""
LABELS = {UNLIKE: 0, LIKE: 1, NEUTRAL: 2}


def contrastive(
    config: TrainConfig, encoder: SentenceEncoder, examples: Sequence[Example]
) -> tuple[SentenceEncoder, LossAt]:
    """A sentence finds itself, or a given rewording, among those of its batch, their dropout drawn apart.

    A sentence whose positive is None is passed over and the next takes its place, so that trainings with different
    positives stay comparable.
    """
    pairs = [(example, example) if isinstance(example, str) else example for example in examples]
    anchors, n = [sentence for sentence, _ in pairs], len(pairs)
    # one left out keeps its row, so that rows are sentences; what stands there is never read
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
        # what says what a row says is no negative of it: the anchors are equal, the positives are, or one is both
        mask = duplicate_mask(a) | duplicate_mask(p) | duplicate_mask(a, p) if config.mask_duplicates else None
        return info_nce(z1, z2, temperature=config.temperature, mask=mask)

    return encoder, loss_at


def softmax_over_pairs(
    config: TrainConfig, encoder: SentenceEncoder, pairs: LabelledPairs
) -> tuple[nn.ModuleDict, LossAt]:
    """Softmax on entailment pairs; the classifier is trained along."""
    labels, head = label_ids(pairs).to(encoder.backbone.device), nli_head(config.dim, config.seed)
    premises, hypotheses = (encoder.backbone.tokenize(t, config.max_length)[0] for t in (pairs.texts1, pairs.texts2))
    batch = batches(config, len(pairs))

    def loss_at(step: int) -> Tensor:
        members = batch(step)
        u, v = two_views(encoder, [premises[i] for i in members], [hypotheses[i] for i in members])
        return softmax_nli(u, v, labels[members], head.weight, head.bias, difference=config.difference)

    return nn.ModuleDict({"encoder": encoder, "head": head}), loss_at


def nli_head(dim: int, seed: int) -> nn.Linear:
    """A fresh classifier V (3, 3·dim) with PyTorch's own initial weights, from a generator owned by (seed, dim)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "nli head", dim))
        return nn.Linear(3 * dim, CLASSES).to(default_device())


def label_ids(pairs: LabelledPairs) -> Tensor:
    """Classes 0 … 2 of entailment pairs (n,); a label that is none of the three is an error."""
    return torch.tensor([LABELS[label] for label in checked_labels(pairs)])


def two_views(encoder: SentenceEncoder, ids: list[list[int]], others: list[list[int]]) -> tuple[Tensor, Tensor]:
    """Embeddings (B, d) of both sides of a batch from one pass, every row under a dropout mask of its own."""
    z = encoder(*encoder.padded(ids + others))[1]  # (2B, d)
    return z[: len(ids)], z[len(ids) :]
