"""Right values, not merely no exception: random input through our code and through an independent
computation.
"""

import functools
import os
import traceback
from functools import partial
from math import log2
from pathlib import Path

import numpy as np
import pandas as pd
from safetensors.numpy import load_file, save_file
from scipy.stats import spearmanr
from sklearn.decomposition import PCA as ReferencePCA

from dimadvise import deploy
from dimadvise.vectors import open_vectors
from repro import evaluation
from repro.evaluation.quantise import BITS, dequantise, fit_codebook, quantise
from repro.evaluation.stats import draw_counts, spearman_draws, subset_members
from repro.evaluation.sts import prefix_cosines
from repro.models import SentenceEncoder
from repro.reducers import make_reducer
from repro.seeding import make_rng

LETTERS = ["cook", "driver", "dog", "river", "thanked", "slept", "near", "red", "old", "quickly"]
ADVICE = Path("advice")


def matrix(rng, rows, columns, *, whole=False):
    """Random numbers of any size; whole ones have ties."""
    numbers = np.random.default_rng(rng.getrandbits(32))
    if whole:
        return numbers.integers(-2, 3, size=(rows, columns)).astype(np.float64)
    return numbers.normal(size=(rows, columns)) * rng.choice((1e-3, 1.0, 1e3))


def long_cosines(A, B):
    """Cosines of paired rows in long doubles, rounded so that equal ones are equal; 0 where a row
    is zero.
    """
    A, B = A.astype(np.longdouble), B.astype(np.longdouble)
    lengths = np.sqrt((A * A).sum(1) * (B * B).sum(1))
    products = (A * B).sum(1)
    return np.round((products / np.where(lengths > 0, lengths, 1)).astype(np.float64), 13)


def similarity(rng, folder):
    """Cosines against long doubles, equal vectors tied to the last bit, and their Spearman against
    scipy's; other cosines that are equal on paper have no double of their own and may lie apart.
    """
    n = rng.randint(5, 60)
    whole = rng.random() < 0.5
    A, B = matrix(rng, n, 6, whole=whole), matrix(rng, n, 6, whole=whole)
    equal = np.array([rng.random() < 0.2 for _ in range(n)])
    B[equal] = A[equal] * rng.choice((1.0, 2.0))
    gold = np.round(matrix(rng, n, 1)[:, 0], 1)
    cosines, expected = prefix_cosines(A, B, [6])[0], long_cosines(A, B)
    np.testing.assert_allclose(cosines, expected, atol=1e-12)
    ends = np.abs(expected) == 1
    np.testing.assert_array_equal(cosines[ends], expected[ends])
    ours = evaluation.sts_spearman(A, B, gold)
    np.testing.assert_allclose(ours, spearmanr(cosines, gold)[0], atol=1e-9)


def search(rng, folder):
    """Recall and nDCG against a plain sort, ties in the order that `retrieve` states: the lower row
    first.
    """
    Q, C = matrix(rng, 4, 5, whole=True), matrix(rng, 30, 5, whole=True)
    qrels = {q: {rng.randrange(30): rng.choice((1, 2)) for _ in range(3)} for q in range(len(Q))}
    scores = evaluation.retrieval_scores(Q, C, qrels, ks=(5,))
    gains, recalls = [], []
    for q, judged in qrels.items():
        cosines = long_cosines(np.repeat(Q[q : q + 1], len(C), axis=0), C)
        ranked = sorted(range(len(C)), key=lambda row: (-cosines[row], row))[:5]
        best = sorted(judged.values(), reverse=True)[:5]
        ideal = sum(gain / log2(i + 2) for i, gain in enumerate(best))
        gains.append(sum(judged.get(row, 0) / log2(i + 2) for i, row in enumerate(ranked)) / ideal)
        recalls.append(np.mean([row in ranked for row in judged]))
    np.testing.assert_allclose(
        [scores["ndcg@5"], scores["recall@5"]],
        [np.mean(gains), np.mean(recalls)],
        atol=1e-12,
    )


def resamples(rng, folder):
    """Bootstrap of a rank correlation against scipy on the same drawn items."""
    n = rng.randint(12, 40)
    predicted, gold = np.round(matrix(rng, 2, n), 1)
    seed = rng.randrange(1000)
    ours = spearman_draws([predicted], gold, resamples=5, seed=seed)
    counts = draw_counts(subset_members(None, n), 5, make_rng(seed, "bootstrap"))
    for drawn, one in zip(counts, ours.draws[:, 0], strict=True):
        items = np.repeat(np.arange(n), drawn)
        if len(set(predicted[items])) > 1 and len(set(gold[items])) > 1:
            np.testing.assert_allclose(one, spearmanr(predicted[items], gold[items])[0], atol=1e-9)


