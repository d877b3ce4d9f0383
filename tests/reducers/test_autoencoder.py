"""The autoencoder: never better than pca with an affine decoder, as good as it when linear, the
same twice.
"""

import sys

import numpy as np
import pytest
import torch

from repro.reducers import PCA, Autoencoder, autoencoder
from repro.reducers.autoencoder import forward
from repro.seeding import make_rng, threads
from repro.types import InputError

ACTIVATIONS = ["tanh", "relu", "sigmoid", "identity"]


def cloud(n=200):
    return (np.random.default_rng(0).standard_normal((n, 8)) * np.linspace(1.5, 0.3, 8) + 2).astype(
        np.float32
    )


def left_over(X, fitted):
    """Squared error of the rows that the decoder rebuilds from the reduced ones."""
    back = (
        forward(fitted.transform(X), fitted.decoder_, fitted.activation, affine=True) + fitted.mean_
    )
    return float(((X - back) ** 2).sum())


def test_the_identity_approaches_pca():
    X = cloud()
    trained = Autoencoder(
        3,
        activation="identity",
        epochs=600,
        learning_rate=1e-2,
        validation=0,
    ).fit(X)
    left, least = (
        1 - fitted.explained_variance_ratio_.sum() for fitted in (trained, PCA(3).fit(X))
    )
    assert left == pytest.approx(least, rel=0.01)


@pytest.mark.parametrize(
    "activation, hidden_layers",
    list(zip(ACTIVATIONS, [(), (6,), (7, 5), (6,)], strict=True)),
)
def test_training_lowers_the_loss_and_keeps_the_best_epoch(activation, hidden_layers):
    X = cloud()
    fitted = Autoencoder(
        3,
        activation=activation,
        hidden_layers=hidden_layers,
        epochs=60,
        learning_rate=1e-2,
    ).fit(X)
    assert fitted.losses_[:, 1].argmin() + 1 == fitted.best_epoch_
    assert fitted.losses_[-1, 0] < 0.9 * fitted.losses_[0, 0]
    assert [len(W) for W, _ in fitted.encoder_ + fitted.decoder_] == [
        *hidden_layers,
        3,
        *hidden_layers[::-1],
        8,
    ]
    share = 1 - left_over(X, fitted) / ((X - X.mean(0)) ** 2).sum()
    assert fitted.explained_variance_ratio_.sum() == pytest.approx(share, abs=1e-4)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_what_numpy_rebuilds_is_what_torch_was_trained_to(activation):
    X = cloud()
    fitted = Autoencoder(3, activation=activation, hidden_layers=(6,), epochs=3).fit(X)
    held_out = X[make_rng(0, "autoencoder order").permutation(len(X))[:20]]
    smallest = fitted.losses_[fitted.best_epoch_ - 1, 1]
    assert left_over(held_out, fitted) / held_out.size == pytest.approx(smallest, rel=1e-5)


def test_it_trains_for_a_hundred_epochs_or_until_five_bring_no_gain():
    slow, wild = (Autoencoder(3, learning_rate=rate).fit(cloud(40)) for rate in (1e-4, 0.5))
    assert len(slow.losses_) == slow.best_epoch_ == 100
    assert len(wild.losses_) == wild.best_epoch_ + 5 < 100


def test_the_kept_weights_have_the_smallest_held_out_loss_and_rows_weigh_alike():
    X = cloud()
    fitted = Autoencoder(3, epochs=40, learning_rate=0.5, batch_size=64, patience=3).fit(X)
    held_out = X[make_rng(0, "autoencoder order").permutation(len(X))[:20]]
    smallest = fitted.losses_[fitted.best_epoch_ - 1, 1]
    # Its patience
    assert smallest == fitted.losses_[:, 1].min() and len(fitted.losses_) == fitted.best_epoch_ + 3
    assert left_over(held_out, fitted) / held_out.size == pytest.approx(smallest, rel=1e-5)
    options = {"learning_rate": 1e-12, "epochs": 1, "validation": 0}
    found = [
        Autoencoder(3, batch_size=size, **options).fit(cloud()).losses_[0, 0] for size in (7, 200)
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-5)


OPTIONS = {"learning_rate": 0.02, "batch_size": 24, "hidden_layers": (5,)}


