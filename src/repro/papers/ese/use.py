"""Table 3 and Figure 6: what a search finds with short embeddings and shallow layers, and what it costs in seconds.

Metrics of a line: `hit@1`, the first paragraph is a supporting one; `recall@10`, share of the supporting ones among the
first ten; `answer_in_context`, the first paragraph holds the answer; `exact_match`, only where a generator has written
one from that paragraph. `…_lead` is one line less another on the same questions, `…_lead_drop` how much larger that
lead is at the smallest size than at another; `same_first`, how often faiss finds the same paragraph.

Metrics of cost: `encode_seconds` of some texts down to a layer, no later block being run; `search_seconds` of some
queries against stored vectors of a size; `total_seconds`, encoding at full depth and search. `…_ratio` is one line's
seconds by another's of the same round, `size_ratio` those of the full size by those of the smallest.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro.evaluation.retrieve import FlatIndex, answer_in_context, exact_match, is_yes_no, retrieve
from repro.evaluation.stats import Interval, bootstrap_mean, wilson
from repro.models.pretrained import identity
from repro.papers.ese.claims_use import FOUND, MEAN
from repro.papers.ese.lines import LayeredEncoder
from repro.rows import make_rows
from repro.runs.clock import Seconds, in_turns, ratio_of
from repro.seeding import make_rng
from repro.sets import Retrieval, texts_of
from repro.store import Store
from repro.terminal import progress_bar
from repro.types import Array, InputError, check_dim
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
ANSWER_TOKENS, CHUNK = 32, 32
"""length of an answer; prompts whose answers are one entry of the store, so that a killed run goes on from there"""
JITTER = 0.01
"""noise on repeated vectors, as a share of their length: equal ones would spare a search its work"""


def sizes(hidden_dim: int, dims: Sequence[int] | None = None) -> list[int]:
    """The sizes to search with: those given that a network has, its full size added.

    None takes the printed ones where the network reaches them, else as many by halving its own.
    """
    if dims is None:
        halved = [hidden_dim // 2**i for i in range(len(PRINTED_DIMS))]
        dims = PRINTED_DIMS if hidden_dim >= max(PRINTED_DIMS) else [d for d in halved if d > 1]
    return sorted({check_dim(d) for d in dims if d < hidden_dim} | {hidden_dim})


@dataclass(frozen=True)
class Search:
    """One line searched with the first `dim` numbers of one layer."""

    line: LayeredEncoder
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
        found = self.items[metric][~np.isnan(self.items[metric])]
        return wilson(found.sum(), len(found)) if metric in FOUND else bootstrap_mean(found, seed=seed)


def search_lines(
    lines: Sequence[LayeredEncoder],
    asked: Retrieval,
    store: Store,
    *,
    dims: Sequence[int] | None = None,
    generator: str | None = None,
) -> list[Search]:
    """Every line, at the last layer and half way up, at every size: paragraphs and questions are encoded once a line.

    A `generator`, a folder or a hub id, is the causal language model that answers; without it there is no exact match.
    """
    found = []
    for line in lines:
        table = line.states(texts_of(asked), store)
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
    return _answered(found, asked, generator, store) if generator else found


def answers_held(asked: Retrieval, top: NDArray[np.int64]) -> Array:
    """1 where a question's paragraph holds its answer, else 0 (m,); NaN where the answer is yes or no."""
    held = [
        np.nan if is_yes_no(answer) else float(answer_in_context(asked.documents[row], answer))
        for answer, row in zip(asked.answers or (), top, strict=True)
    ]
    return np.array(held)


def _answered(searches: Sequence[Search], asked: Retrieval, generator: str, store: Store) -> list[Search]:
    """The searches with `exact_match` among their outcomes; every question with one paragraph is answered once."""
    prompts = {
        (i, int(row)): PROMPT.format(context=asked.documents[row], question=asked.queries[i])
        for search in searches
        for i, row in enumerate(search.top)
    }
    said, gold, found = generate_once(list(dict.fromkeys(prompts.values())), generator, store), asked.answers or (), []
    for search in searches:
        right = [float(exact_match(said[prompts[i, int(row)]], gold[i])) for i, row in enumerate(search.top)]
        found.append(replace(search, items={**search.items, "exact_match": np.array(right)}))
    return found


def generate_once(prompts: Sequence[str], generator: str, store: Store) -> dict[str, str]:
    """What the generator says to each prompt, from the store where it is there; the first line that is not blank.

    A model that was told to be brief goes on with a question of its own on the next line; the answer ends before it.
    """
    said, weights, loaded = dict[str, str](), identity(generator), cache(load_generator)

    def write(chunk: list[str]) -> list[str]:
        return loaded(generator).generate(chunk, max_new_tokens=ANSWER_TOKENS)

    for start in progress_bar(range(0, len(prompts), CHUNK), desc="answering", show=True):
        chunk = list(prompts[start : start + CHUNK])
        config = {"generator": weights, "prompts": chunk, "tokens": ANSWER_TOKENS}
        answers = store.remember("answers", config, partial(write, chunk), code="rivals.generator")
        first_lines = [(answer.strip().splitlines() or [""])[0].strip() for answer in answers]
        said.update(zip(chunk, first_lines, strict=True))
    return said


