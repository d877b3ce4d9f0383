"""Training on given positives: equal to SimCSE where they are the sentences, paired and complete where they are not."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from repro.config import TrainConfig
from repro.data.batching import epoch_order
from repro.losses import info_nce
from repro.models import SentenceEncoder
from repro.training.contrastive import train_contrastive
from repro.training.positives import same_text, surviving_batches, train_positives
from repro.types import InputError


def weights(trained):
    return {name: value.numpy().copy() for name, value in trained.encoder.state_dict().items()}


@pytest.fixture
def config(tiny) -> TrainConfig:
    return TrainConfig(backbone=tiny, dim=8, batch_size=8, learning_rate=1e-3, check_every=2, source="microworld")


def test_a_sentence_as_its_own_positive_is_simcse_to_the_byte(config, sentences):
    config = replace(config, temperature=0.1)
    texts = [*sentences[:23], sentences[0]]  # one twice: masked alike
    plain = train_contrastive(config, texts, lambda *_: 0.5, progress=False)
    given = train_positives(config, texts, texts, lambda *_: 0.5, progress=False)
    assert plain.history.losses == given.history.losses
    for name, value in weights(plain).items():
        assert np.array_equal(value, weights(given)[name]), name


def test_the_first_loss_asks_each_sentence_for_its_positive(config, sentences):
    config = replace(config, pooling="mean", max_length=48, dropout=0.0, temperature=0.02)
    texts, others = sentences[:8], sentences[100:108]  # one batch
    encoder = SentenceEncoder.load(config.backbone, dim=8, pooling="mean")
    z1, z2 = (torch.from_numpy(encoder.encode(side)) for side in (texts, others))
    found = train_positives(config, texts, others, lambda *_: 0.5, progress=False).history.losses
    assert found == [pytest.approx(info_nce(z1, z2, temperature=0.02).item(), rel=1e-4)]


def test_positives_decide_and_a_killed_run_goes_on(config, sentences, tmp_path):
    texts, others = sentences[:24], [*sentences[100:112], *[None] * 4, *sentences[116:124]]
    whole = train_positives(config, texts, others, lambda *_: 0.5, progress=False)
    assert len(whole.history.losses) == 3, "as many steps as all sentences fill"
    assert whole.history.losses != train_positives(config, texts, texts, lambda *_: 0.5, progress=False).history.losses
    state, checks = tmp_path / "state.safetensors", iter([0.1, 0.2])

    def killed(*_):
        return next(checks)

    with pytest.raises(StopIteration):
        train_positives(replace(config, check_every=1), texts, others, killed, state_path=state, save_every=1)
    rest = train_positives(
        replace(config, check_every=1), texts, others, lambda *_: 0.5, state_path=state, save_every=1, progress=False
    )
    assert rest.history.resumed_at == 1 and rest.history.losses == whole.history.losses


def test_survivors_keep_their_order_and_each_epoch_meets_each_once(config):
    kept = np.array([i % 3 != 0 for i in range(40)])  # 26 of 40: three batches of 8 an epoch
    batch = surviving_batches(config, kept)
    for epoch in range(2):
        seen = np.concatenate([batch(3 * epoch + step) for step in range(3)])
        expected = [i for i in epoch_order(40, seed=0, epoch=epoch) if kept[i]][:24]
        assert seen.tolist() == expected
    with pytest.raises(InputError, match="7 of 40 sentences have a positive"):
        surviving_batches(config, np.arange(40) < 7)


def test_no_text_is_a_negative_of_itself():
    anchors, positives = torch.tensor([0, 1, 2, 0]), torch.tensor([5, 2, 6, 7])
    mask = same_text(anchors, positives)
    expected = torch.zeros(4, 4, dtype=torch.bool)
    for i in range(4):
        for j in range(4):
            expected[i, j] = anchors[i] == anchors[j] or positives[i] == positives[j] or anchors[i] == positives[j]
    assert torch.equal(mask, expected) and mask[2, 1] and mask[0, 3]


def test_positives_that_do_not_fit_are_named(config, sentences):
    with pytest.raises(InputError, match="lengths differ"):
        train_positives(config, sentences[:16], sentences[:15], lambda *_: 0.5, progress=False)
