"""The advisor on trial: what it says without labels, beside what labels say, on every task at hand (PROTOCOLS §7.6)."""

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from dimadvise import advise
from dimadvise.inputs import judged_texts
from repro import data
from repro.config import Profile
from repro.evaluation.retention import NoShareError
from repro.rows import make_rows
from repro.runs.encoders import NamedEncoder, load_encoders
from repro.sets import DataSet
from repro.store import Store
from repro.terminal import complain
from repro.types import InputError
from rivals import SYSTEMS, Missing, SystemConfig, load_system

FULL = "full size"


def named_encoders(names: Sequence[str], profile: Profile, source: str, store: Store) -> Iterator[NamedEncoder]:
    """Each encoder by its name; a system whose vectors are not at hand is left out with a warning.

    Args:
        names: systems such as `glove` or `bert_avg`, the profile's `trained`, shipped names, folders or hub ids.
        profile: whose backbone `trained` and the systems take.
        source: where word vectors come from.
        store: where trained encoders are kept.
    """
    for name in names:
        if name not in SYSTEMS:
            yield from load_encoders([name], profile, store)
            continue
        settings = SystemConfig(source, profile=profile.name, backbone=profile.train.backbone, seed=profile.train.seed)
        try:
            loaded = load_system(name, settings, store)
        except Missing as missing:
            complain(f"left out: {name}: {missing}")
            continue
        yield NamedEncoder(loaded.line, loaded.encoder, loaded.identity)


def judged_tasks(names: Sequence[str], source: str, *, rows: int | None, queries: int | None) -> dict[str, DataSet]:
    """The labelled sets that answers are judged by: pairs of the test split, all texts of a classification.

    Args:
        names: of graded pairs, labelled texts or retrieval sets.
        source: local, hub or microworld.
        rows: pairs or texts kept of each, drawn at random; None keeps all.
        queries: the same of a retrieval set, with the documents judged for them.
    """
    found: dict[str, DataSet] = {}
    for name in names:
        kind = data.get_spec(name).kind
        loaded = data.load(name, source=source, split="all" if kind == "texts" else None)
        found[name] = data.take(loaded, queries if kind == "retrieval" else rows)
    return found


def retention_rows(
    encoder: NamedEncoder,
    name: str,
    task: DataSet,
    store: Store,
    *,
    reducers: Sequence[str],
    seed: int = 0,
    **shared: Any,
) -> pd.DataFrame:
    """What the advisor sees of one encoder on one task, by reducer and size.

    Metrics: `share_kept` with its lower bound in ci_low, `predicted`, `neighbours_kept`; and, at the full size, the
    score, the number of labelled items and the participation ratio. The number of rows that reducers were fitted on is
    n_train. No row where the full-size score may be zero, of which the terminal tells.

    Args:
        encoder: whose embeddings.
        name: what the task is called.
        task: graded pairs, labelled texts or a retrieval set.
        store: where embeddings are kept.
        reducers: tried side by side; bounds of two are of 97.5 % each.
        seed: of folds and resamples.
        shared: columns of every row.

    Raises:
        InputError: for a set without labels.
    """
    texts, fit, evidence = judged_texts(task)
    if evidence is None:
        raise InputError(f"{name} has neither scores nor labels nor relevant documents: nothing to judge sizes by")
    X = encoder.embed({name: {name: task}}, store)[texts]
    try:
        found = advise({None: X}, fit_rows=fit, evidence=evidence, reducers=reducers, seed=seed)
    except NoShareError as error:
        complain(f"left out: {encoder.name} on {name}: {error}")
        return make_rows([], **shared)
    rows: list[dict[str, Any]] = [
        {"metric": "participation_ratio", "value": found.intrinsic["participation ratio"], "dim": found.full_dim},
        {"metric": evidence.metric, "value": found.reference, "dim": found.full_dim},
        {"metric": "items", "value": float(found.items), "dim": found.full_dim},
    ]
    rows = [{**row, "method": FULL} for row in rows]
    for c in found.candidates:
        at = {"method": c.reducer, "dim": c.dim}
        rows.append({**at, "metric": "share_kept", "value": c.share, "ci_low": c.low})
        rows.append({**at, "metric": "predicted", "value": c.predicted})
        rows.append({**at, "metric": "neighbours_kept", "value": c.neighbours})
    return make_rows(rows, backbone=encoder.name, dataset=name, seed=seed, n_train=found.rows, **shared)
