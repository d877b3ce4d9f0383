import math

import numpy as np
import pytest
import torch

from repro import data
from repro.training import mlm
from repro.training.loop import History, LoopConfig
from repro.training.mlm import (
    IGNORED,
    SPECIAL,
    PretrainConfig,
    loss_curve,
    make_bert,
    mask_tokens,
    mlm_loss,
    pretrain,
    train_wordpiece,
)
from repro.types import InputError

VOCABULARY = 400


def test_the_loss_is_that_of_transformers(sentences):
    bert = make_bert(train_wordpiece(sentences, VOCABULARY), PretrainConfig(hidden_dim=32, max_length=48))
    bert.model.eval()
    rng = np.random.default_rng(0)
    real = np.arange(20) < rng.integers(5, 21, 64)[:, None]
    drawn = rng.integers(len(SPECIAL), VOCABULARY, real.shape)
    inputs, targets = mask_tokens(drawn, real, mask_id=4, vocabulary=VOCABULARY, share=0.15, rng=rng)
    ids, mask, targets = map(torch.from_numpy, (inputs, real.astype(np.int64), targets))
    with torch.no_grad():
        expected = bert.model(input_ids=ids, attention_mask=mask, labels=targets).loss
        torch.testing.assert_close(mlm_loss(bert, ids, mask, targets), expected)


def test_shares_of_masking():
    rng = np.random.default_rng(0)
    ids = rng.integers(5, 8192, (1000, 200))
    maskable = rng.random(ids.shape) < 0.9
    inputs, targets = mask_tokens(ids, maskable, mask_id=4, vocabulary=8192, share=0.15, rng=rng)
    chosen = targets != IGNORED
    assert chosen.sum() / maskable.sum() == pytest.approx(0.15, abs=0.003)
    assert not chosen[~maskable].any()
    assert (targets[chosen] == ids[chosen]).all()
    assert (inputs[~chosen] == ids[~chosen]).all()
    masked, same = inputs[chosen] == 4, inputs[chosen] == ids[chosen]
    assert masked.mean() == pytest.approx(0.8, abs=0.01)
    assert same.mean() == pytest.approx(0.1, abs=0.01)
    assert (~masked & ~same).mean() == pytest.approx(0.1, abs=0.01)


def test_pre_training_predicts_words_alone_and_is_set_as_its_card_says(sentences, monkeypatch):
    seen = {}

    def one_step(model, loss_at, loop, **told):
        seen["loop"], seen["loss"] = loop, loss_at(0)
        return History(losses=[seen["loss"].item()])

    def watched(backbone, ids, mask, targets):
        seen.setdefault("batches", []).append((ids.numpy(), mask.numpy(), targets.numpy()))
        return mlm_loss(backbone, ids, mask, targets)

    monkeypatch.setattr(mlm, "LETTERS", 15)  # words of rarer letters are unknown
    monkeypatch.setattr(mlm, "train", one_step)
    monkeypatch.setattr(mlm, "mlm_loss", watched)
    how = {"warmup": 0.2, "learning_rate": 3e-3, "save_every": 7, "bf16": True, "seed": 4}
    sizes = {"layers": 1, "hidden_dim": 16, "vocabulary": VOCABULARY, "batch_size": 128}
    pretrain(sentences, PretrainConfig(**sizes, **how, mask_share=0.5))
    assert seen["loop"] == LoopConfig(steps=4, betas=(0.9, 0.98), weight_decay=0.01, **how)
    shares = []
    for ids, mask, targets in seen["batches"]:
        chosen = targets != IGNORED
        words = (mask == 1) & ~np.isin(np.where(chosen, targets, ids), [0, 1, 2, 3])
        assert (ids == 1).any() and not (chosen & ~words).any()
        shares.append(chosen.sum() / words.sum())
    assert len(shares) == 2 and shares[0] == pytest.approx(0.5, abs=0.05)


def test_pre_training_beats_counting_words_without_the_held_out_ones(sentences):
    sizes = {"layers": 1, "hidden_dim": 32, "heads": 2, "vocabulary": VOCABULARY, "max_length": 32, "batch_size": 32}
    small = PretrainConfig(**sizes, epochs=3, learning_rate=5e-3, save_every=10, bf16=False)
    with pytest.raises(InputError, match="99 sentences: expected two batches"):
        pretrain(sentences[:99], small)
    with pytest.raises(InputError, match="hidden_dim is 32: expected a multiple of 3 heads"):
        PretrainConfig(**sizes | {"heads": 3})
    whole, history, figures = pretrain(data.load("wiki", source="microworld", limit=1600).texts, small)
    assert history.losses[0] == pytest.approx(math.log(VOCABULARY), rel=0.03)
    assert figures["dev_loss"] < figures["unigram_loss"] < math.log(VOCABULARY)
    assert len(history.losses) == figures["steps"] == 147  # 1,584 sentences kept
    assert [whole.tokenizer.token_to_id(token) for token in SPECIAL] == [0, 1, 2, 3, 4]
    curve = loss_curve(history, points=7)
    assert [step for step, _ in curve] == [21 * i for i in range(1, 8)]
    assert np.mean([value for _, value in curve]) == pytest.approx(np.mean(history.losses))
