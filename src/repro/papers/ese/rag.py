"""Table 3: which paragraph each question finds first, at every size and at half depth, and what it is good for.

Metrics of a line: `hit@1`, the first paragraph is a supporting one; `recall@10`, share of the supporting ones among the
first ten; `answer_in_context`, the first paragraph holds the answer; `exact_match`, only where a generator has written
one from that paragraph. `…_lead` is one line less another on the same questions, `…_lead_drop` how much larger that
lead is at the smallest size than at another; `same_first`, how often faiss finds the same paragraph.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro.evaluation.retrieve import FlatIndex, answer_in_context, exact_match, is_yes_no, normalize_answer, retrieve
from repro.evaluation.stats import Interval, bootstrap_mean, wilson
from repro.models.pretrained import identity
from repro.papers.ese.claims_use import FOUND
from repro.papers.ese.lines import Line
from repro.papers.ese.tables import AS_IT_IS
from repro.rows import make_rows
from repro.sets import Retrieval, texts_of
from repro.store import Store
from repro.terminal import progress_bar
from repro.types import Array, check_dim
from rivals.generator import load_generator

PRINTED_DIMS = (64, 128, 256, 512, 768)
PROMPT = (
    "As an advanced QA system, your role is to provide accurate and straightforward answers based on the provided "
    "context. Utilize the following information to answer the given question, directly output the straightforward "
    "answer, and do not explain it:\n\n"
    "Context: {context}.\n\n"
    "Question: {question}.\n\n"
    "Requirement: For 'yes/no' question, directly output 'yes' or 'no'. For the 'who' question, directly output the "
    "people's names. For the 'when' question, directly output the date or time, so on and so forth.\n\n"
    "Output:"
)
"""the paper's Table 4, word for word"""
CHUNK = 32
"""prompts whose answers are one entry of the store, so that a killed run goes on where it stopped"""


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

    @property
    def columns(self) -> dict[str, Any]:
        """Columns of its rows."""
        return {**self.line.columns, "layer": self.layer, "dim": self.dim}

    def score(self, metric: str, *, seed: int) -> Interval:
        """Mean over the questions that have an outcome, with Wilson's interval for shares, else the bootstrap's."""
        found = _known(self.items[metric])
        return wilson(found.sum(), len(found)) if metric in FOUND else bootstrap_mean(found, seed=seed)


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
            Q, C = table.at(layer)[asked.queries], table.at(layer)[asked.documents]
            for dim in sizes(table.hidden_dim, dims):
                result = retrieve(
                    Q[:, :dim], C[:, :dim], asked.qrels, query_ids=asked.query_ids, corpus_ids=asked.document_ids
                )
                hits, recalls = np.full((2, len(Q)), np.nan)
                hits[result.rows], recalls[result.rows] = result.hit(1), result.recall(10)
                items = {"hit@1": hits, "recall@10": recalls, "answer_in_context": answers_held(asked, result.top)}
                found.append(Search(line, layer, dim, result.top, items))
    return found


def answers_held(asked: Retrieval, top: NDArray[np.int64]) -> Array:
    """1 where a question's paragraph holds its answer, else 0 (m,); NaN where the answer is yes or no."""
    held = [
        np.nan if is_yes_no(answer) else float(answer_in_context(asked.documents[row], answer))
        for answer, row in zip(asked.answers or (), top, strict=True)
    ]
    return np.array(held)


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
        "recall@10": min(1.0, 10 / n),
    }


def rag_rows(searches: Sequence[Search], *, seed: int = 0, **shared: Any) -> pd.DataFrame:
    """All scores, leads and differences of leads.

    Args:
        searches: of several lines.
        seed: of the bootstrap.
        shared: columns common to all rows.
    """
    scores = [{**s.columns, "metric": m, **s.score(m, seed=seed).columns} for s in searches for m in s.items]
    return make_rows([*scores, *_leads(searches, seed)], readout="encoder", dataset="hotpotqa", seed=seed, **shared)


