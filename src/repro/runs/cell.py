"""One cell: one configuration and one seed, trained once and kept in the store; many at once in a pool of processes.

Small networks train faster as two processes of one thread than as one process of two: operations of microseconds do
not pay for waking a second core. The bytes are the same either way. What a cell learns from is drawn once, too.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from repro import data, paths
from repro.data.sampling import Triples, like_or_unlike, triples
from repro.digests import digest, module_of
from repro.evaluation import sts_spearman
from repro.models import Pooler, SentenceEncoder
from repro.models.backbone import load_backbone
from repro.models.pretrained import default_device
from repro.models.pretrained import identity as backbone_identity
from repro.objectives import SCALING, TrainConfig, only_what_is_read
from repro.rows import make_rows
from repro.seeding import cpu_count, done_in_processes, threads
from repro.store import Store, sha256
from repro.terminal import progress_bar
from repro.training.end_to_end import DevScore, Objective, Trained, title, train_encoder
from repro.training.loop import History
from repro.training.objectives import angle, contrastive, ese, matryoshka, softmax_over_pairs
from repro.types import InputError

OBJECTIVES: dict[str, Objective] = {
    "simcse": contrastive,
    "nli": softmax_over_pairs,
    "angle": angle,
    "matryoshka": matryoshka,
    "ese": ese,
}


def training_code(objective: Objective) -> tuple[str, str]:
    """Where the code starts that decides the bytes of an encoder trained with an objective."""
    return module_of(train_encoder), module_of(objective)


def hidden_dim_of(config: TrainConfig) -> int:
    """Hidden size D of a configuration's backbone."""
    return load_backbone(config.backbone).hidden_dim


@dataclass(frozen=True)
class TrainedCell:
    """A trained encoder in the store."""

    config: TrainConfig
    key: str
    folder: Path
    hit: bool
    """found, not trained, by this call"""
    seconds: float
    """what training took when it was done"""

    @cached_property
    def encoder(self) -> SentenceEncoder:
        """The encoder with the pooler it was trained with, if its objective has one."""
        return SentenceEncoder.load(str(self.folder))

    @cached_property
    def pooler(self) -> Pooler:
        """The pooler alone; cheap, for grids."""
        settings = json.loads((self.folder / "encoder.json").read_text(encoding="utf-8"))["pooler"]
        if settings is None:
            raise InputError(f"the {self.config.objective} objective trains no pooler: read prefixes of the states")
        weights = load_file(self.folder / "pooler.safetensors")
        pooler = Pooler(weights["linear.weight"].shape[1], **settings)
        pooler.load_state_dict(weights)
        return pooler.to(default_device()).eval()

    @cached_property
    def head(self) -> nn.Linear:
        """The classifier that the `nli` objective trained along."""
        weights = load_file(self.folder / "head.safetensors")
        outputs, inputs = weights["weight"].shape
        head = nn.Linear(inputs, outputs)
        head.load_state_dict(weights)
        return head.to(default_device())

    @cached_property
    def _note(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "history.json").read_text(encoding="utf-8")))

    @property
    def history(self) -> History:
        """Losses and dev checks of the training."""
        return History(**self._note["history"])

    @property
    def dev_before(self) -> float:
        """Dev Spearman of the untrained encoder readout."""
        return float(self._note["dev_before"])

    @property
    def log_weights(self) -> list[float] | None:
        """Learned weights of ESE's shallow layers, as s in e^(−s), first layer first; None where they are fixed."""
        return self._note.get("log_weights")


def cell_key(config: TrainConfig, *, other: Any = None) -> str:
    """Digest of everything that decides the trained bytes: settings, code, backbone weights, data."""
    named = {
        "config": asdict(only_what_is_read(config)),
        "backbone": backbone_identity(config.backbone),
        "corpus": fingerprint(config.corpus, config.source),
        "validation": fingerprint(config.validation, config.source),
    } | ({} if other is None else {"other": other})
    return digest(named, code=training_code(OBJECTIVES[config.objective]))


