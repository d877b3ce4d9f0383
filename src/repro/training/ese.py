"""ESE (Li et al., 2025) and its controls: AnglE on the last layer, at full size or on prefixes
(method-angle, method-matryoshka, method-espresso in the book).

Li & Li (2024), AnglE: angle-optimized text embeddings; Kusupati et al. (2022), Matryoshka
representation learning.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from repro.data.sampling import LIKE, Triples
from repro.losses import angle_pairs, angle_triples, espresso, shallow_layers
from repro.losses import matryoshka as on_prefixes
from repro.losses.espresso import initial_log_weights
from repro.models.encoder import SentenceEncoder
from repro.models.packing import merge_equal
from repro.seeding import derive_seed
from repro.sets import LabelledPairs
from repro.settings import TrainConfig
from repro.training.end_to_end import LossAt, batches
from repro.types import check_dim

PREFIXES = (8, 16, 32, 64, 128, 256, 512, 768)
"""Sizes that `matryoshka` trains where the configuration names none (Kusupati et al., 2022)."""
GROUPS = 4
"""Runs of texts of like length that a batch is padded in on the CPU: 128 texts of NLI take 2/3 of
the time of one run at 2 layers of 128, 2/5 at 6 layers of 384.
"""
Examples: TypeAlias = LabelledPairs | Triples
Loss: TypeAlias = Callable[[Tensor], Tensor]


def angle(
    config: TrainConfig,
    encoder: SentenceEncoder,
    examples: Examples,
) -> tuple[SentenceEncoder, LossAt]:
    """AnglE on the last layer at full size, without a pooler: the control that ESE's paper
    lacks.
    """
    last = [encoder.n_layers]
    return encoder, on_layers(
        config, encoder, examples, last, lambda loss, states, step: loss(states[-1])
    )


def matryoshka(
    config: TrainConfig,
    encoder: SentenceEncoder,
    examples: Examples,
) -> tuple[SentenceEncoder, LossAt]:
    """AnglE on prefixes of the last layer: those below the hidden size, and the hidden size
    itself.
    """
    below = [size for size in config.prefixes or PREFIXES if size < encoder.hidden_dim]

    def total(loss: Loss, states: list[Tensor], step: int) -> Tensor:
        return on_prefixes(loss, (*below, encoder.hidden_dim))(states[-1])

    return encoder, on_layers(config, encoder, examples, [encoder.n_layers], total)


def ese(
    config: TrainConfig,
    encoder: SentenceEncoder,
    examples: Examples,
) -> tuple[nn.ModuleDict, LossAt]:
    """AnglE on all layers, and on a compressed prefix of each; layer weights that are learned are
    trained along.
    """
    check_dim(config.dim, limit=encoder.hidden_dim, what="compressed size")
    module, layers, weights = nn.ModuleDict({"encoder": encoder}), range(encoder.n_layers + 1), None
    if config.espresso.layer_weights.startswith("learned"):
        start = initial_log_weights(len(shallow_layers(len(layers), config.espresso)))
        weights = nn.Parameter(start.to(encoder.backbone.device))
        module["layer_weights"] = nn.ParameterList([weights])

    def total(loss: Loss, states: list[Tensor], step: int) -> Tensor:
        seed = derive_seed(config.seed, "espresso", step)
        return espresso(
            states,
            loss,
            size=config.dim,
            config=config.espresso,
            log_weights=weights,
            seed=seed,
        )

    return module, on_layers(config, encoder, examples, layers, total)


def on_layers(
    config: TrainConfig,
    encoder: SentenceEncoder,
    examples: Examples,
    layers: Sequence[int],
    total: Callable[[Loss, list[Tensor], int], Tensor],
) -> LossAt:
    """The loss of a step from the states of some layers; every text of a batch takes one forward
    pass.

    `total` takes AnglE as a function of embeddings, the states (R·B, D) of every layer, and the
    step.
    """
    sides, labels = texts_and_labels(examples)
    ids = [encoder.backbone.tokenize(side, config.max_length)[0] for side in sides]
    _, numbers = merge_equal(list(chain.from_iterable(sides)))
    keys = torch.from_numpy(numbers).view(len(sides), -1)  # (R, n)
    batch = batches(config, len(examples))

    def loss_at(step: int) -> Tensor:
        members = batch(step)
        batch_ids: list[list[int]] = []
        for side in ids:
            batch_ids.extend(side[i] for i in members)
        states = states_of(encoder, batch_ids, layers)
        return total(base_loss(config, labels[members], keys[:, members].flatten()), states, step)

    return loss_at


def states_of(
    encoder: SentenceEncoder,
    ids: list[list[int]],
    layers: Sequence[int],
) -> list[Tensor]:
    """Pooled states (B, D) of each layer, rows in the order of the texts; texts of like length are
    padded together.
    """
    order = np.argsort([len(row) for row in ids], kind="stable")
    groups = np.array_split(order, GROUPS if encoder.backbone.device.type == "cpu" else 1)
    states = []
    for group in groups:
        if len(group):
            states.append(encoder.pooled(*encoder.padded([ids[i] for i in group]), layers))
    back = torch.from_numpy(np.argsort(order)).to(encoder.backbone.device)
    return [torch.cat(layer)[back] for layer in zip(*states, strict=True)]


def texts_and_labels(examples: Examples) -> tuple[list[Sequence[str]], Tensor]:
    """The R = 2 or 3 texts of each example, side by side, and the label of each pair (n,): 1 alike,
    0 not.
    """
    if isinstance(examples, Triples):
        return [examples.queries, examples.positives, examples.negatives], torch.ones(len(examples))
    return [examples.texts1, examples.texts2], torch.from_numpy(
        (examples.labels == LIKE).astype(np.float32)
    )


def base_loss(config: TrainConfig, labels: Tensor, keys: Tensor) -> Loss:
    """AnglE as a function of all embeddings of a batch X (R·B, d), one side after the other.

    Labels (B,) are the pairs'; keys (R·B,) are equal where texts are, so that a copy of a text is
    no negative of it.
    """
    known_keys = keys if config.mask_duplicates else None

    def loss(X: Tensor) -> Tensor:
        if config.examples == "triples":
            return angle_triples(*X.chunk(3), config=config.angle, keys=known_keys)
        x, y = X.chunk(2)
        return angle_pairs(x, y, labels, config=config.angle, keys=known_keys)

    return loss
