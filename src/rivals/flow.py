"""The cloud of sentence states made round: by an invertible network, BERT-flow, or a linear map,
whitening.

A flow z = f(x) is a chain of (actnorm, LU linear, affine coupling) steps, fitted by maximum
likelihood, log p(x) = log N(f(x); 0, I) + log|det ∂f/∂x|. The design of the steps is Glow's without
images; the widths are ours.

References: Li et al. (2020), BERT-flow; Kingma and Dhariwal (2018), Glow; Su et al. (2021),
Whitening (method-flow, method-whitening in the book).
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.decomposition import PCA
from torch import Tensor, nn

from repro.data.sampling import epoch_order
from repro.models.device import default_device
from repro.seeding import derive_seed, make_rng
from repro.training.end_to_end import count_steps
from repro.training.loop import LoopConfig, train
from repro.training.state import History
from repro.types import Array, InputError, check_embeddings

SCALE_BOUND = 2.0
"""Largest log-scale of a coupling: no single step can blow a direction up."""
FLAT = 1e-10
"""Directions whose variance is below this share of the largest hold rounding, not text."""


class ActNorm(nn.Module):
    """The map y = (x − b)·e^s, per coordinate; it starts so that one batch has mean 0 and variance
    1.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(dim))
        self.log_scale = nn.Parameter(torch.zeros(dim))

    @torch.no_grad()
    def start_from(self, x: Tensor) -> None:
        """Standardise this batch; a constant coordinate is only centred."""
        deviation = x.std(0, correction=0)
        log_scale = -deviation.clamp_min(1e-6).log()
        self.shift.copy_(x.mean(0))
        self.log_scale.copy_(torch.where(deviation > 1e-6, log_scale, 0.0))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Image y (B, d) and log-determinant (B,)."""
        y = (x - self.shift) * self.log_scale.exp()
        return y, self.log_scale.sum().expand(len(x))


class LULinear(nn.Module):
    """The map y = W x with W = P L (U + diag(sign·e^s)): the log-determinant is Σs.

    Starts as a random rotation.
    """

    permutation: Tensor
    sign: Tensor

    def __init__(self, dim: int, seed: int) -> None:
        super().__init__()
        normal = make_rng(seed, "flow rotation", dim).standard_normal((dim, dim))
        rotation, _ = np.linalg.qr(normal)
        P, L, U = torch.linalg.lu(torch.from_numpy(rotation))
        self.register_buffer("permutation", P.float())
        self.register_buffer("sign", U.diagonal().sign().float())
        self.lower = nn.Parameter(L.tril(-1).float())
        self.upper = nn.Parameter(U.triu(1).float())
        self.log_scale = nn.Parameter(U.diagonal().abs().log().float())

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Image y (B, d) and log-determinant (B,)."""
        L = self.lower.tril(-1) + torch.eye(len(self.sign), device=self.sign.device)
        U = self.upper.triu(1) + torch.diag(self.sign * self.log_scale.exp())
        y = x @ (self.permutation @ L @ U).T
        return y, self.log_scale.sum().expand(len(x))


