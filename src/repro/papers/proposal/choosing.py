"""The advisor on trial: what it says without labels, beside what labels say, on every task at hand (PROTOCOLS §7.6)."""

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from dimadvise import advise
from dimadvise.inputs import judged_texts
from repro.config import Profile
from repro.evaluation.retention import NoShareError
from repro.evaluation.stats import bootstrap_mean
from repro.methods import FULL_SIZE
from repro.papers.proposal.choosing_rules import BLIND, EVERY, HALF, KNEE, LABELS, LOOKING, TASK, UNSEEN, setting_of
from repro.report.tables import MISSING
from repro.report.verdict import Measurement
from repro.rows import make_rows
from repro.runs.lines import Named, load_encoders
from repro.sets import DataSet
from repro.store import Store
from repro.terminal import complain
from repro.types import InputError
from rivals import SYSTEMS, Missing, SystemConfig, load_system


def named_encoders(names: Sequence[str], profile: Profile, source: str, store: Store) -> Iterator[Named]:
    """Each encoder or system by name; a system whose vectors are not at hand is left out with a warning."""
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
        yield Named(loaded.line, loaded.encoder, loaded.identity)


def retention_rows(
    encoder: Named, name: str, task: DataSet, store: Store, *, reducers: Sequence[str], seed: int = 0, **shared: Any
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
    ratio = found.intrinsic["participation ratio"]
    facts = {"participation_ratio": ratio, evidence.metric: found.reference, "items": float(found.items)}
    full = {"method": FULL_SIZE, "dim": found.full_dim}
    rows: list[dict[str, Any]] = [{**full, "metric": metric, "value": value} for metric, value in facts.items()]
    for c in found.candidates:
        at = {"method": c.reducer, "dim": c.dim}
        rows.append({**at, "metric": "share_kept", "value": c.share, "ci_low": c.low})
        rows.append({**at, "metric": "predicted", "value": c.predicted})
        rows.append({**at, "metric": "neighbours_kept", "value": c.neighbours})
    return make_rows(rows, backbone=encoder.name, dataset=name, seed=seed, n_train=found.rows, **shared)


def rule_table(rows: pd.DataFrame, reducer: str, target: float) -> pd.DataFrame:
    """A line per rule with the errors of §7.6; factors are 2^|log₂(predicted / labelled)|.

    Args:
        rows: of `rule_rows`.
        reducer: pca or truncate.
        target: share of the score that is asked for.
    """
    whole = rows[rows["dataset"] == EVERY]
    lines = []
    for rule in LOOKING + BLIND:
        of = whole[whole["method"] == rule].groupby("setting")
        at, curve, unseen = (
            dict(of.get_group(setting)[["metric", "value"]].to_numpy()) if setting in of.groups else {}
            for setting in (
                setting_of(reducer, TASK, target),
                setting_of(reducer, TASK),
                setting_of(reducer, UNSEEN, target),
            )
        )
        if not at:
            continue
        strict = {"median, encoder unseen too": f"{2 ** unseen['log2_error_median']:.2f}"} if unseen else {}
        lines.append(
            {
                "rule": rule,
                "median factor": f"{2 ** at['log2_error_median']:.2f}",
                "worst": f"{2 ** at['log2_error_worst']:.1f}",
                **strict,
                "target met, %": f"{100 * at['target_met_share']:.0f}",
                "median size, % of D": f"{100 * at['share_of_size_median']:.0f}",
                "curve off by, points": f"{100 * curve['curve_error_mean']:.1f}" if curve else MISSING,
            }
        )
    return pd.DataFrame(lines)


def answer_table(rows: pd.DataFrame, reducer: str, target: float) -> pd.DataFrame:
    """A line per encoder and task: sizes by labels, and as each rule that looks at embeddings names them."""
    own = rows[(rows["metric"] == "answer") & (rows["setting"] == setting_of(reducer, TASK, target))]
    table = own.pivot_table(index=["backbone", "dataset", "dim"], columns="method", values="value", sort=False)
    table = table[[name for name in (LABELS, KNEE, *LOOKING, HALF) if name in table]].round().astype("Int64")
    return table.reset_index().rename(columns={"backbone": "encoder", "dataset": "task", "dim": "D"})


def against_half(rows: pd.DataFrame, reducer: str, target: float, *, seed: int = 0) -> pd.DataFrame:
    """How much nearer to labels each rule is than half of all dimensions: difference in |log₂|, with its verdict.

    Encoders share a task, so that tasks are resampled: a single one says little of others.
    """
    own = rows[(rows["metric"] == "log2_error") & (rows["setting"] == setting_of(reducer, TASK, target))]
    own = own[own["dataset"] != EVERY].assign(value=own["value"].abs())
    lines = []
    errors = own.pivot_table(index=["dataset", "backbone"], columns="method", values="value")
    for rule in LOOKING if len(own) else ():
        gain = (errors[HALF] - errors[rule]).groupby("dataset").mean()
        found = bootstrap_mean(gain.to_numpy(), seed=seed)
        lines.append(
            {
                "rule": rule,
                "by, in |log₂|": f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]",
                "tasks": len(gain),
                "nearer than half of D?": Measurement("", "effect", found.value, found.low, found.high).verdict,
            }
        )
    return pd.DataFrame(lines)
