"""Training on entailment pairs or triples with AnglE, alone or scaled: Matryoshka prefixes, or ESE.

Three objectives on the same data, batches and dropout (PROTOCOLS §2.3 to §2.5): `angle` trains the last layer at
full size and is the control that the paper lacks, `matryoshka` trains prefixes of it, `ese` trains all layers and a
compressed prefix of each. Every text of a batch takes one forward pass, and that pass gives every layer.

References:
    Li & Li (2024), AnglE: angle-optimized text embeddings.
    Kusupati et al. (2022), Matryoshka representation learning.
    Li et al. (2025), ESE: Espresso sentence embeddings.
"""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from repro.data.entailment import LIKE, Triples
from repro.losses import angle_pairs, angle_triples, espresso, initial_log_weights, matryoshka, shallow_layers
from repro.models import SentenceEncoder
from repro.models.encoder import merge_equal
from repro.objectives import TrainConfig
from repro.seeding import derive_seed
from repro.sets import LabelledPairs
from repro.training.end_to_end import DevScore, Trained, batches, count_steps, fresh_encoder, minimise
from repro.types import InputError

log = logging.getLogger(__name__)
PREFIXES = (8, 16, 32, 64, 128, 256, 512, 768)
"""sizes that `matryoshka` trains where the configuration names none (Kusupati et al., 2022)"""
GROUPS = 4
"""runs of texts of like length that a batch is padded in on the CPU: 128 texts of NLI take 2/3 of the time of one run
at 2 layers of 128, 2/5 at 6 layers of 384"""
WEIGHT_RATE = 1e-2
"""learning rate of learned layer weights: at a network's own, a short run would leave them where they start"""

Loss = Callable[[Tensor], Tensor]


def train_scaling(
    config: TrainConfig,
    examples: LabelledPairs | Triples,
    dev_score: DevScore,
    *,
    state_path: Path | None = None,
    save_every: int = 0,
    progress: bool = True,
) -> Trained:
    """Train one encoder without pooler; the checkpoint is chosen by its last layer at full size.

    Args:
        config: what to train and how; `objective` is angle, matryoshka or ese.
        examples: entailed and contradicted pairs, or triples.
        dev_score: `dev_score(encoder, readout)`, dev Spearman of one readout.
        state_path: resumable state.
        save_every: steps between resumable states; 0 saves only at the end.
        progress: show a progress bar.

    Raises:
        InputError: if the examples do not fill one batch, or a size is larger than the hidden size allows.
        TrainingDiverged: when the loss is not finite.
    """
    steps = count_steps(config, len(examples), config.examples)
    encoder = fresh_encoder(config)
    sides, labels = texts_and_labels(examples)
    check_sizes(config, encoder, texts_per_batch=len(sides) * config.batch_size)
    log_weights = learned_weights(config, encoder)
    module = nn.ModuleDict({"encoder": encoder})
    if log_weights is not None:
        module["layer_weights"] = nn.ParameterList([log_weights])
    dev_before = dev_score(encoder, "encoder")
    ids = [encoder.backbone.tokenize(side, config.max_length)[0] for side in sides]
    keys = torch.from_numpy(merge_equal([text for side in sides for text in side])[1]).view(len(sides), -1)  # (R, n)
    layers = range(encoder.n_layers + 1) if config.objective == "ese" else [encoder.n_layers]
    batch = batches(config, len(examples))

    def loss_at(step: int) -> Tensor:
        members = batch(step)
        states = states_of(encoder, [side[i] for side in ids for i in members], layers)  # of each layer (R·B, D)
        loss = base_loss(config, labels[members], keys[:, members].flatten())
        if config.objective == "angle":
            return loss(states[-1])
        if config.objective == "matryoshka":
            return matryoshka(loss, prefix_sizes(config.prefixes, encoder.hidden_dim))(states[-1])
        return espresso(
            states,
            loss,
            size=config.dim,
            config=config.espresso,
            log_weights=log_weights,
            seed=derive_seed(config.seed, "espresso", step),
        )

    history = minimise(
        module,
        loss_at,
        config,
        steps,
        lambda: dev_score(encoder, "encoder"),
        state_path=state_path,
        save_every=save_every,
        progress=progress,
        rates={} if log_weights is None else {"layer_weights": WEIGHT_RATE / config.learning_rate},
    )
    return Trained(encoder, history, dev_before, log_weights=None if log_weights is None else log_weights.detach())


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


def check_sizes(config: TrainConfig, encoder: SentenceEncoder, *, texts_per_batch: int) -> None:
    """Refuse a compressed size that the network or the batch cannot give; warn of layers that cannot learn.

    Raises:
        InputError: if `config.dim` is larger than the hidden size, or, where the embeddings themselves are decomposed,
            than the number of texts in a batch.
    """
    if config.objective != "ese":
        return
    if config.dim > encoder.hidden_dim:
        raise InputError(
            f"compressed size {config.dim} of a hidden size of {encoder.hidden_dim} ({config.backbone}): "
            f"expected 1 to {encoder.hidden_dim}"
        )
    if config.espresso.strategy == "embeddings" and config.dim > texts_per_batch:
        raise InputError(
            f"compressed size {config.dim} with strategy 'embeddings', but a batch has {texts_per_batch} texts and no "
            f"more principal components: enlarge the batch, or take a size of at most {texts_per_batch}"
        )
    if config.espresso.first_layer == 0 and encoder.pooling == "cls":
        log.warning("layer 0 under cls pooling is one constant vector for every text: it is trained to no effect")


def learned_weights(config: TrainConfig, encoder: SentenceEncoder) -> nn.Parameter | None:
    """Starting point of the learned layer weights (n_shallow,); None where the weights are fixed."""
    if config.objective != "ese" or not config.espresso.layer_weights.startswith("learned"):
        return None
    count = len(shallow_layers(encoder.n_layers + 1, config.espresso))
    return nn.Parameter(initial_log_weights(count).to(encoder.backbone.device))
