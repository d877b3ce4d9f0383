"""Encoders with a name, and their embeddings: of the last layer, of several, or reduced; encoded
once, kept by text.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from safetensors.torch import load_file
from torch import Tensor

from repro.config import Profile
from repro.digests import digest
from repro.models.encoder import SentenceEncoder
from repro.models.layerless import Encoder, Transformed
from repro.models.packing import merge_equal
from repro.models.pooling import Pooler
from repro.models.sources import MINILM, identity, locate
from repro.models.use import USE, UniversalSentenceEncoder, use_identity
from repro.models.wordllama import WORDLLAMA, WordLlama, wordllama_identity
from repro.objectives import trained_columns
from repro.runs.cell import hidden_dim_of, train_all
from repro.runs.lines import TextTable
from repro.sets import DataSet, all_texts
from repro.store import Store
from repro.terminal import progress_bar
from repro.types import Array, InputError, check_dim, unit_rows

AnyEncoder = TypeVar("AnyEncoder", bound=Encoder)
CODE = "repro.models.layerless"  # Where the code starts that decides an encoder's output
SHARD = 20_000  # Texts of a large collection that are encoded at a time
# Published with a last module that divides every row by its length
UNIT = {MINILM, "all-mpnet-base-v2"}


def encode_once(
    encoder: Callable[[], Encoder],
    identity: str,
    texts: Iterable[str],
    store: Store,
) -> TextTable:
    """States h of all distinct texts, from the store if they are there; if not, `encoder` is called
    to make one.

    `identity` is a digest of everything that decides the encoder's output.
    """
    distinct, _ = merge_equal(list(texts))
    X = store.remember(
        "embeddings",
        {"encoder": identity, "texts": digest(distinct)},
        lambda: encoder().encode(distinct, readout="encoder", progress=True),
        code=CODE,
    )
    return TextTable({text: i for i, text in enumerate(distinct)}, X)


def encode_in_shards(
    encoder: Callable[[], Encoder],
    identity: str,
    texts: Sequence[str],
    store: Store,
) -> list[Array]:
    """States h of a large collection as matrices of `SHARD` rows, in the order of the texts.

    Every shard is an entry of the store by itself, so that a run that is killed goes on where it
    was, and lies on disk, from where it is read as it is used.

    Args:
        encoder: makes the encoder; called at the first shard that the store does not hold.
        identity: a digest of everything that decides the encoder's output.
        texts: distinct texts.
        store: where shards are kept.
    """
    made_once = cache(encoder)

    def states_of(shard: list[str]) -> Array:
        return made_once().encode(shard, readout="encoder")

    shards: list[Array] = []
    for start in progress_bar(range(0, len(texts), SHARD), desc="shards", show=True):
        shard = list(texts[start : start + SHARD])
        rows = store.remember(
            "embeddings",
            {"encoder": identity, "texts": digest(shard)},
            partial(states_of, shard),
            code=CODE,
            mapped=True,
        )
        shards.append(rows)
    return shards


def encode_tasks(
    encoder: Callable[[], Encoder],
    identity: str,
    tasks: Mapping[str, Mapping[str, DataSet]],
    store: Store,
) -> TextTable:
    """`encode_once` for all texts of some tasks, an entry of the store for each: pages that share a
    task share it.
    """
    index: dict[str, int] = {}
    parts: list[Array] = []
    made_once = cache(encoder)
    for splits in tasks.values():
        table = encode_once(made_once, identity, all_texts(list(splits.values())), store)
        new = [text for text in table.index if text not in index]
        index |= dict(zip(new, range(len(index), len(index) + len(new)), strict=True))
        parts.append(table[new])
    return TextTable(index, np.concatenate(parts))


@dataclass(frozen=True)
class LayerTable:
    """Pooled states X of distinct texts at all layers (L, n, D), looked up by layer, size and
    text.
    """

    index: Mapping[str, int]
    X: Array

    @property
    def layers(self) -> tuple[int, ...]:
        """All that there are, from embedding output, 0, on."""
        return tuple(range(len(self.X)))

    @property
    def hidden_dim(self) -> int:
        """Full size D."""
        return int(self.X.shape[2])

    def at(self, layer: int, dim: int | None = None) -> TextTable:
        """The first `dim` columns of one layer's states, by default all of them."""
        if not 0 <= layer < len(self.X):
            raise InputError(
                f"layer {layer} of an encoder of {len(self.X) - 1}: expected 0 to {len(self.X) - 1}"
            )
        size = check_dim(self.hidden_dim if dim is None else dim, limit=self.hidden_dim)
        return TextTable(self.index, self.X[layer][:, :size])


