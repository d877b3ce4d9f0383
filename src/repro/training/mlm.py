"""Masked-language-model pre-training of a small backbone from scratch (method-pretraining in the
book; Devlin et al., 2019).

A WordPiece vocabulary is trained on the corpus, and a BERT with fresh weights on its masked words.
The shipped backbones are *raw* encoders: they have read Wikipedia sentences and never seen a
sentence objective, so that SimCSE has something to teach them.
"""

import json
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor
from transformers import BertConfig, BertForMaskedLM

from repro.data.sampling import bucketed_batches
from repro.models.device import default_device
from repro.reducers.reducer import available_bytes
from repro.seeding import check_seed, make_rng
from repro.training.loop import LoopConfig, train
from repro.training.state import History
from repro.training.wordpieces import (
    MOST_HELD_OUT,
    MOST_PIECES,
    SPECIAL,
    TOKENIZER,
    Ids,
    TokenisedCorpus,
)
from repro.types import InputError, check_dim, check_positive

BYTES_A_NUMBER = 16  # A weight, its gradient and Adam's two moments, in single precision
BYTES_A_LAYER = 100_000  # What a layer takes beside its numbers: modules, hooks, names
IGNORED = -100
"""Target of a position that was not masked; gives no loss and no gradient."""


@dataclass(frozen=True)
class PretrainConfig:
    """A backbone and how to pre-train it."""

    layers: int = 2
    hidden_dim: int = 128
    heads: int = 2
    vocabulary: int = 8192  # WordPiece entries, lower-cased; at most 65,536
    max_length: int = 64  # Tokens kept of a sentence
    batch_size: int = 256  # Sentences per step
    epochs: float = 1.0
    learning_rate: float = 1e-3  # Peak rate: 1e-3 for 2 layers, 5e-4 for 4
    warmup: float = 0.05  # Share of the steps over which the rate rises
    mask_share: float = 0.15  # Share of tokens that are predicted
    dropout: float = 0.1  # SimCSE needs it later
    save_every: int = 500  # Steps between resumable states
    bf16: bool = True  # Matrix products in bfloat16
    seed: int = 0

    def __post_init__(self) -> None:
        check_positive(self, "learning_rate", "epochs")
        for name in ("layers", "hidden_dim", "heads", "vocabulary", "max_length", "batch_size"):
            check_dim(getattr(self, name), what=name)
        check_dim(self.vocabulary, limit=MOST_PIECES, what="vocabulary")
        if self.max_length < 3:
            raise InputError(
                f"max_length is {self.max_length}: expected at least 3 tokens, as [CLS] and [SEP] "
                "stand around every sentence"
            )
        if self.hidden_dim % self.heads:
            raise InputError(
                f"hidden_dim is {self.hidden_dim}: expected a multiple of {self.heads} heads"
            )


@dataclass
class MaskedBert:
    """A BERT with its masked-language-model head and its fast tokenizer."""

    model: Any
    tokenizer: Tokenizer

    def save(self, folder: Path) -> None:
        """Write the network without its masked-language-model head, float16 safetensors, in Hugging
        Face layout.
        """
        folder.mkdir(parents=True, exist_ok=True)
        bert = self.model.bert.half()
        bert.save_pretrained(folder, safe_serialization=True)
        bert.float()
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.tokenizer.save(str(folder / TOKENIZER))
        names = {
            f"{name}_token": f"[{name.upper()}]" for name in ("unk", "sep", "pad", "cls", "mask")
        }
        note = {"tokenizer_class": "BertTokenizer", "do_lower_case": True}
        note |= {"model_max_length": self.model.config.max_position_embeddings, **names}
        (folder / "tokenizer_config.json").write_text(json.dumps(note, indent=1), encoding="utf-8")


