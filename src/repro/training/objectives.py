"""What end-to-end training minimises: each objective gives the module to train, and the loss of every step.

References:
    Gao et al. (2021), SimCSE; step 1 of Wang et al. (2023). With positives PROTOCOLS §7.7.
    Reimers & Gurevych (2019), Sentence-BERT: softmax on entailment pairs; Table 2 of Wang et al. (2023).
    Li & Li (2024), AnglE: angle-optimized text embeddings (PROTOCOLS §2.3).
    Kusupati et al. (2022), Matryoshka representation learning (§2.4).
    Li et al. (2025), ESE: Espresso sentence embeddings (§2.5).
"""

import logging
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from repro.data.sampling import LIKE, NEUTRAL, UNLIKE, Triples, checked_labels
from repro.losses import angle_pairs, angle_triples, info_nce, softmax_nli
from repro.losses import matryoshka as on_prefixes
from repro.losses.contrastive import duplicate_mask
from repro.losses.distributed import gather_with_grad
from repro.losses.espresso import espresso, initial_log_weights, shallow_layers
from repro.losses.nli import CLASSES
from repro.models.encoder import SentenceEncoder, merge_equal
from repro.models.pretrained import default_device
from repro.objectives import TrainConfig
from repro.seeding import derive_seed
from repro.sets import LabelledPairs
from repro.training.end_to_end import batches
from repro.types import InputError

log = logging.getLogger(__name__)
LABELS = {UNLIKE: 0, LIKE: 1, NEUTRAL: 2}
PREFIXES = (8, 16, 32, 64, 128, 256, 512, 768)
"""sizes that `matryoshka` trains where the configuration names none (Kusupati et al., 2022)"""
GROUPS = 4
"""runs of texts of like length that a batch is padded in on the CPU: 128 texts of NLI take 2/3 of the time of one run
at 2 layers of 128, 2/5 at 6 layers of 384"""

Example: TypeAlias = str | tuple[str, str | None]
"""a sentence, its own positive; or a sentence and its positive, None where it has none"""
Examples: TypeAlias = LabelledPairs | Triples
Loss: TypeAlias = Callable[[Tensor], Tensor]
LossAt: TypeAlias = Callable[[int], Tensor]


def contrastive(
    config: TrainConfig, encoder: SentenceEncoder, examples: Sequence[Example]
) -> tuple[SentenceEncoder, LossAt]:
    """SimCSE: a sentence finds itself, or a given rewording, among those of its batch, their dropout drawn apart.

    A sentence whose positive is None is passed over and the next takes its place, so that trainings with different
    positives stay comparable.
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
    """Embeddings (B, d) of both sides of a batch from one pass, every row under a dropout mask of its own."""
    z = encoder(*encoder.padded(ids + others))[1]  # (2B, d)
    return z[: len(ids)], z[len(ids) :]


def same_text(anchors: Tensor, positives: Tensor) -> Tensor:
    """Mask (B, W·B) of positives that say what a row says: the anchors are equal, the positives are, or one is both.

    Both are keys (B,), equal iff the texts are.
    """
    crossed = anchors.unsqueeze(1) == gather_with_grad(positives).unsqueeze(0)
    return duplicate_mask(anchors) | duplicate_mask(positives) | crossed


def softmax_over_pairs(
    config: TrainConfig, encoder: SentenceEncoder, pairs: LabelledPairs
) -> tuple[nn.ModuleDict, LossAt]:
    """Softmax on entailment pairs; the classifier is trained along."""
    labels, head = label_ids(pairs), nli_head(config.dim, config.seed)
    premises, hypotheses = (encoder.backbone.tokenize(t, config.max_length)[0] for t in (pairs.texts1, pairs.texts2))
    batch = batches(config, len(pairs))

    def loss_at(step: int) -> Tensor:
        members = batch(step)
        u, v = two_views(encoder, [premises[i] for i in members], [hypotheses[i] for i in members])
        own = labels[torch.from_numpy(members)].to(u.device)
        return softmax_nli(u, v, own, head.weight, head.bias, difference=config.difference)

    return nn.ModuleDict({"encoder": encoder, "head": head}), loss_at


def nli_head(dim: int, seed: int) -> nn.Linear:
    """A fresh classifier V (3, 3·dim) with PyTorch's own initial weights, from a generator owned by (seed, dim)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "nli head", dim))
        return nn.Linear(3 * dim, CLASSES).to(default_device())


