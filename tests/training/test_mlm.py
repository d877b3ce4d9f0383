import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from repro import data
from repro.seeding import make_rng
from repro.training import mlm, wordpieces
from repro.training.loop import LoopConfig
from repro.training.mlm import (
    IGNORED,
    PretrainConfig,
    loss_curve,
    make_bert,
    mask_tokens,
    mlm_loss,
    pretrain,
)
from repro.training.state import History
from repro.training.wordpieces import SPECIAL, TokenisedCorpus, tokenised, train_wordpiece
from repro.types import InputError

VOCABULARY = 400


def test_the_loss_is_that_of_transformers(sentences):
    bert = make_bert(
        train_wordpiece(sentences, VOCABULARY),
        PretrainConfig(hidden_dim=32, max_length=48),
    )
    bert.model.eval()
    rng = np.random.default_rng(0)
    real = np.arange(20) < rng.integers(5, 21, 64)[:, None]
    drawn = rng.integers(len(SPECIAL), VOCABULARY, real.shape)
    inputs, targets = mask_tokens(
        drawn,
        real,
        mask_id=4,
        vocabulary=VOCABULARY,
        share=0.15,
        rng=rng,
    )
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


def test_a_small_batch_masks_a_word_at_least_and_one_without_words_has_no_loss(sentences):
    ids = np.full((2, 3), 7)
    maskable = np.array([[False, True, False], [False, True, False]])
    for seed in range(40):
        rng = np.random.default_rng(seed)
        shares = {"share": 1e-6, "rng": rng}
        _, targets = mask_tokens(ids, maskable, mask_id=4, vocabulary=9, **shares)
        assert (targets != IGNORED).sum() == 1 and (targets != IGNORED)[maskable].sum() == 1
    inputs, targets = mask_tokens(ids, maskable & False, mask_id=4, vocabulary=9, **shares)
    assert (targets == IGNORED).all() and (inputs == ids).all()
    bert = make_bert(train_wordpiece(sentences, VOCABULARY), PretrainConfig(hidden_dim=32))
    loss = mlm_loss(bert, *map(torch.from_numpy, (ids, np.ones_like(ids), targets)))
    loss.backward()
    assert loss.item() == 0


def test_sentences_are_not_cut_to_less_than_a_token_between_their_ends():
    for length in (1, 2):
        with pytest.raises(InputError, match=f"max_length is {length}: expected at least 3"):
            PretrainConfig(max_length=length)
    PretrainConfig(max_length=3)


def test_pre_training_predicts_words_alone_and_is_set_as_its_card_says(sentences, monkeypatch):
    seen = {}

    def one_step(model, loss_at, loop, **told):
        seen["loop"] = loop
        return History(losses=[loss_at(step).item() for step in (0, 4)])  # Of two epochs

    def drawn(*key):
        seen.setdefault("keys", []).append(key)
        return make_rng(*key)

    def watched(backbone, ids, mask, targets):
        seen.setdefault("batches", []).append((ids.numpy(), mask.numpy(), targets.numpy()))
        return mlm_loss(backbone, ids, mask, targets)

    monkeypatch.setattr(wordpieces, "LETTERS", 15)  # Words of rarer letters are unknown
    monkeypatch.setattr(mlm, "make_rng", drawn)
    monkeypatch.setattr(mlm, "train", one_step)
    monkeypatch.setattr(mlm, "mlm_loss", watched)
    how = {"warmup": 0.2, "learning_rate": 3e-3, "save_every": 7, "bf16": True, "seed": 4}
    sizes = {"layers": 1, "hidden_dim": 16, "vocabulary": VOCABULARY, "batch_size": 128}
    corpus = tokenised(sentences, VOCABULARY, max_length=64)
    pretrain(corpus, PretrainConfig(**sizes, **how, mask_share=0.5))
    assert seen["loop"] == LoopConfig(steps=4, betas=(0.9, 0.98), weight_decay=0.01, **how)
    shares = []
    for ids, mask, targets in seen["batches"]:
        chosen = targets != IGNORED
        words = (mask == 1) & ~np.isin(np.where(chosen, targets, ids), [0, 1, 2, 3])
        assert (ids == 1).any() and not (chosen & ~words).any()
        shares.append(chosen.sum() / words.sum())
    assert len(shares) == 3 and shares[:2] == pytest.approx([0.5, 0.5], abs=0.05)
    assert len(set(seen["keys"])) == len(seen["keys"]) == 3
    assert {key[0] for key in seen["keys"]} == {4}
    first, second = (np.where(t != IGNORED, t, ids) for ids, _, t in seen["batches"][:2])
    assert {tuple(row[row > 0]) for row in first} != {tuple(row[row > 0]) for row in second}


