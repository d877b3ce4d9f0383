"""The methods that the proposal compares with, on one table: quality, size and what a sentence costs (PROTOCOLS §6).

Counted words, latent directions and vectors of words or paragraphs are fitted here, on the sentences that SimCSE learns
from; the others come from `experiments.systems`. What is not at hand has a line that says what is missing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from repro.config import Profile, digest
from repro.evaluation.stats import percentiles, spearman_draws
from repro.methods import BASELINES, PRINTED_BASELINES
from repro.models.encoder import merge_equal
from repro.models.pretrained import default_device
from repro.papers.proposal.encode_cost import encode_seconds, timed_texts
from repro.rows import make_rows
from repro.runs.embeddings import encode_tasks
from repro.runs.pool import train_all
from repro.runs.published import as_published
from repro.runs.sweep import cosines_of, hidden_dim_of
from repro.sets import ScoredPairs, texts_of
from repro.store import Store
from repro.terminal import complain
from repro.types import Array, Encoder, InputError, one_of
from rivals import Missing, SystemConfig, load_system
from rivals.lexical import TfidfEncoder, fit_lsa, fit_tfidf
from rivals.skipgram import fit_doc2vec, fit_word2vec
from rivals.static import StaticEncoder

FIT_CODE = ("rivals.lexical", "rivals.skipgram", "rivals.static", "repro.models.layerless")
NETWORKS = ("use", "sbert", "simcse", "minilm")
"""those that an accelerator would encode on"""


@dataclass(frozen=True)
class Baseline:
    """One line of the table, ready to encode."""

    name: str
    encoder: Callable[[], Encoder]
    """makes the encoder; the first call may fit it"""
    identity: str
    """digest of everything that decides its output"""
    line: str
    """what it is here, in words"""
    backbone: str = ""
    n_train: int | None = None
    """sentences or pairs that this book fitted or trained it on"""

    @property
    def method(self) -> str:
        """What rows call it."""
        return BASELINES[self.name]

    @property
    def device(self) -> str:
        """Where it encodes."""
        return default_device().type if self.name in NETWORKS else "cpu"


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
        systems: what those of `experiments.systems` are made from.
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
    fit: dict[str, Callable[[], Encoder]] = {
        "tfidf": partial(fit_tfidf, texts),
        "lsa": partial(fit_lsa, texts, dim=min(dim, len(texts) - 1), seed=chosen.train.seed),
        "word2vec": lambda: StaticEncoder(fit_word2vec(texts, dim=dim, seed=chosen.train.seed)),
        "doc2vec": partial(fit_doc2vec, texts, dim=dim, seed=chosen.train.seed),
    }
    found, missing = [], []
    for name in names:
        if name in fit:
            settings = {"fit": name, "dim": dim, "seed": chosen.train.seed, "texts": digest(list(texts))}
            line = f"fitted here on {len(texts):,} sentences"
            found.append(Baseline(name, cache(fit[name]), digest(settings, code=FIT_CODE), line, n_train=len(texts)))
        elif name == "simcse":
            (cell,) = train_all([replace(chosen.train, dim=hidden_dim_of(chosen.train))], store, progress=progress)
            line = f"{cell.config.backbone}, trained here on {cell.config.sentences:,} sentences, pooled state"
            encoder = partial(getattr, cell, "encoder")
            found.append(Baseline(name, encoder, cell.key, line, cell.config.backbone, cell.config.sentences))
        else:
            try:
                loaded = load_system(name, systems, store, progress=progress)
            except Missing as error:
                missing.append({"method": BASELINES[name], "missing": str(error)})
                continue
            found.append(
                Baseline(name, cache(loaded.encoder), loaded.identity, loaded.line, loaded.backbone, loaded.n_train)
            )
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
    read = {b.name: _read(b, tasks, store, progress) for b in baselines}
    rows: list[dict[str, Any]] = []
    for b in baselines:
        of_one = read[b.name]
        at = {"method": b.method, "dim": of_one.dim, "backbone": b.backbone or b.name, "n_train": b.n_train}
        rows += [{**at, **row} for row in of_one.memory]
        spent = encode_seconds(_encode(b), clocked, repeats=repeats)
        million = spent.times(1e6 / len(clocked))
        rows.append(
            {
                **at,
                "metric": "encode_seconds",
                **million.columns,
                "device": b.device,
                "dataset": first.name,
                "setting": "1 thread",
                "seconds": spent.value * repeats,
            }
        )
    for name, pairs in tasks.items():
        values, draws = spearman_draws(
            [read[b.name].cosines[name] for b in baselines], pairs.scores, subsets=pairs.subsets, seed=seed
        )
        for k, b in enumerate(baselines):
            at = {"method": b.method, "dim": read[b.name].dim, "backbone": b.backbone or b.name, "n_train": b.n_train}
            rows.append({**at, "dataset": name, "metric": "spearman", **percentiles(values[k], draws[:, k]).columns})
            rows.append({**at, "dataset": name, "metric": "zero_vectors", "value": float(read[b.name].zeros[name])})
        place = {b.method: k for k, b in enumerate(baselines)}
        printed = [place[method] for method in PRINTED_BASELINES if method in place]
        for i, j in combinations(printed, 2):
            lead = percentiles(values[j] - values[i], draws[:, j] - draws[:, i])
            method = f"{baselines[j].method} − {baselines[i].method}"
            rows.append({"method": method, "dataset": name, "metric": "spearman_lead", **lead.columns})
    return make_rows(rows, readout="encoder", seed=seed, **shared)


@dataclass(frozen=True)
class _Read:
    """One baseline on all tasks."""

    dim: int
    cosines: Mapping[str, Array]
    zeros: Mapping[str, int]
    memory: list[dict[str, Any]]


def _read(b: Baseline, tasks: Mapping[str, ScoredPairs], store: Store, progress: bool) -> _Read:
    if b.name == "tfidf":
        return _counted(b, tasks)
    parts = {name: {"test": pairs} for name, pairs in tasks.items()}
    table = as_published(b.backbone, encode_tasks(b.encoder, b.identity, parts, store, progress=progress))
    empty = {name: int((~table[merge_equal(texts_of(p))[0]].any(axis=1)).sum()) for name, p in tasks.items()}
    dim = int(table.X.shape[1])
    return _Read(dim, {name: cosines_of(table, p) for name, p in tasks.items()}, empty, [_dense(dim)])


def _counted(b: Baseline, tasks: Mapping[str, ScoredPairs]) -> _Read:
    """TF-IDF, never made dense: a few thousand of its rows would fill the memory."""
    encoder = b.encoder()
    assert isinstance(encoder, TfidfEncoder)
    cosines, zeros, filled, count = {}, {}, 0, 0
    for name, pairs in tasks.items():
        texts, inverse = merge_equal(texts_of(pairs))
        X = encoder.weights(texts)
        sides = X[inverse[: len(pairs)]], X[inverse[len(pairs) :]]  # rows of length 1, or zero
        cosines[name] = np.asarray(sides[0].multiply(sides[1]).sum(axis=1)).ravel()
        zeros[name] = int((np.diff(X.indptr) == 0).sum())
        filled, count = filled + X.nnz, count + len(texts)
    mean = filled / count
    # compressed rows: a float32 and an int32 column per entry, and an int64 where each row starts
    sparse = {"metric": "gb_per_million", "setting": "sparse", "value": (8 * mean + 8) / 1e3}
    nonzeros = {"metric": "nonzeros", "value": mean}
    return _Read(encoder.dim, cosines, zeros, [_dense(encoder.dim), sparse, nonzeros])


def _dense(dim: int) -> dict[str, Any]:
    return {"metric": "gb_per_million", "setting": "dense", "value": 4 * dim / 1e3}


def _encode(b: Baseline) -> Callable[[Sequence[str]], Any]:
    encoder = b.encoder()
    return encoder.weights if isinstance(encoder, TfidfEncoder) else partial(encoder.encode, readout="encoder")