def encode_layers_once(
    encoder: Callable[[], SentenceEncoder],
    identity: str,
    texts: Iterable[str],
    store: Store,
) -> LayerTable:
    """Pooled states of all distinct texts at all layers, from embedding output (0) on, as in
    `encode_once`.

    They come from one pass or from the store; what is returned lies on disk and is read as it is
    used.
    """
    distinct, _ = merge_equal(list(texts))
    X = store.remember(
        "layers",
        {"encoder": identity, "texts": digest(distinct), "layers": "all"},
        lambda: encoder().encode_layers(distinct, progress=True),
        code=CODE,
        mapped=True,
    )
    return LayerTable({text: i for i, text in enumerate(distinct)}, X)


def states_identity(backbone: str, pooling: str | None) -> str:
    """Digest of what decides a network's pooled states; one for all pages, so that they share what
    was encoded.
    """
    return digest({"backbone": identity(backbone), "pooling": pooling})


def as_it_is(backbone: str, load: Callable[[], AnyEncoder]) -> Callable[[], AnyEncoder]:
    """What loads a network as it is now, when it is digested: one whose files have changed until it
    is loaded is refused, since its states would be kept under the digest of others.
    """
    return partial(_loaded, backbone, identity(backbone), load)


def _loaded(backbone: str, expected: str, load: Callable[[], AnyEncoder]) -> AnyEncoder:
    encoder = load()
    if identity(backbone) != expected:
        raise InputError(f"{backbone} was written to while it was read: begin again")
    return encoder


def as_published(backbone: str, table: TextTable) -> TextTable:
    """Pooled states of a network, with rows of unit length where its authors publish such."""
    return table.map(unit_rows) if last_part(backbone) in UNIT else table


# The profile's backbone after unsupervised SimCSE at full size, as Wang et al.'s pages train it
TRAINED = "trained"
AT_HAND = (MINILM, TRAINED)
PAPER = (
    "sentence-transformers/all-mpnet-base-v2",
    "sentence-transformers/stsb-bert-base",
    "sentence-transformers/msmarco-roberta-base-v2",
    "sentence-transformers/paraphrase-xlm-r-multilingual-v1",
    "sentence-transformers/stsb-bert-large",
    "princeton-nlp/sup-simcse-roberta-large",
)
"""Zhang et al.'s six, in the order of their Section 4."""
POOLING = {MINILM: "mean"}  # Where the published pooling is not recorded beside the weights
SUP_SIMCSE = "sup-simcse-"
"""How the names begin of networks that their own package reads behind a trained layer."""
SIMCSE_TOKENS = 128  # Of a text that this package reads


@dataclass(frozen=True)
class Named:
    """An encoder with a name, not loaded until something has to be encoded."""

    name: str  # What rows and figures call it
    make: Callable[[], Encoder]
    identity: str  # Digest of everything that decides its output, length of rows aside
    backbone: str = ""  # Network it stands on; empty where that is its name, or where it has none
    # Texts or pairs that this book trained or fitted it on; None where it came as it is
    n_train: int | None = None
    read: Mapping[str, Any] = field(default_factory=dict)
    """Columns that say how it was trained and is read, as far as that is known."""

    def embed(self, parts: Mapping[str, Mapping[str, DataSet]], store: Store) -> TextTable:
        """Embeddings of all texts of some tasks, as its authors publish them; an entry of the store
        for each task.
        """
        table = encode_tasks(self.make, self.identity, parts, store)
        return as_published(self.backbone or self.name, table)


