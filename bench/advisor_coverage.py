"""How often the advisor's lower bounds are true: `python -m bench.advisor_coverage`, or with names
of populations.

Items are drawn from a population without end, points of a finite cloud moved by differences of its
points, so that the share which a map keeps of the whole population is known as closely as one
likes. The advisor sees a sample of n items, fits its maps inside and chooses; what it claims is
held against the population, under the maps that it would write. Coverage is told of single bounds
(mean and lowest over methods and sizes), of the claim that the answer keeps what was asked for, and
of the bound beside the answer. `made` clouds need no data; the others are sentences of
all-MiniLM-L6-v2.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dimadvise.bounds import NoShareError
from dimadvise.candidates import Candidate, smallest
from dimadvise.evidence import PENALTIES, Classes, Evidence, Pairs, Search
from dimadvise.folds import FOLDS
from dimadvise.judging import fit_and_judge
from dimadvise.request import Request
from dimadvise.vectors import Vectors, in_memory
from repro import data
from repro.evaluation.labels import stratified_folds
from repro.evaluation.logistic import fit_logistic, fold_accuracy
from repro.evaluation.retrieve import retrieve
from repro.evaluation.stats import spearman_draws
from repro.evaluation.sts import prefix_cosines
from repro.store import Store
from repro.terminal import say

ITEMS = (30, 100, 300, 1000)
PARTS = (0.75, 0.5, 0.25, 0.125, 0.0625)  # Of the full size, tried beside 12
FRESH = 20_000  # Items that stand for the whole population
METHODS = ("truncate", "pca")
MOVED = 0.15  # Of a difference between two points by which a point is moved

Maps = Sequence[Callable[[Any], Any]]


class Population(Protocol):
    """What samples are drawn from."""

    unit: bool
    dim: int

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Any, Evidence]:
        """Rows and their evidence."""

    def scores(
        self,
        X: Any,
        evidence: Any,
        apply: Callable[[Any], Any],
        sizes: Sequence[int],
    ) -> list[float]:
        """True scores at the sizes of a map that was fitted on a sample."""


def moved(X: Any, rows: Any, rng: np.random.Generator) -> Any:
    """Rows of a cloud, moved by differences of its points."""
    a, b = rng.integers(len(X), size=(2, len(rows)))
    return (X[rows] + MOVED * (X[a] - X[b])).astype(np.float32)


class GradedPairs:
    """Pairs of points with a grade each."""

    unit = True

    def __init__(self, first: Any, second: Any, grades: Any) -> None:
        self.first, self.second, self.grades, self.dim = first, second, grades, first.shape[1]
        self.fresh = self._drawn(FRESH, np.random.default_rng(12345))

    def _drawn(self, n: int, rng: np.random.Generator) -> tuple[Any, Any, Any]:
        rows = rng.integers(len(self.grades), size=n)
        return moved(self.first, rows, rng), moved(self.second, rows, rng), self.grades[rows]

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Any, Evidence]:
        first, second, grades = self._drawn(n, rng)
        return np.concatenate([first, second]), Pairs(np.arange(n), np.arange(n, 2 * n), grades)

    def scores(
        self,
        X: Any,
        evidence: Any,
        apply: Callable[[Any], Any],
        sizes: Sequence[int],
    ) -> list[float]:
        first, second, grades = self.fresh
        cosines = prefix_cosines(apply(first), apply(second), sizes)
        return spearman_draws(list(cosines), grades, resamples=1, seed=0).value.tolist()


class LabelledPoints:
    """Points with a class each; a classifier learns from the sample and is judged by the
    population.
    """

    unit = False

    def __init__(self, X: Any, labels: Any) -> None:
        self.X, self.labels, self.dim = X, labels, X.shape[1]
        self.fresh = self._drawn(FRESH, np.random.default_rng(12345))

    def _drawn(self, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
        rows = rng.integers(len(self.X), size=n)
        return moved(self.X, rows, rng), self.labels[rows]

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Any, Evidence]:
        while True:
            X, labels = self._drawn(n, rng)
            if (
                np.sort(np.unique(labels, return_counts=True)[1])[-2:].min() >= 2
                and len(np.unique(labels)) > 1
            ):
                return X, Classes(np.arange(n), labels)

    def scores(
        self,
        X: Any,
        evidence: Any,
        apply: Callable[[Any], Any],
        sizes: Sequence[int],
    ) -> list[float]:
        known, unknown, labels = apply(X), apply(self.fresh[0]), evidence.labels
        folds, found = stratified_folds(labels, FOLDS, 1, "all"), []
        for dim in sizes:
            scale = max(float(np.sqrt(known[:, :dim].var(axis=0).sum())), 1e-12)
            Y, Z = known[:, :dim] / scale, unknown[:, :dim] / scale
            best = PENALTIES[[fold_accuracy(Y, labels, folds[None], PENALTIES, 0)[0].argmax()]]
            models = fit_logistic(
                Y,
                labels,
                np.ones((1, len(labels)), bool),
                best,
                tolerance=1e-3,
                max_iter=200,
            )
            found.append(float(np.mean(models.predict(Z)[0] == self.fresh[1])))
        return found


class AskedDocuments:
    """Documents that are there once for all, and queries with one relevant document each or
    more.
    """

    unit = True

    def __init__(self, documents: Any, queries: Any, relevant: Sequence[Sequence[int]]) -> None:
        self.documents, self.queries, self.relevant, self.dim = (
            documents,
            queries,
            relevant,
            queries.shape[1],
        )
        self.fresh = self._drawn(FRESH, np.random.default_rng(12345))
        self.known: dict[bytes, list[float]] = {}

    def _drawn(self, n: int, rng: np.random.Generator) -> tuple[Any, dict[int, dict[int, float]]]:
        rows = rng.integers(len(self.queries), size=n)
        qrels = {i: dict.fromkeys(self.relevant[row], 1.0) for i, row in enumerate(rows.tolist())}
        return moved(self.queries, rows, rng), qrels

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Any, Evidence]:
        queries, qrels = self._drawn(n, rng)
        count = len(self.documents)
        return np.concatenate([self.documents, queries]), Search(
            count + np.arange(n),
            np.arange(count),
            qrels,
        )

    def scores(
        self,
        X: Any,
        evidence: Any,
        apply: Callable[[Any], Any],
        sizes: Sequence[int],
    ) -> list[float]:
        C, Q = apply(self.documents), apply(self.fresh[0])
        # The documents are the same in every sample, and so the map
        key = C[:50].tobytes() + np.array(sizes).tobytes()
        if key not in self.known:
            self.known[key] = [
                float(retrieve(Q[:, :d], C[:, :d], self.fresh[1]).ndcg(10).mean()) for d in sizes
            ]
        return self.known[key]


def made(kind: str, *, dim: int = 48, points: int = 2000, seed: int = 0) -> Population:
    """A cloud off centre, of directions that vary less and less, whose use is known."""
    rng = np.random.default_rng(seed)
    spread = np.arange(1, dim + 1) ** -0.5
    turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    offset = 0.5 * rng.standard_normal(dim) * spread

    def cloud(Z: Any) -> Any:
        return ((Z * spread + offset) @ turn).astype(np.float32)

    Z, other = rng.standard_normal((2, points, dim))
    if kind == "pairs":
        near = rng.random(points)[:, None]
        grades = np.round(10 * np.clip(near[:, 0] + 0.15 * rng.standard_normal(points), 0, 1)) / 2
        return GradedPairs(cloud(Z), cloud(near * Z + np.sqrt(1 - near**2) * other), grades)
    if kind == "classes":
        told = (Z * spread) @ rng.standard_normal(dim) + 0.7 * rng.standard_normal(points)
        return LabelledPoints(cloud(Z), np.where(told > 0, "up", "down"))
    asked = cloud(0.75 * Z + np.sqrt(1 - 0.75**2) * other)
    return AskedDocuments(cloud(Z), asked, [[i] for i in range(points)])


def real(name: str) -> Population:
    """Sentences of a dataset as all-MiniLM-L6-v2 embeds them."""
    spec = data.get_spec(name)
    splits = [data.load(name, split=split, source="local") for split in spec.splits]
    kind = spec.kind
    if kind == "retrieval":
        (loaded,) = splits
        place = {document: i for i, document in enumerate(loaded.document_ids)}
        asked = [
            [place[d] for d, v in loaded.qrels.get(q, {}).items() if v > 0]
            for q in loaded.query_ids
        ]
        keep = [i for i, found in enumerate(asked) if found]
        queries = embedded([loaded.queries[i] for i in keep])
        return AskedDocuments(embedded(loaded.documents), queries, [asked[i] for i in keep])
    if kind == "texts":
        labels = np.array([str(label) for part in splits for label in part.labels])
        return LabelledPoints(embedded([text for part in splits for text in part.texts]), labels)
    first, second = (
        embedded([text for part in splits for text in getattr(part, side)])
        for side in ("texts1", "texts2")
    )
    return GradedPairs(first, second, np.concatenate([part.scores for part in splits]))


def embedded(texts: Sequence[str]) -> Any:
    """Texts as unit vectors (n, 384), kept in the store."""
    from repro.models import SentenceEncoder

    def work() -> Any:
        return SentenceEncoder.load("all-MiniLM-L6-v2").encode(list(texts))

    return np.asarray(
        Store().remember(
            "coverage",
            {"encoder": "all-MiniLM-L6-v2", "texts": list(texts)},
            work,
            code="repro.models",
        )
    )


@dataclass(frozen=True)
class Coverage:
    """Over samples of n items: how often each bound held, and what became of the answers."""

    n: int
    samples: int
    refused: int  # Samples whose score at full size may be zero
    held: Any  # (methods × sizes,), NaN where no sample reached it
    # Share of samples in which the answer keeps what was asked for; keeping everything does
    claims: float
    beside: float  # Share of answers whose own bound held
    answers: float  # Share of samples with an answer


def coverage(
    population: Population,
    n: int,
    samples: int,
    sizes: Sequence[int],
    *,
    retain: float = 0.9,
) -> Coverage:
    """Draw, advise, compare."""
    held: dict[tuple[str, int], list[bool]] = {(m, d): [] for m in METHODS for d in sizes}
    claims, beside, refused = [], [], 0
    for sample in range(samples):
        X, evidence = population.draw(n, np.random.default_rng([n, sample]))
        layers: dict[int | None, Vectors] = {None: in_memory(X)}
        try:
            wanted = Request(methods=METHODS, dims=tuple(sizes), seed=sample)
            found, maps, *_ = fit_and_judge(layers, evidence, wanted, unit=population.unit)
            found = [candidate for candidate in found if candidate.dim in sizes]
        except NoShareError:
            refused += 1
            continue
        full = population.scores(X, evidence, lambda Y: Y, [population.dim])[0]
        truth: dict[Candidate, float] = {}
        for method in METHODS:
            own = [c for c in found if c.method == method]
            scores = population.scores(X, evidence, maps[None, method].apply, [c.dim for c in own])
            truth |= dict(zip(own, [score / full for score in scores], strict=True))
        for c, share in truth.items():
            held[c.method, c.dim].append(not c.low > share)
        answer = smallest(found, population.dim, None, retain, labelled=True)
        claims.append(answer is None or truth[answer] >= retain)
        beside += [] if answer is None else [answer.low <= truth[answer]]
    each = np.array([np.mean(v) if v else np.nan for v in held.values()])
    told = float(np.mean(claims)) if claims else np.nan
    return Coverage(
        n,
        samples,
        refused,
        each,
        told,
        float(np.mean(beside)) if beside else np.nan,
        len(beside) / max(len(claims), 1),
    )


MADE = {f"made {kind}": kind for kind in ("pairs", "classes", "queries")}
REAL = ("sickr", "stsb", "cr", "trec", "hotpotqa")


def main(arguments: list[str] | None = None) -> int:
    """Print a line for each population and size of sample; 1 if bounds held in less than 93 %,
    chance aside.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.advisor_coverage", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        default=list(MADE),
        help=f"of {', '.join([*MADE, *REAL])}",
    )
    parser.add_argument("--items", type=int, nargs="+", default=list(ITEMS))
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument(
        "--dims",
        type=int,
        nargs="+",
        default=None,
        help="by default ¾, ½, ¼, ⅛ and 1/16 of the full size, and 12",
    )
    parser.add_argument("--retain", type=float, default=0.9)
    options = parser.parse_args(arguments)
    low = False
    for name in options.names:
        population = made(MADE[name]) if name in MADE else real(name)
        for n in options.items:
            sizes = options.dims or sorted(
                {12, *(int(population.dim * part) for part in PARTS)},
                reverse=True,
            )
            found = coverage(population, n, options.samples, sizes, retain=options.retain)
            worst, mean = float(np.nanmin(found.held)), float(np.nanmean(found.held))
            low |= mean < 0.93 or worst < 0.93 - 2 * np.sqrt(
                0.93 * 0.07 / max(found.samples - found.refused, 1)
            )
            say(
                f"{name:>12} n {n:>5}: bounds held in {100 * mean:.1f} % (lowest "
                f"{100 * worst:.1f}); claims true in {100 * found.claims:.1f} %, answers in "
                f"{100 * found.answers:.0f} %, their own bounds true in {100 * found.beside:.1f} "
                f"%; {found.samples} samples, {found.refused} refused"
            )
    return int(low)


if __name__ == "__main__":
    sys.exit(main())
