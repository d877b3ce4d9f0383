"""Which positives teach most: dropout, synonyms, back-translation, exact paraphrases and their mixture (§7.7).

One training for each way and seed, on the same sentences in the same order for the same number of steps.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
import torch

from repro.config import TrainConfig
from repro.data.augment import token_overlap
from repro.digests import digest
from repro.evaluation.stats import bootstrap_mean, bootstrap_spearman
from repro.methods import UNTRAINED
from repro.models.pretrained import identity
from repro.papers.proposal.geometry import geometry_of, positives_of
from repro.papers.proposal.rewordings import DROPOUT, Augmentation
from repro.rows import make_rows
from repro.runs.cell import TrainedCell, train_cell
from repro.runs.embeddings import TextTable, encode_tasks
from repro.runs.sweep import cosines_of, gain_over
from repro.sets import DataSet, ScoredPairs
from repro.store import Store
from repro.training.end_to_end import fresh_encoder
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
    examples = list(zip(sentences, positives, strict=True))
    other = {"augmentation": augmentation.name, "examples": digest(examples)}
    return train_cell(config, store, examples=examples, other=other, progress=progress)


def wording_rows(sentences: Sequence[str], made: Mapping[int, Sequence[Augmentation]], **shared: Any) -> pd.DataFrame:
    """Share of the sentences that have a positive, and how many words the two share, by augmentation and seed."""
    rows: list[dict[str, Any]] = []
    for seed, augmentation in ((s, a) for s, augmentations in made.items() for a in augmentations):
        if augmentation.positives is not None:
            at = {"method": augmentation.name, "seed": seed, "dataset": "training sentences"}
            both = zip(sentences, augmentation.positives, strict=True)
            overlap = [token_overlap(a, b) for a, b in both if b is not None]
            rows.append({**at, "metric": "survivors", "value": len(overlap) / len(sentences)})
            if overlap:
                rows.append({**at, "metric": "token_overlap", **bootstrap_mean(overlap, seed=seed).columns})
    return make_rows(rows, **shared)


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
    tests: dict[str, ScoredPairs] = {}
    for name, splits in tasks.items():
        pairs = splits.get("test")
        if not isinstance(pairs, ScoredPairs):
            raise InputError(f"{name!r} has no test split of scored pairs: choose sets such as stsb and sickr")
        tests[name] = pairs
    rows: list[dict[str, Any]] = []
    for seed, augmentations in made.items():
        own = replace(config, seed=seed)
        embedded = {UNTRAINED: _untrained(own, tasks, store)}
        for augmentation in augmentations:
            if augmentation.positives is not None:
                cell = train_augmented(own, sentences, augmentation, store, progress=progress)
                states = encode_tasks(partial(getattr, cell, "encoder"), cell.key, tasks, store)
                embedded[augmentation.name] = states.map(cell.pooler.project)
        rows += [{"seed": seed, "readout": "pooler", **row} for row in _measured(embedded, tests, seed)]
    columns = {
        "backbone": config.backbone,
        "layer": config.layers,
        "dim": config.dim,
        "data_source": config.source,
        "n_train": len(sentences),
        **config.columns,
        "device": "cuda" if torch.cuda.is_available() else "cpu",
        **shared,
    }
    return pd.concat([wording_rows(sentences, made, **columns), make_rows(rows, **columns)], ignore_index=True)


def _untrained(config: TrainConfig, tasks: Mapping[str, Mapping[str, DataSet]], store: Store) -> TextTable:
    """What every training starts from: the backbone with its fresh pooler."""
    encoder = fresh_encoder(config)
    assert encoder.pooler is not None
    named = digest({"untrained": identity(config.backbone), "pooling": config.pooling, "layers": config.layers})
    return encode_tasks(lambda: encoder, named, tasks, store).map(encoder.pooler.project)


def _measured(
    embedded: Mapping[str, TextTable], tests: Mapping[str, ScoredPairs], seed: int
) -> Iterator[dict[str, Any]]:
    """Geometry on the first task, then scores on all; every method's lead over dropout beside its score."""
    first = next(iter(tests.values()))
    for method, table in embedded.items():
        for row in geometry_of(table, first, positives_of(first), seed)[2]:
            yield {"method": method, "dataset": first.name, **row}
    for name, pairs in tests.items():
        cosines = {method: cosines_of(table, pairs) for method, table in embedded.items()}
        for method, of_one in cosines.items():
            at = {"method": method, "dataset": name}
            score = bootstrap_spearman(of_one, pairs.scores, subsets=pairs.subsets, seed=seed)
            yield {**at, "metric": "spearman", **score.columns}
            if DROPOUT in cosines and method != DROPOUT:
                lead = gain_over(of_one, cosines[DROPOUT], pairs, seed=seed)
                yield {**at, "metric": "spearman_lead", **lead.columns}
