"""The three profiles (where an experiment runs, on which network, how large it is) and the settings
of each network.
"""

import logging
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast, get_args

from repro.objectives import OBJECTIVES
from repro.settings import ANGLE_PRESETS, StepTwoConfig, TrainConfig
from repro.types import DataSource, InputError, one_of

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Profile:
    """Where an experiment runs and how large it is."""

    name: str
    train: TrainConfig
    step_two: StepTwoConfig
    dims: tuple[int, ...]  # Sweep of Figure 2
    candidates: tuple[int, ...]  # Candidate set of Algorithm 1
    seeds: tuple[int, ...] = (0,)
    source: DataSource | None = None  # None: local files if REPRO_DATA is set, else the microworld
    pairs: int | None = None
    """Scored pairs of each split that suites of tasks keep; None keeps all."""
    probe_rows: int | None = None
    """Rows of each split of a classification set that suites of tasks keep; None keeps all."""
    scaling_backbone: str | None = None  # Network of the AnglE objectives; None: that of `train`
    one_batch: bool = False  # Step 2 takes the batch of step 1, whatever that is


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
        train=TrainConfig(
            backbone="roberta-base",
            dim=768,
            sentences=1_000_000,
            bf16=True,
            mask_duplicates=False,
        ),
        step_two=StepTwoConfig(batch_size=512),
        dims=(2048, 1024, 768, 512, 256, 128, 64, 32, 16, 8, 4),
        candidates=(768, 512, 256, 128, 64, 32, 16, 8),
        seeds=(0, 1, 2),
        source="hub",
        scaling_backbone="BAAI/bge-base-en-v1.5",
        one_batch=True,
    ),
)
GENERATED: dict[str, Any] = {
    "dims": (256, 128, 64, 16),
    "candidates": (128, 64, 16),
    "pairs": 90,
    "probe_rows": 90,
}
"""Of the embedded profile on generated text, which shows how a method works and judges nothing."""
PROFILES: dict[str, Profile] = _Profiles({each.name: each for each in _PROFILES})


def profile(
    name: str,
    *,
    source: str | None = None,
    backbone: str | None = None,
    views: int | None = None,
    preset: str | None = None,
    **train: Any,
) -> Profile:
    """The named profile, with the recipe of its backbone and any field of `TrainConfig` replaced;
    None keeps it.

    Another backbone than the profile's brings its own recipe; `views` are those of step 2, `preset`
    names weights of AnglE's terms. A batch that is given is that of both steps.
    """
    if preset is not None:
        train["angle"] = ANGLE_PRESETS[one_of(preset, list(ANGLE_PRESETS), "preset")]
    chosen = PROFILES[name]
    named = train.get("objective") or chosen.train.objective
    objective = OBJECTIVES[one_of(named, tuple(OBJECTIVES), "objective")]
    of_states = None if objective.pooler else chosen.scaling_backbone
    # As from a shell's variable that is not set
    if backbone is not None and not backbone.strip():
        expected = "expected a name, a folder or a hub id; or leave it out"
        raise InputError(f"backbone is empty: {expected}")
    network = backbone or of_states or chosen.train.backbone
    named_source = chosen.source or chosen.train.source if source is None else source
    data = one_of(named_source, get_args(DataSource), "source")
    if (name, data) == ("embedded", "microworld"):
        chosen = replace(chosen, **GENERATED)
    recipes = objective.recipes
    # A folder is known by its name
    folders = [own for own, _ in recipes if Path(own).name == Path(network).name]
    known = ((network, data), *((own, None) for own in (network, *folders)))
    found = next((recipes[key] for key in known if key in recipes), None)
    recipe: dict[str, Any] = {**objective.defaults, **(found or {})}
    if found is None and not train.get("pooling"):
        # Brings torch, which networks with a recipe do without here
        from repro.models.published import decoder_pooling

        if pooling := decoder_pooling(network):
            about = "%s is a decoder, whose first state has seen one token: pooling is %s"
            LOGGER.warning(about, network, pooling)
            recipe["pooling"] = pooling
    settings = recipe | {field: value for field, value in train.items() if value is not None}
    step_one = override(chosen.train, backbone=network, source=data, **settings)
    batch = step_one.batch_size if chosen.one_batch or train.get("batch_size") else None
    step_two = override(chosen.step_two, views=views, batch_size=batch, seed=settings.get("seed"))
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
