"""Encoders by name: the profile's own after SimCSE, shipped ones, folders, hub ids; those of Zhang et al. (2024)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from repro.config import Profile, reads_forwards
from repro.models import SentenceEncoder
from repro.models.pretrained import MINILM
from repro.runs.embeddings import TextTable, encode_tasks
from repro.runs.pool import train_all
from repro.runs.published import as_published, states_identity
from repro.runs.sweep import hidden_dim_of
from repro.sets import DataSet
from repro.store import Store
from repro.types import Encoder, InputError

TRAINED = "trained"
"""the profile's backbone after unsupervised SimCSE at full size, as Wang et al.'s pages train it"""
AT_HAND = (MINILM, TRAINED)
PAPER = (
    "sentence-transformers/all-mpnet-base-v2",
    "sentence-transformers/stsb-bert-base",
    "sentence-transformers/msmarco-roberta-base-v2",
    "sentence-transformers/paraphrase-xlm-r-multilingual-v1",
    "sentence-transformers/stsb-bert-large",
    "princeton-nlp/sup-simcse-roberta-large",
)
"""their six, in the order of their Section 4; SimCSE's [CLS] state is read without the layer that its package adds"""
POOLING = {MINILM: "mean"}
"""where the published pooling is not recorded beside the weights"""


@dataclass(frozen=True)
class NamedEncoder:
    """An encoder whose embeddings are reduced."""

    name: str
    """what rows and figures call it"""
    encoder: Callable[[], Encoder]
    """makes the encoder; called only if something has to be encoded"""
    identity: str
    """digest of everything that decides its output, length of rows aside"""

    @property
    def note(self) -> str:
        """What a reader should know of scores on STS-B; empty for most."""
        return "fine-tuned on STS-B's training pairs" if self.name.startswith("stsb-") else ""

    def embed(self, parts: Mapping[str, Mapping[str, DataSet]], store: Store, *, progress: bool = True) -> TextTable:
        """Embeddings of all texts of some parts, an entry of the store for each."""
        table = encode_tasks(self.encoder, self.identity, parts, store, progress=progress)
        return as_published(self.name, table)


def choose_encoders(names: Sequence[str] | None, profile: Profile) -> tuple[str, ...]:
    """The names given, or the profile's: the paper's six on the hub, else those at hand."""
    if names is None:
        return PAPER if profile.name == "paper" else AT_HAND
    if not names or len(set(names)) != len(names):
        raise InputError(
            f"encoders is {list(names)}: expected one or more different names, such as {', '.join(AT_HAND)}, a folder "
            "or a hub id"
        )
    return tuple(names)


def load_encoders(names: Sequence[str], profile: Profile, store: Store) -> Iterator[NamedEncoder]:
    """Each encoder by its name; the trained one is trained first where the store does not hold it yet.

    Args:
        names: `trained`, a shipped name, a local folder or a hub id.
        profile: whose backbone, data and schedule `trained` takes.
        store: where trained encoders are kept.

    Raises:
        InputError: for a name that stands for nothing.
    """
    for name in names:
        if name == TRAINED:
            config = replace(profile.train, dim=hidden_dim_of(profile.train))
            (cell,) = train_all([config], store)
            yield NamedEncoder(f"{config.backbone} + SimCSE", partial(getattr, cell, "encoder"), cell.key)
            continue
        short, pooling = (
            name.rstrip("/").split("/")[-1],
            POOLING.get(name) or ("last" if reads_forwards(name) else None),
        )
        load = partial(SentenceEncoder.load, name, pooling=pooling)
        yield NamedEncoder(short, load, states_identity(name, pooling))