@pytest.mark.parametrize(
    ("unknown", "told"),
    [(slice(99, None, 100), "held out, every hundredth"), (slice(None), "learnt from")],
)
def test_a_loss_of_nothing_is_no_figure(unknown, told, sentences):
    texts = list(sentences[:200])
    for row in range(len(texts))[unknown]:
        texts[row] = "a" * 101
    texts[99 if told == "learnt from" else 0] = "The cook."
    corpus = tokenised(texts, VOCABULARY, 32)
    config = PretrainConfig(layers=1, hidden_dim=16, batch_size=64)
    with pytest.raises(InputError, match=rf"no sentence that is {told}, has a known word"):
        pretrain(corpus, config)


def test_unknown_words_of_the_dev_set_do_not_make_its_loss_look_small(sentences, monkeypatch):
    monkeypatch.setattr(mlm, "train", lambda *given, **told: History(losses=[1.0]))
    tokenizer = train_wordpiece(sentences, VOCABULARY)
    ids = np.tile(np.array([2, 9, 3], np.uint16), (100 * 1024, 1))
    ids[: len(ids) // 2, 1] = 1  # Which fill the first of two batches
    corpus = TokenisedCorpus(tokenizer, ids.ravel(), np.arange(0, ids.size + 1, 3))
    config = PretrainConfig(layers=1, hidden_dim=16, vocabulary=VOCABULARY, batch_size=64)
    _, _, figures = pretrain(corpus, config)
    assert figures["dev_loss"] == pytest.approx(math.log(VOCABULARY), rel=0.05)


def test_a_fresh_bert_has_the_sizes_dropout_and_seed_asked_for(sentences):
    tokenizer = train_wordpiece(sentences, VOCABULARY)
    config = PretrainConfig(layers=3, hidden_dim=24, heads=4, max_length=40, dropout=0.3, seed=5)
    first, again, other = (make_bert(tokenizer, replace(config, seed=s)).model for s in (5, 5, 6))
    assert {m.p for m in first.modules() if isinstance(m, torch.nn.Dropout)} == {0.3}
    sizes = first.config
    assert (sizes.num_hidden_layers, sizes.hidden_size, sizes.num_attention_heads) == (3, 24, 4)
    assert (sizes.intermediate_size, sizes.max_position_embeddings) == (96, 40)
    assert sizes.attention_probs_dropout_prob == 0.3
    weights = [model.bert.embeddings.word_embeddings.weight for model in (first, again, other)]
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])
    assert tokenizer.encode("The COOK").ids == tokenizer.encode("the cook").ids


def test_pre_training_beats_counting_words_without_the_held_out_ones(sentences):
    sizes = {
        "layers": 1,
        "hidden_dim": 32,
        "heads": 2,
        "vocabulary": VOCABULARY,
        "max_length": 32,
        "batch_size": 32,
    }
    small = PretrainConfig(**sizes, epochs=3, learning_rate=5e-3, save_every=10, bf16=False)
    with pytest.raises(InputError, match="99 sentences: expected two batches"):
        pretrain(tokenised(sentences[:99], VOCABULARY, 32), small)
    with pytest.raises(InputError, match="hidden_dim is 32: expected a multiple of 3 heads"):
        PretrainConfig(**sizes | {"heads": 3})
    texts = data.load("wiki", source="microworld", limit=1600).texts
    corpus = tokenised(texts, VOCABULARY, 32)
    whole, history, figures = pretrain(corpus, small)
    assert history.losses[0] == pytest.approx(math.log(VOCABULARY), rel=0.03)
    assert figures["dev_loss"] < figures["unigram_loss"] < math.log(VOCABULARY)
    assert len(history.losses) == figures["steps"] == 147  # 1,584 sentences kept
    assert [whole.tokenizer.token_to_id(token) for token in SPECIAL] == [0, 1, 2, 3, 4]
    curve = loss_curve(history, points=7)
    assert [step for step, _ in curve] == [21 * i for i in range(1, 8)]
    assert np.mean([value for _, value in curve]) == pytest.approx(np.mean(history.losses))


def test_a_tokenised_corpus_comes_back_from_its_folder_as_it_was(sentences, tmp_path):
    corpus = tokenised(sentences, VOCABULARY, 12)
    corpus.save(tmp_path)
    again = mlm.TokenisedCorpus.load(tmp_path)
    assert len(again) == len(corpus) == len(sentences)
    assert max(corpus.lengths) == 12 and corpus.ids.dtype == np.uint16
    for row in (0, 7, len(sentences) - 1):
        alone = again.tokenizer.encode(sentences[row]).ids
        assert again.sentences(np.array([row]))[0].tolist() == alone
    with pytest.raises(InputError, match="vocabulary is 65537: expected 1 to 65536"):
        PretrainConfig(vocabulary=65_537)
