"""The objectives that an encoder can be trained with: a record each, and the settings that suit
each network.

None of this lies under the key of a trained encoder. What decides its bytes is the function in
`repro.training` that `repro.runs.cell.LOSSES` gives by the same name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from repro.data.samples import training_examples, training_pairs, training_sentences
from repro.digests import digest
from repro.settings import LoraConfig, TrainConfig
from repro.store import Store
from repro.types import one_of

Recipes: TypeAlias = dict[tuple[str, str | None], dict[str, Any]]
"""(backbone, source) to the settings that suit it, found by trials; source None holds for all."""
REAL = (("repro-tiny", "local"), ("repro-tiny", "hub"))
RECIPES: Recipes = {
    # The contrastive loss of a network this small falls to 0.06 within 150 steps at dropout 0.1 and
    # stops teaching; on Wikipedia sentences dropout 0.4 keeps it near 1 and lifts STS-B dev from
    # 0.16 to 0.40 instead of 0.22 (results/tiny_recipe.parquet). Generated sentences share most
    # words and are hard to tell apart as it is: there that dropout teaches nothing, and mean
    # pooling is lifted (0.26 to 0.29), which on Wikipedia sentences it is not (0.54 to 0.47).
    **{place: {"batch_size": 64, "learning_rate": 1e-3, "dropout": 0.4} for place in REAL},
    ("repro-tiny", "microworld"): {
        "batch_size": 64,
        "learning_rate": 3e-4,
        "pooling": "mean",
        "sentences": 256,
    },
    ("bert-base-uncased", None): {"batch_size": 64, "learning_rate": 3e-5},
    ("bert-large-uncased", None): {"batch_size": 64, "learning_rate": 1e-5},
    ("roberta-base", None): {"batch_size": 512, "learning_rate": 1e-5},
    ("roberta-large", None): {"batch_size": 512, "learning_rate": 3e-5},
}
"""Of the contrastive objective; the last four are SimCSE's own."""
NLI_RECIPES: Recipes = {
    # A hundred steps do not teach this network entailment with dropout (loss 1.09, ln 3 = 1.10);
    # without it the loss falls to 1.04 in 150 steps and STS-B dev rises from 0.16 to 0.28.
    **{place: {"learning_rate": 1e-3, "dropout": 0.0, "sentences": 6_400} for place in REAL},
    ("repro-tiny", "microworld"): {"learning_rate": 1e-3, "pooling": "mean", "sentences": 256},
}
"""Of the `nli` objective; others have Sentence-BERT's learning rate."""
_TINY = {"pooling": "mean", "learning_rate": 3e-4, "warmup": 0.1, "dropout": 0.0}
_ALL_LAYERS = {
    "pooling": "mean",
    "learning_rate": 2e-4,
    "warmup": 0.1,
    "sentences": 4_800,
    "check_every": 40,
}
_DECODER = {"pooling": "mean", "bidirectional": True, "lora": LoraConfig(), "learning_rate": 2e-4}
"""Of Li et al. (2025, §4.1) for large language models."""
ANGLE_RECIPES: Recipes = {
    # AnglE alone, 50 steps of 64 real pairs, STS-B dev: mean pooling rises from 54.2 to 58.2 at
    # 3e-4 and to 57.9 at 1e-3; with dropout 0.1 to 56.4 and 57.4. `cls` starts at 16.0 and ends at
    # 43.6. Generated pairs: 25.5 to 32.4 in 30 steps at 3e-4, then no further; 30.7 at 1e-4; 1e-3
    # falls below the start.
    **{place: {**_TINY, "sentences": 3_200} for place in REAL},
    ("repro-tiny", "microworld"): {**_TINY, "sentences": 256},
    # Their last layers know more than these pairs teach. all-MiniLM-L6-v2, STS-B dev: 86.7
    # untouched, 84.2 after 20 steps of AnglE at the paper's 5e-5 and 84.1 after 32 at 2e-4. ESE (k
    # = 64) has 86.7 and 85.7 there, but what it is for takes the larger rate: layer 4 at 64 dims,
    # 51.1 untouched, reaches 53.0 and 72.0 (AnglE: 52.7). e5-small-en, mean over its twelve layers,
    # last layer: 69.0, 87.6 untouched; AnglE 68.2, 86.6 at 5e-5 and 69.9, 84.2 at 2e-4, ESE 69.7,
    # 86.2 and 72.9, 84.7, MRL 69.4, 85.1 at 2e-4: the rate that is best over all layers. Trials of
    # one seed.
    ("all-MiniLM-L6-v2", None): _ALL_LAYERS,
    ("e5-small-en", None): _ALL_LAYERS,
    ("Qwen/Qwen1.5-0.5B", None): _DECODER,
    ("meta-llama/Llama-2-7b-hf", None): _DECODER,
}
"""Of `angle`, `matryoshka` and `ese`, one for the three so that they compare; others have the
paper's learning rate, 5e-5 for BERT-like networks. The command that ESE's authors publish has 1e-6,
and a warm-up of 200 steps.
"""


