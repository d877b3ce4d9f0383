"""The verbs of `repro` that train: `train` with the options of every objective, and `pretrain`."""

import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar

import tyro

from repro.config import override
from repro.objectives import OBJECTIVES, objective_of, title
from repro.paths import replacing, writable_folder
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
from repro.store import MANIFEST, copy_folder, read_manifest, sha256
from repro.terminal import Menu, ProfileName, say
from repro.types import DataSource, InputError, check_dim

T = TypeVar("T")
# Its help says what happens without it
Unset = Annotated[T | None, tyro.conf.arg(help_behavior_hint="")]
if TYPE_CHECKING:
    from repro.store import Store
    from repro.training.mlm import PretrainConfig, TokenisedCorpus

    Preset: TypeAlias = str
    Form: TypeAlias = str
else:  # what may be chosen is what there is
    Preset = Literal[tuple(ANGLE_PRESETS)]
    Form = Literal[tuple(ESPRESSO_FORMS)]
ObjectiveName: TypeAlias = Annotated[str, Menu("repro.objectives", "OBJECTIVES")]
MOST_THREADS = 1024  # more than machines have cores; so many more would stop one
CARD = "card.json"  # beside a network of our own: how it was made
DIM = 128  # pooler size, and ESE's compressed size, where none is given
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


