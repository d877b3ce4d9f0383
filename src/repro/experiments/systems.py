"""Every system in the tables of SBERT-LP (2021) behind one `encode`: by name, from the weights at hand.

The systems of this book stand in for the paper's at the size of the machine; what each one is, its `line` says.
The paper's own are asked for by hub id. Nothing is ever put in another's place unasked: where weights are not at
hand, `load_system` raises `Missing`, and its message says how to get them.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from repro import config as repro_config
from repro import data
from repro.config import digest
from repro.experiments.cell import backbone_identity, train_cell
from repro.experiments.texts import fingerprint
from repro.models import SentenceEncoder
from repro.models.backbone import MINILM, locate
from repro.models.static import StaticEncoder, Vocabulary
from repro.store import Store
from repro.types import Encoder, InputError, one_of


@dataclass(frozen=True)
class SystemConfig:
    """What the systems are made from."""

    source: str
    """local, hub or microworld: where training pairs and word vectors come from"""
    seed: int = 0
    backbone: str = "repro-tiny"
    """network of every system that needs one and does not bring its own"""
    sentences: int = 6_400
    """entailment pairs that InferSent and SBERT train on; texts that flow and whitening are fitted on"""
    profile: str = "embedded"
    """schedule of SBERT's training; `paper` may download weights"""
    vectors: str | None = None
    """word vectors of the user's own instead of the dataset `glove`: GloVe, word2vec text or .vec"""
    fasttext: str | None = None
    """fastText's .vec or .bin"""


@dataclass(frozen=True)
class System:
    """One line of the tables."""

    name: str
    row: str
    """label printed in the paper's Table 1 (Table 2 where the former lacks it); empty if it is ours alone"""
    line: str
    """what our tables call it, with {backbone} and {n} for what it was made from"""


@dataclass(frozen=True)
class Loaded:
    """A system ready to encode."""

    system: System
    encoder: Callable[[], Encoder]
    """makes the encoder; called only if something has to be encoded"""
    identity: str
    """digest of everything that decides its output: weights, settings, code, texts it was fitted on"""
    backbone: str
    """network it stands on; empty for word vectors"""
    n_train: int | None
    """pairs or texts that this book trained or fitted it on; None where it came as it is"""
    note: str
    """what a reader of a table should know about it"""

    @property
    def line(self) -> str:
        """What our tables call it, filled in."""
        return self.system.line.format(backbone=self.backbone, n="" if self.n_train is None else f"{self.n_train:,}")


class Missing(InputError):
    """The weights or vectors of a system are not at hand; the message says what is missing and how to get it."""


def load_system(name: str, config: SystemConfig, store: Store, *, progress: bool = True) -> Loaded:
    """Load a system, training or fitting it first where the store does not hold it yet.

    Args:
        name: one of `SYSTEMS`.
        config: what it is made from.
        store: where trained and fitted systems are kept.
        progress: show progress bars.

    Raises:
        Missing: if its weights or vectors are not at hand.
        InputError: for an unknown name or unsuitable data.
    """
    system = SYSTEMS[one_of(name, list(SYSTEMS), "system")]
    return _LOADERS[name](system, config, store, progress)


def _glove(system: System, config: SystemConfig, store: Store, progress: bool) -> Loaded:
    def encoder() -> Encoder:
        vectors = data.load("glove", source=config.source)
        assert isinstance(vectors, data.WordVectors)
        return StaticEncoder(Vocabulary(vectors.words, vectors.vectors))

    identity = digest({"vectors": fingerprint("glove", config.source)}, code=("repro.models.static",))
    return Loaded(system, encoder, identity, "", None, "")


def _states(
    system: System, config: SystemConfig, store: Store, progress: bool, *, pooling: str, backbone: str | None = None
) -> Loaded:
    name = backbone or config.backbone
    identity = digest({"backbone": backbone_identity(name), "pooling": pooling})
    return Loaded(system, partial(SentenceEncoder.load, name, pooling=pooling), identity, name, None, "")


def _sbert(system: System, config: SystemConfig, store: Store, progress: bool) -> Loaded:
    pairs = data.load("nli", split="train", source=config.source, limit=config.sentences)
    settings = repro_config.profile(
        config.profile, source=config.source, backbone=config.backbone, objective="nli", pooling="mean",
        dim=_hidden_dim(config.backbone), sentences=len(pairs), seed=config.seed,
    ).train  # fmt: skip
    cell = train_cell(settings, store, progress=progress)
    return Loaded(system, lambda: cell.encoder, cell.key, config.backbone, len(pairs), "mean-pooled state h")


def _hidden_dim(backbone: str) -> int:
    note = Path(locate(backbone)) / "config.json"
    if note.is_file():
        return int(json.loads(note.read_text(encoding="utf-8"))["hidden_size"])
    return SentenceEncoder.load(backbone).hidden_dim


# fmt: off
SYSTEMS: dict[str, System] = {system.name: system for system in (
    System("glove", "Avg. GloVe embeddings", "GloVe, mean of words"),
    System("bert_avg", "Avg. BERT embeddings", "{backbone}, mean of states"),
    System("bert_cls", "BERT-CLS-TOKEN", "{backbone}, [CLS] state"),
    System("sbert", "SBERTbase", "SBERT: {backbone} on {n} NLI pairs"),
    System("minilm", "SBERTlarge", "all-MiniLM-L6-v2, stand-in for a large SBERT"),
)}
"""the menu, in the paper's order"""
_LOADERS: dict[str, Callable[[System, SystemConfig, Store, bool], Loaded]] = {
    "glove": _glove,
    "bert_avg": partial(_states, pooling="mean"),
    "bert_cls": partial(_states, pooling="cls"),
    "sbert": _sbert,
    "minilm": partial(_states, pooling="mean", backbone=MINILM),
}
# fmt: on
