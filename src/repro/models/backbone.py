"""Backbones: pretrained networks that turn token ids into states (B, T, D).

States of any layer are read by hooks on the blocks, and a run stops after the deepest layer that is
wanted: no model surgery, and it works for every architecture whose blocks stand in one list. Each thread
has its own reading, so that several may run one network at a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock, get_ident
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from repro.models import decoder
from repro.models.intact import check_tokens
from repro.models.pretrained import default_device, load_network
from repro.objectives import LoraConfig
from repro.types import InputError, check_dim, one_of

_COUNTING = Lock()


class _Enough(Exception):
    """Raised by a hook when the deepest wanted layer has run."""


@dataclass
class _Reading:
    """What one thread's run has to bring: states by layer, down to the deepest that is wanted."""

    deepest: int
    states: dict[int, Tensor] = field(default_factory=dict)
    blocks: int = 0


class Backbone(nn.Module):
    """A network and its tokenizer; `forward` returns the states of the wanted layers."""

    def __init__(
        self,
        model: nn.Module,
        tokenizer: Tokenizer,
        *,
        name: str,
        max_length: int,
        bidirectional: bool = False,
        final_norm: str = "last",
    ) -> None:
        super().__init__()
        self.model = model
        self.tokenizer = tokenizer
        self.name = name
        self.max_length = max_length
        self.bidirectional = bidirectional
        self.final_norm = one_of(final_norm, decoder.FINAL_NORMS, "final_norm")
        self.lora: LoraConfig | None = None  # settings of the adapters, if there are any
        self.merged = False  # adapters were: the weights are no longer those of `name`
        self.blocks_run = 0
        self._blocks = _block_list(model)
        self._readings: dict[int, _Reading] = {}  # by thread
        self._blocks[0].register_forward_pre_hook(self._before_first, with_kwargs=True)
        for number, block in enumerate(self._blocks, 1):
            block.register_forward_hook(partial(self._after, number))
        causal = decoder.causal_parts(model)
        self._is_decoder = bool(causal)
        self._takes_positions = decoder.takes_positions(model)
        self._norm = decoder.norm_name(model, self._blocks)
        if bidirectional:
            for part in causal:
                part.is_causal = False  # type: ignore[assignment]
            decoder.check_sees_ahead(model, lambda ids: self(ids, layers=[1])[0])
            self.blocks_run = 0

    @property
    def n_layers(self) -> int:
        """Number of blocks L."""
        return len(self._blocks)

    @property
    def hidden_dim(self) -> int:
        """Hidden size D."""
        return int(self.model.config.hidden_size)  # type: ignore[union-attr, arg-type]

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.model.parameters()).device

    @property
    def blocks(self) -> nn.ModuleList:
        """The blocks, in the order in which they run."""
        return self._blocks

    @property
    def causal(self) -> bool:
        """Whether a token sees only those before it."""
        return self._is_decoder and not self.bidirectional

    @property
    def has_final_norm(self) -> bool:
        """Whether the network ends in a norm after its last block."""
        return self._norm is not None

    @property
    def pad_id(self) -> int:
        """Token id used for padding."""
        return int(getattr(self.model.config, "pad_token_id", None) or 0)

    def tokenize(self, texts: Sequence[str], max_length: int | None = None) -> tuple[list[list[int]], int]:
        """Token ids with special tokens, and how many texts were cut at `max_length`.

        Raises:
            InputError: for a token that the network has no row for.
        """
        limit = min(max_length or self.max_length, self.max_length)
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(limit)
        encodings = self.tokenizer.encode_batch(list(texts))
        check_tokens(self.name, [e.ids for e in encodings], self.model)
        return [e.ids for e in encodings], sum(bool(e.overflowing) for e in encodings)

    def layer_index(self, layer: int | None) -> int:
        """Resolve a layer 0 … L; None is L.

        Raises:
            InputError: if it is out of range.
        """
        if layer is None:
            return self.n_layers
        if not 0 <= layer <= self.n_layers:
            raise InputError(f"layer {layer} of {self.name}: expected 0 (embedding output) to {self.n_layers}")
        return layer

    def forward(self, ids: Tensor, mask: Tensor | None = None, layers: Sequence[int] | None = None) -> list[Tensor]:
        """States (B, T, D) of each wanted layer, by default the last; only blocks up to the deepest run.

        Args:
            ids: token ids (B, T).
            mask: attention mask (B, T); None means that nothing is padded. A decoder takes padding on either side.
            layers: from 0 (embedding output) to L. Of a network with a norm after its last block, state L passes
                it by default (`final_norm`), and those below do not.
        """
        wanted = [self.n_layers] if layers is None else [self.layer_index(layer) for layer in layers]
        reading = self._readings[get_ident()] = _Reading(max(wanted))
        try:
            output = self.model(input_ids=ids, **self._attention(ids, mask))
            if self.final_norm != "none" or self._norm is None:
                reading.states[self.n_layers] = output.last_hidden_state
        except _Enough:
            pass
        finally:
            del self._readings[get_ident()]
            with _COUNTING:
                self.blocks_run += reading.blocks
        return [self._normed(reading.states[layer], layer) for layer in wanted]

    def _attention(self, ids: Tensor, mask: Tensor | None) -> dict[str, Any]:
        """Who sees whom, and where each token stands, as the network's own arguments."""
        if not self._is_decoder:
            return {"attention_mask": mask}
        told: dict[str, Any] = {"attention_mask": mask, "use_cache": False}
        if mask is None and not self.bidirectional:
            return told
        full = torch.ones_like(ids) if mask is None else mask
        if self._takes_positions:
            told["position_ids"] = decoder.positions(full)
        if self.bidirectional:
            told["attention_mask"] = decoder.padding_only(full, next(self.model.parameters()).dtype)
        return told

    def _normed(self, states: Tensor, layer: int) -> Tensor:
        """States of a layer below the last as `final_norm` wants them; the network has seen to the last itself."""
        if self.final_norm != "all" or self._norm is None or layer == self.n_layers:
            return states
        normed: Tensor = self.model.get_submodule(self._norm)(states)
        return normed

    def _before_first(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        reading = self._readings.get(get_ident())
        if reading is None:
            return
        reading.states[0] = args[0] if args else kwargs["hidden_states"]
        if reading.deepest == 0:
            raise _Enough

    def _after(self, number: int, module: nn.Module, args: Any, output: Any) -> None:
        reading = self._readings.get(get_ident())
        if reading is None:
            return
        reading.blocks += 1
        reading.states[number] = output[0] if isinstance(output, tuple) else output
        if number == reading.deepest < self.n_layers:
            raise _Enough

    def keep(self, layers: int) -> None:
        """Drop all blocks above the first `layers`: a shallower network, for good.

        Raises:
            InputError: if there are fewer blocks.
        """
        del self._blocks[check_dim(layers, limit=self.n_layers, what="layers") :]
        self.model.config.num_hidden_layers = layers  # type: ignore[union-attr]

    def set_dropout(self, probability: float) -> None:
        """Use one dropout probability everywhere in the network."""
        for module in self.model.modules():
            if isinstance(module, nn.Dropout):
                module.p = probability
            for attribute in ("dropout_prob", "attention_dropout"):  # DeBERTa's and the decoders'
                if isinstance(getattr(module, attribute, None), float):
                    setattr(module, attribute, probability)

    def save(self, folder: Path) -> None:
        """Write the network and tokenizer in Hugging Face layout, float32 safetensors."""
        self.model.save_pretrained(folder, safe_serialization=True)  # type: ignore[operator]
        self.tokenizer.no_truncation()
        self.tokenizer.save(str(folder / "tokenizer.json"))


def _block_list(model: nn.Module) -> nn.ModuleList:
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    if not lists:
        raise InputError(f"{type(model).__name__} has no list of blocks: layers cannot be told apart")
    return max(lists, key=len)


def load_backbone(
    name_or_path: str,
    *,
    device: torch.device | str | None = None,
    bidirectional: bool = False,
    final_norm: str = "last",
) -> Backbone:
    """Load a backbone by shipped name, `all-MiniLM-L6-v2`, local folder in Hugging Face layout, or hub id.

    Args:
        name_or_path: of the network.
        device: such as `cpu` or `cuda:0`; None takes the accelerator if there is one.
        bidirectional: let the tokens of a decoder see those after them.
        final_norm: which states pass the final norm of a network that has one: `last`, `all` or `none`.

    Raises:
        InputError: for an unknown name, a folder without weights, or weights with the wrong checksum.
    """
    model, tokenizer, limit = load_network(name_or_path)
    backbone = Backbone(
        model, tokenizer, name=name_or_path, max_length=limit, bidirectional=bidirectional, final_norm=final_norm
    )
    return backbone.to(device or default_device()).eval()
