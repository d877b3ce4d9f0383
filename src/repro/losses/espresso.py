"""ESE: every layer and its first k dimensions trained together (Li et al., 2025, Eqs. 2-7; PROTOCOLS §2.5)."""

import warnings
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from repro.losses.compress import align, compress_target, layer_weights
from repro.losses.parallel import each_on_a_thread
from repro.objectives import ESPRESSO_FORMS, EspressoConfig
from repro.seeding import derive_seed
from repro.types import InputError, check_dim, one_of


def espresso(
    layers: Sequence[Tensor],
    loss: Callable[[Tensor], Tensor],
    *,
    size: int = 128,
    form: str = "paper",
    config: EspressoConfig | None = None,
    log_weights: Tensor | None = None,
    seed: int = 0,
) -> Tensor:
    """Learn-to-express and learn-to-compress over the layers of one batch.

    With part(i) = α·ℓ(X_i[:, :k]) + β·align(X_i[:, :k], T_i):

    `paper`: Σ over i = 1 … L−1 of part(i)/(1 + ln i) + part(L);
    `code`: (1/(L−1))·Σ over i = 0 … L−2 of part(i)/(1 + ln(i+1)) + part(L) + α·ℓ(X_L), targets per batch, randomised.

    Args:
        layers: pooled states (B, D) of layers 0 … L for all texts of a batch.
        loss: base loss of one matrix of embeddings of these texts.
        size: compressed size k.
        form: paper or code.
        config: every switch, in place of `form`.
        log_weights: s of the learned weights e^{−s} of the shallow layers (n,), from `initial_log_weights(n)`;
            `learned` adds Σ sᵢ so that they have a finite optimum, `learned_literal` does not.
        seed: of a randomised decomposition.

    Raises:
        InputError: for layers that do not fit each other or the switches, a k above D, or learned weights without
            `log_weights`, and the reverse.
    """
    config = ESPRESSO_FORMS[one_of(form, list(ESPRESSO_FORMS), "form")] if config is None else config
    shallow = shallow_layers(len(layers), config)
    if layers[0].ndim != 2 or any(X.shape != layers[0].shape for X in layers):
        shapes = sorted({str(tuple(X.shape)) for X in layers})
        raise InputError(f"layers have shapes {', '.join(shapes)}: expected one shape (B, D)")
    check_dim(size, limit=layers[0].shape[1], what="size")
    if 0 in shallow and len(layers[0]) > 1 and bool((layers[0] == layers[0][:1]).all()):
        warnings.warn(
            "layer 0 is the same vector for every text, as under `cls` pooling: it has nothing to learn; "
            "start at first_layer=1",
            stacklevel=2,
        )

    targets = _targets(layers, [*shallow, len(layers) - 1], size, config, seed)

    def part(i: int) -> Tensor:
        prefix = layers[i][:, :size]
        total = prefix.sum() * 0.0
        if config.alpha:
            total = total + config.alpha * loss(prefix)
        if i in targets:
            total = total + config.beta * align(prefix, targets[i], temperature=config.temperature)
        return total

    total = part(len(layers) - 1)
    if config.full_size_loss and config.alpha:
        total = total + config.alpha * loss(layers[-1])
    if shallow:
        parts = torch.stack([part(i) for i in shallow])
        weights, penalty = _weights(parts, config, log_weights)
        total = total + (weights * parts + penalty).sum() / (len(shallow) if config.reduction == "mean" else 1)
    return total


def shallow_layers(count: int, config: EspressoConfig) -> range:
    """Layers trained below the last of `count` (L + 1) layers.

    Raises:
        InputError: with fewer than two layers, or a first layer that is not below the last.
    """
    last = count - 1
    if last < 1:
        raise InputError(f"{count} layers: expected layer 0 and at least one block's output")
    if config.first_layer > last:
        raise InputError(f"first_layer is {config.first_layer}: the last layer is {last}, so expected 0 to {last}")
    return range(config.first_layer, last + config.last_shallow + 1)


def initial_log_weights(n: int) -> Tensor:
    """Where the learned s of n shallow layers start, so that e^{−s} are the default weights: ln(1 + ln position)."""
    return -layer_weights(n).log()


def _targets(
    layers: Sequence[Tensor], wanted: Sequence[int], size: int, config: EspressoConfig, seed: int
) -> dict[int, Tensor]:
    """What the prefixes of the wanted layers should become; nothing where learn-to-compress is off."""
    if not config.beta or config.strategy == "none":
        return {}

    def target(i: int, X: Tensor) -> Tensor:
        return compress_target(
            X,
            size,
            dependency=config.dependency,
            decomposition=config.decomposition,
            strategy=config.strategy,
            center=config.center,
            seed=derive_seed(seed, "espresso", wanted[i]),
        )

    states = [layers[i] for i in wanted]
    found = each_on_a_thread(target, states) if config.stop_gradient else map(target, range(len(states)), states)
    return dict(zip(wanted, found, strict=True))


def _weights(parts: Tensor, config: EspressoConfig, log_weights: Tensor | None) -> tuple[Tensor, Tensor]:
    """Factors and additions (n,) of the shallow layers' parts (n,)."""
    learned = config.layer_weights in ("learned", "learned_literal")
    if learned != (log_weights is not None):
        raise InputError(
            f"layer_weights {config.layer_weights!r} needs log_weights, from initial_log_weights({len(parts)})"
            if learned
            else f"log_weights given, but layer_weights is {config.layer_weights!r}: choose learned or learned_literal"
        )
    if log_weights is None:
        return layer_weights(len(parts), config.layer_weights).to(parts), torch.zeros_like(parts)
    if log_weights.shape != parts.shape:
        raise InputError(f"log_weights has shape {tuple(log_weights.shape)}: expected {tuple(parts.shape)}")
    s = log_weights.to(parts)
    return (-s).exp(), s if config.layer_weights == "learned" else torch.zeros_like(s)
