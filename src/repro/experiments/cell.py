"""One cell: one configuration and one seed, trained once and kept in the store."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from repro import data
from repro.config import TrainConfig, digest
from repro.evaluation import sts_spearman
from repro.experiments.texts import fingerprint, training_pairs, training_sentences
from repro.models import Pooler, SentenceEncoder
from repro.models.backbone import default_device, locate
from repro.seeding import cpu_count
from repro.store import Store, sha256
from repro.training.contrastive import train_contrastive
from repro.training.loop import History
from repro.training.nli import train_nli
from repro.types import InputError

PRODUCERS = (
    "repro.training.loop",
    "repro.training.end_to_end",
    "repro.losses.distributed",
    "repro.data.batching",
    "repro.seeding",
    "repro.models.backbone",
    "repro.models.encoder",
    "repro.models.pooler",
    "repro.models.pooling",
)
"""modules whose code decides the bytes of a trained encoder, whatever the objective"""
OBJECTIVES = {
    "simcse": ("repro.training.contrastive", "repro.losses.contrastive"),
    "nli": ("repro.training.nli", "repro.losses.nli"),
}
"""and those of one objective"""


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
        """The encoder with the pooler it was trained with."""
        return SentenceEncoder.load(str(self.folder))

    @cached_property
    def pooler(self) -> Pooler:
        """The pooler alone; cheap, for grids."""
        note = json.loads((self.folder / "encoder.json").read_text(encoding="utf-8"))
        weights = load_file(self.folder / "pooler.safetensors")
        pooler = Pooler(weights["linear.weight"].shape[1], **note["pooler"])
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
    def history(self) -> History:
        """Losses and dev checks of the training."""
        return History(**json.loads((self.folder / "history.json").read_text(encoding="utf-8"))["history"])

    @cached_property
    def dev_before(self) -> float:
        """Dev Spearman of the untrained encoder readout."""
        note = json.loads((self.folder / "history.json").read_text(encoding="utf-8"))
        return float(note["dev_before"])


def cell_key(config: TrainConfig) -> str:
    """Digest of everything that decides the trained bytes: settings, code, backbone weights, data."""
    return digest(
        {
            "config": asdict(config),
            "backbone": backbone_identity(config.backbone),
            "corpus": fingerprint(config.corpus, config.source),
            "validation": fingerprint(config.validation, config.source),
        },
        code=(*PRODUCERS, *OBJECTIVES[config.objective]),
    )


def backbone_identity(name_or_path: str) -> str:
    """Digest of the weights, their configuration and tokenizer, or the hub id where they are not local."""
    place = locate(name_or_path)
    weights = sorted(Path(place).glob("*.safetensors"))
    if not weights:
        return place
    files = [*weights, Path(place) / "config.json", Path(place) / "tokenizer.json"]
    return digest({file.name: sha256(file) for file in files if file.is_file()})


@contextmanager
def threads(count: int) -> Iterator[None]:
    """So many torch threads inside the block, as many as before after it."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def train_cell(config: TrainConfig, store: Store, *, progress: bool = True) -> TrainedCell:
    """Train the configuration, or find it in the store; a killed run resumes.

    On the CPU it runs on `config.threads` threads, whatever else runs, so that its bytes do not depend on company.
    """

    @threads(config.threads)
    def make(target: Path, work: Path) -> None:
        options: dict[str, Any] = {
            "state_path": work / "state.safetensors", "save_every": config.save_every, "progress": progress,
        }  # fmt: skip
        dev = dev_scorer(config.validation, config.source)
        if config.objective == "nli":
            trained = train_nli(config, training_pairs(config), dev, **options)
        else:
            trained = train_contrastive(config, training_sentences(config, store), dev, **options)
        trained.encoder.save(target)
        if trained.head is not None:
            save_file(dict(trained.head.state_dict()), target / "head.safetensors")
        note = {"history": asdict(trained.history), "dev_before": trained.dev_before, "config": asdict(config)}
        (target / "history.json").write_text(json.dumps(note), encoding="utf-8")

    key = cell_key(config)
    made = store.get_or_make("encoders", key, make, config=asdict(config))
    return TrainedCell(config, key, made.folder, made.hit, made.seconds)


def dev_scorer(name: str, source: str) -> Callable[[SentenceEncoder, str], float]:
    """A function that scores an encoder's readout on the dev split of scored pairs."""
    dev = data.load(name, split="dev", source=source)
    if not isinstance(dev, data.ScoredPairs):
        raise InputError(f"{name!r} is not a set of scored pairs: it cannot choose checkpoints")
    texts = data.texts_of(dev)

    def score(encoder: SentenceEncoder, readout: str) -> float:
        X = encoder.encode(texts, readout=readout)
        return float(sts_spearman(X[: len(dev)], X[len(dev) :], dev.scores))

    return score


def default_workers() -> int:
    """Cells trained side by side: one per core on the CPU, one at a time on an accelerator."""
    return 1 if torch.cuda.is_available() else cpu_count()
