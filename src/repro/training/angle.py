"""AnglE on entailment pairs or triples: alone, the control that ESE's paper lacks; or on prefixes, Matryoshka.

The last layer is trained, without a pooler (PROTOCOLS §2.3, §2.4). ESE trains all layers on the same data, batches and
dropout, with `on_layers`.

References:
    Li & Li (2024), AnglE: angle-optimized text embeddings.
    Kusupati et al. (2022), Matryoshka representation learning.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from repro.data.sampling import LIKE, Triples
from repro.losses import angle_pairs, angle_triples
from repro.losses import matryoshka as on_prefixes
from repro.models.encoder import SentenceEncoder
from repro.models.packing import merge_equal
from repro.objectives import TrainConfig
from repro.sets import LabelledPairs
from repro.training.end_to_end import batches

PREFIXES = (8, 16, 32, 64, 128, 256, 512, 768)
"""sizes that `matryoshka` trains where the configuration names none (Kusupati et al., 2022)"""
GROUPS = 4
"""runs of texts of like length that a batch is padded in on the CPU: 128 texts of NLI take 2/3 of the time of one run
at 2 layers of 128, 2/5 at 6 layers of 384"""

Loss: TypeAlias = Callable[[Tensor], Tensor]
LossAt: TypeAlias = Callable[[int], Tensor]
Examples: TypeAlias = LabelledPairs | Triples


def angle(config: TrainConfig, encoder: SentenceEncoder, examples: Examples) -> tuple[SentenceEncoder, LossAt]:
    """AnglE on the last layer at full size."""
    last = [encoder.n_layers]
    return encoder, on_layers(config, encoder, examples, last, lambda loss, states, step: loss(states[-1]))


def matryoshka(config: TrainConfig, encoder: SentenceEncoder, examples: Examples) -> tuple[SentenceEncoder, LossAt]:
    """AnglE on prefixes of the last layer."""
    sizes, last = prefix_sizes(config.prefixes, encoder.hidden_dim), [encoder.n_layers]
    return encoder, on_layers(
        config, encoder, examples, last, lambda loss, states, step: on_prefixes(loss, sizes)(states[-1])
    )


def on_layers(
    config: TrainConfig,
    encoder: SentenceEncoder,
    examples: Examples,
    layers: Sequence[int],
    total: Callable[[Loss, list[Tensor], int], Tensor],
) -> LossAt:
    """The loss of a step from the states of some layers; every text of a batch takes one forward pass.

    Args:
        config: with AnglE's weights.
        encoder: that is trained.
        examples: entailed and contradicted pairs, or triples.
        layers: whose states are read.
        total: AnglE as a function of embeddings, the states (R·B, D) of every layer, and the step, to the loss.
    """
    sides, labels = texts_and_labels(examples)
    ids = [encoder.backbone.tokenize(side, config.max_length)[0] for side in sides]
    keys = torch.from_numpy(merge_equal([text for side in sides for text in side])[1]).view(len(sides), -1)  # (R, n)
    batch = batches(config, len(examples))

    def loss_at(step: int) -> Tensor:
        members = batch(step)
        states = states_of(encoder, [side[i] for side in ids for i in members], layers)
        return total(base_loss(config, labels[members], keys[:, members].flatten()), states, step)

    return loss_at


def states_of(encoder: SentenceEncoder, ids: list[list[int]], layers: Sequence[int]) -> list[Tensor]:
    """Pooled states (B, D) of each layer, rows in the order of the texts, with gradient.

    Texts of like length are padded together: premises are twice as long as hypotheses, and on the CPU a token of
    padding costs what a word does.
    """
    order = np.argsort([len(row) for row in ids], kind="stable")
    parts = np.array_split(order, GROUPS if encoder.backbone.device.type == "cpu" else 1)
    read = [encoder.pooled(*encoder.padded([ids[i] for i in part]), layers) for part in parts if len(part)]
    back = torch.from_numpy(np.argsort(order)).to(encoder.backbone.device)
    return [torch.cat(layer)[back] for layer in zip(*read, strict=True)]


def texts_and_labels(examples: LabelledPairs | Triples) -> tuple[list[Sequence[str]], Tensor]:
    """The R = 2 or 3 texts of each example, side by side, and the label of each (n,): 1 alike, 0 not.

    Triples carry no label of their own; theirs are 1 throughout and go unused.
    """
    if isinstance(examples, Triples):
        return [examples.queries, examples.positives, examples.negatives], torch.ones(len(examples))
    return [examples.texts1, examples.texts2], torch.from_numpy((examples.labels == LIKE).astype(np.float32))


def base_loss(config: TrainConfig, labels: Tensor, keys: Tensor) -> Loss:
    """AnglE as a function of all embeddings of a batch X (R·B, d), one side after the other.

    Args:
        config: with AnglE's weights.
        labels: of the pairs (B,).
        keys: integers (R·B,), equal where the texts are, so that a copy of a text is no negative of it.
    """
    own = keys if config.mask_duplicates else None

    def loss(X: Tensor) -> Tensor:
        if config.examples == "triples":
            query, positive, negative = X.chunk(3)
            return angle_triples(query, positive, negative, config=config.angle, keys=own)
        x, y = X.chunk(2)
        return angle_pairs(x, y, labels, config=config.angle, keys=own)

    return loss


def prefix_sizes(prefixes: Sequence[int], hidden_dim: int) -> tuple[int, ...]:
    """Sizes that `matryoshka` trains: those below the hidden size, and the hidden size itself."""
    return (*(size for size in prefixes or PREFIXES if size < hidden_dim), hidden_dim)
