"""What every page of the book does around its own method: settings, provenance, recorded rows,
verdicts, recording.
"""

import json
import shlex
import sys
from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from repro import data
from repro.config import PROFILES, Profile
from repro.config import profile as profile_named
from repro.loaded import read_loaded
from repro.printed import small_run, told_before
from repro.report.badges import badge
from repro.report.speakers import nearness
from repro.report.tables import Shown
from repro.report.verdict import Measurement
from repro.report.verdict_frames import recorded_frame, verdict_frame, write_verdicts
from repro.report.verdict_table import verdict_table
from repro.results import check_recordable, record, recorded_rows
from repro.store import Store
from repro.terminal import complain, complain_of_warnings
from repro.types import InputError

TRAINING = (
    *("max_length", "warmup", "batch_size", "preset", "examples"),
    *("check_every", "bf16"),
)
"""Parameters of pages that go to their trainings as they are."""
TEXTS = "texts"  # A parameter whose values may be equal: sentences of a reader's own
SEEDS = ("seed", "seeds", "starts")
"""Parameters that are any whole numbers."""
REAL = (
    *("dropout", "keep", "learning_rate", "margin", "p", "perplexity", "recall", "target"),
    *("threshold", "warmup"),
)
"""Parameters that need not be whole numbers; what uses them knows their limits."""
ZERO_SAYS = (
    *("documents", "pairs", "paragraphs", "probe_rows", "queries", "questions", "rows", "words"),
    *("examples", "folds", "steps"),
)
"""Parameters of which 0 says something: to keep all, or to do without."""
SHARES = ("shares", "targets")
"""Parameters that are lists of shares."""
# Rows to what they measure of the page's claims
Judged = Callable[[pd.DataFrame], list[Measurement]]


def parameters_now() -> dict[str, Any]:
    """The parameters of the notebook that asks: the annotated names of `__main__`, which its first
    cell declares.
    """
    main = sys.modules["__main__"]
    return {name: deepcopy(getattr(main, name)) for name in getattr(main, "__annotations__", {})}


def command(page: str, parameters: Mapping[str, Any]) -> str:
    """What runs a page again with the same parameters; of a network's folder only its name, which
    others have too.
    """

    def said(value: Any) -> Any:
        if isinstance(value, list):
            return [said(each) for each in value]
        is_folder = isinstance(value, str) and (Path(value).is_absolute() or Path(value).is_dir())
        return Path(value).name if is_folder else value

    plain_values = {
        name: said(value)
        for name, value in parameters.items()
        if value is not None and name != "record"
    }
    texts = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in plain_values.items()
    }
    return shlex.join(
        ["repro", "run", page, *(word for item in texts.items() for word in ("-p", *item))]
    )


