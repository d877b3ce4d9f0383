"""The lines of ESE's comparison: a backbone as it is, and after several trainings on the same pairs and seed.

RAW is the backbone untouched. `RAW + NLI` is the control that the paper lacks: AnglE on the pairs that MRL and ESE
see, but without any scaling, so that what the pairs teach can be told from what the scaling does (audit E10). A variant
of Table 2, Figure 5 or the audit is the printed form of ESE with one thing changed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import log2
from typing import Any

from repro.config import TrainConfig
from repro.digests import digest
from repro.losses import shallow_layers
from repro.methods import CONTROL, ESE, ESE_CODE, ESE_DEFAULT, ESE_METHODS, MRL, RAW, size_variant
from repro.models import SentenceEncoder
from repro.models.backbone import load_backbone
from repro.objectives import ESPRESSO_FORMS, EspressoConfig
from repro.papers.ese.claims import COMPRESSION, WEIGHTS
from repro.runs.cell import TrainedCell, hidden_dim_of, train_all
from repro.runs.encoders import LayerTable, Named, encode_layers_once, states_identity
from repro.store import Store
from repro.types import one_of

PAPER_SHARE = 128 / 768
"""of the hidden size that ESE compresses to"""
CODE = ESPRESSO_FORMS["code"]
PER_BATCH = "E4 one matrix per batch"
VARIANTS: dict[str, dict[str, Any]] = {
    ESE_DEFAULT: {},
    "embeddings": {"strategy": "embeddings"},
    "max-k": {"strategy": "max_k"},
    "no compression": {"strategy": "none"},
    "uniform weights": {"layer_weights": "uniform"},
    "learned weights": {"layer_weights": "learned"},
    "E1 layers 0 … L−2": {"first_layer": 0, "last_shallow": -2},
    "E2 mean over layers": {"reduction": "mean"},
    "E3 loss at full size": {"full_size_loss": True},
    PER_BATCH: {"dependency": "per_batch"},
    "E5 embeddings, centred": {"strategy": "embeddings", "center": True},
    "E6 randomised": {"dependency": "per_batch", "decomposition": "randomized"},
    "E8 literal weights": {"layer_weights": "learned_literal"},
    "as released": {
        switch: value for switch, value in vars(CODE).items() if value != getattr(EspressoConfig(), switch)
    },
}
"""what every variant sets otherwise than the printed form; names stay, since the audit quotes them"""
REFERENCES = {name: ESE_DEFAULT for name in VARIANTS if name != ESE_DEFAULT} | {
    "E5 embeddings, centred": "embeddings",
    "E6 randomised": PER_BATCH,
}
"""the variant that each differs from in one thing"""
AUDITED = tuple(name for name in VARIANTS if name.startswith(("E", "as released")))
"""variants that the audit quotes"""
SLOW = ("max-k", "learned weights", PER_BATCH, "E5 embeddings, centred", "E6 randomised", "E8 literal weights")
"""variants that the embedded profile does without: each is a training, and its network has one weight to learn"""


@dataclass(frozen=True)
class LayeredEncoder(Named):
    """An encoder that is read at every layer; its name is the method of its rows."""

    make: Callable[[], SentenceEncoder]
    cell: TrainedCell | None = None
    """its training; None for the untouched backbone"""

    @property
    def columns(self) -> dict[str, Any]:
        """Columns of its rows; `n_train` counts training pairs, none for the untouched backbone."""
        return {"method": self.name, "backbone": self.backbone, "n_train": self.n_train}

    def less(self, rival: "LayeredEncoder", sign: str = "−") -> dict[str, Any]:
        """Columns of the rows that compare it with another line, as in `ESE − RAW`."""
        return {**self.columns, "method": f"{self.name} {sign} {rival.name}"}

    def states(self, texts: Iterable[str], store: Store) -> LayerTable:
        """Pooled states of texts at all layers, from one pass or from the store."""
        return encode_layers_once(self.make, self.identity, texts, store, progress=True)


def compression_size(hidden_dim: int) -> int:
    """ESE's k for a backbone: the power of two nearest to the paper's share of the hidden size, 128 of 768."""
    return max(2, int(2 ** round(log2(hidden_dim * PAPER_SHARE))))


def line_config(base: TrainConfig, method: str, *, size: int | None = None) -> TrainConfig:
    """The training behind a method: `base` with the method's objective, and nothing that the objective does not read.

    A `size` of None is the paper's share of the hidden size.
    """
    one_of(method, [*ESE_METHODS[1:], ESE_CODE], "trained method")
    hidden_dim = hidden_dim_of(base)
    # a setting that is not read must not name another cell, or pages would train what the store already holds
    plain = replace(base, objective="angle", dim=hidden_dim, prefixes=(), espresso=EspressoConfig())
    if method == CONTROL:
        return plain
    if method == MRL:
        return replace(plain, objective="matryoshka", prefixes=base.prefixes)
    form = CODE if method == ESE_CODE else base.espresso
    return replace(plain, objective="ese", dim=size or compression_size(hidden_dim), espresso=form)


def ese_lines(
    base: TrainConfig, store: Store, *, methods: Sequence[str] = ESE_METHODS, size: int | None = None
) -> list[LayeredEncoder]:
    """The lines of some methods, in their order; those that the store does not hold are trained, side by side.

    Of `base` the objective and the dim are not read; `size` is ESE's compressed size k.
    """
    configs = {method: line_config(base, method, size=size) for method in methods if method != RAW}
    trained = {line.name: line for line in trained_lines(configs, store)}
    return [raw_line(base) if method == RAW else trained[method] for method in methods]


def trained_lines(configs: dict[str, TrainConfig], store: Store) -> list[LayeredEncoder]:
    """A line for every named configuration; equal ones share a training."""
    return [
        LayeredEncoder(name, partial(getattr, cell, "encoder"), cell.key, config.backbone, config.sentences, cell)
        for (name, config), cell in zip(configs.items(), train_all(list(configs.values()), store), strict=True)
    ]


def raw_line(base: TrainConfig) -> LayeredEncoder:
    """The untouched backbone, read with the pooling and down to the depth that the others are trained with."""
    options: dict[str, Any] = {"pooling": base.pooling}
    identity = states_identity(base.backbone, base.pooling)
    if base.bidirectional or base.final_norm != "last":
        options |= {"bidirectional": base.bidirectional, "final_norm": base.final_norm}
        identity = digest({"states": identity, "bidirectional": base.bidirectional, "norm": base.final_norm})
    if base.layers is not None:
        identity = digest({"states": identity, "layers": base.layers})

    def load() -> SentenceEncoder:
        encoder = SentenceEncoder.load(base.backbone, **options)
        if base.layers is not None:
            encoder.backbone.keep(base.layers)
        return encoder

    return LayeredEncoder(RAW, load, identity, base.backbone)


# Table 2, Figure 5 and the audit's switches


def form_of(variant: str) -> EspressoConfig:
    """ESE's objective in a variant."""
    return EspressoConfig(**VARIANTS[one_of(variant, list(VARIANTS), "variant")])


