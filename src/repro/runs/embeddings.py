"""Encode once: the states of texts under one encoder, of the last layer or of several, kept in the store by text."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from repro.digests import digest
from repro.evaluation.protocol import all_texts
from repro.models.encoder import SentenceEncoder, merge_equal
from repro.models.pretrained import MINILM, identity
from repro.sets import DataSet
from repro.store import Store
from repro.types import Array, Encoder, InputError, check_dim, unit_rows

CODE = "repro.models.encoder"
"""where the code starts that decides an encoder's output"""
UNIT = {MINILM, "all-mpnet-base-v2"}
"""published with a last module that divides every row by its length"""


@dataclass(frozen=True)
class TextTable:
    """Embeddings X of distinct texts, looked up by text; a sweep over dims or tasks adds no forward pass."""

    index: Mapping[str, int]
    X: Array

    def __getitem__(self, texts: Sequence[str]) -> Array:
        """Rows of the given texts (n, dim), in their order."""
        try:
            return self.X[[self.index[text] for text in texts]]
        except KeyError as error:
            raise InputError(f"{error.args[0]!r} was not encoded with the others") from error

    def map(self, project: Callable[[Array], Array]) -> "TextTable":
        """The same texts under a projection of their embeddings, such as a pooler."""
        return TextTable(self.index, project(self.X))


def encode_once(
    encoder: Callable[[], Encoder], identity: str, texts: Iterable[str], store: Store, *, progress: bool = False
) -> TextTable:
    """States h of all distinct texts, from the store if they are there; if not, `encoder` is called to make one.

    `identity` is a digest of everything that decides the encoder's output.
    """
    distinct, _ = merge_equal(list(texts))
    X = store.remember(
        "embeddings",
        {"encoder": identity, "texts": digest(distinct)},
        lambda: encoder().encode(distinct, readout="encoder", progress=progress),
        code=CODE,
    )
    return TextTable({text: i for i, text in enumerate(distinct)}, X)


def encode_tasks(
    encoder: Callable[[], Encoder],
    identity: str,
    tasks: Mapping[str, Mapping[str, DataSet]],
    store: Store,
    *,
    progress: bool = False,
) -> TextTable:
    """`encode_once` for all texts of some tasks, an entry of the store for each: pages that share a task share it."""
    index: dict[str, int] = {}
    parts: list[Array] = []
    made_once = cache(encoder)
    for splits in tasks.values():
        table = encode_once(made_once, identity, all_texts(list(splits.values())), store, progress=progress)
        new = [text for text in table.index if text not in index]
        index |= dict(zip(new, range(len(index), len(index) + len(new)), strict=True))
        parts.append(table[new])
    return TextTable(index, np.concatenate(parts))


@dataclass(frozen=True)
class LayerTable:
    """Pooled states X of distinct texts at several layers (len(layers), n, D), looked up by layer, size and text."""

    index: Mapping[str, int]
    X: Array
    layers: tuple[int, ...]

    @property
    def hidden_dim(self) -> int:
        """Full size D."""
        return int(self.X.shape[2])

    def at(self, layer: int, dim: int | None = None) -> TextTable:
        """The first `dim` columns of one layer's states, by default all of them."""
        if layer not in self.layers:
            raise InputError(f"layer {layer} was not read: the table holds {', '.join(map(str, self.layers))}")
        size = check_dim(self.hidden_dim if dim is None else dim, limit=self.hidden_dim)
        return TextTable(self.index, self.X[self.layers.index(layer)][:, :size])


def encode_layers_once(
    encoder: Callable[[], SentenceEncoder],
    identity: str,
    texts: Iterable[str],
    store: Store,
    *,
    layers: Sequence[int] | None = None,
    progress: bool = False,
) -> LayerTable:
    """Pooled states of all distinct texts at some layers, ascending from 0 (embedding output), or at all of them.

    They come from one pass or from the store; some layers are read out of an entry that holds them all, where there is
    one. What is returned lies on disk and is read as it is used. The rest is as in `encode_once`.
    """
    wanted = None if layers is None else [int(layer) for layer in layers]
    if wanted is not None and (not wanted or wanted != sorted(set(wanted)) or wanted[0] < 0):
        raise InputError(f"layers is {wanted}: expected one or more different ones, ascending from 0")
    distinct, _ = merge_equal(list(texts))
    index = {text: i for i, text in enumerate(distinct)}
    named = {"encoder": identity, "texts": digest(distinct)}
    everything = digest({**named, "layers": "all"}, code=(CODE,))
    read = None if wanted is None or store.folder("layers", everything).exists() else wanted
    X = store.remember(
        "layers",
        {**named, "layers": read or "all"},
        lambda: encoder().encode_layers(distinct, read, progress=progress),
        code=CODE,
        mapped=True,
    )
    if read is not None or wanted is None:
        return LayerTable(index, X, tuple(range(len(X)) if read is None else read))
    if wanted[-1] >= len(X):
        raise InputError(f"layer {wanted[-1]} of an encoder of {len(X) - 1}: expected 0 to {len(X) - 1}")
    return LayerTable(index, X[wanted], tuple(wanted))


def states_identity(backbone: str, pooling: str | None) -> str:
    """Digest of what decides a network's pooled states; one for all pages, so that they share what was encoded."""
    return digest({"backbone": identity(backbone), "pooling": pooling})


def as_published(backbone: str, table: TextTable) -> TextTable:
    """Pooled states of a network, with rows of unit length where its authors publish such."""
    return table.map(unit_rows) if backbone.rstrip("/").split("/")[-1] in UNIT else table