@pytest.mark.parametrize("options", [{}, OPTIONS])
def test_training_is_a_plain_loop_of_adam_over_rows_shuffled_anew_in_every_epoch(options):
    X, rng = cloud(300), make_rng(2, "autoencoder order")
    fitted = Autoencoder(3, epochs=4, validation=0, seed=2, **options).fit(X)
    settings = {"learning_rate": 1e-3, "batch_size": 256, "hidden_layers": ()} | options
    inner = settings["hidden_layers"]
    start = autoencoder.initial_layers([8, *inner, 3, *inner, 8], make_rng(2, "autoencoder", 3))
    parts = []
    for W, b in start:
        linear = torch.nn.Linear(W.shape[1], len(W))
        linear.load_state_dict({"weight": torch.from_numpy(W), "bias": torch.from_numpy(b)})
        parts += [linear, torch.nn.Tanh()]
    plain = torch.nn.Sequential(*parts[:-1])
    adam = torch.optim.Adam(plain.parameters(), lr=settings["learning_rate"])
    centred, losses = torch.from_numpy(X - X.mean(0, dtype=np.float64)).float(), []
    rows = centred[rng.permutation(300)]
    for _ in range(4):
        summed = 0.0
        for batch in rows[rng.permutation(300)].split(settings["batch_size"]):
            loss = (plain(batch) - batch).square().mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
            summed += loss.item() * len(batch)
        losses.append(summed / 300)
    np.testing.assert_allclose(fitted.losses_[:, 0], losses, rtol=1e-5)


def test_rows_held_out_are_not_trained_on():
    """At a rate that moves nothing, the losses of the two parts, weighed by their rows, are that of
    all rows.
    """
    X = cloud(40) * np.r_[np.ones(36), np.full(4, 9.0)][:, None].astype(np.float32)
    fitted = Autoencoder(3, learning_rate=1e-12, epochs=1, validation=0.25).fit(X)
    train, held = fitted.losses_[0]
    assert abs(train - held) > 0.1 * train
    assert 30 * train + 10 * held == pytest.approx(left_over(X, fitted) / X.shape[1], rel=1e-4)


def test_the_seed_chooses_the_rows_held_out_and_their_order(monkeypatch):
    start = autoencoder.initial_layers([8, 3, 8], np.random.default_rng(0))
    monkeypatch.setattr(
        autoencoder, "initial_layers", lambda *_: [(W.copy(), b.copy()) for W, b in start]
    )
    first, again, other = (
        Autoencoder(3, epochs=2, batch_size=20, seed=s).fit(cloud()).losses_ for s in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, again)
    assert (np.abs(first - other) > 1e-4).all()


def test_equal_seeds_give_equal_weights_whatever_the_threads_outside():
    X = cloud()
    first = Autoencoder(3, epochs=5, seed=3).fit(X).transform(X)
    with threads(2):
        np.testing.assert_array_equal(Autoencoder(3, epochs=5, seed=3).fit(X).transform(X), first)
    assert np.abs(first - Autoencoder(3, epochs=5, seed=4).fit(X).transform(X)).max() > 1e-3


@pytest.mark.parametrize(
    "options, message",
    [
        (
            {"activation": "gelu"},
            "unknown activation 'gelu': choose one of tanh, relu, sigmoid, identity",
        ),
        ({"epochs": 0}, "epochs is 0"),
        ({"validation": 1.0}, "validation is 1.0: expected a share"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0"),
        ({"hidden_layers": 0}, "hidden_layers is 0: expected a list of whole numbers"),
        ({"seed": None}, "seed is None: expected a whole number"),
        ({"validation": "0.1"}, "validation is 0.1: expected a share"),
        ({"learning_rate": None}, "learning_rate is None: expected a number above 0"),
        ({"hidden_layers": (0,)}, "a size in hidden_layers is 0"),
        (
            {"activation": "identity", "learning_rate": 1e15, "batch_size": 50},
            "diverged in epoch 1: .*learning_rate",
        ),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(InputError, match=message):
        Autoencoder(2, **options).fit(cloud())


def test_a_fitted_one_has_no_prefix_and_needs_no_torch(monkeypatch):
    fitted = Autoencoder(3, epochs=2).fit(cloud())
    monkeypatch.setitem(sys.modules, "torch", None)  # To import it is an error from here on
    Y = fitted.transform(cloud())
    np.testing.assert_array_equal(fitted.prefix(Y, 3), Y)
    with pytest.raises(
        InputError,
        match=r"Autoencoder of 3 components holds none of 2: .* fit one with n_components=2",
    ):
        fitted.prefix(Y, 2)
