"""Vectors of any number put through an advice: shards of `.npy` in a folder, gone on with after a kill.

`vectors.json` in the folder says what is being made and of what, and names each shard with its digest before the shard
gets its name. So a shard is there whole and as it was written, or it is made; a file that is neither is left alone.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from dimadvise import deploy
from dimadvise.deploy import Deployment
from dimadvise.vectors import Vectors, open_vectors
from repro.evaluation.quantise import FLOATS
from repro.paths import replacing, writable_folder, write_text
from repro.store import sha256
from repro.terminal import progress_bar, say
from repro.types import InputError, check_dim

MANIFEST = "vectors.json"
PROBED = 64  # rows by which an input is known again, evenly spaced


def apply(
    vectors: Path, advice: Path, output: Path, *, level: str = "", rows_per_shard: int = 250_000, column: str = ""
) -> None:
    """Put every row of `vectors` through an advice, as the command of this name tells.

    Raises:
        InputError: for vectors of another width, an output that is not ours or of other arguments, and a shard that was
            changed.
    """
    check_dim(rows_per_shard, what="rows_per_shard")
    if output.is_dir() and vectors.is_dir() and output.samefile(vectors):
        raise InputError(f"the output {output} is the input: expected another folder")
    deployment, source = _at_level(deploy.read(advice), level), open_vectors(vectors, column)
    rows, width = source.shape
    if width != len(deployment.transform.matrix):
        raise InputError(
            f"{vectors} has {width} numbers a row, {advice} was advised on {len(deployment.transform.matrix)}: give "
            "vectors of the same encoder"
        )
    plan = {
        "rows": rows,
        "dim": deployment.transform.dim,
        "level": deployment.level,
        "compared": [deployment.similarity, deployment.transform.unit],
        "rows_per_shard": rows_per_shard,
        "input": {"columns": width, "kind": source.kind, "probe": _probe(source)},
        "advice": {
            name: sha256(advice / name) for name in ("reducer.safetensors", deploy.CODES) if (advice / name).is_file()
        },
    }
    writable_folder(output).mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(output / f".{MANIFEST}.lock", timeout=0):
            _write_shards(deployment, source, output, plan)
    except Timeout:
        raise InputError(f"{output} is being written by another process: wait for it, or give another output") from None


def _at_level(deployment: Deployment, level: str) -> Deployment:
    """The advised codes, or plain numbers."""
    if level in ("", deployment.level):
        return deployment
    if level in FLOATS:
        return replace(deployment, level=level, codebook=None, centroids=None)
    raise InputError(f"level is {level!r}: expected {deployment.level}, which was advised, or {' or '.join(FLOATS)}")


def _write_shards(deployment: Deployment, source: Vectors, output: Path, plan: dict[str, Any]) -> None:
    edges = [*range(0, plan["rows"], plan["rows_per_shard"]), plan["rows"]]
    names = [f"part-{number:05d}.npy" for number in range(len(edges) - 1)]
    digests = _digests_before(output, plan)
    missing = []
    for name, (start, stop) in zip(names, pairwise(edges), strict=True):
        path = output / name
        if not path.exists():
            missing.append((path, start, stop))
        elif name not in digests:
            raise InputError(f"{path} is not ours: nothing is overwritten, give another output")
        elif sha256(path) != digests[name]:
            raise InputError(f"{path} has changed since it was written: remove it, and it is made again")
    if len(missing) < len(names):
        say(f"{len(names) - len(missing)} of {len(names)} shards are there")
    for path, start, stop in progress_bar(missing, show=True, unit="shard"):
        with replacing(path) as partial:
            digests[path.name] = _write_shard(deployment, source, partial, start, stop)
            write_text(output / MANIFEST, json.dumps({**plan, "shards": digests}, indent=1))


def _digests_before(output: Path, plan: dict[str, Any]) -> dict[str, str]:
    """Digests of the shards of a run that was stopped; InputError where it was another one."""
    path = output / MANIFEST
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        digests = dict(found.pop("shards"))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is not ours ({error!r}): nothing is overwritten, give another output") from error
    differing = [name for name in plan if found.get(name) != plan[name]]
    if differing:
        raise InputError(
            f"{output} holds shards of another run, which differs in {', '.join(differing)}: give another output"
        )
    return digests


def _write_shard(deployment: Deployment, source: Vectors, path: Path, start: int, stop: int) -> str:
    """Write rows `start` to `stop`, and return the digest of the file."""
    with path.open("wb") as file:
        for codes in _coded(deployment, source, start, stop):
            if not file.tell():
                header = {"descr": codes.dtype.str, "fortran_order": False, "shape": (stop - start, codes.shape[1])}
                np.lib.format.write_array_header_1_0(file, header)
            file.write(codes.tobytes())
    return sha256(path)


def _coded(deployment: Deployment, source: Vectors, start: int, stop: int) -> Iterator[Any]:
    """Codes of rows `start` to `stop`, block by block."""
    at = start
    for block in source.blocks(start=start):
        yield deployment.codes(block[: stop - at])
        at += len(block)
        if at >= stop:
            return
    raise InputError(f"{source.name} ended at row {at} of {stop}: it changed while it was read")


def _probe(source: Vectors) -> str:
    """Digest of some rows: a file keeps it when it is moved, and loses it when it is made again."""
    rows = np.unique(np.linspace(0, source.shape[0] - 1, PROBED).astype(np.int64))
    return hashlib.sha256(source.take(rows).tobytes()).hexdigest()
