"""Backbones: pretrained networks that turn token ids into states (B, T, D); the one importer of transformers."""

import logging
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import WordPieceTrainer

os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
import transformers  # noqa: E402 - the line above must come first
from transformers import BertConfig, BertForMaskedLM  # noqa: E402

transformers.logging.set_verbosity_error()
log = logging.getLogger(__name__)
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


class BertBackbone:
    """A BERT with its masked-language-model head and its fast tokenizer."""

    def __init__(self, model: BertForMaskedLM, tokenizer: Tokenizer) -> None:
        self.model = model
        self.tokenizer = tokenizer

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.model.device


def train_wordpiece(sentences: Sequence[str], vocabulary: int) -> Tokenizer:
    """A lower-casing WordPiece tokenizer with BERT's special tokens, trained on `sentences`."""
    tokenizer = Tokenizer(WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = BertNormalizer(lowercase=True, strip_accents=True, handle_chinese_chars=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    trainer = WordPieceTrainer(
        vocab_size=vocabulary, special_tokens=list(SPECIAL), limit_alphabet=200, show_progress=False
    )
    tokenizer.train_from_iterator(_chunks(sentences), trainer, length=len(sentences))
    cls, sep = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", cls), ("[SEP]", sep)],
    )
    return tokenizer


def _chunks(sentences: Sequence[str], size: int = 1000) -> Iterable[Sequence[str]]:
    return (sentences[start : start + size] for start in range(0, len(sentences), size))


def make_bert(
    tokenizer: Tokenizer,
    *,
    layers: int,
    hidden_dim: int,
    heads: int,
    max_length: int,
    dropout: float = 0.1,
    seed: int = 0,
) -> BertBackbone:
    """A BERT with fresh weights for `tokenizer`, feed-forward size 4·hidden_dim."""
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=hidden_dim,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden_dim,
        max_position_embeddings=max_length,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        pad_token_id=tokenizer.token_to_id("[PAD]"),
    )
    torch.manual_seed(seed)
    return BertBackbone(BertForMaskedLM(config), tokenizer)
