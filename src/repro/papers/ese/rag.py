"""Table 3: which paragraph each question finds first, at every size and at half depth, and what it is good for.

Metrics of a line: `hit@1`, the first paragraph is a supporting one; `recall@10`, share of the supporting ones among the
first ten; `answer_in_context`, the first paragraph holds the answer; `exact_match`, only where a generator has written
one. `…_lead` is one line less another on the same questions, `…_lead_drop` how much larger that lead is at the smallest
size than at another.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro.evaluation.rag import answer_in_context, is_yes_no, normalize_answer
from repro.evaluation.retrieve import retrieve
from repro.evaluation.search import FlatIndex
from repro.evaluation.stats import Interval, bootstrap_mean, wilson
from repro.papers.ese.lines import Line
from repro.rows import make_rows
from repro.sets import Retrieval, texts_of
from repro.store import Store
from repro.types import Array, check_dim

PRINTED_DIMS = (64, 128, 256, 512, 768)
BINARY = ("hit@1", "answer_in_context", "exact_match")
"""metrics that are 0 or 1 for each question"""
AS_IT_IS = "prefix as it is"
"""setting of the rows in which prefixes are searched without being normalised anew"""
TOP = 10
SHORT = {
    "answer_in_context": "answer in the first paragraph",
    "hit@1": "first paragraph supports",
    f"recall@{TOP}": f"supporting ones among the first {TOP}",
    "exact_match": "exact match",
}
"""metrics in a few words"""


@dataclass(frozen=True)
class Search:
    """One line searched with the first `dim` numbers of one layer."""

    line: Line
    layer: int
    dim: int
    top: NDArray[np.int64]
    """the paragraph that each question finds first (m,)"""
    items: Mapping[str, Array]
    """by metric, the outcome of each question (m,); NaN where it has none"""

    def score(self, metric: str, *, seed: int) -> Interval:
        """Mean over the questions that have an outcome, with Wilson's interval for shares, else the bootstrap's."""
        found = self.items[metric]
        found = found[~np.isnan(found)]
        return wilson(found.sum(), len(found)) if metric in BINARY else bootstrap_mean(found, seed=seed)


def sizes(hidden_dim: int, dims: Sequence[int] | None = None) -> list[int]:
    """The sizes to search with: those given that a network has, its full size added.

    None takes the printed ones where the network reaches them, else as many by halving its own.

    Raises:
        InputError: for a size below 1.
    """
    if dims is None:
        halved = [hidden_dim // 2**i for i in range(len(PRINTED_DIMS))]
        dims = PRINTED_DIMS if hidden_dim >= max(PRINTED_DIMS) else [d for d in halved if d > 1]
    return sorted({check_dim(d) for d in dims if d < hidden_dim} | {hidden_dim})


def search_lines(
    lines: Sequence[Line], asked: Retrieval, store: Store, *, dims: Sequence[int] | None = None, progress: bool = True
) -> list[Search]:
    """Every line, at the last layer and half way up, at every size: paragraphs and questions are encoded once a line.

    Args:
        lines: of any networks.
        asked: questions with answers.
        store: where states are kept.
        dims: sizes, as `sizes` reads them.
        progress: show progress bars.
    """
    found = []
    for line in lines:
        table = line.states(texts_of(asked), store, progress=progress)
        last = table.layers[-1]
        for layer in sorted({max(1, last // 2), last}):
            states = table.at(layer)
            Q, C = states[asked.queries], states[asked.documents]
            for dim in sizes(table.hidden_dim, dims):
                found.append(_searched(line, layer, Q[:, :dim], C[:, :dim], asked))
    return found


def _searched(line: Line, layer: int, Q: Array, C: Array, asked: Retrieval) -> Search:
    result = retrieve(Q, C, asked.qrels, query_ids=asked.query_ids, corpus_ids=asked.document_ids)
    hits, recalls = np.full((2, len(Q)), np.nan)
    hits[result.rows], recalls[result.rows] = result.hit(1), result.recall(TOP)
    items = {"hit@1": hits, f"recall@{TOP}": recalls, "answer_in_context": answers_held(asked, result.top)}
    return Search(line, layer, Q.shape[1], result.top, items)


def answers_held(asked: Retrieval, top: NDArray[np.int64]) -> Array:
    """1 where a question's paragraph holds its answer, else 0 (m,); NaN where the answer is yes or no."""
    answers = asked.answers or ()
    return np.array(
        [
            np.nan if is_yes_no(answer) else float(answer_in_context(asked.documents[row], answer))
            for answer, row in zip(answers, top, strict=True)
        ]
    )


def chance(asked: Retrieval) -> dict[str, float]:
    """What a paragraph drawn at random scores, by metric: where a line does no better, its leads say nothing."""
    gold = [sum(relevance > 0 for relevance in asked.qrels.get(query, {}).values()) for query in asked.query_ids]
    words = [normalize_answer(document) for document in asked.documents]
    answers = [normalize_answer(a) for a in asked.answers or () if not is_yes_no(a)]
    held = [sum(f" {answer} " in f" {text} " for text in words) for answer in answers]
    n = len(asked.documents)
    return {
        "answer_in_context": float(np.mean(held)) / n if held else float("nan"),
        "hit@1": float(np.mean(gold)) / n,
        f"recall@{TOP}": min(1.0, TOP / n),
    }


