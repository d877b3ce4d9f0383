"""Fewer dimensions or fewer bits: which is the better way to spend a byte?

A way is a reducer, a level and a size that fill a budget of bytes per vector. Rows are reduced, brought to length 1 and
coded; reducer and codebook learn from one set of texts without labels. Metrics: `spearman` of scored pairs, both
sides coded; `ndcg@10` of queries and `neighbours_kept`, the share of the ten nearest sentences that stay among the
ten nearest, with float queries against coded rows, as only what is stored has to be small. `…_lead` is one level
over another of equal bytes on the same resampled items.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro.evaluation.quantise import (
    BITS,
    affordable_dim,
    dequantise,
    fit_codebook,
    prepare_queries,
    quantise,
    vector_bytes,
)
from repro.evaluation.retrieve import retrieve, top_documents
from repro.evaluation.stats import Resampled, mean_draws, spearman_draws
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
Items: TypeAlias = dict[str, Array]
"""by metric what each item contributes"""

FIRST, PCA, ROTATED = "first columns", "PCA", "PCA, rotated"
REDUCERS = (FIRST, PCA, ROTATED)
"""the last turns PCA's output at random: cosines stay, but every dimension has its share of the variance, and a bit
of each dimension is worth the same"""
HAMMING, SHORTLIST = "binary, queries too", "binary, then float"
"""queries coded as well; and a shortlist by these, ordered by the full floats, which then lie on a disk"""
NEIGHBOURS, ASKED, RESAMPLES = 10, 200, 2_000


class Way(NamedTuple):
    """One way to spend a budget of bytes per vector."""

    reducer: str
    level: str
    dim: int
    bytes: int


def ways(full: int, budgets: Sequence[int], levels: Sequence[str], reducers: Sequence[str], *, fit: int) -> list[Way]:
    """Every way to spend exactly so many bytes on at most `full` numbers.

    A level whose numbers do not reach a budget even at full size is not among its ways; nor is PCA where `fit` rows
    are too few for so many components.

    Raises:
        InputError: for an unknown level or reducer, or budgets that no way meets.
    """
    most = {one_of(r, REDUCERS, "reducer"): full if r == FIRST else min(full, fit - 1) for r in reducers}
    spent = [(level, size) for level in levels for size in sorted(set(budgets))]
    found = [Way(r, level, affordable_dim(size, level), size) for r in most for level, size in spent]
    found = [way for way in found if 1 <= way.dim <= most[way.reducer]]
    if not found:
        raise InputError(f"no level spends {list(budgets)} bytes on at most {full} numbers: give smaller budgets")
    return found


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

    @classmethod
    def of(cls, table: TextTable, fit: Sequence[str], pairs: ScoredPairs, questions: Retrieval, seed: int) -> "_Bench":
        """Every text once, rows of length 1."""
        sentences = list(dict.fromkeys(texts_of(pairs)))
        texts = list(dict.fromkeys([*fit, *sentences, *texts_of(questions)]))
        place = {text: i for i, text in enumerate(texts)}
        each = (dict.fromkeys(fit), pairs.texts1, pairs.texts2, sentences, questions.queries, questions.documents)
        own, first, second, pool, queries, documents = (np.array([place[text] for text in some]) for some in each)
        asked = np.sort(make_rng(seed, "neighbours").permutation(len(sentences))[:ASKED])
        X = unit_rows(table[texts].astype(np.float64))
        return cls(X, own, (first, second), pool, asked, queries, documents, pairs, questions, seed)

    @cached_property
    def truth(self) -> Rows:
        """The nearest sentences by full floats, of each sentence that is asked for."""
        return self._nearest(self.X, self.X, min(NEIGHBOURS, len(self.pool) - 1))

    def judge(self, sides: Array, C: Array, Q: Array) -> Items:
        """What each item contributes: cosines of pairs, nDCG of queries, share of each sentence's neighbours kept."""
        u, v = (sides[rows] for rows in self.sides)
        return {"spearman": prefix_cosines(u, v, [u.shape[1]])[0], **self.search(C, Q)}

    def search(self, C: Array, Q: Array) -> Items:
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

    def reduced(self, reducer: str, dims: Sequence[int]) -> Iterator[tuple[int, Array]]:
        """All texts at each size, rows of length 1."""
        name = "truncate" if reducer == FIRST else "pca"
        fitted = make_reducer(name, max(dims), seed=self.seed).fit(self.X[self.fit])
        Y = fitted.transform(self.X)
        for dim in dims:
            Z = fitted.prefix(Y, dim).astype(np.float64)
            if reducer == ROTATED:
                Z = Z @ np.linalg.qr(make_rng(self.seed, "rotation", dim).normal(size=(dim, dim)))[0]
            yield dim, unit_rows(Z)


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
    bench = _Bench.of(table, fit, pairs, questions, seed)
    full = bench.X.shape[1]
    chosen = ways(full, budgets, levels, reducers, fit=len(bench.fit))
    columns: list[tuple[dict[str, Any], Items]] = [
        ({"method": FULL_SIZE, "setting": "", "dim": full}, bench.judge(bench.X, bench.X, bench.X))
    ]
    counted: list[dict[str, Any]] = []
    for reducer in dict.fromkeys(way.reducer for way in chosen):
        own = [way for way in chosen if way.reducer == reducer]
        for dim, Y in bench.reduced(reducer, sorted({way.dim for way in own})):
            for way in (w for w in own if w.dim == dim):
                at = {"method": way.level, "setting": f"{way.reducer}, {way.bytes} bytes", "dim": dim}
                book = fit_codebook(Y[bench.fit], way.level)
                C = dequantise(quantise(Y, book), book)
                columns.append((at, bench.judge(C, C, prepare_queries(Y, book))))
                counted.append({**at, "metric": "vector_bytes", "value": float(vector_bytes(book.dim, book.level))})
                counted.append({**at, "metric": "codebook_bytes", "value": float(book.stored_bytes)})
                if way.level == "binary":
                    columns.append(({**at, "method": HAMMING}, bench.search(C, C)))
                    columns.append(({**at, "method": SHORTLIST}, {"neighbours_kept": bench.kept(C, C, shortlist)}))
    scored = [row for metric in ("spearman", "ndcg@10", "neighbours_kept") for row in _scored(metric, columns, bench)]
    return make_rows([*scored, *counted], readout="encoder", seed=seed, n_train=len(bench.fit), **shared)


