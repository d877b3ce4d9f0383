import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from repro.config import TrainConfig
from repro.losses import info_nce
from repro.models import SentenceEncoder
from repro.training import end_to_end
from repro.training.contrastive import train_contrastive, two_views
from repro.training.end_to_end import batches, own_share
from repro.types import InputError


def spread(encoder, readout):
    """A stand-in for the dev score: any number that the weights decide."""
    return float(encoder.encode(["a cook", "the driver slept"], readout=readout).std())


@pytest.fixture
def config(tiny):
    return TrainConfig(
        backbone=tiny, dim=8, batch_size=16, learning_rate=1e-3, sentences=96, check_every=2, save_every=0
    )


def train(config, sentences, **options):
    return train_contrastive(config, sentences, spread, progress=False, **options)


def bytes_of(encoder):
    return b"".join(value.numpy().tobytes() for value in encoder.state_dict().values())


def test_the_same_configuration_gives_the_same_bytes(config, sentences):
    first = train(config, sentences[:96])
    torch.rand(5)
    second = train(config, sentences[:96])
    assert bytes_of(first.encoder) == bytes_of(second.encoder)
    assert first.history.losses == second.history.losses


def test_a_dim_does_not_know_which_others_are_trained(config, sentences):
    alone = train(config, sentences[:96])
    sweep = {dim: train(replace(config, dim=dim), sentences[:96]) for dim in (40, 2, 8)}
    assert bytes_of(sweep[8].encoder) == bytes_of(alone.encoder)
    # data order and dropout are shared: all dims start from the same h, so only the pooler tells them apart
    assert len({trained.dev_before for trained in sweep.values()}) == 1


def test_training_lowers_the_loss_and_counts_its_steps(config, sentences):
    trained = train(replace(config, epochs=4), sentences[:96])
    losses = trained.history.losses
    assert len(losses) == 24
    assert np.mean(losses[-6:]) < np.mean(losses[:6])
    assert len(train(replace(config, epochs=0.5), sentences[:96]).history.losses) == 3


@pytest.mark.parametrize("temperature", [0.05, 0.5])
def test_the_first_loss_is_that_of_the_untrained_embeddings(config, sentences, temperature):
    """Without dropout both views are what `encode` gives."""
    config = replace(config, pooling="mean", max_length=48, dropout=0.0, temperature=temperature, epochs=1 / 6)
    texts = [sentences[i] for i in batches(config, 96)(0)]
    z = torch.from_numpy(SentenceEncoder.load(config.backbone, dim=8, pooling="mean").encode(texts))
    equal = torch.tensor([[a == b for b in texts] for a in texts])
    expected = info_nce(z, z, temperature=temperature, mask=equal).item()
    assert train(config, sentences[:96]).history.losses == [pytest.approx(expected, rel=1e-4)]


def test_every_epoch_has_an_order_of_its_own(config):
    batch = batches(config, 32)
    orders = [np.concatenate([batch(2 * epoch), batch(2 * epoch + 1)]) for epoch in range(3)]
    assert all(sorted(order) == list(range(32)) for order in orders)
    assert len({tuple(order) for order in orders}) == 3


def test_the_score_before_is_the_untrained_encoders(config, tiny, sentences):
    untrained = SentenceEncoder.load(tiny, dim=8)
    assert train(config, sentences[:32]).dev_before == spread(untrained, "encoder")


@pytest.mark.parametrize("readout", ["pooler", "encoder"])
def test_the_checkpoint_maximises_the_readout_asked_for(config, sentences, readout):
    trained = train(replace(config, checkpoint_by=readout), sentences[:96])
    assert trained.history.best_score == max(score for _, score in trained.history.checks)
    assert spread(trained.encoder, readout) == trained.history.best_score


def test_equal_texts_are_not_pushed_apart(config):
    same = ["the cook thanked the driver"] * 32
    masked = train(config, same).history.losses
    assert masked == [0.0, 0.0]  # nothing but the diagonal is left
    published = train(replace(config, mask_duplicates=False), same).history.losses
    assert min(published) > math.log(16) - 0.5  # all texts look like the positive


def test_two_views_differ_by_dropout_alone(tiny, sentences):
    encoder = SentenceEncoder.load(tiny, dim=8)
    ids, _ = encoder.backbone.tokenize(sentences[:5], 48)
    z1, z2 = two_views(encoder, ids)
    torch.testing.assert_close(z1, z2)
    np.testing.assert_allclose(z1.detach().numpy(), encoder.encode(sentences[:5]), atol=1e-5)
    encoder.train()
    z1, z2 = two_views(encoder, ids)
    assert (z1 - z2).abs().max() > 1e-4


def test_dropout_none_keeps_the_backbones_own(config, sentences):
    def probabilities(encoder):
        return {m.p for m in encoder.modules() if isinstance(m, torch.nn.Dropout)}

    assert probabilities(train(config, sentences[:16]).encoder) == {0.1}
    assert probabilities(train(replace(config, dropout=0.25), sentences[:16]).encoder) == {0.25}


def test_too_few_sentences_for_one_batch(config, sentences):
    with pytest.raises(InputError, match=r"15 sentences do not fill one batch of 16 in 1 epochs"):
        train(config, sentences[:15])


def test_shares_of_a_batch(monkeypatch):
    members = np.arange(12)
    assert own_share(members) is members
    monkeypatch.setattr(end_to_end, "world_size", lambda: 3)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    assert own_share(members).tolist() == [4, 5, 6, 7]
    with pytest.raises(InputError, match="batch_size 10 does not divide among 3 processes"):
        own_share(members[:10])