def choose_encoders(names: Sequence[str] | None, profile: Profile) -> tuple[str, ...]:
    """The names given, or the profile's: the paper's six on the hub, else those at hand."""
    if names is None:
        return PAPER if profile.name == "paper" else AT_HAND
    if not names or len(set(names)) != len(names):
        known = f"such as {', '.join(AT_HAND)}, a folder or a hub id"
        raise InputError(
            f"encoders is {list(names)}: expected one or more different names, {known}"
        )
    return tuple(names)


def load_encoders(names: Sequence[str], profile: Profile, store: Store) -> Iterator[Named]:
    """Each encoder by its name: `trained`, which is trained first if need be, a shipped one, a
    folder or a hub id.
    """
    for name in names:
        if name == TRAINED:
            config = replace(profile.train, dim=hidden_dim_of(profile.train))
            (cell,) = train_all([config], store)
            made, read = partial(getattr, cell, "encoder"), trained_columns(config)
            yield Named(f"{config.backbone} + SimCSE", made, cell.key, read=read)
        elif name == USE:
            yield Named(USE, UniversalSentenceEncoder, use_identity())
        elif name == WORDLLAMA:
            yield Named(WORDLLAMA, WordLlama, wordllama_identity())
        elif last_part(name).startswith(SUP_SIMCSE):
            reading = f"pooler_output of {SIMCSE_TOKENS} tokens, length 1"
            load = as_it_is(name, partial(sup_simcse, name))
            yield Named(last_part(name), load, states_identity(name, reading))
        else:
            pooling = POOLING.get(name)  # Loading reads a causal decoder by its last token
            load = as_it_is(
                name,
                partial(SentenceEncoder.load, name, pooling=pooling, prompt=""),
            )
            identity_of = states_identity(name, pooling)
            read = {"pooling": pooling} if pooling else {}
            yield Named(last_part(name), load, identity_of, read=read)


def last_part(name: str) -> str:
    """What rows call a network: the last part of its hub id or folder."""
    return name.rstrip("/").split("/")[-1]


def sup_simcse(name: str) -> Encoder:
    """A supervised SimCSE as its package reads it: its layer over the [CLS] state, rows of length 1
    (audit Z8).

    Raises:
        InputError: if the folder has no such layer.
    """
    encoder = SentenceEncoder.load(name, pooling="cls", prompt="")
    encoder.backbone.max_length = min(encoder.backbone.max_length, SIMCSE_TOKENS)
    layer = Pooler(encoder.hidden_dim, encoder.hidden_dim, normalize=True)
    layer.linear.load_state_dict(_pooler_weights(locate(name)))
    return Transformed(encoder, layer.to(encoder.backbone.device).eval().project, layer.dim)


def _pooler_weights(folder: Path) -> dict[str, Tensor]:
    """Weight and bias of the layer over [CLS] that a network in Hugging Face layout brings."""
    weights: dict[str, Tensor] = {}
    for path in sorted(folder.glob("model*.safetensors")):
        for name, tensor in load_file(path).items():
            if name.endswith(("pooler.dense.weight", "pooler.dense.bias")):
                weights[name.rpartition(".")[2]] = tensor.float()
    if len(weights) < 2:
        raise InputError(f"{folder} has no layer over [CLS] (pooler.dense): is the folder whole?")
    return weights


def dims_of(hidden_dim: int, dims: Sequence[float]) -> list[int]:
    """Sizes below the full one, ascending; numbers below 1 are shares of it."""
    for d in dims:
        if d > 1 and d != int(d):
            raise InputError(f"dims holds {d}: expected whole numbers, or shares below 1")
    sizes = [round(d * hidden_dim) if d < 1 else int(d) for d in dims]
    found = sorted({d for d in sizes if 1 <= d < hidden_dim})
    if not found:
        raise InputError(
            f"dims are {list(dims)}: expected sizes from 1 to {hidden_dim - 1}, or shares of "
            f"{hidden_dim}"
        )
    return found
