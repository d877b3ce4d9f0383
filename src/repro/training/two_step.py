"""Two-step training of a resized pooler (Wang et al., 2023, Algorithm 1; method-two-step in the
book).

Step 1 replaces the encoder that was trained together with a narrow pooler by the best encoder of
all candidate dims. Step 2 trains the poolers again on that encoder, frozen. Since the encoder does
not move, its dropout views are computed once and every (dim, learning rate) trains on them side by
side.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from repro.data.sampling import epoch_order
from repro.losses import duplicate_mask, info_nce, softmax_nli
from repro.models import Pooler, SentenceEncoder
from repro.models.packing import merge_equal
from repro.seeding import derive_seed, make_rng
from repro.sets import LabelledPairs
from repro.settings import StepTwoConfig
from repro.training.end_to_end import count_steps
from repro.training.loop import LoopConfig, TrainingDiverged, train
from repro.training.nli import label_ids, nli_head
from repro.training.state import History
from repro.types import Array, InputError, check_same_length, one_of

SELECT_BY = ("encoder", "pooler_max", "pair", "oracle")
"""Rules of choosing opt: `encoder` is Algorithm 1, line 5, `pooler_max` Table 1's caption. `pair`
takes encoder_d' + pooler_d, so that opt depends on d; `oracle` is `pair` on the test set, a
diagnostic that no reported number may use.
"""
BATCH = 256
"""Texts that pass the encoder at once, under one draw of dropout masks."""
PoolerScore = Callable[[Pooler], float]  # Dev Spearman of a pooler on the frozen encoder


def choose(scores: Mapping[int, float]) -> int:
    """The candidate with the highest score, which must be finite; the larger dim wins a tie."""
    bad = [dim for dim, score in scores.items() if not np.isfinite(score)]
    if bad:
        raise InputError(
            f"the score of candidate {bad[0]} is {scores[bad[0]]}: is the validation set constant?"
        )
    return max(scores, key=lambda dim: (scores[dim], dim))


def select(
    encoder_scores: Mapping[int, float],
    grid: Mapping[tuple[int, int], float],
    dim: int,
    *,
    select_by: str = "encoder",
) -> int:
    """Opt for one target dim, by a rule of `SELECT_BY`.

    Both scores are on dev, for `oracle` on test: of each encoder alone (readout h), by the dim it
    was trained with, and of encoder_i with pooler_j, by (i, j).
    """
    one_of(select_by, SELECT_BY, "select_by")
    if select_by == "encoder":
        return choose(encoder_scores)
    pooler = max(encoder_scores) if select_by == "pooler_max" else dim
    return choose({i: grid[i, pooler] for i in encoder_scores})


def splice(encoder: SentenceEncoder, pooler: Pooler) -> SentenceEncoder:
    """Step 1, encoder_opt with pooler_d (Algorithm 1, line 7)."""
    if pooler.hidden_dim != encoder.hidden_dim:
        raise InputError(
            f"the pooler reads {pooler.hidden_dim} dims, the encoder gives {encoder.hidden_dim}"
        )
    return SentenceEncoder(encoder.backbone, pooling=encoder.pooling, pooler=pooler)


@torch.no_grad()
def dropout_views(
    encoder: SentenceEncoder,
    texts: Sequence[str],
    *,
    views: int,
    seed: int,
    max_length: int = 32,
) -> Array:
    """States h (views, n, hidden_dim) float32 of every text under `views` dropout masks, the
    encoder in train mode.
    """
    ids, _ = encoder.backbone.tokenize(texts, max_length)
    order = np.argsort([len(row) for row in ids], kind="stable")
    out = np.empty((views, len(ids), encoder.hidden_dim), np.float32)
    was_training = encoder.training
    encoder.train()
    for view in range(views):
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            torch.manual_seed(derive_seed(seed, "dropout view", view, start))
            tokens, mask = encoder.padded([ids[i] for i in rows])
            (states,) = encoder.pooled(tokens, mask)
            out[view, rows] = states.float().cpu().numpy()
    encoder.train(was_training)
    return out


@dataclass(frozen=True)
class PoolerRun:
    """Step 2 for one dim: the pooler kept, and how it was found."""

    pooler: Pooler
    learning_rate: float
    step: int
    dev_before: float
    dev_after: float


def train_poolers(
    views: Array,
    texts: Sequence[str],
    poolers: Sequence[Pooler],
    dev_score: PoolerScore,
    config: StepTwoConfig,
) -> list[PoolerRun]:
    """Step 2 (Algorithm 1, line 8) for several poolers, left as they are, and learning rates:
    together as one by one.

    `views` are states (R, n, hidden_dim) of the n texts under the frozen encoder; equal texts are
    no negatives. Step 0 counts: the dev score never falls.
    """
    check_same_length(texts=texts, views=views[0])
    (count, n, _), device = views.shape, poolers[0].linear.weight.device
    steps = count_steps(config, n)
    keys = torch.from_numpy(merge_equal(texts)[1]).to(device)
    before = [dev_score(pooler) for pooler in poolers]
    banks = [_Bank(start_of(pooler, config), config, steps, dev_score) for pooler in poolers]
    for step in range(steps):
        running = [bank for bank in banks if (bank.misses < config.patience).any()]
        if not running:
            break
        first, second, members = two_of(count, n, step, config)
        h1, h2 = (torch.from_numpy(views[v, members]).to(device) for v in (first, second))
        mask = duplicate_mask(keys[members])
        checking = step + 1 == steps or (
            config.check_every and (step + 1) % config.check_every == 0
        )
        for bank in running:
            bank.step(h1, h2, mask, step)
            if checking:
                bank.check(step + 1)
    return [bank.result(dev) for bank, dev in zip(banks, before, strict=True)]


def start_of(pooler: Pooler, config: StepTwoConfig) -> Pooler:
    """A copy of the pooler, with fresh weights for the ablation of starting step 2 from none."""
    start = deepcopy(pooler)
    return (
        start.initialise(derive_seed(config.seed, "step 2 restart"))
        if config.start == "random"
        else start
    )


def two_of(
    count: int,
    n: int,
    step: int,
    config: StepTwoConfig,
) -> tuple[int, int, NDArray[np.int64]]:
    """Which two of `count` views, and which of n rows, step `step` uses."""
    epoch, position = divmod(step, n // config.batch_size)
    start = position * config.batch_size
    members = epoch_order(n, seed=config.seed, epoch=epoch)[start : start + config.batch_size]
    first, second = make_rng(config.seed, "views", step).choice(count, 2, replace=False)
    return int(first), int(second), members


class _Bank:
    """One pooler under every learning rate: weights stacked to (rates, dim, hidden_dim)."""

    def __init__(
        self,
        start: Pooler,
        config: StepTwoConfig,
        steps: int,
        dev_score: PoolerScore,
    ) -> None:
        self.template = start
        self.config = config
        self.steps = steps
        self.dev_score = dev_score
        count = len(config.learning_rates)
        self.rates = torch.tensor(config.learning_rates).to(start.linear.weight.device)
        stacked = [torch.stack([p.detach()] * count) for p in start.parameters()]
        self.first = [torch.zeros_like(p) for p in stacked]
        self.second = [torch.zeros_like(p) for p in stacked]
        self.best = [start] * count
        self.parameters = [p.requires_grad_() for p in stacked]
        self.best_score = np.full(count, -np.inf)
        self.best_step, self.misses = np.zeros((2, count), int)
        self.check(0)

    def _project(self, h: Tensor) -> Tensor:
        z = torch.einsum("bh,rdh->rbd", h, self.parameters[0])  # (rates, B, dim)
        if len(self.parameters) > 1:
            z = z + self.parameters[1].unsqueeze(1)
        return torch.tanh(z) if self.template.activation == "tanh" else z

    def step(self, h1: Tensor, h2: Tensor, mask: Tensor, step: int) -> None:
        """One Adam step of every learning rate; a stopped one moves on beside the others, and its
        best is kept.
        """
        z1, z2 = self._project(h1), self._project(h2)
        losses = [
            info_nce(a, b, temperature=self.config.temperature, mask=mask)
            for a, b in zip(z1, z2, strict=True)
        ]
        total = torch.stack(losses).sum()
        if not torch.isfinite(total):
            raise TrainingDiverged(
                f"step 2, dim {self.template.dim}: the loss is not finite at step {step}"
            )
        gradients = torch.autograd.grad(total, self.parameters)
        of_each = torch.stack([g.flatten(1).norm(dim=1) for g in gradients])
        norms = of_each.norm(dim=0)  # (rates,)
        scale = ((self.config.clip_norm or float("inf")) / (norms + 1e-6)).clamp(max=1.0)
        rate = self.rates * (self.steps - step) / self.steps  # Linear decay
        with torch.no_grad():
            for p, g, m, v in zip(self.parameters, gradients, self.first, self.second, strict=True):
                shape = (-1, *[1] * (p.ndim - 1))
                g = g * scale.view(shape)
                m.lerp_(g, 0.1)
                v.lerp_(g.square(), 0.001)
                m_hat = m / (1 - 0.9 ** (step + 1))
                v_hat = v / (1 - 0.999 ** (step + 1))
                p -= rate.view(shape) * m_hat / (v_hat.sqrt() + 1e-8)

    def check(self, step: int) -> None:
        """Score every learning rate that is still running, and keep what is better."""
        for r in np.flatnonzero(self.misses < self.config.patience).tolist():
            pooler = deepcopy(self.template)
            pooler.load_state_dict(
                {name: p[r] for name, p in zip(pooler.state_dict(), self.parameters, strict=True)}
            )
            score = self.dev_score(pooler)
            if score > self.best_score[r]:
                self.best[r], self.best_score[r] = pooler, score
                self.best_step[r], self.misses[r] = step, 0
            else:
                self.misses[r] += 1

    def result(self, dev_before: float) -> PoolerRun:
        """The best learning rate's best weights."""
        r = int(np.argmax(self.best_score))
        rate, score = self.config.learning_rates[r], float(self.best_score[r])
        return PoolerRun(self.best[r], rate, int(self.best_step[r]), dev_before, score)


