"""The three profiles: where an experiment runs, on which network, and how large it is."""

import json
import logging
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast, get_args

from repro.objectives import SCALING, StepTwoConfig, TrainConfig
from repro.recipes import ANGLE_RECIPES, NLI_RECIPES, RECIPES
from repro.types import DataSource, one_of

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Profile:
    """Where an experiment runs and how large it is."""

    name: str
    train: TrainConfig
    step_two: StepTwoConfig
    dims: tuple[int, ...]
    """sweep of Figure 2"""
    candidates: tuple[int, ...]
    """candidate set of Algorithm 1"""
    seeds: tuple[int, ...] = (0,)
    source: DataSource | None = None
    """None: local files if REPRO_DATA is set, else the microworld"""
    probe_rows: int | None = None
    """rows of each split of a classification set that suites of tasks keep; None keeps all"""
    scaling_backbone: str | None = None
    """network of the AnglE objectives; None: that of `train`"""


DECODERS = ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gpt2", "gpt_neox", "opt", "phi", "phi3")
"""kinds of network that read forwards only"""


class _Profiles(dict[str, Profile]):
    """By name; another name is the user's mistake, wherever it is looked up."""

    def __missing__(self, name: str) -> Profile:
        return self[one_of(name, list(self), "profile")]


_PROFILES = (
    Profile(
        name="embedded",
        train=TrainConfig(sentences=3_200, check_every=25, save_every=25),  # two checks; each costs four steps
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
PROFILES: dict[str, Profile] = _Profiles({each.name: each for each in _PROFILES})


def profile(
    name: str, *, source: str | None = None, backbone: str | None = None, views: int | None = None, **train: Any
) -> Profile:
    """The named profile, with the recipe of its backbone and any field of `TrainConfig` replaced; None keeps it.

    Args:
        name: embedded, gpu or paper.
        source: local, hub or microworld.
        backbone: another network than the profile's; brings its own recipe.
        views: dropout views of step 2.
        train: fields of `TrainConfig`.

    Raises:
        InputError: for an unknown profile or field, or a value out of range.
    """
    chosen = PROFILES[name]
    own = chosen.scaling_backbone if train.get("objective") in SCALING else None
    network = backbone or own or chosen.train.backbone
    data = one_of(source or chosen.source or chosen.train.source, get_args(DataSource), "source")
    recipe = _recipe(RECIPES, network, data)
    if train.get("objective") == "nli":
        common = {"corpus": "nli", "warmup": 0.1, "batch_size": 64, "learning_rate": 2e-5}
        recipe = common | _recipe(NLI_RECIPES, network, data)
    elif train.get("objective") in SCALING:
        recipe = {"corpus": "nli", "batch_size": 64, "learning_rate": 5e-5} | _recipe(ANGLE_RECIPES, network, data)
    if not recipe.get("pooling") and not train.get("pooling") and reads_forwards(network):
        LOGGER.warning("%s is a decoder, whose first state has seen one token: the last one is read", network)
        recipe = {**recipe, "pooling": "last"}
    settings = {**recipe, **{field: value for field, value in train.items() if value is not None}}
    step_one = override(chosen.train, backbone=network, source=data, **settings)
    step_two = override(chosen.step_two, views=views, seed=settings.get("seed"))
    return replace(
        chosen,
        train=step_one if train.get("batch_size") else _filled(step_one, step_one.sentences),
        step_two=_filled(step_two, step_one.sentences),
        source=cast(DataSource, data),
    )


def reads_forwards(network: str) -> bool:
    """Whether a local folder holds a causal decoder, such as Llama, that names no pooling of its own."""
    folder = Path(network)
    if any((folder / name).exists() for name in ("encoder.json", "1_Pooling")):
        return False
    try:
        said = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        return any(name.endswith("ForCausalLM") for name in said["architectures"]) or said["model_type"] in DECODERS
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # whatever loads the network says what is wrong
        return False


def _filled(config: Any, sentences: int) -> Any:
    """The configuration with batches no larger than all sentences of a small trial; says so where they shrink."""
    if 2 <= sentences < config.batch_size:
        LOGGER.warning("%d sentences do not fill a batch of %d: one batch of all", sentences, config.batch_size)
        return replace(config, batch_size=sentences)
    return config


def _recipe(recipes: dict[tuple[str, str | None], dict[str, Any]], network: str, source: str) -> dict[str, Any]:
    return recipes.get((network, source)) or recipes.get((network, None)) or {}


def override(config: Any, **changes: Any) -> Any:
    """A copy of a frozen configuration with some fields changed; None leaves a field as it is.

    Raises:
        InputError: for a field that the configuration does not have.
    """
    valid = [f.name for f in fields(config)]
    for name in changes:
        one_of(name, valid, f"field of {type(config).__name__}")
    return replace(config, **{name: value for name, value in changes.items() if value is not None})