def train_cell(
    config: TrainConfig,
    store: Store,
    *,
    progress: bool = True,
    examples: Any = None,
    dev: DevScore | None = None,
    start: Callable[[], SentenceEncoder] | None = None,
    other: Any = None,
) -> TrainedCell:
    """Train the configuration, or find it in the store; a killed run resumes.

    On the CPU it runs on `config.threads` threads, whatever else runs, so that its bytes do not depend on company.

    Args:
        config: what to train and how.
        store: where it is kept.
        progress: whether bars are shown.
        examples: other ones than the configuration draws.
        dev: another score than on the dev split that the configuration names.
        start: makes the encoder that training starts from, where it is not the backbone with a fresh pooler.
        other: names whatever of these is given, so that it has a cell of its own.
    """

    @threads(config.threads)
    def make(target: Path, work: Path) -> None:
        trained = train_encoder(
            config,
            OBJECTIVES[config.objective],
            training_material(config, store) if examples is None else examples,
            dev or dev_scorer(config.validation, config.source),
            encoder=start and start(),
            state_path=work / "state.safetensors",
            save_every=config.save_every,
            progress=progress,
        )
        _write_trained(trained, config, target)

    key = cell_key(config, other=other)
    noted = asdict(config) | ({} if other is None else {"other": other})
    made = store.get_or_make("encoders", key, make, config=noted)
    return TrainedCell(config, key, made.folder, made.hit, made.seconds)


def _write_trained(trained: Trained, config: TrainConfig, folder: Path) -> None:
    """What a training left, as `TrainedCell` reads it: the encoder, its head if it has one, and its history."""
    trained.encoder.save(folder)
    if trained.head is not None:
        save_file(dict(trained.head.state_dict()), folder / "head.safetensors")
    note = {
        "history": asdict(trained.history),
        "dev_before": trained.dev_before,
        "log_weights": None if trained.log_weights is None else trained.log_weights.tolist(),
        "config": asdict(config),
    }
    (folder / "history.json").write_text(json.dumps(note), encoding="utf-8")


def train_all(
    configs: Sequence[TrainConfig], store: Store, *, workers: int | None = None, progress: bool = True
) -> list[TrainedCell]:
    """Train every configuration that the store does not hold yet; return all, in order.

    By default one process a core on the CPU, and one at a time on an accelerator. Finished cells stay if the run is
    killed; the next call goes on from there.
    """
    missing = [c for c in dict.fromkeys(configs) if not store.folder("encoders", cell_key(c)).exists()]
    count = min(workers or (1 if torch.cuda.is_available() else cpu_count()), len(missing))
    if count > 1:
        # what takes longest starts first: ESE, which trains every layer, and wide poolers
        queue = sorted(missing, key=lambda c: (c.objective != "ese", -c.dim))
        with progress_bar(total=len(queue), desc="training cells", show=progress) as bar:
            for config in done_in_processes(partial(_train, home=store.home), queue, count):
                bar.set_postfix_str(f"{title(config)}, seed {config.seed}")
                bar.update()
    cells = [train_cell(config, store, progress=progress) for config in configs]
    return [replace(cell, hit=cell.hit and cell.config not in missing) for cell in cells]


def _train(config: TrainConfig, home: Path) -> str:
    return train_cell(config, Store(home), progress=False).key


def dev_scorer(name: str, source: str) -> DevScore:
    """A function that scores an encoder's readout on the dev split of scored pairs."""
    dev = data.load(name, split="dev", source=source)
    if not isinstance(dev, data.ScoredPairs):
        raise InputError(f"{name!r} is not a set of scored pairs: it cannot choose checkpoints")
    return scorer_on(dev)


def scorer_on(dev: data.ScoredPairs) -> DevScore:
    """The same for pairs at hand."""
    texts = data.texts_of(dev)

    def score(encoder: SentenceEncoder, readout: str) -> float:
        X = encoder.encode(texts, readout=readout)
        return float(sts_spearman(X[: len(dev)], X[len(dev) :], dev.scores))

    return score


