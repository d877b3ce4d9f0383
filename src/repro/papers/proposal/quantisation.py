"""Fewer dimensions or fewer bits: which is the better way to spend a byte?

A way is a reducer, a level and a size that fill a budget of bytes per vector. Rows are reduced,
brought to length 1 and coded; reducer and codebook learn from one set of texts without labels.
Metrics: `spearman` of scored pairs, both sides coded; `ndcg@10` of queries and `neighbours_kept`,
the share of the ten nearest sentences that stay among the ten nearest, with float queries against
coded rows, as only what is stored has to be small. `…_lead` is one level over another of equal
bytes on the same resampled items.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro.evaluation import quantise as coding
from repro.evaluation.retrieve import retrieve, top_documents
from repro.evaluation.stats import mean_draws, spearman_draws
from repro.evaluation.sts import prefix_cosines
from repro.methods import FULL_SIZE
from repro.reducers import make_reducer
from repro.rows import make_rows
from repro.runs.lines import TextTable
from repro.seeding import make_rng
from repro.sets import Retrieval, ScoredPairs, texts_of
from repro.types import Array, InputError, one_of, unit_rows

Rows: TypeAlias = NDArray[np.int64]
Items: TypeAlias = dict[str, Array]  # by metric what each item contributes

FIRST, PCA, ROTATED = "first columns", "PCA", "PCA, rotated"
REDUCERS = (FIRST, PCA, ROTATED)
"""The last turns PCA's output at random: cosines stay, but every dimension has its share of the
variance, and a bit of each dimension is worth the same.
"""
HAMMING, SHORTLIST = "binary, queries too", "binary, then float"
"""Queries coded as well; and a shortlist by these, ordered by the full floats, which then lie on a
disk.
"""
SCORES = {
    "spearman": "STS-B, Spearman",
    "ndcg@10": "retrieval, nDCG@10",
    "neighbours_kept": "ten neighbours kept",
}
"""What tables and figures call the metrics."""
NEIGHBOURS, ASKED = 10, 200


class Way(NamedTuple):
    """One way to spend a budget of bytes per vector."""

    reducer: str
    level: str
    dim: int
    bytes: int


def ways(
    full: int,
    budgets: Sequence[int],
    levels: Sequence[str],
    reducers: Sequence[str],
    *,
    fit: int,
) -> list[Way]:
    """Every way to spend exactly so many bytes on at most `full` numbers.

    A level whose numbers do not reach a budget even at full size is not among its ways; nor is PCA
    where `fit` rows are too few for so many components.
    """
    most = {
        one_of(r, REDUCERS, "reducer"): full if r == FIRST else min(full, fit - 1) for r in reducers
    }
    spent = [(level, size) for level in levels for size in sorted(set(budgets))]
    found = [
        Way(r, level, coding.affordable_dim(size, level), size)
        for r in most
        for level, size in spent
    ]
    found = [way for way in found if 1 <= way.dim <= most[way.reducer]]
    if not found:
        raise InputError(
            f"no level spends {list(budgets)} bytes on at most {full} numbers: give smaller budgets"
        )
    return found


@dataclass(frozen=True, eq=False)
class Bench:
    """All texts as one matrix of unit rows, and where those of each task stand in it."""

    X: Array
    at: Mapping[str, Rows]
    """Rows of the texts to fit on, both sides of the pairs, their distinct sentences, and the
    retrieval task.
    """
    asked: Rows  # positions among the distinct sentences of those whose neighbours are compared
    pairs: ScoredPairs
    questions: Retrieval
    seed: int

    @classmethod
    def of(
        cls,
        table: TextTable,
        fit: Sequence[str],
        pairs: ScoredPairs,
        questions: Retrieval,
        seed: int,
    ) -> "Bench":
        """Every text once."""
        sentences = list(dict.fromkeys(texts_of(pairs)))
        texts = list(dict.fromkeys([*fit, *sentences, *texts_of(questions)]))
        place = {text: i for i, text in enumerate(texts)}
        each = {
            "fit": dict.fromkeys(fit),
            "first": pairs.texts1,
            "second": pairs.texts2,
            "sentences": sentences,
        }
        each |= {"queries": questions.queries, "documents": questions.documents}
        at = {name: np.array([place[text] for text in some]) for name, some in each.items()}
        asked = np.sort(make_rng(seed, "neighbours").permutation(len(sentences))[:ASKED])
        return cls(unit_rows(table[texts].astype(np.float64)), at, asked, pairs, questions, seed)

    def judge(self, C: Array, Q: Array) -> Items:
        """What each item contributes: cosines of coded pairs, and what float queries find among
        coded rows.
        """
        u, v = C[self.at["first"]], C[self.at["second"]]
        return {"spearman": prefix_cosines(u, v, [u.shape[1]])[0], **self.search(C, Q)}

    def search(self, C: Array, Q: Array) -> Items:
        """What Q finds among C, of all texts: nDCG of queries, and the share of each sentence's
        neighbours kept.
        """
        ids = {"query_ids": self.questions.query_ids, "corpus_ids": self.questions.document_ids}
        found = retrieve(
            Q[self.at["queries"]],
            C[self.at["documents"]],
            self.questions.qrels,
            **ids,
        )
        return {"ndcg@10": found.ndcg(10), "neighbours_kept": self.kept(C, Q, NEIGHBOURS)}

    def kept(self, C: Array, Q: Array, k: int) -> Array:
        """Share of the ten nearest by full floats that are among the k nearest of C to Q, by
        sentence.
        """
        return np.array(
            [np.isin(a, b).mean() for a, b in zip(self.truth, self.nearest(C, Q, k), strict=True)]
        )

    @cached_property
    def truth(self) -> Rows:
        """The nearest by full floats."""
        return self.nearest(self.X, self.X, NEIGHBOURS)

    def nearest(self, C: Array, Q: Array, k: int) -> Rows:
        """The k nearest sentences of each that is asked for; all where there are fewer."""
        k = min(k, len(self.at["sentences"]) - 1)
        top = top_documents(Q[self.at["sentences"]][self.asked], C[self.at["sentences"]], k + 1)
        # a sentence is no neighbour of itself; where ties put others before it, the last goes
        # instead
        return np.array([row[row != own][:k] for row, own in zip(top, self.asked, strict=True)])

    def reduced(self, reducer: str, dims: Sequence[int]) -> Iterator[tuple[int, Array]]:
        """All texts at each size, rows of length 1."""
        name = "truncate" if reducer == FIRST else "pca"
        fitted = make_reducer(name, max(dims), seed=self.seed).fit(self.X[self.at["fit"]])
        Y = fitted.transform(self.X)
        for dim in dims:
            Z = fitted.prefix(Y, dim).astype(np.float64)
            if reducer == ROTATED:
                Z = (
                    Z
                    @ np.linalg.qr(make_rng(self.seed, "rotation", dim).normal(size=(dim, dim)))[0]
                )
            yield dim, unit_rows(Z)


def byte_rows(
    table: TextTable,
    fit: Sequence[str],
    pairs: ScoredPairs,
    questions: Retrieval,
    budgets: Sequence[int],
    *,
    levels: Sequence[str] = tuple(coding.BITS),
    reducers: Sequence[str] = REDUCERS,
    shortlist: int = 4 * NEIGHBOURS,
    seed: int = 0,
    **shared: Any,
) -> pd.DataFrame:
    """Scores of every way to spend every budget of bytes per vector, and differences of levels at
    equal bytes.

    Reducers and codebooks learn from the texts `fit`; neighbours are those among the distinct
    sentences of the pairs. A search by bits leaves as many rows as the shortlist is long to the
    floats.
    """
    bench = Bench.of(table, fit, pairs, questions, seed)
    fit_rows, full = bench.at["fit"], bench.X.shape[1]
    chosen = ways(full, budgets, levels, reducers, fit=len(fit_rows))
    whole = {"method": FULL_SIZE, "setting": "", "dim": full}
    lines: list[tuple[dict[str, Any], Items]] = [(whole, bench.judge(bench.X, bench.X))]
    counted: list[dict[str, Any]] = []
    for reducer in dict.fromkeys(way.reducer for way in chosen):
        own = [way for way in chosen if way.reducer == reducer]
        for dim, Y in bench.reduced(reducer, sorted({way.dim for way in own})):
            for way in (w for w in own if w.dim == dim):
                at = {
                    "method": way.level,
                    "setting": f"{way.reducer}, {way.bytes} bytes",
                    "dim": dim,
                }
                book = coding.fit_codebook(Y[fit_rows], way.level)
                C = coding.dequantise(coding.quantise(Y, book), book)
                lines.append((at, bench.judge(C, coding.prepare_queries(Y, book))))
                counted.append(
                    {
                        **at,
                        "metric": "vector_bytes",
                        "value": float(coding.vector_bytes(dim, way.level)),
                    }
                )
                counted.append(
                    {**at, "metric": "codebook_bytes", "value": float(book.stored_bytes)}
                )
                if way.level == "binary":
                    lines.append(({**at, "method": HAMMING}, bench.search(C, C)))
                    lines.append(
                        (
                            {**at, "method": SHORTLIST},
                            {"neighbours_kept": bench.kept(C, C, shortlist)},
                        )
                    )
    scored = [row for metric in SCORES for row in _scored(metric, lines, bench)]
    return make_rows(
        [*scored, *counted],
        readout="encoder",
        seed=seed,
        n_train=len(fit_rows),
        **shared,
    )


def _scored(
    metric: str,
    lines: Sequence[tuple[dict[str, Any], Items]],
    bench: Bench,
) -> Iterator[dict[str, Any]]:
    """The scores of one metric, and of every two levels at equal bytes the lead of the one of fewer
    bits.
    """
    own = [({**at, "metric": metric}, items[metric]) for at, items in lines if metric in items]
    outcomes, pairs = [items for _, items in own], bench.pairs
    if metric == "spearman":
        found = spearman_draws(outcomes, pairs.scores, subsets=pairs.subsets, seed=bench.seed)
    else:
        found = mean_draws(outcomes, seed=bench.seed)
    dataset = bench.questions.name if metric == "ndcg@10" else pairs.name
    for j, (at, _) in enumerate(own):
        yield {**at, "dataset": dataset, **found[j].columns}
    bits = [coding.BITS.get(at["method"]) for at, _ in own]
    for a, b in combinations([j for j, size in enumerate(bits) if size], 2):
        if own[a][0]["setting"] == own[b][0]["setting"]:
            few, many = sorted((a, b), key=lambda j: bits[j] or 0)
            method, setting = (
                f"{own[few][0]['method']} − {own[many][0]['method']}",
                own[few][0]["setting"],
            )
            lead = {
                "method": method,
                "setting": setting,
                "dataset": dataset,
                "metric": f"{metric}_lead",
            }
            yield {**lead, **(found[few] - found[many]).columns}
