"""Fewer dimensions or fewer bits: which is the better way to spend a byte?

A way is a reducer, a level and a size that fill a budget of bytes per vector. Rows are reduced,
brought to length 1 and coded; reducer and codebook learn from one set of texts without labels.
Metrics: `spearman` of scored pairs, both sides coded; `ndcg@10` of queries and `neighbours_kept`,
the share of the ten nearest sentences that stay among the ten nearest, with float queries against
coded rows, as only what is stored has to be small. `…_lead` is one level over another of equal
bytes on the same resampled items, `…_change` any way less the full size.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro.evaluation import quantise as coding
from repro.evaluation.retrieve import Retrieved, retrieve
from repro.evaluation.search import top_documents
from repro.evaluation.stats import mean_draws, spearman_draws
from repro.evaluation.sts import prefix_cosines
from repro.methods import FULL_SIZE
from repro.reducers import make_reducer
from repro.rows import Row, make_rows
from repro.runs.lines import TextTable
from repro.seeding import make_rng
from repro.sets import Retrieval, ScoredPairs, texts_of
from repro.types import Array, InputError, one_of, told_as, unit_rows

Rows: TypeAlias = NDArray[np.int64]
Items: TypeAlias = dict[str, Array]
"""What each item contributes, by metric."""
Scored: TypeAlias = tuple[Row, Items]
"""A line of the table: its columns, and its items."""

FIRST, PCA, ROTATED = "first columns", "PCA", "PCA, rotated"
REDUCERS = (FIRST, PCA, ROTATED)
"""What makes vectors shorter. The last turns PCA's output at random: cosines stay, but every
dimension has its share of the variance, and a bit of each dimension is worth the same.
"""
HAMMING, SHORTLIST = "binary, queries too", "binary, then float"
"""Searches by bits: with queries coded as well, and by a shortlist of these that is ordered by the
full floats, which then lie on a disk.
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
    spending = []
    for reducer, level, size in product(most, levels, sorted(set(budgets))):
        way = Way(reducer, level, coding.affordable_dim(size, level), size)
        if 1 <= way.dim <= most[reducer]:
            spending.append(way)
    if not spending:
        raise InputError(
            f"no level spends {list(budgets)} bytes on at most {full} numbers: give smaller budgets"
        )
    return spending


@dataclass(frozen=True, eq=False)
class Bench:
    """All texts as one matrix of unit rows, and where those of each task stand in it."""

    X: Array
    at: Mapping[str, Rows]
    """Rows of the texts to fit on, both sides of the pairs, their distinct sentences, and the
    retrieval task.
    """
    asked: Rows  # Which of the distinct sentences have their neighbours compared
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
        uses = {
            "fit": dict.fromkeys(fit),
            "first": pairs.texts1,
            "second": pairs.texts2,
            "sentences": sentences,
            "queries": questions.queries,
            "documents": questions.documents,
        }
        rows = {}
        for use, texts_used in uses.items():
            rows[use] = np.array([place[text] for text in texts_used])
        asked = np.sort(make_rng(seed, "neighbours").permutation(len(sentences))[:ASKED])
        return cls(unit_rows(table[texts].astype(np.float64)), rows, asked, pairs, questions, seed)

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
        questions = self.questions
        retrieved = retrieve(
            Q[self.at["queries"]],
            C[self.at["documents"]],
            questions.qrels,
            query_ids=questions.query_ids,
            corpus_ids=questions.document_ids,
        )
        return {"ndcg@10": retrieved.ndcg(10), "neighbours_kept": self.kept(C, Q, NEIGHBOURS)}

    def rescored(self, C: Array, shortlist: int) -> Items:
        """What full floats make of a shortlist that coded queries found among coded rows, with the
        names of `search`.
        """
        queries, documents = self.at["queries"], self.at["documents"]
        shortlisted = top_documents(C[queries], C[documents], min(shortlist, len(documents)))
        # In the order of documents, which decides between equal cosines
        shortlisted = np.sort(shortlisted, axis=1)
        cosines = np.einsum("qd,qsd->qs", self.X[queries], self.X[documents[shortlisted]])
        order = np.argsort(-cosines.round(12), axis=1, kind="stable")
        ids = np.array(self.questions.document_ids, object)
        lists = ids[np.take_along_axis(shortlisted, order, 1)]
        ranked = []
        # Query by query as `retrieve` goes, so that differences are of the same query
        for query, documents_found in zip(self.questions.query_ids, lists, strict=True):
            rank = {document: i + 1 for i, document in enumerate(documents_found)}
            judged = self.questions.qrels.get(query, {})
            # What is not on the shortlist stands behind all documents
            last = len(documents)
            ranks = [(rank.get(d, last), gain) for d, gain in judged.items() if gain > 0]
            if ranks:
                ranked.append(np.array(sorted(ranks), float))
        scored = Retrieved(np.arange(len(ranked)), tuple(ranked), shortlisted[:, 0])
        return {"ndcg@10": scored.ndcg(10), "neighbours_kept": self.kept(C, C, shortlist)}

    def kept(self, C: Array, Q: Array, k: int) -> Array:
        """Share of the ten nearest by full floats that are among the k nearest of C to Q, by
        sentence.
        """
        pairs = zip(self.truth, self.nearest(C, Q, k), strict=True)
        return np.array([np.isin(true, nearest).mean() for true, nearest in pairs])

    @cached_property
    def truth(self) -> Rows:
        """The nearest by full floats."""
        return self.nearest(self.X, self.X, NEIGHBOURS)

    def nearest(self, C: Array, Q: Array, k: int) -> Rows:
        """The k nearest sentences of each that is asked for; all where there are fewer."""
        sentences = self.at["sentences"]
        k = min(k, len(sentences) - 1)
        top = top_documents(Q[sentences][self.asked], C[sentences], k + 1)
        # A sentence is no neighbour of itself; where ties put others before it, the last goes
        # instead
        pairs = zip(top, self.asked, strict=True)
        return np.array([row[row != sentence][:k] for row, sentence in pairs])

    def reduced(self, reducer: str, dims: Sequence[int]) -> Iterator[tuple[int, Array]]:
        """All texts at each size, rows of length 1."""
        name = "truncate" if reducer == FIRST else "pca"
        with told_as(n_components="dim"):
            fitted = make_reducer(name, max(dims), seed=self.seed).fit(self.X[self.at["fit"]])
        Y = fitted.transform(self.X)
        for dim in dims:
            Z = fitted.prefix(Y, dim).astype(np.float64)
            if reducer == ROTATED:
                normal = make_rng(self.seed, "rotation", dim).normal(size=(dim, dim))
                Z = Z @ np.linalg.qr(normal).Q
            yield dim, unit_rows(Z)


