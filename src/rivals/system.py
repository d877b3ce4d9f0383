"""What a system is: its line in the tables, what it is made from, and the encoder that comes out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from repro.types import Encoder, InputError

Named: TypeAlias = tuple[Callable[[], Encoder], str]
"""how to make an encoder, and the digest of all that decides its output"""


@dataclass(frozen=True)
class SystemConfig:
    """What the systems are made from."""

    source: str
    """local, hub or microworld: where training pairs and word vectors come from"""
    seed: int = 0
    backbone: str = "repro-tiny"
    """network of every system that needs one and does not bring its own"""
    sentences: int = 4_800
    """entailment pairs that InferSent and SBERT train on; texts that SIF, flow and whitening are fitted on"""
    profile: str = "embedded"
    """size of what is trained; only `paper` may download weights"""
    vectors: str | None = None
    """file of word vectors instead of the dataset `glove`: GloVe's form, word2vec text, .vec or fastText's .bin"""
    fasttext: str | None = None
    """fastText's .vec or .bin"""
    weights: str | None = None
    """folder that holds published models under the last part of their hub ids; None looks into the hub's cache"""
    fit_on: tuple[str, ...] = ("nli",)
    """datasets whose sentences SIF, flow and whitening are fitted on; an evaluated set makes them transductive"""


@dataclass(frozen=True)
class System:
    """One line of the tables."""

    name: str
    row: str
    """label printed in the paper's tables; empty if it is ours alone"""
    line: str
    """what our tables call it; `Loaded.system` has it filled in"""
    hub: str = ""
    """hub id of the published weights that it needs"""

    @property
    def rows(self) -> tuple[str, ...]:
        """The label as each table spells it: `BERT-CLS-TOKEN` in Table 1 is `BERT CLS-TOKEN` in Tables 2 and 3."""
        return (self.row,) if "-CLS-" not in self.row else (self.row, self.row.replace("-CLS-", " CLS-"))


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
        """What our tables call it."""
        return self.system.line

    @property
    def named(self) -> Named:
        """The part that other systems are built on."""
        return self.encoder, self.identity


class Missing(InputError):
    """The weights or vectors of a system are not at hand; the message says what is missing and how to get it."""
