"""SentEval's classifier beside one written as its authors describe it: a fit after another, in
torch.
"""

import copy

import numpy as np
import pytest
import torch
from sklearn.datasets import make_classification
from torch import nn

from repro.evaluation import senteval
from repro.evaluation.classify import probe
from repro.evaluation.labels import FOLDS, stratified_folds
from repro.seeding import make_rng


def made(classes=2, n=200, seed=0, sep=1.0, scale=1.0, **options):
    settings = {
        "n_informative": 6,
        "n_classes": classes,
        "class_sep": sep,
        "flip_y": 0.1,
        **options,
    }
    X, y = make_classification(n, 12, random_state=seed, **settings)
    return (scale * X).astype(np.float32), y


SMALL = 0.1
"""Features so small that the penalty's share of the gradient decides."""


def literal_fit(X, y, dev, penalty, rows, starts, seed):
    """One head by torch's own layer, loss and optimiser; the rows come in the shared order, cut to
    its own.
    """
    head = nn.Linear(X.shape[1], y.max() + 1)
    start = torch.from_numpy(senteval.initial_head(seed, y.max() + 1, X.shape[1]))
    with torch.no_grad():
        head.weight.copy_(start[:, :-1])
        head.bias.copy_(start[:, -1])
    optimiser = torch.optim.Adam(head.parameters(), weight_decay=penalty)
    rng = make_rng(seed, "senteval", "order")
    features, target = torch.from_numpy(X), torch.from_numpy(y)
    best, misses = -1.0, 0
    for _ in range(0, 201, 4):  # Passes
        for _ in range(4):
            for chunk in np.split(rng.permutation(rows), starts[1:]):
                if len(own := chunk[~dev[chunk]]):
                    optimiser.zero_grad()
                    nn.functional.cross_entropy(head(features[own]), target[own]).backward()
                    optimiser.step()
        accuracy = float((literal_answers(head, X[dev]) == y[dev]).mean())
        if accuracy > best:
            best, kept = accuracy, copy.deepcopy(head)
        elif misses >= 5:
            break
        else:
            misses += 1
    return kept, best


def literal_answers(head, X):
    return head(torch.from_numpy(X)).argmax(1).numpy()


def test_ten_folds_equal_the_loops(classes=3, seed=0):
    X, y = made(classes, 300, seed, scale=SMALL)
    (X, X_test), (y, y_test) = np.split(X, [200]), np.split(y, [200])
    found = probe(X, y, X_test, y_test, protocol="senteval", seed=seed)
    assert found.chosen[0] > senteval.PENALTIES[1]
    fold, rows = stratified_folds(y, FOLDS, seed), np.arange(200)
    starts, scores = senteval.chunk_starts(200, np.full(FOLDS, 180)), []
    for penalty in senteval.PENALTIES:
        fits = [literal_fit(X, y, fold == k, penalty, rows, starts, seed) for k in range(FOLDS)]
        scores.append(round(100 * np.mean([best for _, best in fits]), 2))
    assert found.chosen == (senteval.PENALTIES[int(np.argmax(scores))],)
    dev = np.isin(rows, senteval.dev_rows(rows, seed))
    head, _ = literal_fit(X, y, dev, found.chosen[0], rows[~dev], np.arange(0, 190, 64), seed)
    assert (found.correct == (literal_answers(head, X_test) == y_test)).all()


def test_the_penalty_shrinks_intercepts_too():
    X, y = np.zeros((640, 3), np.float32), np.arange(640) % 10 > 0
    start, penalties = np.zeros((2, 4, 4), np.float32), np.array([0, 0.01, 0.1, 1.0])
    features = np.hstack([X, np.ones((640, 1), np.float32)])
    training = senteval._Training(features, y.astype(int), None, start, penalties)
    for _ in range(4000):
        training.step(np.arange(640))
    gap = training.weights[1, 3] - training.weights[0, 3]
    assert gap[0] == pytest.approx(np.log(9), abs=1e-3)  # The log odds where nothing is penalised
    share = 1 / (1 + np.exp(-gap))
    np.testing.assert_allclose(2 * (0.9 - share), training.penalties * gap, atol=1e-4)


# Training


@pytest.mark.parametrize(
    ("accuracies", "checks", "kept"),
    [
        ([0.5] * 99, 7, 0),  # Equal is not better
        # Misses are not forgotten
        ([0.5, 0.4, 0.6, 0.6, 0.7, 0.1, 0.8, 0.8, 0.9, 0.8, 0.95, 0.95, 0.99, 1.0], 12, 10),
        ([0.0] * 99, 7, 0),  # Nothing right is better than no head at all
        (list(np.linspace(0, 1, 99)), 51, 50),
        ([*np.linspace(0, 0.9, 46), *[0.5] * 9], 51, 45),  # The fifth miss is the 51st check
    ],
)
def test_the_sixth_check_ever_that_is_no_better_ends_training(
    monkeypatch,
    accuracies,
    checks,
    kept,
):
    (X, y), seen = made(n=40), []

    def dev_accuracy(features, target, weights, fold, dev_of):
        seen.append(weights.copy())
        return np.array([accuracies[len(seen) - 1]])

    monkeypatch.setattr(senteval, "dev_accuracy", dev_accuracy)
    heads, _ = senteval.fit_with_dev(X, y, X, y, senteval.PENALTIES[:1], 0)
    assert heads.checks.tolist() == [checks] == [len(seen)]
    assert (heads.weights == seen[kept]).all()
    assert heads.accuracy[0] == max(accuracies[:checks])