def make_bert(tokenizer: Tokenizer, config: PretrainConfig) -> MaskedBert:
    """A BERT of the configured sizes with fresh weights for `tokenizer`, feed-forward size
    4·hidden_dim.
    """
    sizes = BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=config.hidden_dim,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        intermediate_size=4 * config.hidden_dim,
        max_position_embeddings=config.max_length,
        hidden_dropout_prob=config.dropout,
        attention_probs_dropout_prob=config.dropout,
        pad_token_id=tokenizer.token_to_id("[PAD]"),
    )
    torch.manual_seed(check_seed(config.seed))
    return MaskedBert(BertForMaskedLM(sizes), tokenizer)


def mask_tokens(
    ids: Ids,
    maskable: NDArray[np.bool_],
    *,
    mask_id: int,
    vocabulary: int,
    share: float,
    rng: np.random.Generator,
) -> tuple[Ids, Ids]:
    """Dynamic masking, 80 % [MASK], 10 % a random token, 10 % unchanged: inputs and targets, both
    (B, T); one token at least is masked where any may be.
    """
    draws = np.where(maskable, rng.random(ids.shape), np.inf)
    chosen = draws < share
    if not chosen.any():  # Of a small batch chance may mask nothing, and then it had no loss
        chosen = (draws == draws.min()) & maskable
    targets = np.where(chosen, ids, IGNORED)
    fate = rng.random(ids.shape)
    inputs = np.where(chosen & (fate < 0.8), mask_id, ids)
    inputs = np.where(
        chosen & (fate >= 0.8) & (fate < 0.9),
        rng.integers(0, vocabulary, ids.shape),
        inputs,
    )
    return inputs, targets


