"""Vectors as people keep them, read a part at a time: a matrix in a file, or in a folder of shards.

`.npy`, `.npz`, `.safetensors` (which knows bfloat16), parquet (a list or a tensor in each row),
`.fvecs` and `.bvecs` (each row behind its length), `.fbin`, `.u8bin`, `.i8bin` and `.ibin` (rows
behind their number and length), JSON lines, gzipped too. `.npz` and what is gzipped alone are
unpacked whole. Nothing that may hold code, such as a pickle, is read.
"""

import logging
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dimadvise.arrays import IDS, open_bin, open_npy, open_npz, open_safetensors, open_vecs
from dimadvise.columns import naming
from dimadvise.files import (
    MAPS,
    Name,
    NoMatrixError,
    Vectors,
    in_memory,
    memory_explained,
)
from dimadvise.jsonlines import JsonLines
from dimadvise.parquet import Parquet
from dimadvise.shards import Shards
from repro.types import InputError

__all__ = ["Shards", "Vectors", "files_of", "in_memory", "open_vectors"]
log = logging.getLogger(__name__)


def open_vectors(path: Path, column: str = "") -> Vectors:
    """The vectors of a file, or of the files of one form in a folder, in the order of their names,
    2 before 10.

    Of a folder, files that hold something else beside the vectors, such as ids, are left aside.

    Args:
        path: file or folder.
        column: of parquet and JSON lines the field, of `.npz` and `.safetensors` the array that
            holds the vectors; by default the only one there is.

    Raises:
        InputError: for a form that is not read, and for a file in which there is no matrix of
            numbers.
    """
    path = Path(path)
    if path.is_dir():
        return _folder(path, column)
    if not path.is_file():
        raise InputError(
            f"no file {path}: expected vectors as {', '.join(FORMS)}, or a folder of such files"
        )
    form = form_of(path)
    if form not in FORMS:
        raise InputError(
            f"{path}: vectors are read from {', '.join(FORMS)}, not from "
            f"{form or 'such a file'!r}{_way_out(path)}"
        )
    with memory_explained(f"read {path}"):
        return FORMS[form](path, column)


def refuse_unread_column(column: str, *paths: Path) -> None:
    """Refuse the name of a column where none of the files has columns or arrays by name."""
    forms = {form_of(file) for path in paths for file in files_of(path)}
    if column and not forms.intersection(NAMED):
        listed = ", ".join(map(str, paths))
        raise InputError(f"--column {column}: {listed} has no columns by name; leave it out")


def files_of(path: Path) -> list[Path]:
    """The files that vectors are read from: the file itself, or those of a folder in their
    order.

    Raises:
        InputError: where something by the name of a shard is no file.
    """
    if not path.is_dir():
        return [path]
    vectors = []
    for file in path.iterdir():
        if file.name.startswith(".") or file.name in MAPS or form_of(file) not in FORMS:
            continue
        if not file.is_file():
            reason = "a link that leads nowhere" if file.is_symlink() else "no regular file"
            raise InputError(
                f"{file} has the name of a shard and is {reason}: mend it, or move it away: "
                "without it rows may be missing"
            )
        vectors.append(file)
    return sorted(vectors, key=lambda path: (_numbered(path), path.name))


def form_of(path: Path) -> str:
    """The ending by which a form is known, in small letters; of a gzipped file with that before."""
    endings = [ending.lower() for ending in path.suffixes[-2:]]
    return "".join(endings) if endings[-1:] == [".gz"] else "".join(endings[-1:])


def _folder(path: Path, column: str) -> Vectors:
    """The shards in a folder."""
    shards: list[tuple[Path, Vectors]] = []
    others: list[tuple[Path, NoMatrixError]] = []
    for file in files_of(path):
        try:
            vectors = open_vectors(file, column)
            if _names_rows(file) and 1 in vectors.shape:  # Ids as a column, or as a row
                raise NoMatrixError(
                    f"{file} has the name of ids and one of each: expected vectors beside it"
                )
            shards.append((file, vectors))
        except NoMatrixError as without:
            others.append((file, without))
    if others and not shards:
        raise others[0][1]
    forms = sorted({form_of(file) for file, _ in shards})
    if len(forms) != 1:
        contents = f"files of the forms {', '.join(forms)}" if forms else "no file of vectors"
        hints = [] if forms else [_way_out(file) for file in sorted(path.iterdir())]
        way_out = f"expected shards of one form, of {', '.join(FORMS)}"
        raise InputError(f"{path} holds {contents}: {way_out}{next(filter(None, hints), '')}")
    shard_names = {_without_digits(file) for file, _ in shards}
    for file, error in others:
        # Named as a shard, it is one, and something is wrong.
        if _without_digits(file) in shard_names:
            raise error
    if others:
        names = ", ".join(file.name for file, _ in others[:3])
        files = "1 file" if len(others) == 1 else f"{len(others)} files"
        log.warning("%s: %s without a matrix left aside: %s", path, files, names)
    _refuse_mixed_numbers(shards)
    _say_if_incomplete(path, [file for file, _ in shards])
    joined = Shards([vectors for _, vectors in shards], str(path))
    joined.files = [file.name for file, _ in shards]
    id_files = [file for file, _ in others if _names_rows(file)]
    if ids := _ids_beside(id_files, joined.shape[0]):
        joined.named, joined.id_column = ids, "id"
    if id_files and not joined.id_column:
        joined.unread_ids = joined.unread_ids or id_files[0].name
    return joined


