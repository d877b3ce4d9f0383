"""The three profiles (where an experiment runs, on which network, how large it is) and the settings
of each network.
"""

import logging
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeAlias, cast, get_args

from repro.objectives import SCALING, LoraConfig, StepTwoConfig, TrainConfig
from repro.types import DataSource, one_of

LOGGER = logging.getLogger(__name__)
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
        "sentences": 448,
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
    ("repro-tiny", "microworld"): {"learning_rate": 1e-3, "pooling": "mean", "sentences": 448},
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
    ("repro-tiny", "microworld"): {**_TINY, "sentences": 448},
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
inside a warm-up of 200 steps that its about 135 steps never leave.
"""


@dataclass(frozen=True)
class Profile:
    """Where an experiment runs and how large it is."""

    name: str
    train: TrainConfig
    step_two: StepTwoConfig
    dims: tuple[int, ...]  # sweep of Figure 2
    candidates: tuple[int, ...]  # candidate set of Algorithm 1
    seeds: tuple[int, ...] = (0,)
    source: DataSource | None = None  # None: local files if REPRO_DATA is set, else the microworld
    probe_rows: int | None = None
    """Rows of each split of a classification set that suites of tasks keep; None keeps all."""
    scaling_backbone: str | None = None  # network of the AnglE objectives; None: that of `train`


class _Profiles(dict[str, Profile]):
    """By name; another name is the user's mistake, wherever it is looked up."""

    def __missing__(self, name: str) -> Profile:
        return self[one_of(name, list(self), "profile")]


_PROFILES = (
    Profile(
        name="embedded",
        # Two checks; each costs four steps
        train=TrainConfig(sentences=3_200, check_every=25, save_every=25),
        step_two=StepTwoConfig(check_every=20),
        dims=(2048, 256, 128, 64, 32, 16, 8, 4),
        candidates=(128, 64, 32, 16, 8),
        probe_rows=500,
    ),
    Profile(
        name="gpu",
        train=TrainConfig(backbone="all-MiniLM-L6-v2", sentences=1_000_000, bf16=True),
        step_two=StepTwoConfig(),
        dims=(2048, 1024, 512, 256, 128, 64, 32, 16, 8, 4),
        candidates=(512, 256, 128, 64, 32, 16, 8),
        seeds=(0, 1, 2),
    ),
    Profile(
        name="paper",
        train=TrainConfig(backbone="roberta-base", dim=768, sentences=1_000_000, bf16=True),
        step_two=StepTwoConfig(batch_size=512),
        dims=(2048, 1024, 768, 512, 256, 128, 64, 32, 16, 8, 4),
        candidates=(768, 512, 256, 128, 64, 32, 16, 8),
        seeds=(0, 1, 2),
        source="hub",
        scaling_backbone="BAAI/bge-base-en-v1.5",
    ),
)
GENERATED: dict[str, Any] = {
    "dims": (256, 128, 64, 16),
    "candidates": (128, 64, 16),
    "probe_rows": 120,
}
"""Of the embedded profile on generated text, which shows how a method works and judges nothing."""
PROFILES: dict[str, Profile] = _Profiles({each.name: each for each in _PROFILES})


def profile(
    name: str,
    *,
    source: str | None = None,
    backbone: str | None = None,
    views: int | None = None,
    **train: Any,
) -> Profile:
    """The named profile, with the recipe of its backbone and any field of `TrainConfig` replaced;
    None keeps it.

    Another backbone than the profile's brings its own recipe; `views` are those of step 2.
    """
    chosen = PROFILES[name]
    objective = train.get("objective")
    own = chosen.scaling_backbone if objective in SCALING else None
    network = backbone or own or chosen.train.backbone
    data = one_of(source or chosen.source or chosen.train.source, get_args(DataSource), "source")
    chosen = replace(chosen, **GENERATED) if (name, data) == ("embedded", "microworld") else chosen
    common, recipes = {}, RECIPES
    if objective == "nli":
        common, recipes = (
            {"corpus": "nli", "warmup": 0.1, "batch_size": 64, "learning_rate": 2e-5},
            NLI_RECIPES,
        )
    elif objective in SCALING:
        common, recipes = {"corpus": "nli", "batch_size": 64, "learning_rate": 5e-5}, ANGLE_RECIPES
    # A folder is known by its name
    folders = [own for own, _ in recipes if Path(own).name == Path(network).name]
    known = ((network, data), *((own, None) for own in (network, *folders)))
    found = next((recipes[key] for key in known if key in recipes), None)
    recipe: dict[str, Any] = common | (found or {})
    if found is None and not train.get("pooling"):
        # brings torch, which networks with a recipe do without here
        from repro.models.folders import decoder_pooling

        if pooling := decoder_pooling(network):
            about = "%s is a decoder, whose first state has seen one token: pooling is %s"
            LOGGER.warning(about, network, pooling)
            recipe["pooling"] = pooling
    settings = recipe | {field: value for field, value in train.items() if value is not None}
    step_one = override(chosen.train, backbone=network, source=data, **settings)
    step_two = override(chosen.step_two, views=views, seed=settings.get("seed"))
    return replace(
        chosen,
        train=step_one if train.get("batch_size") else _filled(step_one, step_one.sentences),
        step_two=_filled(step_two, step_one.sentences),
        source=cast(DataSource, data),
    )


def _filled(config: Any, sentences: int) -> Any:
    """The configuration with batches no larger than all sentences of a small trial; says so where
    they shrink.
    """
    if 2 <= sentences < config.batch_size:
        LOGGER.warning(
            "%d sentences do not fill a batch of %d: one batch of all",
            sentences,
            config.batch_size,
        )
        return replace(config, batch_size=sentences)
    return config


def override(config: Any, **changes: Any) -> Any:
    """A copy of a frozen configuration with some of its fields changed; None leaves a field as it
    is.
    """
    valid = [f.name for f in fields(config)]
    for name in changes:
        one_of(name, valid, f"field of {type(config).__name__}")
    return replace(config, **{name: value for name, value in changes.items() if value is not None})
