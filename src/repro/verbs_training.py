"""The verb of `repro` that trains encoders: `train`, with the options of every objective."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar

import tyro

from repro.config import override
from repro.objectives import OBJECTIVES, objective_of, title
from repro.settings import (
    ANGLE_PRESETS,
    ESPRESSO_FORMS,
    Activation,
    LayerWeights,
    LoraConfig,
    Pooling,
    Strategy,
    TrainConfig,
)
from repro.terminal import Menu, ProfileName, say
from repro.types import DataSource, InputError
from repro.verb_outputs import copy_encoder, refuse_foreign
from repro.writing import writable_folder

T = TypeVar("T")
# Its help says what happens without it
Unset = Annotated[T | None, tyro.conf.arg(help_behavior_hint="")]
if TYPE_CHECKING:
    Preset: TypeAlias = str
    Form: TypeAlias = str
else:  # What may be chosen is what there is
    Preset = Literal[tuple(ANGLE_PRESETS)]
    Form = Literal[tuple(ESPRESSO_FORMS)]
ObjectiveName: TypeAlias = Annotated[str, Menu("repro.objectives", "OBJECTIVES")]
DIM = 128  # Pooler size, and ESE's compressed size, where none is given
TRAINED = (
    "backbone",
    "objective",
    "difference",
    "layers",
    "sentences",
    "learning_rate",
    "warmup",
    "batch_size",
    "max_length",
    "dropout",
    "epochs",
    "pooling",
    "activation",
    "seed",
)
"""Options of `train` that are fields of a training's configuration."""


@dataclass(frozen=True)
class ScalingOptions:
    """Options of AnglE, Matryoshka and ESE, and of the large backbones they are published on."""

    preset: Unset[Preset] = None
    """Angle, matryoshka, ese: weights of AnglE's terms; by default paper."""
    examples: Unset[Literal["pairs", "triples"]] = None
    """Angle, matryoshka, ese: entailed and contradicted pairs (the default), or premises with one
    hypothesis of each.
    """
    form: Unset[Form] = None
    """Ese: as printed (the default), or as its authors released it."""
    layer_weights: Unset[LayerWeights] = None
    """Ese: of the layers below the last; by default the form's, log."""
    strategy: Unset[Strategy] = None
    """Ese: what the compressed target is made of; by default the form's, dependencies."""
    alpha: Unset[float] = None
    """Ese: weight of learn-to-express; by default 1."""
    beta: Unset[float] = None
    """Ese: weight of learn-to-compress; by default 1."""
    lora_rank: Unset[int] = None
    """Train adapters of this rank in place of the backbone's own weights; by default the weights
    themselves.
    """
    bidirectional: bool = False
    """Let the tokens of a decoder see those after them."""
    final_norm: Unset[Literal["last", "all", "none"]] = None
    """Which states pass the backbone's final norm, if it has one; by default last."""

    def settings(self) -> dict[str, Any]:
        """Fields of `TrainConfig`; None where nothing was asked for."""
        changed = {
            name: getattr(self, name) for name in ("layer_weights", "strategy", "alpha", "beta")
        }
        return {
            "angle": ANGLE_PRESETS.get(self.preset or ""),
            "examples": self.examples,
            "espresso": override(ESPRESSO_FORMS[self.form or "paper"], **changed),
            "lora": None if self.lora_rank is None else LoraConfig(rank=self.lora_rank),
            "bidirectional": self.bidirectional or None,
            "final_norm": self.final_norm,
        }


def refuse_unread(objective: str, given: Mapping[str, Any]) -> None:
    """Refuse an option that the objective does not read; those not given are None or empty."""
    for name in dict.fromkeys(option for each in OBJECTIVES.values() for option in each.options):
        readers = [key for key, each in OBJECTIVES.items() if name in each.options]
        _refuse_unread(objective, name, given[name], readers)
    sized = [key for key, each in OBJECTIVES.items() if each.dims]
    way_out = " (read prefixes of it with `repro evaluate --dims`)"
    _refuse_unread(objective, "dims", given["dims"], sized, way_out)


def _refuse_unread(
    objective: str, name: str, value: Any, readers: Sequence[str], way_out: str = ""
) -> None:
    if value not in (None, ()) and objective not in readers:
        raise InputError(
            f"--{name.replace('_', '-')} is not read by the objective {objective!r}, only by "
            f"{', '.join(readers)}: leave it out{way_out}"
        )