def _refuse_mixed_numbers(shards: Sequence[tuple[Path, Vectors]]) -> None:
    """Refuse whole numbers beside others: they are codes, in units of their own.

    Floats of any precision are one kind, and so is what is written out, which may be either.
    """
    kinds: dict[str, tuple[Path, str]] = {}
    for file, vectors in shards:
        is_code = vectors.kind.startswith(("int", "uint"))
        kinds.setdefault(vectors.kind if is_code else "floats", (file, vectors.kind))
    if len(kinds) > 1:
        (path, first), (other, second) = list(kinds.values())[:2]
        raise InputError(
            f"{path} holds {first}, {other} {second}: as one matrix they would be of two scales; "
            "write all shards with one kind of number, or keep them apart"
        )


def _say_if_incomplete(path: Path, files: Sequence[Path]) -> None:
    """Warn where the name of a shard counts more than there are, such as part-00000-of-00003."""
    by_total: dict[int, set[int]] = {}
    for file in files:
        if counted := re.search(r"(\d+)-of-(\d+)", file.name):
            by_total.setdefault(int(counted[2]), set()).add(int(counted[1]))
    for total, numbers in by_total.items():
        if len(numbers) < total:
            log.warning(
                "%s holds %d of the %d shards that its names count", path, len(numbers), total
            )


def _names_rows(file: Path) -> bool:
    """Whether a file is named for ids, such as ids.npy, part-0.ids.npy and ids_1.parquet."""
    last_word = file.stem.rpartition(".")[2]
    return bool(naming([last_word.rstrip("0123456789").rstrip("-_")]))


def _ids_beside(files: Sequence[Path], rows: int) -> Sequence[Name]:
    """The ids in an array of so many, or in a column or row of them; none where no file holds
    them.
    """
    for file in files:
        if file.suffix.lower() != ".npy":
            continue
        with suppress(ValueError):  # What is no plain array names nothing.
            ids = np.load(file, allow_pickle=False)
            if ids.shape in ((rows,), (rows, 1), (1, rows)) and ids.dtype.kind in IDS:
                return ids.ravel().tolist()
    return ()


def _way_out(path: Path) -> str:
    """What to do with a file of a form that is known but not read, to end a message with."""
    form = form_of(path)
    remedy = WAYS_OUT.get(form) or WAYS_OUT.get(path.suffix.lower(), "")
    return f"; {remedy.format(path=path)}" if remedy else ""


FORMS: dict[str, Callable[[Path, str], Vectors]] = {
    ".npy": open_npy,
    ".npz": open_npz,
    ".safetensors": open_safetensors,
    ".parquet": Parquet,
    ".fvecs": partial(open_vecs, "<f4"),
    ".bvecs": partial(open_vecs, "u1"),
    ".fbin": partial(open_bin, "<f4"),
    ".u8bin": partial(open_bin, "u1"),
    ".i8bin": partial(open_bin, "i1"),
    ".ibin": partial(open_bin, "<i4"),
    ".jsonl": JsonLines,
    ".ndjson": JsonLines,
    ".jsonl.gz": JsonLines,
    ".ndjson.gz": JsonLines,
}
"""What is read, by its ending in small letters."""

NAMED = (".npz", ".safetensors", ".parquet", ".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
"""Forms of which a column or an array can be chosen by its name."""

_HDF5 = "save each matrix by itself, np.save('train.npy', h5py.File('{path}')['train'][:])"
_TEXT = (
    "make a matrix of its numbers, np.save('X.npy', np.loadtxt('{path}')), by usecols without words"
)
_TABLE = (
    "make a matrix of its numbers, np.save('X.npy', pd.read_csv('{path}')[columns].to_numpy()), or "
    "where one column spells lists write it as parquet, "
    "pd.read_csv('{path}').to_parquet('X.parquet')"
)
_PICKLE = "it may hold code that is run: where it was made, save plain numbers, np.save('X.npy', X)"
_PACKED = "unpack it first"
_ARROW = "write it as parquet, datasets.Dataset.from_file('{path}').to_parquet('X.parquet')"
_JSON = (
    "write each vector, or object with one, on a line of its own, jq -c '.[]' '{path}' > X.jsonl"
)
_INDEX = "take the vectors out, np.save('X.npy', faiss.read_index('{path}').reconstruct_n())"
WAYS_OUT = {
    **dict.fromkeys((".h5", ".hdf5", ".hdf"), _HDF5),
    **dict.fromkeys((".txt", ".vec"), _TEXT),
    **dict.fromkeys((".csv", ".tsv", ".csv.gz", ".tsv.gz"), _TABLE),
    **dict.fromkeys((".pkl", ".pickle", ".pt", ".pth", ".bin", ".joblib"), _PICKLE),
    **dict.fromkeys((".gz", ".bz2", ".xz", ".zst", ".zip", ".tar", ".tgz"), _PACKED),
    **dict.fromkeys((".arrow", ".feather"), _ARROW),
    **dict.fromkeys((".json", ".json.gz"), _JSON),
    **dict.fromkeys((".faiss", ".index"), _INDEX),
}
"""What to do with a file that is not read, by its ending."""


def _without_digits(path: Path) -> str:
    """The name as all shards of one kind have it."""
    return re.sub(r"\d+", "", path.name)


def _numbered(path: Path) -> list[Any]:
    """The name with its digits as numbers, so that part-2 stands before part-10."""
    return [int(piece) if piece.isdecimal() else piece for piece in re.split(r"(\d+)", path.name)]
