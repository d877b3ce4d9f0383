"""What `dimadvise apply` wrote, read in order by the program that loads a store."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from dimadvise.apply import MANIFEST
from dimadvise.deploy import read, read_sealed
from dimadvise.files import Block, Name
from dimadvise.source import Shard, Source
from repro.evaluation.quantise import Codes
from repro.manifests import sha256
from repro.types import InputError

__all__ = ["Batch", "batches", "read"]
ROWS = 10_000  # Of a batch, at most


class Batch(NamedTuple):
    """Rows as they are stored, and what names them."""

    rows: range  # Their numbers among all
    ids: list[Name]  # Those that the vectors had, or else their numbers
    codes: Codes  # (b, …) of the type that the advice names
    full: Block | None  # The vectors they were made from (b, D), where they are asked for


def batches(folder: Path | str, *, full: bool = False) -> Iterator[Batch]:
    """All rows of the shards in a folder, in their order.

    Args:
        folder: that `dimadvise apply` wrote.
        full: also read the vectors that the shards were made from, which lie where they lay then.

    Raises:
        InputError: where `apply` was stopped before the last shard, a file has changed since it was
            written, or the vectors have.
    """
    folder = Path(folder)
    if not (folder / MANIFEST).is_file():
        raise InputError(f"no {folder / MANIFEST}: expected a folder that `dimadvise apply` wrote")
    manifest = read_sealed(folder / MANIFEST)
    again = "give the same `dimadvise apply` again, which makes what is missing"
    written = sum(entry["rows"][1] - entry["rows"][0] for entry in manifest["shards"].values())
    if written < manifest["rows"]:
        raise InputError(f"{folder} holds {written:,} of {manifest['rows']:,} rows: {again}")
    source = _source_of(manifest) if full else None
    for name, entry in manifest["shards"].items():
        for file, digest in entry["files"].items():
            if not (folder / file).is_file() or sha256(folder / file) != digest:
                raise InputError(f"{folder / file} is missing or has changed: {again}")
        shard = Shard(name, *entry["rows"])
        if source is not None and source.digest(shard) != entry["input"]["sha256"]:
            raise InputError(f"{source.path} has changed since {folder / name} was made: {again}")
        yield from _batches_of(folder, shard, source, has_ids=shard.ids_name in entry["files"])


def _source_of(manifest: dict[str, Any]) -> Source:
    """The vectors that a manifest tells of."""
    path = Path(manifest["input"]["path"])
    if not path.exists():
        raise InputError(f"no {path}: expected the vectors that were applied, where they lay then")
    return Source.opened(path, manifest["column"])


def _batches_of(
    folder: Path, shard: Shard, source: Source | None, *, has_ids: bool
) -> Iterator[Batch]:
    codes = np.load(folder / shard.name, mmap_mode="r")
    rows = range(shard.start, shard.stop)
    ids: list[Name] = list(rows)
    if has_ids:  # What else lies there by that name is somebody's own, and names no rows
        ids = pq.read_table(folder / shard.ids_name)["id"].to_pylist()
    blocks = iter(()) if source is None else source.blocks(shard)
    start = 0
    while start < len(rows):
        block = next(blocks, None)
        span = slice(start, start + (ROWS if block is None else len(block)))
        yield Batch(rows[span], ids[span], np.array(codes[span]), block)
        start = span.stop
