import numpy as np
import pytest
import torch

from repro.models import SentenceEncoder
from repro.types import InputError
from rivals.sbert_wk import SbertWK, coordinates, first_layer, fuse, layer_weights, word_weights


def literal(words, window=2):
    """SBERT-WK of one sentence, as the paper tells it: words (L, T, D), one word and one layer at a time."""
    n_layers, n_words, _ = words.shape
    fused, spread = [], []
    for t in range(n_words):
        v = words[:, t]
        alignment, novelty = np.zeros(n_layers), np.zeros(n_layers)
        for k in range(n_layers):
            near = [j for j in range(k - window, k + window + 1) if j != k and 0 <= j < n_layers]
            alignment[k] = 1 / np.mean([v[j] @ v[k] / np.linalg.norm(v[j]) / np.linalg.norm(v[k]) for j in near])
            r = np.linalg.qr(v[[*near, k]].T, mode="r")[:, -1]
            novelty[k] = abs(r[-1]) / np.linalg.norm(r)
        weights = alignment / alignment.sum() + novelty / novelty.sum()
        fused.append(weights / weights.sum() @ v)
        cosines = [v[j] @ v[j + 1] / np.linalg.norm(v[j]) / np.linalg.norm(v[j + 1]) for j in range(n_layers - 1)]
        spread.append(np.var(cosines))
    return np.array(spread) / np.sum(spread) @ np.array(fused)


@pytest.fixture
def states():
    generator = torch.Generator().manual_seed(0)
    common = torch.randn(1, 3, 6, 16, generator=generator)
    return common + 0.5 * torch.randn(5, 3, 6, 16, generator=generator)


@pytest.mark.parametrize("window", [1, 2, 7])
def test_batches_agree_with_the_literal_loop(states, window):
    lengths = (6, 4, 1)
    mask = torch.tensor([[1] * n + [0] * (6 - n) for n in lengths])
    found = fuse(states, mask, window=window).numpy()
    for row, n in enumerate(lengths):
        expected = literal(states[:, row, :n].double().numpy(), window)
        np.testing.assert_allclose(found[row], expected, atol=1e-5)


def test_identical_layers_give_the_plain_token_mean(states):
    same = states[:1].expand(4, -1, -1, -1)
    mask = torch.tensor([[1] * 6, [1] * 3 + [0] * 3, [1] + [0] * 5])
    expected = torch.stack([same[0, i, : mask[i].sum()].mean(0) for i in range(3)])
    torch.testing.assert_close(fuse(same, mask), expected, rtol=0, atol=1e-5)


def test_weights_add_up_and_do_not_see_rotations_or_scale(states):
    words = states.flatten(1, 2).movedim(0, -1).double()  # (N, D, L)
    Q = torch.linalg.qr(torch.randn(16, 16, generator=torch.Generator().manual_seed(1), dtype=torch.float64)).Q
    before = layer_weights(coordinates(words)), word_weights(coordinates(words))
    after = layer_weights(coordinates(3 * Q @ words)), word_weights(coordinates(3 * Q @ words))
    torch.testing.assert_close(before[0].sum(-1), torch.ones(18, dtype=torch.float64))
    torch.testing.assert_close(before, after)


def test_a_layer_that_departs_weighs_more():
    words = torch.ones(1, 8, 5, dtype=torch.float64)
    words[0, :4, 2] *= -0.5
    weights = layer_weights(coordinates(words))[0]
    assert weights.argmax() == 2


@pytest.mark.parametrize("kept", [1, 2])
def test_fewer_than_three_layers_are_refused_for_their_fusion_is_a_plain_mean(states, tiny, kept):
    with pytest.raises(InputError, match=f"{kept} layers: .* at least 3"):
        layer_weights(coordinates(states[:kept].flatten(1, 2).movedim(0, -1)))
    with pytest.raises(InputError, match=f"2 layers, of which {kept} from layer {3 - kept} up.*MiniLM-L6-v2 has 6"):
        SbertWK(SentenceEncoder.load(tiny), first=3 - kept)


def test_the_lower_third_is_left_out():
    assert [first_layer(n) for n in (1, 2, 4, 6, 12, 24)] == [1, 1, 2, 2, 4, 4]


def test_encoding_is_independent_of_company_and_batch(tiny, sentences):
    encoder = SbertWK(SentenceEncoder.load(tiny), first=0)
    texts = [*sentences[:30], sentences[0], "a"]
    X = encoder.encode(texts)
    alone = np.concatenate([encoder.encode([text]) for text in texts])
    np.testing.assert_allclose(X, alone, atol=1e-4)
    assert X.shape == (32, encoder.dim) and (X[0] == X[30]).all() and encoder.encoder.texts_encoded == 31 + 32


def test_bad_settings_are_refused(tiny):
    encoder = SentenceEncoder.load(tiny)
    with pytest.raises(InputError, match="window is 0"):
        SbertWK(encoder, first=0, window=0)
    with pytest.raises(InputError, match="has no layers"):
        SbertWK(encoder, first=0).encode(["a"], layer=1)
