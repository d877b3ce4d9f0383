"""An encoder followed by a map of its embeddings: whitening, a flow, a fixed dense layer."""

from collections.abc import Callable

from repro.models.layerless import LayerlessEncoder
from repro.types import Array, Encoder


class Transformed(LayerlessEncoder):
    """`transform` applied to the `encoder` readout of another encoder."""

    def __init__(self, base: Encoder, transform: Callable[[Array], Array], dim: int) -> None:
        self.base = base
        self.transform = transform
        self._dim = dim

    @property
    def dim(self) -> int:
        """Embedding size after the map."""
        return self._dim

    def embed(self, texts: list[str], *, progress: bool = False) -> Array:
        """Mapped embeddings (n, dim) of distinct texts."""
        return self.transform(self.base.encode(texts, readout="encoder", progress=progress))