def _scored(metric: str, columns: Sequence[tuple[dict[str, Any], Items]], bench: _Bench) -> Iterator[dict[str, Any]]:
    """The scores of one metric, and of every two levels at equal bytes the lead of the one of fewer bits."""
    own = [({**at, "metric": metric}, items[metric]) for at, items in columns if metric in items]
    outcomes, options = [items for _, items in own], {"resamples": RESAMPLES, "seed": bench.seed}
    if metric == "spearman":
        found = Resampled(*spearman_draws(outcomes, bench.pairs.scores, subsets=bench.pairs.subsets, **options))
    else:
        found = Resampled(*mean_draws(outcomes, **options))
    dataset = bench.questions.name if metric == "ndcg@10" else bench.pairs.name
    for j, (at, _) in enumerate(own):
        yield {**at, "dataset": dataset, **found[j].columns}
    plain = [j for j, (at, _) in enumerate(own) if at["method"] in BITS]
    for a, b in combinations(plain, 2):
        if own[a][0]["setting"] == own[b][0]["setting"]:
            few, many = sorted((a, b), key=lambda j: BITS[own[j][0]["method"]])
            method, setting = f"{own[few][0]['method']} − {own[many][0]['method']}", own[few][0]["setting"]
            lead = {"method": method, "setting": setting, "dataset": dataset, "metric": f"{metric}_lead"}
            yield {**lead, **(found[few] - found[many]).columns}
