"""Backbones: pretrained networks that turn token ids into states (B, T, D).

States of any layer are read by hooks on the blocks, and a run stops after the deepest layer that is wanted: no model
surgery, and it works for every architecture whose blocks stand in one list. Each thread has its own reading, so that
several may run one network at a time.

A causal decoder may be let see the whole sentence, as Li et al. (2025), §4.1, let Qwen1.5 and LLaMA2 (PROTOCOLS §8):
attention says that it is causal by a flag, and a ready-made mask (B, 1, T, T) is used as it stands.
"""

import inspect
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from threading import Lock, get_ident
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from repro.models.pretrained import default_device, load_network
from repro.objectives import LoraConfig
from repro.types import InputError, check_dim, one_of

NORM_NAMES = ("norm", "ln_f", "final_layer_norm", "final_layernorm", "final_norm")
"""how decoders call the norm that follows their last block"""
_COUNTING = Lock()


class _Enough(Exception):
    """Raised by a hook when the deepest wanted layer has run."""


class Backbone(nn.Module):
    """A network and its tokenizer; `forward` returns the states of the wanted layers.

    With `bidirectional`, tokens of a decoder see those after them too. `final_norm` says which states pass the final
    norm of a network that has one: `last`, `all` or `none`.
    """

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
        self.model, self.tokenizer = model, tokenizer
        self.name, self.max_length = name, max_length
        self.bidirectional = bidirectional
        self.final_norm = one_of(final_norm, ("last", "all", "none"), "final_norm")
        self.hidden_dim = int(model.config.hidden_size)  # type: ignore[union-attr, arg-type]
        self.pad_id = int(getattr(model.config, "pad_token_id", None) or 0)
        self.lora: LoraConfig | None = None  # settings of the adapters, if there are any
        self.blocks_run = 0
        self.blocks = block_list(model)
        self._readings: dict[int, tuple[int, dict[int, Tensor]]] = {}  # by thread: deepest wanted layer, states
        self.blocks[0].register_forward_pre_hook(partial(self._take, 0), with_kwargs=True)
        for number, block in enumerate(self.blocks, 1):
            block.register_forward_hook(partial(self._take, number))
        hiding = causal_parts(model)
        self.is_decoder = bool(hiding)
        self.norm_name = norm_name(model, self.blocks)
        if bidirectional:
            for part in hiding:
                part.is_causal = False  # type: ignore[assignment]
            self._check_sees_ahead()

    @property
    def n_layers(self) -> int:
        """Number of blocks L."""
        return len(self.blocks)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.model.parameters()).device

    @property
    def causal(self) -> bool:
        """Whether a token sees only those before it."""
        return self.is_decoder and not self.bidirectional

    def tokenize(self, texts: Sequence[str], max_length: int | None = None) -> tuple[list[list[int]], int]:
        """Token ids with special tokens, and how many texts were cut at `max_length`."""
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(min(max_length or self.max_length, self.max_length))
        encodings = self.tokenizer.encode_batch(list(texts))
        ids = [e.ids for e in encodings]
        highest = max((max(row, default=0) for row in ids), default=0)
        known = len(self.model.get_input_embeddings().weight)  # type: ignore[operator]
        if highest >= known:
            there = f"the tokenizer of {self.name!r} gives token {highest}, its network has {known}"
            raise InputError(f"{there}: they do not belong together")
        return ids, sum(bool(e.overflowing) for e in encodings)

    def layer_index(self, layer: int | None) -> int:
        """Resolve a layer 0 … L; None is L."""
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
            layers: from 0 (embedding output) to L. State L passes the network's final norm by default, others do not.
        """
        wanted = [self.layer_index(layer) for layer in ([None] if layers is None else layers)]
        states: dict[int, Tensor] = {}
        self._readings[get_ident()] = max(wanted), states
        try:
            output = self.model(input_ids=ids, **self._attention(ids, mask))
            if self.final_norm != "none" or self.norm_name is None:
                states[self.n_layers] = output.last_hidden_state
        except _Enough:
            pass
        finally:
            del self._readings[get_ident()]
            with _COUNTING:
                self.blocks_run += max(states, default=0)
        if self.final_norm == "all" and self.norm_name is not None:  # the network has seen to the last itself
            norm = self.model.get_submodule(self.norm_name)
            return [states[n] if n == self.n_layers else norm(states[n]) for n in wanted]
        return [states[n] for n in wanted]

    def _attention(self, ids: Tensor, mask: Tensor | None) -> dict[str, Any]:
        """Who sees whom, and where each token stands, as the network's own arguments."""
        if not self.is_decoder:
            return {"attention_mask": mask}
        told: dict[str, Any] = {"attention_mask": mask, "use_cache": False}
        if mask is None and self.causal:
            return told
        full = torch.ones_like(ids) if mask is None else mask
        if "position_ids" in inspect.signature(self.model.forward).parameters:
            told["position_ids"] = (full.cumsum(-1) - 1).clamp_min(0)  # from 0, on whichever side the padding is
        if self.bidirectional:  # every token sees all that is not padding: what is added to attention scores
            dtype = next(self.model.parameters()).dtype
            hidden = torch.where(full.bool(), 0.0, torch.finfo(dtype).min).to(dtype)[:, None, None]  # (B, 1, 1, T)
            told["attention_mask"] = hidden.expand(-1, 1, full.shape[1], -1)  # (B, 1, T, T)
        return told

    def _take(self, number: int, module: nn.Module, args: Any, found: Any) -> None:
        """Keep what goes into the first block as state 0, `found` its keywords, and what comes `found` out of each."""
        if get_ident() in self._readings:
            deepest, states = self._readings[get_ident()]
            if number == 0:
                states[0] = args[0] if args else found["hidden_states"]
            else:
                states[number] = found[0] if isinstance(found, tuple) else found
            if number == deepest < self.n_layers:
                raise _Enough

    @torch.no_grad()
    def _check_sees_ahead(self) -> None:
        """Change the second of two tokens: if the first's state after one block stays, the network masks by itself."""
        was_training = self.model.training
        self.model.eval()
        states = self(torch.tensor([[0, 1], [0, 2]], device=self.device), layers=[1])[0]  # (2, 2, D)
        self.model.train(was_training)
        self.blocks_run = 0
        if torch.equal(states[0, 0], states[1, 0]):
            raise InputError(
                f"{type(self.model).__name__} stays causal under bidirectional=True: expected a network whose "
                "attention takes a mask (B, 1, T, T), such as Llama or Qwen2"
            )

    def keep(self, layers: int) -> None:
        """Drop all blocks above the first `layers`: a shallower network, for good."""
        del self.blocks[check_dim(layers, limit=self.n_layers, what="layers") :]
        self.model.config.num_hidden_layers = layers  # type: ignore[union-attr]
        if kinds := getattr(self.model.config, "layer_types", None):  # of blocks: Qwen2, Gemma, ModernBERT
            self.model.config.layer_types = kinds[:layers]  # type: ignore[union-attr]

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