def recipe_rows(base: TrainConfig, settings: Sequence[Mapping[str, Any]], store: Store) -> pd.DataFrame:
    """Dev Spearman before and after a training for every setting, which replaces fields of `base`.

    These are the measurements behind `config.RECIPES`.
    """
    rows: list[dict[str, Any]] = []
    for cell in train_all([replace(base, **setting) for setting in settings], store):
        c, history = cell.config, cell.history
        tried = ("learning_rate", "batch_size", "dropout", "pooling", "dim")
        shared = {
            "setting": ", ".join(f"{name}={getattr(c, name)}" for name in tried),
            **{"method": c.pooling, "readout": c.checkpoint_by, "dim": c.dim, "backbone": c.backbone, "seed": c.seed},
            **{"data_source": c.source, "n_train": c.sentences, "seconds": cell.seconds, **c.columns},
        }
        values = {
            "spearman_before": cell.dev_before,
            "spearman": history.best_score,
            "best_step": history.best_step,
            "last_loss": sum(history.losses[-10:]) / len(history.losses[-10:]),
        }
        rows += [{**shared, "metric": metric, "value": value} for metric, value in values.items()]
    named = {"experiment": "tiny_recipe", "paper_table": "appendix", "profile": "embedded"}
    return make_rows(rows, **named, dataset=base.validation)


def fingerprint(name: str, source: str) -> str:
    """What identifies a dataset's content: its file's checksum, its hub revision, or the generator's code."""
    if source == "microworld":
        folder = paths.PACKAGE.parent / "microworld"
        files = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        return digest({path.relative_to(folder).as_posix(): _checksum(path) for path in files})
    if source == "hub":
        from repro.data.hub import hub_source, hub_version  # brings pyarrow

        hub = hub_source(data.get_spec(name))
        return digest([name, *([mirror.id, hub_version(mirror)] for mirror in (hub, *hub.elsewhere.values()))])
    return digest([_checksum(path) for path in local_files(name)])


def _checksum(path: Path) -> str:
    state = path.stat()
    return _checksum_as_of(path.resolve(), state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=256)
def _checksum_as_of(path: Path, modified: int, size: int) -> str:
    # a kernel may outlive an edit of the file it read, so the name alone would not do
    return sha256(path)


def local_files(name: str) -> list[Path]:
    """The local files that a name, or a path of the user's own, is read from."""
    if name not in data.DATASETS:
        return [Path(name).expanduser()]
    folder = paths.data_folder()
    if folder is None:
        raise InputError(f"{name} from local files: set REPRO_DATA to the folder that holds them")
    spec = data.get_spec(name)
    present = sorted(folder / file for file in {spec.file, spec.raw_file} if file and (folder / file).is_file())
    if not present:
        raise InputError(f"{name} has no local file {spec.file} below {folder}")
    return present


def training_sentences(config: TrainConfig, store: Store) -> tuple[str, ...]:
    """The training sample of a configuration: drawn once, then read from the store."""

    def draw() -> tuple[str, ...]:
        corpus = data.load(config.corpus, source=config.source, limit=config.sentences)
        if not isinstance(corpus, data.Corpus):
            raise InputError(f"{config.corpus!r} is not a corpus of plain sentences")
        return corpus.texts

    wanted = {"corpus": config.corpus, "sentences": config.sentences, "source": config.source}
    content = fingerprint(config.corpus, config.source)
    return tuple(store.remember("sentences", {**wanted, "content": content}, draw, code="repro.data.sampling"))


def training_pairs(config: TrainConfig) -> data.LabelledPairs:
    """The training pairs of a configuration of the `nli` objective."""
    return _labelled_pairs(config, limit=config.sentences)


def training_examples(config: TrainConfig) -> data.LabelledPairs | Triples:
    """The training pairs or triples of AnglE's objectives: `config.sentences` of them, neutral pairs left out."""
    make = triples if config.examples == "triples" else like_or_unlike
    return make(_labelled_pairs(config), config.sentences)


def training_material(config: TrainConfig, store: Store) -> tuple[str, ...] | data.LabelledPairs | Triples:
    """What the objective of a configuration learns from."""
    if config.objective in SCALING:
        return training_examples(config)
    return training_pairs(config) if config.objective == "nli" else training_sentences(config, store)


def _labelled_pairs(config: TrainConfig, limit: int | None = None) -> data.LabelledPairs:
    pairs = data.load(config.corpus, split="train", source=config.source, limit=limit)
    if not isinstance(pairs, data.LabelledPairs):
        raise InputError(
            f"{config.corpus!r} is not a set of labelled pairs: the {config.objective} objective needs one, such as "
            "'nli'"
        )
    return pairs
