"""Word vectors from text files: GloVe's plain form, and word2vec's and fastText's (.vec), which start with a header.

One word and its numbers per line, separated by single spaces; plain or gzipped.
"""

import logging
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from repro.data.lines import read_lines
from repro.sets import WordVectors
from repro.types import InputError, check_dim

log = logging.getLogger(__name__)


def read_vectors(path: Path, *, name: str = "vectors", limit: int | None = None) -> WordVectors:
    """Read the vectors of a file; a word that comes twice keeps its first vector, with a warning.

    Args:
        path: the file; its first line may be `words dim`, as word2vec and fastText write it.
        name: the name the set gets.
        limit: read so many lines; files are sorted by frequency.

    Raises:
        InputError: if a line has another number of numbers than the first or something that is no finite number,
            or the file ends before the number of words that its header states; file and line are named.
    """
    lines = read_lines(path)
    first = next(lines, None)
    if first is None:
        raise InputError(f"{path} is empty: expected a word and its numbers on every line")
    promised, dim = _header(first[1])
    if promised is None:
        lines = chain([first], lines)
    last = None if limit is None else check_dim(limit, what="limit") + (promised is not None)
    rows: dict[str, np.ndarray] = {}
    read = repeated = 0
    for number, word, vector in _entries(path, lines, dim):
        if last is not None and number > last:
            break
        read += 1
        repeated += word in rows
        rows.setdefault(word, vector)
    if promised is not None and last is None and read < promised:
        raise InputError(f"{path} ends after {read} of the {promised} words its first line states: copy it again")
    if not rows:
        raise InputError(f"{path} has a header and no words: expected a word and its numbers on every line")
    if repeated:
        log.warning("%s: %d words come more than once, the first vector is kept", path, repeated)
    return WordVectors(name, "local", tuple(rows), np.stack(list(rows.values())))


def _header(line: str) -> tuple[int | None, int | None]:
    """Numbers of words and of dimensions, both None where the first line is a word's already."""
    parts = line.split()
    if len(parts) == 2 and all(part.isdigit() for part in parts):
        return int(parts[0]), int(parts[1])
    return None, None


def _entries(path: Path, lines: Iterator[tuple[int, str]], dim: int | None) -> Iterator[tuple[int, str, np.ndarray]]:
    """Line number, word and vector; the first line settles the size if nothing else has."""
    for number, line in lines:
        word, *values = line.rstrip(" ").split(" ")
        dim = dim or max(1, len(values))
        while len(values) > dim and not _is_number(values[0]):  # glove.840B has words such as `. . .`
            word = f"{word} {values.pop(0)}"
        if len(values) != dim:
            raise InputError(f"{path} line {number}: {len(values)} numbers for {word!r}, expected {dim}")
        try:
            vector = np.array(values, dtype=np.float32)
        except ValueError as error:
            raise InputError(f"{path} line {number}: {error}; expected a word and its numbers") from None
        if not np.isfinite(vector).all():
            raise InputError(f"{path} line {number}: {word!r} has a number that is not finite; repair or drop the line")
        yield number, word, vector


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
