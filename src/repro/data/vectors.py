"""Word vectors as text: GloVe's plain form, and word2vec's and fastText's, which start with a
header (.vec).
"""

import logging
import re
from itertools import chain
from pathlib import Path

import numpy as np

from repro.data.lines import read_lines
from repro.sets import WordVectors
from repro.types import InputError

log = logging.getLogger(__name__)
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?(nan|inf)", re.IGNORECASE)


def read_vectors(path: Path, *, name: str = "vectors") -> WordVectors:
    """Read a word and its numbers from each line; a word that comes twice keeps its first vector,
    with a warning.

    Raises:
        InputError: for a line with another number of numbers or none that is finite, and for a file
            that is cut off.
    """
    form = "expected a word and its numbers on every line"
    lines = read_lines(path)
    first = next(lines, None)
    if first is None:
        raise InputError(f"{path} is empty: {form}")
    header = re.fullmatch(r"\s*(\d+)\s+(\d+)\s*", first[1])
    promised, dim = map(int, header.groups()) if header else (0, 0)
    rows: dict[str, np.ndarray] = {}
    read = 0
    for number, line in lines if header else chain([first], lines):
        word, vector = _entry(f"{path} line {number}", line, dim)
        dim = len(vector)  # The first line settles the size if nothing else has
        read += 1
        rows.setdefault(word, vector)
    if read < promised:
        raise InputError(
            f"{path} ends after {read} of the {promised} words its first line states: copy it again"
        )
    if not rows:
        raise InputError(f"{path} has a header and no words: {form}")
    if read > len(rows):
        log.warning(
            "%s: %d words come more than once, the first vector is kept",
            path,
            read - len(rows),
        )
    return WordVectors(name, "local", tuple(rows), np.stack(list(rows.values())))


def _entry(where: str, line: str, dim: int) -> tuple[str, np.ndarray]:
    """A word and its vector; a size of 0 is not known yet."""
    word, *values = line.rstrip(" ").split(" ")
    dim = dim or max(1, len(values))
    # glove.840B has words such as `. . .`
    while len(values) > dim and not NUMBER.fullmatch(values[0]):
        word = f"{word} {values.pop(0)}"
    if len(values) != dim:
        raise InputError(f"{where}: {len(values)} numbers for {word!r}, expected {dim}")
    try:
        vector = np.array(values, dtype=np.float32)
    except ValueError as error:
        raise InputError(f"{where}: {error}; expected a word and its numbers") from None
    if not np.isfinite(vector).all():
        raise InputError(
            f"{where}: {word!r} has a number that is not finite; repair or drop the line"
        )
    return word, vector