def train_nli_pooler(
    views: Array,
    pairs: LabelledPairs,
    pooler: Pooler,
    head: nn.Linear,
    dev_score: PoolerScore,
    config: StepTwoConfig,
    *,
    difference: str = "abs",
    description: str = "training",
) -> PoolerRun:
    """Step 2 under the softmax objective: a pooler and its classifier, which are left as they are.

    `views` are those of the distinct texts of all premises, then hypotheses, in order of first
    appearance. Messages call the training by its `description`.
    """
    texts, rows = merge_equal([*pairs.texts1, *pairs.texts2])
    check_same_length(views=views[0], texts=texts)
    left, right = torch.from_numpy(rows).chunk(2)
    steps = count_steps(config, len(pairs), "pairs")
    device = pooler.linear.weight.device
    labels, states = label_ids(pairs).to(device), torch.from_numpy(views)
    dev_before = dev_score(pooler)

    def run(rate: float) -> tuple[History, Pooler]:
        mine, own_head = start_of(pooler, config), deepcopy(head)
        if config.start == "random":
            own_head = nli_head(pooler.dim, derive_seed(config.seed, "step 2 restart"))

        def loss_at(step: int) -> Tensor:
            first, second, members = two_of(len(views), len(pairs), step, config)
            u, v = (
                mine(states[i, side[members]].to(device))
                for i, side in ((first, left), (second, right))
            )
            return softmax_nli(
                u,
                v,
                labels[members],
                own_head.weight,
                own_head.bias,
                difference=difference,
            )

        module = nn.ModuleDict({"pooler": mine, "head": own_head})
        loop = LoopConfig.of(config, steps=steps, learning_rate=rate, check_first=True)
        how: dict[str, Any] = {"description": description, "progress": False}
        return train(module, loss_at, loop, check=lambda: dev_score(mine), **how), mine

    runs = {rate: run(rate) for rate in config.learning_rates}
    best = max(runs, key=lambda rate: runs[rate][0].best_score)
    history, trained = runs[best]
    return PoolerRun(trained, best, history.best_step, dev_before, history.best_score)
