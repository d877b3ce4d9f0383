"""Score an encoder on one dataset, at several layers and prefix sizes from one pass (what `repro
evaluate` does), and write scores as MTEB has them.
"""

import json
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from repro import data
from repro.evaluation.classify import score_classification
from repro.evaluation.retrieve import retrieve
from repro.evaluation.stats import bootstrap_mean
from repro.evaluation.sts import score_sts
from repro.models import SentenceEncoder
from repro.models.layerless import Encoder
from repro.models.packing import merge_equal
from repro.rows import make_rows
from repro.runs.lines import Task, TextTable
from repro.sets import all_texts
from repro.types import Array, InputError, check_dims
from repro.writing import write_text

log = logging.getLogger(__name__)
EXPERIMENT = "evaluate"
"""What rows of an encoder call the experiment; recorded rows have names of their own."""
METHODS: dict[type, str] = {data.ScoredPairs: "sts", data.Retrieval: "retrieval"}
"""What scores sets of a kind are called in rows, where it is not a classifier."""
NO_REVISION = "no_revision_available"
"""What MTEB calls the revision of a network that has none."""
THERE = "is there already: give another folder, or move it away"
Place: TypeAlias = tuple[int, list[int], dict[str, Any]]
"""Where an encoder is read: the layer, the prefix sizes there, and what rows say of it."""


def load_task(dataset: str, kind: str, *, split: str | None = None, **options: Any) -> Task:
    """Scored pairs for the kind `sts`, a labelled set for `classification`, queries and documents
    for `retrieval`, with the options of `repro.data.load`.
    """
    if kind == "retrieval":
        whole = data.load(dataset, split=split, **options)
        if not isinstance(whole, data.Retrieval):
            expected = "expected a folder in BEIR's form, or hotpotqa"
            raise InputError(f"{dataset!r} has no queries with relevant documents: {expected}")
        return Task(whole.name, {whole.split: whole})
    if kind == "sts":
        pairs = data.load(dataset, split=split, **options)
        if not isinstance(pairs, data.ScoredPairs):
            way_out = (
                "use --task classification, say by --columns which column is which, or give "
                "another dataset"
            )
            raise InputError(f"{dataset!r} has no scored pairs: {way_out}")
        if len(set(pairs.scores)) < 2:
            raise InputError(
                f"all {len(pairs)} pairs of {dataset!r} have one score: there is no order to "
                "compare with"
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
    check: Callable[[pd.DataFrame], None] = lambda planned: None,
    **scoring: Any,
) -> pd.DataFrame:
    """A row per layer and prefix size; without layers, the last, and no layer is named in the row.

    The setting tells how a network was read; of a baseline it is its `line`. `scoring` may have an
    `aggregate` of pairs and the `protocol` of a classifier. Before the long work the rows that are
    planned, which have no values yet, are given to `check`.

    Raises:
        InputError: for a size or layer that the encoder does not have, or one cosine for all pairs.
    """
    if not isinstance(network, SentenceEncoder) and layers:
        which = f"layers {', '.join(map(str, layers))}"
        raise InputError(f"{which}: {name} has no layers to choose from; leave them out")
    places: list[Place] = []
    for layer in dict.fromkeys(layers) if layers else [None]:
        depth, width, shown = _read_at(network, layer, readout)
        # A wrong dim is refused before the long work
        sizes = check_dims(dims, limit=width) or [width]
        places.append((depth, sizes, {"layer": layer, "readout": shown}))
    method = METHODS.get(type(task.judged), "classification")
    how, *more = [line] if line else _how_read(network)
    judged_by = scoring.get("protocol", "logreg") if method == "classification" else ""
    setting = ["+".join(task), how, judged_by, *more]
    shared = {
        "experiment": EXPERIMENT,
        "method": method,
        "backbone": name,
        "dataset": task.name,
        "setting": ", ".join(filter(None, setting)),
        "data_source": task.judged.source,
    }
    if isinstance(network, SentenceEncoder):
        shared["device"] = network.backbone.device.type
    planned = [{"dim": dim, **place} for _, sizes, place in places for dim in sizes]
    check(make_rows(planned, **shared))
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
    return make_rows(rows, seed=seed, **shared)


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
    if isinstance(task.judged, data.Retrieval):
        yield from _retrieved(table, task.judged, seed)
        return
    score = score_classification(table.__getitem__, task, protocol=protocol, seed=seed)
    yield {"metric": "majority_floor", "value": score.floor}
    yield score.columns


