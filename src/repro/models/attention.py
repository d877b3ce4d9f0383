"""Who sees whom in a causal decoder: those before a token, or the whole sentence.

Li et al. (2025), §4.1, let Qwen1.5 and LLaMA2 see the whole sentence (method-decoders in the book):
attention says that it is causal by a flag, and a ready-made mask (B, 1, T, T) is used as it stands.
"""

import inspect
from typing import Any

import torch
from torch import Tensor, nn


def causal_parts(model: nn.Module) -> list[nn.Module]:
    """The attention modules that hide later tokens; none in an encoder such as BERT."""
    return [module for module in model.modules() if getattr(module, "is_causal", None) is True]


def decoder_attention(
    model: nn.Module,
    ids: Tensor,
    mask: Tensor | None,
    *,
    bidirectional: bool,
) -> dict[str, Any]:
    """Who sees whom, and where each token stands, as a decoder's own arguments."""
    told: dict[str, Any] = {"attention_mask": mask}
    known = inspect.signature(model.forward).parameters
    if "use_cache" in known:
        told["use_cache"] = False
    if mask is None and not bidirectional:
        return told
    full = torch.ones_like(ids) if mask is None else mask
    if "position_ids" in known:
        # From 0, on whichever side the padding is
        told["position_ids"] = (full.cumsum(-1) - 1).clamp_min(0)
    # Every token sees all that is not padding: what is added to attention scores
    if bidirectional:
        dtype = next(model.parameters()).dtype
        hidden = torch.where(full.bool(), 0.0, torch.finfo(dtype).min)
        hidden = hidden.to(dtype)[:, None, None]  # (B, 1, 1, T)
        told["attention_mask"] = hidden.expand(-1, 1, full.shape[1], -1)  # (B, 1, T, T)
    return told
