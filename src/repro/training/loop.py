"""One training loop for everything; it knows no science, only `loss_at(step) -> loss`.

A step is a pure function of (seed, step number, weights, optimiser state): the random stream is
reseeded from the step number and the batch is chosen by it. A killed run therefore resumes to the
same bytes.
"""

import logging
import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from accelerate import PartialState
from torch import Tensor, nn
from torch.nn.utils import vector_to_parameters
from torch.optim import AdamW, Optimizer

from repro.seeding import derive_seed
from repro.terminal import progress_bar
from repro.training.state import History, Weights, load_state, save_state
from repro.types import InputError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LoopConfig:
    """How long and how fast to train."""

    steps: int
    learning_rate: float = 1e-5  # Peak; decays linearly to 0
    warmup: float = 0.0  # Share of the steps over which the learning rate rises from 0
    weight_decay: float = 0.0  # AdamW's, on matrices only
    betas: tuple[float, float] = (0.9, 0.999)  # AdamW's moment decays
    clip_norm: float = 1.0  # Largest gradient norm; 0 leaves gradients as they are
    check_every: int = 0  # Steps between two calls of `check`; 0 checks at the end only
    # Also score the untrained weights, so that training never returns something worse
    check_first: bool = False
    patience: int = 0  # Checks without gain after which training stops; 0 never stops early
    save_every: int = 0  # Steps between two resumable states; 0 saves none
    bf16: bool = False  # Bfloat16 matrix products (automatic mixed precision)
    seed: int = 0

    @classmethod
    def of(cls, config: Any, **others: Any) -> "LoopConfig":
        """What a dataclass of settings says under the same names, and others."""
        shared = {f.name: getattr(config, f.name) for f in fields(cls) if hasattr(config, f.name)}
        return cls(**shared | others)


class TrainingDiverged(InputError):
    """The loss became NaN or infinite."""


def train(
    module: nn.Module,
    loss_at: Callable[[int], Tensor],
    config: LoopConfig,
    *,
    check: Callable[[], float] | None = None,
    state_path: Path | None = None,
    description: str = "training",
    progress: bool = True,
    rates: Mapping[str, float] | None = None,
) -> History:
    """Minimise `loss_at(step)`, a function of the step alone, over the parameters of `module` that
    require gradients.

    On return the weights are those of the best `check`, where higher is better, or the last ones
    without a check. A resumable state at `state_path` is continued. `rates` are factors of the
    learning rate, by the start of a parameter's name; all others have factor 1.

    Raises:
        TrainingDiverged: when the loss is NaN or infinite; names the step.
        InputError: when `state_path` belongs to another configuration.
    """
    parallel, optimiser = PartialState(), _make_optimiser(module, config, rates or {})
    history, best = load_state(state_path, module, optimiser, config)
    if step := history.resumed_at:
        log.info("resuming %s at step %d of %d", description, step, config.steps)
    started = perf_counter() - history.seconds

    if check and config.check_first and step == 0:
        best = _best_weights(step, check(), module, history, best)
    pending: list[Tensor] = []
    bar = progress_bar(
        total=config.steps, initial=step, desc=description, show=progress, mininterval=0.5
    )
    # Patience may be exhausted from the start: a run can be killed after the check that ended it
    while step < config.steps and not _exhausted(history, config):
        pending.append(_take_step(step, module, loss_at, optimiser, config))
        step += 1
        bar.update()
        is_last = step == config.steps
        checking = check is not None and (is_last or _is_due(config.check_every, step))
        # After the last step the caller has the weights: nothing is left to go on with
        saving = state_path is not None and not is_last and _is_due(config.save_every, step)
        # Reading a loss waits for the accelerator, so losses are read in groups there
        if parallel.device.type == "cpu" or len(pending) >= 25 or checking or saving:
            _record(pending, history, description)
            bar.set_postfix_str(f"loss {history.losses[-1]:.4f}", refresh=False)
        if check and checking:
            best = _best_weights(step, check(), module, history, best)
        history.seconds = perf_counter() - started
        if state_path and saving and parallel.is_main_process:
            save_state(state_path, module, optimiser, best, history, config)
    bar.close()
    if best is not None:
        module.load_state_dict(best)
    module.eval()
    return history


