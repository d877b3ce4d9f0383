"""Table 2, Figure 5 and the audit's switches: what is changed in ESE, one thing at a time, and what it changes.

Rows: `spearman` at the last layer and over the shallow ones; `spearman_lead` of one variant over another;
`shallow_excess`, how much larger that lead is over the shallow layers than at the last; `layer_weight`, what learned
weights became; `compressed_size`, the k of a variant.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import exp
from typing import Any

import pandas as pd

from repro.config import TrainConfig
from repro.losses import layer_weights, shallow_layers
from repro.methods import ESE, ESE_DEFAULT, MRL, RAW, size_variant
from repro.models.backbone import load_backbone
from repro.objectives import ESPRESSO_FORMS, EspressoConfig
from repro.papers.ese.claims_use import COMPRESSION, WEIGHTS
from repro.papers.ese.depth import Grid, Rows, by_size, shallow_name
from repro.papers.ese.lines import Line, compression_size, line_config, raw_line, trained_lines
from repro.rows import make_rows
from repro.runs.cell import hidden_dim_of
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


def variants_of(profile: str) -> list[str]:
    """The variants of a profile."""
    return [v for v in VARIANTS if v not in LEFT_OUT.get(profile, ())]


def sizes_of(profile: str, hidden_dim: int, sizes: Sequence[int] | None = None) -> list[int]:
    """The compressed sizes given, or those of a profile, none above the hidden size."""
    own = compression_size(hidden_dim)
    wanted = [round(own * factor) for factor in SWEEP.get(profile, WIDE_SWEEP)] if sizes is None else list(sizes)
    return sorted({min(size, hidden_dim) for size in wanted if size >= 1})


def changes_of(name: str) -> dict[str, Any]:
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


def same_training(names: Sequence[str], n_layers: int) -> dict[str, str]:
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
    progress: bool = True,
) -> list[Line]:
    """RAW and MRL, then ESE trained in several variants and with several compressed sizes.

    Variants that are the same training on this network share one.

    Args:
        base: backbone, data, schedule and seed; its objective and form are not read.
        store: where trained encoders are kept.
        variants: names of `VARIANTS`.
        sizes: further compressed sizes k of the default.
        progress: show progress bars.

    Raises:
        InputError: for an unknown variant, or repeated sizes.
    """
    if len(set(sizes)) != len(sizes):
        raise InputError(f"sizes is {list(sizes)}: expected different sizes")
    raw, plain = raw_line(base), line_config(base, ESE)
    merged = same_training(variants, base.layers or load_backbone(base.backbone).n_layers)
    configs = {MRL: line_config(base, MRL)}
    for name in variants:
        configs[name] = replace(plain, espresso=EspressoConfig(**VARIANTS[merged.get(name, name)].changes))
    for size in sizes:
        if size != compression_size(hidden_dim_of(base)):
            configs[size_variant(size)] = replace(plain, dim=size, espresso=EspressoConfig())
    return [raw, *trained_lines(configs, store, progress=progress)]


def comparisons(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Which of some lines are compared, the first's lead over the second.

    Variants with what they differ from, the orders of Table 2, compressed sizes with the default and the baselines.
    """
    present = set(names)
    pairs = [(v.name, v.reference) for v in VARIANTS.values() if v.name != v.reference]
    for order in (COMPRESSION, WEIGHTS["last layer"]):
        pairs += pairwise(name for name in order if name in present)
    pairs += [("learned weights", "uniform weights")]
    sized = [name for name in names if name.startswith(size_variant(0)[:-1])]
    pairs += [(ESE_DEFAULT, name) for name in sized]
    pairs += [(name, baseline) for name in (ESE_DEFAULT, *sized) for baseline in (RAW, MRL)]
    yield from dict.fromkeys(pair for pair in pairs if set(pair) <= present)


def ablation_rows(grid: Grid, **shared: Any) -> pd.DataFrame:
    """Scores of all variants at every scored size, and their comparisons on the average of the sets.

    The compressed size of a variant of Figure 5 is in its name.

    Args:
        grid: lines of `variant_lines`.
        shared: columns common to all rows.
    """
    rows: list[dict[str, Any]] = []
    for i, line in enumerate(grid.lines):
        rows += _settings(line, grid.layers[-1])
        for dataset, scores in grid.scores.items():
            common = {**line.columns, "metric": "spearman"}
            rows += by_size(grid, scores[i, -1], {**common, "dataset": dataset, "layer": grid.layers[-1]})
            if grid.shallow and dataset in grid.judged:
                rows += by_size(grid, grid.shallow_mean(dataset)[i], {**common, "dataset": shallow_name(dataset)})
    at = {line.method: i for i, line in enumerate(grid.lines)}
    for dataset in grid.judged:
        for a, b in ((at[one], at[other]) for one, other in comparisons(list(at))):
            rows += _compared(grid, dataset, a, b)
    return make_rows(rows, readout="encoder", **shared)


def _compared(grid: Grid, dataset: str, a: int, b: int) -> Rows:
    """One variant less another: at the last layer, over the shallow ones, and the second less the first."""
    common = {**grid.lines[a].less(grid.lines[b]), "metric": "spearman_lead"}
    last = grid.scores[dataset][a, -1] - grid.scores[dataset][b, -1]
    yield from by_size(grid, last, {**common, "dataset": dataset, "layer": grid.layers[-1]})
    if grid.shallow:
        low = grid.shallow_mean(dataset)[a] - grid.shallow_mean(dataset)[b]
        yield from by_size(grid, low, {**common, "dataset": shallow_name(dataset)})
        yield from by_size(grid, low - last, {**common, "dataset": dataset, "metric": "shallow_excess"})


def _settings(line: Line, deepest: int) -> Rows:
    """The compressed size; and weights of the shallow layers after training, the default's for comparison."""
    if line.cell is None or line.config is None or line.config.objective != "ese":
        return
    yield {**line.columns, "metric": "compressed_size", "value": line.config.dim}
    learned = line.cell.log_weights
    if learned is not None or line.method == ESE_DEFAULT:
        shallow = shallow_layers(deepest + 1, line.config.espresso)
        weights = layer_weights(len(shallow), "log").tolist() if learned is None else [exp(-s) for s in learned]
        for layer, weight in zip(shallow, weights, strict=True):
            yield {**line.columns, "layer": layer, "metric": "layer_weight", "value": weight}
