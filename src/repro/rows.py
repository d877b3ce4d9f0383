"""Rows: one number each, with everything a reader needs to judge it (DESIGN §8): also where and when it was computed.

Values are fractions or correlations; tables show them ×100. A row never says whether it is `recorded` or
`live`: that is where it is kept, `results/` or the store.
"""

import hashlib
import io
import os
import platform
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock

from repro import paths
from repro.paths import replacing, write_text
from repro.store import sha256
from repro.types import InputError, installed

try:
    import resource
except ImportError:  # Windows has none
    resource = None  # type: ignore[assignment]

NAMES = (
    *("experiment", "paper_table", "method", "backbone", "readout", "layer", "dim", "dataset", "setting", "metric"),
    *("seed", "profile", "data_source", "n_train"),
)
SCHEMA = (
    *(*NAMES[:10], "value", "ci_low", "ci_high", *NAMES[10:]),
    *("device", "hardware", "seconds", "peak_mb", "commit", "versions", "created"),
)
"""columns that every file of rows has"""
IDENTITY = (
    *("config", "pooling", "learning_rate", "dropout", "batch_size", "max_length", "n_judged", "text", "neighbours"),
    *("views", "select_by", "command"),
)
"""what else makes two runs different, and what runs one again; missing in files recorded before these columns"""
COLUMNS = (*SCHEMA, *IDENTITY)
KEY = (*NAMES, "config")  # columns that name a number; a second number with the same key replaces the first
KINDS = {
    **dict.fromkeys(COLUMNS, "string"),
    **dict.fromkeys(("value", "ci_low", "ci_high", "seconds", "peak_mb", "learning_rate", "dropout"), "float64"),
    **dict.fromkeys(("layer", "dim", "seed", "n_train", "batch_size", "max_length", "n_judged"), "Int64"),
    **dict.fromkeys(("neighbours", "views"), "Int64"),
}
"""what a column holds, also where all of it is missing"""
PARSED = (
    (r"(?P<winner>.+) − (?P<rival>.+)", "method", "string"),
    (r"(?P<split>test|dev)\b.*", "setting", "string"),
    (r"(?P<protocol>inductive|transductive|wiki)\b.*", "setting", "string"),
    (r".*\bselect_by=(?P<select_by>\w+).*", "setting", "string"),
    (r".*\bneighbours = (?P<neighbours>\d+).*", "setting", "Int64"),
    (r"candidates=(?P<k>\d+)", "setting", "Int64"),
    (r"against (?P<against>\d+) dims", "setting", "Int64"),
    (r".*?(?P<bytes>[\d,]+) bytes.*", "setting", "Int64"),
    (r"τ = (?P<temperature>[\d.]+), B = .*", "setting", "Float64"),
    (r"τ = .*, B = (?P<batch>[\d,]+)", "setting", "Int64"),
)
"""what `method` and `setting` say in words: pattern of the whole text, column that holds it, kind of what it names"""
DIGESTS = "SHA256SUMS"
"""beside recorded rows: the digest of every file, a line each, as `sha256sum` writes and checks them"""
VERSIONED = ("torch", "transformers", "numpy", "scikit-learn")


def make_rows(values: Iterable[Mapping[str, Any]], **shared: Any) -> pd.DataFrame:
    """A frame with every column of the schema: what each row says, then what all share, then where it is computed.

    Of a network's folder only the name is kept.
    """
    stamp = {**provenance(), **shared}
    rows = [{**stamp, **row} for row in values]
    unknown = sorted({name for row in rows for name in row} - set(COLUMNS))
    if unknown:
        raise InputError(f"unknown row column {unknown[0]!r}: the schema has {', '.join(COLUMNS)}")
    frame = pd.DataFrame(rows, columns=list(COLUMNS)).astype(KINDS)
    names = frame["backbone"].map(lambda name: Path(name).name if Path(name).is_absolute() else name, "ignore")
    return frame.assign(backbone=names.astype("string"))


