"""A new BERT: a WordPiece vocabulary trained on the corpus, and fresh weights to pre-train."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import WordPieceTrainer
from transformers import BertConfig, BertForMaskedLM

LETTERS = 200
"""single characters that the vocabulary keeps"""
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@dataclass
class MaskedBert:
    """A BERT with its masked-language-model head and its fast tokenizer."""

    model: Any
    tokenizer: Tokenizer

    def save(self, folder: Path) -> None:
        """Write the network without its masked-language-model head, float16 safetensors, in Hugging Face layout."""
        folder.mkdir(parents=True, exist_ok=True)
        bert = self.model.bert.half()
        bert.save_pretrained(folder, safe_serialization=True)
        bert.float()
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.tokenizer.save(str(folder / "tokenizer.json"))
        names = {f"{name}_token": f"[{name.upper()}]" for name in ("unk", "sep", "pad", "cls", "mask")}
        note = {"tokenizer_class": "BertTokenizer", "do_lower_case": True}
        note |= {"model_max_length": self.model.config.max_position_embeddings, **names}
        (folder / "tokenizer_config.json").write_text(json.dumps(note, indent=1), encoding="utf-8")


def train_wordpiece(sentences: Sequence[str], vocabulary: int) -> Tokenizer:
    """A lower-casing WordPiece tokenizer with BERT's special tokens, trained on `sentences`.

    The same sentences give the same vocabulary in the same order. The trainer alone does not: it numbers the
    letters as it meets them in a hash table, differently in every process, and breaks ties by these numbers. So a
    first pass finds the letters, and the second is given them in alphabetical order.
    """
    letters = _letters(sentences)
    first = _trained(sentences, 1, list(SPECIAL), letters)
    pieces = sorted(set(first.get_vocab()) - set(SPECIAL))
    tokenizer = _blank(_trained(sentences, vocabulary, [*SPECIAL, *pieces], letters).get_vocab())
    tokenizer.add_special_tokens(list(SPECIAL))
    ends = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
    )
    return tokenizer


def _letters(sentences: Sequence[str]) -> list[str]:
    """The commonest characters, ties in alphabetical order; a rarer one makes its word unknown."""
    normalise = _blank({}).normalizer.normalize_str
    counts = Counter(chain.from_iterable(map(normalise, sentences)))
    common = sorted((c for c in counts if not c.isspace()), key=lambda c: (-counts[c], c))
    return sorted(common[:LETTERS])


def _blank(vocabulary: dict[str, int]) -> Tokenizer:
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = BertNormalizer(lowercase=True, strip_accents=True, handle_chinese_chars=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    return tokenizer


def _trained(sentences: Sequence[str], vocabulary: int, special: list[str], letters: list[str]) -> Tokenizer:
    tokenizer = _blank({})
    alphabet: dict[str, Any] = {"initial_alphabet": letters, "limit_alphabet": len(letters)}
    trainer = WordPieceTrainer(vocab_size=vocabulary, special_tokens=special, show_progress=False, **alphabet)
    tokenizer.train_from_iterator(sentences, trainer)
    return tokenizer


def make_bert(
    tokenizer: Tokenizer,
    *,
    layers: int,
    hidden_dim: int,
    heads: int,
    max_length: int,
    dropout: float = 0.1,
    seed: int = 0,
) -> MaskedBert:
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
    return MaskedBert(BertForMaskedLM(config), tokenizer)
