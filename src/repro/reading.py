"""Files that are read, JSON and matrices, and what is said of those that cannot be."""

import errno
import json
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from repro.types import Array, InputError, check_embeddings

DEEPEST = 100
"""Levels of lists and objects in JSON that is read; no file of ours or of a network has ten."""


def parse_json(text: str | bytes, where: str, way_out: str, **options: Any) -> Any:
    """What JSON says, by `options` of `json.loads`; an InputError tells `where` it stands and the
    `way_out` if it cannot be read.

    Refused are bytes that are no UTF-8, text that is no JSON, a number of thousands of digits, and
    values in more than `DEEPEST` levels, on which whatever walks through them runs out of stack.
    """
    try:
        value = json.loads(text if isinstance(text, str) else text.decode("utf-8"), **options)
        _check_depth(value)
    except RecursionError:
        raise InputError(f"{where} is not valid JSON (nested too deeply): {way_out}") from None
    except ValueError as error:
        raise InputError(f"{where} is not valid JSON ({error}): {way_out}") from None
    return value


def fields_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The fields of an object in JSON, for the `object_pairs_hook` of `json.loads`; ValueError for
    a name that occurs twice.
    """
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field {repeated!r} occurs twice")
    return fields


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEEPEST + 1):
        below: list[Any] = []
        for part in level:
            if isinstance(part, dict):
                below += part.values()
            elif isinstance(part, list):
                below += part
        if not below:
            return
        level = below
    raise RecursionError


def regular_file(path: Path) -> Path:
    """The path of a file to be read; refused is a pipe or a device, for which a reader may wait for
    ever.

    Raises:
        OSError: where nothing is. A folder is refused by whoever opens it.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise InputError(
            f"{path} is a pipe or a device: expected a regular file, so copy it to one"
        )
    return path


def read_json(path: Path, way_out: str = "write or copy it again") -> Any:
    """What a JSON file says, by `parse_json`; OSError for a file that cannot be opened."""
    return parse_json(regular_file(path).read_bytes(), str(path), way_out)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of any library tells that memory ran out, and nothing of what was read."""
    if isinstance(error, MemoryError):  # Numpy's and pyarrow's are of its kind
        return True
    if isinstance(error, OSError):  # Of a file that is mapped
        return error.errno == errno.ENOMEM
    # torch has a type for accelerators alone; of the CPU it tells in words
    told = r"can't allocate memory|not enough memory|out of memory"
    return isinstance(error, RuntimeError) and re.search(told, str(error)) is not None


@contextmanager
def memory_explained(what: str) -> Iterator[None]:
    """Turn errors of memory that runs out while something is read into an InputError naming it."""
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        reason = str(error) or type(error).__name__
        way_out = "end other programs, give fewer rows, or use a larger machine"
        raise InputError(f"memory ran out while {what} was read ({reason}): {way_out}") from error


def read_matrix(path: Path) -> Array:
    """The finite matrix (n, dim) in a `.npy` file, as float32 or float64; nothing is unpickled."""
    if not path.is_file():
        raise InputError(f"no file {path}: expected a .npy matrix, such as `repro encode` writes")
    with memory_explained(str(path)):
        X = check_embeddings(_numbers(path), str(path))
        if X.dtype in (np.float32, np.float64):
            return X
        return X.astype(np.float32 if X.dtype == np.float16 else np.float64)


def _numbers(path: Path) -> Array:
    """The numbers in a `.npy` file, whatever their shape."""
    try:
        # The file is mapped, and none of it read: an error of whatever type is of the file, for its
        # header is parsed as Python. What follows needs memory.
        np.lib.format.open_memmap(path, mode="r")
    except OSError:
        raise
    except Exception as error:
        if "object" in str(error).lower():
            raise InputError(
                f"{path} holds Python objects: save plain numbers, np.save(path, X)"
            ) from error
        raise InputError(
            f"{path} is not a whole .npy file ({error}): np.save(path, X) writes one"
        ) from error
    with path.open("rb") as file:
        X = np.lib.format.read_array(file, allow_pickle=False)
    if X.dtype.kind not in "fiu":
        raise InputError(f"{path} holds {X.dtype} values: expected numbers, such as float32")
    return X
