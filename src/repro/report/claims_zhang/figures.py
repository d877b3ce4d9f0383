"""Claims on score against size, ZHANG-S42-1 … 14 and ZHANG-C-1 … 3: what each page of a task can judge.

Scores in points, losses in per cent of full size. A size of the paper's encoders is read as the same share of ours.
"At every size" is judged where the claim is weakest.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from repro.methods import FULL_SIZE, ZHANG_METHODS
from repro.report.claims_zhang.everywhere import on_every_task
from repro.report.claims_zhang.leads import WITHIN, absent, encoders_of, equivalent, full_size, lead, playing
from repro.report.judge import Estimate, effect, estimates, lowest, mean, sameness
from repro.report.verdict import Measurement

POINT = 1.0
"""what counts as no loss, in points"""


def figure2(rows: pd.DataFrame) -> list[Measurement]:
    """What STS-B can say, the kernel's eigenvalues included."""
    found = [*on_every_task(rows, "STS-B"), *_negative_eigenvalues(rows)]
    if simcse := playing(rows, "simcse"):
        found += [*_pca_above_full(rows, simcse), *_alike("ZHANG-S42-5", rows, simcse, "KPCA", "STS-B")]
        found += _levelled(rows, simcse)
    for role in ("mpnet", "simcse"):
        if encoder := playing(rows, role):
            at = _over_settings(rows, encoder, "SVD", "PCA")
            if at:
                what = f"STS-B, {encoder}: SVD less PCA, mean over sizes"
                found.append(effect("ZHANG-S42-4", mean(at), what, direction=-1))
            found += _best_over_full(rows, encoder, "STS-B")
    if mpnet := playing(rows, "mpnet"):
        found += _random_projection(rows, mpnet)
    return found


def figure3(rows: pd.DataFrame) -> list[Measurement]:
    """What TREC can say."""
    found = [*on_every_task(rows, "TREC"), *_rough(rows, "TREC")]
    for encoder in encoders_of(rows):
        found += _alike("ZHANG-S42-3", rows, encoder, "SVD", "TREC")
    if simcse := playing(rows, "simcse"):
        found += _alike("ZHANG-S42-5", rows, simcse, "KPCA", "TREC")
    return [*found, *_kernel_worse(rows, "TREC"), *_named_gains(rows, ("roberta", "xlm-r"), "TREC")]


def figure4(rows: pd.DataFrame) -> list[Measurement]:
    """What SICK-E can say."""
    found = [*on_every_task(rows, "SICK-E"), *_rough(rows, "SICK-E"), *_kernel_worse(rows, "SICK-E")]
    found += _named_gains(rows, ("roberta", "xlm-r"), "SICK-E")
    if xlm := playing(rows, "xlm-r"):
        return [*found, *_svd_saves_xlm(rows, xlm)]
    return [*found, absent("ZHANG-C-1", "paraphrase-xlm-r-multilingual-v1")]


def _over_settings(rows: pd.DataFrame, encoder: str, winner: str, rival: str) -> list[Estimate]:
    return [e for setting in WITHIN for e in lead(rows, encoder, winner, rival, setting).values()]


def _alike(claim: str, rows: pd.DataFrame, encoder: str, method: str, task: str) -> list[Measurement]:
    """Mean absolute difference of a method to PCA over sizes and both settings."""
    at = _over_settings(rows, encoder, method, "PCA")
    if not at:
        return []
    size = mean([Estimate(abs(e.value), e.half, e.seeds) for e in at])
    what = f"{task}, {encoder}: mean absolute difference of {method} and PCA"
    return [sameness(claim, size, what, margin=POINT)]


def _pca_above_full(rows: pd.DataFrame, encoder: str) -> list[Measurement]:
    full, _ = full_size(rows, encoder)
    least = equivalent(150, "simcse", full)
    at = {(d, s): e for s in WITHIN for d, e in lead(rows, encoder, "PCA", FULL_SIZE, s).items() if d > least}
    if not at:
        return []
    (d, setting), e = min(at.items(), key=lambda item: item[1].value)
    what = f"STS-B, {encoder}: smallest lead of PCA over full size above {least:.0f} dims ({d}, {setting})"
    return [effect("ZHANG-S42-2", e, what)]


def _levelled(rows: pd.DataFrame, encoder: str) -> list[Measurement]:
    """How many of the five lose at most a point from their largest size to 300 of the paper's 1,024."""
    full, _ = full_size(rows, encoder)
    at = {method: lead(rows, encoder, method, FULL_SIZE, "inductive") for method in ZHANG_METHODS}
    shared = set.intersection(*(set(leads) for leads in at.values()))
    if len(shared) < 2:
        return []
    near = min(shared, key=lambda d: abs(d - equivalent(300, "simcse", full)))
    gains = {method: leads[max(leads)] - leads[near] for method, leads in at.items()}
    count, small, large = (
        sum(bound <= POINT for bound in bounds)
        for bounds in zip(*((e.value, e.high, e.low) for e in gains.values()), strict=True)
    )
    seen = ", ".join(f"{method} {e.value:.1f}" for method, e in gains.items())
    seeds = int(rows["seed"].nunique())
    what = f"STS-B, {encoder}: methods of five that are level at {near} of {full} dims (gain beyond: {seen})"
    return [Measurement("ZHANG-S42-14", "effect", count, small, large, null=2.5, seeds=seeds, what=what)]


