"""Rows: one number each, with everything a reader needs to judge it (method-rows in the book): also
where and when it was computed.

Values are fractions or correlations; tables show them ×100. A row never says whether it is
`recorded` or `live`: that is where it is kept, `results/` or the store.
"""

import hashlib
import io
import os
import platform
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from repro import paths
from repro.paths import is_out_of_memory, locked, replacing, write_text
from repro.store import sha256
from repro.types import InputError, installed

try:
    import resource
except ImportError:  # Windows has none
    resource = None  # type: ignore[assignment]

NAMES = (
    "experiment",
    "paper_table",
    "method",
    "backbone",
    "readout",
    "layer",
    "dim",
    "dataset",
    "setting",
    "metric",
    "seed",
    "profile",
    "data_source",
    "n_train",
)
SCHEMA = (
    *NAMES[:10],
    "value",
    "ci_low",
    "ci_high",
    *NAMES[10:],
    "device",
    "hardware",
    "seconds",
    "peak_mb",
    "commit",
    "versions",
    "created",
)
"""Columns that every file of rows has."""
IDENTITY = (
    "config",
    "pooling",
    "learning_rate",
    "dropout",
    "batch_size",
    "max_length",
    "n_judged",
    "resamples",
    "text",
    "neighbours",
    "views",
    "select_by",
    "command",
)
"""What else makes two runs different, and what runs one again; missing in files recorded before
these columns.
"""
COLUMNS = (*SCHEMA, *IDENTITY)
# Columns that name a number; a second number with the same key replaces the first
KEY = (*NAMES, "config")
TEXT_FORMS = dict.fromkeys(("local", "hub"), "senteval")
"""The form of a benchmark's texts by where they come from, unless a row says another."""
KINDS = {
    **dict.fromkeys(COLUMNS, "string"),
    **dict.fromkeys(
        ("value", "ci_low", "ci_high", "seconds", "peak_mb", "learning_rate", "dropout"),
        "float64",
    ),
    **dict.fromkeys(
        ("layer", "dim", "seed", "n_train", "batch_size", "max_length", "n_judged"),
        "Int64",
    ),
    **dict.fromkeys(("neighbours", "views", "resamples"), "Int64"),
}
"""What a column holds, also where all of it is missing."""
SPELLED = {"string": "text", "float64": "numbers", "Int64": "whole numbers"}
"""Kinds in words."""
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
"""What `method` and `setting` say in words: pattern of the whole text, column that holds it, kind
of what it names.
"""


