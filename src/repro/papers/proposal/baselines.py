"""The methods that the proposal compares with, on one table: quality, size and what a sentence costs (PROTOCOLS §6).

Counted words, latent directions and vectors of words or paragraphs are fitted here, on the sentences that SimCSE learns
from; the others come from `rivals`. What is not at hand has a line that says what is missing.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from repro.config import Profile
from repro.digests import digest
from repro.evaluation.stats import Interval, percentiles, spearman_draws
from repro.methods import BASELINES, PRINTED_BASELINES
from repro.models.encoder import merge_equal
from repro.models.pretrained import default_device
from repro.rows import make_rows
from repro.runs.lines import Named
from repro.runs.pool import train_all
from repro.runs.sweep import cosines_of, hidden_dim_of
from repro.seeding import make_rng, threads
from repro.sets import ScoredPairs, texts_of
from repro.store import Store
from repro.terminal import complain
from repro.types import Array, Encoder, InputError, check_dim, one_of
from rivals import Missing, SystemConfig, load_system
from rivals.lexical import TfidfEncoder, fit_lsa, fit_tfidf
from rivals.skipgram import fit_doc2vec, fit_word2vec
from rivals.static import StaticEncoder

FIT_CODE = ("rivals.lexical", "rivals.skipgram", "rivals.static", "repro.models.encoder")
NETWORKS = {BASELINES[key] for key in ("use", "sbert", "simcse", "minilm")}
"""those that an accelerator would encode on"""
WARM_UP = 16
"""sentences encoded before the clock starts"""


@dataclass(frozen=True)
class Baseline(Named):
    """One line of the table: an encoder that may be fitted when it is first called."""

    line: str = ""
    """what it is here, in words"""

    @property
    def columns(self) -> dict[str, Any]:
        """What its rows say of it."""
        return {"method": self.name, "backbone": self.backbone, "n_train": self.n_train}


def load_baselines(
    names: Sequence[str],
    chosen: Profile,
    systems: SystemConfig,
    texts: Sequence[str],
    store: Store,
    *,
    dim: int = 300,
    progress: bool = True,
) -> tuple[list[Baseline], pd.DataFrame]:
    """The baselines that can be had here, and a frame of the others: method and what is missing.

    Args:
        names: of `methods.BASELINES`.
        chosen: whose backbone, data and schedule SimCSE takes.
        systems: what those of `rivals` are made from.
        texts: sentences that TF-IDF, LSA, word2vec and Doc2Vec are fitted on.
        store: where trained encoders are kept.
        dim: size of LSA, word2vec and Doc2Vec.
        progress: show progress bars.

    Raises:
        InputError: for an unknown or repeated name, or none at hand.
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
    found, missing = [], []
    for key in names:
        name = BASELINES[key]
        if key in fit:
            named = digest({"fit": key, "dim": dim, "seed": seed, "texts": digest(list(texts))}, code=FIT_CODE)
            line = f"fitted here on {len(texts):,} sentences"
            found.append(Baseline(name, cache(fit[key]), named, key, len(texts), line))
        elif key == "simcse":
            (cell,) = train_all([replace(chosen.train, dim=hidden_dim_of(chosen.train))], store, progress=progress)
            config, encoder = cell.config, partial(getattr, cell, "encoder")
            line = f"{config.backbone}, trained here on {config.sentences:,} sentences, pooled state"
            found.append(Baseline(name, encoder, cell.key, config.backbone, config.sentences, line))
        else:
            try:
                it = load_system(key, systems, store, progress=progress)
                found.append(Baseline(name, cache(it.encoder), it.identity, it.backbone or key, it.n_train, it.line))
            except Missing as error:
                missing.append({"method": name, "missing": str(error)})
    if not found:
        raise InputError(f"baselines is {list(names)}: none of them is at hand")
    return found, pd.DataFrame(missing, columns=["method", "missing"])