# Figure 6


def timing_rows(
    lines: Sequence[LayeredEncoder],
    texts: Sequence[str],
    pool: Sequence[str],
    store: Store,
    *,
    stored: int,
    dims: Sequence[int] | None = None,
    repeats: int = 5,
    tries: int = 1,
    **shared: Any,
) -> pd.DataFrame:
    """Seconds of some lines of one network at every depth and size, all taking turns, and their ratios within rounds.

    Seconds are medians with the fastest and slowest round, ratios have a 95 % interval over rounds. The `texts` are
    encoded and searched for; what is `stored` are the embeddings of the `pool`, repeated with noise. There are
    `repeats` rounds that count, and of the `tries` in a round the fastest.
    """
    if not texts or not pool:
        raise InputError(f"{len(texts)} texts and {len(pool)} stored ones: expected at least one of each")
    tables = [line.states([*pool, *texts], store) for line in lines]
    shapes = {(table.layers[-1], table.hidden_dim) for table in tables}
    if len(shapes) != 1:
        raise InputError(f"lines have layers and sizes {sorted(shapes)}: time networks of one shape together")
    ((last, hidden_dim),) = shapes
    layers, dims, encoders = range(1, last + 1), sizes(hidden_dim, dims), [line.make() for line in lines]
    works: dict[tuple[int, int], Callable[[], Callable[[], object]]] = {
        (i, layer): partial(partial, encoder.encode, list(texts), readout="encoder", layer=layer)
        for layer in layers
        for i, encoder in enumerate(encoders)
    }
    encode, search = in_turns(works, repeats, tries=tries), dict[tuple[int, int], Seconds]()
    states = [table.at(last) for table in tables]
    vectors = [repeated(X[pool], stored, seed=int(shared["seed"])) for X in states]
    for dim in dims:
        works = {(i, dim): partial(_search, vectors[i], X[texts], dim) for i, X in enumerate(states)}
        search |= in_turns(works, repeats, tries=tries)
    total = {(i, dim): encode[i, last] + seconds for (i, dim), seconds in search.items()}

    encoding, searching = {"setting": f"{len(texts):,} texts"}, f"{len(texts):,} queries, {stored:,} vectors"
    rows: list[dict[str, Any]] = []
    for (i, layer), seconds in encode.items():
        rows.append({**lines[i].columns, **encoding, **_measured(seconds), "metric": "encode_seconds", "layer": layer})
    for (i, dim), seconds in search.items():
        common = {**lines[i].columns, "dim": dim, "setting": searching}
        rows.append({**common, **_measured(seconds), "metric": "search_seconds"})
        rows.append({**common, **_measured(total[i, dim]), "metric": "total_seconds", "layer": last})
    for b, a in combinations(range(len(lines)), 2):
        pair = lines[a].less(lines[b], "/")
        for layer in layers:
            ratio = ratio_of(encode[a, layer], encode[b, layer]).columns
            rows.append({**pair, **encoding, **ratio, "metric": "encode_ratio", "layer": layer})
        for name, taken in (("search", search), ("total", total)):
            common = {**pair, "metric": f"{name}_ratio", "setting": searching}
            rows += [{**common, "dim": dim, **ratio_of(taken[a, dim], taken[b, dim]).columns} for dim in dims]
            # rounds are repetitions, sizes are not: their mean is taken within a round
            mean = np.exp(np.mean([np.log(taken[a, dim] / taken[b, dim]) for dim in dims], axis=0))
            rows.append({**common, "setting": f"{searching}, {MEAN}", **ratio_of(mean, np.ones_like(mean)).columns})
    for i, line in enumerate(lines):
        ratio = ratio_of(total[i, dims[-1]], total[i, dims[0]]).columns
        rows.append({**line.columns, **ratio, "dim": dims[0], "metric": "size_ratio", "setting": searching})
    return make_rows(rows, **shared)


def _search(C: Array, Q: Array, dim: int) -> Callable[[], object]:
    """A search for Q in a freshly made index of C."""
    return partial(FlatIndex(C, dim).search, Q, 10)


def _measured(seconds: Seconds) -> dict[str, float]:
    """Median, fastest and slowest round, and the sum of all."""
    low, high = float(seconds.min()), float(seconds.max())
    return {"value": float(np.median(seconds)), "ci_low": low, "ci_high": high, "seconds": float(seconds.sum())}


def repeated(X: Array, n: int, *, seed: int = 0) -> Array:
    """N rows (n, D): those of X again and again, each moved by a hundredth of its length in a direction of its own."""
    rows = np.resize(np.arange(len(X)), check_dim(n, what="stored"))
    noise = make_rng(seed, "stored vectors").standard_normal((n, X.shape[1])) / np.sqrt(X.shape[1])
    return np.asarray(X[rows] + JITTER * np.linalg.norm(X, axis=1)[rows, None] * noise, np.float32)