def schedule(step: int, config: LoopConfig) -> float:
    """Share of the peak learning rate at `step`: linear rise over the warm-up, then linear decay to
    0.
    """
    warm = config.warmup * config.steps
    if step < warm:
        return min(1.0, (step + 1) / warm)
    return (config.steps - step) / max(1.0, config.steps - warm)


def _take_step(
    step: int,
    module: nn.Module,
    loss_at: Callable[[int], Tensor],
    optimiser: Optimizer,
    config: LoopConfig,
) -> Tensor:
    """Move the parameters once, down the gradient of the loss of a step, and return that loss."""
    parallel = PartialState()
    torch.manual_seed(derive_seed(config.seed, "step", step, parallel.process_index))
    module.train()
    cast: Any = (
        torch.autocast(parallel.device.type, torch.bfloat16) if config.bf16 else nullcontext()
    )
    with cast:
        loss = loss_at(step)
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    _average_gradients(module, parallel)
    if config.clip_norm:
        nn.utils.clip_grad_norm_(module.parameters(), config.clip_norm)
    for group in optimiser.param_groups:
        group["lr"] = group["factor"] * config.learning_rate * schedule(step, config)
    optimiser.step()
    return loss.detach()


def _is_due(every: int, step: int) -> bool:
    """Whether something is done after `step`: every so many steps, 0 for never."""
    return every != 0 and step % every == 0


def _best_weights(
    step: int,
    score: float,
    module: nn.Module,
    history: History,
    best: Weights | None,
) -> Weights | None:
    """Note the score of the weights after a step; a copy of them if it is the highest, else
    `best`.
    """
    history.checks.append((step, score))
    if score > history.best_score:
        history.best_step, history.best_score = step, score
        best = {name: value.detach().clone() for name, value in module.state_dict().items()}
    return best


def _make_optimiser(module: nn.Module, config: LoopConfig, rates: Mapping[str, float]) -> AdamW:
    """AdamW with a group for each (factor of the learning rate, decay of the weights)."""
    groups = defaultdict[tuple[float, float], list[nn.Parameter]](list)
    for name, p in module.named_parameters():
        if p.requires_grad:
            factor = next((rate for start, rate in rates.items() if name.startswith(start)), 1.0)
            groups[factor, config.weight_decay if p.ndim > 1 else 0.0].append(p)
    if not groups:
        raise InputError("nothing to train: every parameter is frozen")
    listed = [
        {"params": parameters, "factor": factor, "weight_decay": decay}
        for (factor, decay), parameters in groups.items()
    ]
    return AdamW(listed, lr=config.learning_rate, betas=config.betas, fused=True)


def _average_gradients(module: nn.Module, parallel: PartialState) -> None:
    """Mean over processes, in one transfer: the gradient of the mean of the processes' losses."""
    if parallel.num_processes == 1:
        return
    gradients = [p.grad for p in module.parameters() if p.grad is not None]
    flat = torch.cat([g.flatten() for g in gradients])
    torch.distributed.all_reduce(flat)
    vector_to_parameters(flat / parallel.num_processes, gradients)


def _record(pending: list[Tensor], history: History, description: str) -> None:
    values = torch.stack(pending).float().tolist()
    pending.clear()
    for value in values:
        if not math.isfinite(value):
            raise TrainingDiverged(
                f"{description}: the loss is {value} at step {len(history.losses)}: lower the "
                "learning rate, or look for empty texts in the data"
            )
        history.losses.append(value)


def _exhausted(history: History, config: LoopConfig) -> bool:
    stale = sum(step > history.best_step for step, _ in history.checks)
    return bool(config.patience) and stale >= config.patience