class AffineCoupling(nn.Module):
    """The first half a stays; the second becomes b·e^s(a) + t(a). Starts as the identity."""

    def __init__(self, dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.kept = dim // 2
        last = nn.Linear(hidden_dim, 2 * (dim - self.kept))
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.net = nn.Sequential(nn.Linear(self.kept, hidden_dim), nn.ReLU(), last)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Image y (B, d) and log-determinant (B,)."""
        a = x[:, : self.kept]
        b = x[:, self.kept :]
        raw, shift = self.net(a).chunk(2, dim=-1)
        log_scale = SCALE_BOUND * torch.tanh(raw / SCALE_BOUND)
        y = torch.cat([a, b * log_scale.exp() + shift], dim=-1)
        return y, log_scale.sum(-1)


@dataclass(frozen=True)
class FlowConfig:
    """Sizes and schedule; Adam's rate decays linearly to 0."""

    depth: int = 8  # Steps of the flow
    hidden_dim: int = 512  # Width inside a coupling
    epochs: int = 10
    batch_size: int = 128
    learning_rate: float = 1e-3
    seed: int = 0


class Flow(nn.Module):
    """Steps of actnorm, LU linear and affine coupling on x of at least two coordinates; untrained,
    a rotation.
    """

    def __init__(self, dim: int, config: FlowConfig) -> None:
        super().__init__()
        steps: list[nn.Module] = []
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(config.seed, "flow", dim))
            for step in range(config.depth):
                rotation = LULinear(dim, derive_seed(config.seed, "step", step))
                steps += [ActNorm(dim), rotation, AffineCoupling(dim, config.hidden_dim)]
        self.steps = nn.ModuleList(steps)

    @torch.no_grad()
    def start_from(self, x: Tensor) -> None:
        """Let every actnorm standardise what reaches it from this batch (B, d)."""
        for step in self.steps:
            if isinstance(step, ActNorm):
                step.start_from(x)
            x = step(x)[0]

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Image z (B, d) and the log-determinant of ∂z/∂x (B,)."""
        log_det = x.new_zeros(len(x))
        for step in self.steps:
            x, change = step(x)
            log_det = log_det + change
        return x, log_det

    @torch.no_grad()
    def transform(self, X: Array) -> Array:
        """Images z of states X (n, d), numpy to numpy, 4,096 rows at a time."""
        rows = torch.from_numpy(np.ascontiguousarray(X, np.float32))
        device = next(self.parameters()).device
        images = [self(some.to(device))[0].cpu().numpy() for some in rows.split(4096)]
        return np.concatenate(images)


def negative_log_likelihood(flow: Flow, x: Tensor) -> Tensor:
    """Mean over the batch of (d/2)·ln 2π + ‖z‖²/2 − log|det ∂z/∂x|, in nats."""
    z, log_det = flow(x)
    constant = 0.5 * x.shape[1] * math.log(2 * math.pi)
    return (0.5 * z.square().sum(-1) - log_det).mean() + constant


def fit_flow(X: Array, config: FlowConfig) -> tuple[Flow, History]:
    """A flow that makes X (n, D), at least one batch, as likely as it can under a standard normal
    z.
    """
    X = np.ascontiguousarray(check_embeddings(X), np.float32)
    rows = torch.from_numpy(X).to(default_device())
    steps = count_steps(config, len(rows), "states")
    flow = Flow(rows.shape[1], config).to(rows.device)
    # All rows, not one batch: with few rows some coordinate may be constant in the first
    flow.start_from(rows)

    def loss_at(step: int) -> Tensor:
        epoch, position = divmod(step, len(rows) // config.batch_size)
        order = epoch_order(len(rows), seed=config.seed, epoch=epoch)
        start = position * config.batch_size
        batch = order[start : start + config.batch_size]
        return negative_log_likelihood(flow, rows[torch.from_numpy(batch)])

    return flow, train(flow, loss_at, LoopConfig.of(config, steps=steps), description="flow")


def fit_whitening(X: Array) -> dict[str, Array]:
    """The `mean` μ (D,) of X (n, D) and the `matrix` UΛ^(−1/2) (D, dim) of every direction that
    varies, in float64.

    Directions fall in variance, so that smaller sizes are column prefixes; their largest entries
    are positive.
    """
    X = check_embeddings(X).astype(np.float64)
    if (X[0] == X).all():
        raise InputError(
            f"all {len(X)} rows of X are equal: nothing varies, so nothing can be whitened"
        )
    fit = PCA(svd_solver="covariance_eigh").fit(X)
    variance = fit.explained_variance_ * (len(X) - 1) / len(X)
    vary = int((variance > FLAT * variance[0]).sum())
    deviations = np.sqrt(variance[:vary, None])
    return {"mean": fit.mean_, "matrix": (fit.components_[:vary] / deviations).T}


def whitened(X: Array, mean: Array, matrix: Array) -> Array:
    """(h − μ) U Λ^(−1/2) of rows X (n, D): (n, dim) float32."""
    return ((X.astype(np.float64) - mean) @ matrix).astype(np.float32)