def better_than_chance(rows: pd.DataFrame, at_random: Mapping[str, float]) -> pd.DataFrame:
    """By network and line, its share at the last layer and full size with its interval, and whether chance is below it.

    Args:
        rows: of `rag_rows`.
        at_random: of `chance`.
    """
    lines = []
    for backbone in rows["backbone"].dropna().unique():
        own = rows[(rows["backbone"] == backbone) & rows["metric"].isin(list(at_random))]
        own = own[(own["layer"] == own["layer"].max()) & (own["dim"] == own["dim"].max())]
        lines += [
            {
                "backbone": backbone,
                "line": row.method,
                "measure": SHORT[row.metric],
                "found": f"{100 * row.value:.1f} [{100 * row.ci_low:.1f}, {100 * row.ci_high:.1f}]",
                "at random": 100 * at_random[row.metric],
                "better": "yes" if row.ci_low > at_random[row.metric] else "no",
            }
            for row in own.itertuples()
        ]
    return pd.DataFrame(lines)


def rag_rows(searches: Sequence[Search], *, seed: int = 0, **shared: Any) -> pd.DataFrame:
    """All scores, leads and differences of leads.

    Args:
        searches: of several lines.
        seed: of the bootstrap.
        shared: columns common to all rows.
    """
    rows = [
        {**_columns(s), "metric": metric, **s.score(metric, seed=seed).columns} for s in searches for metric in s.items
    ]
    return make_rows([*rows, *_leads(searches, seed)], readout="encoder", dataset="hotpotqa", seed=seed, **shared)


def _columns(s: Search) -> dict[str, Any]:
    return {
        "method": s.line.method,
        "backbone": s.line.backbone,
        "n_train": s.line.n_train,
        "layer": s.layer,
        "dim": s.dim,
    }


def _leads(searches: Sequence[Search], seed: int) -> Iterator[dict[str, Any]]:
    """Every two lines of one network on the same questions, the later one first, as in `ESE − RAW`."""
    by_layer: dict[tuple[str, int], dict[str, dict[int, Search]]] = {}
    for s in searches:
        by_layer.setdefault((s.line.backbone, s.layer), {}).setdefault(s.line.method, {})[s.dim] = s
    for of_method in by_layer.values():
        for rival, winner in combinations(of_method, 2):
            pairs = {dim: (of_method[winner][dim], of_method[rival][dim]) for dim in sorted(of_method[winner])}
            for metric in next(iter(pairs.values()))[0].items:
                gaps = {dim: a.items[metric] - b.items[metric] for dim, (a, b) in pairs.items()}
                smallest = min(gaps)
                for dim, gap in gaps.items():
                    common = {**_columns(pairs[dim][0]), "method": f"{winner} − {rival}"}
                    yield {**common, "metric": f"{metric}_lead", **bootstrap_mean(_known(gap), seed=seed).columns}
                    if dim > smallest:
                        found = bootstrap_mean(_known(gaps[smallest] - gap), seed=seed)
                        yield {**common, "metric": f"{metric}_lead_drop", **found.columns}


def _known(values: Array) -> Array:
    return np.asarray(values[~np.isnan(values)])


def flat_rows(
    searches: Sequence[Search], asked: Retrieval, store: Store, *, seed: int = 0, **shared: Any
) -> pd.DataFrame:
    """The last layer searched by faiss: whether it finds the same, and what leaving prefixes as they are changes.

    Metric `same_first`: share of questions whose first paragraph is that of exact cosines. With setting
    `prefix as it is` Euclidean distance ranks prefixes of unit rows by their length too; `hit@1` is then given as well.

    Args:
        searches: as `search_lines` gives them.
        asked: the questions they searched for.
        store: where states are kept.
        seed: column of the rows.
        shared: further columns common to all rows.
    """
    last = {s.line.identity: max(t.layer for t in searches if t.line is s.line) for s in searches}
    rows = []
    for s in searches:
        if s.layer < last[s.line.identity]:
            continue
        states = s.line.states(texts_of(asked), store).at(s.layer)
        for renormalize in (True, False):
            top = FlatIndex(states[asked.documents], s.dim, renormalize=renormalize).search(states[asked.queries])[:, 0]
            common = {**_columns(s), "setting": None if renormalize else AS_IT_IS}
            rows.append({**common, "metric": "same_first", **wilson((top == s.top).sum(), len(top)).columns})
            if not renormalize:
                hits = [
                    asked.qrels[q].get(asked.document_ids[d], 0) > 0 for q, d in zip(asked.query_ids, top, strict=True)
                ]
                rows.append({**common, "metric": "hit@1", **wilson(sum(hits), len(hits)).columns})
    return make_rows(rows, readout="encoder", dataset="hotpotqa", seed=seed, **shared)
