"""Training on entailment pairs: what moves, what stays, and step 2 on a frozen encoder."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from repro import data
from repro.config import StepTwoConfig, TrainConfig
from repro.losses import softmax_nli
from repro.models import SentenceEncoder
from repro.training.end_to_end import train_encoder
from repro.training.nli import label_ids, nli_head, softmax_over_pairs
from repro.training.two_step import dropout_views
from repro.training.two_step_nli import distinct_texts, train_nli_pooler
from repro.types import InputError


@pytest.fixture(scope="module")
def pairs():
    return data.load("nli", split="train", source="microworld", limit=96)


@pytest.fixture
def config(tiny):
    return TrainConfig(
        objective="nli",
        corpus="nli",
        backbone=tiny,
        dim=8,
        batch_size=16,
        learning_rate=1e-3,
        check_every=2,
        epochs=4,
        sentences=96,
        save_every=0,
    )


def spread(encoder, readout):
    return float(encoder.encode(["a cook", "the driver slept"], readout=readout).std())


def bytes_of(module):
    return b"".join(value.numpy().tobytes() for value in module.state_dict().values())


def train(config, pairs, dev_score, **options):
    return train_encoder(config, softmax_over_pairs, pairs, dev_score, **{"progress": False, **options})


def test_encoder_pooler_and_head_all_learn(config, pairs):
    calls = iter(range(1000))
    trained = train_encoder(
        config, softmax_over_pairs, pairs, lambda encoder, readout: float(next(calls)), progress=False
    )
    fresh = SentenceEncoder.load(config.backbone, dim=8)
    assert not torch.equal(trained.encoder.pooler.linear.weight, fresh.pooler.linear.weight)
    assert bytes_of(trained.encoder.backbone) != bytes_of(fresh.backbone)
    assert bytes_of(trained.head) != bytes_of(nli_head(8, config.seed))
    losses = trained.history.losses
    assert len(losses) == 24
    assert losses[0] == pytest.approx(np.log(3), abs=0.1)
    assert np.mean(losses[-6:]) < np.mean(losses[:6])


def test_the_same_configuration_gives_the_same_bytes(config, pairs):
    first, second = (train(config, pairs, spread) for _ in range(2))
    assert bytes_of(first.encoder) == bytes_of(second.encoder)
    assert bytes_of(first.head) == bytes_of(second.head)
    other = train(replace(config, difference="signed"), pairs, spread)
    assert other.history.losses != first.history.losses


def test_a_killed_run_resumes_to_the_same_bytes(config, pairs, tmp_path, killed):
    whole = train(config, pairs, spread)
    options = {"state_path": tmp_path / "state.safetensors", "save_every": 3, "progress": False}
    with pytest.raises(KeyboardInterrupt):
        train(config, pairs, killed(spread, at=6), **options)
    resumed = train(config, pairs, spread, **options)
    assert resumed.history.resumed_at > 0
    assert bytes_of(resumed.encoder) == bytes_of(whole.encoder)
    assert bytes_of(resumed.head) == bytes_of(whole.head)


def test_labels_other_than_the_three_and_too_few_pairs(config, pairs):
    assert set(label_ids(pairs).tolist()) == {0, 1, 2}
    odd = replace(pairs, labels=np.array(["maybe", *pairs.labels[1:]]))
    with pytest.raises(InputError, match="has the label 'maybe': expected contradiction, entailment, neutral"):
        train(config, odd, spread)
    few = data.load("nli", split="train", source="microworld", limit=15)
    with pytest.raises(InputError, match=r"15 pairs do not fill one batch of 16"):
        train(config, few, spread)


STEP_TWO = StepTwoConfig(learning_rates=(1e-3, 1e-2), batch_size=16, epochs=2, check_every=3)


@pytest.fixture(scope="module")
def frozen(tiny, pairs):
    encoder = SentenceEncoder.load(tiny, dim=8)
    return encoder, dropout_views(encoder, distinct_texts(pairs), views=2, seed=0)


def loss_of(pooler, head, views, pairs):
    row = {text: i for i, text in enumerate(distinct_texts(pairs))}
    u, v = (pooler(torch.from_numpy(views[0, [row[t] for t in side]])) for side in (pairs.texts1, pairs.texts2))
    return softmax_nli(u, v, label_ids(pairs), head.weight, head.bias).item()


def step_two(frozen, pairs, dev_score, config=STEP_TWO, head=None):
    encoder, views = frozen
    return train_nli_pooler(
        views, distinct_texts(pairs), pairs, encoder.pooler, head or nli_head(8, 0), dev_score, config
    )


def test_step_two_leaves_encoder_and_start_alone_and_never_falls(frozen, pairs):
    encoder = frozen[0]
    before = bytes_of(encoder)
    run = step_two(frozen, pairs, lambda pooler: pooler.linear.weight[0, 0].item())
    assert bytes_of(encoder) == before
    assert run.dev_after >= run.dev_before
    worse = iter(range(0, -1000, -1))
    kept = step_two(frozen, pairs, lambda pooler: float(next(worse)))
    assert bytes_of(kept.pooler) == bytes_of(encoder.pooler), "step 0 counts: nothing better was found"


def test_step_two_learns_and_the_dev_score_picks_the_rate(frozen, pairs):
    # a dev score that knows the training loss of the head it starts from: the better pooler is the one that fits
    head = nli_head(8, 0)
    run = step_two(frozen, pairs, lambda pooler: -loss_of(pooler, head, frozen[1], pairs), head=head)
    assert run.dev_after > run.dev_before
    assert run.dev_by_rate[run.learning_rate] == max(run.dev_by_rate.values()) == run.dev_after


def test_the_two_sides_of_a_pair_see_different_dropout(frozen, pairs):
    encoder, (first, second) = frozen
    one_step = replace(STEP_TWO, learning_rates=(1e-2,), epochs=1 / 6)
    later = iter(range(1000))
    found = {
        bytes_of(step_two((encoder, np.stack(views)), pairs, lambda pooler: float(next(later)), one_step).pooler)
        for views in ((first, second), (first, first), (second, second))
    }
    assert len(found) == 3


def test_a_random_start_is_another_start(frozen, pairs):
    later = iter(range(1000))
    current = step_two(frozen, pairs, lambda pooler: float(next(later)))
    fresh = step_two(frozen, pairs, lambda pooler: float(next(later)), replace(STEP_TWO, start="random"))
    assert bytes_of(current.pooler) != bytes_of(fresh.pooler)


def test_every_text_needs_a_view(frozen, pairs):
    encoder, views = frozen
    texts = distinct_texts(pairs)
    with pytest.raises(InputError, match="has no cached view"):
        train_nli_pooler(views[:, 1:], texts[1:], pairs, encoder.pooler, nli_head(8, 0), lambda p: 0.0, STEP_TWO)
    with pytest.raises(InputError, match="lengths differ"):
        train_nli_pooler(views[:, 1:], texts, pairs, encoder.pooler, nli_head(8, 0), lambda p: 0.0, STEP_TWO)