def trainings(base: TrainConfig, dims: Sequence[int]) -> dict[str, TrainConfig]:
    """The encoders that a command trains, by the subfolder of its output that they go to; "" is the
    output itself.
    """
    sized = objective_of(base).dims
    if not sized:
        return {"": base}
    if sized == "prefixes":
        return {"": replace(base, prefixes=tuple(sorted(dims)))}
    sizes = list(dict.fromkeys(dims)) or [DIM]
    if len(sizes) == 1:
        return {"": replace(base, dim=sizes[0])}
    return {f"dim{dim}": replace(base, dim=dim) for dim in sizes}


@dataclass(frozen=True)
class Training:
    """Which encoders are trained, on what and how.

    Args:
        backbone: shipped name, local folder or hub id.
        dims: pooler sizes (simcse, nli) or compressed sizes (ese), one encoder each, by default
            128; matryoshka: the prefixes that its one encoder trains, by default 8 to 768.
        output: folder for the encoder, or for a subfolder of each of several, such as dim64; by
            default they are in the store alone.
        objective: contrastive on plain sentences; or on entailment pairs a softmax classifier
            (nli), AnglE (angle), AnglE on prefixes (matryoshka), or on prefixes of all layers
            (ese).
        difference: nli: third feature of the classifier, |u - v| (by default) or u - v.
        layers: blocks kept of the backbone; by default all.
        sentences: how many training sentences, pairs or triples; by default as many as the profile
            says.
        learning_rate: peak learning rate; by default the profile's, as for all up to activation.
        warmup: share of the steps over which the rate rises from 0.
        batch_size: sentences per step.
        max_length: tokens kept of a training sentence.
        dropout: of every layer.
        epochs: passes over the sentences.
        pooling: from token states to sentence state.
        activation: simcse, nli: of the pooler.
        scaling: options of ESE's comparison.
        source: where the sentences come from; by default local files if REPRO_DATA is set, else the
            microworld.
        profile: defaults for everything not given.
        seed: of weights, dropout and data order.
        workers: processes side by side; by default one per core.
    """

    backbone: str = "repro-tiny"
    dims: tuple[int, ...] = ()
    output: Path | None = None
    objective: ObjectiveName = "simcse"
    difference: Literal["abs", "signed"] | None = None
    layers: int | None = None
    sentences: int | None = None
    learning_rate: float | None = None
    warmup: float | None = None
    batch_size: int | None = None
    max_length: int | None = None
    dropout: float | None = None
    epochs: float | None = None
    pooling: Pooling | None = None
    activation: Activation | None = None
    scaling: Annotated[ScalingOptions, tyro.conf.arg(name="")] = ScalingOptions()
    source: DataSource | None = None
    profile: ProfileName = "embedded"
    seed: int = 0
    workers: int | None = None


def train(options: Training) -> int:
    """Encoders of your own, trained end to end; a stopped run goes on when the same command is
    given again.
    """
    from repro import config
    from repro.data import default_source
    from repro.runs.cell import cell_key, train_all
    from repro.store import Store

    given, output = vars(options), options.output
    if output is not None:
        writable_folder(output)
    refuse_unread(options.objective, given | asdict(options.scaling))
    settings = {name: given[name] for name in TRAINED} | options.scaling.settings()
    usual_source = config.PROFILES[options.profile].source or default_source()
    settings["source"] = options.source or usual_source
    base = config.profile(options.profile, **settings).train
    configs = trainings(base, options.dims)
    if output is not None:
        for folder, config_of_one in configs.items():
            key = cell_key(config_of_one)
            stored = Store().folder("encoders", key).exists()
            refuse_foreign(output / folder, key, stored=stored)
    readout = base.checkpoint_by if objective_of(base).pooler else "encoder"
    cells = train_all(list(configs.values()), Store(), workers=options.workers)
    for folder, cell in zip(configs, cells, strict=True):
        best = max((score for _, score in cell.history.checks), default=float("nan"))
        state = "found in the store" if cell.hit else f"trained in {cell.seconds:.0f} s"
        place = cell.folder if output is None else output / folder
        if output is not None:
            copy_encoder(cell.folder, place)
        say(
            f"{title(cell.config)}: {state}; dev Spearman {100 * cell.dev_before:.2f} (encoder, "
            f"untrained) -> {100 * best:.2f} ({readout}); {place}"
        )
    return 0
