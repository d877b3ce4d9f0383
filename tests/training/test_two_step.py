"""Two-step training: which encoder is chosen, and that step 2 is what a naive loop does, many
poolers at a time.
"""

import copy
from dataclasses import replace
from time import perf_counter
from unittest.mock import Mock

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
from repro.models.packing import merge_equal
from repro.seeding import make_rng
from repro.training import two_step
from repro.training.loop import TrainingDiverged
from repro.training.nli import label_ids, nli_head
from repro.training.two_step import choose, dropout_views, select, train_nli_pooler, train_poolers
from repro.types import InputError, unit_rows

HIDDEN = 32
TEXTS = [f"text {i}" for i in range(96)]
CONFIG = StepTwoConfig(
    learning_rates=(1e-3, 1e-2, 0.1),
    batch_size=16,
    epochs=2,
    check_every=3,
    views=3,
)
ENCODERS = {64: 0.70, 16: 0.72, 4: 0.60}
# Encoder to scores with poolers
ROWS = {64: (0.69, 0.66, 0.30), 16: (0.69, 0.65, 0.40), 4: (0.50, 0.55, 0.45)}
rng = np.random.default_rng(0)
DEV, GOLD = rng.standard_normal((2, 50, HIDDEN)).astype(np.float32), rng.standard_normal(50)
GRID = {
    (i, j): score
    for i, scores in ROWS.items()
    for j, score in zip((64, 16, 4), scores, strict=True)
}


@pytest.fixture(scope="module")
def views(tiny, sentences):
    return dropout_views(SentenceEncoder.load(tiny, dim=8), sentences[:96], views=3, seed=0)


def dev_score(pooler):
    a, b = (unit_rows(pooler.project(h)) for h in DEV)
    return float(spearmanr((a * b).sum(1), GOLD).statistic)


def poolers(*dims, activation="tanh"):
    return [Pooler(HIDDEN, dim, activation=activation).initialise(0) for dim in dims]


def test_selection_rules():
    opts = {
        "encoder": [16, 16, 16],
        "pooler_max": [64, 64, 64],
        "pair": [64, 64, 4],
        "oracle": [64, 64, 4],
    }
    for select_by, expected in opts.items():  # With the widest pooler 0.69 twice: the larger dim
        assert [select(ENCODERS, GRID, d, select_by=select_by) for d in ENCODERS] == expected
    assert choose({8: 0.5, 128: 0.5, 32: 0.5, 16: 0.4}) == choose({128: 0.5, 8: 0.5}) == 128
    with pytest.raises(InputError, match="score of candidate 8 is nan"):
        choose({16: 0.5, 8: float("nan")})


def test_views_differ_by_seed_and_mask_and_scatter_around_what_is_said_without_dropout(
    tiny,
    sentences,
    bytes_of,
):
    encoder = SentenceEncoder.load(tiny, dim=8)
    before, some = bytes_of(encoder), sentences[:40]
    views = dropout_views(encoder, some, views=3, seed=0)
    assert (views.shape, views.dtype) == ((3, 40, HIDDEN), np.float32)
    assert all(np.abs(views[a] - views[b]).max(1).min() > 1e-3 for a, b in ((0, 1), (0, 2), (1, 2)))
    plain = encoder.encode(some, readout="encoder")
    assert F.cosine_similarity(torch.from_numpy(views.mean(0)), torch.from_numpy(plain)).min() > 0.8
    # Not by how many are drawn
    assert dropout_views(encoder, some, views=2, seed=0).tobytes() == views[:2].tobytes()
    assert dropout_views(encoder, some, views=2, seed=1).tobytes() != views[:2].tobytes()
    assert bytes_of(encoder) == before and not encoder.training
    encoder.backbone.set_dropout(0.0)
    np.testing.assert_allclose(
        dropout_views(encoder, some, views=2, seed=0, max_length=48),
        [plain] * 2,
        atol=1e-5,
    )
    long = [" ".join(["cook driver horse"] * 15)]
    for most in (8, 32):
        ids, _ = encoder.backbone.tokenize(long, most)
        cut = encoder.pooled(*encoder.padded(ids))[0].detach().numpy()
        kept = dropout_views(encoder, long, views=2, seed=0, max_length=most)
        assert len(ids[0]) == most
        np.testing.assert_allclose(kept, [cut] * 2, atol=1e-5)


