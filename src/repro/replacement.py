"""Which recorded numbers new ones may replace: none of more items, of a whole run, or of other
parameters.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from repro.checksums import RECORD_ANEW
from repro.rows import KEY, NAMES
from repro.types import InputError


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
        f"{path} holds numbers of a whole run ({len(replaced)}), such as {named}, {made_of}; these "
        "rows are of a part of it and would replace them. Nothing was recorded: "
        f"run all of it{command}, or {RECORD_ANEW}"
    )


def _fits(texts: pd.Series, pattern: str) -> Any:
    """Which texts (n,) a pattern describes from end to end; a missing one is empty."""
    if pattern == ".*":
        return np.ones(len(texts), bool)
    codes, distinct = pd.factorize(texts.fillna(""))  # Many rows say the same
    fits = np.array([re.fullmatch(pattern, text) is not None for text in distinct], bool)
    return fits[codes]


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
    # Words of `repro run PAGE -p NAME VALUE …`
    names, values = words[4::3], words[5::3]
    return dict(zip(names, values, strict=False))
