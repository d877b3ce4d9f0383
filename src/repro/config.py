"""Frozen configurations, the three profiles, and the digest that names what a configuration made."""

import hashlib
import json
import logging
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, cast, get_args

from repro.objectives import ANGLE_PRESETS, ESPRESSO_FORMS, AngleConfig, EspressoConfig, LoraConfig
from repro.recipes import ANGLE_RECIPES, NLI_RECIPES, RECIPES
from repro.types import DataSource, InputError, check_dim, one_of

LOGGER = logging.getLogger(__name__)
Pooling = Literal["cls", "mean", "last", "avg_first_last"]
Activation = Literal["tanh", "identity"]
Objective = Literal["simcse", "nli", "angle", "matryoshka", "ese"]
SCALING = ("angle", "matryoshka", "ese")
"""objectives of ESE's comparison: AnglE on entailment pairs, without a pooler"""


@dataclass(frozen=True)
class TrainConfig:
    """One end-to-end training: objective, backbone, pooler width, data and schedule (PROTOCOLS §2.1, §2.2)."""

    objective: Objective = "simcse"
    """contrastive on plain sentences; or on entailment pairs a softmax classifier, AnglE, AnglE on prefixes, ESE"""
    backbone: str = "repro-tiny"
    """shipped name, local folder or hub id"""
    layers: int | None = None
    """blocks kept of the backbone, from the first; None keeps all"""
    dim: int = 128
    """embedding size d of the pooler; may exceed the hidden size. `ese` has no pooler: its compressed size k"""
    pooling: Pooling = "cls"
    activation: Activation = "tanh"
    temperature: float = 0.05
    batch_size: int = 64
    """sentences per step, over all processes; gradient accumulation would not enlarge the negative set"""
    learning_rate: float = 3e-5
    warmup: float = 0.0
    """share of the steps over which the learning rate rises from 0"""
    max_length: int = 32
    """tokens kept of a training sentence"""
    epochs: float = 1.0
    sentences: int = 20_000
    """training sentences drawn from the corpus; pairs of the `nli` objective, pairs or triples of the AnglE ones"""
    check_every: int = 125
    """steps between dev checks; the best check is kept"""
    checkpoint_by: Literal["pooler", "encoder"] = "pooler"
    """readout whose dev Spearman picks the checkpoint"""
    mask_duplicates: bool = True
    """leave equal texts out of the negatives; False is SimCSE as published"""
    prefixes: tuple[int, ...] = ()
    """sizes that `matryoshka` trains; those above the hidden size are left out, the hidden size is added; empty is
    8, 16, 32, … 512, 768"""
    examples: Literal["pairs", "triples"] = "pairs"
    """of the AnglE objectives: pairs labelled 1 or 0, or premises with an entailed and a contradicted hypothesis"""
    angle: AngleConfig = ANGLE_PRESETS["paper"]
    espresso: EspressoConfig = ESPRESSO_FORMS["paper"]
    lora: LoraConfig | None = None
    """train low-rank adapters in place of the backbone's weights"""
    bidirectional: bool = False
    """let the tokens of a decoder backbone see those after them"""
    final_norm: Literal["last", "all", "none"] = "last"
    """which states pass the final norm of a backbone that has one"""
    dropout: float | None = None
    """dropout of every layer; None keeps the backbone's own"""
    difference: Literal["abs", "signed"] = "abs"
    """third feature of the `nli` classifier: |u − v|, or u − v as Wang et al. print it"""
    corpus: str = "wiki"
    validation: str = "stsb"
    """scored pairs whose dev split picks checkpoints, learning rates and opt"""
    source: DataSource = "microworld"
    bf16: bool = False
    threads: int = 1
    """CPU threads; part of the configuration because sums over threads round differently"""
    save_every: int = 250
    """steps between resumable states"""
    seed: int = 0

    def __post_init__(self) -> None:
        check_dim(self.dim)
        check_dim(self.sentences, what="sentences")
        one_of(self.objective, get_args(Objective), "objective")
        one_of(self.examples, ("pairs", "triples"), "examples")
        one_of(self.final_norm, ("last", "all", "none"), "final_norm")
        one_of(self.difference, ("abs", "signed"), "difference")
        if self.layers is not None:
            check_dim(self.layers, what="layers")
        if self.batch_size < 2:
            raise InputError(f"batch_size is {self.batch_size}: a contrastive loss needs at least 2 texts")
        if self.temperature <= 0:
            raise InputError(f"temperature is {self.temperature}: expected a number above 0")
        if not self.epochs > 0:
            raise InputError(f"epochs is {self.epochs}: expected a number above 0")
        for size in self.prefixes:
            check_dim(size, what="a prefix")
        if list(self.prefixes) != sorted(set(self.prefixes)):
            raise InputError(f"prefixes are {self.prefixes}: expected rising sizes, each once")


@dataclass(frozen=True)
class StepTwoConfig:
    """Step 2 of two-step training: poolers on a frozen encoder (PROTOCOLS §3.3)."""

    learning_rates: tuple[float, ...] = (1e-5, 3e-5, 1e-4, 1e-3)
    """tried side by side; the dev score picks one per dim"""
    views: int = 2
    """cached dropout views of every sentence"""
    epochs: float = 1.0
    batch_size: int = 64
    temperature: float = 0.05
    check_every: int = 125
    patience: int = 10
    start: Literal["current", "random"] = "current"
    """start from the pooler of step 1, or from fresh weights"""
    clip_norm: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.views < 2:
            raise InputError(f"views is {self.views}: step 2 contrasts two dropout views, so at least 2 are needed")
        if not self.learning_rates:
            raise InputError("learning_rates is empty: give at least one")
        if self.batch_size < 2:
            raise InputError(f"batch_size is {self.batch_size}: a contrastive loss needs at least 2 texts")
        if not self.temperature > 0:
            raise InputError(f"temperature is {self.temperature}: expected a number above 0")
        if not self.epochs > 0:
            raise InputError(f"epochs is {self.epochs}: expected a number above 0")


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
        probe_rows=1_000,
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


def only_what_is_read(config: TrainConfig) -> TrainConfig:
    """The configuration with every setting that its AnglE objective does not read at its default.

    Two that differ in such a setting alone are one training, so that a sweep over sizes trains the control once.
    """
    if config.objective not in SCALING:
        return config
    unread = ["activation", "temperature", "difference", "checkpoint_by"]
    unread += [] if config.objective == "ese" else ["dim", "espresso"]
    unread += [] if config.objective == "matryoshka" else ["prefixes"]
    return replace(config, **{name: getattr(TrainConfig(), name) for name in unread})


def override(config: Any, **changes: Any) -> Any:
    """A copy of a frozen configuration with some fields changed; None leaves a field as it is.

    Raises:
        InputError: for a field that the configuration does not have.
    """
    valid = [f.name for f in fields(config)]
    for name in changes:
        one_of(name, valid, f"field of {type(config).__name__}")
    return replace(config, **{name: value for name, value in changes.items() if value is not None})


def digest(config: Any, *, code: tuple[str, ...] = ()) -> str:
    """Sixteen hex digits naming a configuration and the code that acts on it.

    Args:
        config: a dataclass, or plain JSON-like values.
        code: module names whose source text is part of the name, so that changed code makes anew.
    """
    named = {"type": type(config).__name__, "values": _plain(config), "code": {m: module_digest(m) for m in code}}
    return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()[:16]


def module_digest(module: str) -> str:
    """Digest of a module's source text, found without importing it."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise InputError(f"no module {module!r} to take a code version from")
    return hashlib.sha256(Path(spec.origin).read_bytes()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    return value
