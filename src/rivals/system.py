"""What a system is, and what it is made from: word vectors, training pairs, sentences, and
published weights.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from repro import data
from repro.data.samples import fingerprint
from repro.data.vectors import read_vectors
from repro.models.packing import merge_equal
from repro.models.sources import hub_folder
from repro.runs.encoders import Named
from repro.seeding import make_rng
from repro.types import InputError
from rivals.skipgram import FastText
from rivals.static import Vocabulary, WordTable

ALL = 10_000_000  # More pairs and texts than any source has


@dataclass(frozen=True)
class SystemConfig:
    """What the systems are made from."""

    source: str  # Local, hub or microworld: where training pairs and word vectors come from
    seed: int = 0
    # Network of every system that needs one and does not bring its own
    backbone: str = "repro-tiny"
    sentences: int | None = None
    """Entailment pairs that InferSent and SBERT train on; texts that SIF, flow and whitening are
    fitted on; None: 4,800, an eighth of it where they are generated, all under the profile `paper`.
    """
    profile: str = "embedded"  # Size of what is trained; only `paper` may download weights
    vectors: str | None = None
    """File of word vectors instead of the dataset `glove`: GloVe's form, word2vec text, .vec or
    fastText's .bin.
    """
    fasttext: str | None = None  # FastText's .vec or .bin
    weights: str | None = None
    """Folder that holds published models under the last part of their hub ids; None looks into the
    hub's cache.
    """

    @property
    def size(self) -> int:
        """The pairs or texts that are drawn, at most."""
        usual = ALL if self.profile == "paper" else 4_800
        return self.sentences or (600 if self.source == "microworld" else usual)

    @property
    def vectors_name(self) -> str:
        """What tables call the word vectors."""
        if self.vectors is not None:
            return Path(self.vectors).name
        return (
            "GloVe 6B 50d" if self.source == "local" else "word vectors counted from generated text"
        )


@dataclass(frozen=True)
class System:
    """One line of the tables."""

    name: str
    row: str  # Label printed in the paper's Table 1; empty if it is ours alone
    line: str  # What our tables call it, once `load_system` has filled it in
    hub: str  # Id of the published weights that it needs; empty if it needs none
    how: str  # Loaders that make it, outermost first, such as `flow published mean`


@dataclass(frozen=True)
class Loaded(Named):
    """A system ready to encode, by its name in the menu; its backbone is empty for word vectors."""

    row: str = ""  # Label printed in the paper's Table 1; empty if it is ours alone
    line: str = ""  # What our tables call it


class Missing(InputError):
    """The weights or vectors of a system are not at hand; the message says what is missing and how
    to get it.
    """


def words_of(config: SystemConfig) -> tuple[Callable[[], WordTable], str]:
    """How to read the word vectors of a configuration, and their digest."""
    if config.vectors is not None:
        path = Path(os.path.expanduser(config.vectors))
        if not path.is_file():
            raise Missing(
                f"no word vectors {path}: give a file in GloVe's form, word2vec text, .vec or "
                "fastText's .bin"
            )
        read = (
            partial(FastText, path) if path.suffix == ".bin" else lambda: _table(read_vectors(path))
        )
        return read, fingerprint(str(path), "local")
    try:
        return lambda: _table(data.load("glove", source=config.source)), fingerprint(
            "glove",
            config.source,
        )
    except InputError as error:
        raise Missing(
            f"{error}; GloVe is at https://nlp.stanford.edu/data/glove.6B.zip: unpack it and give "
            "one of its files as `vectors`, or use source='microworld'"
        ) from error


def _table(words: data.DataSet) -> WordTable:
    assert isinstance(words, data.WordVectors)
    return Vocabulary(words.words, words.vectors)


def fit_texts(config: SystemConfig) -> list[str]:
    """The distinct NLI sentences that SIF, flow and whitening learn from: at most `sentences`,
    drawn by the seed.
    """
    distinct, _ = merge_equal(
        data.texts_of(_pairs(config.source, None, fingerprint("nli", config.source)))
    )
    if len(distinct) <= config.size:
        return distinct
    rows = make_rng(config.seed, "fit texts").permutation(len(distinct))[: config.size]
    return [distinct[row] for row in sorted(rows)]


def training_pairs(config: SystemConfig) -> data.LabelledPairs:
    """Entailment pairs, drawn at random."""
    return _pairs(config.source, config.size, fingerprint("nli", config.source))


@lru_cache(maxsize=4)
def _pairs(source: str, limit: int | None, content: str) -> data.LabelledPairs:
    # A page loads a dozen systems; `content` makes an edited file another set
    pairs = data.load("nli", source=source, limit=limit)
    assert isinstance(pairs, data.LabelledPairs)
    return pairs


def published_folder(system: System, config: SystemConfig) -> Path:
    """Folder of a system's published weights; `Missing` if they are not at hand."""
    short = system.hub.rpartition("/")[2]
    try:
        if config.weights is None:
            return hub_folder(system.hub, download=config.profile == "paper")
        folder = Path(os.path.expanduser(config.weights)) / short
        if not (folder / "config.json").is_file():
            raise InputError(f"no model in {folder}")
        return folder
    except InputError as error:
        raise Missing(
            f"{system.name} needs published weights: {error}. With a network, run `hf download "
            f"{system.hub}` (or use profile='paper'); or copy the model to FOLDER/{short} and give "
            "FOLDER as `weights`"
        ) from error