def block_list(model: nn.Module) -> nn.ModuleList:
    """The longest list of modules: the blocks, in the order in which they run."""
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList) and len(module)]
    if not lists:
        raise InputError(f"{type(model).__name__} has no list of blocks: layers cannot be told apart")
    return max(lists, key=len)


def causal_parts(model: nn.Module) -> list[nn.Module]:
    """The attention modules that hide later tokens; none in an encoder such as BERT."""
    return [module for module in model.modules() if getattr(module, "is_causal", None) is True]


def norm_name(model: nn.Module, blocks: nn.ModuleList) -> str | None:
    """Dotted name of the norm after the last block, None where each block ends with its own, as in BERT."""
    for name, module in model.named_modules():
        if any(child is blocks for child in module.children()):
            for norm in NORM_NAMES:
                if isinstance(getattr(module, norm, None), nn.Module):
                    return f"{name}.{norm}".lstrip(".")
    return None


def load_backbone(name_or_path: str, *, device: torch.device | str | None = None, **options: Any) -> Backbone:
    """Load a backbone by shipped name, `all-MiniLM-L6-v2`, local folder in Hugging Face layout, or hub id.

    Options are those of `Backbone`; `device` None takes the accelerator if there is one.

    Raises:
        InputError: for an unknown name, a folder without weights, or weights with the wrong checksum.
    """
    model, tokenizer, limit = load_network(name_or_path)
    backbone = Backbone(model, tokenizer, name=name_or_path, max_length=limit, **options)
    return backbone.to(device or default_device()).eval()
