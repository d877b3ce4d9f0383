"""Word pieces made from sentences, and sentences as their ids: what a network that is taught from
scratch reads.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import WordPieceTrainer

from repro.types import InputError

Ids: TypeAlias = NDArray[np.int64]
MOST_HELD_OUT = 8192
"""Sentences whose loss is measured at the end, at most."""
LETTERS = 200
"""Single characters that the vocabulary keeps."""
MOST_PIECES = 2**16
"""What two bytes can number."""
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
"""Tokens that are no piece of a word: the padding first, the mask last."""
TOKENIZER, TOKENS = "tokenizer.json", "tokens.safetensors"


@dataclass(frozen=True, eq=False)
class TokenisedCorpus:
    """The tokens of a corpus, two bytes each so that millions of sentences fit, and what made
    them.
    """

    tokenizer: Tokenizer
    ids: NDArray[np.uint16]  # Of all sentences, one after the other
    starts: NDArray[np.int64]  # (n + 1,): where each sentence begins in `ids`, and the end

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each sentence (n,)."""
        return np.diff(self.starts)

    @cached_property
    def has_word(self) -> NDArray[np.bool_]:
        """Whether each sentence has a known word (n,), without which it has no loss."""
        special = np.array([self.tokenizer.token_to_id(name) for name in SPECIAL])
        return np.add.reduceat(~np.isin(self.ids, special), self.starts[:-1]) > 0

    def sentences(self, rows: Ids) -> list[NDArray[np.uint16]]:
        """Tokens of the sentences in these rows."""
        return [self.ids[self.starts[row] : self.starts[row + 1]] for row in rows]

    def save(self, folder: Path) -> None:
        """Write the tokenizer and the tokens into an empty folder."""
        self.tokenizer.save(str(folder / TOKENIZER))
        save_file({"ids": self.ids, "starts": self.starts}, folder / TOKENS)

    @classmethod
    def load(cls, folder: Path) -> "TokenisedCorpus":
        """What `save` has written."""
        arrays = load_file(folder / TOKENS)
        return cls(Tokenizer.from_file(str(folder / TOKENIZER)), arrays["ids"], arrays["starts"])


def train_wordpiece(sentences: Sequence[str], vocabulary: int) -> Tokenizer:
    """A lower-casing WordPiece tokenizer with BERT's special tokens, trained on `sentences`.

    The same sentences give the same vocabulary in the same order. The trainer alone does not: it
    numbers the letters as it meets them in a hash table, differently in every process, and breaks
    ties by these numbers. So a first pass finds the letters, and the second is given them in
    alphabetical order.

    Raises:
        InputError: for a `vocabulary` that has no room for these letters.
    """
    letters = _letters(sentences)
    first = _trained(sentences, 1, list(SPECIAL), letters)
    if vocabulary < first.get_vocab_size():
        least = f"{first.get_vocab_size()}, the letters of these sentences at the start of a word"
        told = f"and within one, and {len(SPECIAL)} tokens that are no letters"
        raise InputError(f"vocabulary is {vocabulary}: expected at least {least} {told}")
    pieces = sorted(set(first.get_vocab()) - set(SPECIAL))
    tokenizer = _blank(_trained(sentences, vocabulary, [*SPECIAL, *pieces], letters).get_vocab())
    tokenizer.add_special_tokens(list(SPECIAL))
    ends = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=ends,
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
    tokenizer.normalizer = BertNormalizer(
        lowercase=True,
        strip_accents=True,
        handle_chinese_chars=True,
    )
    tokenizer.pre_tokenizer = BertPreTokenizer()
    return tokenizer


def _trained(
    sentences: Sequence[str],
    vocabulary: int,
    special: list[str],
    letters: list[str],
) -> Tokenizer:
    tokenizer = _blank({})
    alphabet: dict[str, Any] = {"initial_alphabet": letters, "limit_alphabet": len(letters)}
    trainer = WordPieceTrainer(
        vocab_size=vocabulary,
        special_tokens=special,
        show_progress=False,
        **alphabet,
    )
    tokenizer.train_from_iterator(sentences, trainer)
    return tokenizer


def tokenised(sentences: Sequence[str], vocabulary: int, max_length: int) -> TokenisedCorpus:
    """A corpus in the WordPieces of its own that it is trained on, cut to `max_length` tokens a
    sentence.
    """
    tokenizer = train_wordpiece(sentences, vocabulary)
    tokenizer.enable_truncation(max_length)
    tokens: list[NDArray[np.uint16]] = []
    for start in range(0, len(sentences), 4096):
        for encoding in tokenizer.encode_batch_fast(sentences[start : start + 4096]):
            tokens.append(np.array(encoding.ids, np.uint16))
    starts = np.cumsum([0, *map(len, tokens)])
    return TokenisedCorpus(tokenizer, np.concatenate(tokens), starts)
