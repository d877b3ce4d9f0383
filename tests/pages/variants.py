"""What a reader may change on a page, read from the page's own parameters, all at toy size."""

from collections.abc import Mapping
from typing import Any

from repro.experiments import parameters
from repro.experiments.parameters import Parameter
from repro.types import InputError

TOY: dict[str, Any] = {
    "sentences": 130, "rows": 60, "probe_rows": 60, "pairs": 60, "questions": 20, "paragraphs": 40, "queries": 20,
    "documents": 60, "dev_documents": 40, "words": 20, "wiki_sentences": 100, "timed": 10, "stored": 500,
    "vectors": 500, "texts": 16, "rounds": 1, "reference_rounds": 1, "tries": 1, "repeats": 1, "slow_repeats": 1,
    "maps": 1, "points": 8, "steps": 20, "restarts": 1, "draws": 2, "sampled": 500, "starts": [0], "seeds": [0],
    "fit_sentences": [60, 100], "perplexity": 5.0, "encode_dims": [64, 8], "theory_dims": [2, 8],
    "free_dims": [2, 8], "batches": [64], "factors": [3, 5], "values": 4,
}  # fmt: skip
"""sizes by the names of parameters; larger defaults shrink to them"""
ONE_DIM, TWO_DIMS, BACKBONE, ONE_DATASET, ONE_OF_EACH, PAPER = VARIANTS = (
    "one dim", "two dims", "backbone", "one dataset", "one of each", "paper",
)  # fmt: skip
MENUS = {"encoders", "systems", "mapped", "also", "baselines", "probed", "variants", "methods"}


def values(declared: Mapping[str, Parameter], variant: str, networks: list[str]) -> dict[str, Any] | None:
    """The values that a variant gives a page; None where the page has no parameter of that kind."""
    changed = {name: value for name, p in declared.items() if (value := _changed(p, variant, networks)) is not None}
    if not changed:
        return None
    toys = {name: toy for name, p in declared.items() if (toy := _toy(p)) is not None}
    return parameters.validate(declared, toys | changed)


def _toy(parameter: Parameter) -> Any:
    name, default = parameter.name, parameter.default
    for value in (TOY.get(name), (TOY.get(name) or [None])[-1] if isinstance(TOY.get(name), list) else None):
        if value is not None and _fits(parameter, value):
            return min(value, default) if isinstance(default, int | float) and default else value
    return None


def _changed(parameter: Parameter, variant: str, networks: list[str]) -> Any:
    name, default = parameter.name, parameter.default
    if variant in (ONE_DIM, TWO_DIMS) and (
        name.endswith("dims") or name in ("dim", "columns", "sizes", "size", "prefix")
    ):
        some = ([8], [0.5]) if variant == ONE_DIM else ([5, 24], [0.3, 0.77])
        shares = "float" in parameter.kind
        return next((v for v in (some[shares], some[shares][-1]) if _fits(parameter, v)), None)
    if variant in (BACKBONE, PAPER):
        if name in ("backbone", "encoder"):
            return networks[0]
        if name == "encoders":
            return [networks[0], "trained"]
        if name == "backbones":
            return [*networks, f"{networks[0]}:1"][:4] if len(networks) > 2 else [f"{networks[0]}:1", networks[0]]
        if variant == PAPER:
            return {"profile": "paper", "reference": networks[-1]}.get(name)
    if variant == ONE_DATASET:
        one = {"datasets": default and default[-1:], "tasks": default and default[:2], "dataset": "stsb"}
        return one.get(name)
    if variant == ONE_OF_EACH and isinstance(default, list) and len(default) > 1 and name != "tasks":
        return default[:1]
    return None


def _fits(parameter: Parameter, value: Any) -> bool:
    try:
        parameters.validate({parameter.name: parameter}, {parameter.name: value})
    except InputError:
        return False
    return True
