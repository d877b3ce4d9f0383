"""What an advice promised, measured again on other vectors by the map as it was written."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dimadvise.advisor import Check
from dimadvise.coding import Deployment
from dimadvise.evidence import Evidence
from dimadvise.files import Block, Rows, Vectors
from dimadvise.findings import SCORES
from dimadvise.inputs import Case
from dimadvise.measure import found_again
from dimadvise.queries import all_of, check_differ, draw
from dimadvise.unseen import Shortened, Split
from repro.evaluation.stats import Interval
from repro.seeding import make_rng
from repro.types import InputError

SURE = 0.975  # Of a share's lower bound: as sure as the lower end of an interval of 95 %


class Stored(Shortened):
    """Vectors as they are, and as an advice stores them, in place of maps that would be fitted."""

    def __init__(self, deployment: Deployment, vectors: Vectors) -> None:
        self.deployment, self.vectors = deployment, vectors
        self.sizes = [vectors.shape[1], deployment.transform.dim]
        self.last: tuple[Rows, bool] = np.zeros(0, np.int64), False
        self.blocks: list[Block] = []  # Of the rows that were asked for last

    def at_sizes(self, rows: Rows, split: Split = (), *, asked: bool = False) -> Iterator[Block]:
        """Rows (m,) of full size, then as they are stored, or `asked` for."""
        before, were_asked = self.last
        # Whoever judges by folds wants the same rows once for each of them.
        if not self.blocks or asked != were_asked or not np.array_equal(rows, before):
            X = self.vectors.take(rows)
            coded = self.deployment.queries(X) if asked else self.deployment.stored(X)
            self.last, self.blocks = (rows, asked), [X, coded]
        yield from self.blocks


def checked(deployment: Deployment, promised: Mapping[str, Any], case: Case) -> Check:
    """Measure what was promised: a share of a score where there is evidence, else recall@10."""
    vectors = case.versions[case.last_layer]
    width = len(deployment.transform.matrix)
    if vectors.shape[1] != width:
        raise InputError(
            f"{vectors.name} has {vectors.shape[1]} numbers a row, the advice was on {width}: "
            "give vectors of the same encoder"
        )
    if case.evidence is not None:
        return _score(deployment, promised, case.evidence, vectors, case.request.seed)
    return _recall(deployment, promised, case, vectors)


def _score(
    deployment: Deployment,
    promised: Mapping[str, Any],
    evidence: Evidence,
    vectors: Vectors,
    seed: int,
) -> Check:
    if promised.get("metric") != evidence.metric:
        metric = promised.get("metric", "recall@10")
        raise InputError(
            f"the advice promised of {SCORES.get(metric, metric)}, these labels tell of "
            f"{SCORES[evidence.metric]}: give labels of the kind that it was advised by, or none"
        )
    folds = evidence.folds(vectors, seed=seed)
    outcomes = evidence.outcomes(Stored(deployment, vectors), folds)
    scores, retention = evidence.bounds(outcomes, folds, confidence=SURE)
    share, low = float(retention.share[1]), float(retention.low[1])
    return Check(
        f"share of the {SCORES[evidence.metric]} that is kept",
        float(promised["share"]),
        Interval(share, low, 2 * share - low),
        float("nan"),
        f"{evidence.items:,} labelled items, {scores[0]:.3f} at full size",
    )


def _recall(
    deployment: Deployment,
    promised: Mapping[str, Any],
    case: Case,
    documents: Vectors,
) -> Check:
    if "recall@10" not in promised:
        raise InputError("the advice promises nothing of recall@10: advise anew")
    request = case.request
    *halves, _ = draw(documents, case.asked, make_rng(request.seed, "queries"))
    queries = all_of(halves)  # Nothing is screened.
    n = documents.shape[0]
    corpus = make_rng(request.seed, "corpus").choice(n, min(n, request.sample), replace=False)
    check_differ(documents.take(np.sort(corpus)[:1000]), n)
    if case.asked is not None:
        queries = queries.found_in(documents, corpus)
    option = found_again(deployment, documents, corpus, queries)
    about = f"{len(queries.rows):,} queries among {len(corpus):,} of {n:,} rows"
    among = promised.get("corpus", len(corpus))
    if len(corpus) < among:
        about += f"; promised among {among:,}, and among fewer more is found"
    if len(corpus) > among:
        about += f"; promised among {among:,}, and among more less is found"
    return Check(
        "recall@10",
        float(promised.get("recall", promised["recall@10"][1])),
        Interval(option["recall@10"], option["low@10"], option["high@10"]),
        float(option["tail@10"]),
        about,
    )