def refuse_foreign(folder: Path, key: str, *, stored: bool) -> None:
    """Check that a folder is new or empty, or holds what was written of the network with this key,
    before any work.

    Of one that is `stored`, whoever copies it sees what was edited; else nothing may be.
    """
    there = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    if all(name.endswith(".partial") for name in there):
        return
    try:
        manifest = read_manifest(folder)
        found, files = manifest["key"], dict(manifest["files"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        found, files = None, {}
    way_out = "give another --output, nothing is overwritten"
    if found != key:
        what = "files that no training wrote" if found is None else "a network of other settings"
        raise InputError(f"{folder} holds {what}: {way_out}")
    for name, written in files.items():
        is_there = not stored and (folder / name).is_file()
        if is_there and sha256(folder / name) != written:
            raise InputError(f"{folder / name} was edited: {way_out}")


def copy_encoder(source: Path, target: Path) -> None:
    """Copy a network out of the store, a manifest first: what a killed copy left is then known to
    be of it.
    """
    if not (target / MANIFEST).exists():
        with replacing(target / MANIFEST) as partial:
            shutil.copyfile(source / MANIFEST, partial)
    copy_folder(source, target)


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


def train(asked: Training) -> int:
    """Encoders of your own, trained end to end; a stopped run goes on when the same command is
    given again.
    """
    from repro import config
    from repro.data import default_source
    from repro.runs.cell import cell_key, train_all
    from repro.store import Store

    given, output = vars(asked), asked.output
    if output is not None:
        writable_folder(output)
    refuse_unread(asked.objective, given | asdict(asked.scaling))
    settings = {name: given[name] for name in TRAINED} | asked.scaling.settings()
    usual_source = config.PROFILES[asked.profile].source or default_source()
    settings["source"] = asked.source or usual_source
    base = config.profile(asked.profile, **settings).train
    configs = trainings(base, asked.dims)
    if output is not None:
        for folder, config_of_one in configs.items():
            key = cell_key(config_of_one)
            stored = Store().folder("encoders", key).exists()
            refuse_foreign(output / folder, key, stored=stored)
    readout = base.checkpoint_by if objective_of(base).pooler else "encoder"
    cells = train_all(list(configs.values()), Store(), workers=asked.workers)
    for folder, cell in zip(configs, cells, strict=True):
        best = max((score for _, score in cell.history.checks), default=float("nan"))
        state = "found in the store" if cell.hit else f"trained in {cell.seconds:.0f} s"
        place = cell.folder if output is None else output / folder
        if output is not None:
            copy_encoder(cell.folder, place)
        say(
            f"{title(cell.config)}: {state}; dev Spearman {100 * cell.dev_before:.2f} "
            "(encoder, untrained) -> "
            f"{100 * best:.2f} ({readout}); {place}"
        )
    return 0


@dataclass(frozen=True)
class Pretraining:
    """Which network is pre-trained, on what and how.

    Args:
        corpus: dataset name or a text file with one sentence per line.
        output: folder for the backbone, its tokenizer and model card.
        layers: transformer blocks.
        hidden_dim: hidden size D.
        heads: attention heads; by default one per 64 dims.
        vocabulary: WordPieces, trained on the corpus; at most 65,536.
        max_length: tokens kept of a sentence, and positions of the network.
        epochs: passes over the corpus.
        learning_rate: peak rate; by default 1e-3 for 2 layers, 5e-4 for more.
        batch_size: sentences per step.
        sentences: take only so many sentences; by default all.
        threads: CPU threads, on whose number the last bits of the weights depend; by default all
            cores.
        source: where the corpus comes from; by default local files if REPRO_DATA is set, else the
            microworld.
        seed: of weights, masks and data order.
    """

    corpus: str = "wiki"
    output: Path = Path("runs/repro-tiny")
    layers: int = 2
    hidden_dim: int = 128
    heads: int | None = None
    vocabulary: int = 8192
    max_length: int = 64
    epochs: float = 1.25
    learning_rate: float | None = None
    batch_size: int = 256
    sentences: int | None = None
    threads: int | None = None
    source: DataSource | None = None
    seed: int = 0


def pretrain(asked: Pretraining) -> int:
    """A small BERT of your own, pre-trained from scratch; a stopped run goes on when the command is
    given again.
    """
    from repro import data
    from repro.data.samples import fingerprint
    from repro.digests import digest
    from repro.paths import read_json
    from repro.rows import hardware
    from repro.seeding import cpu_count
    from repro.store import Store
    from repro.training import mlm

    config = _network_asked(asked)
    asked_cores = cpu_count() if asked.threads is None else asked.threads
    cores = check_dim(asked_cores, limit=MOST_THREADS, what="threads")
    writable_folder(asked.output)
    texts = data.load(asked.corpus, source=asked.source, limit=asked.sentences)
    if not isinstance(texts, data.Corpus):
        raise InputError(f"{asked.corpus!r} is not a corpus of plain sentences")
    content = fingerprint(asked.corpus, texts.source)
    # Sums that are split among other threads differ in their last bits
    settings = {
        "config": asdict(config),
        "content": content,
        "sentences": asked.sentences,
        "threads": cores,
    }
    key = digest(settings, code=(mlm.__name__,))
    store = Store()
    refuse_foreign(asked.output, key, stored=store.folder("backbones", key).exists())
    mlm.check_enough(texts.texts, config)

    origin = {
        "corpus": asked.corpus,
        "source": texts.source,
        "licence": _licence_of(asked.corpus, texts.source),
        "content": content,
        "hardware": hardware(),
        "threads": cores,
        "command": " ".join(sys.argv[1:]),
    }
    tokens = partial(_tokens_of, asked, texts.texts, content, store)
    make = partial(_make_network, tokens=tokens, config=config, origin=origin)
    network = store.get_or_make("backbones", key, make, config=settings)
    copy_encoder(network.folder, asked.output)
    figures = read_json(network.folder / CARD)["figures"]
    state = "found in the store" if network.hit else f"trained in {network.seconds:.0f} s"
    say(
        f"{asked.output}: {state}; dev loss {figures['dev_loss']:.3f} after "
        f"{figures['tokens_seen'] / 1e6:.0f} M tokens"
    )
    return 0


def _tokens_of(
    asked: Pretraining,
    texts: Sequence[str],
    content: str,
    store: "Store",
) -> "TokenisedCorpus":
    """The corpus in tokens, stored apart from the network: a run that goes on would wait for them
    again.
    """
    from repro.digests import digest
    from repro.training import mlm

    cut = {"vocabulary": asked.vocabulary, "max_length": asked.max_length}
    named = {"content": content, "sentences": asked.sentences, **cut}
    made = store.get_or_make(
        "tokens",
        digest(named, code=(mlm.__name__,)),
        lambda target, work: mlm.tokenised(texts, **cut).save(target),
        config=named,
    )
    return mlm.TokenisedCorpus.load(made.folder)


def _licence_of(corpus: str, source: str) -> str:
    """Under what a corpus may be used, as far as it is known here."""
    from repro.data import DATASETS

    if source == "microworld":
        return "generated text, free of rights"
    return DATASETS[corpus].licence if corpus in DATASETS else "that of the file, unknown here"


def _network_asked(asked: Pretraining) -> "PretrainConfig":
    """What is trained: heads of 64 dims, as far as they fit, and a usual rate where none is
    given.
    """
    from repro.training.mlm import PretrainConfig

    heads = max(1, asked.hidden_dim // 64)
    while asked.hidden_dim % heads:
        heads -= 1
    usual_rate = 1e-3 if asked.layers <= 2 else 5e-4
    return PretrainConfig(
        layers=asked.layers,
        hidden_dim=asked.hidden_dim,
        heads=heads if asked.heads is None else asked.heads,
        vocabulary=asked.vocabulary,
        max_length=asked.max_length,
        epochs=asked.epochs,
        learning_rate=usual_rate if asked.learning_rate is None else asked.learning_rate,
        batch_size=asked.batch_size,
        save_every=1000,
        seed=asked.seed,
    )


def _make_network(
    target: Path,
    work: Path,
    *,
    tokens: Callable[[], "TokenisedCorpus"],
    config: "PretrainConfig",
    origin: dict[str, Any],
) -> None:
    """Pre-train a network into a folder, with a card for readers and one for programs."""
    import torch

    from repro.paths import ASSETS, write_text
    from repro.rows import commit, versions
    from repro.store import STATE
    from repro.training import mlm

    torch.set_num_threads(origin["threads"])
    corpus = tokens()
    how: dict[str, Any] = {"state_path": work / STATE, "description": "masked LM"}
    backbone, history, figures = mlm.pretrain(corpus, config, **how)
    note = {
        "config": asdict(config),
        "figures": figures,
        "loss_curve": mlm.loss_curve(history),
        **origin,
    }
    told = {
        "versions": versions(),
        "commit": commit(),
        "sentences": len(corpus),
        "vocabulary": corpus.tokenizer.get_vocab_size(),
        "steps": int(figures["steps"]),
        "minutes": figures["seconds"] / 60,
        "tokens_seen": figures["tokens_seen"] / 1e6,
    }
    backbone.save(target)
    write_text(target / CARD, json.dumps(note))
    card = (ASSETS / "backbone_card.md").read_text(encoding="utf-8")
    write_text(target / "README.md", card.format(**asdict(config) | figures | origin | told))
