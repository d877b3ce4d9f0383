"""ESE: AnglE on all layers, and on a compressed prefix of each (PROTOCOLS §2.5).

References:
    Li et al. (2025), ESE: Espresso sentence embeddings.
"""

import logging

from torch import nn

from repro.losses.espresso import espresso, initial_log_weights, shallow_layers
from repro.models.encoder import SentenceEncoder
from repro.objectives import TrainConfig
from repro.seeding import derive_seed
from repro.training.angle import Examples, LossAt, on_layers, texts_and_labels
from repro.types import InputError

log = logging.getLogger(__name__)


def ese(config: TrainConfig, encoder: SentenceEncoder, examples: Examples) -> tuple[nn.Module, LossAt]:
    """ESE on every layer; layer weights that are learned are trained along.

    Raises:
        InputError: if the compressed size is larger than the hidden size or the batch allows.
    """
    check_sizes(config, encoder, texts_per_batch=len(texts_and_labels(examples)[0]) * config.batch_size)
    weights = learned_weights(config, encoder)
    module = nn.ModuleDict({"encoder": encoder})
    if weights is not None:
        module["layer_weights"] = nn.ParameterList([weights])

    return module, on_layers(
        config,
        encoder,
        examples,
        range(encoder.n_layers + 1),
        lambda loss, states, step: espresso(
            states,
            loss,
            size=config.dim,
            config=config.espresso,
            log_weights=weights,
            seed=derive_seed(config.seed, "espresso", step),
        ),
    )


def check_sizes(config: TrainConfig, encoder: SentenceEncoder, *, texts_per_batch: int) -> None:
    """Refuse a compressed size that the network or the batch cannot give; warn of layers that cannot learn.

    Raises:
        InputError: if `config.dim` is larger than the hidden size, or, where the embeddings themselves are decomposed,
            than the number of texts in a batch.
    """
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
    if not config.espresso.layer_weights.startswith("learned"):
        return None
    count = len(shallow_layers(encoder.n_layers + 1, config.espresso))
    return nn.Parameter(initial_log_weights(count).to(encoder.backbone.device))