def test_heads_trained_together_are_those_trained_alone():
    X, y = made(3, 230)
    folds = stratified_folds(y, FOLDS, 0)
    dev = folds == np.arange(4)[:, None]
    penalties = np.tile(senteval.PENALTIES, (4, 1))
    classes = np.unique(y)
    together = senteval.fit_heads(X, classes, y, ~dev, dev, penalties, 0)
    assert len(set(together.checks)) > 2  # They stop at different times
    for k, g in [(0, 3), (3, 1)]:
        # Beside one other fold, for the same chunks
        pair = [k, (k + 1) % 4]
        fewer = senteval.fit_heads(X, classes, y, ~dev[pair], dev[pair], penalties[pair][:, [g]], 0)
        assert fewer.checks[0] == together.checks[4 * k + g]
        np.testing.assert_allclose(
            fewer.weights[..., 0],
            together.weights[..., 4 * k + g],
            atol=1e-5,
        )


def test_accuracies_are_compared_to_a_ten_thousandth_and_the_weaker_penalty_wins_a_tie(monkeypatch):
    found = np.array([[0.83331, 0.83334, 0.83329, 0.8]] * FOLDS)
    heads = senteval.LinearHeads(np.zeros((2, 13, 1)), np.arange(2), found.ravel(), np.zeros(1))
    (X, y), fit = made(n=60), senteval.fit_heads
    trained = iter([heads])
    monkeypatch.setattr(senteval, "fit_heads", lambda *given: next(trained, None) or fit(*given))
    assert probe(X, y, X, y, protocol="senteval").chosen == (senteval.PENALTIES[0],)


def test_the_seed_draws_the_start_the_order_and_the_rows_held_out(monkeypatch):
    (X, y), everyone = made(n=200), np.ones((1, 200), bool)

    def weights(seed):
        return senteval.fit_members(X, y, everyone, senteval.PENALTIES[:1], seed).weights

    assert (weights(3) == weights(3)).all()
    assert (senteval.initial_head(3, 2, 12) != senteval.initial_head(4, 2, 12)).all()
    assert set(senteval.dev_rows(np.arange(200), 3)) != set(senteval.dev_rows(np.arange(200), 4))
    start, held = senteval.initial_head(0, 2, 12), senteval.dev_rows(np.arange(200), 0)
    monkeypatch.setattr(senteval, "initial_head", lambda *given: start)
    monkeypatch.setattr(senteval, "dev_rows", lambda rows, seed: held)
    assert (weights(3) != weights(4)).any(), "all else alike, the order differs"


@pytest.mark.parametrize("classes", [2, 3])
def test_a_step_is_one_of_torchs_adam(classes):
    (X, y), start = made(classes, n=64), senteval.initial_head(0, classes, 12)
    features = np.hstack([X, np.ones((64, 1), np.float32)])
    ours = senteval._Training(features, y, None, start[..., None].copy(), senteval.PENALTIES[3:])
    weights = torch.tensor(start, requires_grad=True)
    adam = torch.optim.Adam([weights], lr=1e-3, weight_decay=0.01)
    for step in range(12):
        rows = np.arange(5 * step, 5 * step + 5)
        ours.step(rows)
        adam.zero_grad()
        scores = torch.from_numpy(features[rows]) @ weights.T
        nn.functional.cross_entropy(scores, torch.from_numpy(y[rows])).backward()
        adam.step()
    moved = weights.detach().numpy() - start
    np.testing.assert_allclose(ours.weights[..., 0] - start, moved, atol=1e-3 * np.abs(moved).max())


def test_a_head_that_meets_none_of_its_rows_takes_no_step():
    (X, y), start = made(n=100), np.zeros((2, 13, 2), np.float32)
    features = np.hstack([X, np.ones((100, 1), np.float32)])
    members = np.stack([np.arange(100) < 50, np.arange(100) >= 50], axis=1)
    together = senteval._Training(features, y, members, start.copy(), senteval.PENALTIES[[3, 3]])
    alone = senteval._Training(features, y, None, start[..., :1].copy(), senteval.PENALTIES[[3]])
    for first in (60, 0, 70, 10, 80):  # The first head sees the second and the fourth of these
        together.step(np.arange(first, first + 10))
        if first < 50:
            alone.step(np.arange(first, first + 10))
    np.testing.assert_allclose(together.weights[..., 0], alone.weights[..., 0], atol=1e-6)


def test_chunks_are_batches_of_64_and_five_percent_are_held_out():
    assert senteval.chunk_starts(150, np.array([150, 150])).tolist() == [0, 64, 128]
    starts = senteval.chunk_starts(3771, np.full(100, 3054))
    sizes = np.diff([*starts, 3771])
    assert len(sizes) == 48 == np.ceil(3054 / 64)
    np.testing.assert_allclose(sizes * 3054 / 3771, [*[64] * 47, 3054 % 64], atol=1)
    assert senteval.chunk_starts(100, np.array([65, 64])).max() < 100  # A last chunk is never empty
    assert len(set(senteval.dev_rows(np.arange(199), 0))) == 9
    assert len(senteval.dev_rows(np.arange(18), 0)) == 1


def test_a_dev_class_that_training_has_not_is_always_wrong():
    X, y = made(n=120)
    _, accuracy = senteval.fit_with_dev(X, y, X, np.full(120, 7), senteval.PENALTIES, 0)
    assert (accuracy == 0).all()
