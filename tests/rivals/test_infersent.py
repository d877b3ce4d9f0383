import numpy as np
import pytest
import torch

from repro.types import InputError
from rivals.infersent import BiLSTMMax, InferSent
from rivals.static import Vocabulary

WORDS = ("the", "cat", "dog", "sat", "on", "a", "mat", ".")
TEXTS = ["the cat sat", "a dog", "the mat . a cat sat on the dog", "zebra", "on a zebra mat"]


@pytest.fixture
def table():
    return Vocabulary(WORDS, np.random.default_rng(0).normal(size=(len(WORDS), 5)).astype(np.float32))


@pytest.fixture
def encoder(table):
    return InferSent(BiLSTMMax(5, 4), table)


def test_the_maximum_over_tokens_is_the_literal_one(encoder, table):
    """One text at a time and one token at a time, both directions from the cell's own equations."""
    net = encoder.net.lstm

    def run(vectors, suffix):
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        w_ih, w_hh, b_ih, b_hh = (getattr(net, f"{name}_l0{suffix}") for name in names)
        h, c, states = torch.zeros(4), torch.zeros(4), []
        for x in vectors:
            i, f, g, o = (w_ih @ x + b_ih + w_hh @ h + b_hh).chunk(4)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            states.append(h)
        return states

    net.requires_grad_(False)
    found = encoder.encode(TEXTS)
    for row, text in enumerate(TEXTS):
        known = [word for word in text.split() if word in table]
        if not known:
            continue
        vectors = torch.from_numpy(table.lookup(known)[0])
        ahead = run(vectors, "")
        back = run(vectors.flip(0), "_reverse")[::-1]
        states = torch.stack([torch.cat(pair) for pair in zip(ahead, back, strict=True)])
        best = [max(float(state[unit]) for state in states) for unit in range(8)]
        np.testing.assert_allclose(found[row], best, atol=1e-6)


def test_padding_leaves_embeddings_unchanged(encoder):
    generator = torch.Generator().manual_seed(0)
    vectors, lengths = torch.randn(3, 6, 5, generator=generator), torch.tensor([6, 2, 0])
    wider = torch.cat([vectors, torch.full((3, 9, 5), 1e3)], dim=1)
    wider[1, 2:] = 1e3
    torch.testing.assert_close(encoder.net(wider, lengths), encoder.net(vectors, lengths), rtol=0, atol=1e-6)
    assert not encoder.net(vectors, lengths)[2].any()


def test_company_and_order_do_not_matter(encoder):
    X = encoder.encode(TEXTS)
    np.testing.assert_allclose(X, np.concatenate([encoder.encode([text]) for text in TEXTS]), atol=1e-6)
    np.testing.assert_allclose(encoder.encode(TEXTS[::-1]), X[::-1], atol=1e-6)
    np.testing.assert_array_equal(encoder.encode(["zebra the cat"]), encoder.encode(["the CAT"]))


def test_unknown_texts_are_zero_and_long_ones_are_cut(table):
    encoder = InferSent(BiLSTMMax(5, 4), table, max_length=2)
    X = encoder.encode(TEXTS)
    assert not X[3].any() and encoder.texts_unknown == 1 and encoder.texts_truncated == 3
    np.testing.assert_allclose(X[0], encoder.encode(["the cat"])[0], atol=1e-6)
    assert X.shape == (5, 8) and X.dtype == np.float32
    with pytest.raises(InputError, match="InferSent has no layers"):
        encoder.encode(TEXTS, layer=1)


def test_what_does_not_fit_is_refused(encoder):
    narrow = Vocabulary(WORDS, np.ones((len(WORDS), 3), np.float32))
    with pytest.raises(InputError, match="vectors of 3 dimensions: the network reads 5"):
        InferSent(encoder.net, narrow)
    with pytest.raises(InputError, match="hidden_dim is 0"):
        BiLSTMMax(5, 0)
