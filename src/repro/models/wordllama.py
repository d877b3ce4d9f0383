"""WordLlama: 256 numbers a token, from the input table of a language model, and their mean.

Trained so that the first columns are embeddings by themselves (Matryoshka). Only the weights and
the tokenizer of the package are read: its import would set up logging for the whole program.

References:
    Miller (2024), WordLlama, https://github.com/dleemiller/WordLlama.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from scipy.sparse import csr_array

from repro.digests import digest
from repro.manifests import sha256
from repro.models.layerless import LayerlessEncoder
from repro.terminal import progress_bar
from repro.types import Array, InputError, installing

WORDLLAMA = "wordllama-256"
WEIGHTS = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
FILES = {
    WEIGHTS: "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
    TOKENIZER: "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
}
"""What is read of the package, and the sha256 of each."""
BATCH = 1_000  # Texts whose token vectors are in memory at once.


def package_files() -> dict[str, Path]:
    """Where the files of `FILES` are, once the package is there and they are the known ones."""
    spec = find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise InputError(f"WordLlama is not installed: {installing('classic')} brings it")
    folder = Path(spec.origin).parent
    for name, known in FILES.items():
        if not (folder / name).is_file() or sha256(folder / name) != known:
            raise InputError(
                f"{folder / name} is not the file of version 0.4.0.post1: install wordllama again"
            )
    return {name: folder / name for name in FILES}


def wordllama_identity() -> str:
    """A digest of the weights, the tokenizer and the code here, which decide every row."""
    package_files()
    return digest({"files": FILES}, code=("repro.models.wordllama",))


class WordLlama(LayerlessEncoder):
    """Means of token vectors, of any length; no company changes a row."""

    dim = 256

    def __init__(self) -> None:
        from tokenizers import Tokenizer  # Of an extra

        paths = package_files()
        self.vectors = load_file(paths[WEIGHTS])["embedding.weight"].astype(np.float32)
        self.tokenizer = Tokenizer.from_file(str(paths[TOKENIZER]))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()

    def embed(self, texts: list[str], *, progress: bool = False) -> Array:
        """Embeddings (n, 256) of distinct texts.

        Raises:
            InputError: for a text without a token.
        """
        starts = progress_bar(range(0, len(texts), BATCH), desc="encoding", show=progress)
        return np.concatenate(list(self._means(texts[start : start + BATCH] for start in starts)))

    def _means(self, batches: Iterator[list[str]]) -> Iterator[Array]:
        """Mean token vectors of every batch of texts."""
        for batch in batches:
            read = self.tokenizer.encode_batch_fast(batch, add_special_tokens=False)
            ids = [encoding.ids for encoding in read]
            lengths = np.array([len(row) for row in ids])
            if not lengths.all():
                raise InputError(
                    f"{batch[int(np.argmin(lengths))]!r} has no token for {WORDLLAMA}: "
                    "nothing to pool, drop it"
                )
            tokens = np.concatenate(ids)
            ends = np.r_[0, np.cumsum(lengths)]
            # A row of this matrix counts the tokens of a text, so that the product sums them
            # without a copy of every token's vector.
            counts = csr_array(
                (np.ones(len(tokens), np.float32), tokens, ends),
                shape=(len(batch), len(self.vectors)),
            )
            yield counts @ self.vectors / lengths[:, None].astype(np.float32)