def naive(views, pooler, rate, config, dev_score, same):
    """Line 8 of Algorithm 1 as one would write it: one pooler, one rate, torch's own Adam, clipping
    and loss.
    """
    mine = copy.deepcopy(pooler)
    optimiser = torch.optim.Adam(mine.parameters(), lr=rate)
    per_epoch = views.shape[1] // config.batch_size
    steps = round(config.epochs * per_epoch)

    best, score = copy.deepcopy(mine), dev_score(mine)
    for step in range(steps):
        epoch, position = divmod(step, per_epoch)
        order = epoch_order(views.shape[1], seed=config.seed, epoch=epoch)
        rows = order[position * config.batch_size : (position + 1) * config.batch_size]
        first, second = make_rng(config.seed, "views", step).choice(len(views), 2, replace=False)
        z1, z2 = (
            mine(torch.from_numpy(views[first, rows])),
            mine(torch.from_numpy(views[second, rows])),
        )
        logits = F.cosine_similarity(z1.unsqueeze(1), z2.unsqueeze(0), dim=-1) / config.temperature
        own = torch.from_numpy(same[rows])
        twin = (own.unsqueeze(1) == own.unsqueeze(0)) & ~torch.eye(len(rows), dtype=torch.bool)
        loss = F.cross_entropy(logits.masked_fill(twin, float("-inf")), torch.arange(len(rows)))
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(mine.parameters(), config.clip_norm)
        optimiser.param_groups[0]["lr"] = rate * (1 - step / steps)
        optimiser.step()
        if (step + 1) % config.check_every == 0 or step + 1 == steps:
            now = dev_score(mine)
            if now > score:
                best, score = copy.deepcopy(mine), now
    return best.state_dict(), score


@pytest.mark.parametrize(("activation", "distinct"), [("tanh", 96), ("identity", 96), ("tanh", 40)])
def test_equals_a_naive_adam_loop(views, activation, distinct):
    starts, config = poolers(12, 3, activation=activation), replace(CONFIG, temperature=0.1)
    same = np.arange(96) % distinct  # Equal texts are no negatives
    runs = train_poolers(views, [f"text {i}" for i in same], starts, dev_score, config)
    for start, run in zip(starts, runs, strict=True):
        expected = {
            rate: naive(views, start, rate, config, dev_score, same)
            for rate in config.learning_rates
        }
        assert run.dev_after == pytest.approx(
            max(score for _, score in expected.values()),
            abs=1e-6,
        )
        assert run.learning_rate == max(expected, key=lambda rate: expected[rate][1])
        for name, value in expected[run.learning_rate][0].items():
            torch.testing.assert_close(run.pooler.state_dict()[name], value, rtol=1e-4, atol=1e-5)
    assert all(run.dev_after >= run.dev_before for run in runs)
    assert any(run.step for run in runs)  # The comparison is about trained weights


@pytest.mark.parametrize("clip_norm", [0.0, 0.5, 10.0])
def test_every_rate_is_trained_by_itself_and_clipped_to_the_stated_norm(views, clip_norm):
    """Gradients of the smallest rate have norms of 2 to 120, of the largest 1e-4 to 70."""
    (start,), config = poolers(12), replace(CONFIG, temperature=0.1, clip_norm=clip_norm)
    seen = []

    def later_is_better(pooler):
        seen.append(copy.deepcopy(pooler.state_dict()))
        return len(seen)

    train_poolers(views, TEXTS, [start], later_is_better, config)
    rates, infinite = config.learning_rates, replace(config, clip_norm=clip_norm or float("inf"))
    for rate, found in zip(rates, seen[-len(rates) :], strict=True):
        expected, _ = naive(views, start, rate, infinite, later_is_better, np.arange(96))
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, rtol=1e-3, atol=1e-4)


def test_patience_ends_the_training_itself(views):
    """What comes later in the epoch is broken: two steps without gain, and it is never read."""
    config = replace(CONFIG, learning_rates=(1e-9, 1e-8), check_every=1, patience=2)
    read = views.copy()
    read[:, epoch_order(96, seed=0, epoch=0)[2 * config.batch_size :]] = np.nan
    falling = Mock(side_effect=range(0, -99, -1))
    (run,) = train_poolers(read, TEXTS, poolers(4), falling, config)
    assert run.step == 0
    with pytest.raises(TrainingDiverged, match="dim 4: the loss is not finite at step 2"):
        train_poolers(read, TEXTS, poolers(4), falling, replace(config, patience=3))


def scored(*scores):
    """A dev score that says what is told, one after the other, and then falls."""
    return Mock(side_effect=[*scores, *range(-1, -99, -1)])


def test_patience_counts_the_checks_since_the_last_gain_and_waits_for_every_rate(views):
    one = replace(CONFIG, learning_rates=(1e-3,), check_every=1, patience=2)
    now_and_then = scored(0, 0, 1, 0.5, 2, 1.5, 3)
    (run,) = train_poolers(views, TEXTS, poolers(4), now_and_then, one)
    assert (run.step, run.dev_after, now_and_then.call_count) == (5, 3, 2 + 5 + 2)
    # Of two rates the first gains nothing, and the second at every check
    two = replace(one, learning_rates=(1e-3, 1e-2))
    by_turns = [score for step in range(1, 13) for score in ([-step, step] if step < 3 else [step])]
    (run,) = train_poolers(views, TEXTS, poolers(4), scored(0, 0, 0, *by_turns), two)
    assert (run.learning_rate, run.step) == (1e-2, 12)


