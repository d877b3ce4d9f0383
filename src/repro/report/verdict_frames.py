"""Verdicts as frames, a line a measurement: computed from rows, kept in the store, and left by a
page for the scorecard.
"""

import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from repro import paths
from repro.digests import digest
from repro.manifests import sha256
from repro.paths import PACKAGE
from repro.reading import is_out_of_memory
from repro.report.claims import OfExperiment, record_of
from repro.report.kinds import KINDS
from repro.report.outcomes import OUTCOMES
from repro.report.speakers import placed
from repro.report.verdict import Measurement
from repro.results import results_folder
from repro.rows import without_origin
from repro.store import Store
from repro.writing import replacing

log = logging.getLogger(__name__)
COLUMNS = [
    "claim_id",
    "what",
    "kind",
    "network",
    "paper",
    "value",
    "low",
    "high",
    "unit",
    "extreme",
    "verdict",
    "why",
    "briefly",
    "chance",
    "test",
    "scope",
    "seeds",
    "null",
    "direction",
    "margin",
]
"""What is kept of a measurement."""


def verdict_frame(
    kind: str,
    measurements: Iterable[Measurement],
    rows: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Measurements of one kind of number with their verdicts, one line each; their rows say who
    speaks, if given.
    """
    lines = []
    for m in measurements if rows is None else placed(measurements, rows):
        record_of(m.claim_id)  # Which has to be known
        verdict_fields = {
            "verdict": m.verdict,
            "why": m.why,
            "briefly": m.briefly,
            "chance": m.chance,
        }
        lines.append({**asdict(m), "kind": kind, **verdict_fields})
    return pd.DataFrame(lines, columns=COLUMNS)


def recorded_frame(
    judged: Callable[[pd.DataFrame], list[Measurement]],
    rows: pd.DataFrame,
    speaking: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """The verdicts of recorded rows, in which `speaking`, by default they themselves, say who
    speaks.

    While the book is built, those of a document's table are kept in the store: several pages show
    the same. Elsewhere they are computed and nothing is written, since folders may be read-only.
    """
    speaking = rows if speaking is None else speaking

    def lines() -> list[dict[str, Any]]:
        return verdict_frame("recorded", judged(rows), speaking).to_dict("records")

    if not isinstance(judged, OfExperiment) or not os.environ.get("REPRO_BOOK"):
        return pd.DataFrame(lines(), columns=COLUMNS)
    # Premises read other recorded rows, and rules the tables of claims and of printed values
    read = [path for path in PACKAGE.rglob("*") if path.suffix in (".toml", ".csv")]
    read += results_folder().glob("*.parquet")
    key = {
        "experiment": judged.experiment,
        "options": judged.options,
        "rows": [_digest_of(rows), _digest_of(speaking)],
        "files": sorted(map(sha256, read)),
    }
    code = (*judged.code, __name__)
    return pd.DataFrame(Store().remember("verdicts", key, lines, code=code), columns=COLUMNS)


def _digest_of(rows: pd.DataFrame) -> str:
    """Digest of what claims read of rows, in their order."""
    rows = without_origin(rows)
    hashed = pd.util.hash_pandas_object(rows, index=False).to_numpy()
    return digest({"columns": list(rows.columns), "rows": hashed})


def verdicts_folder() -> Path:
    """Where the pages of the book leave their verdicts for the scorecard: beside the build they
    belong to.
    """
    return paths.project_root() / "_build" / "verdicts"


def write_verdicts(page: str, *frames: pd.DataFrame) -> None:
    """Leave a page's verdicts behind for the scorecard, whole or not at all.

    Only while the book is built (`REPRO_BOOK` is set): other runs must not speak for the book.
    """
    if not os.environ.get("REPRO_BOOK"):
        return
    path = paths.inside(verdicts_folder(), f"{page}.parquet")
    joined = pd.concat(
        [frame for frame in frames if len(frame)] or list(frames[:1]),
        ignore_index=True,
    )
    with replacing(path) as partial:
        joined.assign(page=page).to_parquet(partial, index=False, write_page_checksum=True)


def read_verdicts() -> pd.DataFrame:
    """The verdicts of all pages built so far; a damaged file is left out with a warning, the next
    build mends it.
    """
    frames = [verdict_frame("live", []).assign(page="")]
    for path in sorted(verdicts_folder().glob("*.parquet")):
        try:
            of_page = pd.read_parquet(path, page_checksum_verification=True)
            for column, words in (("verdict", OUTCOMES), ("kind", KINDS), ("page", [path.stem])):
                if not set(of_page[column]) <= set(words):
                    raise ValueError(
                        f"its column {column} holds other words than {', '.join(words)}"
                    )
            frames.append(of_page[frames[0].columns])
        except Exception as error:  # Damage shows in whatever the reader stumbles over
            if is_out_of_memory(error):
                raise
            log.warning(
                "%s holds no verdicts that can be read (%s): left out, `repro book` makes it anew",
                path,
                error,
            )
    return pd.concat([frame for frame in frames if len(frame)] or frames, ignore_index=True)