def _retrieved(table: TextTable, task: data.Retrieval, seed: int) -> Iterator[dict[str, Any]]:
    """How well queries find their documents by cosine, the mean over queries."""
    ids = {"query_ids": task.query_ids, "corpus_ids": task.document_ids}
    X, C = table[task.queries], table[task.documents]
    found = retrieve(X, C, task.qrels, leave_out_own=True, **ids)
    for metric, values in (("ndcg@10", found.ndcg(10)), ("recall@10", found.recall(10))):
        yield {"metric": metric, **bootstrap_mean(values, seed=seed).columns}


def write_mteb(frame: pd.DataFrame, folder: Path, split: str) -> list[Path]:
    """Write rows of `encoder_rows` as MTEB's result cache has them, an experiment a size and layer.

    Args:
        frame: rows of one encoder and task.
        folder: the cache; files go to `results/MODEL/no_revision_available/experiments/NAME/` in
            it, where NAME says the size, the layer and how the network was read, such as
            `dim_64__layer_3__reading_mean_pooling`.
        split: what was scored.

    Returns:
        The files of scores, each with a `model_meta.json` beside it.

    Raises:
        InputError: for a file that is there already.
    """
    scored = frame[frame["metric"] != "majority_floor"]
    files: dict[Path, dict[str, Any]] = {}
    for path, model, kwargs, rows in _experiments(scored, folder):
        scores: dict[str, Any] = {"main_score": float(rows["value"].iloc[0])}
        for row in rows.itertuples():
            scores[row.metric] = row.value
            interval = [row.ci_low, row.ci_high]
            scores[f"{row.metric}_interval"] = None if pd.isna(row.ci_low) else interval
        scores |= {"hf_subset": "default", "languages": []}
        files[path] = {
            "dataset_revision": str(rows["data_source"].iloc[0]),
            "task_name": path.stem,
            "mteb_version": None,
            "evaluation_time": None,
            "scores": {split: [scores]},
        }
        files[path.with_name("model_meta.json")] = {
            "name": model,
            "revision": NO_REVISION,
            "experiment_kwargs": kwargs,
        }
    results = [path for path in files if path.name != "model_meta.json"]
    texts = {path: json.dumps(content, indent=1) for path, content in files.items()}
    for path, text in texts.items():
        ours = path not in results and path.is_file() and path.read_text(encoding="utf-8") == text
        if path.exists() and not ours:
            raise InputError(f"{path} {THERE}")
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    return results


def refuse_written(frame: pd.DataFrame, folder: Path) -> None:
    """Refuse a cache that has a file of scores already for one of these rows, scored or planned."""
    for path, *_ in _experiments(frame, folder):
        if path.exists():
            raise InputError(f"{path} {THERE}")


def _experiments(
    frame: pd.DataFrame, folder: Path
) -> Iterator[tuple[Path, str, dict[str, Any], pd.DataFrame]]:
    """Of each size and layer the file of its scores, the model, what MTEB knows it by, its rows."""
    for (layer, dim), rows in frame.groupby(["layer", "dim"], dropna=False):
        kwargs: dict[str, Any] = {"dim": int(dim)}
        if not pd.isna(layer):
            kwargs["layer"] = int(layer)
        # The setting begins with what was scored, which the file says
        how = str(rows["setting"].iloc[0]).partition(", ")[2]
        if rows["readout"].iloc[0] == "encoder":
            how = f"{how}, below the pooler"
        kwargs["reading"] = how.removeprefix(", ")
        model, task = str(rows["backbone"].iloc[0]), str(rows["dataset"].iloc[0])
        name = re.sub(
            r"[^\w.-]+", "_", "__".join(f"{key}_{value}" for key, value in kwargs.items())
        )
        model = Path(model).resolve().name if model.strip("./") == "" else model
        model_folder = folder / "results" / model.replace("/", "__").replace(" ", "_")
        place = model_folder / NO_REVISION / "experiments" / name
        yield place / f"{task}.json", model, kwargs, rows


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
