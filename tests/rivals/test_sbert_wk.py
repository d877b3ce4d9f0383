import numpy as np
import pytest
import torch

from repro.models import SentenceEncoder
from repro.types import InputError
from rivals.sbert_wk import SbertWK, first_layer, fuse


def literal(words, window=2):
    """SBERT-WK of one sentence, as the paper tells it: words (L, T, D), one word and one layer at a
    time.
    """
    n_layers, n_words, _ = words.shape
    fused, spread = [], []
    for t in range(n_words):
        v = words[:, t]
        alignment, novelty = np.zeros(n_layers), np.zeros(n_layers)
        for k in range(n_layers):
            near = [j for j in range(k - window, k + window + 1) if j != k and 0 <= j < n_layers]
            alignment[k] = 1 / np.mean(
                [v[j] @ v[k] / np.linalg.norm(v[j]) / np.linalg.norm(v[k]) for j in near]
            )
            r = np.linalg.qr(v[[*near, k]].T, mode="r")[:, -1]
            novelty[k] = abs(r[-1]) / np.linalg.norm(r)
        weights = alignment / alignment.sum() + novelty / novelty.sum()
        fused.append(weights / weights.sum() @ v)
        cosines = [
            v[j] @ v[j + 1] / np.linalg.norm(v[j]) / np.linalg.norm(v[j + 1])
            for j in range(n_layers - 1)
        ]
        spread.append(np.var(cosines))
    return np.array(spread) / np.sum(spread) @ np.array(fused)


def test_batches_agree_with_the_literal_loop():
    generator, lengths = torch.Generator().manual_seed(0), (6, 4, 1)
    states = torch.randn(1, 3, 6, 16, generator=generator) + 0.5 * torch.randn(
        7,
        3,
        6,
        16,
        generator=generator,
    )
    mask = torch.tensor([[1] * n + [0] * (6 - n) for n in lengths])
    for layers in (3, 7):
        found = fuse(states[:layers], mask).numpy()
        for row, n in enumerate(lengths):
            expected = literal(states[:layers, row, :n].double().numpy())
            np.testing.assert_allclose(found[row], expected, atol=1e-5)


def test_the_lower_third_is_left_out_and_fewer_than_three_layers_are_refused(tiny):
    assert [first_layer(n) for n in (1, 2, 4, 6, 12, 24)] == [1, 1, 2, 2, 4, 4]
    with pytest.raises(
        InputError,
        match=r"2 layers, of which 2 from layer 1 up.*MiniLM-L6-v2 has 6",
    ):
        SbertWK(SentenceEncoder.load(tiny))


def test_encoding_is_independent_of_company_and_batch(deep, sentences):
    encoder = SbertWK(SentenceEncoder.load(deep))
    texts = [*sentences[:12], sentences[0], "a"]
    X = encoder.encode(texts)
    np.testing.assert_allclose(
        X,
        np.concatenate([encoder.encode([text]) for text in texts]),
        atol=1e-4,
    )
    assert X.shape == (14, encoder.dim) and (X[0] == X[12]).all()
