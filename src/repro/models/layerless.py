"""Encoders without layers: whatever turns distinct texts into rows gets the one `encode` signature from here."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from repro.models.packing import merge_equal
from repro.types import Array, InputError, one_of


class LayerlessEncoder(ABC):
    """One embedding per text and nothing in between: both readouts are the same matrix, and no layer can be read."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """Embedding size."""

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
        """Embed texts as a float32 matrix (n, dim); equal texts are embedded once.

        Args:
            texts: any sequence of strings.
            readout: `pooler` or `encoder`, which are the same here.
            layer: only None.
            normalize: divide every row by its length; a zero row stays zero.
            progress: show a progress bar.

        Raises:
            TypeError: for an item that is not a string, with its index.
            InputError: for an unknown readout, or any layer.
        """
        one_of(readout, ("encoder", "pooler"), "readout")
        if layer is not None:
            raise InputError(f"layer {layer}: {type(self).__name__} has no layers to choose from; leave layer at None")
        distinct, inverse = merge_equal(texts)
        if not distinct:
            return np.zeros((0, self.dim), np.float32)
        X = np.asarray(self.embed(distinct, progress=progress), dtype=np.float32)
        if normalize:
            X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
        return X[inverse]