@dataclass(frozen=True)
class Page:
    """One page: its name, the experiment its rows belong to, and the parameters that all pages
    have.
    """

    name: str  # Of the notebook, without `.md`
    experiment: str  # Name of its rows, and of their file in `results/`
    profile: str = "embedded"
    # Local, hub or microworld; None: the profile's, else local files if REPRO_DATA is set
    source: str | None = None
    seed: int = 0
    record: bool = False
    may_be_empty: Collection[str] = ()
    """Names of parameters that are lists of something the page can do without."""
    least: Mapping[str, int] = field(default_factory=dict)
    """Of parameters that need more than one of something, so many; 0 still says what it does."""
    parameters: Mapping[str, Any] = field(default_factory=parameters_now, repr=False)
    """Of the notebook, as they were before its code went on."""

    def __post_init__(self) -> None:
        complain_of_warnings()
        read_loaded()  # It may run for hours, in which code is edited
        for name, value in self.parameters.items():
            if value == [] and name not in self.may_be_empty:
                raise InputError(f"{name} is []: expected one value or more")
            if isinstance(value, list) and name != TEXTS:
                _refuse_repeated(name, value)
            _refuse_out_of_range(name, value, self.least.get(name, 1))
        for line in told_before(self.name, self.parameters):
            complain(line)
        if self.record:
            check_recordable()
        if self.parameters and self.data_source == "hub":
            from repro.data.senteval import keep  # Brings pyarrow

            keep()  # Here, so that what cannot be fetched is told before anything is trained

    @cached_property
    def store(self) -> Store:
        """Where trainings and encodings are kept."""
        return Store()

    @cached_property
    def data_source(self) -> str:
        """Where the data come from."""
        return self.source or PROFILES[self.profile].source or data.default_source()

    @property
    def shared(self) -> dict[str, Any]:
        """Columns that all rows of the page share."""
        return {
            name: getattr(self, name) for name in ("experiment", "profile", "data_source", "seed")
        }

    @property
    def training(self) -> dict[str, Any]:
        """What the page's parameters say of lengths, warm-up, batches and AnglE's weights; None
        where they leave it.
        """
        return {name: self.parameters[name] for name in TRAINING if name in self.parameters}

    def settings(self, **changes: Any) -> Profile:
        """The profile's configuration with the page's source and seed, how its parameters say to
        train, and what the reader changed; None keeps it.
        """
        parameters: dict[str, Any] = (
            {"source": self.data_source, "seed": self.seed} | self.training | changes
        )
        return profile_named(self.profile, **parameters)

    @cached_property
    def recorded(self) -> pd.DataFrame:
        """The experiment's recorded rows, of all networks; without one, an empty frame."""
        return recorded_rows(self.experiment)

    def past(self, backbone: str | None) -> pd.DataFrame:
        """Recorded rows of one network: the reader's where it has some, else the one nearest to the
        paper's.
        """
        networks = sorted(self.recorded["backbone"].dropna().unique(), key=nearness)
        asked_names = (backbone, Path(backbone or "").name)  # A folder is recorded under its name
        network = next(
            (name for name in networks if name in asked_names), next(iter(networks), None)
        )
        return self.recorded[self.recorded["backbone"] == network]

    def kept(self, number: int | None, real: int, generated: int) -> int | None:
        """How much is kept: what the reader says, 0 for all; else the few of `embedded`, of
        generated text fewer.
        """
        few = generated if self.data_source == "microworld" else real
        return number or (few if number is None and self.profile == "embedded" else None)

    def badges(self, live: pd.DataFrame, recorded: pd.DataFrame | None = None) -> Shown:
        """Where the live and the recorded numbers come from, a line each."""
        recorded = self.recorded if recorded is None else recorded
        return _together([badge(live, small=small_run(self.name)), badge(recorded, "recorded")])

    def close(
        self,
        live: pd.DataFrame,
        judged: Judged | None = None,
        recorded: pd.DataFrame | None = None,
        *,
        judged_past: Judged | None = None,
    ) -> Shown:
        """Judge the page's claims by its recorded and its live rows, and record the live ones if
        that was asked for.

        Args:
            live: rows of this run.
            judged: what rows measure of the claims; None on a page that judges none.
            recorded: recorded rows that bear on the claims; by default all of the experiment. Those
                of the experiment itself say who speaks.
            judged_past: the same as `judged` of recorded rows, where live ones need options that
                those do not.
        """
        recorded = self.recorded if recorded is None else recorded
        shown: list[Shown] = []
        if judged is not None:
            speaking = recorded[recorded["experiment"] == self.experiment]
            of_past = judged_past or judged
            frames = [recorded_frame(of_past, recorded, speaking)] if len(recorded) else []
            frames.append(verdict_frame("live", judged(live), live))
            write_verdicts(self.name, *frames)
            shown.append(verdict_table(pd.concat(frames, ignore_index=True)))
        if self.record:
            written = ", ".join(
                map(str, record(live.assign(command=command(self.name, self.parameters))))
            )
            shown.append(Shown(f"<p>recorded: {escape(written)}</p>", f"recorded: {written}"))
        return _together(shown)


def _refuse_repeated(name: str, values: list[Any]) -> None:
    """Refuse a value that a list holds twice: its rows would be there twice as well."""
    for place, value in enumerate(values):
        if value in values[:place]:
            raise InputError(f"{name} has {value!r} twice: expected each value once")


def _refuse_out_of_range(name: str, value: Any, least: int) -> None:
    """Refuse a count or a size, or one in a list, of which nothing can be made: what uses it has
    another name for it.
    """
    if name in (*SEEDS, *REAL) or isinstance(value, bool):
        return
    if isinstance(value, int) and value < least and not (value == 0 and name in ZERO_SAYS):
        all_of_it = "0, or " if least > 1 and name in ZERO_SAYS else ""
        usual = 0 if least == 1 and name in ZERO_SAYS else least
        raise InputError(f"{name} is {value}: expected {all_of_it}{usual} or more")
    for each in value if isinstance(value, list) else ():
        if isinstance(each, int | float) and not each > 0:
            raise InputError(f"{name} holds {each}: expected numbers above 0")
        if isinstance(each, int) and each < least:
            raise InputError(f"{name} holds {each}: expected {least} or more")
        if name in SHARES and each > 1:
            raise InputError(f"{name} holds {each}: expected shares up to 1")


def _together(parts: list[Shown]) -> Shown:
    return Shown("".join(part.html for part in parts), "\n\n".join(part.markdown for part in parts))
