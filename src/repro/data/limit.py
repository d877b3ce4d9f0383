"""A smaller set drawn from a larger one, the same way for every source."""

from dataclasses import replace

import numpy as np

from repro.seeding import make_rng
from repro.sets import Corpus, DataSet, LabelledPairs, LabelledTexts, Retrieval, ScoredPairs, WordVectors
from repro.types import check_dim


def take(data: DataSet, limit: int | None, *, seed: int = 0) -> DataSet:
    """Keep `limit` rows drawn at random, in their old order; a smaller limit is a subset of a larger one.

    Drawn rather than cut off at the top because files are sorted by label, subset or article. Retrieval keeps
    `limit` queries and the documents judged for them (its relevant ones and its distractors), so the search is
    easier than over all documents. Word vectors keep the most frequent words, for their order is a ranking.

    Raises:
        InputError: if limit is not a whole number of at least 1.
    """
    if limit is None:
        return data
    check_dim(limit, what="limit")
    if limit >= len(data):
        return data
    rows = np.sort(make_rng(seed, "limit", data.name, data.split).permutation(len(data))[:limit])
    match data:
        case ScoredPairs():
            return replace(
                data,
                texts1=_pick(data.texts1, rows),
                texts2=_pick(data.texts2, rows),
                scores=data.scores[rows],
                subsets=data.subsets[rows],
            )
        case LabelledPairs():
            return replace(
                data, texts1=_pick(data.texts1, rows), texts2=_pick(data.texts2, rows), labels=data.labels[rows]
            )
        case LabelledTexts():
            return replace(data, texts=_pick(data.texts, rows), labels=data.labels[rows])
        case Corpus():
            return replace(data, texts=_pick(data.texts, rows))
        case WordVectors():
            return WordVectors(data.name, data.source, data.words[:limit], data.vectors[:limit], data.split)
        case Retrieval():
            return _take_queries(data, rows)


def _pick(texts: tuple[str, ...], rows: np.ndarray) -> tuple[str, ...]:
    return tuple(texts[row] for row in rows)


def _take_queries(data: Retrieval, rows: np.ndarray) -> Retrieval:
    query_ids = _pick(data.query_ids, rows)
    qrels = {query: data.qrels[query] for query in query_ids if query in data.qrels}
    judged = {document for documents in qrels.values() for document in documents}
    kept = np.array([row for row, document in enumerate(data.document_ids) if document in judged], dtype=int)
    return replace(
        data,
        query_ids=query_ids,
        queries=_pick(data.queries, rows),
        document_ids=_pick(data.document_ids, kept),
        documents=_pick(data.documents, kept),
        qrels=qrels,
        answers=None if data.answers is None else _pick(data.answers, rows),
    )
