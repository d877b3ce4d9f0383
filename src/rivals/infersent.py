"""InferSent: a bidirectional LSTM over fixed word vectors, maximum over tokens, trained on
entailment pairs.

By SGD whose rate shrinks where the held-out accuracy falls (Conneau et al., 2017; method-infersent
in the book).
"""

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from repro.data.sampling import bucketed_batches
from repro.losses.nli import CLASSES
from repro.models.device import default_device
from repro.models.layerless import LayerlessEncoder
from repro.models.packing import pack_by_tokens
from repro.seeding import derive_seed, make_rng
from repro.sets import LabelledPairs
from repro.terminal import progress_bar
from repro.training.loop import TrainingDiverged
from repro.training.nli import label_ids
from repro.types import Array, InputError
from rivals.static import WordTable, tokens_of

TOKEN_BUDGET = 4096
"""Padded words per batch when encoding."""
LONGEST = 512
"""Words kept of a text that is encoded."""


def word_ids(table: WordTable, texts: Sequence[str], max_length: int) -> tuple[Array, list[Tensor]]:
    """Vectors (V, word_dim) of the known words of some texts, and each text as rows of them."""
    index: dict[str, int] = {}
    tokens = (tokens_of(text, table)[:max_length] for text in texts)
    rows = [[index.setdefault(token, len(index)) for token in row] for row in tokens]
    vectors, known = table.lookup(list(index))
    renumbered = np.where(known, np.cumsum(known) - 1, -1)
    ids = [renumbered[np.array(row, dtype=np.int64)] for row in rows]
    return vectors[known], [torch.from_numpy(row[row >= 0]) for row in ids]


