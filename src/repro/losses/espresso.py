"""ESE: a loss on one prefix of every layer, which expresses and compresses.

Li et al. (2025), Eqs. 2-7 (method-espresso in the book).
"""

import warnings
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from repro.losses.dependencies import of_batch, of_embeddings, of_sentences
from repro.losses.distributed import gather_with_grad, world_size
from repro.losses.given import check_rows
from repro.seeding import derive_seed, one_thread_each
from repro.settings import DECOMPOSITIONS, ESPRESSO_FORMS, LAYER_WEIGHTS, EspressoConfig
from repro.types import InputError, check_dim, finite_number, one_of


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

    With part(i) = α·ℓ(X_i[:, :k]) + β·align(X_i[:, :k], T_i), X_i the pooled states (B, D) of
    layers 0 … L:

    `paper`: Σ over i = 1 … L−1 of part(i)/(1 + ln i) + part(L);
    `code`: (1/(L−1))·Σ over i = 0 … L−2 of part(i)/(1 + ln(i+1)) + part(L) + α·ℓ(X_L), targets per
    batch, randomised.

    `loss` is the base loss ℓ of one matrix of embeddings, `size` is k, and `config` has every
    switch, in place of `form`. `log_weights` s (n,), from `initial_log_weights(n)`, are learned
    weights e^{−s}: `learned` adds Σ sᵢ so that they have a finite optimum, `learned_literal` does
    not. `seed` is that of a randomised decomposition. InputError for layers or `log_weights` that
    do not fit the switches.
    """
    if config is None:
        config = ESPRESSO_FORMS[one_of(form, list(ESPRESSO_FORMS), "form")]
    shallow = shallow_layers(len(layers), config)
    named = {f"layers[{number}]": X for number, X in enumerate(layers)}
    check_rows("pooled states of one shape (B, D)", **named)
    check_dim(size, limit=layers[0].shape[1], what="size")
    first = layers[0]
    if 0 in shallow and len(first) > 1 and bool((first == first[:1]).all()):
        warnings.warn(
            "layer 0 is one vector for every text, as under `cls` pooling: use first_layer=1",
            stacklevel=2,
        )
    targets = _targets(layers, [*shallow, len(layers) - 1], size, config, seed)

    def part(i: int) -> Tensor:
        prefix = layers[i][:, :size]
        total = config.alpha * loss(prefix) if config.alpha else prefix.sum() * 0.0
        if i in targets:
            total = total + config.beta * align(prefix, targets[i], temperature=config.temperature)
        return total

    total = part(len(layers) - 1)
    if config.full_size_loss and config.alpha:
        total = total + config.alpha * loss(layers[-1])
    if shallow:
        parts = torch.stack([part(i) for i in shallow])
        weights, penalty = _weights(parts, config, log_weights)
        total = total + (weights * parts + penalty).sum() / (
            len(shallow) if config.reduction == "mean" else 1
        )
    return total


def shallow_layers(count: int, config: EspressoConfig) -> range:
    """Layers trained below the last of `count` (L + 1) layers; InputError where there is no last or
    first one.
    """
    last = count - 1
    if last < 1:
        raise InputError(f"{count} layers: expected layer 0 and at least one block's output")
    if config.first_layer > last:
        raise InputError(
            f"first_layer is {config.first_layer}: the last layer is {last}, so expected 0 to "
            f"{last}"
        )
    return range(config.first_layer, last + config.last_shallow + 1)


def layer_weights(n: int, kind: str = "log") -> Tensor:
    """Weights (n,) of the shallow layers at positions 1 … n: 1/(1 + ln position), or 1 for
    `uniform`.
    """
    one_of(kind, LAYER_WEIGHTS, "layer_weights")
    if n != 0:
        check_dim(n, what="n")
    return torch.ones(n) if kind == "uniform" else 1 / (1 + torch.arange(1, n + 1).log())


def initial_log_weights(n: int) -> Tensor:
    """Where the learned s of n shallow layers start, so that e^{−s} are the default weights: ln(1 +
    ln position).
    """
    return -layer_weights(n).log()


def align(x: Tensor, target: Tensor, *, temperature: float = 1.0) -> Tensor:
    """Eq. 6: mean((x − t)²) + θ·KL(softmax(t/θ) ‖ softmax(x/θ)) of prefixes x and targets t (B, k).

    The divergence is averaged over rows; a temperature θ of 0 or less leaves it out.
    """
    check_rows("prefixes and targets of one shape (B, k)", x=x, target=target)
    finite_number(temperature, "temperature")
    x = x if x.dtype == torch.float64 else x.float()
    target = target.to(x.dtype)
    with torch.autocast(x.device.type, enabled=False):
        squared = (x - target).square().mean()
        if not temperature > 0:
            return squared
        found, wanted = (F.log_softmax(z / temperature, dim=-1) for z in (x, target))
        return squared + temperature * F.kl_div(
            found,
            wanted,
            log_target=True,
            reduction="batchmean",
        )


def compress_target(
    X: Tensor,
    size: int,
    *,
    dependency: str = "per_batch",
    decomposition: str = "eigh",
    strategy: str = "dependencies",
    center: bool = False,
    seed: int = 0,
) -> Tensor:
    """Eqs. 3-5: T = X·U_k·S_k (B, k) of pooled states X (B, D), A = USVᵀ being the dependency
    matrix (D, D).

    `per_sentence` A = softmax(xxᵀ/√D), always decomposed exactly; `per_batch` A = softmax(XᵀX/√D),
    rows of X of all processes, by `eigh` in double precision, `subspace` within a stated tolerance
    in a fraction of the time, or `randomized`, two power iterations from a seeded start, as
    released. The softmax is of rows; each vector has its entry of largest modulus positive.
    Gradients pass to an X that requires them, through the vectors too.

    With strategy `embeddings` T is X·V_k of X itself, less its mean if `center`; with `max_k` X
    times the k columns of A with the largest sums. T has X's precision, single at least, and is NaN
    where X is not finite. InputError for a k beyond D, or beyond B with `embeddings`, options that
    do not go together, or gradients through a decomposition that is not exact.
    """
    one_of(dependency, ("per_sentence", "per_batch"), "dependency")
    one_of(decomposition, DECOMPOSITIONS, "decomposition")
    one_of(strategy, ("dependencies", "embeddings", "max_k"), "strategy of a target")
    check_rows("pooled states (B, D)", X=X)
    check_dim(size, limit=X.shape[1], what="size")
    if center and strategy != "embeddings":
        raise InputError(f"center applies to strategy 'embeddings', not to {strategy!r}")
    approximate = (
        strategy == "dependencies" and dependency == "per_batch" and decomposition != "eigh"
    )
    if approximate and X.requires_grad and torch.is_grad_enabled():
        raise InputError(
            f"no gradient through decomposition {decomposition!r}, whose vectors are not A's own: "
            "detach X (stop_gradient=True) or use 'eigh'"
        )
    X = X if X.dtype == torch.float64 else X.float()
    # Of all processes, which stop or gather together
    sums = gather_with_grad(X.detach().sum().reshape(1))
    if not bool(torch.isfinite(sums).all()):
        # No decomposition: the loss is not finite, and says so
        return X.new_full((len(X), size), float("nan"))
    with torch.autocast(X.device.type, enabled=False):
        if strategy == "embeddings":
            target = of_embeddings(X.double(), size, center)
        elif dependency == "per_sentence":
            target = of_sentences(X.double(), size, strategy)
        else:
            target = of_batch(X, size, strategy, decomposition, seed)
    return target.to(X.dtype)


def each_on_a_thread(
    work: Callable[[int, Tensor], Tensor],
    matrices: Sequence[Tensor],
) -> list[Tensor]:
    """`work(index, matrix)` of each, in order and without gradient, each on one thread.

    A small matrix gives several threads too little to share, and its result must not depend on how
    many there are. On an accelerator, and with several processes, which must gather in one order,
    one comes after the other.
    """
    alone, workers = torch.no_grad()(work), min(torch.get_num_threads(), len(matrices))
    if workers < 2 or matrices[0].device.type != "cpu" or world_size() > 1:
        return [alone(i, matrix) for i, matrix in enumerate(matrices)]
    with one_thread_each(workers) as side_by_side:
        return list(side_by_side(alone, range(len(matrices)), matrices))


def _targets(
    layers: Sequence[Tensor],
    wanted: Sequence[int],
    size: int,
    config: EspressoConfig,
    seed: int,
) -> dict[int, Tensor]:
    """What the prefixes of the wanted layers should become; nothing where learn-to-compress is
    off.
    """
    if not config.beta or config.strategy == "none":
        return {}
    switches = {
        name: getattr(config, name)
        for name in ("dependency", "decomposition", "strategy", "center")
    }

    def target(i: int, X: Tensor) -> Tensor:
        return compress_target(X, size, **switches, seed=derive_seed(seed, "espresso", wanted[i]))

    states = [layers[i] for i in wanted]
    found = (
        each_on_a_thread(target, states)
        if config.stop_gradient
        else map(target, range(len(states)), states)
    )
    return dict(zip(wanted, found, strict=True))


def _weights(
    parts: Tensor,
    config: EspressoConfig,
    log_weights: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Factors and additions (n,) of the shallow layers' parts (n,)."""
    kind, shape = config.layer_weights, None if log_weights is None else tuple(log_weights.shape)
    if shape != (tuple(parts.shape) if kind.startswith("learned") else None):
        raise InputError(
            f"layer_weights is {kind!r} and log_weights has shape {shape}: learned kinds need "
            f"those of initial_log_weights({len(parts)}), the others take none"
        )
    if log_weights is None:
        return layer_weights(len(parts), kind).to(parts), torch.zeros_like(parts)
    s = log_weights.to(parts)
    return (-s).exp(), s if kind == "learned" else torch.zeros_like(s)
