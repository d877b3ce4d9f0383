"""What every page of the book does around its own method: settings, provenance, recorded rows, verdicts, recording."""

import json
import shlex
import sys
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from repro import data
from repro.config import PROFILES, Profile
from repro.config import profile as profile_named
from repro.report import compare, tables
from repro.report.tables import Shown
from repro.report.verdict import Measurement
from repro.rows import record, recorded_rows
from repro.store import Store

Judged = Callable[[pd.DataFrame], list[Measurement]]
"""rows to what they measure of the page's claims"""


def parameters_now() -> dict[str, Any]:
    """The parameters of the notebook that asks: the annotated names of `__main__`, which its first cell declares."""
    main = sys.modules["__main__"]
    return {name: deepcopy(getattr(main, name)) for name in getattr(main, "__annotations__", {})}


def command(page: str, parameters: Mapping[str, Any]) -> str:
    """What runs a page again with the same parameters; of a network's folder only its name, which others have too."""

    def said(value: Any) -> Any:
        if isinstance(value, list):
            return [said(each) for each in value]
        return Path(value).name if isinstance(value, str) and Path(value).is_dir() else value

    given = {name: said(value) for name, value in parameters.items() if value is not None and name != "record"}
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in given.items()}
    return shlex.join(["repro", "run", page, *(word for item in texts.items() for word in ("-p", *item))])


@dataclass(frozen=True)
class Page:
    """One page: its name, the experiment its rows belong to, and the parameters that all pages have."""

    name: str
    """of the notebook, without `.md`"""
    experiment: str
    """name of its rows, and of their file in `results/`"""
    profile: str = "embedded"
    source: str | None = None
    """local, hub or microworld; None: the profile's, else local files if REPRO_DATA is set"""
    seed: int = 0
    record: bool = False
    parameters: Mapping[str, Any] = field(default_factory=parameters_now, repr=False)
    """of the notebook, as they were before its code went on"""

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
        source = {"data_source": self.data_source, "seed": self.seed}
        return {"experiment": self.experiment, "profile": self.profile, **source}

    def settings(self, **changes: Any) -> Profile:
        """The profile's configuration with the page's source and seed, and what the reader changed; None keeps it."""
        return profile_named(self.profile, source=self.data_source, seed=self.seed, **changes)

    @cached_property
    def recorded(self) -> pd.DataFrame:
        """The experiment's recorded rows, of all networks; without one, an empty frame."""
        return recorded_rows(self.experiment)

    def badges(self, live: pd.DataFrame, recorded: pd.DataFrame | None = None) -> Shown:
        """Where the live and the recorded numbers come from, a line each."""
        recorded = self.recorded if recorded is None else recorded
        return _together([tables.badge(live), tables.badge(recorded, "recorded")])

    def close(self, live: pd.DataFrame, judged: Judged | None = None, recorded: pd.DataFrame | None = None) -> Shown:
        """Judge the page's claims by its recorded and its live rows, and record the live ones if that was asked for.

        Args:
            live: rows of this run.
            judged: what rows measure of the claims; None on a page that judges none.
            recorded: recorded rows that bear on the claims; by default all of the experiment.
        """
        recorded = self.recorded if recorded is None else recorded
        said: list[Shown] = []
        if judged is not None:
            kinds = {"recorded": recorded, "live": live} if len(recorded) else {"live": live}
            frames = [compare.verdict_frame(kind, judged(rows), rows) for kind, rows in kinds.items()]
            compare.write_verdicts(self.name, *frames)
            statements = compare.claims().set_index("claim_id")["statement"].to_dict()
            said.append(tables.verdict_table(pd.concat(frames, ignore_index=True), statements))
        if self.record:
            written = ", ".join(map(str, record(live.assign(command=command(self.name, self.parameters)))))
            said.append(Shown(f"<p>recorded: {written}</p>", f"recorded: {written}"))
        return _together(said)


def _together(parts: list[Shown]) -> Shown:
    return Shown("".join(part.html for part in parts), "\n\n".join(part.markdown for part in parts))
