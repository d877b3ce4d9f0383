"""fastText's binary models: a word's vector is the mean of its own and its subwords', so every word has one.

The file is read in place (the published ones are several gigabytes): only the rows that are asked for are touched.

References:
    Bojanowski et al. (2017), Enriching word vectors with subword information; format of fastText 0.9.2.
"""

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from repro.types import Array, InputError

MAGIC, VERSION = 793712314, 12
END_OF_SENTENCE = "</s>"


class FastText:
    """Vectors by word from a .bin file; words outside the vocabulary are built from their character n-grams."""

    def __init__(self, path: Path) -> None:
        """Read the dictionary and map the matrix.

        Raises:
            InputError: if the file is missing, not fastText's, cut short, or quantised.
        """
        if not path.is_file():
            raise InputError(f"no file {path}: expected a fastText model such as crawl-300d-2M-subword.bin")
        with path.open("rb") as file:
            try:
                dim, self.buckets, self.shortest, self.longest = _read_settings(file, path)
                self.rows = _read_words(file, path)
                quantised, rows, columns = struct.unpack("<?qq", _take(file, 17))
            except EOFError:
                raise InputError(f"{path} is cut short: copy the file again") from None
            if quantised:
                raise InputError(f"{path} is quantised (.ftz): use the .bin it was made from, or its .vec")
            start = file.tell()
        if columns != dim or rows != len(self.rows) + self.buckets:
            raise InputError(
                f"{path}: the matrix is {rows} × {columns}, expected {len(self.rows)} words + {self.buckets} buckets "
                f"by {dim} dimensions; the file is damaged or pruned"
            )
        if path.stat().st_size < start + 4 * rows * columns:
            raise InputError(f"{path} is cut short: copy the file again")
        self.matrix = np.memmap(path, np.dtype("<f4"), mode="r", offset=start, shape=(rows, columns))

    @property
    def dim(self) -> int:
        """Size of a word's vector."""
        return int(self.matrix.shape[1])

    def __contains__(self, word: object) -> bool:
        return word in self.rows

    def lookup(self, words: Sequence[str]) -> tuple[Array, NDArray[np.bool_]]:
        """Vectors (n, dim), and which words have at least one part that is known (n,)."""
        parts = [self.parts(word) for word in words]
        vectors = np.zeros((len(words), self.dim), np.float32)
        for i, rows in enumerate(parts):
            if rows:
                vectors[i] = self.matrix[rows].mean(axis=0)
        return vectors, np.array([bool(rows) for rows in parts], dtype=bool)

    def parts(self, word: str) -> list[int]:
        """Rows of the matrix that a word is the mean of: itself, if it is in the vocabulary, and its n-grams."""
        rows = [self.rows[word]] if word in self.rows else []
        if word == END_OF_SENTENCE or not self.buckets:
            return rows
        grams = character_grams(f"<{word}>", self.shortest, self.longest)
        return rows + [len(self.rows) + gram_hash(gram) % self.buckets for gram in grams]


def character_grams(word: str, shortest: int, longest: int) -> Iterator[str]:
    """The n-grams of a word in its brackets, a lone bracket excepted."""
    for start in range(len(word)):
        for size in range(max(1, shortest), longest + 1):
            end = start + size
            if end > len(word):
                break
            if size > 1 or (start > 0 and end < len(word)):
                yield word[start:end]


def gram_hash(gram: str) -> int:
    """32-bit FNV-1a over UTF-8 bytes; bytes are signed, as fastText's first version had them by accident."""
    value = 2166136261
    for byte in gram.encode():
        value ^= byte if byte < 128 else byte | 0xFFFFFF00
        value = value * 16777619 & 0xFFFFFFFF
    return value


def _read_settings(file: BinaryIO, path: Path) -> tuple[int, int, int, int]:
    magic, version = struct.unpack("<ii", _take(file, 8))
    if (magic, version) != (MAGIC, VERSION):
        raise InputError(f"{path} starts with {magic}, {version}: expected fastText's {MAGIC}, {VERSION}; a .vec?")
    settings = struct.unpack("<12id", _take(file, 56))
    return settings[0], settings[8], settings[9], settings[10]


def _read_words(file: BinaryIO, path: Path) -> dict[str, int]:
    size, _, labels, _, pruned = struct.unpack("<iiiqq", _take(file, 28))
    if labels or pruned > 0:
        raise InputError(f"{path} is a {'classifier' if labels else 'pruned model'}: expected plain word vectors")
    rows: dict[str, int] = {}
    for row in range(size):
        word = bytearray()
        while (byte := _take(file, 1)) != b"\0":
            word += byte
        _take(file, 9)  # count and kind
        rows[word.decode("utf-8", errors="replace")] = row
    if len(rows) != size:
        raise InputError(f"{path}: {size - len(rows)} words come twice; the file is damaged")
    return rows


def _take(file: BinaryIO, count: int) -> bytes:
    data = file.read(count)
    if len(data) < count:
        raise EOFError
    return data
