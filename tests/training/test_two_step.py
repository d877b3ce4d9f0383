from dataclasses import replace
from itertools import count

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.stats import spearmanr

from repro import data
from repro.config import StepTwoConfig
from repro.data.sampling import epoch_order
from repro.losses import softmax_nli
from repro.models import Pooler, SentenceEncoder
from repro.models.encoder import merge_equal
from repro.seeding import make_rng
from repro.training.objectives import label_ids, nli_head
from repro.training.two_step import choose, dropout_views, select, splice, train_nli_pooler, train_poolers
from repro.types import InputError

HIDDEN = 32


@pytest.fixture
def encoder(tiny):
    return SentenceEncoder.load(tiny, dim=8)


@pytest.fixture
def views(encoder, sentences):
    return dropout_views(encoder, sentences[:96], views=3, seed=0)


@pytest.fixture
def dev_score():
    rng = np.random.default_rng(0)
    h = rng.standard_normal((2, 50, HIDDEN)).astype(np.float32)
    gold = rng.standard_normal(50)

    def score(pooler):
        a, b = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in (pooler.project(h[0]), pooler.project(h[1])))
        return float(spearmanr((a * b).sum(1), gold).statistic)

    return score


CONFIG = StepTwoConfig(learning_rates=(1e-3, 1e-2, 0.1), batch_size=16, epochs=2, check_every=3, views=3)


def later_is_better():
    """A dev score that keeps the last weights."""
    calls = count()
    return lambda pooler: float(next(calls))


def poolers(*dims, activation="tanh"):
    return [Pooler(HIDDEN, dim, activation=activation).initialise(0) for dim in dims]


def weights(pooler):
    return {name: value.detach().clone() for name, value in pooler.state_dict().items()}


# selection

ENCODERS = {64: 0.70, 16: 0.72, 4: 0.60}
GRID = {
    (64, 64): 0.69,
    (64, 16): 0.66,
    (64, 4): 0.30,
    (16, 64): 0.69,
    (16, 16): 0.65,
    (16, 4): 0.40,
    (4, 64): 0.50,
    (4, 16): 0.55,
    (4, 4): 0.45,
}


@pytest.mark.parametrize(
    ("select_by", "opts"),
    [
        ("encoder", {64: 16, 16: 16, 4: 16}),
        ("pooler_max", {64: 64, 16: 64, 4: 64}),  # 0.69 twice: the larger dim
        ("pair", {64: 64, 16: 64, 4: 4}),
        ("oracle", {64: 64, 16: 64, 4: 4}),
    ],
)
def test_selection_rules(select_by, opts):
    assert {d: select(ENCODERS, GRID, d, select_by=select_by) for d in ENCODERS} == opts


def test_choosing_needs_finite_candidates_and_the_larger_of_equal_ones_wins():
    assert choose({8: 0.5, 128: 0.5, 32: 0.5, 16: 0.4}) == choose({128: 0.5, 8: 0.5}) == 128
    with pytest.raises(InputError, match="score of candidate 8 is nan"):
        choose({16: 0.5, 8: float("nan")})
    with pytest.raises(InputError, match="unknown select_by 'best': choose one of encoder, pooler_max, pair, oracle"):
        select(ENCODERS, GRID, 4, select_by="best")


def test_splicing(encoder, sentences):
    (narrow,) = poolers(3)
    spliced = splice(encoder, narrow)
    h = encoder.encode(sentences[:9], readout="encoder")
    np.testing.assert_allclose(spliced.encode(sentences[:9]), narrow.project(h), atol=1e-6)
    assert encoder.pooler.dim == 8
    with pytest.raises(InputError, match="the pooler reads 16 dims, the encoder gives 32"):
        splice(encoder, Pooler(16, 3))


# dropout views


def test_views_differ_and_leave_the_encoder_as_it_was(encoder, sentences, bytes_of):
    before = bytes_of(encoder)
    views = dropout_views(encoder, sentences[:40], views=3, seed=0, batch_size=16)
    assert (views.shape, views.dtype) == ((3, 40, HIDDEN), np.float32)
    assert all(np.abs(views[a] - views[b]).max(1).min() > 1e-3 for a, b in ((0, 1), (0, 2), (1, 2)))
    assert bytes_of(encoder) == before
    assert not encoder.training
    # they scatter around what the encoder says without dropout
    cosine = F.cosine_similarity(
        torch.from_numpy(views.mean(0)), torch.from_numpy(encoder.encode(sentences[:40], readout="encoder"))
    )
    assert cosine.min() > 0.8


def test_views_depend_on_the_seed_and_not_on_how_many_are_drawn(encoder, sentences):
    two = dropout_views(encoder, sentences[:40], views=2, seed=0)
    three = dropout_views(encoder, sentences[:40], views=3, seed=0)
    assert two.tobytes() == three[:2].tobytes()
    assert dropout_views(encoder, sentences[:40], views=2, seed=1).tobytes() != two.tobytes()


