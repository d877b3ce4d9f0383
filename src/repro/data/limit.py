"""A smaller set drawn from a larger one, the same way for every source."""

import numpy as np

from repro.seeding import make_rng
from repro.sets import DataSet, Retrieval, WordVectors
from repro.types import check_dim


def take(data: DataSet, limit: int | None, *, seed: int = 0) -> DataSet:
    """Keep `limit` rows drawn at random, in their old order; a smaller limit is a subset of a larger one.

    Drawn rather than cut off at the top because files are sorted by label, subset or article. Retrieval keeps
    `limit` queries and the documents judged for them (its relevant ones and its distractors), so the search is
    easier than over all documents. Word vectors keep the most frequent words, for their order is a ranking.

    Raises:
        InputError: if limit is not a whole number of at least 1.
    """
    if limit is None or check_dim(limit, what="limit") >= len(data):
        return data
    if isinstance(data, WordVectors):
        return data.keep(range(limit))
    rows = np.sort(make_rng(seed, "limit", data.name, data.split).permutation(len(data))[:limit])
    if isinstance(data, Retrieval):
        qrels = {query: data.qrels[query] for row in rows if (query := data.query_ids[row]) in data.qrels}
        judged = {document for documents in qrels.values() for document in documents}
        found = [row for row, document in enumerate(data.document_ids) if document in judged]
        data = data.keep(found, group=1, qrels=qrels)
    return data.keep(rows)
