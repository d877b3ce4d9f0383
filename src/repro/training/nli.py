"""Softmax on entailment pairs (Reimers & Gurevych, 2019; Wang et al., 2023, Table 2), the classifier trained along."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from repro.data.sampling import LIKE, NEUTRAL, UNLIKE, checked_labels
from repro.losses.nli import CLASSES, softmax_nli
from repro.models.encoder import SentenceEncoder
from repro.models.pretrained import default_device
from repro.objectives import TrainConfig
from repro.seeding import derive_seed
from repro.sets import LabelledPairs
from repro.training.end_to_end import batches

LABELS = {UNLIKE: 0, LIKE: 1, NEUTRAL: 2}


def nli_head(dim: int, seed: int) -> nn.Linear:
    """A fresh classifier V (3, 3·dim) with PyTorch's own initial weights, from a generator owned by (seed, dim)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "nli head", dim))
        return nn.Linear(3 * dim, CLASSES).to(default_device())


def label_ids(pairs: LabelledPairs) -> Tensor:
    """Classes 0 … 2 of entailment pairs (n,).

    Raises:
        InputError: for a label that is not contradiction, entailment or neutral.
    """
    return torch.tensor([LABELS[label] for label in checked_labels(pairs)])


def softmax_over_pairs(
    config: TrainConfig, encoder: SentenceEncoder, pairs: LabelledPairs
) -> tuple[nn.ModuleDict, Callable[[int], Tensor]]:
    """The softmax objective; the classifier is trained along.

    Raises:
        InputError: if the pairs carry other labels than the three.
    """
    labels = label_ids(pairs)
    head = nli_head(config.dim, config.seed)
    premises, _ = encoder.backbone.tokenize(pairs.texts1, config.max_length)
    hypotheses, _ = encoder.backbone.tokenize(pairs.texts2, config.max_length)
    batch = batches(config, len(pairs))

    def loss_at(step: int) -> Tensor:
        members = batch(step)
        tokens, mask = encoder.padded([premises[i] for i in members] + [hypotheses[i] for i in members])
        u, v = encoder(tokens, mask)[1].split(len(members))
        own = labels[torch.from_numpy(members)].to(u.device)
        return softmax_nli(u, v, own, head.weight, head.bias, difference=config.difference)

    return nn.ModuleDict({"encoder": encoder, "head": head}), loss_at
