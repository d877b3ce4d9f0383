"""InferSent: a bidirectional LSTM over fixed word vectors, maximum over tokens (Conneau et al., 2017; PROTOCOLS §6)."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from repro.models.encoder import LayerlessEncoder
from repro.models.packing import pack_by_tokens
from repro.seeding import derive_seed
from repro.terminal import progress_bar
from repro.types import Array, InputError, check_dim
from rivals.static import WordTable, tokens_of

TOKEN_BUDGET = 4096
"""padded words per batch when encoding"""


def word_ids(table: WordTable, texts: Sequence[str], max_length: int) -> tuple[Array, list[NDArray[np.int64]], int]:
    """Vectors (V, word_dim) of the known words of some texts, each text as rows of them, and how many were cut."""
    tokens = [tokens_of(text, table) for text in texts]
    cut = sum(len(row) > max_length for row in tokens)
    index: dict[str, int] = {}
    rows = [[index.setdefault(token, len(index)) for token in row[:max_length]] for row in tokens]
    vectors, known = table.lookup(list(index))
    renumbered = np.where(known, np.cumsum(known) - 1, -1)
    ids = [renumbered[np.array(row, dtype=np.int64)] for row in rows]
    return vectors[known], [row[row >= 0] for row in ids], cut


def padded(ids: Sequence[NDArray[np.int64]]) -> tuple[Tensor, Tensor]:
    """Rows of word numbers as one table (B, T) padded with 0, and their lengths (B,)."""
    lengths = np.array([len(row) for row in ids])
    table = np.zeros((len(ids), max(1, int(lengths.max()))), np.int64)
    for i, row in enumerate(ids):
        table[i, : len(row)] = row
    return torch.from_numpy(table), torch.from_numpy(lengths)


class BiLSTMMax(nn.Module):
    """Word vectors (B, T, word_dim) to sentence states (B, 2·hidden_dim): the maximum of each unit over the words."""

    def __init__(self, word_dim: int, hidden_dim: int, *, seed: int = 0) -> None:
        super().__init__()
        check_dim(hidden_dim, what="hidden_dim")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(seed, "infersent", hidden_dim))
            self.lstm = nn.LSTM(word_dim, hidden_dim, batch_first=True, bidirectional=True)

    @property
    def dim(self) -> int:
        """Size of a sentence state."""
        return 2 * self.lstm.hidden_size

    def forward(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Sentence states (B, dim); zero where a text has no word at all."""
        # packed, so that the backward direction starts at a text's own end and padding plays no part
        packed = pack_padded_sequence(vectors, lengths.clamp_min(1).cpu(), batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, padding_value=-torch.inf)
        return states.amax(1) * (lengths > 0).unsqueeze(-1).to(states)


class InferSent(LayerlessEncoder):
    """The trained network and the word vectors it reads; unknown words are left out, as in training."""

    def __init__(self, net: BiLSTMMax, table: WordTable, *, max_length: int = 512) -> None:
        """Keep both.

        Args:
            net: the network.
            table: vectors by word.
            max_length: words kept of a text.

        Raises:
            InputError: if the vectors are not of the size the network reads.
        """
        if table.dim != net.lstm.input_size:
            raise InputError(f"vectors of {table.dim} dimensions: the network reads {net.lstm.input_size}")
        self.net = net
        self.table = table
        self.max_length = check_dim(max_length, what="max_length")
        self.texts_unknown = 0
        self.texts_truncated = 0

    @property
    def dim(self) -> int:
        """Embedding size, twice the hidden size."""
        return self.net.dim

    @torch.no_grad()
    def embed(self, texts: list[str], *, progress: bool = False) -> Array:
        """Sentence states (n, dim) of distinct texts."""
        self.net.eval()
        device = next(self.net.parameters()).device
        vectors, ids, cut = word_ids(self.table, texts, self.max_length)
        lengths = np.array([len(row) for row in ids])
        self.texts_truncated += cut
        self.texts_unknown += int((lengths == 0).sum())
        words = torch.from_numpy(np.concatenate([vectors, np.zeros((1, self.table.dim), np.float32)])).to(device)
        X = np.zeros((len(texts), self.dim), np.float32)
        with progress_bar(total=len(texts), desc="InferSent", show=progress) as bar:
            for batch in pack_by_tokens(lengths, TOKEN_BUDGET):
                table, counts = padded([ids[i] for i in batch])
                X[batch] = self.net(words[table.to(device)], counts).cpu().numpy()
                bar.update(len(batch))
        return X
