"""Softmax on entailment pairs (Reimers & Gurevych, 2019, Sentence-BERT; Table 2 of Wang et al.,
2023).
"""

import torch
from torch import Tensor, nn

from repro.data.sampling import LIKE, NEUTRAL, UNLIKE, checked_labels
from repro.losses import softmax_nli
from repro.losses.nli import CLASSES
from repro.models.device import default_device
from repro.models.encoder import SentenceEncoder
from repro.seeding import derive_seed
from repro.sets import LabelledPairs
from repro.settings import TrainConfig
from repro.training.end_to_end import LossAt, batches, two_views

LABELS = {UNLIKE: 0, LIKE: 1, NEUTRAL: 2}


def softmax_over_pairs(
    config: TrainConfig,
    encoder: SentenceEncoder,
    pairs: LabelledPairs,
) -> tuple[nn.ModuleDict, LossAt]:
    """Softmax on entailment pairs; the classifier is trained along."""
    labels, head = label_ids(pairs).to(encoder.backbone.device), nli_head(config.dim, config.seed)
    premises, hypotheses = (
        encoder.backbone.tokenize(t, config.max_length)[0] for t in (pairs.texts1, pairs.texts2)
    )
    batch = batches(config, len(pairs))

    def loss_at(step: int) -> Tensor:
        members = batch(step)
        u, v = two_views(encoder, [premises[i] for i in members], [hypotheses[i] for i in members])
        return softmax_nli(
            u,
            v,
            labels[members],
            head.weight,
            head.bias,
            difference=config.difference,
        )

    return nn.ModuleDict({"encoder": encoder, "head": head}), loss_at


def nli_head(dim: int, seed: int) -> nn.Linear:
    """A fresh classifier V (3, 3·dim) with PyTorch's own initial weights, from a generator owned by
    (seed, dim).
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "nli head", dim))
        return nn.Linear(3 * dim, CLASSES).to(default_device())


def label_ids(pairs: LabelledPairs) -> Tensor:
    """Classes 0 … 2 of entailment pairs (n,); a label that is none of the three is an error."""
    return torch.tensor([LABELS[label] for label in checked_labels(pairs)])
