"""Encoders without layers: static tables, counted words, published systems, and a map of what
another encoder gives.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from repro.models.encoder import READOUTS, SentenceEncoder
from repro.models.packing import merge_equal
from repro.types import Array, InputError, one_of, unit_rows


class LayerlessEncoder(ABC):
    """One embedding per text and nothing in between: both readouts are the same matrix, and no
    layer can be read.
    """

    dim: int  # Numbers in an embedding

    @abstractmethod
    def embed(self, texts: list[str], *, progress: bool = False) -> Array:
        """Embeddings (n, dim) of distinct texts, at least one."""

    def encode(
        self,
        texts: Sequence[str],
        *,
        readout: str = "pooler",
        layer: int | None = None,
        normalize: bool = False,
        progress: bool = False,
    ) -> Array:
        """Embed texts as a float32 matrix (n, dim), as `SentenceEncoder.encode` does; any layer is
        refused.
        """
        one_of(readout, READOUTS, "readout")
        if layer is not None:
            raise InputError(
                f"layer {layer}: {type(self).__name__} has no layers to choose from; leave layer "
                "at None"
            )
        distinct, inverse = merge_equal(texts)
        if not distinct:
            return np.zeros((0, self.dim), np.float32)
        X = np.asarray(self.embed(distinct, progress=progress), dtype=np.float32)
        return (unit_rows(X) if normalize else X)[inverse]


Encoder: TypeAlias = SentenceEncoder | LayerlessEncoder
"""Anything that turns texts into embeddings: a trained network or a static baseline."""


@dataclass(eq=False)
class Transformed(LayerlessEncoder):
    """A map (whitening, a flow, dense layers) of the `encoder` readout of another encoder."""

    base: Encoder
    transform: Callable[[Array], Array]
    dim: int

    def embed(self, texts: list[str], *, progress: bool = False) -> Array:
        """Mapped embeddings (n, dim) of distinct texts."""
        return self.transform(self.base.encode(texts, readout="encoder", progress=progress))


def load_modules(folder: Path) -> Encoder:
    """The encoder that a folder's `modules.json` describes, both readouts its last part's; else
    mean pooling.
    """
    pooling = None if (folder / "modules.json").is_file() else "mean"
    encoder = SentenceEncoder.load(str(folder), pooling=pooling, prompt="")
    return (
        encoder
        if encoder.pooler is None
        else Transformed(encoder, encoder.pooler.project, encoder.dim)
    )
