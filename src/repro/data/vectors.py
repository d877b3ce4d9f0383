"""Word vectors from text files: GloVe's plain form, and word2vec's and fastText's (.vec), which start with a header.

One word and its numbers per line, separated by single spaces; plain or gzipped.
"""

import logging
import re
from itertools import chain
from pathlib import Path

import numpy as np

from repro.data.tables import read_lines
from repro.sets import WordVectors
from repro.types import InputError

log = logging.getLogger(__name__)
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?(nan|inf)", re.IGNORECASE)


def read_vectors(path: Path, *, name: str = "vectors") -> WordVectors:
    """Read the vectors of a file; a word that comes twice keeps its first vector, with a warning.

    The first line may be `words dim`, as word2vec and fastText write it.

    Raises:
        InputError: if a line has another number of numbers than the first or something that is no finite number,
            or the file ends before the number of words that its header states; file and line are named.
    """
    lines = read_lines(path)
    first = next(lines, None)
    if first is None:
        raise InputError(f"{path} is empty: expected a word and its numbers on every line")
    header = [int(part) for part in first[1].split() if part.isdecimal()]
    promised, dim = header if len(header) == 2 == len(first[1].split()) else (None, 0)
    if promised is None:
        lines = chain([first], lines)
    rows: dict[str, np.ndarray] = {}
    read = 0
    for number, line in lines:
        word, vector = _entry(f"{path} line {number}", line, dim)
        dim = len(vector)  # the first line settles the size if nothing else has
        read += 1
        rows.setdefault(word, vector)
    if promised is not None and read < promised:
        raise InputError(f"{path} ends after {read} of the {promised} words its first line states: copy it again")
    if not rows:
        raise InputError(f"{path} has a header and no words: expected a word and its numbers on every line")
    if read > len(rows):
        log.warning("%s: %d words come more than once, the first vector is kept", path, read - len(rows))
    return WordVectors(name, "local", tuple(rows), np.stack(list(rows.values())))


def _entry(where: str, line: str, dim: int) -> tuple[str, np.ndarray]:
    """A word and its vector; a size of 0 is not known yet."""
    word, *values = line.rstrip(" ").split(" ")
    dim = dim or max(1, len(values))
    while len(values) > dim and not NUMBER.fullmatch(values[0]):  # glove.840B has words such as `. . .`
        word = f"{word} {values.pop(0)}"
    if len(values) != dim:
        raise InputError(f"{where}: {len(values)} numbers for {word!r}, expected {dim}")
    try:
        vector = np.array(values, dtype=np.float32)
    except ValueError as error:
        raise InputError(f"{where}: {error}; expected a word and its numbers") from None
    if not np.isfinite(vector).all():
        raise InputError(f"{where}: {word!r} has a number that is not finite; repair or drop the line")
    return word, vector
