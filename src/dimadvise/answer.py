"""From a request and what was opened for it to the advice: labels judge, recall is measured, and
the fewest bytes are chosen.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from dimadvise import advice
from dimadvise.advice import Judgement
from dimadvise.advisor import Advice
from dimadvise.coding import PRODUCT, Deployment
from dimadvise.files import Vectors
from dimadvise.findings import Findings, number_bytes, unprojected
from dimadvise.inputs import Case
from dimadvise.measure import DEPTH, Survey, survey
from dimadvise.request import Request
from dimadvise.screening import choose
from dimadvise.stores import check_store, holds, levels_of, paste
from dimadvise.transform import NESTED, TURNED
from dimadvise.ways import default_sizes
from repro.provenance import hardware
from repro.types import InputError

Chosen = tuple[int | None, int | None, Deployment | None]
"""Rows of the options that answer, as asked and with or without re-scoring, and how the first is
stored.
"""


def answered(case: Case, started: float) -> Advice:
    """Judge by labels, measure recall, and choose.

    Args:
        case: what is asked for, and what was opened for it.
        started: when, by `time.perf_counter`.
    """
    request, (criterion, _) = case.request, case.target
    _check_similarity(case)
    labelled = None
    if case.evidence is not None or criterion == "retain":
        labelled = _judged(case)
    judging = labelled if criterion != "recall" else None
    chosen = None if judging is None else judging.answer
    layer = case.last_layer if chosen is None else chosen.layer
    documents, queries = case.searched(layer)
    surveyed = _surveyed(case, documents, queries, judging)
    kind = case.versions[layer].kind  # Rows that were read are written out, and no longer tell it.
    full = number_bytes(kind) * documents.shape[1]
    if judging is None:
        row, other, deployment = _by_recall(case, surveyed, full)
    else:
        row, other, deployment = _by_labels(case, surveyed, judging, full)
    surveyed.options["answer"] = surveyed.options.index == row
    notes, measured = list(surveyed.notes), list(surveyed.measured)
    by_labels: dict[str, Any] = {}
    if labelled is not None:
        notes += labelled.notes
        measured = [*labelled.judged_by, *measured]
        by_labels = {"shares": labelled.shares_of(layer), "metric": labelled.metric}
        by_labels["predicted"] = labelled.predicted if criterion == "retain" else ()
    notes += _unsure(case, surveyed, documents.shape[0])
    seconds = time.perf_counter() - started
    findings = Findings(
        source=case.source + (f", layer {layer}" if len(case.versions) > 1 else ""),
        rows=documents.shape[0],
        full_dim=documents.shape[1],
        kind=kind,
        similarity=case.similarity,
        target=case.target,
        options=surveyed.options,
        notes=tuple(dict.fromkeys(notes)),
        measured=(*measured, f"Seed {request.seed}; {hardware()}; {seconds:.0f} s."),
        other_row=other,
        searched=surveyed.corpus,
        total=request.rows_total,
        **by_labels,
    )
    if deployment is None:
        return Advice(findings)
    fitted_on = surveyed.fitted if judging is None else judging.rows
    note = _note(case, findings, surveyed, {"layer": layer, "fitted_on": fitted_on})
    pasted = _pasted(request, deployment, case.versions[layer]) if request.store else ""
    return Advice(findings, deployment, note, pasted)


def _surveyed(
    case: Case,
    documents: Vectors,
    queries: Vectors | None,
    judging: Judgement | None,
) -> Survey:
    """Recall of every way worth measuring, that which labels chose among them."""
    chosen = None if judging is None else judging.answer
    return survey(
        documents,
        queries,
        replace(case.request, similarity=case.similarity),
        aim=case.target if judging is None else None,
        also=[] if chosen is None else [(chosen.method, chosen.dim, chosen.level)],
        unit=case.unit,
    )


def _pasted(request: Request, deployment: Deployment, vectors: Vectors) -> str:
    """What to give the store, for ids as the vectors have them."""
    are_texts = any(isinstance(name, str) for name in vectors.ids(0, 1))
    return paste(str(request.store), deployment, str(request.output), text_ids=are_texts)


def _check_similarity(case: Case) -> None:
    """Refuse a similarity that the store has no word for, or that the labels do not judge."""
    if case.request.store:
        check_store(case.request.store, case.similarity, case.request.levels)
    if case.evidence is not None and not case.classifies and case.similarity != "cosine":
        raise InputError(
            f"similarity is {case.similarity}: {case.evidence.metric} is judged by cosines alone, "
            "which tell nothing of lengths; leave --similarity out if all rows have one length, or "
            "else what judges, and recall is measured by it"
        )


def _unsure(case: Case, surveyed: Survey, rows: int) -> Iterator[str]:
    """What so few queries, or rows, do not tell of a recall that is asked for."""
    options, (criterion, amount) = surveyed.options, case.target
    if criterion != "recall":
        return
    least = float(options.loc[0, "low@10"])
    if least < amount:
        yield (
            f"{surveyed.queries:,} queries can prove a recall of {least:.3f} at most: "
            "give more, or ask for less."
        )
    if options.loc[options["rerank"] == case.request.depth, "expected@10"].isna().any():
        yield unprojected(case.request.rows_total or rows, surveyed.corpus)


def _by_recall(case: Case, surveyed: Survey, full: int) -> Chosen:
    """What is chosen by recall, or for recall in some bytes."""
    options, depth = surveyed.options, case.request.depth
    row = choose(options, *case.target, depth, full)
    other = choose(options, *case.target, 0 if depth else DEPTH, full)
    if row is None:
        return None, other, None
    return row, other, replace(surveyed.ways[options.loc[row, "way"]], rerank=depth)


def _by_labels(case: Case, surveyed: Survey, judging: Judgement, full: int) -> Chosen:
    """What labels chose; nothing is said of re-scoring, which they did not judge."""
    chosen, options = judging.answer, surveyed.options
    if chosen is None or (chosen.bytes >= full and chosen.layer == case.last_layer):
        return None, None, None
    is_chosen = (options["way"] == len(surveyed.ways) - 1) & (options["rerank"] == 0)
    row = int(options.index[is_chosen][0])
    options.loc[row, ["dim", "bytes"]] = chosen.dim, chosen.bytes
    return row, None, judging.deployment


def _note(
    case: Case,
    findings: Findings,
    surveyed: Survey,
    fit: dict[str, Any],
) -> dict[str, Any]:
    """What `reducer.json` says beside the map: what it was fitted on, and what is promised of the
    answer, for `check`: `recall` at least, or a `share` of a score.
    """
    chosen, (criterion, amount) = findings.answer, findings.target
    recall = [float(chosen[f"{end}@10"]) for end in ("recall", "low", "high")]
    promised = {
        "recall@10": recall,
        "recall": amount if criterion == "recall" else recall[1],
        "corpus": surveyed.corpus,
        "queries": surveyed.queries,
    }
    if criterion == "retain" and findings.metric is not None:
        promised |= {"share": amount, "metric": findings.metric}
    note = {**fit, "source": case.source, **case.origin, "promised": promised}
    return {**note, "compared_by": "classifier"} if case.classifies else note


def _judged(case: Case) -> Judgement:
    """What labels say of every map, size and level; without labels, what is expected of maps."""
    request, versions, (criterion, amount) = case.request, case.versions, case.target
    last = versions[case.last_layer]
    plain = ["float16" if case.unit and number_bytes(last.kind) == 2 else "float32"]
    fewer = () if case.evidence is None else case.evidence.levels
    levels = [level for level in request.levels if level != PRODUCT] or [*plain, *fewer]
    dims = request.dims
    if request.store:
        store_levels = levels_of(request.store)
        if not request.levels and "int8" not in store_levels and "float16" in store_levels:
            levels.append("float16")  # Loses least of what a store without a byte can save
        storable = dict.fromkeys(level for level in levels if level in store_levels)
        levels = list(storable) or store_levels
        sizes = dims or default_sizes(last.shape[1])
        dims = tuple(d for d in sizes if any(holds(request.store, d, level) for level in levels))
    judged_by = replace(
        request,
        retain=amount if criterion == "retain" else None,
        bytes=request.bytes if criterion == "bytes" else None,
        methods=_nested(request.methods),
        levels=tuple(plain if case.evidence is None else levels),
        dims=dims,
        similarity=case.similarity,
    )
    return advice.advise(versions, case.evidence, judged_by, unit=case.unit)


def _nested(methods: Sequence[str]) -> tuple[str, ...]:
    """Those whose first columns are the smaller sizes; whether they are turned is up to levels."""
    plain = dict.fromkeys(name.removesuffix(TURNED) for name in methods)
    return tuple(name for name in plain if name in NESTED)