def test_without_dropout_all_views_are_what_encode_gives(encoder, sentences):
    encoder.backbone.set_dropout(0.0)
    views = dropout_views(encoder, sentences[:40], views=2, seed=0, max_length=48)
    np.testing.assert_allclose(views[0], encoder.encode(sentences[:40], readout="encoder"), atol=1e-5)
    assert views[0].tobytes() == views[1].tobytes()


# training


def naive(views, pooler, rate, config, dev_score, mask_of=None):
    """Line 8 of Algorithm 1 as one would write it: one pooler, one rate, torch's own Adam, clipping and loss."""
    mine = Pooler(pooler.hidden_dim, pooler.dim, activation=pooler.activation)
    mine.load_state_dict(pooler.state_dict())
    optimiser = torch.optim.Adam(mine.parameters(), lr=rate)
    per_epoch = views.shape[1] // config.batch_size
    steps = round(config.epochs * per_epoch)
    best, score = weights(mine), dev_score(mine)
    for step in range(steps):
        epoch, position = divmod(step, per_epoch)
        order = epoch_order(views.shape[1], seed=config.seed, epoch=epoch)
        rows = order[position * config.batch_size : (position + 1) * config.batch_size]
        first, second = make_rng(config.seed, "views", step).choice(len(views), 2, replace=False)
        z1, z2 = mine(torch.from_numpy(views[first, rows])), mine(torch.from_numpy(views[second, rows]))
        logits = F.cosine_similarity(z1.unsqueeze(1), z2.unsqueeze(0), dim=-1) / config.temperature
        if mask_of is not None:
            logits = logits.masked_fill(mask_of(rows), float("-inf"))
        loss = F.cross_entropy(logits, torch.arange(len(rows)))
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(mine.parameters(), config.clip_norm)
        optimiser.param_groups[0]["lr"] = rate * (1 - step / steps)
        optimiser.step()
        if (step + 1) % config.check_every == 0 or step + 1 == steps:
            now = dev_score(mine)
            if now > score:
                best, score = weights(mine), now
    return best, score


@pytest.mark.parametrize("activation", ["tanh", "identity"])
def test_equals_a_naive_adam_loop(views, dev_score, activation):
    starts, config = poolers(12, 3, activation=activation), replace(CONFIG, temperature=0.1)
    runs = train_poolers(views, starts, dev_score, config)
    moved = 0
    for start, run in zip(starts, runs, strict=True):
        expected = {rate: naive(views, start, rate, config, dev_score) for rate in config.learning_rates}
        assert run.dev_by_rate == pytest.approx({rate: score for rate, (_, score) in expected.items()}, abs=1e-6)
        assert run.learning_rate == max(expected, key=lambda rate: expected[rate][1])
        for name, value in expected[run.learning_rate][0].items():
            torch.testing.assert_close(run.pooler.state_dict()[name], value, rtol=1e-4, atol=1e-5)
        moved += run.step > 0
    assert moved  # the comparison is about trained weights


def test_equal_texts_are_no_negatives(views):
    texts = [f"text {i % 40}" for i in range(96)]
    keys = np.array([int(text.split()[1]) for text in texts])

    def mask_of(rows):
        own = torch.from_numpy(keys[rows])
        return (own.unsqueeze(1) == own.unsqueeze(0)) & ~torch.eye(len(rows), dtype=torch.bool)

    config = StepTwoConfig(learning_rates=(0.1,), batch_size=16, check_every=1, views=3)
    (start,) = poolers(6)
    (run,) = train_poolers(views, [start], later_is_better(), config, texts=texts)
    best, _ = naive(views, start, 0.1, config, later_is_better(), mask_of)
    torch.testing.assert_close(run.pooler.linear.weight, best["linear.weight"], rtol=1e-4, atol=1e-5)
    (unmasked,) = train_poolers(views, [start], later_is_better(), config)
    assert (unmasked.pooler.linear.weight - run.pooler.linear.weight).abs().max() > 1e-4