def byte_rows(
    bench: Bench,
    budgets: Sequence[int],
    *,
    levels: Sequence[str] = tuple(coding.BITS),
    reducers: Sequence[str] = REDUCERS,
    shortlist: int = 4 * NEIGHBOURS,
    **shared: Any,
) -> pd.DataFrame:
    """Scores of every way to spend every budget of bytes per vector, and differences of levels at
    equal bytes.

    Reducers and codebooks learn from the texts to fit on; neighbours are those among the distinct
    sentences of the pairs. A search by bits leaves as many rows as the shortlist is long to the
    floats.
    """
    fit_rows, full = bench.at["fit"], bench.X.shape[1]
    chosen = ways(full, budgets, levels, reducers, fit=len(fit_rows))
    full_size = {"method": FULL_SIZE, "setting": "", "dim": full}
    lines: list[Scored] = [(full_size, bench.judge(bench.X, bench.X))]
    counted: list[Row] = []
    for reducer in dict.fromkeys(way.reducer for way in chosen):
        dims = {way.dim for way in chosen if way.reducer == reducer}
        for dim, Y in bench.reduced(reducer, sorted(dims)):
            for way in chosen:
                if (way.reducer, way.dim) == (reducer, dim):
                    book = coding.fit_codebook(Y[fit_rows], way.level)
                    lines += _coded(way, Y, book, bench, shortlist)
                    counted += _byte_counts(way, book)
    scored: list[Row] = []
    for metric in SCORES:
        scored += _scored(metric, lines, bench)
    n_train = len(fit_rows)
    common = {"readout": "encoder", "n_train": n_train, **shared, "seed": bench.seed}
    return make_rows([*scored, *counted], **common)


def _columns(way: Way) -> Row:
    """The columns that tell a way to spend bytes."""
    setting = f"{way.reducer}, {way.bytes} bytes"
    return {"method": way.level, "setting": setting, "dim": way.dim}


def _coded(
    way: Way,
    Y: Array,
    book: coding.Codebook,
    bench: Bench,
    shortlist: int,
) -> Iterator[Scored]:
    """How coded rows do against float queries; bits also against bits, and as a shortlist."""
    columns = _columns(way)
    C = coding.dequantise(coding.quantise(Y, book), book)
    yield columns, bench.judge(C, coding.prepare_queries(Y, book))
    if way.level == "binary":
        yield {**columns, "method": HAMMING}, bench.search(C, C)
        yield {**columns, "method": SHORTLIST}, bench.rescored(C, shortlist)


def _byte_counts(way: Way, book: coding.Codebook) -> Iterator[Row]:
    """Bytes of a vector, and of the codebook that all share."""
    vector = coding.vector_bytes(way.dim, way.level)
    yield {**_columns(way), "metric": "vector_bytes", "value": vector}
    yield {**_columns(way), "metric": "codebook_bytes", "value": book.stored_bytes}


def _scored(
    metric: str,
    lines: Sequence[Scored],
    bench: Bench,
) -> Iterator[Row]:
    """The scores of one metric, and of every two levels at equal bytes the lead of the one of fewer
    bits.
    """
    measured = [(columns, items[metric]) for columns, items in lines if metric in items]
    columns, outcomes = [line for line, _ in measured], [items for _, items in measured]
    pairs = bench.pairs
    if metric == "spearman":
        scores = spearman_draws(outcomes, pairs.scores, subsets=pairs.subsets, seed=bench.seed)
    else:
        scores = mean_draws(outcomes, seed=bench.seed)
    dataset = bench.questions.name if metric == "ndcg@10" else pairs.name
    for j, line in enumerate(columns):
        yield {**line, "dataset": dataset, "metric": metric, **scores[j].columns}
        if j:  # The first is the full size
            change = scores[j] - scores[0]
            yield {**line, "dataset": dataset, "metric": f"{metric}_change", **change.columns}
    bits = [coding.BITS.get(line["method"]) for line in columns]
    for a, b in combinations([j for j, size in enumerate(bits) if size], 2):
        setting = columns[a]["setting"]
        if setting == columns[b]["setting"]:
            few, many = sorted((a, b), key=lambda j: bits[j] or 0)
            method = f"{columns[few]['method']} − {columns[many]['method']}"
            lead = {"method": method, "setting": setting, "dataset": dataset}
            lead_scores = scores[few] - scores[many]
            yield {**lead, "metric": f"{metric}_lead", **lead_scores.columns}