def what_is_read(config: EspressoConfig, n_layers: int) -> EspressoConfig:
    """The same objective on a network of `n_layers` blocks, with each switch that changes nothing there at its default.

    A network of two blocks has one shallow layer: its weight is 1 either way, and a sum of one is its mean.
    """
    read = config
    if len(shallow_layers(n_layers + 1, config)) <= 1:
        read = replace(read, reduction="sum")
        if config.layer_weights == "uniform":
            read = replace(read, layer_weights="log")
    if config.strategy in ("none", "embeddings"):
        read = replace(read, dependency="per_sentence")
    if config.strategy != "dependencies" or config.dependency == "per_sentence":
        read = replace(read, decomposition="eigh")
    return read if config.strategy == "embeddings" else replace(read, center=False)


def same_training(names: Sequence[str], n_layers: int) -> dict[str, str]:
    """Variants that are the same training as an earlier one on a network so deep, with that earlier one."""
    first: dict[EspressoConfig, str] = {}
    earlier = {name: first.setdefault(what_is_read(form_of(name), n_layers), name) for name in names}
    return {name: other for name, other in earlier.items() if name != other}


def variant_lines(
    base: TrainConfig, store: Store, *, variants: Sequence[str], sizes: Sequence[int] = ()
) -> list[LayeredEncoder]:
    """RAW and MRL, then ESE trained in several variants and with several compressed sizes; equal trainings are one."""
    plain = line_config(base, ESE)
    merged = same_training(variants, base.layers or load_backbone(base.backbone).n_layers)
    configs = {MRL: line_config(base, MRL)}
    configs |= {name: replace(plain, espresso=form_of(merged.get(name, name))) for name in variants}
    further = [size for size in sizes if size != compression_size(hidden_dim_of(base))]
    configs |= {size_variant(size): replace(plain, dim=size, espresso=EspressoConfig()) for size in further}
    return [raw_line(base), *trained_lines(configs, store)]


def comparisons(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Which of some lines are compared, the first's lead over the second.

    Variants with what they differ from, the orders of Table 2, compressed sizes with the default and the baselines.
    """
    pairs = list(REFERENCES.items())
    for order in (COMPRESSION, WEIGHTS["last layer"]):
        pairs += pairwise(name for name in order if name in names)
    pairs += [("learned weights", "uniform weights")]
    sized = [name for name in names if name.startswith(size_variant(0)[:-1])]
    pairs += [(ESE_DEFAULT, name) for name in sized]
    pairs += [(name, baseline) for name in (ESE_DEFAULT, *sized) for baseline in (RAW, MRL)]
    yield from dict.fromkeys(pair for pair in pairs if set(pair) <= set(names))