def test_training_together_equals_training_apart(views, dev_score, bytes_of):
    starts = poolers(20, 7, 2)
    together = train_poolers(views, starts, dev_score, CONFIG)
    for start, run in zip(starts, together, strict=True):
        (alone,) = train_poolers(views, [start], dev_score, CONFIG)
        assert bytes_of(alone.pooler) == bytes_of(run.pooler)
        assert alone.dev_by_rate == run.dev_by_rate
        for rate in CONFIG.learning_rates:
            one_rate = StepTwoConfig(**{**vars(CONFIG), "learning_rates": (rate,)})
            (single,) = train_poolers(views, [start], dev_score, one_rate)
            assert single.dev_after == pytest.approx(run.dev_by_rate[rate], abs=1e-6)
            if rate == run.learning_rate:
                torch.testing.assert_close(single.pooler.linear.weight, run.pooler.linear.weight, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("check_every", [0, 1, 5])
def test_dev_never_falls(views, dev_score, check_every):
    config = StepTwoConfig(learning_rates=(1e-5, 10.0), batch_size=16, check_every=check_every, views=3)
    for run in train_poolers(views, poolers(16, 4, 1), dev_score, config):
        assert run.dev_after >= run.dev_before
        assert run.dev_after == pytest.approx(dev_score(run.pooler))


def test_patience_stops_the_checks(views, dev_score):
    calls = []

    def falling(pooler):
        calls.append(pooler.dim)
        return -float(len(calls))

    config = StepTwoConfig(learning_rates=(0.1,), batch_size=16, check_every=1, views=3, patience=2, epochs=2)
    (run,) = train_poolers(views, poolers(4), falling, config)
    assert len(calls) == 1 + 1 + 2  # before, step 0, then two without gain
    assert run.step == 0


def test_starting_at_random_forgets_step_one(views, dev_score):
    trained = poolers(4)[0]
    with torch.no_grad():
        trained.linear.weight.fill_(1.0)
    config = StepTwoConfig(learning_rates=(0.0,), batch_size=16, views=3, start="random")
    (run,) = train_poolers(views, [trained], dev_score, config)
    assert run.pooler.linear.weight.std().item() == pytest.approx(0.02, rel=0.3)
    assert run.dev_before == dev_score(trained)


def test_what_cannot_be_trained(views, dev_score):
    with pytest.raises(InputError, match=r"96 sentences do not fill one batch of 128 in 1 epochs"):
        train_poolers(views, poolers(4), dev_score, StepTwoConfig(batch_size=128))
    with pytest.raises(InputError, match="texts has 2, views has 96"):
        train_poolers(views, poolers(4), dev_score, CONFIG, texts=["a", "b"])
    with pytest.raises(InputError, match="views is 1: step 2 contrasts two dropout views"):
        StepTwoConfig(views=1)


# under the softmax objective


NLI = StepTwoConfig(learning_rates=(1e-3, 1e-2), batch_size=16, epochs=2, check_every=3)


@pytest.fixture(scope="module")
def pairs():
    return data.load("nli", split="train", source="microworld", limit=96)


@pytest.fixture(scope="module")
def frozen(tiny, pairs):
    """An encoder, the distinct texts of the pairs, and their views."""
    encoder, texts = SentenceEncoder.load(tiny, dim=8), merge_equal([*pairs.texts1, *pairs.texts2])[0]
    return encoder, texts, dropout_views(encoder, texts, views=2, seed=0)


def step_two(frozen, pairs, dev_score, config=NLI, head=None, views=None):
    encoder, texts, own = frozen
    given = own if views is None else np.stack(views)
    return train_nli_pooler(given, texts, pairs, encoder.pooler, head or nli_head(8, 0), dev_score, config)


def test_the_classifiers_step_two_leaves_encoder_and_start_alone_and_never_falls(frozen, pairs, bytes_of):
    before = bytes_of(frozen[0])
    run = step_two(frozen, pairs, lambda pooler: pooler.linear.weight[0, 0].item())
    assert bytes_of(frozen[0]) == before
    assert run.dev_after >= run.dev_before
    worse = iter(range(0, -1000, -1))
    kept = step_two(frozen, pairs, lambda pooler: float(next(worse)))
    assert bytes_of(kept.pooler) == bytes_of(frozen[0].pooler), "step 0 counts: nothing better was found"


def test_the_classifiers_step_two_learns_and_the_dev_score_picks_the_rate(frozen, pairs):
    # a dev score that knows the training loss of the head it starts from: the better pooler is the one that fits
    head, (_, texts, views) = nli_head(8, 0), frozen
    rows = [[texts.index(text) for text in side] for side in (pairs.texts1, pairs.texts2)]

    def minus_loss(pooler):
        u, v = (pooler(torch.from_numpy(views[0, side])) for side in rows)
        return -softmax_nli(u, v, label_ids(pairs), head.weight, head.bias).item()

    run = step_two(frozen, pairs, minus_loss, head=head)
    assert run.dev_after > run.dev_before
    assert run.dev_by_rate[run.learning_rate] == max(run.dev_by_rate.values()) == run.dev_after


def test_the_two_sides_of_a_pair_see_different_dropout_and_a_random_start_is_another(frozen, pairs, bytes_of):
    first, second = frozen[2]
    one_step = replace(NLI, learning_rates=(1e-2,), epochs=1 / 6)
    found = {
        bytes_of(step_two(frozen, pairs, later_is_better(), config, views=views).pooler)
        for views in ((first, second), (first, first), (second, second))
        for config in (one_step, replace(one_step, start="random"))
    }
    assert len(found) == 6


def test_every_text_needs_a_view(frozen, pairs):
    encoder, texts, views = frozen
    with pytest.raises(InputError, match="has no cached view"):
        train_nli_pooler(views[:, 1:], texts[1:], pairs, encoder.pooler, nli_head(8, 0), lambda p: 0.0, NLI)
