"""Vectors of any number put through an advice: shards of `.npy` in a folder, gone on with after a
kill.

`vectors.json` in the folder says what is being made and of what. It names each file of a shard with
its digest before the file gets its name, and the rows it was made from by a digest of them all. So
a shard is there whole, as it was written and made from the rows that the input has now, or it is
made; what was made from other rows is removed before anything is written, so that a folder never
holds old and new. A file that the manifest does not prove to be ours is left alone. Where the input
names its rows, each shard has its ids beside it. The map lies there too: without it nobody could
ask for the vectors once the folder of the advice holds another.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import Timeout

from dimadvise import deploy
from dimadvise.coding import Deployment
from dimadvise.files import Block, Name
from dimadvise.request import refuse_itself
from dimadvise.source import Shard, Source
from dimadvise.vectors import refuse_unread_column
from repro.evaluation.quantise import FLOATS
from repro.locks import locked
from repro.manifests import sealed, sha256
from repro.reading import regular_file
from repro.terminal import progress_bar, say
from repro.types import InputError, check_dim
from repro.writing import replacing, writable_folder, write_text

MANIFEST = "vectors.json"
NOT_OURS = "nothing is overwritten, give another output"
OURS = re.compile(r"part-\d{5,}\.(npy|ids\.parquet)")
"""Names of all files of shards, and of no others."""
FORMAT = 3  # Of the manifest
AGREEING = ("format", "dim", "level", "compared", "rows_per_shard", "column", "advice")
"""What a run that goes on has in common with the one before."""


def apply(
    vectors: Path,
    advice: Path,
    output: Path,
    *,
    level: str = "",
    rows_per_shard: int = 250_000,
    column: str = "",
) -> None:
    """Put every row of `vectors` through an advice, as the command of this name tells.

    Raises:
        InputError: for vectors of another width, an output that is not ours or of other arguments,
            a shard that was changed, shards of another input that would be replaced, and an input
            that changes while it is read.
    """
    check_dim(rows_per_shard, what="rows_per_shard")
    refuse_itself(output, vectors)
    refuse_unread_column(column, vectors)
    deployment, source = _at_level(deploy.read(advice), level), Source.opened(vectors, column)
    rows, width = source.vectors.shape
    if width != len(deployment.transform.matrix):
        raise InputError(
            f"{vectors} has {width} numbers a row, {advice} was advised on "
            f"{len(deployment.transform.matrix)}: give vectors of the same encoder"
        )
    if unread := source.vectors.unread_ids:
        say(
            f"no ids are written: {unread!r} of {vectors} does not hold a whole number or a text "
            "for each row of every file"
        )
    weights = [name for name in deploy.TENSORS if (advice / name).is_file()]
    plan = {
        "format": FORMAT,
        "rows": rows,
        "dim": deployment.transform.dim,
        "level": deployment.level,
        "compared": [deployment.similarity, deployment.transform.unit],
        "rows_per_shard": rows_per_shard,
        "column": column,
        "input": {"path": str(source.path), "columns": width, "kind": source.vectors.kind},
        "advice": {name: sha256(advice / name) for name in weights},
    }
    writable_folder(output).mkdir(parents=True, exist_ok=True)
    try:
        with locked(output / f".{MANIFEST}.lock", timeout=0):
            shards = _write_shards(deployment, source, output, plan, advice)
    except Timeout:
        raise InputError(
            f"{output} is being written by another process: wait for it, or give another output"
        ) from None
    names = source.vectors.files or [file.name for file in source.files]
    made_of = ", ".join(names[:3])
    more = ", …" * (len(names) > 3)
    say(f"{output}: {rows:,} rows of {made_of}{more} in {_counted(shards, 'shard')}")


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _at_level(deployment: Deployment, level: str) -> Deployment:
    """The advised codes, or plain numbers."""
    if level in ("", deployment.level):
        return deployment
    if level in FLOATS:
        return replace(deployment, level=level, codebook=None, centroids=None)
    raise InputError(
        f"level is {level!r}: expected {deployment.level}, which was advised, or "
        f"{' or '.join(FLOATS)}"
    )


def _write_shards(
    deployment: Deployment,
    source: Source,
    output: Path,
    plan: dict[str, Any],
    advice: Path,
) -> int:
    """Keep the shards that were made from the rows of now, remove all others, and make the rest;
    how many there are.
    """
    path_before, before = _manifest(output, plan)
    digests = {name: digest for entry in before.values() for name, digest in entry["files"].items()}
    _refuse_foreign(output, digests)
    shards, step = [], plan["rows_per_shard"]
    for number, start in enumerate(range(0, plan["rows"], step)):
        stop = min(start + step, plan["rows"])
        shards.append(Shard(f"part-{number:05d}.npy", start, stop))
    entries = {}
    for shard in progress_bar(shards, show=bool(before), unit="shard", desc="checking"):
        entry = before.get(shard.name)
        if entry is not None and _is_current(entry, shard, source, output):
            entries[shard.name] = entry
    source.check_unchanged()
    current = {name for entry in entries.values() for name in entry["files"]}
    stale = [output / name for name in sorted(set(digests) - current) if (output / name).exists()]
    if stale and path_before != str(source.path):
        raise InputError(
            f"{output} holds shards of {path_before}, and {len(stale)} of its files would be "
            f"replaced by others of {source.path}: give another output"
        )
    _keep_map(advice, output, plan["advice"])
    for path in stale:
        path.unlink()
    if before and entries != before:
        _write_manifest(output, plan, entries)
    if entries:
        say(f"{len(entries)} of {len(shards)} shards are there")
    if stale:
        were = "were" if len(stale) > 1 else "was"
        say(f"{_counted(len(stale), 'file')} {were} made from other rows: made again from these")
    missing = [shard for shard in shards if shard.name not in entries]
    for shard in progress_bar(missing, show=True, unit="shard"):
        _write_shard(deployment, source, output, shard, plan, entries)
    return len(shards)


def _write_shard(
    deployment: Deployment,
    source: Source,
    output: Path,
    shard: Shard,
    plan: dict[str, Any],
    entries: dict[str, Any],
) -> None:
    """Write the files of a shard, and the manifest of it beside those that are kept."""
    with ExitStack() as files:  # They get their names when it ends, and only if all is well.
        partial = files.enter_context(replacing(output / shard.name))
        digest = _write_codes(deployment, source, partial, shard)
        written = {shard.name: sha256(partial)}
        if ids := source.ids(shard):
            partial = files.enter_context(replacing(output / shard.ids_name))
            _write_ids(partial, ids)
            written[shard.ids_name] = sha256(partial)
        source.check_unchanged()
        made_from = {
            "size": sum(file.size for file in source.files),
            "mtime_ns": max(file.mtime_ns for file in source.files),
            "sha256": digest,
        }
        rows = [shard.start, shard.stop]
        entries[shard.name] = {"rows": rows, "input": made_from, "files": written}
        _write_manifest(output, plan, entries)


def _keep_map(advice: Path, output: Path, tensors: Mapping[str, str]) -> None:
    """Put the map that shards are made by beside them, before the first of them.

    Raises:
        InputError: where files of these names are others.
    """
    for name in (*tensors, deploy.NOTE):
        content = (advice / name).read_bytes()
        target = output / name
        if target.exists() and regular_file(target).read_bytes() == content:
            continue
        if target.exists():
            raise InputError(f"{target} is not the file of {advice}: {NOT_OURS}")
        with replacing(target) as partial:
            partial.write_bytes(content)


def _manifest(output: Path, plan: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The path of the input and the shards of the run before; nothing where there was none.

    Raises:
        InputError: where the file is not ours, or was another run's.
    """
    path = output / MANIFEST
    if not path.exists():
        return "", {}
    try:
        manifest = deploy.read_sealed(path)
        path_before = str(manifest["input"]["path"])
        shards = {name: _entry(entry) for name, entry in manifest["shards"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is not ours ({error}): {NOT_OURS}") from error
    differing = [name for name in AGREEING if manifest.get(name) != plan[name]]
    if differing:
        raise InputError(
            f"{output} holds shards of another run, which differs in {', '.join(differing)}: give "
            "another output"
        )
    return path_before, shards


def _entry(entry: Any) -> dict[str, Any]:
    """What a manifest says of a shard, if that is all that is needed."""
    start, stop = entry["rows"]
    made_from, files = dict(entry["input"]), dict(entry["files"])
    foreign = [name for name in files if not OURS.fullmatch(name)]
    if foreign or "sha256" not in made_from:
        raise ValueError(f"it names {foreign}" if foreign else "it has no digest of the rows")
    return {"rows": [start, stop], "input": made_from, "files": files}


def _write_manifest(output: Path, plan: dict[str, Any], shards: dict[str, Any]) -> None:
    manifest = sealed({**plan, "shards": dict(sorted(shards.items()))})
    write_text(output / MANIFEST, json.dumps(manifest, indent=1))


def _refuse_foreign(output: Path, digests: dict[str, str]) -> None:
    """Refuse to go on where a file of a shard's name is not the one whose digest is known."""
    for path in sorted(output.iterdir()):
        if not OURS.fullmatch(path.name):
            continue
        if path.name not in digests:
            raise InputError(f"{path} is not ours: {NOT_OURS}")
        if not path.is_file() or sha256(path) != digests[path.name]:
            raise InputError(
                f"{path} has changed since it was written: remove it, and it is made again"
            )


def _is_current(entry: dict[str, Any], shard: Shard, source: Source, output: Path) -> bool:
    """Whether a shard is there with all its files, made from the rows and ids of now."""
    expected = {shard.name, shard.ids_name} if source.vectors.id_column else {shard.name}
    if entry["rows"] != [shard.start, shard.stop] or set(entry["files"]) != expected:
        return False
    if not all((output / name).exists() for name in expected):
        return False
    return bool(entry["input"]["sha256"] == source.digest(shard))


def _write_codes(deployment: Deployment, source: Source, path: Path, shard: Shard) -> str:
    """Write the codes of a shard, and return the digest of its rows."""
    with path.open("wb") as file:

        def write(block: Block) -> None:
            codes = _codes(deployment, block, source)
            if not file.tell():
                shape = shard.stop - shard.start, codes.shape[1]
                header = {"descr": codes.dtype.str, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, header)
            file.write(codes.tobytes())

        return source.digest(shard, write)


def _codes(deployment: Deployment, block: Block, source: Source) -> Any:
    codes = deployment.codes(block)
    if deployment.level == "float16":
        vanished = ~codes.any(axis=1)
        if vanished.any() and deployment.vectors(block[vanished]).any():
            least = float(np.finfo(np.float16).smallest_subnormal)
            raise InputError(
                f"{source.path} has rows of which float16 keeps nothing, as it ends at "
                f"{least:.0e}: "
                "multiply all rows by one number, or give --level float32"
            )
    return codes


def _write_ids(path: Path, ids: Sequence[Name]) -> None:
    """Write ids as a column of parquet; as texts where they are of several kinds."""
    column = pa.array([None if name is None else str(name) for name in ids])
    for kind in (pa.uint64(), None):  # None is what Arrow takes them for, of which int64 is one
        with suppress(pa.ArrowException, OverflowError, TypeError):
            column = pa.array(ids, kind)
    pq.write_table(pa.table({"id": column}), path)