@dataclass(frozen=True)
class Whole:
    """Numbers that sum up others of their run, or choose among them, with a key that names none.

    `metric`, `method` and `setting` are patterns of the whole text.
    """

    within: tuple[str, ...] = ()
    """Columns that such a number shares with the rows that it is made of."""
    over: tuple[str, ...] = ()
    """Columns in which these rows differ; empty where they are not recorded."""
    given: tuple[str, ...] = ()
    """Parameters of the page that say what they are made of, where these rows are not recorded."""
    metric: str = ".*"
    method: str = ".*"
    setting: str = ".*"
    among: str = ".*"
    """Pattern of the settings of the rows that they are made of."""
    outcome: tuple[str, ...] = ()
    """Columns of the key that say what was chosen, so that another choice is the same number."""

    def of(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Those of some rows that are such numbers."""
        matched = np.ones(len(rows), bool)
        for column in ("metric", "method", "setting"):
            matched &= _fits(rows[column], getattr(self, column))
        return rows[matched] if matched.any() else rows[:0]


OF_NETWORK = ("backbone", "dataset", "n_train")
TRAINED = (*OF_NETWORK, "method", "setting")
CURVE = "distance_from_pca|roughness(_lead)?"
ERRORS = "answer|cases|coefficient|expected_share|.*_error(_.*)?|share_(at|of)_.*|target_met_share"
WHOLES = (
    # Zhang et al.: curves over sizes, and the rank of a method among the others, over settings too.
    Whole(("backbone", "dataset", "setting"), ("method", "dim"), metric=CURVE),
    Whole(("dataset",), ("setting",), metric="ranks_behind_pca", among="inductive|transductive"),
    # ESE: means over sizes.
    Whole((*OF_NETWORK, "method"), ("layer", "dim"), metric="depth_lead"),
    Whole(("backbone", "method", "n_train"), ("dim",), setting=".*mean over sizes"),
    # Wang et al.: means over widths, choices among encoders of all widths, gains over the widest.
    Whole(TRAINED, ("dim",), metric=r"spearman_gain\w*_mean|optimal_dim"),
    Whole(TRAINED, ("dim",), method=r".*(Encoder_opt \+ |w/ two-step training).*"),
    Whole(TRAINED, ("dim",), setting=r"candidates=\d+"),
    Whole((*OF_NETWORK, "setting"), ("method", "dim"), metric=".*_gain", method=r"encoder_\d+"),
    # SBERT-LP: neighbours and dims chosen from a grid.
    Whole(given=("neighbors", "dims"), setting=".*chosen on (dev|test)", outcome=("dim",)),
    # The proposal: choices of reductions or encoders, bends of curves, what rules learn elsewhere.
    Whole((*OF_NETWORK, "dim"), ("method",), method=".*best reduction.*", outcome=("setting",)),
    Whole(OF_NETWORK, ("dim",), method=".*two-step projection.*", outcome=("setting",)),
    Whole(("backbone", "dataset", "method", "setting"), ("dim",), metric="(sure_)?knee"),
    Whole(over=("backbone", "dataset", "method", "dim"), metric=ERRORS),
)
"""Numbers of whole runs, which those of a part of such a run do not replace."""
OF_KEY = (*KEY, "source")
"""Parameters of pages that the key of a row tells."""
NAME_NO_ROWS = ("starts", "translators")
"""Parameters that are lists and decide numbers; the items of all others have rows of their own."""
AMOUNTS = (
    *("rows", "pairs", "questions", "queries", "paragraphs", "documents"),
    *("words", "probe_rows"),
)
"""Parameters that say how much of a set is kept, 0 for all: numbers of more replace those of
less.
"""
SAME = 1e-3
"""The share by which a number that is made again may differ and be the same to a reader."""
DIGESTS = "SHA256SUMS"
"""Beside recorded rows: the digest of every file, a line each, as `sha256sum` writes and checks
them.
"""
LIST_ANEW = f"run `sha256sum *.parquet > {DIGESTS}` in that folder"
WAYS_OUT = f"Restore the file and {DIGESTS} with git; if the change is meant, {LIST_ANEW}"
RECORD_ANEW = f"move the file away, {LIST_ANEW} and record anew"
NOT_THERE = hashlib.sha256(b"").hexdigest()
"""Stands for a file that is not there yet while its first rows are recorded."""
VERSIONED = ("torch", "transformers", "numpy", "scikit-learn")


def make_rows(values: Iterable[Mapping[str, Any]], **shared: Any) -> pd.DataFrame:
    """A frame with every column of the schema: what each row says, then what all share, then where
    it is computed.

    Of a network's folder only the name is kept.
    """
    stamp = {**provenance(), **shared}
    rows = [{**stamp, **row} for row in values]
    unknown = sorted({name for row in rows for name in row} - set(COLUMNS))
    if unknown:
        raise InputError(f"unknown row column {unknown[0]!r}: the schema has {', '.join(COLUMNS)}")
    frame = pd.DataFrame(rows, columns=list(COLUMNS)).astype(KINDS)
    names = frame["backbone"].map(
        lambda name: Path(name).name if Path(name).is_absolute() else name, "ignore"
    )
    texts = frame["text"].fillna(frame["data_source"].map(TEXT_FORMS))
    return frame.assign(backbone=names.astype("string"), text=texts.astype("string"))


def provenance() -> dict[str, Any]:
    """Where and when this process computes: hardware, commit, versions of packages, peak memory,
    time.
    """
    unit = 1024**2 if sys.platform == "darwin" else 1024
    # Of an extra: where nothing has loaded it, no accelerator computed
    torch: Any = sys.modules.get("torch")
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
    return ", ".join(
        f"{package} {version}" for package, version in found.items() if version != "absent"
    )


def read_rows(path: Path) -> pd.DataFrame:
    """Read rows from parquet; a file that is missing, damaged, no rows or not as recorded beside it
    is refused.
    """
    if not path.is_file():
        raise InputError(f"no rows at {path}: run the experiment with --record first")
    return _rows_of(path, _verified(path))


def _rows_of(path: Path, content: bytes) -> pd.DataFrame:
    """The rows that the bytes of a file hold."""
    try:
        frame = pd.read_parquet(io.BytesIO(content))
    except (OSError, ValueError) as error:
        if is_out_of_memory(error):
            raise
        raise InputError(f"{path} cannot be read as parquet ({error}): {RECORD_ANEW}") from error
    missing = [column for column in SCHEMA if column not in frame.columns]
    if missing:
        raise InputError(f"{path} lacks the column {missing[0]!r}: it is not a file of rows")
    frame = frame.reindex(columns=list(COLUMNS))
    other = {column: kind for column, kind in KINDS.items() if frame[column].dtype != kind}
    return frame.assign(
        **{column: _as_kind(frame[column], kind, path) for column, kind in other.items()}
    )


def _as_kind(values: "pd.Series[Any]", kind: str, path: Path) -> "pd.Series[Any]":
    """A column as its kind, if it holds such values or none; no number is made of text, nor text of
    a number.
    """
    there = values.dropna()
    is_text = pd.api.types.is_string_dtype(there)
    if there.empty or (is_text == (kind == "string") and not pd.api.types.is_bool_dtype(there)):
        try:
            return values.astype(kind)
        except (
            TypeError,
            ValueError,
        ):  # of halves where whole numbers are expected, and of objects
            pass
    found = f"{there.tolist()[0]!r} ({values.dtype})"
    fault = f"has {found} in the column {values.name!r}: expected {SPELLED[kind]}"
    raise InputError(f"{path} {fault}. Correct the file and {LIST_ANEW}")


def read_recorded(path: Path) -> pd.DataFrame:
    """Recorded rows; refused where no `SHA256SUMS` lies beside the file to vouch for it."""
    _refuse_unlisted(path.parent)
    return read_rows(path)


def parsed(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with what their methods and settings say in words as columns, filled in only where
    they are empty.
    """
    found = {}
    for pattern, column, kind in PARSED:
        codes, texts = pd.factorize(rows[column])  # many rows say the same
        matched = [re.fullmatch(pattern, text) for text in texts]
        for name in re.compile(pattern).groupindex:
            said = pd.Series([match and match[name] for match in matched], dtype="string")
            said = (
                said if kind == "string" else pd.to_numeric(said.str.replace(",", "")).astype(kind)
            )
            values = pd.Series(said.array.take(codes, allow_fill=True), rows.index)
            found[name] = rows[name].fillna(values) if name in rows else values
    return rows.assign(**found)


def _verified(path: Path) -> bytes:
    """The bytes of a file, once they have its digest in `SHA256SUMS` if there is one beside it."""
    for _ in range(3):  # another process may record between the two reads
        content, digests = path.read_bytes(), _read_digests(path.parent)
        if digests is None:
            return content
        listed = digests.get(path.name, set())
        if hashlib.sha256(content).hexdigest() in listed:
            return content
    if not listed:
        fault = f"is not listed in {DIGESTS}, so that nothing vouches for it"
    else:
        fault = f"has changed since it was recorded: its sha256 is not in {DIGESTS}"
    raise InputError(f"{path} {fault}. {WAYS_OUT}")


def _refuse_unlisted(folder: Path) -> None:
    """Refuse a folder whose rows nothing vouches for."""
    if (folder / DIGESTS).is_file():
        return
    if files := sorted(folder.glob("*.parquet")):
        fault = f"has no {DIGESTS}, so that nothing vouches for {files[0].name}"
        raise InputError(f"{folder} {fault}. {WAYS_OUT}")


def _refuse_missing(path: Path, digests: Mapping[str, set[str]]) -> None:
    """Refuse a listed file that is not there, unless its first rows were just being recorded."""
    if path.name in digests and NOT_THERE not in digests[path.name] and not path.is_file():
        raise InputError(f"{path} is not there, but {DIGESTS} lists it. {WAYS_OUT}")


def _read_digests(folder: Path) -> dict[str, set[str]] | None:
    """The digests that a file may have, two while it is replaced or git has merged both; None where
    none are kept.

    Raises:
        InputError: for a line that is no digest with a name, such as git's marks of a conflict.
    """
    listing = folder / DIGESTS
    if not listing.is_file():
        return None
    digests = defaultdict[str, set[str]](set)
    lines = listing.read_text(encoding="utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, start=1):
        entry = re.fullmatch("([0-9a-f]{64})  (.+)", line)
        if entry is None:
            expected = "expected a sha256 and the name of a file, with two spaces between"
            told = f"{listing}, line {number} is {line!r}: {expected}"
            raise InputError(f"{told}. After a merge, {LIST_ANEW}")
        digest, name = entry.groups()
        digests[name].add(digest)
    return digests


def _write_digests(folder: Path, digests: Mapping[str, set[str]]) -> None:
    lines = [f"{digest}  {name}\n" for name in sorted(digests) for digest in sorted(digests[name])]
    write_text(folder / DIGESTS, "".join(lines))


def results_folder() -> Path:
    """Where recorded rows are committed."""
    return paths.project_root() / "results"


def record(rows: pd.DataFrame, folder: Path | None = None) -> list[Path]:
    """Add rows to `results/<experiment>.parquet`; a row with the same key, judged on no more items,
    is replaced.

    Rows of another configuration stand beside it; one that names no configuration gives way to a
    later one that does. A page's row replaces another number only where the command recorded with
    it gave the same parameters, or smaller amounts. Processes may record side by side. A kill
    leaves rows and digests of before or after, never of both.

    Raises:
        InputError: where a number of all items, of a whole run or of other parameters would give
            way to one of fewer, of a part of it or of these, or where nothing vouches for what is
            recorded; nothing is written.
    """
    folder = folder or results_folder()
    folder.mkdir(parents=True, exist_ok=True)
    # The file stays: whoever waits for a lock holds the file, not its name.
    with locked(folder / f"{DIGESTS}.lock"):
        digests = _read_digests(folder)
        if digests is None:
            _refuse_unlisted(folder)
            digests = {}
        merged = {}
        for experiment, group in rows.groupby("experiment"):
            path = paths.inside(folder, f"{experiment}.parquet")
            _refuse_missing(path, digests)
            known = read_recorded(path) if path.is_file() else make_rows([])
            check_replaceable(group, known, path)
            merged[path] = _merged(group, known)
        for path, frame in merged.items():
            with replacing(path) as partial:
                frame.to_parquet(partial, compression="zstd", index=False)
                new = sha256(partial)
                before = digests.get(path.name, {NOT_THERE})
                _write_digests(folder, {**digests, path.name: before | {new}})
            digests[path.name] = {new}
            _write_digests(folder, digests)
    return list(merged)


def _merged(rows: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Known rows and new ones, which replace those of the same key."""
    new = rows[list(COLUMNS)]
    both = pd.concat([known, new], ignore_index=True) if len(known) else new
    both = both.drop_duplicates(list(KEY), keep="last")
    unnamed = both["config"].isna() & both.duplicated(list(KEY[:-1]), keep="last")
    return both[~unnamed].sort_values(list(KEY), ignore_index=True)


def check_replaceable(rows: pd.DataFrame, known: pd.DataFrame, path: Path) -> None:
    """Refuse rows of fewer items, of a part of a run, or of other parameters, than the known ones
    they would replace.
    """
    if known.empty:
        return
    both = rows.merge(known, on=list(KEY[:-1]), suffixes=("", "_known"))
    if (both["n_judged"] < both["n_judged_known"]).any():
        fault = "holds these numbers judged on more items"
        raise InputError(f"{path} {fault}: record them all, or {RECORD_ANEW}")
    for config in rows["config"].unique():
        same = rows["config"].isna() if pd.isna(config) else rows["config"] == config
        new = rows[same]
        old = known[known["config"].isna() | known["config"].isin(new["config"])]
        for whole in WHOLES:
            check = _check_parts if whole.over else _check_choice
            check(whole, new, old, path)
    _check_parameters(both, path)


def _check_parts(whole: Whole, rows: pd.DataFrame, known: pd.DataFrame, path: Path) -> None:
    """Refuse numbers of a run that are made of fewer of its rows than the known ones."""
    replaced = _replaced(whole, rows, known)
    if replaced.empty:
        return
    run = ["seed", "profile", "data_source", *whole.within]
    runs_known = replaced[[*run, "command"]].drop_duplicates()
    parts_known = _parts(whole, known, [*run, "command"]).merge(runs_known)
    compared = parts_known.merge(_parts(whole, rows, run), how="left", indicator=True)
    missing = compared.loc[compared["_merge"] == "left_only", [*run, "command", *whole.over]]
    if len(missing):
        some = missing[list(whole.over)].drop_duplicates()
        listed = "; ".join(some.head(3).astype(str).agg(" ".join, axis=1))
        told = f"made also of {', '.join(whole.over)} {listed}{' …' if len(some) > 3 else ''}"
        short = missing[[*run, "command"]].drop_duplicates()
        raise _part_of_a_run(replaced.merge(short), told, path)


def _replaced(whole: Whole, rows: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Such known numbers as new ones would replace, those of the same command aside: run again."""
    new = whole.of(rows)
    if new.empty or known.empty:
        return known[:0]
    key = [column for column in KEY[:-1] if column not in whole.outcome]
    replaced = whole.of(known).merge(new[key].drop_duplicates())
    return replaced[~replaced["command"].isin(new["command"].dropna())]


def _parts(whole: Whole, rows: pd.DataFrame, run: list[str]) -> pd.DataFrame:
    """What some rows offer to such numbers to be made of, by run."""
    counted = rows[_fits(rows["setting"], whole.among)]
    return counted[[*run, *whole.over]].dropna(subset=list(whole.over)).drop_duplicates()


def _check_choice(whole: Whole, rows: pd.DataFrame, known: pd.DataFrame, path: Path) -> None:
    """Refuse numbers chosen from others than the known ones, where only commands say from which.

    Known rows without a command are left to `_check_parameters`.
    """
    for before, replaced in _replaced(whole, rows, known).groupby("command"):
        grid = _grid(before, whole, path)
        if any(_grid(now, whole, path) != grid for now in rows["command"].unique()):
            said = " ".join(f"-p {name} {value}" for name, value in grid.items())
            raise _part_of_a_run(replaced, f"chosen from {said or 'the usual grid'}", path)


def _grid(command: Any, whole: Whole, path: Path) -> dict[str, str]:
    """What a command says such numbers are chosen from."""
    given = _given(command, path)
    return {name: given[name] for name in whole.given if name in given}


def _check_parameters(both: pd.DataFrame, path: Path) -> None:
    """Refuse numbers that a page made with other parameters than the known ones beside them, where
    they differ: whatever a parameter does, it cannot lower a recorded number unseen.

    A known row without a command is kept: nothing tells what made it.
    """
    replaces = both["config_known"].isna() | (both["config_known"] == both["config"])
    same = np.isclose(both["value"], both["value_known"], rtol=SAME, atol=0, equal_nan=True)
    changed = both[replaces.fillna(False) & ~same & both["command"].notna()]
    made_by = ["command", "command_known"]
    for (command, command_known), replaced in changed.groupby(made_by, dropna=False):
        such = f"{path} holds numbers ({len(replaced)}), such as {_in_words(replaced.iloc[0])},"
        kept = "and these rows would replace them by others. Nothing was recorded:"
        if pd.isna(command_known):
            raise InputError(f"{such} that name no command, {kept} {RECORD_ANEW}")
        now, before = _given(command, path), _given(command_known, path)
        for name in {**before, **now}:
            given, known = now.get(name), before.get(name)
            if _is_another(name, given, known):
                made = f"made with {_told(name, known)}, not {_told(name, given)}"
                again = f"run it so again (`{command_known} -p record True`)"
                raise InputError(f"{such} {made}, {kept} {again}, or {RECORD_ANEW}")


def _is_another(name: str, given: str | None, known: str | None) -> bool:
    """Whether a parameter of a page makes other numbers, or of less, than the value known."""
    if given == known or name in OF_KEY:
        return False
    if name not in NAME_NO_ROWS and (given or known or "").startswith("["):
        return False
    if known is None and given in ("0", "false"):  # All, or a choice that did not exist
        return False
    if name in AMOUNTS and given and known and f"{given}{known}".isdecimal():
        return int(known) == 0 or 0 < int(given) < int(known)
    return True


def _told(name: str, value: str | None) -> str:
    """A parameter as a command gives it."""
    return f"no {name}" if value is None else f"-p {name} {value}"


def _in_words(row: "pd.Series[Any]") -> str:
    """What a row is a number of."""
    return ", ".join(str(row[name]) for name in NAMES[2:10] if not pd.isna(row[name]))


def _part_of_a_run(replaced: pd.DataFrame, made_of: str, path: Path) -> InputError:
    """What is said of known rows that those of a part of their run would replace."""
    named = _in_words(replaced.iloc[0])
    commands = replaced["command"].dropna()
    command = f" (`{commands.iloc[0]} -p record True`)" if len(commands) else ""
    return InputError(
        f"{path} holds numbers of a whole run ({len(replaced)}), such as {named}, {made_of}; "
        "these rows are of a part of it and would replace them. Nothing was recorded: "
        f"run all of it{command}, or {RECORD_ANEW}"
    )


def _fits(texts: pd.Series, pattern: str) -> Any:
    """Which texts (n,) a pattern describes from end to end; a missing one is empty."""
    if pattern == ".*":
        return np.ones(len(texts), bool)
    codes, distinct = pd.factorize(texts.fillna(""))  # many rows say the same
    return np.array([re.fullmatch(pattern, text) is not None for text in distinct], bool)[codes]


def _given(command: Any, path: Path) -> dict[str, str]:
    """The values that a command, if there is one, gives to parameters of its page.

    Raises:
        InputError: for one that no shell could read, which tells nothing of what made a row.
    """
    try:
        words = [] if pd.isna(command) else shlex.split(command)
    except ValueError as error:
        fault = f"the command {command!r} of a row cannot be read ({error})"
        raise InputError(f"{path}: {fault}. Nothing was recorded: {RECORD_ANEW}") from error
    if words[:2] != ["repro", "run"]:
        return {}
    return dict(zip(words[4::3], words[5::3], strict=False))  # repro run PAGE -p NAME VALUE …


def recorded_rows(experiment: str) -> pd.DataFrame:
    """The recorded rows of an experiment with their `parsed` columns; an empty frame where none
    exist.

    Text is held as Python strings: some thirty columns then move as one whenever rows are picked.
    """
    path = results_folder() / f"{experiment}.parquet"
    _refuse_missing(path, _read_digests(path.parent) or {})
    if not path.is_file():
        return _in_one_block(make_rows([]))
    _refuse_unlisted(path.parent)
    return _read_once(path, _verified(path)).copy()


@lru_cache(maxsize=8)  # A page and its claims ask for the same few files a hundred times
def _read_once(path: Path, content: bytes) -> pd.DataFrame:
    return _in_one_block(_rows_of(path, content))


def _in_one_block(rows: pd.DataFrame) -> pd.DataFrame:
    """Parsed rows, their text as Python strings."""
    found = parsed(rows)
    return found.astype(dict.fromkeys(found.select_dtypes("string"), object)).copy()