def reduction(rng, folder):
    """PCA against scikit-learn, singular directions against numpy: distances of reduced rows, which
    no sign changes.
    """
    X, new = matrix(rng, 40, 7), matrix(rng, 9, 7)
    dim = rng.randint(1, 6)
    pca = make_reducer("pca", dim).fit(X).transform(new)
    svd = make_reducer("svd", dim).fit(X).transform(new)
    reference = ReferencePCA(dim, svd_solver="full").fit(X).transform(new)
    directions = np.linalg.svd(X)[2][:dim]
    scale = max(np.abs(X).max(), np.abs(new).max())
    np.testing.assert_allclose(pca @ pca.T, reference @ reference.T, atol=1e-5 * scale**2)
    np.testing.assert_allclose(
        svd @ svd.T,
        new @ directions.T @ directions @ new.T,
        atol=1e-5 * scale**2,
    )


def codes(rng, folder):
    """What is read back differs by half a step at most inside the range, and by rounding of its
    type for floats.
    """
    X = matrix(rng, 50, 6)
    level = rng.choice(list(BITS))
    book = fit_codebook(X, level)
    back = dequantise(quantise(X, book), book)
    if level == "binary":
        assert ((back > 0) == (X.mean(0).astype(np.float32) < X)).all()
    elif level in ("float32", "float16"):
        np.testing.assert_array_equal(back, X.astype(level).astype(np.float32))
    else:
        steps = (X.max(0) - X.min(0)) / (2 ** BITS[level] - 1)
        assert (np.abs(back - X) <= steps * 0.5001 + 1e-5 * np.abs(X).max()).all()


def file_forms(rng, folder):
    """A matrix that was written in any form is read as it was, rows in their order, from any row
    on.
    """
    X = matrix(rng, rng.randint(1, 400), 5).astype(np.float32)
    form = rng.choice(("npy", "npz", "safetensors", "parquet", "jsonl", "fvecs", "folder"))
    path = folder / f"v.{form}"
    if form == "npy":
        np.save(path, np.asfortranarray(X) if rng.random() < 0.5 else X)
    elif form == "npz":
        np.savez(path, X=X)
    elif form == "safetensors":
        save_file({"a": X}, path)
    elif form == "parquet":
        pd.DataFrame({"v": list(X)}).to_parquet(path, row_group_size=rng.choice((1, 7, 1000)))
    elif form == "jsonl":
        path.write_text("".join(f"{[float(number) for number in row]}\n" for row in X))
    elif form == "fvecs":
        path.write_bytes(b"".join(b"\5\0\0\0" + row.tobytes() for row in X))
    else:
        path = folder / f"shards{rng.getrandbits(32)}"
        path.mkdir()
        pieces = np.array_split(X, min(len(X), 12))
        for number, piece in enumerate(pieces):
            np.save(path / f"part-{number}.npy", piece)
    source = open_vectors(path)
    start = rng.randrange(len(X))
    read = np.concatenate(list(source.blocks(rng.choice((1, 64, 1000)), start=start)))
    np.testing.assert_array_equal(np.asarray(read, np.float32), X[start:])


@functools.cache
def encoder():
    return SentenceEncoder.load("encoder")


def embeddings(rng, folder):
    """A text has the same embedding whatever stands beside it, and its states are those of the
    network itself.
    """
    texts = [" ".join(rng.choices(LETTERS, k=rng.randint(1, 12))) for _ in range(rng.randint(2, 9))]
    together = encoder().encode(texts)
    alone = np.concatenate([encoder().encode([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=2e-5)
    backwards = encoder().encode(texts[::-1])[::-1]
    np.testing.assert_allclose(together, backwards, atol=2e-5)


def advice(rng, folder):
    """What an advice gives is what its plain tensors say, computed by hand."""
    X = matrix(rng, 20, 32).astype(np.float32)
    note, tensors = deploy.read_note(ADVICE), load_file(ADVICE / deploy.WEIGHTS)
    rows = X.astype(np.float64)
    if note["unit_rows"]:
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows @ tensors["matrix"].astype(np.float64) + tensors["bias"]
    if note["similarity"] == "cosine":
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(deploy.read(ADVICE).vectors(X), rows, atol=1e-5)


CASES = {
    "similarity": (similarity, 3_000),
    "search": (search, 2_000),
    "resamples": (resamples, 1_000),
    "reductions": (reduction, 1_500),
    "codes": (codes, 3_000),
    "forms of files": (file_forms, 1_500),
    "embeddings": (embeddings, 300),
    "advice by hand": (advice, 1_000),
}


def trials(case, m, rng, folder, count):
    """Compare so many times; what differs, if anything."""
    os.chdir(m)
    for _ in range(count):
        try:
            case(rng, folder)
            yield ""
        except Exception:
            yield traceback.format_exc()[-500:]


KINDS = {kind: (partial(trials, case), total) for kind, (case, total) in CASES.items()}