def _best_over_full(rows: pd.DataFrame, encoder: str, task: str) -> list[Measurement]:
    at = {(m, s, d): e for m in ZHANG_METHODS for s in WITHIN for d, e in lead(rows, encoder, m, FULL_SIZE, s).items()}
    if not at:
        return []
    (method, setting, d), e = max(at.items(), key=lambda item: item[1].value)
    what = f"{task}, {encoder}: best of all reduced less full size ({method}, {setting}, {d} dims)"
    return [effect("ZHANG-S42-12", e, what)]


def _named_gains(rows: pd.DataFrame, roles: Iterable[str], task: str) -> list[Measurement]:
    """Gains over full size that the paper reports for encoders without a stand-in: any method, and kernel PCA."""
    found = []
    for role in roles:
        encoder = playing(rows, role)
        if encoder is None:
            continue
        found += _best_over_full(rows, encoder, task)
        at = {(s, d): e for s in WITHIN for d, e in lead(rows, encoder, "KPCA", FULL_SIZE, s).items()}
        if at and (role, task) != ("xlm-r", "TREC"):
            (setting, d), e = max(at.items(), key=lambda item: item[1].value)
            what = f"{task}, {encoder}: best of KPCA less full size ({setting}, {d} dims)"
            found.append(effect("ZHANG-C-2", e, what))
    if not any(m.claim_id == "ZHANG-C-2" for m in found):
        found.append(absent("ZHANG-C-2", "msmarco-roberta-base-v2 and paraphrase-xlm-r-multilingual-v1"))
    return found


def _svd_saves_xlm(rows: pd.DataFrame, encoder: str) -> list[Measurement]:
    found = []
    for setting in WITHIN:
        at = lead(rows, encoder, "SVD", FULL_SIZE, setting)
        if at:
            d, e = max(at.items(), key=lambda item: item[1].value)
            found.append(effect("ZHANG-C-1", e, f"SICK-E, {encoder}: best of SVD less full size ({setting}, {d} dims)"))
    gaps = {m: lead(rows, encoder, m, "PCA", "transductive") for m in ZHANG_METHODS[1:]}
    over = {m: mean(list(at.values())) for m, at in gaps.items() if at}
    if over:
        method, e = min(over.items(), key=lambda item: item[1].value)
        found.append(effect("ZHANG-C-1", e, f"SICK-E, {encoder}: {method}, the lowest of the others, less PCA"))
    return found


def _random_projection(rows: pd.DataFrame, encoder: str) -> list[Measurement]:
    full, _ = full_size(rows, encoder)
    least = equivalent(200, "mpnet", full)
    at = {d: e for d, e in lead(rows, encoder, "GRP", FULL_SIZE, "inductive").items() if d > least}
    found = []
    if at:
        d, e = lowest(at)
        what = f"STS-B, {encoder}: largest loss of GRP above {least:.0f} dims ({d} dims)"
        found.append(effect("ZHANG-C-3", Estimate(-e.value, e.half, e.seeds), what, null=3 * POINT, direction=-1))
    # below the lowest of the others: the largest of the three leads
    over = [lead(rows, encoder, "GRP", other, "inductive") for other in ("PCA", "SVD", "KPCA")]
    shared = [d for d in set.intersection(*(set(o) for o in over)) if d > least]
    if shared:
        highest = {d: max((o[d] for o in over), key=lambda e: e.value) for d in shared}
        d, e = max(highest.items(), key=lambda item: item[1].value)
        what = f"STS-B, {encoder}: GRP less the lowest of PCA, SVD and KPCA, largest ({d} dims)"
        found.append(effect("ZHANG-C-3", e, what, direction=-1))
    return found


def _kernel_worse(rows: pd.DataFrame, task: str) -> list[Measurement]:
    encoder = playing(rows, "mpnet")
    at = [] if encoder is None else _over_settings(rows, encoder, "KPCA", "PCA")
    if not at:
        return []
    behind = mean([Estimate(-e.value, e.half, e.seeds) for e in at])
    what = f"{task}, {encoder}: PCA less KPCA, mean over sizes, beyond a point"
    return [effect("ZHANG-S42-6", behind, what, null=POINT)]


def _rough(rows: pd.DataFrame, task: str) -> list[Measurement]:
    kept = rows[rows["metric"] == "roughness_lead"]
    at = {(str(b), str(s)): group for (b, s), group in kept.groupby(["backbone", "setting"])}
    if not at:
        return []
    found = {key: next(iter(estimates(group.assign(dim=0)).values())) for key, group in at.items()}
    (encoder, setting), e = min(found.items(), key=lambda item: item[1].value)
    what = f"{task}: roughness of the autoencoder less the roughest other, smallest ({encoder}, {setting})"
    return [effect("ZHANG-S42-10", e, what)]


def _negative_eigenvalues(rows: pd.DataFrame) -> list[Measurement]:
    """The smallest eigenvalue over encoders and kernels; below rounding is the claim."""
    kept = rows[rows["metric"] == "smallest_eigenvalue"]
    if kept.empty:
        return []
    worst = kept.loc[kept["value"].idxmin()]
    # a share of 1e-12 of the largest is what rounding can do: in units of it, so that a table shows it
    value = float(np.sign(worst["value"]) * np.log10(max(abs(worst["value"]) / 1e-12, 1.0)))
    what = (
        f"smallest eigenvalue of {worst['method']} on {worst['backbone']} ({worst['value']:.1e} of the largest): "
        "sign × orders of magnitude above rounding (1e-12)"
    )
    seeds = int(kept["seed"].nunique())
    return [Measurement("ZHANG-S42-7", "effect", value, value, value, direction=-1, seeds=seeds, what=what)]
