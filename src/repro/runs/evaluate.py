"""Score an encoder on one dataset, at several layers and prefix sizes from one pass (what `repro
evaluate` does).
"""

import logging
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import pandas as pd

from repro import data
from repro.data.senteval import keep_for
from repro.evaluation.classify import score_classification
from repro.evaluation.sts import score_sts
from repro.models import SentenceEncoder
from repro.models.encoder import Encoder, merge_equal
from repro.rows import make_rows
from repro.runs.lines import Task, TextTable
from repro.sets import all_texts
from repro.types import Array, InputError, check_dim

log = logging.getLogger(__name__)
Place: TypeAlias = tuple[int, list[int], dict[str, Any]]
"""Where an encoder is read: the layer, the prefix sizes there, and what rows say of it."""


def load_task(dataset: str, kind: str, *, split: str | None = None, **options: Any) -> Task:
    """Scored pairs for the kind `sts`, a labelled set for `classification`, with the options of
    `repro.data.load`.
    """
    keep_for(options.get("source"))
    if kind == "sts":
        pairs = data.load(dataset, split=split, **options)
        if not isinstance(pairs, data.ScoredPairs):
            way_out = (
                "use --task classification, say by --columns which column is which, or "
                "give another dataset"
            )
            raise InputError(f"{dataset!r} has no scored pairs: {way_out}")
        if len(set(pairs.scores)) < 2:
            raise InputError(
                f"all {len(pairs)} pairs of {dataset!r} have one score: there is no order "
                "to compare with"
            )
        return Task(pairs.name, {pairs.split: pairs})
    sets = data.load_splits(dataset, **options)
    labelled = data.LabelledTexts | data.LabelledPairs
    if not all(isinstance(split_set, labelled) for split_set in sets.values()):
        way_out = "use --task sts, say by --columns which column is which, or give another dataset"
        raise InputError(f"{dataset!r} has no labels: {way_out}")
    return Task(next(iter(sets.values())).name, sets)


def encoder_rows(
    network: Encoder,
    name: str,
    task: Task,
    *,
    dims: Sequence[int] = (),
    layers: Sequence[int] = (),
    readout: str = "pooler",
    seed: int = 0,
    line: str = "",
    **scoring: Any,
) -> pd.DataFrame:
    """A row per layer and prefix size; without layers, the last, and no layer is named in the row.

    The setting tells how a network was read; of a baseline it is its `line`. `scoring` may have an
    `aggregate` of pairs and the `protocol` of a classifier.

    Raises:
        InputError: for a size or layer that the encoder does not have, or one cosine for all pairs.
    """
    if not isinstance(network, SentenceEncoder) and layers:
        asked = f"layers {', '.join(map(str, layers))}"
        raise InputError(f"{asked}: {name} has no layers to choose from; leave them out")
    places: list[Place] = []
    for layer in dict.fromkeys(layers) if layers else [None]:
        depth, width, shown = _read_at(network, layer, readout)
        # A wrong dim is refused before the long work
        sizes = [check_dim(dim, limit=width) for dim in dims] or [width]
        places.append((depth, sizes, {"layer": layer, "readout": shown}))
    distinct, _ = merge_equal(all_texts(list(task.values())))
    index = {text: i for i, text in enumerate(distinct)}
    rows: list[dict[str, Any]] = []
    for (_, sizes, place), X in zip(places, _read(network, distinct, places), strict=True):
        for dim in sizes:
            for score in _scored(TextTable(index, X[:, :dim]), task, seed=seed, **scoring):
                rows.append({**score, "dim": dim, **place})
    if all(row["value"] != row["value"] for row in rows):  # NaN
        raise InputError(
            f"{name} gives all pairs of {task.name!r} one cosine: there is nothing to rank"
        )
    pairs = isinstance(task.judged, data.ScoredPairs)
    how, *more = [line] if line else _how_read(network)
    judged_by = "" if pairs else scoring.get("protocol", "logreg")
    setting = ["+".join(task), how, judged_by, *more]
    where = {}
    if isinstance(network, SentenceEncoder):
        where["device"] = network.backbone.device.type
    return make_rows(
        rows,
        experiment="evaluate",
        method="sts" if pairs else "classification",
        backbone=name,
        dataset=task.name,
        seed=seed,
        setting=", ".join(filter(None, setting)),
        data_source=task.judged.source,
        **where,
    )


def _scored(
    table: TextTable,
    task: Task,
    *,
    seed: int,
    aggregate: str = "all",
    protocol: str = "logreg",
) -> Iterator[dict[str, Any]]:
    """The score of some embeddings, of labels with what the majority class gives, as columns."""
    if isinstance(task.judged, data.ScoredPairs):
        yield score_sts(table.__getitem__, task.judged, aggregate=aggregate, seed=seed).columns
        return
    score = score_classification(table.__getitem__, task, protocol=protocol, seed=seed)
    yield {"metric": "majority_floor", "value": score.floor}
    yield score.columns


def _read_at(network: Encoder, layer: int | None, readout: str) -> tuple[int, int, str]:
    """Which layer that is, how wide its embeddings are, and which readout is read there."""
    if not isinstance(network, SentenceEncoder):
        return 0, network.dim, readout
    depth = network.backbone.layer_index(layer)
    if depth < network.n_layers and readout == "pooler" and network.pooler is not None:
        about = "layer %d is below the last, which the pooler reads: its pooled state is scored"
        log.warning(about, depth)
        readout = "encoder"
    return depth, network.dim if readout == "pooler" else network.hidden_dim, readout


def _read(network: Encoder, texts: Sequence[str], places: Sequence[Place]) -> Iterator[Array]:
    """Embeddings (n, width) of distinct texts at each place, from one pass."""
    if not isinstance(network, SentenceEncoder):
        yield from (network.encode(texts, progress=True) for _ in places)
        return
    states = network.encode_layers(texts, [depth for depth, *_ in places], progress=True)
    for (_, _, shown), h in zip(places, states, strict=True):
        pooler = network.pooler if shown["readout"] == "pooler" else None
        yield h if pooler is None else pooler.project(h)


def _how_read(network: Encoder) -> list[str]:
    """What of a network's reading is in no column of the rows, the pooling first."""
    if not isinstance(network, SentenceEncoder):
        return [type(network).__name__]
    backbone = network.backbone
    return [
        f"{network.pooling} pooling",
        "bidirectional" if backbone.bidirectional else "",
        f"prompt {network.prompt!r}" if network.prompt else "",
        f"final norm {backbone.final_norm}" if backbone.final_norm != "last" else "",
    ]
