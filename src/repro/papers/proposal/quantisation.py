"""Fewer dimensions or fewer bits: which is the better way to spend a byte?

A way is a reducer, a level and a size that fill a budget of bytes per vector. Rows are reduced, brought to length 1 and
coded; reducer and codebook learn from one set of texts without labels. Metrics: `spearman` of scored pairs, both
sides coded; `ndcg@10` of queries and `neighbours_kept`, the share of the ten nearest sentences that stay among the
ten nearest, with float queries against coded rows, as only what is stored has to be small. `…_lead` is one level
over another of equal bytes on the same resampled items.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro.evaluation.quantise import (
    BITS,
    Codebook,
    affordable_dim,
    dequantise,
    fit_codebook,
    prepare_queries,
    quantise,
    vector_bytes,
)
from repro.evaluation.retrieve import retrieve
from repro.evaluation.search import top_documents
from repro.evaluation.stats import mean_draws, percentiles, spearman_draws
from repro.evaluation.sts import prefix_cosines
from repro.methods import FULL_SIZE
from repro.reducers import make_reducer
from repro.rows import make_rows
from repro.runs.embeddings import TextTable
from repro.runs.published import unit_rows
from repro.seeding import make_rng
from repro.sets import Retrieval, ScoredPairs, texts_of
from repro.types import Array, InputError, one_of

Rows: TypeAlias = NDArray[np.int64]

FIRST, PCA, ROTATED = "first columns", "PCA", "PCA, rotated"
REDUCERS = (FIRST, PCA, ROTATED)
"""the last turns PCA's output at random: cosines stay, but every dimension has its share of the variance, and a bit
of each dimension is worth the same"""
HAMMING, SHORTLIST = "binary, queries too", "binary, then float"
"""queries coded as well; and a shortlist by these, ordered by the full floats, which then lie on a disk"""
NEIGHBOURS, ASKED, RESAMPLES = 10, 200, 2_000


@dataclass(frozen=True)
class Way:
    """One way to spend a budget."""

    reducer: str
    level: str
    dim: int
    bytes: int

    @property
    def setting(self) -> str:
        """What rows say of it, level and size aside."""
        return f"{self.reducer}, {self.bytes} bytes"


def ways(full: int, budgets: Sequence[int], levels: Sequence[str], reducers: Sequence[str], *, fit: int) -> list[Way]:
    """Every way to spend exactly so many bytes on at most `full` numbers.

    A level whose numbers do not reach a budget even at full size is not among its ways; nor is PCA where `fit` rows
    are too few for so many components.

    Raises:
        InputError: for an unknown level or reducer, or budgets that no way meets.
    """
    found = []
    for reducer in reducers:
        most = full if one_of(reducer, REDUCERS, "reducer") == FIRST else min(full, fit - 1)
        for level in levels:
            sizes = ((budget, affordable_dim(budget, level)) for budget in sorted(set(budgets)))
            found += [Way(reducer, level, dim, budget) for budget, dim in sizes if 1 <= dim <= most]
    if not found:
        raise InputError(f"no level spends {list(budgets)} bytes on at most {full} numbers: give smaller budgets")
    return found


def byte_rows(
    table: TextTable,
    fit: Sequence[str],
    pairs: ScoredPairs,
    questions: Retrieval,
    budgets: Sequence[int],
    *,
    levels: Sequence[str] = tuple(BITS),
    reducers: Sequence[str] = REDUCERS,
    shortlist: int = 4 * NEIGHBOURS,
    seed: int = 0,
    **shared: Any,
) -> pd.DataFrame:
    """Scores of every way to spend every budget, and differences of levels at equal bytes.

    Args:
        table: full embeddings of all texts.
        fit: texts that reducers and codebooks learn from.
        pairs: scored pairs; neighbours are those among their distinct sentences.
        questions: queries and documents.
        budgets: bytes per vector.
        levels: of `quantise.BITS`.
        reducers: of `REDUCERS`.
        shortlist: rows that a search by bits leaves to the floats.
        seed: of the rotation, the sampled sentences and the resamples.
        shared: columns of every row; `n_train` is the number of distinct texts in `fit`.
    """
    bench = _bench(table, fit, pairs, questions, seed)
    chosen = ways(bench.X.shape[1], budgets, levels, reducers, fit=len(bench.fit))
    columns: list[tuple[str, str, int, Mapping[str, Array]]] = [
        (FULL_SIZE, "", bench.X.shape[1], bench.judge(bench.X, bench.X, bench.X))
    ]
    counted: list[dict[str, Any]] = []
    for reducer in dict.fromkeys(way.reducer for way in chosen):
        own = [way for way in chosen if way.reducer == reducer]
        for dim, Y in _reduced(reducer, bench, sorted({way.dim for way in own}), seed):
            for way in (w for w in own if w.dim == dim):
                book = fit_codebook(Y[bench.fit], way.level)
                codes = quantise(Y, book)
                C = dequantise(codes, book)
                columns.append((way.level, way.setting, dim, bench.judge(C, C, prepare_queries(Y, book))))
                counted += [{"method": way.level, "setting": way.setting, "dim": dim, **row} for row in _counts(book)]
                if way.level == "binary":
                    columns.append((HAMMING, way.setting, dim, bench.search(C, C)))
                    kept = {"neighbours_kept": bench.kept(C, C, shortlist)}
                    columns.append((SHORTLIST, way.setting, dim, kept))
    scored = [row for metric in ("spearman", "ndcg@10", "neighbours_kept") for row in _scored(metric, columns, bench)]
    return make_rows([*scored, *counted], readout="encoder", seed=seed, n_train=len(bench.fit), **shared)


@dataclass(frozen=True, eq=False)
class _Bench:
    """All texts as one matrix, and where each task's stand in it."""

    X: Array
    fit: Rows
    sides: tuple[Rows, Rows]
    pool: Rows
    """distinct sentences of the pairs"""
    asked: Rows
    """positions in the pool of those whose neighbours are compared"""
    queries: Rows
    documents: Rows
    pairs: ScoredPairs
    questions: Retrieval
    seed: int

    @cached_property
    def truth(self) -> Rows:
        """The nearest sentences by full floats, of each sentence that is asked for."""
        return self._nearest(self.X, self.X, min(NEIGHBOURS, len(self.pool) - 1))

    def judge(self, sides: Array, C: Array, Q: Array) -> dict[str, Array]:
        """What each item contributes: cosines of pairs, nDCG of queries, share of each sentence's neighbours kept."""
        u, v = (sides[rows] for rows in self.sides)
        return {"spearman": prefix_cosines(u, v, [u.shape[1]])[0], **self.search(C, Q)}

    def search(self, C: Array, Q: Array) -> dict[str, Array]:
        """The parts of `judge` that search for Q among C, matrices of all texts."""
        ids = {"query_ids": self.questions.query_ids, "corpus_ids": self.questions.document_ids}
        found = retrieve(Q[self.queries], C[self.documents], self.questions.qrels, **ids)
        return {"ndcg@10": found.ndcg(10), "neighbours_kept": self.kept(C, Q, NEIGHBOURS)}

    def kept(self, C: Array, Q: Array, k: int) -> Array:
        """Share of the ten nearest by full floats that are among the k nearest of C to Q, by sentence."""
        found = self._nearest(C, Q, min(k, len(self.pool) - 1))
        return np.array([np.isin(a, b).mean() for a, b in zip(self.truth, found, strict=True)])

    def _nearest(self, C: Array, Q: Array, k: int) -> Rows:
        top = top_documents(Q[self.pool][self.asked], C[self.pool], k + 1)
        # a sentence is no neighbour of itself; where ties put others before it, the last goes instead
        return np.array([row[row != own][:k] for row, own in zip(top, self.asked, strict=True)])

    def draws(self, metric: str, columns: Sequence[Array]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Scores of each column (P,), and of each on the same resampled items (resamples, P)."""
        if metric == "spearman":
            return spearman_draws(
                columns, self.pairs.scores, subsets=self.pairs.subsets, resamples=RESAMPLES, seed=self.seed
            )
        return mean_draws(columns, resamples=RESAMPLES, seed=self.seed)


def _bench(table: TextTable, fit: Sequence[str], pairs: ScoredPairs, questions: Retrieval, seed: int) -> _Bench:
    sentences = list(dict.fromkeys(texts_of(pairs)))
    texts = list(dict.fromkeys([*fit, *sentences, *texts_of(questions)]))
    place = {text: i for i, text in enumerate(texts)}

    def rows(some: Sequence[str]) -> Rows:
        return np.array([place[text] for text in some])

    asked = np.sort(make_rng(seed, "neighbours").permutation(len(sentences))[:ASKED])
    return _Bench(
        unit_rows(table[texts].astype(np.float64)),
        rows(list(dict.fromkeys(fit))),
        (rows(pairs.texts1), rows(pairs.texts2)),
        rows(sentences),
        asked,
        rows(questions.queries),
        rows(questions.documents),
        pairs,
        questions,
        seed,
    )


def _reduced(reducer: str, bench: _Bench, dims: Sequence[int], seed: int) -> Iterator[tuple[int, Array]]:
    """All texts at each size, rows of length 1."""
    name = "truncate" if reducer == FIRST else "pca"
    fitted = make_reducer(name, max(dims), seed=seed).fit(bench.X[bench.fit])
    Y = fitted.transform(bench.X)
    for dim in dims:
        Z = fitted.prefix(Y, dim).astype(np.float64)
        if reducer == ROTATED:
            Z = Z @ np.linalg.qr(make_rng(seed, "rotation", dim).normal(size=(dim, dim)))[0]
        yield dim, unit_rows(Z)


def _counts(book: Codebook) -> Iterator[dict[str, Any]]:
    yield {"metric": "vector_bytes", "value": float(vector_bytes(book.dim, book.level))}
    yield {"metric": "codebook_bytes", "value": float(book.stored_bytes)}


def _scored(
    metric: str, columns: Sequence[tuple[str, str, int, Mapping[str, Array]]], bench: _Bench
) -> Iterator[dict[str, Any]]:
    own = [(method, setting, dim, items[metric]) for method, setting, dim, items in columns if metric in items]
    values, draws = bench.draws(metric, [items for *_, items in own])
    dataset = bench.questions.name if metric == "ndcg@10" else bench.pairs.name
    for j, (method, setting, dim, _) in enumerate(own):
        at = {"method": method, "setting": setting, "dim": dim, "dataset": dataset}
        yield {**at, "metric": metric, **percentiles(float(values[j]), draws[:, j]).columns}
    plain = [j for j, (method, *_) in enumerate(own) if method in BITS]
    for a, b in combinations(plain, 2):
        if own[a][1] != own[b][1]:
            continue
        # the level of fewer bits first: what its more numbers gain
        few, many = sorted((a, b), key=lambda j: BITS[own[j][0]])
        lead = percentiles(float(values[few] - values[many]), draws[:, few] - draws[:, many])
        yield {
            "method": f"{own[few][0]} − {own[many][0]}",
            "setting": own[few][1],
            "dataset": dataset,
            "metric": f"{metric}_lead",
            **lead.columns,
        }