def test_the_last_step_is_checked_and_the_seed_draws_views_and_rows(views):
    last = scored(*range(99))
    (run,) = train_poolers(views, TEXTS, poolers(4), last, replace(CONFIG, check_every=5))
    assert run.step == 12 and last.call_count == 1 + 3 * (1 + 3)
    pairs_drawn, rows_drawn = [], []
    for seed in (0, 0, 1):
        config = replace(CONFIG, seed=seed)
        plan = [two_step.two_of(3, 96, step, config) for step in range(12)]
        pairs_drawn.append([(first, second) for first, second, _ in plan])
        rows_drawn.append(np.concatenate([rows for _, _, rows in plan]).tolist())
    for drawn in (pairs_drawn, rows_drawn):
        assert drawn[0] == drawn[1] != drawn[2]
    assert {tuple(sorted(pair)) for pair in pairs_drawn[0]} == {(0, 1), (0, 2), (1, 2)}
    for epoch in (slice(0, 96), slice(96, 192)):
        assert sorted(rows_drawn[0][epoch]) == list(range(96))


def test_patience_stops_the_checks_and_a_random_start_forgets_step_one(views):
    falling = Mock(side_effect=range(0, -99, -1))
    config = replace(CONFIG, learning_rates=(0.1,), check_every=1, patience=2)
    (run,) = train_poolers(views, TEXTS, poolers(4), falling, config)
    # Before, step 0, then two without gain
    assert falling.call_count == 1 + 1 + 2 and run.step == 0
    (trained,) = poolers(4)
    torch.nn.init.ones_(trained.linear.weight)
    (run,) = train_poolers(
        views,
        TEXTS,
        [trained],
        dev_score,
        replace(config, learning_rates=(0.0,), start="random"),
    )
    assert run.pooler.linear.weight.std().item() == pytest.approx(0.02, rel=0.3)
    assert run.dev_before == dev_score(trained)


NLI = StepTwoConfig(learning_rates=(1e-3, 1e-2), batch_size=16, epochs=2, check_every=3)


@pytest.fixture(scope="module")
def pairs():
    return data.load("nli", split="train", source="microworld", limit=96)


@pytest.fixture(scope="module")
def frozen(tiny, pairs):
    """An encoder, the distinct texts of the pairs, and their views."""
    encoder, texts = (
        SentenceEncoder.load(tiny, dim=8),
        merge_equal([*pairs.texts1, *pairs.texts2])[0],
    )
    return encoder, texts, dropout_views(encoder, texts, views=2, seed=0)


def step_two(frozen, pairs, dev_score, config=NLI, views=None, **options):
    given = frozen[2] if views is None else np.stack(views)
    start = frozen[0].pooler, nli_head(8, 0)
    return train_nli_pooler(given, pairs, *start, dev_score, config, **options)


def test_rate_and_difference_decide_the_classifiers_step_two(frozen, pairs, bytes_of):
    later_is_better = lambda pooler: perf_counter()  # noqa: E731
    short = replace(NLI, epochs=0.5)
    found = {
        bytes_of(step_two(frozen, pairs, later_is_better, config, difference=difference).pooler)
        for config in (replace(short, learning_rates=(rate,)) for rate in (1e-3, 1e-2))
        for difference in ("abs", "signed")
    }
    assert len(found) == 4
    heads = {bytes_of(nli_head(8, seed)) for seed in (0, 0, 1)} | {bytes_of(nli_head(4, 0))}
    assert len(heads) == 3


def test_the_classifiers_step_two_never_falls_leaves_its_start_alone_and_learns(
    frozen,
    pairs,
    bytes_of,
):
    encoder, texts, views = frozen
    before, worse = bytes_of(encoder), iter(range(0, -1000, -1))
    kept = step_two(frozen, pairs, lambda pooler: float(next(worse)))
    assert bytes_of(kept.pooler) == bytes_of(encoder.pooler), (
        "step 0 counts: nothing better was found"
    )
    # A dev score that knows the training loss of the head it starts from: the better pooler is the
    # one that fits
    head, rows = (
        nli_head(8, 0),
        [[texts.index(text) for text in side] for side in (pairs.texts1, pairs.texts2)],
    )

    def minus_loss(pooler):
        u, v = (pooler(torch.from_numpy(views[0, side])) for side in rows)
        return -softmax_nli(u, v, label_ids(pairs), head.weight, head.bias).item()

    run = step_two(frozen, pairs, minus_loss)
    assert run.dev_after > run.dev_before and bytes_of(encoder) == before


def test_the_two_sides_of_a_pair_see_different_dropout_and_a_random_start_is_another(
    frozen,
    pairs,
    bytes_of,
):
    first, second = frozen[2]
    one_step = replace(NLI, learning_rates=(1e-2,), epochs=1 / 6)
    later_is_better = lambda pooler: perf_counter()  # noqa: E731
    found = {
        bytes_of(step_two(frozen, pairs, later_is_better, config, views=views).pooler)
        for views in ((first, second), (first, first), (second, second))
        for config in (one_step, replace(one_step, start="random"))
    }
    assert len(found) == 6
    with pytest.raises(InputError, match="lengths differ"):
        step_two(frozen, pairs, later_is_better, views=frozen[2][:, 1:])
