"""The methods that the proposal compares with, on one table: quality, size and what a sentence
costs (method-systems in the book).

Counted words, latent directions and vectors of words or paragraphs are fitted here, on the
sentences that SimCSE learns from; the others come from `rivals`. What is not at hand has a line
that says what is missing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from repro.config import Profile
from repro.digests import digest
from repro.evaluation.clock import in_turns
from repro.evaluation.stats import Interval, spearman_draws
from repro.evaluation.sts import cosines_from
from repro.methods import BASELINES, PRINTED_BASELINES
from repro.models.device import default_device
from repro.models.layerless import Encoder
from repro.models.packing import merge_equal
from repro.rows import Row, make_rows
from repro.runs.cell import hidden_dim_of, train_all
from repro.runs.scorers import cosines_of
from repro.seeding import make_rng
from repro.sets import ScoredPairs, texts_of
from repro.store import Store
from repro.terminal import complain
from repro.types import Array, InputError, check_dim, one_of
from rivals import Loaded, Missing, SystemConfig, load_system
from rivals.skipgram import fit_doc2vec, fit_word2vec
from rivals.static import StaticEncoder, TfidfEncoder, fit_lsa, fit_tfidf

Reading: TypeAlias = dict[str, tuple[Array, int]]
"""By task the cosines of all pairs (n,), and how many texts have a zero vector."""
FIT_CODE = ("rivals.skipgram", "rivals.static", "repro.models.encoder")
NETWORKS = {BASELINES[key] for key in ("use", "sbert", "simcse", "minilm")}
"""Those that an accelerator would encode on."""
ROUNDS = 3
"""How often every method encodes the timed sentences."""


def load_baselines(
    names: Sequence[str],
    chosen: Profile,
    systems: SystemConfig,
    texts: Sequence[str],
    store: Store,
    *,
    dim: int = 300,
) -> tuple[list[Loaded], pd.DataFrame]:
    """The baselines that can be had here, and a frame of the others: method and what is missing.

    TF-IDF, LSA, word2vec and Doc2Vec are fitted on the texts, the last three at that dim; SimCSE is
    the profile's.
    """
    for name in names:
        one_of(name, list(BASELINES), "baseline")
    if len(set(names)) != len(names):
        raise InputError(f"baselines is {list(names)}: expected different names")
    if "lsa" in names and dim >= len(texts):
        complain(f"{len(texts):,} sentences give LSA at most {len(texts) - 1} dims")
    seed = chosen.train.seed
    fit: dict[str, Callable[[], Encoder]] = {
        "tfidf": partial(fit_tfidf, texts),
        "lsa": partial(fit_lsa, texts, dim=min(dim, len(texts) - 1), seed=seed),
        "word2vec": lambda: StaticEncoder(fit_word2vec(texts, dim=dim, seed=seed)),
        "doc2vec": partial(fit_doc2vec, texts, dim=dim, seed=seed),
    }
    loaded, missing = [], []
    for key in names:
        name = BASELINES[key]
        if key in fit:
            identity = digest(
                {"fit": key, "dim": dim, "seed": seed, "texts": digest(list(texts))},
                code=FIT_CODE,
            )
            line = f"fitted here on {len(texts):,} sentences"
            loaded.append(Loaded(name, cache(fit[key]), identity, key, len(texts), line=line))
        elif key == "simcse":
            (cell,) = train_all([replace(chosen.train, dim=hidden_dim_of(chosen.train))], store)
            config, encoder = cell.config, partial(getattr, cell, "encoder")
            line = (
                f"{config.backbone}, trained here on {config.sentences:,} sentences, pooled state"
            )
            loaded.append(
                Loaded(name, encoder, cell.key, config.backbone, config.sentences, line=line)
            )
        else:
            try:
                system = load_system(key, systems, store)
            except Missing as error:
                missing.append({"method": name, "missing": str(error)})
                continue
            backbone = system.backbone or key
            loaded.append(replace(system, name=name, make=cache(system.make), backbone=backbone))
    if not loaded:
        reasons = "; ".join(f"{line['method']}: {line['missing']}" for line in missing)
        raise InputError(f"baselines is {list(names)}: none of them is at hand ({reasons})")
    return loaded, pd.DataFrame(missing, columns=["method", "missing"])


def baseline_rows(
    baselines: Sequence[Loaded],
    tasks: Mapping[str, ScoredPairs],
    store: Store,
    *,
    timed: int = 100,
    seed: int = 0,
    **shared: Any,
) -> pd.DataFrame:
    """Spearman on every task, gigabytes per million vectors and seconds per million sentences of
    every baseline.

    Metrics besides `spearman`: `spearman_lead`, of every two with a printed score, on shared
    resamples, as `SBERT − GloVe`; `gb_per_million`, setting `dense` (float32) or, of TF-IDF also,
    `sparse`; `nonzeros` of a sparse vector; `encode_seconds`, median over rounds between fastest
    and slowest, of so many timed sentences of the first task; `zero_vectors`, texts of unknown
    words.
    """
    rows: list[Row] = []
    columns: list[Row] = []
    readings: list[Reading] = []
    encoders = [baseline.make() for baseline in baselines]
    for baseline, encoder in zip(baselines, encoders, strict=True):
        memory: list[Row] = []
        if isinstance(encoder, TfidfEncoder):
            dim, by_task, memory = _counted(encoder, tasks)
        else:
            dim, by_task = _embedded(baseline, tasks, store)
        readings.append(by_task)
        who = {"method": baseline.name, "backbone": baseline.backbone}
        columns.append({**who, "n_train": baseline.n_train, "dim": dim})
        dense = {"metric": "gb_per_million", "setting": "dense", "value": 4 * dim / 1e3}
        rows += [{**columns[-1], **row} for row in (dense, *memory)]
    first = next(iter(tasks.values()))
    texts = timed_texts(first, timed, seed=seed)
    for line, cost in zip(columns, _costs(baselines, encoders, texts), strict=True):
        rows.append({**line, "dataset": first.name, **cost})
    for name, pairs in tasks.items():
        of_task = [by_task[name] for by_task in readings]
        rows += [{"dataset": name, **row} for row in _qualities(columns, of_task, pairs, seed)]
    return make_rows(rows, readout="encoder", seed=seed, **shared)


def _embedded(
    baseline: Loaded,
    tasks: Mapping[str, ScoredPairs],
    store: Store,
) -> tuple[int, Reading]:
    """The size of a baseline's vectors, and what it says of every task."""
    table = baseline.embed({name: {"test": pairs} for name, pairs in tasks.items()}, store)
    by_task = {}
    for name, pairs in tasks.items():
        distinct = table[merge_equal(texts_of(pairs))[0]]
        by_task[name] = cosines_of(table, pairs), int((~distinct.any(axis=1)).sum())
    return int(table.X.shape[1]), by_task


