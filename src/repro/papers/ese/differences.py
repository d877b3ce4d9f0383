"""What ESE's lines and variants differ by: the switches of each variant, and differences as tables
and figures.

A variant of Table 2, Figure 5 or the audit is the printed form of ESE with one thing changed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from repro.losses import shallow_layers
from repro.methods import ESE_DEFAULT
from repro.papers.ese.reading import PLACES, at_places, difference
from repro.report.curves import points
from repro.report.figures import Drawing, drawing
from repro.report.tables import wide
from repro.report.whiskers import sized, whiskers
from repro.rows import only, ordered, parsed
from repro.settings import ESPRESSO_FORMS, EspressoConfig
from repro.types import one_of

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
        switch: value
        for switch, value in vars(CODE).items()
        if value != getattr(EspressoConfig(), switch)
    },
}
"""What every variant sets otherwise than the printed form; names stay, since the audit quotes them.
"""
REFERENCES = {name: ESE_DEFAULT for name in VARIANTS if name != ESE_DEFAULT} | {
    "E5 embeddings, centred": "embeddings",
    "E6 randomised": PER_BATCH,
}
"""The variant that each differs from in one thing."""
AUDITED = tuple(name for name in VARIANTS if name.startswith(("E", "as released")))
"""Variants that the audit quotes."""
FEW = (ESE_DEFAULT, "embeddings", "no compression", "uniform weights", "as released")
"""Variants that the embedded profile trains: the least that the table's three questions need."""


def form_of(variant: str) -> EspressoConfig:
    """ESE's objective in a variant."""
    return EspressoConfig(**VARIANTS[one_of(variant, list(VARIANTS), "variant")])


def what_is_read(config: EspressoConfig, n_layers: int) -> EspressoConfig:
    """The same objective on a network of `n_layers` blocks, with each switch that changes nothing
    there at its default.

    A network of two blocks has one shallow layer: its weight is 1 either way, and a sum of one is
    its mean.
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
    """Variants that are the same training as an earlier one on a network so deep, with that earlier
    one.
    """
    first: dict[EspressoConfig, str] = {}
    earlier = {
        name: first.setdefault(what_is_read(form_of(name), n_layers), name) for name in names
    }
    return {name: other for name, other in earlier.items() if name != other}


# Tables and figures of differences


def difference_rows(
    rows: pd.DataFrame,
    references: Mapping[str, str],
    *,
    every_size: bool = False,
) -> pd.DataFrame:
    """Each variant less what it differs from, where the two were compared, at both places, in the
    variants' order.
    """
    lead_rows = parsed(at_places(rows, "spearman_lead", every_size=every_size))
    lead_rows = only(lead_rows, rival=lead_rows["winner"].map(references))
    return ordered(lead_rows.assign(variant=lead_rows["winner"]), "variant", references)


def difference_table(rows: pd.DataFrame, references: Mapping[str, str], kind: str) -> pd.DataFrame:
    """The same for the reader: a line per variant and place, a column per size."""
    cells = difference_rows(rows, references, every_size=True)
    cells = cells.assign(against=cells["rival"])
    dims = sorted(cells["dim"].unique(), reverse=True)
    orders = {"variant": list(references), "place": list(PLACES), "dim": dims}
    names = {str(dim): f"{kind}, {dim} dims" for dim in dims}
    return wide(
        cells,
        ["variant", "against", "place"],
        "dim",
        difference,
        orders=orders,
        names=names,
    )


def rank_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Numerical rank of dependency matrices by layer: median, smallest and largest, and S₂/S₁
    (audit E4).
    """
    keys = ["backbone", "layer", "dim", "setting"]
    ranks = only(rows, metric="numerical_rank").groupby(keys, sort=False)
    table = ranks.agg(
        median=("value", "median"),
        smallest=("ci_low", "min"),
        largest=("ci_high", "max"),
    ).astype(int)
    ratio = only(rows, metric="second_share").groupby(keys)["value"].mean().map("{:.1e}".format)
    names = {
        "dim": "size",
        "setting": "matrix",
        "median": "rank, median",
        "ratio": "second by first",
    }
    return table.join(ratio.rename("ratio")).reset_index().rename(columns=names)


def repeat_table(rows: pd.DataFrame) -> pd.DataFrame:
    """How far two calls on one batch agree, a line per decomposition (audit E6)."""
    names = {
        "sign_flips": "components that change sign, %",
        "column_cosine": "cosine of equal components, median, %",
        "last_cosine": "the last one's, %",
        "subspace_overlap": "overlap of the two spaces, %",
    }
    cells, names = (
        rows[rows["metric"].isin(list(names))],
        names | {"dim": "k", "setting": "decomposition"},
    )
    return wide(
        cells,
        ["backbone", "dim", "setting"],
        "metric",
        orders={"metric": list(names)},
        names=names,
    )


@drawing
def draw_differences(frame: pd.DataFrame, *, xlabel: str, kind: str) -> Drawing:
    """Differences with their intervals (fractions), a line per variant, a panel per place (Tables 1
    and 2).
    """
    numbers = points(frame.assign(kind=kind), ["variant", "place"])
    return whiskers(numbers, line="variant", panel="place", xlabel=xlabel)


@drawing
def draw_without_compression(rows: pd.DataFrame) -> Drawing:
    """What leaving out the second loss gains over two of its targets, a panel for how many numbers
    are read.
    """
    cells = at_places(rows, "spearman_lead", every_size=True).assign(kind="recorded")
    over_default = only(cells, method="no compression − default").assign(target="than dependencies")
    over_largest = only(cells, method="max-k − no compression").assign(target="than the k largest")
    turned = {"ci_low": -over_largest["ci_high"], "ci_high": -over_largest["ci_low"]}
    over_largest = over_largest.assign(value=-over_largest["value"], **turned)
    gains = points(pd.concat([over_default, over_largest]), ["dim", "target", "place"])
    return whiskers(
        sized(gains, "{} numbers read"),
        line="target",
        panel="size",
        color="place",
        xlabel="better without, points",
        share=True,
    )