def provenance() -> dict[str, Any]:
    """Where and when this process computes: hardware, commit, versions of packages, peak memory, time."""
    unit = 1024**2 if sys.platform == "darwin" else 1024
    torch: Any = sys.modules.get("torch")  # of an extra: where nothing has loaded it, no accelerator computed
    card = f"{torch.cuda.get_device_name()}, " if torch and torch.cuda.is_available() else ""
    return {
        "hardware": card + hardware(),
        "device": "cuda" if card else "cpu",
        "commit": commit(),
        "versions": versions(),
        "peak_mb": resource and round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@lru_cache
def hardware() -> str:
    """Processor model and the cores this process may use."""
    cpuinfo = Path("/proc/cpuinfo")
    said = cpuinfo.read_text(encoding="utf-8", errors="replace") if cpuinfo.is_file() else ""
    named = re.search(r"^model name\s*:(.*)$", said, flags=re.MULTILINE)
    model = named[1].strip() if named else platform.processor() or platform.machine()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{model}, {cores} cores"


@lru_cache
def commit() -> str:
    """The checkout's commit; empty where git or a repository is missing."""
    try:
        root = paths.project_root()
        ask = ["git", f"--git-dir={root / '.git'}", "rev-parse", "--verify", "--quiet", "HEAD"]
        return subprocess.run(ask, capture_output=True, text=True, check=False).stdout.strip()[:12]
    except (InputError, OSError):
        return ""


@lru_cache
def versions() -> str:
    """Versions of the packages that move numbers."""
    found = {package: installed(package) for package in VERSIONED}
    return ", ".join(f"{package} {version}" for package, version in found.items() if version != "absent")


def read_rows(path: Path) -> pd.DataFrame:
    """Read rows from parquet; a file that is missing, damaged, no rows or not as recorded beside it is refused."""
    if not path.is_file():
        raise InputError(f"no rows at {path}: run the experiment with --record first")
    try:
        frame = pd.read_parquet(io.BytesIO(_verified(path)))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as parquet ({error}): remove it and record again") from error
    missing = [column for column in SCHEMA if column not in frame.columns]
    if missing:
        raise InputError(f"{path} lacks the column {missing[0]!r}: it is not a file of rows")
    return frame.reindex(columns=list(COLUMNS)).astype({column: KINDS[column] for column in IDENTITY})


def parsed(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with what their methods and settings say in words as columns, filled in only where they are empty."""
    found = {}
    for pattern, column, kind in PARSED:
        codes, texts = pd.factorize(rows[column])  # many rows say the same
        matched = [re.fullmatch(pattern, text) for text in texts]
        for name in re.compile(pattern).groupindex:
            said = pd.Series([match and match[name] for match in matched], dtype="string")
            said = said if kind == "string" else pd.to_numeric(said.str.replace(",", "")).astype(kind)
            values = pd.Series(said.array.take(codes, allow_fill=True), rows.index)
            found[name] = rows[name].fillna(values) if name in rows else values
    return rows.assign(**found)


def _verified(path: Path) -> bytes:
    """The bytes of a file, once they have its digest in `SHA256SUMS` if there is one beside it."""
    for _ in range(3):  # another process may record between the two reads
        content, digests = path.read_bytes(), _read_digests(path.parent)
        if digests is None or hashlib.sha256(content).hexdigest() in digests.get(path.name, ()):
            return content
    raise InputError(
        f"{path} has changed since it was recorded: its sha256 is not in {DIGESTS}. Restore both with git, or remove "
        f"the file and record again; if the change is meant, run `sha256sum *.parquet > {DIGESTS}` in that folder"
    )


def _read_digests(folder: Path) -> dict[str, set[str]] | None:
    """The digests that a file may have, two while it is replaced or git has merged both; None where none are kept."""
    if not (folder / DIGESTS).is_file():
        return None
    found = defaultdict[str, set[str]](set)
    for line in (folder / DIGESTS).read_text(encoding="utf-8", errors="replace").splitlines():
        digest, _, name = line.partition("  ")
        found[name].add(digest)
    return found


def _write_digests(folder: Path, digests: Mapping[str, set[str]]) -> None:
    lines = [f"{digest}  {name}\n" for name in sorted(digests) for digest in sorted(digests[name])]
    write_text(folder / DIGESTS, "".join(lines))


def results_folder() -> Path:
    """Where recorded rows are committed."""
    return paths.project_root() / "results"


def record(rows: pd.DataFrame, folder: Path | None = None) -> list[Path]:
    """Add rows to `results/<experiment>.parquet`; a row with the same key, judged on no more items, is replaced.

    Rows of another configuration stand beside it; one that names no configuration gives way to a later one that does.
    Processes may record side by side. A kill leaves rows and digests of before or after, never of both.
    """
    folder = folder or results_folder()
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with FileLock(folder / f"{DIGESTS}.lock"):  # it stays: whoever waits for a lock holds the file, not its name
        digests = _read_digests(folder)
        if digests is None:
            digests = {path.name: {sha256(path)} for path in folder.glob("*.parquet")}
        for experiment, group in rows.groupby("experiment"):
            path = paths.inside(folder, f"{experiment}.parquet")
            before = [read_rows(path)] if path.is_file() else []
            for known in before:
                both = group.merge(known, on=list(KEY[:-1]), suffixes=("", "_known"))
                if (both["n_judged"] < both["n_judged_known"]).any():
                    raise InputError(f"{path} holds these numbers judged on more items: record them all, or move it")
            merged = pd.concat([*before, group[list(COLUMNS)]], ignore_index=True)
            merged = merged.drop_duplicates(list(KEY), keep="last")
            unnamed = merged["config"].isna() & merged.duplicated(list(KEY[:-1]), keep="last")
            merged = merged[~unnamed].sort_values(list(KEY), ignore_index=True)
            with replacing(path) as partial:
                merged.to_parquet(partial, compression="zstd", index=False)
                new = sha256(partial)
                _write_digests(folder, {**digests, path.name: digests.get(path.name, set()) | {new}})
            digests[path.name] = {new}
            _write_digests(folder, digests)
            written.append(path)
    return written


def recorded_rows(experiment: str) -> pd.DataFrame:
    """The recorded rows of an experiment with their `parsed` columns; an empty frame where none exist.

    Text is held as Python strings: some thirty columns then move as one whenever rows are picked.
    """
    path = results_folder() / f"{experiment}.parquet"
    found = parsed(read_rows(path) if path.is_file() else make_rows([]))
    return found.astype(dict.fromkeys(found.select_dtypes("string"), object)).copy()