def _costs(
    baselines: Sequence[Loaded],
    encoders: Sequence[Encoder],
    texts: Sequence[str],
) -> Iterator[Row]:
    """Seconds that each baseline takes for a million texts, by those it takes for some."""
    works: dict[int, Callable[[], Callable[[], object]]] = {}
    for k, encoder in enumerate(encoders):
        encode: Callable[[Sequence[str]], object] = partial(encoder.encode, readout="encoder")
        if isinstance(encoder, TfidfEncoder):
            encode = encoder.weights
        works[k] = partial(partial, encode, texts)
    for k, seconds in in_turns(works, ROUNDS).items():
        device = default_device().type if baselines[k].name in NETWORKS else "cpu"
        cost = {"metric": "encode_seconds", "setting": "1 thread", "device": device}
        per_million = seconds * (1e6 / len(texts))
        interval = Interval(float(np.median(per_million)), per_million.min(), per_million.max())
        yield {**cost, **interval.columns, "seconds": float(seconds.sum())}


def _qualities(
    columns: Sequence[Mapping[str, Any]],
    of_task: Sequence[tuple[Array, int]],
    pairs: ScoredPairs,
    seed: int,
) -> Iterator[Row]:
    """Spearman and zero vectors of every baseline on a task, and the leads of those with a printed
    score over one another.
    """
    cosines = [of_pairs for of_pairs, _ in of_task]
    scores = spearman_draws(cosines, pairs.scores, subsets=pairs.subsets, seed=seed)
    for k, line in enumerate(columns):
        yield {**line, "metric": "spearman", **scores[k].columns}
        yield {**line, "metric": "zero_vectors", "value": float(of_task[k][1])}
    place = {line["method"]: k for k, line in enumerate(columns)}
    printed = [method for method in PRINTED_BASELINES if method in place]
    for rival, winner in combinations(printed, 2):
        lead = scores[place[winner]] - scores[place[rival]]
        yield {"method": f"{winner} − {rival}", "metric": "spearman_lead", **lead.columns}


def _counted(
    encoder: TfidfEncoder,
    tasks: Mapping[str, ScoredPairs],
) -> tuple[int, Reading, list[Row]]:
    """TF-IDF on all tasks, never made dense: a few thousand of its rows would fill the memory.

    Its size; by task the cosines of all pairs and the number of zero vectors; rows on its memory in
    sparse form.
    """
    by_task, filled, count = {}, 0, 0
    for name, pairs in tasks.items():
        texts, inverse = merge_equal(texts_of(pairs))
        X = encoder.weights(texts)
        X = X.astype(np.float64)
        first, second = X[inverse[: len(pairs)]], X[inverse[len(pairs) :]]
        sides = ((first, second), (first, first), (second, second))
        dots, squares_a, squares_b = (
            np.asarray(a.multiply(b).sum(axis=1)).ravel() for a, b in sides
        )
        cosines = cosines_from(dots, squares_a, squares_b, X.getnnz(axis=1).max())
        by_task[name] = cosines, int((np.diff(X.indptr) == 0).sum())
        filled, count = filled + X.nnz, count + len(texts)
    mean = filled / count
    # Compressed rows: a float32 and an int32 column per entry, and an int64 where each row starts
    sparse = {"metric": "gb_per_million", "setting": "sparse", "value": (8 * mean + 8) / 1e3}
    return encoder.dim, by_task, [sparse, {"metric": "nonzeros", "value": mean}]


def timed_texts(pairs: ScoredPairs, count: int, *, seed: int) -> list[str]:
    """So many distinct sentences of some pairs, drawn by the seed; all where there are fewer."""
    distinct = merge_equal(texts_of(pairs))[0]
    chosen_rows = make_rng(seed, "timed sentences").permutation(len(distinct))[
        : check_dim(count, what="timed")
    ]
    return [distinct[row] for row in sorted(chosen_rows)]