def padded(ids: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Rows of word numbers as one table (B, T ≥ 1) padded with 0, and their lengths (B,)."""
    lengths = torch.tensor([len(row) for row in ids])
    table = pad_sequence(list(ids), batch_first=True)
    return table if table.shape[1] else table.new_zeros(len(ids), 1), lengths


class BiLSTMMax(nn.Module):
    """Word vectors (B, T, word_dim) to sentence states (B, 2·hidden_dim): the maximum of each unit
    over the words.
    """

    def __init__(self, word_dim: int, hidden_dim: int, *, seed: int = 0) -> None:
        super().__init__()
        self.dim = 2 * hidden_dim
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(seed, "infersent", hidden_dim))
            self.lstm = nn.LSTM(word_dim, hidden_dim, batch_first=True, bidirectional=True)

    def forward(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Sentence states (B, dim); zero where a text has no word at all."""
        # Packed, so that the backward direction starts at a text's own end and padding plays no
        # part
        packed = pack_padded_sequence(
            vectors,
            lengths.clamp_min(1).cpu(),
            batch_first=True,
            enforce_sorted=False,
        )
        states, _ = pad_packed_sequence(
            self.lstm(packed)[0],
            batch_first=True,
            padding_value=-torch.inf,
        )
        return states.amax(1) * (lengths > 0).unsqueeze(-1).to(states)


class InferSent(LayerlessEncoder):
    """The trained network and the word vectors it reads; unknown words are left out, as in
    training.
    """

    def __init__(self, net: BiLSTMMax, table: WordTable) -> None:
        self.net, self.table, self.dim = net, table, net.dim

    @torch.no_grad()
    def embed(self, texts: list[str], *, progress: bool = False) -> Array:
        """Sentence states (n, dim) of distinct texts."""
        self.net.eval()
        device = next(self.net.parameters()).device
        vectors, ids = word_ids(self.table, texts, LONGEST)
        lengths = np.array([len(row) for row in ids])
        words = torch.from_numpy(
            np.concatenate([vectors, np.zeros((1, self.table.dim), np.float32)])
        ).to(device)
        X = np.zeros((len(texts), self.dim), np.float32)
        with progress_bar(total=len(texts), desc="InferSent", show=progress) as bar:
            for batch in pack_by_tokens(lengths, TOKEN_BUDGET):
                table, counts = padded([ids[i] for i in batch])
                X[batch] = self.net(words[table.to(device)], counts).cpu().numpy()
                bar.update(len(batch))
        return X


@dataclass(frozen=True)
class InferSentConfig:
    """Sizes and schedule; the published ones, except where stated."""

    hidden_dim: int = 2048  # Of the states in each direction
    classifier_dim: int = 512
    epochs: int = 20
    batch_size: int = 64
    learning_rate: float = 0.1
    decay: float = 0.99  # Factor of the rate after every epoch
    # Divisor of the rate after an epoch that did not improve the held-out accuracy
    shrink: float = 5.0
    smallest_rate: float = 1e-5  # Training ends when the rate falls below it
    clip_norm: float = 5.0
    max_length: int = 64  # Words kept of a training text
    dev_share: float = 0.1  # Held out of the pairs (published: SNLI's own dev set)
    seed: int = 0


def train_infersent(
    pairs: LabelledPairs,
    table: WordTable,
    config: InferSentConfig,
) -> tuple[InferSent, pd.DataFrame]:
    """Train network and classifier together on fixed vectors; the weights of the best held-out
    accuracy are kept.

    Beside the encoder it gives mean `loss`, held-out `accuracy` and learning `rate` of every epoch.
    InputError for unsuitable labels or too few pairs; TrainingDiverged if the loss is not finite.
    """
    labels = label_ids(pairs).numpy()
    dev, train = _held_out(pairs, config)
    vectors, ids = word_ids(table, [*pairs.texts1, *pairs.texts2], config.max_length)
    if not len(vectors):
        raise InputError(f"no word of {pairs.name} is known to the table: other vectors are needed")
    device = default_device()
    words = torch.from_numpy(vectors).to(device)
    net = BiLSTMMax(table.dim, config.hidden_dim, seed=config.seed)
    module = nn.ModuleDict({"net": net, "head": _classifier(net, config)}).to(device)
    first, second = ids[: len(pairs)], ids[len(pairs) :]
    lengths = np.array([len(own) for own in ids]).reshape(2, -1).max(axis=0)  # Of the longer side

    def logits(rows: np.ndarray) -> Tensor:
        numbers, counts = padded([first[i] for i in rows] + [second[i] for i in rows])
        u, v = net(words[numbers.to(device)], counts).split(len(rows))
        return module["head"](torch.cat([u, v, (u - v).abs(), u * v], dim=-1))

    history, best = list[tuple[float, float, float]](), deepcopy(module.state_dict())
    optimiser = torch.optim.SGD(module.parameters(), lr=config.learning_rate)
    batches_of = partial(bucketed_batches, lengths[train], config.batch_size, seed=config.seed)
    dev = dev[np.argsort(lengths[dev], kind="stable")]
    steps = config.epochs * (len(train) // config.batch_size)
    bar = progress_bar(total=steps, desc="InferSent", show=True, mininterval=0.5)
    for epoch in range(config.epochs):
        rate = optimiser.param_groups[0]["lr"]
        if rate < config.smallest_rate:
            break
        module.train()
        losses = []
        for batch in batches_of(epoch=epoch):
            targets = torch.from_numpy(labels[train[batch]]).to(device)
            loss = nn.functional.cross_entropy(logits(train[batch]), targets)
            losses.append(loss.item())
            if not math.isfinite(losses[-1]):
                which = f"InferSent's loss is {losses[-1]} in epoch {epoch}"
                raise TrainingDiverged(f"{which}: lower the learning rate")
            _descend(loss, module, optimiser, config.clip_norm)
            bar.update()
        module.eval()
        score = _accuracy(logits, dev, labels)
        improved = score > max((past for _, past, _ in history), default=-math.inf)
        history.append((float(np.mean(losses)), score, rate))
        if improved:
            best = deepcopy(module.state_dict())
        optimiser.param_groups[0]["lr"] = rate * config.decay / (1.0 if improved else config.shrink)
        bar.set_postfix_str(f"loss {history[-1][0]:.3f}, dev {score:.3f}", refresh=False)
    bar.close()
    module.load_state_dict(best)
    return InferSent(net, table), pd.DataFrame(history, columns=["loss", "accuracy", "rate"])


def _held_out(pairs: LabelledPairs, config: InferSentConfig) -> tuple[np.ndarray, np.ndarray]:
    """Which pairs are held out, and which teach."""
    held_out = max(1, round(config.dev_share * len(pairs)))
    order = make_rng(config.seed, "infersent dev").permutation(len(pairs))
    dev, train = order[:held_out], order[held_out:]
    if len(train) < config.batch_size:
        raise InputError(
            f"{len(train)} pairs beside {held_out} held-out ones do not fill one batch of "
            f"{config.batch_size}"
        )
    return dev, train


def _descend(
    loss: Tensor,
    module: nn.Module,
    optimiser: torch.optim.Optimizer,
    clip_norm: float,
) -> None:
    """Move the parameters once, down the gradient of a loss."""
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(module.parameters(), clip_norm)
    optimiser.step()


def _classifier(net: BiLSTMMax, config: InferSentConfig) -> nn.Sequential:
    """Classes of pairs from four features of each unit, untrained."""
    width = config.classifier_dim
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(config.seed, "infersent classifier"))
        hidden = nn.Linear(4 * net.dim, width)
        return nn.Sequential(hidden, nn.Tanh(), nn.Linear(width, CLASSES))


@torch.no_grad()
def _accuracy(
    logits: Callable[[np.ndarray], Tensor],
    rows: np.ndarray,
    labels: np.ndarray,
) -> float:
    """Share of some pairs that are classified rightly."""
    groups = np.array_split(rows, math.ceil(len(rows) / 256))
    guesses = [logits(group).argmax(-1).cpu().numpy() for group in groups]
    return float((np.concatenate(guesses) == labels[rows]).mean())
