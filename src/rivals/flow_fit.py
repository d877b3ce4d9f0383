"""Fitting a flow to sentence states by maximum likelihood (Li et al., 2020; PROTOCOLS §6)."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from repro.data.batching import epoch_order
from repro.models.pretrained import default_device
from repro.training.loop import History, LoopConfig, train
from repro.types import Array, InputError, check_dim, check_embeddings
from rivals.flow import Flow, negative_log_likelihood


@dataclass(frozen=True)
class FlowConfig:
    """Sizes and schedule; Adam's rate decays linearly to 0."""

    depth: int = 8
    hidden_dim: int = 512
    epochs: int = 10
    batch_size: int = 128
    learning_rate: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("depth", "hidden_dim", "epochs", "batch_size"):
            check_dim(getattr(self, name), what=name)
        if not self.learning_rate > 0:
            raise InputError(f"learning_rate is {self.learning_rate}: expected a number above 0")


def fit_flow(X: Array, config: FlowConfig, *, progress: bool = True) -> tuple[Flow, History]:
    """A flow that makes X (n, D) as likely as it can under a standard normal z.

    Raises:
        InputError: if X is empty or not finite, or does not fill one batch.
        TrainingDiverged: when the likelihood is not finite.
    """
    rows = torch.from_numpy(np.ascontiguousarray(check_embeddings(X), np.float32)).to(default_device())
    per_epoch = len(rows) // config.batch_size
    if per_epoch < 1:
        raise InputError(f"{len(rows)} states do not fill one batch of {config.batch_size}: fit on more texts")
    flow = Flow(rows.shape[1], depth=config.depth, hidden_dim=config.hidden_dim, seed=config.seed)
    flow.to(rows.device)

    @lru_cache(maxsize=1)
    def order(epoch: int) -> NDArray[np.int64]:
        return epoch_order(len(rows), seed=config.seed, epoch=epoch)

    def batch(step: int) -> Tensor:
        epoch, position = divmod(step, per_epoch)
        return rows[torch.from_numpy(order(epoch)[position * config.batch_size : (position + 1) * config.batch_size])]

    # all rows, not one batch: with few rows some coordinate may be constant in the first
    flow.start_from(rows)
    loop = LoopConfig(steps=config.epochs * per_epoch, learning_rate=config.learning_rate, seed=config.seed)
    history = train(
        flow, lambda step: negative_log_likelihood(flow, batch(step)), loop, description="flow", progress=progress
    )
    return flow, history
