"""Score an encoder on one dataset, at several layers and prefix sizes from one pass (what `repro evaluate` does)."""

import logging
from collections.abc import Sequence
from typing import Any

import pandas as pd

from repro import data
from repro.evaluation.classify import score_classification
from repro.evaluation.sts import score_sts
from repro.models import SentenceEncoder
from repro.models.encoder import merge_equal
from repro.rows import make_rows
from repro.runs.lines import Task, TextTable
from repro.sets import all_texts
from repro.types import InputError, check_dim

log = logging.getLogger(__name__)


def load_task(dataset: str, kind: str, *, split: str | None = None, **options: Any) -> Task:
    """Scored pairs for the kind `sts`, a labelled set for `classification`, with the options of `repro.data.load`."""
    if kind == "sts":
        pairs = data.load(dataset, split=split, **options)
        if not isinstance(pairs, data.ScoredPairs):
            way_out = "use --task classification, say by --columns which column is which, or give another dataset"
            raise InputError(f"{dataset!r} has no scored pairs: {way_out}")
        if len(set(pairs.scores)) < 2:
            raise InputError(f"all {len(pairs)} pairs of {dataset!r} have one score: there is no order to compare with")
        return Task(pairs.name, {pairs.split: pairs})
    sets = data.load_splits(dataset, **options)
    if not all(isinstance(part, data.LabelledTexts | data.LabelledPairs) for part in sets.values()):
        way_out = "use --task sts, say by --columns which column is which, or give another dataset"
        raise InputError(f"{dataset!r} has no labels: {way_out}")
    return Task(next(iter(sets.values())).name, sets)


def encoder_rows(
    network: SentenceEncoder,
    name: str,
    task: Task,
    *,
    dims: Sequence[int] = (),
    layers: Sequence[int] = (),
    readout: str = "pooler",
    aggregate: str = "all",
    protocol: str = "logreg",
    seed: int = 0,
) -> pd.DataFrame:
    """A row per layer and prefix size; without layers, the last, and no layer is named in the row."""
    places = []
    for layer in dict.fromkeys(layers) if layers else [None]:
        depth, shown = network.backbone.layer_index(layer), readout
        if depth < network.n_layers and readout == "pooler" and network.pooler is not None:
            log.warning("layer %d is below the last, which the pooler reads: its pooled state is scored", depth)
            shown = "encoder"
        width = network.dim if shown == "pooler" else network.hidden_dim
        # a wrong dim is refused before the long work
        sizes = [check_dim(dim, limit=width) for dim in dims] or [width]
        places.append((depth, sizes, {"layer": layer, "readout": shown}))
    distinct, _ = merge_equal(all_texts(list(task.values())))
    index = {text: i for i, text in enumerate(distinct)}
    states = network.encode_layers(distinct, [depth for depth, *_ in places], progress=True)
    rows: list[dict[str, Any]] = []
    for (_, sizes, place), h in zip(places, states, strict=True):
        X = network.pooler.project(h) if place["readout"] == "pooler" and network.pooler is not None else h
        for dim in sizes:
            table = TextTable(index, X[:, :dim])
            if isinstance(task.judged, data.ScoredPairs):
                score = score_sts(table.__getitem__, task.judged, aggregate=aggregate, seed=seed)
            else:
                score = score_classification(table.__getitem__, task, protocol=protocol, seed=seed)
                rows.append({"metric": "majority_floor", "value": score.floor, "dim": dim, **place})
            rows.append({**score.columns, "dim": dim, **place})
    if all(row["value"] != row["value"] for row in rows):  # NaN
        raise InputError(f"{name} gives all pairs of {task.name!r} one cosine: there is nothing to rank")
    pairs = isinstance(task.judged, data.ScoredPairs)
    said = ["" if pairs else protocol, "bidirectional" if network.backbone.bidirectional else ""]
    said += [f"prompt {network.prompt!r}" if network.prompt else ""]
    said += [f"final norm {network.backbone.final_norm}" if network.backbone.final_norm != "last" else ""]
    return make_rows(
        rows,
        experiment="evaluate",
        method="sts" if pairs else "classification",
        backbone=name,
        dataset=task.name,
        seed=seed,
        setting=", ".join(["+".join(task), f"{network.pooling} pooling", *filter(None, said)]),
        data_source=task.judged.source,
        device=network.backbone.device.type,
    )
