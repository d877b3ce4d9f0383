"""What a network shows of itself on two trial texts, whatever its name.

They show whether the hooks see the hidden states that transformers returns, whether the network is
causal, and which module is its final norm.
What its config says is tried too, by a network built anew from it.
"""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from repro.types import InputError


@dataclass(frozen=True)
class Trial:
    """What a network shows of itself on two short texts that differ in their last token alone."""

    blocks: nn.ModuleList
    n_layers: int
    layers_are_known: bool
    """Whether what enters and leaves the blocks are the hidden states that transformers returns."""
    reads_forwards: bool
    """Whether the first token's state stays the same whatever follows it."""
    norm_name: str | None = None
    """Dotted name of the norm after the last block; None where each block ends with its own."""
    end_is_known: bool = False
    """Whether such a norm, or nothing at all, is what follows the last block."""


@torch.no_grad()
def try_network(model: nn.Module, ids: Tensor) -> Trial:
    """Let two short texts pass a network, and see which of its lists of modules are its blocks.

    They are those whose calls transformers returns as hidden states. Where none does, the longest
    list is taken for them, and the layers are not known.

    Args:
        model: a network of transformers, without a head.
        ids: token ids (2, T), which differ in the last token.

    Raises:
        InputError: for a network without a list of blocks.
    """
    watches = [_Watch(model, blocks) for blocks in block_lists(model)]
    handles: list[Any] = []
    for watch in watches:
        handles.extend(watch.start())
    was_training = model.training
    model.eval()
    takes_cache = "use_cache" in inspect.signature(model.forward).parameters
    options = {"use_cache": False} if takes_cache else {}
    try:
        output = model(input_ids=ids, output_hidden_states=True, **options)
    finally:
        model.train(was_training)
        for handle in handles:
            handle.remove()
    given = output.last_hidden_state
    forwards = reads_forwards(given)
    returned = getattr(output, "hidden_states", None) or ()
    for watch in watches:
        # The last state is what the network itself gives, after a final norm where it has one
        below = zip(watch.seen[:-1], returned[:-1], strict=False)
        if len(watch.seen) == len(returned) and all(equal(one, other) for one, other in below):
            last = watch.seen[-1]
            plain = equal(last, given)
            norm = None if plain else watch.between(last, given)
            known_end = plain or norm is not None
            return Trial(watch.blocks, len(returned) - 1, True, forwards, norm, known_end)
    longest = watches[0].blocks
    return Trial(longest, len(returned) - 1 if returned else len(longest), False, forwards)


def reads_forwards(states: Tensor) -> bool:
    """Whether the first token has one state in two texts (2, T, D) that differ in a later token."""
    first, other = states[:, 0]
    # Not to the last bit: experts and wide products round by what stands beside a token
    tolerance = 1e-5 * float(first.abs().nan_to_num().mean())
    return torch.allclose(first, other, rtol=1e-4, atol=tolerance, equal_nan=True)


class _Watch:
    """What enters the first of some blocks, leaves each call of one, and passes those beside."""

    def __init__(self, model: nn.Module, blocks: nn.ModuleList) -> None:
        self.blocks = blocks
        self.seen: list[Any] = []
        # Dotted names of modules beside the blocks, each with its last input and output
        self.beside: dict[str, tuple[Any, Any]] = {}
        self._siblings: dict[str, nn.Module] = {}
        for name, parent in model.named_modules():
            if any(child is blocks for child in parent.children()):
                for child_name, child in parent.named_children():
                    self._siblings[f"{name}.{child_name}".lstrip(".")] = child

    def start(self) -> Iterator[Any]:
        """Hooks, each to be removed."""
        for block in set(self.blocks):
            yield block.register_forward_pre_hook(self._enter, with_kwargs=True)
            yield block.register_forward_hook(self._leave)
        for name, sibling in self._siblings.items():
            yield sibling.register_forward_hook(partial(self._pass, name))

    def between(self, last: Tensor, given: Tensor) -> str | None:
        """The module that took the `last` states of the blocks and gave those `given`, if any."""
        for name, (taken, output) in self.beside.items():
            if equal(taken, last) and equal(output, given):
                return name
        return None

    def _enter(self, module: nn.Module, args: Any, keywords: Any) -> None:
        if not self.seen:
            self.seen.append(entered(args, keywords))

    def _leave(self, module: nn.Module, args: Any, output: Any) -> None:
        self.seen.append(left(output))

    def _pass(self, name: str, module: nn.Module, args: Any, output: Any) -> None:
        self.beside[name] = (args[0] if args else None, output)


def entered(args: Any, keywords: Any) -> Any:
    """The states that a block was called with."""
    return args[0] if args else keywords.get("hidden_states")


def left(output: Any) -> Any:
    """The states that a block gives, some with more behind them."""
    return output[0] if isinstance(output, tuple | list) else output


def equal(one: Any, other: Any) -> bool:
    """Whether two are tensors of the same numbers, or of none in the same places."""
    if not isinstance(one, Tensor) or not isinstance(other, Tensor) or one.shape != other.shape:
        return False
    return torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)


def block_lists(model: nn.Module) -> list[nn.ModuleList]:
    """The lists of modules, longest first: one of them are the blocks, as they run."""
    lists = []
    for module in model.modules():
        if isinstance(module, nn.ModuleList) and len(module):
            lists.append(module)
    if not lists:
        raise InputError(
            f"{type(model).__name__} has no list of blocks: layers cannot be told apart"
        )
    return sorted(lists, key=len, reverse=True)


def fits_its_config(model: nn.Module) -> bool:
    """Whether what a folder of this network would be read as has the weights that are here."""
    with torch.device("meta"):
        rebuilt = type(model)(model.config)
    sizes = {name: weight.shape for name, weight in model.state_dict().items()}
    for name, weight in rebuilt.state_dict().items():
        if "pooler." not in name and sizes.get(name) != weight.shape:
            return False
    return True
