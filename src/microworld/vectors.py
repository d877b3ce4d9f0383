"""Word vectors counted from the microworld's own sentences: the stand-in for GloVe."""

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from repro.sets import WordVectors


def word_vectors(texts: list[str], *, name: str, dim: int = 50, window: int = 4) -> WordVectors:
    """Positive pointwise mutual information of words within a window, reduced to `dim` by truncated SVD.

    Rows are in frequency order, as in GloVe's files; signs are fixed so that the same texts give the same bytes.

    References:
        Levy and Goldberg (2014), Neural word embedding as implicit matrix factorization.
    """
    lines = [text.lower().replace(",", " ").rstrip(".?!").split() for text in texts]
    words, counts = np.unique(np.concatenate([np.array(line) for line in lines]), return_counts=True)
    order = np.argsort(-counts, kind="stable")
    row = {word: rank for rank, word in enumerate(words[order].tolist())}
    left, right = [], []
    for line in lines:
        ids = [row[word] for word in line]
        for step in range(1, window + 1):
            left += ids[:-step]
            right += ids[step:]
    pairs = sparse.coo_matrix((np.ones(len(left)), (left, right)), shape=(len(row), len(row))).tocsr()
    pairs = (pairs + pairs.T).tocoo()
    total = np.asarray(pairs.sum(axis=1)).ravel()
    pmi = np.log(pairs.data * total.sum() / (total[pairs.row] * total[pairs.col]))
    positive = sparse.csr_matrix((np.maximum(pmi, 0), (pairs.row, pairs.col)), shape=pairs.shape)
    U, s, _ = svds(positive, k=dim, v0=np.ones(len(row)))
    U, s = U[:, ::-1], s[::-1]  # svds returns the smallest first
    U = U * np.sign(U[np.abs(U).argmax(axis=0), np.arange(dim)])
    return WordVectors(name, "microworld", tuple(row), (U * np.sqrt(s)).astype(np.float32))
