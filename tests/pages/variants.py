"""What a reader may change on a page, read from the page's own parameters, all at toy size."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.pages.pairs import covering

from repro.book.parameters import Parameter, validate
from repro.types import InputError

TOY: dict[str, Any] = {
    "sentences": 130,
    "trained_on": 130,
    "rows": 60,
    "probe_rows": 60,
    "pairs": 60,
    "paragraphs": 40,
    "questions": 20,
    "queries": 20,
    "documents": 60,
    "dev_documents": 40,
    "words": 20,
    "wiki_sentences": 100,
    "timed": 10,
    "stored": 500,
    "vectors": 500,
    "texts": 16,
    "points": 8,
    "steps": 20,
    "draws": 2,
    "sampled": 500,
    "asking": 20,
    "teaching": 300,
    "searched": [20, 40, 80],
    "starts": [0],
    "seeds": [0],
    **dict.fromkeys(
        ("rounds", "reference_rounds", "tries", "repeats", "slow_repeats", "maps", "restarts"),
        1,
    ),
    "fit_sentences": [60, 100],
    "perplexity": 5.0,
    "factors": [3, 5],
    "values": 4,
    "encode_dims": [64, 8],
    "theory_dims": [2, 8],
    "free_dims": [2, 8],
    "batches": [64],
    "backbones": ["repro-tiny", "repro-tiny:1"],
    "systems": ["glove", "bert_avg", "sbert", "minilm"],
}
"""Sizes by the names of parameters; defaults below them stay."""
LESS: dict[str, Any] = {
    "baselines": ["tfidf", "lsa", "sbert", "simcse"],
    "systems": ["glove", "bert_avg", "sbert"],
    "system": "sbert",
    "also": ["bert_avg"],
    "augmentations": ["dropout", "synonym"],
    "variants": ["default", "embeddings"],
    "sizes": [8],
}
"""Lines in all variants but the first, which alone runs what encoders of full size need."""
SINGLE = ("one dim", "two dims", "backbone", "one dataset", "one of each", "gpu", "paper")
"""What is changed alone."""
ONE_DIM, TWO_DIMS, BACKBONE, ONE_DATASET, ONE_OF_EACH, GPU, PAPER = SINGLE
PAIRS = "pairs"  # Several changes at once: any two of a page's stand together in one of its runs
VARIANTS = (*SINGLE, PAIRS)
PROFILES = (GPU, PAPER)
SIZES = ("dim", "columns", "size", "sizes", "prefix")
"""Names of sizes that do not end in `dims`."""
MENUS = {
    "protocol": ["logreg", "senteval"],
    "preset": ["paper", "ese_readme"],
    "select_by": ["encoder", "pooler_max", "pair"],
    "difference": ["abs", "signed"],
    "kernel": ["rbf", "sigmoid"],
    "folds": [0, 10],
    "dataset": ["sts13", "stsb"],
    "system": ["sbert", "bert_avg"],  # Always at hand; the lists of systems have GloVe too
    "systems": [["glove", "sbert"], ["bert_avg"]],
    "levels": [["float32"], ["int8", "binary"]],
    "budgets": [[4], [4, 8, 16]],
    "seed": [0, 1],
    "seeds": [[0], [1, 2]],
}
"""Values by the names of parameters that say what the page does; those that a type does not admit
are left out.
"""
ENCODERS = ("encoder", "encoders")
BACKBONES = ("backbone", "backbones")
SETS = ("datasets", "tasks")
WITHOUT = (
    "searched",
    "texts",
    "translators",
    "wiki_sentences",
    "fit_sentences",
    "batches",
    "factors",
    "starts",
)
"""Lists that pairs leave at toy size: their length decides how long a page takes, not what it does.
"""


def values(
    declared: Mapping[str, Parameter],
    variant: str,
    networks: Sequence[str],
) -> dict[str, Any] | None:
    """The values that a variant gives a page; None where the page has no parameter of that kind.

    Args:
        declared: the page's parameters.
        variant: one of `SINGLE`.
        networks: folders; the first is the backbone, the last the reference beside it.
    """
    changed = {
        name: new
        for name, p in declared.items()
        if (new := _changed(p, variant, networks)) is not None
    }
    if not changed:
        return None
    less = (
        {}
        if variant == ONE_DIM
        else LESS | {"reference": networks[-1], "encoders": [networks[-1], "trained"]}
    )
    toys = {name: toy for name, p in declared.items() if (toy := _toy(p, less)) is not None}
    return validate(declared, toys | changed)


def _changed(parameter: Parameter, variant: str, networks: Sequence[str]) -> Any:
    name, default = parameter.name, parameter.default
    if variant in (ONE_DIM, TWO_DIMS) and (name in SIZES or name.endswith("dims")):
        share = "float" in parameter.kind
        asked: list[Any] = [[8], [0.5]] if variant == ONE_DIM else [[5, 24], [0.3, 0.77]]
        return _fitting(parameter, asked[share], asked[share][-1])
    if variant in (BACKBONE, *PROFILES):
        blocks = [f"{network}:1" for network in networks]
        own = {
            "backbone": networks[0],
            "encoder": networks[0],
            "encoders": [networks[0], "trained"],
        }
        own |= {"backbones": [*networks[:2], *blocks[:2]]}
        # No page gives `trained` fewer sentences than the profile's million
        if variant in PROFILES:
            own |= {"encoders": [networks[0], networks[-1]], "profile": variant}
            own |= {"mapped": ["sbert", "minilm"], "size": 8, "prefix": 8, "batch_size": 16}
            if name == "generator":
                return "None"  # The printed one is not at hand
            own |= {"source": "hub"}  # Whose toy copies are smaller than what would be generated
        return _fitting(parameter, own.get(name))
    if variant == ONE_DATASET:
        first = default[:1] if isinstance(default, list) else None
        return {"datasets": first, "tasks": first, "dataset": "stsb"}.get(name)
    if variant == ONE_OF_EACH and isinstance(default, list) and len(default) > 1:
        return default[: 2 if name == "texts" else 1]  # One text has no neighbour
    return None


def paired(declared: Mapping[str, Parameter], networks: Sequence[str]) -> list[dict[str, Any]]:
    """Values for several runs of a page, in which any two of its changes stand together.

    Args:
        declared: the page's parameters.
        networks: folders of three networks.
    """
    levels = {}
    for name, parameter in declared.items():
        tried = _levels(parameter, networks)
        if "[] for none" in parameter.comment:
            tried = [*tried, []]
        if len(tried) > 1:
            levels[name] = tried
    less = LESS | {"reference": networks[-1]}
    toys = {name: toy for name, p in declared.items() if (toy := _toy(p, less)) is not None}
    runs = []
    for row in covering([len(values) for values in levels.values()]):
        chosen = {
            name: values[level] for (name, values), level in zip(levels.items(), row, strict=True)
        }
        if chosen.get("profile") in PROFILES:
            chosen |= _of_profile(declared, chosen, networks)
        runs.append(validate(declared, toys | chosen))
    return runs


def _of_profile(
    declared: Mapping[str, Parameter],
    chosen: Mapping[str, Any],
    networks: Sequence[str],
) -> dict[str, Any]:
    """What a profile of a larger machine needs beside it to be small: the toy hub, and no million
    of sentences.
    """
    needed: dict[str, Any] = {"source": "hub"} if "source" in declared else {}
    if "mapped" in declared:
        needed["mapped"] = chosen.get("mapped", declared["mapped"].default)
    if "generator" in declared:
        needed["generator"] = "None"
    for name, small in {"size": 8, "prefix": 8, "batch_size": 16}.items():
        if name in declared and name not in chosen:
            needed[name] = small
    for name in (*ENCODERS, *BACKBONES):
        if name in declared and (chosen.get(name) is None or "trained" in chosen[name]):
            needed |= {name: _fitting(declared[name], networks[0], list(networks[:2]))}
    return needed


def _levels(parameter: Parameter, networks: Sequence[str]) -> list[Any]:
    """The values that pairs try of a parameter; one of them or none where nothing of it can be
    changed.
    """
    name, default = parameter.name, parameter.default
    if name == "profile":
        return ["embedded", *PROFILES]
    if name in MENUS:
        return _admitted(parameter, MENUS[name])
    if isinstance(default, bool) and name != "record":
        return [default, not default]
    if name in ENCODERS:
        return _admitted(parameter, [default, networks[1], [networks[0], "trained"], [networks[1]]])
    if name in BACKBONES:
        return _admitted(
            parameter,
            [default, networks[1], list(networks[:2]), [f"{networks[1]}:1"]],
        )
    if name == "reference":
        return _admitted(
            parameter,
            [networks[-1], None] if isinstance(default, str) else [None, "best", 8],
        )
    if name in SIZES or name.endswith("dims"):
        share = "float" in parameter.kind
        return _admitted(parameter, [[0.5], [0.3, 0.77]] if share else [8, [8], [5, 24]])
    if name in SETS:
        # On pages of accuracy these have no labels
        others = [["sts12", "sickr"]] if "stsb" in default else []
        return _admitted(parameter, [default[:2], default[-1:], *others])
    if isinstance(default, list) and name not in WITHOUT:
        return _admitted(
            parameter,
            [LESS.get(name) or TOY.get(name) or default, default[:1], default[-1:]],
        )
    return []


def _admitted(parameter: Parameter, choices: Sequence[Any]) -> list[Any]:
    """Those of some values that the parameter's type admits, each once."""
    admitted: list[Any] = []
    for value in choices:
        try:
            found = validate({parameter.name: parameter}, {parameter.name: value})[parameter.name]
        except InputError:
            continue
        if found not in admitted:
            admitted.append(found)
    return admitted


def _toy(parameter: Parameter, less: Mapping[str, Any]) -> Any:
    name, default = parameter.name, parameter.default
    if name == "dims" and default is None:  # A whole profile's, each of which may be a training
        return _fitting(parameter, [16, 8])
    # Elsewhere a size goes by that name
    if name in less and (name != "reference" or isinstance(default, str)):
        return _fitting(parameter, less[name])
    if name == "datasets" and less and isinstance(default, list):
        return default[:2]
    toy = TOY.get(name)
    found = _fitting(parameter, toy, toy[-1] if isinstance(toy, list) else None)
    return min(found, default) if isinstance(found, int | float) and default else found


def _fitting(parameter: Parameter, *choices: Any) -> Any:
    """The first of some values that the parameter's type admits."""
    for value in choices:
        try:
            if value is not None:
                return validate({parameter.name: parameter}, {parameter.name: value})[
                    parameter.name
                ]
        except InputError:
            continue
    return None