def baseline_rows(
    baselines: Sequence[Baseline],
    tasks: Mapping[str, ScoredPairs],
    store: Store,
    *,
    timed: int = 100,
    repeats: int = 3,
    seed: int = 0,
    progress: bool = True,
    **shared: Any,
) -> pd.DataFrame:
    """Spearman on every task, gigabytes per million vectors and seconds per million sentences of every baseline.

    Metrics besides `spearman`: `spearman_lead`, of every two with a printed score, on shared resamples, as
    `SBERT − GloVe`; `gb_per_million`, setting `dense` (float32) or, of TF-IDF also, `sparse`; `nonzeros` of a sparse
    vector; `encode_seconds`, median over rounds between fastest and slowest; `zero_vectors`, texts of unknown words.

    Args:
        baselines: in the order of the table.
        tasks: the judged pairs, by name.
        store: where embeddings are kept.
        timed: sentences of the first task that are encoded against the clock.
        repeats: rounds of that.
        seed: of bootstrap and of drawing the timed sentences.
        progress: show progress bars.
        shared: columns common to all rows.
    """
    first = next(iter(tasks.values()))
    clocked = timed_texts(first, timed, seed=seed)
    rows: list[dict[str, Any]] = []
    cosines: dict[str, list[Array]] = {name: [] for name in tasks}
    zeros: dict[str, list[int]] = {name: [] for name in tasks}
    columns = []
    for b in baselines:
        counted = b.name == BASELINES["tfidf"]
        dim, by_task, memory = _counted(b, tasks) if counted else _encoded(b, tasks, store, progress)
        columns.append({**b.columns, "dim": dim})
        for name, (own, empty) in by_task.items():
            cosines[name].append(own)
            zeros[name].append(empty)
        dense = {"metric": "gb_per_million", "setting": "dense", "value": 4 * dim / 1e3}
        rows += [{**columns[-1], **row} for row in (dense, *memory)]
        encoder = b.make()
        encode = encoder.weights if isinstance(encoder, TfidfEncoder) else partial(encoder.encode, readout="encoder")
        spent = encode_seconds(encode, clocked, repeats=repeats)
        device = default_device().type if b.name in NETWORKS else "cpu"
        cost = {"metric": "encode_seconds", "dataset": first.name, "setting": "1 thread", "device": device}
        million = spent.times(1e6 / len(clocked))
        rows.append({**columns[-1], **cost, **million.columns, "seconds": spent.value * repeats})
    place = {at["method"]: k for k, at in enumerate(columns)}
    printed = [place[method] for method in PRINTED_BASELINES if method in place]
    for name, pairs in tasks.items():
        values, draws = spearman_draws(cosines[name], pairs.scores, subsets=pairs.subsets, seed=seed)
        for k, at in enumerate(columns):
            score = percentiles(values[k], draws[:, k])
            rows.append({**at, "dataset": name, "metric": "spearman", **score.columns})
            rows.append({**at, "dataset": name, "metric": "zero_vectors", "value": float(zeros[name][k])})
        for i, j in combinations(printed, 2):
            lead = percentiles(values[j] - values[i], draws[:, j] - draws[:, i])
            method = f"{columns[j]['method']} − {columns[i]['method']}"
            rows.append({"method": method, "dataset": name, "metric": "spearman_lead", **lead.columns})
    return make_rows(rows, readout="encoder", seed=seed, **shared)


Read = tuple[int, dict[str, tuple[Array, int]], list[dict[str, Any]]]
"""size; by task the cosines of all pairs and the number of zero vectors; rows on its memory besides the dense form"""


def _encoded(b: Baseline, tasks: Mapping[str, ScoredPairs], store: Store, progress: bool) -> Read:
    """A baseline of dense vectors on all tasks."""
    parts = {name: {"test": pairs} for name, pairs in tasks.items()}
    table = b.embed(parts, store, progress=progress)
    zeros = {name: int((~table[merge_equal(texts_of(p))[0]].any(axis=1)).sum()) for name, p in tasks.items()}
    return int(table.X.shape[1]), {name: (cosines_of(table, p), zeros[name]) for name, p in tasks.items()}, []


def _counted(b: Baseline, tasks: Mapping[str, ScoredPairs]) -> Read:
    """TF-IDF on all tasks, never made dense: a few thousand of its rows would fill the memory."""
    encoder = b.make()
    assert isinstance(encoder, TfidfEncoder)
    found, filled, count = {}, 0, 0
    for name, pairs in tasks.items():
        texts, inverse = merge_equal(texts_of(pairs))
        X = encoder.weights(texts)
        sides = X[inverse[: len(pairs)]], X[inverse[len(pairs) :]]  # rows of length 1, or zero
        cosines = np.asarray(sides[0].multiply(sides[1]).sum(axis=1)).ravel()
        found[name] = cosines, int((np.diff(X.indptr) == 0).sum())
        filled, count = filled + X.nnz, count + len(texts)
    mean = filled / count
    # compressed rows: a float32 and an int32 column per entry, and an int64 where each row starts
    sparse = {"metric": "gb_per_million", "setting": "sparse", "value": (8 * mean + 8) / 1e3}
    return encoder.dim, found, [sparse, {"metric": "nonzeros", "value": mean}]


def timed_texts(pairs: ScoredPairs, count: int, *, seed: int) -> list[str]:
    """So many distinct sentences of some pairs, drawn by the seed; all where there are fewer."""
    distinct = merge_equal(texts_of(pairs))[0]
    drawn = make_rng(seed, "timed sentences").permutation(len(distinct))[: check_dim(count, what="timed")]
    return [distinct[row] for row in sorted(drawn)]


def encode_seconds(encode: Callable[[Sequence[str]], Any], texts: Sequence[str], *, repeats: int = 3) -> Interval:
    """Seconds to encode the texts on one thread: median over rounds, between the fastest and the slowest."""
    with _one_thread():
        encode(texts[:WARM_UP])
        spent = []
        for _ in range(check_dim(repeats, what="repeats")):
            started = perf_counter()
            encode(texts)
            spent.append(perf_counter() - started)
    return Interval(float(np.median(spent)), min(spent), max(spent))


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread for networks, matrix products and tokenizers, which read this variable at every call."""
    name, before = "TOKENIZERS_PARALLELISM", os.environ.get("TOKENIZERS_PARALLELISM")
    os.environ[name] = "false"
    try:
        with threads(1), threadpool_limits(1):
            yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before
