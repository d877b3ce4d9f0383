"""Which positives teach most: dropout, synonyms, back-translation, exact paraphrases and their mixture (§7.7).

One training for each way and seed, on the same sentences in the same order for the same number of steps.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from repro.config import TrainConfig, digest
from repro.data.augment import Positives, token_overlap
from repro.evaluation.stats import bootstrap_mean, bootstrap_spearman
from repro.methods import UNTRAINED
from repro.models.pretrained import identity
from repro.papers.proposal.geometry import positives_of, uniformity_of
from repro.papers.proposal.rewordings import DROPOUT, Augmentation
from repro.rows import make_rows
from repro.runs.cell import TrainedCell, dev_scorer, threads, train_cell, write_trained
from repro.runs.embeddings import TextTable, encode_tasks
from repro.runs.published import unit_rows
from repro.runs.sweep import cosines_of, gain_over
from repro.runs.texts import fingerprint
from repro.sets import DataSet, ScoredPairs, texts_of
from repro.store import Store
from repro.training.end_to_end import fresh_encoder
from repro.training.positives import train_positives
from repro.types import InputError


def train_augmented(
    config: TrainConfig, sentences: Sequence[str], augmentation: Augmentation, store: Store, *, progress: bool = True
) -> TrainedCell:
    """Train on the positives of an augmentation, or find it in the store; dropout is the SimCSE cell of other pages.

    Raises:
        InputError: for an augmentation that is not at hand.
    """
    positives = augmentation.positives
    if positives is None:
        raise InputError(f"{augmentation.name}: {augmentation.note}")
    if augmentation.name == DROPOUT:
        return train_cell(config, store, progress=progress)
    named = {
        "config": asdict(config),
        "backbone": identity(config.backbone),
        "validation": fingerprint(config.validation, config.source),
        "sentences": digest(list(sentences)),
        "positives": digest(list(positives)),
    }
    code = ("repro.training.positives",)

    @threads(config.threads)
    def make(target: Path, work: Path) -> None:
        trained = train_positives(
            config,
            sentences,
            positives,
            dev_scorer(config.validation, config.source),
            progress=progress,
            state_path=work / "state.safetensors",
            save_every=config.save_every,
        )
        write_trained(trained, config, target)

    key = digest(named, code=code)
    made = store.get_or_make("encoders", key, make, config={"augmentation": augmentation.name, **asdict(config)})
    return TrainedCell(config, key, made.folder, made.hit, made.seconds)


def augmentation_rows(
    config: TrainConfig,
    sentences: Sequence[str],
    made: Mapping[int, Sequence[Augmentation]],
    tasks: Mapping[str, Mapping[str, DataSet]],
    store: Store,
    *,
    progress: bool = True,
    **shared: Any,
) -> pd.DataFrame:
    """Wordings, geometry and scores of every augmentation and seed, beside the untrained network.

    Metrics: `survivors`, share of the sentences that have a positive; `token_overlap` of these with their sentences;
    `alignment` and `uniformity` of the first task's pairs and sentences, as `geometry_rows` has them; `spearman` of
    every task; `spearman_lead`, that less dropout's, on the same resampled pairs.

    Args:
        config: of every training; its seed is set.
        sentences: training sentences.
        made: by seed, what `make_augmentations` made of them; what is not at hand has no rows.
        tasks: scored pairs by name, with their test split.
        store: where trainings and states are kept.
        progress: show progress bars.
        shared: columns of every row.

    Raises:
        InputError: for no seed, or a task without scored test pairs.
    """
    if not made:
        raise InputError("no seed: make augmentations for at least one")
    tests = {name: _test_of(name, splits) for name, splits in tasks.items()}
    rows: list[dict[str, Any]] = []
    for seed, augmentations in made.items():
        own = replace(config, seed=seed)
        embedded = {UNTRAINED: _untrained(own, tasks, store)}
        for augmentation in augmentations:
            if augmentation.positives is not None:
                cell = train_augmented(own, sentences, augmentation, store, progress=progress)
                states = encode_tasks(partial(getattr, cell, "encoder"), cell.key, tasks, store)
                embedded[augmentation.name] = states.map(cell.pooler.project)
        measured = [*_geometry(embedded, next(iter(tests.values())), seed), *_scores(embedded, tests, seed)]
        rows += [{"seed": seed, "readout": "pooler", **row} for row in measured]
    columns = {
        "backbone": config.backbone,
        "layer": config.layers,
        "dim": config.dim,
        "data_source": config.source,
        "n_train": len(sentences),
        "device": "cuda" if torch.cuda.is_available() else "cpu",
    }
    scored = make_rows(rows, **{**columns, **shared})
    return pd.concat([wording_rows(sentences, made, **{**columns, **shared}), scored], ignore_index=True)


def wording_rows(sentences: Sequence[str], made: Mapping[int, Sequence[Augmentation]], **shared: Any) -> pd.DataFrame:
    """Share of the sentences that have a positive, and how many words the two share, by augmentation and seed."""
    rows = [
        {"method": augmentation.name, "seed": seed, **row}
        for seed, augmentations in made.items()
        for augmentation in augmentations
        if augmentation.positives is not None
        for row in _wordings(sentences, augmentation.positives, seed)
    ]
    return make_rows(rows, **shared)


def _untrained(config: TrainConfig, tasks: Mapping[str, Mapping[str, DataSet]], store: Store) -> TextTable:
    """What every training starts from: the backbone with its fresh pooler."""
    encoder = fresh_encoder(config)
    assert encoder.pooler is not None
    named = digest({"untrained": identity(config.backbone), "pooling": config.pooling, "layers": config.layers})
    return encode_tasks(lambda: encoder, named, tasks, store).map(encoder.pooler.project)


def _wordings(sentences: Sequence[str], positives: Positives, seed: int) -> Iterator[dict[str, Any]]:
    overlap = [token_overlap(a, b) for a, b in zip(sentences, positives, strict=True) if b is not None]
    at = {"dataset": "training sentences"}
    yield {**at, "metric": "survivors", "value": len(overlap) / len(sentences)}
    if overlap:
        yield {**at, "metric": "token_overlap", **bootstrap_mean(overlap, seed=seed).columns}


def _geometry(embedded: Mapping[str, TextTable], pairs: ScoredPairs, seed: int) -> Iterator[dict[str, Any]]:
    sides, everything = positives_of(pairs), list(dict.fromkeys(texts_of(pairs)))
    for method, table in embedded.items():
        at = {"method": method, "dataset": pairs.name}
        Z1, Z2 = (unit_rows(table[side]) for side in sides)
        away = 2 - 2 * (Z1 * Z2).sum(axis=1)
        yield {**at, "metric": "alignment", **bootstrap_mean(away, seed=seed).columns}
        yield {**at, "metric": "uniformity", "value": uniformity_of(unit_rows(table[everything]))}


def _scores(embedded: Mapping[str, TextTable], tests: Mapping[str, ScoredPairs], seed: int) -> Iterator[dict[str, Any]]:
    for name, pairs in tests.items():
        cosines = {method: cosines_of(table, pairs) for method, table in embedded.items()}
        for method, of_one in cosines.items():
            at = {"method": method, "dataset": name}
            score = bootstrap_spearman(of_one, pairs.scores, subsets=pairs.subsets, seed=seed)
            yield {**at, "metric": "spearman", **score.columns}
            if DROPOUT in cosines and method != DROPOUT:
                lead = gain_over(of_one, cosines[DROPOUT], pairs, seed=seed)
                yield {**at, "metric": "spearman_lead", **lead.columns}


def _test_of(name: str, splits: Mapping[str, DataSet]) -> ScoredPairs:
    pairs = splits.get("test")
    if not isinstance(pairs, ScoredPairs):
        raise InputError(f"{name!r} has no test split of scored pairs: choose sets such as stsb and sickr")
    return pairs
