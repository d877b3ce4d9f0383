"""Score an encoder on one dataset, at several layers and prefix sizes from one pass (what `repro evaluate` does)."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from repro import data
from repro.data.spec import NOTHING
from repro.evaluation.protocol import all_texts, score_classification, score_sts
from repro.models import SentenceEncoder
from repro.models.encoder import merge_equal
from repro.models.pretrained import identity
from repro.rows import make_rows
from repro.runs.embeddings import TextTable
from repro.types import Array, InputError, check_dim, one_of

log = logging.getLogger(__name__)
MTEB_NAMES = {
    "stsb": "STSBenchmark",
    "sickr": "SICK-R",
    "sts12": "STS12",
    "sts13": "STS13",
    "sts14": "STS14",
    "sts15": "STS15",
    "sts16": "STS16",
}


def evaluate_encoder(
    encoder: str,
    dataset: str,
    *,
    task: str = "sts",
    dims: Sequence[int] = (),
    layers: Sequence[int] = (),
    readout: str = "pooler",
    pooling: str | None = None,
    bidirectional: bool | None = None,
    final_norm: str | None = None,
    prompt: str | None = None,
    split: str | None = None,
    text: str = "senteval",
    aggregate: str = "all",
    protocol: str = "logreg",
    source: str | None = None,
    seed: int = 0,
    columns: Mapping[str, str] = NOTHING,
) -> pd.DataFrame:
    """One row per layer and prefix size; without layers, the last, and no layer is named in the row.

    `columns` names those of a table of the user's own, as `repro.data.load` has it.

    Raises:
        InputError: for an unknown encoder or dataset, a dataset of another kind than the task, or a layer or dim out
            of range.
    """
    sets: dict[str, data.DataSet]
    if task == "sts":
        pairs = data.load(dataset, split=split, source=source, text=text, columns=columns)
        if not isinstance(pairs, data.ScoredPairs):
            raise InputError(f"{dataset!r} has no scored pairs: use --task classification, or give another dataset")
        if len(set(pairs.scores)) < 2:
            raise InputError(f"all {len(pairs)} pairs of {dataset!r} have one score: there is no order to compare with")
        sets = {pairs.split: pairs}
    else:
        sets = data.load_splits(dataset, source=source, text=text, columns=columns)
        if not all(isinstance(part, data.LabelledTexts | data.LabelledPairs) for part in sets.values()):
            raise InputError(f"{dataset!r} has no labels: use --task sts, or give another dataset")
    network = SentenceEncoder.load(
        encoder, pooling=pooling, bidirectional=bidirectional, final_norm=final_norm, prompt=prompt
    )
    readings = _readings(network, layers, one_of(readout, ("encoder", "pooler"), "readout"))
    for reading in readings:
        for dim in dims:
            check_dim(dim, limit=reading.width)  # a wrong one is refused before the long work
    distinct, _ = merge_equal(all_texts(list(sets.values())))
    index = {t: i for i, t in enumerate(distinct)}
    states = network.encode_layers(distinct, [reading.depth for reading in readings], progress=True)
    rows: list[dict[str, Any]] = []
    for reading, h in zip(readings, states, strict=True):
        X = reading.read(network, h)
        for dim in dims or [reading.width]:
            table = TextTable(index, X[:, :dim])
            shared = {"dim": dim, "layer": reading.layer, "readout": reading.readout}
            if task == "sts":
                assert isinstance(pairs, data.ScoredPairs)
                score = score_sts(table.__getitem__, pairs, aggregate=aggregate, seed=seed)
            else:
                score = score_classification(table.__getitem__, sets, protocol=protocol, seed=seed)
                rows.append({"metric": "majority_floor", "value": score.floor, **shared})
            rows.append({**score.columns, **shared})
    if all(row["value"] != row["value"] for row in rows):  # NaN
        raise InputError(f"{encoder} gives all pairs of {dataset!r} one cosine: there is nothing to rank")
    first = next(iter(sets.values()))
    how = "" if task == "sts" else f", {protocol}"
    if network.backbone.bidirectional:
        how += ", bidirectional"
    if network.prompt:
        how += f", prompt {network.prompt!r}"
    if network.backbone.final_norm != "last":
        how += f", final norm {network.backbone.final_norm}"
    return make_rows(
        rows,
        experiment="evaluate",
        method=task,
        backbone=encoder,
        dataset=first.name,
        seed=seed,
        setting=f"{'+'.join(sets)}, {network.pooling} pooling{how}",
        data_source=first.source,
        device=network.backbone.device.type,
    )


@dataclass(frozen=True)
class _Reading:
    """One layer as it is scored."""

    depth: int
    layer: int | None
    """as the row names it"""
    readout: str
    width: int

    def read(self, network: SentenceEncoder, h: Array) -> Array:
        """Embeddings (n, width) from pooled states h (n, D)."""
        if self.readout == "pooler" and network.pooler is not None and len(h):
            return network.pooler.project(h)
        return h


def _readings(network: SentenceEncoder, layers: Sequence[int], readout: str) -> list[_Reading]:
    """A pooler belongs to the last layer: of those below, the pooled state is read, and their rows say so."""
    found = []
    for layer in dict.fromkeys(layers) if layers else [None]:
        depth = network.backbone.layer_index(layer)
        below = depth < network.n_layers and readout == "pooler" and network.pooler is not None
        if below:
            log.warning("layer %d is below the last, which the pooler reads: its pooled state is scored", depth)
        shown = "encoder" if below else readout
        found.append(_Reading(depth, layer, shown, network.dim if shown == "pooler" else network.hidden_dim))
    return found


def mteb_result(frame: pd.DataFrame) -> dict[str, Any]:
    """The scores in MTEB's result schema, with dim and layer beside each; scores are fractions."""
    first = frame.iloc[0]
    scores = [
        {
            "main_score": float(row.value),
            f"{'cosine_' if row.metric.startswith('spearman') else ''}{row.metric}": float(row.value),
            "hf_subset": "default",
            "languages": ["eng-Latn"],
            "dim": int(row.dim),
            "layer": None if pd.isna(row.layer) else int(row.layer),
            "seed": int(row.seed),
        }
        for row in frame.itertuples()
        if row.metric != "majority_floor"
    ]
    return {
        "task_name": MTEB_NAMES.get(str(first["dataset"]), str(first["dataset"])),
        "dataset_revision": str(first["data_source"]),
        "mteb_version": None,
        "scores": {str(first["setting"]).split(",")[0]: scores},
        "evaluation_time": None,
        "kg_co2_emissions": None,
        "model_name": str(first["backbone"]),
        "model_revision": identity(str(first["backbone"])),
        "date": str(first["created"]),
    }
