"""What a causal decoder needs to serve as a backbone: attention both ways, positions from the mask, its final norm.

Li et al. (2025), §4.1, let Qwen1.5 and LLaMA2 see the whole sentence (PROTOCOLS §8). Nothing here is tied to one
architecture: attention says that it is causal by a flag, and a ready-made mask (B, 1, T, T) is used as it stands.
"""

import inspect
from collections.abc import Callable

import torch
from torch import Tensor, nn

from repro.types import InputError

FINAL_NORMS = ("last", "all", "none")
NORM_NAMES = ("norm", "ln_f", "final_layer_norm", "final_layernorm", "final_norm")
"""how decoders call the norm that follows their last block"""


def causal_parts(model: nn.Module) -> list[nn.Module]:
    """The attention modules that hide later tokens; none in an encoder such as BERT."""
    return [module for module in model.modules() if getattr(module, "is_causal", None) is True]


def takes_positions(model: nn.Module) -> bool:
    """Whether the network can be told each token's position."""
    return "position_ids" in inspect.signature(model.forward).parameters


def padding_only(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """A mask to add to attention scores, (B, T) to (B, 1, T, T): every token sees all that is not padding."""
    hidden = torch.where(mask.bool(), 0.0, torch.finfo(dtype).min).to(dtype)[:, None, None]  # (B, 1, 1, T)
    return hidden.expand(-1, 1, mask.shape[1], -1)


def positions(mask: Tensor) -> Tensor:
    """Each token's place in its text (B, T), from 0, on whichever side the padding is."""
    return (mask.cumsum(-1) - 1).clamp_min(0)


@torch.no_grad()
def check_sees_ahead(model: nn.Module, first_block: Callable[[Tensor], Tensor]) -> None:
    """Change the second of two tokens and look at the state of the first after one block.

    Args:
        model: the network that was told to see both ways.
        first_block: token ids (B, T) to the states (B, T, D) of its first block.

    Raises:
        InputError: if the state is the same: the network makes a mask of its own.
    """
    was_training = model.training
    model.eval()
    states = first_block(torch.tensor([[0, 1], [0, 2]], device=next(model.parameters()).device))  # (2, 2, D)
    model.train(was_training)
    if torch.equal(states[0, 0], states[1, 0]):
        raise InputError(
            f"{type(model).__name__} stays causal under bidirectional=True: expected a network whose attention takes a "
            "mask (B, 1, T, T), such as Llama or Qwen2"
        )


def norm_name(model: nn.Module, blocks: nn.ModuleList) -> str | None:
    """Dotted name of the norm after the last block, None where each block ends with its own, as in BERT."""
    for name, module in model.named_modules():
        if any(child is blocks for child in module.children()):
            for norm in NORM_NAMES:
                if isinstance(getattr(module, norm, None), nn.Module):
                    return f"{name}.{norm}".lstrip(".")
    return None