@dataclass(frozen=True)
class Objective:
    """What is said of one objective, in one place."""

    label: str
    """What bars and messages call a training; `{dim}` stands for its size."""
    material: Callable[[TrainConfig, Store], Any]
    """What it learns from."""
    recipes: Recipes
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Settings over those of a profile, and under those of a recipe."""
    pooler: bool = True
    """Whether a pooler is trained along; without one, states are read."""
    dims: str = "dim"
    """The setting that sizes are given to: `dim`, one encoder each; `prefixes`, one encoder of all;
    empty, none.
    """
    options: tuple[str, ...] = ()
    """Options of `repro train` that not every objective reads."""
    unread: tuple[str, ...] = ()
    """Settings that stay at their defaults, so that a control is trained once."""


ON_PAIRS = {"corpus": "nli", "batch_size": 64}
ON_STATES: dict[str, Any] = {
    "material": training_examples,
    "recipes": ANGLE_RECIPES,
    "defaults": {**ON_PAIRS, "learning_rate": 5e-5},
    "pooler": False,
}
"""Of ESE's comparison: AnglE on entailment pairs, without a pooler."""
UNREAD = ("activation", "temperature", "difference", "checkpoint_by")
OBJECTIVES: dict[str, Objective] = {
    "simcse": Objective(
        label="SimCSE dim {dim}",
        material=training_sentences,
        recipes=RECIPES,
        options=("activation",),
    ),
    "nli": Objective(
        label="NLI dim {dim}",
        material=training_pairs,
        recipes=NLI_RECIPES,
        defaults={**ON_PAIRS, "warmup": 0.1, "learning_rate": 2e-5},
        options=("activation", "difference"),
    ),
    "angle": Objective(
        label="AnglE",
        dims="",
        options=("preset", "examples"),
        unread=(*UNREAD, "dim", "espresso", "prefixes"),
        **ON_STATES,
    ),
    "matryoshka": Objective(
        label="Matryoshka",
        dims="prefixes",
        options=("preset", "examples"),
        unread=(*UNREAD, "dim", "espresso"),
        **ON_STATES,
    ),
    "ese": Objective(
        label="ESE size {dim}",
        options=("preset", "examples", "form", "layer_weights", "strategy", "alpha", "beta"),
        unread=(*UNREAD, "prefixes"),
        **ON_STATES,
    ),
}


def objective_of(config: TrainConfig) -> Objective:
    """The record of a configuration's objective."""
    return OBJECTIVES[one_of(config.objective, tuple(OBJECTIVES), "objective")]


def title(config: TrainConfig) -> str:
    """What progress bars and messages call a training."""
    return objective_of(config).label.format(dim=config.dim)


def only_what_is_read(config: TrainConfig) -> TrainConfig:
    """The configuration with all that its objective does not read at its default."""
    plain = TrainConfig()
    unread = objective_of(config).unread
    return replace(config, **{name: getattr(plain, name) for name in unread})


TOLD_APART = (
    "backbone",
    "seed",
    "pooling",
    "learning_rate",
    "dropout",
    "batch_size",
    "max_length",
)
"""Settings that are columns of a row by their own names."""


def trained_columns(config: TrainConfig) -> dict[str, Any]:
    """The columns of a row that say how an encoder was trained, beside others that its line has."""
    kept = columns_of(config)
    return {name: kept[name] for name in ("config", *TOLD_APART[2:])}


def columns_of(config: TrainConfig) -> dict[str, Any]:
    """The columns of a row that tell trainings apart; `config` names all of the configuration but
    seed and dim.
    """
    return {
        "config": digest(replace(only_what_is_read(config), seed=0, dim=1)),
        "layer": config.layers,
        "data_source": config.source,
        "n_train": config.sentences,
        **{name: getattr(config, name) for name in TOLD_APART},
    }
