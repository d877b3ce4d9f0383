"""Two-step training of a resized pooler (Wang et al., 2023, Algorithm 1; PROTOCOLS §3).

Step 1 replaces the encoder that was trained together with a narrow pooler by the best encoder of all
candidate dims. Step 2 trains the poolers again on that encoder, frozen. Since the encoder does not move,
its dropout views are computed once and every (dim, learning rate) trains on them side by side.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from repro.data.sampling import epoch_order
from repro.losses import info_nce
from repro.models import Pooler, SentenceEncoder
from repro.models.encoder import merge_equal
from repro.objectives import StepTwoConfig
from repro.seeding import derive_seed, make_rng
from repro.training.end_to_end import count_steps
from repro.training.loop import TrainingDiverged
from repro.types import Array, InputError, one_of

SELECT_BY = ("encoder", "pooler_max", "pair", "oracle")
"""`encoder`: Algorithm 1, line 5. `pooler_max`: Table 1's caption. `pair`: encoder_d' + pooler_d, so opt depends
on d. `oracle`: `pair` on the test set, a diagnostic that no reported number may use."""


def choose(scores: Mapping[int, float]) -> int:
    """The candidate with the highest score; the larger dim wins a tie.

    Raises:
        InputError: if there is no candidate, or a score is not finite.
    """
    if not scores:
        raise InputError("no candidate to choose from: give at least one dim")
    bad = [dim for dim, score in scores.items() if not np.isfinite(score)]
    if bad:
        raise InputError(f"the score of candidate {bad[0]} is {scores[bad[0]]}: is the validation set constant?")
    return max(scores, key=lambda dim: (scores[dim], dim))


def select(
    encoder_scores: Mapping[int, float], grid: Mapping[tuple[int, int], float], dim: int, *, select_by: str = "encoder"
) -> int:
    """Opt for one target dim.

    Args:
        encoder_scores: dev score of each encoder alone (readout h), by the dim it was trained with.
        grid: dev score of encoder_i with pooler_j, by (i, j); for `oracle`, test scores.
        dim: the target d.
        select_by: one of `SELECT_BY`.
    """
    one_of(select_by, SELECT_BY, "select_by")
    if select_by == "encoder":
        return choose(encoder_scores)
    pooler = max(encoder_scores) if select_by == "pooler_max" else dim
    return choose({i: grid[i, pooler] for i in encoder_scores})


def splice(encoder: SentenceEncoder, pooler: Pooler) -> SentenceEncoder:
    """encoder_opt with pooler_d: step 1 (Algorithm 1, line 7).

    Raises:
        InputError: if the pooler reads another hidden size.
    """
    if pooler.hidden_dim != encoder.hidden_dim:
        raise InputError(f"the pooler reads {pooler.hidden_dim} dims, the encoder gives {encoder.hidden_dim}")
    return SentenceEncoder(encoder.backbone, pooling=encoder.pooling, pooler=pooler)


@torch.no_grad()
def dropout_views(
    encoder: SentenceEncoder,
    texts: Sequence[str],
    *,
    views: int,
    seed: int,
    max_length: int = 32,
    batch_size: int = 256,
) -> Array:
    """States h of every text under `views` dropout masks: (views, n, hidden_dim) float32.

    The encoder gets no gradient but runs in train mode: in eval mode all views would coincide.

    Raises:
        InputError: for fewer than two views.
    """
    if views < 2:
        raise InputError(f"views is {views}: step 2 contrasts two dropout views, so at least 2 are needed")
    ids, _ = encoder.backbone.tokenize(texts, max_length)
    order = np.argsort([len(row) for row in ids], kind="stable")
    out = np.empty((views, len(ids), encoder.hidden_dim), np.float32)
    was_training = encoder.training
    encoder.train()
    for view in range(views):
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            torch.manual_seed(derive_seed(seed, "dropout view", view, start))
            out[view, rows] = encoder.pooled(*encoder.padded([ids[i] for i in rows]))[0].float().cpu().numpy()
    encoder.train(was_training)
    return out


@dataclass(frozen=True)
class PoolerRun:
    """Step 2 for one dim: the pooler kept, how it was found, and the dev score of every learning rate."""

    pooler: Pooler
    learning_rate: float
    step: int
    dev_before: float
    dev_after: float
    dev_by_rate: dict[float, float]


def train_poolers(
    views: Array,
    poolers: Sequence[Pooler],
    dev_score: Callable[[Pooler], float],
    config: StepTwoConfig,
    *,
    texts: Sequence[str] | None = None,
) -> list[PoolerRun]:
    """Step 2 (Algorithm 1, line 8) for several poolers and learning rates at once.

    Every (pooler, learning rate) has its own weights, clipping, Adam state and early stop, so that training
    them together gives what training them one by one would. Step 0 counts: the dev score never falls.

    Args:
        views: cached states (R, n, hidden_dim) of the frozen encoder.
        poolers: where each starts; they are left as they are.
        dev_score: dev Spearman of a pooler on the frozen encoder.
        config: schedule.
        texts: the n training texts, to keep equal ones out of the negatives.

    Raises:
        InputError: if the views do not fill one batch, or there is not one text per row of them.
        TrainingDiverged: when a loss is not finite.
    """
    if not poolers:
        raise InputError("no pooler to train: give at least one")
    count, n, _ = views.shape
    if texts is not None and len(texts) != n:
        raise InputError(f"lengths differ: {len(texts)} texts, views of {n}; expected one text per row")
    steps = count_steps(config, n)
    device = poolers[0].linear.weight.device
    keys = None if texts is None else torch.from_numpy(merge_equal(texts)[1])
    banks = [_Bank(pooler, config, steps) for pooler in poolers]
    if config.start == "random":
        for bank in banks:
            bank.restart(config.seed)
    before = [dev_score(pooler) for pooler in poolers]
    for bank in banks:
        bank.check(0, dev_score)
    for step in range(steps):
        first, second, members = two_of(count, n, step, config)
        h1, h2 = (torch.from_numpy(views[v, members]).to(device) for v in (first, second))
        mask = None
        if keys is not None:
            own = keys[torch.from_numpy(members)]
            mask = own.unsqueeze(1) == own.unsqueeze(0)
        for bank in banks:
            bank.step(h1, h2, mask, step)
        if step + 1 == steps or (config.check_every and (step + 1) % config.check_every == 0):
            for bank in banks:
                bank.check(step + 1, dev_score)
    return [bank.result(dev) for bank, dev in zip(banks, before, strict=True)]


def two_of(count: int, n: int, step: int, config: StepTwoConfig) -> tuple[int, int, NDArray[np.int64]]:
    """Which two of `count` views, and which of n rows, step `step` uses."""
    epoch, position = divmod(step, n // config.batch_size)
    start = position * config.batch_size
    members = epoch_order(n, seed=config.seed, epoch=epoch)[start : start + config.batch_size]
    first, second = make_rng(config.seed, "views", step).choice(count, 2, replace=False)
    return int(first), int(second), members


class _Bank:
    """One pooler under every learning rate: weights stacked to (rates, dim, hidden_dim)."""

    def __init__(self, pooler: Pooler, config: StepTwoConfig, steps: int) -> None:
        self.template, self.config, self.steps = pooler, config, steps
        rates = torch.tensor(config.learning_rates)
        self.rates = rates.to(pooler.linear.weight.device)
        parts = [pooler.linear.weight, pooler.linear.bias]
        self.parameters = [
            p.detach().unsqueeze(0).repeat(len(rates), *[1] * p.ndim).requires_grad_() for p in parts if p is not None
        ]
        self.first = [torch.zeros_like(p) for p in self.parameters]
        self.second = [torch.zeros_like(p) for p in self.parameters]
        self.best_score = np.full(len(rates), -np.inf)
        self.best_step = np.zeros(len(rates), int)
        self.best = [p.detach().clone() for p in self.parameters]
        self.misses = np.zeros(len(rates), int)

    def restart(self, seed: int) -> None:
        """Fresh weights: the ablation of starting step 2 from the current pooler."""
        fresh = _like(self.template).initialise(derive_seed(seed, "step 2 restart"))
        with torch.no_grad():
            for mine, p in zip(self.parameters, fresh.parameters(), strict=True):
                mine.copy_(p.unsqueeze(0).expand_as(mine))

    def _project(self, h: Tensor) -> Tensor:
        z = torch.einsum("bh,rdh->rbd", h, self.parameters[0])  # (rates, B, dim)
        if len(self.parameters) > 1:
            z = z + self.parameters[1].unsqueeze(1)
        return torch.tanh(z) if self.template.activation == "tanh" else z

    def step(self, h1: Tensor, h2: Tensor, mask: Tensor | None, step: int) -> None:
        """One Adam step of every learning rate; a stopped one keeps its best and moves no more."""
        z1, z2 = self._project(h1), self._project(h2)
        losses = [info_nce(a, b, temperature=self.config.temperature, mask=mask) for a, b in zip(z1, z2, strict=True)]
        total = torch.stack(losses).sum()
        if not torch.isfinite(total):
            raise TrainingDiverged(f"step 2, dim {self.template.dim}: the loss is not finite at step {step}")
        gradients = torch.autograd.grad(total, self.parameters)
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients]).norm(dim=0)  # (rates,)
        scale = ((self.config.clip_norm or float("inf")) / (norms + 1e-6)).clamp(max=1.0)
        rate = self.rates * (self.steps - step) / self.steps  # linear decay
        with torch.no_grad():
            for p, g, m, v in zip(self.parameters, gradients, self.first, self.second, strict=True):
                shape = (-1, *[1] * (p.ndim - 1))
                g = g * scale.view(shape)
                m.lerp_(g, 0.1)
                v.lerp_(g.square(), 0.001)
                m_hat, v_hat = m / (1 - 0.9 ** (step + 1)), v / (1 - 0.999 ** (step + 1))
                p -= rate.view(shape) * m_hat / (v_hat.sqrt() + 1e-8)

    def check(self, step: int, dev_score: Callable[[Pooler], float]) -> None:
        """Score every learning rate that is still running, and keep what is better."""
        for r in range(len(self.rates)):
            if self.misses[r] >= self.config.patience:
                continue
            score = dev_score(self._pooler(self.parameters, r))
            if score > self.best_score[r]:
                self.best_score[r], self.best_step[r], self.misses[r] = score, step, 0
                for kept, p in zip(self.best, self.parameters, strict=True):
                    kept[r] = p.detach()[r]
            else:
                self.misses[r] += 1

    def _pooler(self, parameters: Sequence[Tensor], r: int) -> Pooler:
        pooler = _like(self.template)
        with torch.no_grad():
            for mine, p in zip(pooler.parameters(), parameters, strict=True):
                mine.copy_(p[r])
        return pooler

    def result(self, dev_before: float) -> PoolerRun:
        """The best learning rate's best weights."""
        r = int(np.argmax(self.best_score))
        rates = self.config.learning_rates
        return PoolerRun(
            pooler=self._pooler(self.best, r),
            learning_rate=rates[r],
            step=int(self.best_step[r]),
            dev_before=dev_before,
            dev_after=float(self.best_score[r]),
            dev_by_rate=dict(zip(rates, self.best_score.tolist(), strict=True)),
        )


def _like(pooler: Pooler) -> Pooler:
    bias = pooler.linear.bias is not None
    fresh = Pooler(pooler.hidden_dim, pooler.dim, activation=pooler.activation, bias=bias, normalize=pooler.normalize)
    return fresh.to(pooler.linear.weight.device)
