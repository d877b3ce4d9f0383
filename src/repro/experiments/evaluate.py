"""Score an encoder on one dataset, at several prefix sizes from one pass (what `repro evaluate` does)."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from repro import data
from repro.evaluation.protocol import all_texts, score_classification, score_sts
from repro.experiments.embeddings import TextTable
from repro.models import SentenceEncoder
from repro.models.encoder import merge_equal
from repro.models.pretrained import identity
from repro.rows import make_rows
from repro.types import InputError, check_dim

MTEB_NAMES = {
    "stsb": "STSBenchmark", "sickr": "SICK-R", "sts12": "STS12", "sts13": "STS13", "sts14": "STS14",
    "sts15": "STS15", "sts16": "STS16",
}  # fmt: skip


def evaluate_encoder(
    encoder: str,
    dataset: str,
    *,
    task: str = "sts",
    dims: Sequence[int] = (),
    layer: int | None = None,
    readout: str = "pooler",
    pooling: str | None = None,
    split: str | None = None,
    text: str = "senteval",
    aggregate: str = "all",
    protocol: str = "logreg",
    source: str | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """One row per prefix size.

    Raises:
        InputError: for an unknown encoder or dataset, a dataset of another kind than the task, or a dim out of range.
    """
    sets: dict[str, data.DataSet]
    if task == "sts":
        pairs = data.load(dataset, split=split, source=source, text=text)
        if not isinstance(pairs, data.ScoredPairs):
            raise InputError(f"{dataset!r} has no scored pairs: use --task classification, or give another dataset")
        sets = {pairs.split: pairs}
    else:
        sets = data.load_splits(dataset, source=source, text=text)
        if not all(isinstance(part, data.LabelledTexts | data.LabelledPairs) for part in sets.values()):
            raise InputError(f"{dataset!r} has no labels: use --task sts, or give another dataset")
    network = SentenceEncoder.load(encoder, pooling=pooling)
    last = network.backbone.layer_index(layer) == network.n_layers
    width = network.dim if readout == "pooler" and last else network.hidden_dim
    sizes = [check_dim(d, limit=width) for d in dims] or [width]  # a wrong one is refused before the long work
    distinct, _ = merge_equal(all_texts(list(sets.values())))
    X = network.encode(distinct, readout=readout, layer=layer, progress=True)
    index = {t: i for i, t in enumerate(distinct)}
    rows: list[dict[str, Any]] = []
    for dim in sizes:
        table = TextTable(index, X[:, :dim])
        if task == "sts":
            assert isinstance(pairs, data.ScoredPairs)
            score = score_sts(table.__getitem__, pairs, aggregate=aggregate, seed=seed)
        else:
            score = score_classification(table.__getitem__, sets, protocol=protocol, seed=seed)
            rows.append({"metric": "majority_floor", "value": score.floor, "dim": dim})
        rows.append({**score.columns, "dim": dim})
    first = next(iter(sets.values()))
    how = "" if task == "sts" else f", {protocol}"
    return make_rows(
        rows, experiment="evaluate", method=task, backbone=encoder, readout=readout, layer=layer, dataset=first.name,
        setting=f"{'+'.join(sets)}, {network.pooling} pooling{how}", seed=seed, data_source=first.source,
        device=network.backbone.device.type,
    )  # fmt: skip


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
