"""What Table 2, Figure 5 and the audit change in ESE, one thing at a time, by name."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

from repro.config import TrainConfig
from repro.losses import shallow_layers
from repro.methods import ESE, ESE_DEFAULT, MRL, RAW, size_variant
from repro.models.backbone import load_backbone
from repro.objectives import ESPRESSO_FORMS, EspressoConfig
from repro.papers.ese.lines import Line, compression_size, line_config, raw_line
from repro.runs.pool import train_all
from repro.runs.sweep import hidden_dim_of
from repro.store import Store
from repro.types import InputError, one_of


@dataclass(frozen=True)
class Variant:
    """One training of ESE that differs from another in one thing."""

    name: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    """of `EspressoConfig`, against the printed form"""
    reference: str = ESE_DEFAULT
    """the variant that it differs from in that one thing"""


COMPRESSION = ("default", "embeddings", "max-k", "no compression")
"""of Table 2, from best to worst as printed"""
WEIGHTS = ("learned weights", "default", "uniform weights")
"""the same for the last layer"""
PER_BATCH = "E4 one matrix per batch"
VARIANTS = {
    v.name: v
    for v in (
        Variant(ESE_DEFAULT),
        Variant("embeddings", {"strategy": "embeddings"}),
        Variant("max-k", {"strategy": "max_k"}),
        Variant("no compression", {"strategy": "none"}),
        Variant("uniform weights", {"layer_weights": "uniform"}),
        Variant("learned weights", {"layer_weights": "learned"}),
        Variant("E1 layers 0 … L−2", {"first_layer": 0, "last_shallow": -2}),
        Variant("E2 mean over layers", {"reduction": "mean"}),
        Variant("E3 loss at full size", {"full_size_loss": True}),
        Variant(PER_BATCH, {"dependency": "per_batch"}),
        Variant("E5 embeddings, centred", {"strategy": "embeddings", "center": True}, "embeddings"),
        Variant("E6 randomised", {"dependency": "per_batch", "decomposition": "randomized"}, PER_BATCH),
        Variant("E8 literal weights", {"layer_weights": "learned_literal"}),
        Variant("as released", vars(ESPRESSO_FORMS["code"])),
    )
}
"""every variant by its name; names stay, since the audit quotes them"""
LEFT_OUT = {
    "embedded": ("max-k", "learned weights", PER_BATCH, "E5 embeddings, centred", "E6 randomised", "E8 literal weights")
}
"""variants that a profile does without: each is a training, and a network of two blocks has one weight to learn"""
SWEEP = {"embedded": (4,)}
"""further sizes of Figure 5, as multiples of the default"""
WIDE_SWEEP = (1 / 8, 1 / 4, 1 / 2, 2, 4, 6)


def menu(profile: str, variants: Sequence[str] | None = None) -> list[str]:
    """The variants given, or those of a profile."""
    return [v for v in VARIANTS if v not in LEFT_OUT.get(profile, ())] if variants is None else list(variants)


def sweep(profile: str, hidden_dim: int, sizes: Sequence[int] | None = None) -> list[int]:
    """The compressed sizes given, or those of a profile, none above the hidden size."""
    own = compression_size(hidden_dim)
    wanted = [round(own * factor) for factor in SWEEP.get(profile, WIDE_SWEEP)] if sizes is None else list(sizes)
    return sorted({min(size, hidden_dim) for size in wanted if size >= 1})


def switches(name: str) -> dict[str, Any]:
    """What a variant sets otherwise than the printed form."""
    plain = vars(EspressoConfig())
    changes = VARIANTS[one_of(name, list(VARIANTS), "variant")].changes
    return {switch: value for switch, value in changes.items() if value != plain[switch]}


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


def depth_of(config: TrainConfig) -> int:
    """Blocks of a configuration's network."""
    return config.layers or load_backbone(config.backbone).n_layers


def coinciding(names: Sequence[str], n_layers: int) -> dict[str, str]:
    """Variants that are the same training as an earlier one on a network so deep, with that earlier one."""
    first: dict[EspressoConfig, str] = {}
    found = {}
    for name in names:
        read = what_is_read(EspressoConfig(**VARIANTS[one_of(name, list(VARIANTS), "variant")].changes), n_layers)
        if read in first:
            found[name] = first[read]
        else:
            first[read] = name
    return found


def variant_lines(
    base: TrainConfig,
    store: Store,
    *,
    variants: Sequence[str] = tuple(VARIANTS),
    sizes: Sequence[int] = (),
    baselines: bool = True,
    progress: bool = True,
) -> list[Line]:
    """ESE trained in several variants and with several compressed sizes, and the paper's two baselines beside them.

    Variants that are the same training on this network share one.

    Args:
        base: backbone, data, schedule and seed; its objective and form are not read.
        store: where trained encoders are kept.
        variants: names of `VARIANTS`.
        sizes: further compressed sizes k of the default.
        baselines: put RAW and MRL first.
        progress: show progress bars.

    Raises:
        InputError: for an unknown variant, or repeated sizes.
    """
    own = compression_size(hidden_dim_of(base))
    if len(set(sizes)) != len(sizes):
        raise InputError(f"sizes is {list(sizes)}: expected different sizes")
    merged = coinciding(variants, depth_of(base))
    plain = line_config(base, ESE)
    configs: dict[str, TrainConfig] = {MRL: line_config(base, MRL)} if baselines else {}
    for name in variants:
        changes = VARIANTS[merged.get(name, name)].changes
        configs[name] = replace(plain, espresso=EspressoConfig(**changes))
    for size in sizes:
        if size != own:
            configs[size_variant(size)] = replace(plain, dim=size, espresso=EspressoConfig())
    cells = train_all(list(configs.values()), store, progress=progress)
    lines = [raw_line(base)] if baselines else []
    for name, cell in zip(configs, cells, strict=True):
        lines.append(Line(name, base.backbone, cell.config, partial(getattr, cell, "encoder"), cell.key, cell))
    return lines


def comparisons(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Which of some lines are compared, the first's lead over the second.

    Variants with what they differ from, the orders of Table 2, compressed sizes with the default and the baselines.
    """
    present = set(names)
    pairs = [(v.name, v.reference) for v in VARIANTS.values() if v.name != v.reference]
    for order in (COMPRESSION, WEIGHTS):
        pairs += pairwise(name for name in order if name in present)
    pairs += [("learned weights", "uniform weights")]
    sized = [name for name in names if name.startswith(size_variant(0)[:-1])]
    pairs += [(ESE_DEFAULT, name) for name in sized]
    pairs += [(name, baseline) for name in (ESE_DEFAULT, *sized) for baseline in (RAW, MRL)]
    yield from dict.fromkeys(pair for pair in pairs if set(pair) <= present)