def label_ids(pairs: LabelledPairs) -> Tensor:
    """Classes 0 … 2 of entailment pairs (n,); a label that is none of the three is an error."""
    return torch.tensor([LABELS[label] for label in checked_labels(pairs)])


def angle(config: TrainConfig, encoder: SentenceEncoder, examples: Examples) -> tuple[SentenceEncoder, LossAt]:
    """AnglE on the last layer at full size, without a pooler: the control that ESE's paper lacks."""
    last = [encoder.n_layers]
    return encoder, on_layers(config, encoder, examples, last, lambda loss, states, step: loss(states[-1]))


def matryoshka(config: TrainConfig, encoder: SentenceEncoder, examples: Examples) -> tuple[SentenceEncoder, LossAt]:
    """AnglE on prefixes of the last layer: those below the hidden size, and the hidden size itself."""
    below = [size for size in config.prefixes or PREFIXES if size < encoder.hidden_dim]

    def total(loss: Loss, states: list[Tensor], step: int) -> Tensor:
        return on_prefixes(loss, (*below, encoder.hidden_dim))(states[-1])

    return encoder, on_layers(config, encoder, examples, [encoder.n_layers], total)


def ese(config: TrainConfig, encoder: SentenceEncoder, examples: Examples) -> tuple[nn.ModuleDict, LossAt]:
    """AnglE on all layers, and on a compressed prefix of each; layer weights that are learned are trained along.

    Raises:
        InputError: if the compressed size is larger than the hidden size, or, where the embeddings themselves are
            decomposed, than the number of texts in a batch.
    """
    texts, form = len(texts_and_labels(examples)[0]) * config.batch_size, config.espresso
    if config.dim > encoder.hidden_dim:
        raise InputError(
            f"compressed size {config.dim} of a hidden size of {encoder.hidden_dim} ({config.backbone}): "
            f"expected 1 to {encoder.hidden_dim}"
        )
    if form.strategy == "embeddings" and config.dim > texts:
        raise InputError(
            f"compressed size {config.dim} with strategy 'embeddings', but a batch has {texts} texts and no "
            f"more principal components: enlarge the batch, or take a size of at most {texts}"
        )
    if form.first_layer == 0 and encoder.pooling == "cls":
        log.warning("layer 0 under cls pooling is one constant vector for every text: it is trained to no effect")
    module, layers, weights = nn.ModuleDict({"encoder": encoder}), range(encoder.n_layers + 1), None
    if form.layer_weights.startswith("learned"):
        start = initial_log_weights(len(shallow_layers(len(layers), form)))
        weights = nn.Parameter(start.to(encoder.backbone.device))
        module["layer_weights"] = nn.ParameterList([weights])

    def total(loss: Loss, states: list[Tensor], step: int) -> Tensor:
        seed = derive_seed(config.seed, "espresso", step)
        return espresso(states, loss, size=config.dim, config=form, log_weights=weights, seed=seed)

    return module, on_layers(config, encoder, examples, layers, total)


def on_layers(
    config: TrainConfig,
    encoder: SentenceEncoder,
    examples: Examples,
    layers: Sequence[int],
    total: Callable[[Loss, list[Tensor], int], Tensor],
) -> LossAt:
    """The loss of a step from the states of some layers; every text of a batch takes one forward pass.

    `total` takes AnglE as a function of embeddings, the states (R·B, D) of every layer, and the step.
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


def texts_and_labels(examples: Examples) -> tuple[list[Sequence[str]], Tensor]:
    """The R = 2 or 3 texts of each example, side by side, and the label of each (n,): 1 alike, 0 not.

    Triples carry no label of their own; theirs are 1 throughout and go unused.
    """
    if isinstance(examples, Triples):
        return [examples.queries, examples.positives, examples.negatives], torch.ones(len(examples))
    return [examples.texts1, examples.texts2], torch.from_numpy((examples.labels == LIKE).astype(np.float32))


def base_loss(config: TrainConfig, labels: Tensor, keys: Tensor) -> Loss:
    """AnglE as a function of all embeddings of a batch X (R·B, d), one side after the other.

    Labels (B,) are the pairs'; keys (R·B,) are equal where texts are, so that a copy of a text is no negative of it.
    """
    own = keys if config.mask_duplicates else None

    def loss(X: Tensor) -> Tensor:
        if config.examples == "triples":
            return angle_triples(*X.chunk(3), config=config.angle, keys=own)
        x, y = X.chunk(2)
        return angle_pairs(x, y, labels, config=config.angle, keys=own)

    return loss
