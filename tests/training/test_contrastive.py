import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from repro.config import TrainConfig
from repro.data.sampling import epoch_order
from repro.losses import info_nce
from repro.models import SentenceEncoder
from repro.training import end_to_end
from repro.training.contrastive import contrastive, same_text, two_views
from repro.training.end_to_end import batches, own_share, train_encoder
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
    return train_encoder(config, contrastive, sentences, spread, progress=False, **options)


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
    z1, z2 = two_views(encoder, ids, ids)
    torch.testing.assert_close(z1, z2)
    np.testing.assert_allclose(z1.detach().numpy(), encoder.encode(sentences[:5]), atol=1e-5)
    encoder.train()
    z1, z2 = two_views(encoder, ids, ids)
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


# given positives


def train_on(config, texts, positives, dev_score, **options):
    pairs = list(zip(texts, positives, strict=True))
    return train_encoder(config, contrastive, pairs, dev_score, **{"progress": False, **options})


def test_a_sentence_as_its_own_positive_is_simcse_to_the_byte(config, sentences):
    texts = [*sentences[:31], sentences[0]]  # one twice: masked alike
    plain, own = (
        train(replace(config, temperature=0.1), each) for each in (texts, list(zip(texts, texts, strict=True)))
    )
    assert plain.history.losses == own.history.losses and bytes_of(plain.encoder) == bytes_of(own.encoder)


def test_the_first_loss_asks_each_sentence_for_its_positive(config, sentences):
    config = replace(config, batch_size=8, pooling="mean", max_length=48, dropout=0.0, temperature=0.02)
    texts, others = sentences[:8], sentences[100:108]  # one batch
    encoder = SentenceEncoder.load(config.backbone, dim=8, pooling="mean")
    z1, z2 = (torch.from_numpy(encoder.encode(side)) for side in (texts, others))
    found = train_on(config, texts, others, lambda *_: 0.5).history.losses
    assert found == [pytest.approx(info_nce(z1, z2, temperature=0.02).item(), rel=1e-4)]


def test_positives_decide_and_a_killed_run_goes_on(config, sentences, tmp_path):
    config = replace(config, batch_size=8)
    texts, others = sentences[:24], [*sentences[100:112], *[None] * 4, *sentences[116:124]]
    whole = train_on(config, texts, others, lambda *_: 0.5)
    assert len(whole.history.losses) == 3, "as many steps as all sentences fill"
    assert whole.history.losses != train_on(config, texts, texts, lambda *_: 0.5).history.losses
    state, checks = tmp_path / "state.safetensors", iter([0.1, 0.2])

    def killed(*_):
        return next(checks)

    with pytest.raises(StopIteration):
        train_on(replace(config, check_every=1), texts, others, killed, state_path=state, save_every=1)
    rest = train_on(replace(config, check_every=1), texts, others, lambda *_: 0.5, state_path=state, save_every=1)
    assert rest.history.resumed_at == 1 and rest.history.losses == whole.history.losses


def test_survivors_keep_their_order_and_each_epoch_meets_each_once(config):
    config = replace(config, batch_size=8)
    kept = np.array([i % 3 != 0 for i in range(40)])  # 26 of 40: three batches of 8 an epoch
    batch = batches(config, 40, kept)
    for epoch in range(2):
        seen = np.concatenate([batch(3 * epoch + step) for step in range(3)])
        expected = [i for i in epoch_order(40, seed=0, epoch=epoch) if kept[i]][:24]
        assert seen.tolist() == expected
    with pytest.raises(InputError, match="7 of 40 sentences have a positive"):
        batches(config, 40, np.arange(40) < 7)


def test_no_text_is_a_negative_of_itself():
    anchors, positives = torch.tensor([0, 1, 2, 0]), torch.tensor([5, 2, 6, 7])
    mask = same_text(anchors, positives)
    expected = torch.zeros(4, 4, dtype=torch.bool)
    for i in range(4):
        for j in range(4):
            expected[i, j] = anchors[i] == anchors[j] or positives[i] == positives[j] or anchors[i] == positives[j]
    assert torch.equal(mask, expected) and mask[2, 1] and mask[0, 3]
