"""What is odd about some vectors, one sentence each, with what to do about it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dimadvise.coding import Deployment
from dimadvise.files import Block, Vectors, row_keys
from dimadvise.search import Found, Places, ranks, searched
from dimadvise.transform import Moments, unchanged
from repro.types import Array, InputError

ROWS_PER_DIM = 2  # Rows per dimension below which components follow chance
STILL = 1e-3  # Deviation of a column, as a share of the usual one, below which it says nothing
REPEATS, LENGTHS, SHARED, APART, SPLIT, DRIFT, MARGIN = 0.01, 0.01, 0.3, 0.1, 0.8, 0.05, 0.1
"""Shares and differences from which it is said: rows that repeat, spread of lengths, the mean in
squared lengths, the distance of queries, two groups, parts of a file that differ, and what first
columns find more than last ones.
"""
FEWEST = 100  # Rows from which on bits can be told from numbers
PROBED = 2_000  # Rows by which packed bits are known, at most
BALANCED, EVEN, SHARED_BY_BITS = 0.1, 0.8, 0.04
"""Of packed bytes: bits that each place says at least, the first as a share of the last at least,
and bits that the first two places say of each other at most; in rounded embeddings they say 0.3 and
more.
"""


class Sample(NamedTuple):
    """Some documents (n, D) in the order of their file, some queries (m, D), and the place of each
    query among the documents, -1 where it is not.
    """

    documents: Block
    queries: Block
    own: Places

    def searched(self, ways: Sequence[Deployment], count: int) -> Found:
        """What each way finds of the nearest."""
        n = len(self.documents)
        return next(
            searched(ways, self.queries, self.own, [self.documents], min(count, n - 1), [n])
        )


def oddities(
    sample: Sample,
    moments: Moments,
    *,
    similarity: str,
    foreign: bool,
) -> Iterator[str]:
    """Every oddity of a sample; `foreign` queries come from another file. Maps were fitted by the
    `moments`.
    """
    yield from _counts(sample.documents, moments)
    yield from _zeros(sample.documents, "rows")
    yield from _lengths(sample.documents, similarity)
    yield from _populations(sample.documents)
    if foreign:
        yield from _zeros(sample.queries, "queries")
        yield from _apart(sample.documents, sample.queries)
    yield nested_or_not(sample, similarity)


def _counts(X: Block, moments: Moments) -> Iterator[str]:
    n, D = X.shape
    if moments.rows < ROWS_PER_DIM * D:
        yield (
            f"Components of {D} numbers were fitted on {moments.rows:,} rows, and follow chance "
            f"too: what that loses is in the recall; give {ROWS_PER_DIM * D:,} rows or more to "
            "lose less."
        )
    deviation = X.std(0, dtype=np.float64)
    still = int((deviation <= STILL * np.median(deviation)).sum())
    if still:
        yield f"{still} of {D} columns hardly vary: drop them, and nothing is lost."
    repeated = n - len(set(row_keys(X)))
    if repeated > REPEATS * n:
        yield (
            f"{100 * repeated / n:.0f} % of {n:,} sampled rows repeat another: equal rows are "
            "neighbours of each other, whatever the code; drop repeated rows and advise again."
        )


def _zeros(X: Block, noun: str) -> Iterator[str]:
    zeros = int((~X.any(axis=1)).sum())
    if zeros:
        yield (
            f"{zeros} of {len(X):,} sampled {noun} are zero and have no direction, so that nothing "
            "is lost of what they find: drop them."
        )


def _lengths(X: Block, similarity: str) -> Iterator[str]:
    lengths = np.linalg.norm(X.astype(np.float64), axis=1)
    spread = lengths.std() / max(lengths.mean(), 1e-300)
    if similarity == "cosine" and spread > LENGTHS:
        yield (
            f"Rows are not of one length (from {lengths.min():.3g} to {lengths.max():.3g}), which "
            "cosines do not see: if your store ranks by inner product or distance, say so by "
            "--similarity, or divide rows by their length."
        )
    if similarity != "cosine" and spread <= LENGTHS:
        yield (
            "All rows have about the same length, so cosine, inner product and distance rank "
            "alike: take cosine."
        )
    shared = _squared_length(_mean(X)) / max(float(np.mean(lengths**2)), 1e-300)
    if similarity != "l2" and shared > SHARED:  # Distances do not feel where all rows lie.
        yield (
            f"All rows point one way: their mean holds {100 * shared:.0f} % of their squared "
            "length, and subtracting it, as pca does, changes which are near; prefer svd, which "
            "does not."
        )


def _populations(X: Block) -> Iterator[str]:
    centred = X - X.mean(0)
    total = float(np.vdot(centred, centred))
    if not total:
        return
    tenths = np.array_split(np.arange(len(X)), 10)
    of_means = sum(len(tenth) * _squared_length(centred[tenth].mean(0)) for tenth in tenths)
    by_chance = (len(tenths) - 1) / len(X)
    between = of_means / total - by_chance
    if between > DRIFT:
        yield (
            f"Parts of the file differ: {100 * between:.0f} % of the variance lies between its "
            "tenths. If these are several populations that are searched apart, advise on each by "
            "itself."
        )
    weights = np.random.default_rng(0).standard_normal(X.shape[1])
    for _ in range(20):  # The first component, by powers
        weights = centred.T @ (centred @ weights)
        weights /= np.linalg.norm(weights)
    share, smaller = split_share(np.sort(centred @ weights))
    if share > SPLIT:
        yield (
            f"Rows fall into two groups along their first component, {100 * smaller:.0f} % in the "
            "smaller one. If they are several populations, such as questions and passages, or two "
            "languages, advise on each by itself."
        )


def split_share(values: Array) -> tuple[float, float]:
    """The most variance of ascending values (n,) that a cut into two explains, and the share in the
    smaller part.

    0.64 for a normal distribution, 0.75 for a uniform one; parts below a twentieth do not count.
    """
    n = len(values)
    sizes = np.arange(1, n)
    smaller = np.minimum(sizes, n - sizes)
    centred = values - values.mean()
    between = n * np.cumsum(centred)[:-1] ** 2 / (sizes * (n - sizes))
    between[smaller < n / 20] = 0
    cut = int(between.argmax())
    return float(between[cut] / max(_squared_length(centred), 1e-300)), float(smaller[cut] / n)


def _apart(X: Block, Q: Block) -> Iterator[str]:
    variance = float(X.var(0, dtype=np.float64).sum())
    squared = _squared_length(_mean(X) - _mean(Q)) / max(variance, 1e-300)
    if squared - 1 / len(Q) > APART:
        yield (
            f"Queries are unlike documents: the means lie {np.sqrt(squared):.1f} deviations apart. "
            "Recall is of these queries, while maps and ranges were fitted on documents: advise "
            "again whenever the queries change."
        )


def _mean(X: Block) -> Array:
    """The mean row, summed in double precision."""
    return np.asarray(X.mean(0, dtype=np.float64))


def _squared_length(vector: Array) -> float:
    return float(np.square(vector).sum())


def nested_or_not(sample: Sample, similarity: str) -> str:
    """Whether the vectors look trained to be cut: whether first columns find more neighbours than
    last ones.
    """
    D = sample.documents.shape[1]
    quarter = max(1, D // 4)
    found_by = []
    for columns in (slice(D), slice(quarter), slice(D - quarter, D)):
        cut = Sample(sample.documents[:, columns], sample.queries[:, columns], sample.own)
        way = Deployment(unchanged(cut.documents.shape[1]), similarity)
        found_by.append(cut.searched([way], 10).places[0])
    full, *parts = found_by
    first, last = (float((ranks(full, part) < full.shape[1]).mean()) for part in parts)
    comparison = (
        f"the first {quarter} of {D} columns find {first:.2f} of the neighbours, the last "
        f"{quarter} {last:.2f}"
    )
    if first - last > MARGIN:
        return (
            "The vectors look trained to be cut (Matryoshka), or sorted by a PCA: "
            f"{comparison}; cutting needs no map."
        )
    return (
        f"The vectors do not look trained to be cut (Matryoshka): {comparison}; a map that is "
        "fitted keeps more."
    )


def refuse_packed_bits(vectors: Vectors) -> None:
    """Refuse bytes that hold eight signs each: compared as numbers they say nothing."""
    n, D = vectors.shape
    if vectors.kind not in ("int8", "uint8") or n < FEWEST:
        return
    rows = np.linspace(0, n - 1, min(n, PROBED)).astype(np.int64)
    if looks_packed(vectors.take(rows)):
        raise InputError(
            f"{vectors.name} looks like packed bits, eight to each of its {D} bytes a row: unpack "
            "them, np.save('X.npy', np.unpackbits(X.view('uint8'), axis=1)); if they are numbers, "
            "save them as such, np.save('X.npy', X.astype('float32'))"
        )


def looks_packed(X: Block) -> bool:
    """Whether whole numbers of eight bits (n, D) look like eight signs each.

    Then all bits of a number say as much, and none tells of another. Of numbers that gather about
    some value, the first bit tells the second; of numbers that are mostly small, it says little.
    """
    as_bytes = X.astype(np.int16).astype(np.uint8)
    bits = np.unpackbits(as_bytes, axis=1).reshape(*X.shape, 8)  # First the bit that weighs most
    entropy = _entropy(bits.mean(axis=0), 1 - bits.mean(axis=0))  # (D, 8)
    pairs = as_bytes >> 6  # The first two bits
    shared = (
        entropy[:, 0] + entropy[:, 1] - _entropy(*((pairs == pair).mean(0) for pair in range(4)))
    )
    by_bit = entropy.mean(axis=0)
    even = by_bit.min() > BALANCED and by_bit[0] > EVEN * by_bit[-1]
    return bool(even and shared.mean() < SHARED_BY_BITS)


def _entropy(*shares: Array) -> Array:
    """Bits that the outcomes of such shares say, of each column."""
    return np.asarray(-sum(share * np.log2(np.maximum(share, 1e-300)) for share in shares))