def _leads(searches: Sequence[Search], seed: int) -> Iterator[dict[str, Any]]:
    """Every two lines of one network on the same questions, the later one first, as in `ESE − RAW`."""
    by_layer: dict[tuple[str, int], dict[str, list[Search]]] = {}
    for s in searches:
        by_layer.setdefault((s.line.backbone, s.layer), {}).setdefault(s.line.method, []).append(s)
    for of_method in by_layer.values():
        for rival, winner in combinations(of_method.values(), 2):  # sizes ascend
            for metric in winner[0].items:
                gaps = [a.items[metric] - b.items[metric] for a, b in zip(winner, rival, strict=True)]
                for a, b, gap in zip(winner, rival, gaps, strict=True):
                    common = {**a.columns, **a.line.less(b.line)}
                    lead = bootstrap_mean(_known(gap), seed=seed)
                    yield {**common, "metric": f"{metric}_lead", **lead.columns}
                    if a is not winner[0]:
                        drop = bootstrap_mean(_known(gaps[0] - gap), seed=seed)
                        yield {**common, "metric": f"{metric}_lead_drop", **drop.columns}


def _known(values: Array) -> Array:
    return np.asarray(values[~np.isnan(values)])


def flat_rows(searches: Sequence[Search], asked: Retrieval, store: Store, **shared: Any) -> pd.DataFrame:
    """The last layer searched by faiss: whether it finds the same, and what leaving prefixes as they are changes.

    With setting `prefix as it is` Euclidean distance ranks prefixes of unit rows by their length too; `hit@1` is then
    given as well.

    Args:
        searches: as `search_lines` gives them.
        asked: the questions they searched for.
        store: where states are kept.
        shared: columns common to all rows.
    """
    last = {s.line.identity: s.layer for s in searches}  # of a line, the last layer comes last
    rows = []
    for s in searches:
        if s.layer < last[s.line.identity]:
            continue
        states = s.line.states(texts_of(asked), store).at(s.layer)
        for renormalize in (True, False):
            top = FlatIndex(states[asked.documents], s.dim, renormalize=renormalize).search(states[asked.queries])[:, 0]
            common = {**s.columns, "setting": None if renormalize else AS_IT_IS}
            rows.append({**common, "metric": "same_first", **wilson((top == s.top).sum(), len(top)).columns})
            if not renormalize:
                ids = [asked.document_ids[row] for row in top]
                hits = [asked.qrels[q].get(d, 0) > 0 for q, d in zip(asked.query_ids, ids, strict=True)]
                rows.append({**common, "metric": "hit@1", **wilson(sum(hits), len(hits)).columns})
    return make_rows(rows, readout="encoder", dataset="hotpotqa", **shared)


def with_answers(
    searches: Sequence[Search],
    asked: Retrieval,
    generator: str,
    store: Store,
    *,
    max_new_tokens: int = 32,
    progress: bool = True,
) -> list[Search]:
    """The searches with `exact_match` among their outcomes; every question with one paragraph is answered once.

    Args:
        searches: of any lines and sizes.
        asked: the questions they searched for, with answers.
        generator: causal language model, a folder or a hub id.
        store: where answers are kept.
        max_new_tokens: length of an answer.
        progress: show a progress bar.
    """
    prompts = {
        (i, int(row)): PROMPT.format(context=asked.documents[row], question=asked.queries[i])
        for search in searches
        for i, row in enumerate(search.top)
    }
    distinct = list(dict.fromkeys(prompts.values()))
    said = generate_once(distinct, generator, store, max_new_tokens=max_new_tokens, progress=progress)
    gold = asked.answers or ()
    found = []
    for search in searches:
        right = [float(exact_match(said[prompts[i, int(row)]], gold[i])) for i, row in enumerate(search.top)]
        found.append(replace(search, items={**search.items, "exact_match": np.array(right)}))
    return found


def generate_once(
    prompts: Sequence[str], generator: str, store: Store, *, max_new_tokens: int = 32, progress: bool = True
) -> dict[str, str]:
    """What the generator says to each prompt, first line only, from the store where it is there.

    A model that was told to be brief goes on with a question of its own on the next line; the answer ends before it.
    """
    said, weights, loaded = dict[str, str](), identity(generator), cache(load_generator)

    def write(chunk: list[str]) -> list[str]:
        return loaded(generator).generate(chunk, max_new_tokens=max_new_tokens)

    for start in progress_bar(range(0, len(prompts), CHUNK), desc="answering", show=progress):
        chunk = list(prompts[start : start + CHUNK])
        answers = store.remember(
            "answers",
            {"generator": weights, "prompts": chunk, "tokens": max_new_tokens},
            partial(write, chunk),
            code="rivals.generator",
        )
        said.update(zip(chunk, map(first_line, answers), strict=True))
    return said


def first_line(answer: str) -> str:
    """The first line that is not blank."""
    return next((line.strip() for line in answer.splitlines() if line.strip()), "")
