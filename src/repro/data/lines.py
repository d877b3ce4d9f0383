"""Files of lines of text, gzipped or not. Every fault names file and line."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from repro.reading import regular_file
from repro.types import InputError

LONGEST = 2**24
"""Bytes in a line, at most: far beyond any text, and small beside what a few kB of gzip can unpack
to.
"""


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, line without its end); a byte order mark at the start is not part
    of the text.
    """
    if path.exists():
        regular_file(path)
    if not path.is_file():
        raise InputError(
            f"no file {path}: check the path, or set REPRO_DATA to the folder that holds the "
            "benchmarks"
        )
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(LONGEST + 1), b""), start=1):
                if len(line) > LONGEST:
                    limit = f"{LONGEST >> 20} MiB"
                    raise InputError(
                        f"{path} line {number} is longer than {limit}: "
                        "expected one text or row a line"
                    )
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        column, byte = error.object[: error.start].count(b"\t") + 1, error.object[error.start]
        where = f"{path} line {number}, column {column}"
        raise InputError(
            f"{where}: byte 0x{byte:02x} is not UTF-8; save the file as UTF-8"
        ) from None
    except (EOFError, zlib.error) as error:
        cut = f"{path} ends in the middle of its gzip stream after line {number}"
        raise InputError(f"{cut} ({error}): copy the file again") from None
    except gzip.BadGzipFile as error:
        raise InputError(
            f"{path} is named .gz but is not gzip ({error}): compress it or drop the ending"
        ) from None


def filled_lines(path: Path) -> Iterator[str]:
    """The lines of a file of which line i is row i, one after the other; blank lines at its end are
    not rows.
    """
    blank = 0
    for number, line in read_lines(path):
        if not line.strip():
            blank = blank or number
        elif blank:
            raise InputError(
                f"{path} line {blank} is blank: expected a text or label on every line, for line i "
                "is row i; fill it, or delete such lines (`grep .`) together with what belongs to "
                "them elsewhere"
            )
        else:
            yield line