def mlm_loss(backbone: MaskedBert, ids: Tensor, mask: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy at the masked positions only; the vocabulary product is never formed
    elsewhere.
    """
    states = backbone.model.bert(input_ids=ids, attention_mask=mask).last_hidden_state  # (B, T, D)
    chosen = targets != IGNORED
    if not chosen.any():  # Of sentences of unknown words alone nothing can be learnt
        return states.sum() * 0
    logits = backbone.model.cls(states[chosen])  # (masked, vocabulary)
    return F.cross_entropy(logits.float(), targets[chosen])


def pretrain(
    corpus: TokenisedCorpus,
    config: PretrainConfig,
    *,
    state_path: Path | None = None,
    description: str = "training",
) -> tuple[MaskedBert, History, dict[str, float]]:
    """The backbone with its tokenizer, its history, and final figures; on the accelerator, where
    there is one.

    Every hundredth sentence is the dev set. Bars and messages call the training by its
    `description`.

    Raises:
        InputError: for a network beyond memory, a corpus that is too small, and for one without a
            known word in the sentences that are held out or learnt from, whose loss would be that
            of nothing.
    """
    check_affordable(config)
    check_enough(corpus, config)
    backbone = make_bert(corpus.tokenizer, config)
    backbone.model.to(default_device())
    rows = np.arange(len(corpus))
    held_out = rows[rows % 100 == 99][:MOST_HELD_OUT]
    learnt = rows[rows % 100 != 99]
    check_known(corpus, held_out, "held out, every hundredth")
    check_known(corpus, learnt, "learnt from")
    lengths = corpus.lengths[learnt]
    per_epoch = len(learnt) // config.batch_size

    @lru_cache(maxsize=1)
    def plan(epoch: int) -> list[Ids]:
        return bucketed_batches(lengths, config.batch_size, seed=config.seed, epoch=epoch)

    def loss_of(members: Ids, *key: object) -> Tensor:
        masked = masked_batch(corpus.sentences(members), corpus.tokenizer, config, *key)
        return mlm_loss(backbone, *(array.to(backbone.model.device) for array in masked))

    def loss_at(step: int) -> Tensor:
        epoch, position = divmod(step, per_epoch)
        return loss_of(learnt[plan(epoch)[position % len(plan(epoch))]], step)

    steps = max(1, round(config.epochs * per_epoch))
    loop = LoopConfig.of(config, steps=steps, weight_decay=0.01, betas=(0.9, 0.98))
    history = train(backbone.model, loss_at, loop, state_path=state_path, description=description)
    with torch.no_grad():
        dev_losses = []
        for number, start in enumerate(range(0, len(held_out), 512)):
            members = held_out[start : start + 512]
            if corpus.has_word[members].any():
                dev_losses.append(loss_of(members, "dev", number).item())
    figures = {
        "dev_loss": float(np.mean(dev_losses)),
        "unigram_loss": _unigram_loss(corpus),
        "tokens_seen": float(lengths.mean() * config.batch_size * len(history.losses)),
        "sentences": float(len(corpus)),
        "steps": float(len(history.losses)),
        "seconds": history.seconds,
    }
    return backbone, history, figures


def check_known(corpus: TokenisedCorpus, sentences: Ids, told: str) -> None:
    """Raise an InputError, which tells what the sentences are for, where none has a known word."""
    if not corpus.has_word[sentences].any():
        unknown = "a word of more than 100 letters, or of rare ones, is unknown"
        raise InputError(f"no sentence that is {told}, has a known word: {unknown}")


def check_enough(sentences: Sized, config: PretrainConfig) -> None:
    """Raise an InputError for a corpus that is too small to train on."""
    if len(sentences) < max(2 * config.batch_size, 100):
        raise InputError(
            f"{len(sentences)} sentences: expected two batches ({2 * config.batch_size}), and 100 "
            "to hold one out"
        )


def check_affordable(config: PretrainConfig) -> None:
    """Raise an InputError for a network that cannot be held in memory while it is trained."""
    D = config.hidden_dim
    numbers = (config.vocabulary + config.max_length) * D + config.layers * (12 * D * D + 13 * D)
    needed = BYTES_A_NUMBER * numbers + BYTES_A_LAYER * config.layers
    free = available_bytes()
    if needed > free:
        told = f"{config.layers} layers of hidden_dim {D} need about {needed / 1e9:,.1f} GB"
        raise InputError(
            f"{told} of memory while they are trained and {free / 1e9:,.1f} GB are available: "
            "give fewer layers, or a smaller hidden_dim, vocabulary or max_length"
        )


def masked_batch(
    tokens: Sequence[NDArray[np.uint16]],
    tokenizer: Tokenizer,
    config: PretrainConfig,
    *key: object,
) -> list[Tensor]:
    """Masked ids, attention mask and targets (B, T) of some sentences' tokens."""
    lengths = np.array([len(row) for row in tokens])
    mask = np.arange(lengths.max()) < lengths[:, None]
    *special, mask_id = np.array([tokenizer.token_to_id(name) for name in SPECIAL]).tolist()
    ids = np.full(mask.shape, special[0])
    ids[mask] = np.concatenate(tokens)
    inputs, targets = mask_tokens(
        ids,
        mask & ~np.isin(ids, special),
        mask_id=mask_id,
        vocabulary=tokenizer.get_vocab_size(),
        share=config.mask_share,
        rng=make_rng(config.seed, "masking", *key),
    )
    return [torch.from_numpy(array) for array in (inputs, mask.astype(np.int64), targets)]


def _unigram_loss(corpus: TokenisedCorpus) -> float:
    """Loss of guessing every word by how often it comes, whatever stands around it."""
    tokenizer = corpus.tokenizer
    counts = np.bincount(corpus.ids, minlength=tokenizer.get_vocab_size())
    counts[np.array([tokenizer.token_to_id(name) for name in SPECIAL[:-1]])] = 0
    share = counts[counts > 0] / counts.sum()
    return float(-(share * np.log(share)).sum())


def loss_curve(history: History, points: int = 200) -> list[tuple[int, float]]:
    """The training loss as (step, mean over a window), short enough for a model card."""
    losses = np.asarray(history.losses)
    window = max(1, len(losses) // points)
    curve = []
    for start in range(0, len(losses), window):
        stop = start + window
        curve.append((stop, float(losses[start:stop].mean())))
    return curve
