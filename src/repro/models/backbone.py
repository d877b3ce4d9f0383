"""Backbones: pretrained networks that turn token ids into states (B, T, D).

States of any layer are read by hooks on the blocks, and a run stops after the deepest layer that is
wanted: no model surgery. Layers are counted by the calls of the blocks, since ALBERT calls one many
times. Each thread has its own reading, so that several may run one network at a time.

What a network is, it is asked and not looked up by its name: before anything else is read, it
shows on two trial texts what its layers are. Where that does not show, the last layer is read and
every other is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, get_ident
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from repro.models.attention import causal_parts, decoder_attention
from repro.models.device import chosen_device
from repro.models.pretrained import explained, load_network
from repro.models.trial import entered, equal, fits_its_config, left, reads_forwards, try_network
from repro.reading import is_out_of_memory
from repro.settings import LoraConfig
from repro.types import InputError, check_dim, one_of

LONGEST_TRIAL = 2**13
"""Tokens of the longest trial text; networks that read more have no table of positions."""
_COUNTING = Lock()


class _Enough(Exception):
    """Raised by a hook when the deepest wanted layer has run."""


@dataclass
class _Reading:
    """One run of one thread: how deep it goes, how many blocks have run, and what they gave."""

    deepest: int
    calls: int = 0
    states: dict[int, Tensor] = field(default_factory=dict)


class Backbone(nn.Module):
    """A network and its tokenizer; `forward` returns the states of the wanted layers.

    With `bidirectional`, tokens of a decoder see those after them too. `final_norm` says which
    states pass the final norm of a network that has one: `last`, `all` or `none`.
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
        if not isinstance(bidirectional, bool):
            raise InputError(f"bidirectional is {bidirectional!r}: expected True or False")
        self.bidirectional = bidirectional
        self.final_norm = one_of(final_norm, ("last", "all", "none"), "final_norm")
        self.hidden_dim = int(model.config.hidden_size)  # type: ignore[union-attr, arg-type]
        self.pad_id = max(0, int(getattr(model.config, "pad_token_id", None) or 0))  # −1 is none
        self.lora: LoraConfig | None = None  # Settings of the adapters, if there are any
        self.blocks_run = 0
        trial = try_network(model, self._trial_ids())
        self.blocks = trial.blocks
        self.n_layers = trial.n_layers
        """L, the number of times that a block runs in a pass."""
        self.layers_are_known, self.reads_forwards = trial.layers_are_known, trial.reads_forwards
        self._readings: dict[int, _Reading] = {}  # What each thread reads, by its number
        self.blocks[0].register_forward_pre_hook(self._enter, with_kwargs=True)
        for block in set(self.blocks):
            block.register_forward_hook(self._leave)
        self.norm_name = trial.norm_name
        if final_norm != "last" and not trial.end_is_known:
            raise InputError(
                f"final_norm is {final_norm!r}: what follows the last block of "
                f"{type(model).__name__} is no norm alone; leave it at 'last'"
            )
        if bidirectional:
            for attention in causal_parts(model):
                attention.is_causal = False  # type: ignore[assignment]
            self._check_sees_ahead()

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.model.parameters()).device

    @property
    def causal(self) -> bool:
        """Whether a token sees only those before it."""
        return self.reads_forwards and not self.bidirectional

    def tokenize(
        self,
        texts: Sequence[str],
        max_length: int | None = None,
    ) -> tuple[list[list[int]], int]:
        """Token ids with special tokens, and how many texts were cut at `max_length`."""
        added = self.tokenizer.num_special_tokens_to_add(False)
        kept = self.max_length if max_length is None else min(max_length, self.max_length)
        if kept <= added:
            raise InputError(
                f"max_length is {kept}: {self.name} adds {added} tokens to every text, so that "
                f"none of its own would be read; expected {added + 1} or more"
            )
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(kept)
        encodings = self.tokenizer.encode_batch(list(texts))
        ids = [e.ids for e in encodings]
        highest = max((max(row, default=0) for row in ids), default=0)
        known = len(self.model.get_input_embeddings().weight)  # type: ignore[operator]
        if highest >= known:
            there = f"the tokenizer of {self.name!r} gives token {highest}, its network has {known}"
            raise InputError(f"{there}: they do not belong together")
        return ids, sum(bool(e.overflowing) for e in encodings)

    def layer_index(self, layer: int | None) -> int:
        """Resolve a layer 0 … L; None is L. Below L it must be known what the layers are."""
        if layer is None:
            return self.n_layers
        whole = isinstance(layer, int | np.integer) and not isinstance(layer, bool)
        if not whole or not 0 <= layer <= self.n_layers:
            raise InputError(
                f"layer {layer!r} of {self.name}: expected 0 (embedding output) to {self.n_layers}"
            )
        if layer < self.n_layers:
            self._refuse_unknown_layers(f"layer {layer}")
        return layer

    def _refuse_unknown_layers(self, asked: str) -> None:
        if not self.layers_are_known:
            raise InputError(
                f"{asked} of {self.name}: the blocks of {type(self.model).__name__} do not give "
                "the hidden states that transformers returns, so that its layers cannot be told "
                "apart; only the last is read, at full depth"
            )

    def forward(
        self,
        ids: Tensor,
        mask: Tensor | None = None,
        layers: Sequence[int] | None = None,
    ) -> list[Tensor]:
        """States (B, T, D) of each wanted layer, by default the last; only blocks up to the deepest
        run.

        Args:
            ids: token ids (B, T).
            mask: attention mask (B, T); None means that nothing is padded. A decoder takes padding
                on either side.
            layers: from 0 (embedding output) to L. State L passes the network's final norm by
                default, others do not.

        Raises:
            InputError: for a layer out of range, or below L where layers cannot be told apart.
        """
        calls = [self.layer_index(layer) for layer in ([None] if layers is None else layers)]
        states = self._states(ids, mask, max(calls))
        if self.final_norm == "all" and self.norm_name is not None:
            norm = self.model.get_submodule(self.norm_name)
            # The network has seen to the last itself
            return [states[n] if n == self.n_layers else norm(states[n]) for n in calls]
        return [states[n] for n in calls]

    def _states(self, ids: Tensor, mask: Tensor | None, deepest: int) -> dict[int, Tensor]:
        """States by layer of a run down to the `deepest`, the last as `final_norm` says."""
        reading = _Reading(deepest)
        self._readings[get_ident()] = reading
        try:
            if self.reads_forwards:
                told = decoder_attention(self.model, ids, mask, bidirectional=self.bidirectional)
            else:
                told = {"attention_mask": mask}
            output = self.model(input_ids=ids, **told)
            if self.final_norm != "none" or self.norm_name is None:
                reading.states[self.n_layers] = output.last_hidden_state
        except _Enough:
            pass
        finally:
            del self._readings[get_ident()]
            with _COUNTING:
                self.blocks_run += reading.calls
        return reading.states

    def _enter(self, module: nn.Module, args: Any, keywords: Any) -> None:
        """Keep what enters the first block as state 0."""
        reading = self._readings.get(get_ident())
        if reading is not None and 0 not in reading.states:
            reading.states[0] = entered(args, keywords)
            if reading.deepest == 0:
                raise _Enough

    def _leave(self, module: nn.Module, args: Any, output: Any) -> None:
        """Keep what leaves a block as the state that its call is the number of."""
        reading = self._readings.get(get_ident())
        if reading is None:
            return
        reading.calls += 1
        reading.states[reading.calls] = left(output)
        if reading.calls == reading.deepest < self.n_layers:
            raise _Enough

    def _trial_ids(self) -> Tensor:
        """Two texts (2, 3) that differ in their last token."""
        rows = len(self.model.get_input_embeddings().weight)  # type: ignore[operator]
        usable = [token for token in range(rows) if token != self.pad_id][:4]
        if len(usable) < 4:
            raise InputError(f"{self.name} knows {rows} tokens: expected 5 or more")
        first, second, third, other = usable
        return torch.tensor([[first, second, third], [first, second, other]], device=self.device)

    @torch.no_grad()
    def _check_sees_ahead(self) -> None:
        """Refuse a network that masks by itself, and so stays causal whatever it is told."""
        stays = InputError(
            f"{type(self.model).__name__} stays causal under bidirectional=True: expected a "
            "network whose attention takes a mask (B, 1, T, T), such as Llama or Qwen2"
        )
        was_training = self.model.training
        self.model.eval()
        try:
            states = self._states(self._trial_ids(), None, self.n_layers)[self.n_layers]
        except (TypeError, ValueError, RuntimeError) as error:  # It builds its own mask from (B, T)
            if is_out_of_memory(error):
                raise
            raise stays from error
        self.model.train(was_training)
        self.blocks_run = 0
        if reads_forwards(states):
            raise stays

    @torch.no_grad()
    def try_longest(self) -> None:
        """Let a text of `max_length` tokens pass all that stands before the first block.

        Tables of positions end there. What the blocks do takes long, and knows no such end.

        Raises:
            InputError: where the network takes no text as long as that.
        """
        ids = self._trial_ids()[:1, :1].expand(1, min(self.max_length, LONGEST_TRIAL))
        try:
            self._states(ids, None, 0)
        except (IndexError, RuntimeError, ValueError) as error:
            if is_out_of_memory(error):
                raise
            raise InputError(
                f"{self.name} takes no text of {ids.shape[1]} tokens, which its config.json and "
                f"tokenizer allow ({type(error).__name__}: {error}): say fewer as max_seq_length "
                "in its sentence_bert_config.json"
            ) from error
        self.blocks_run = 0

    def keep(self, layers: int) -> None:
        """Drop all blocks above the first `layers`: a shallower network, for good.

        Raises:
            InputError: for a number out of range, or a network that is another once it is cut.
        """
        check_dim(layers, limit=self.n_layers, what="layers")
        if layers == self.n_layers:
            return
        self._refuse_unknown_layers(f"a cut to {layers} layers")
        before = self._raw_states(layers)
        computes_else = InputError(
            f"{self.name} cannot be cut to {layers} layers: with fewer of them, "
            f"{type(self.model).__name__} is built otherwise or computes something else; read the "
            "layer of the whole network instead"
        )
        try:
            self._cut(layers)
        except AttributeError as error:  # A property of its configuration that nobody may set
            raise computes_else from error
        if not fits_its_config(self.model) or not all(map(equal, before, self._raw_states(layers))):
            raise computes_else

    def _cut(self, layers: int) -> None:
        config: Any = self.model.config
        # A block of ALBERT's serves many layers, and all of them stay
        if not hasattr(config, "num_hidden_groups"):
            del self.blocks[layers:]
        config.num_hidden_layers = self.n_layers = layers
        if kinds := getattr(config, "layer_types", None):  # As Qwen2, Gemma and ModernBERT have
            config.layer_types = kinds[:layers]

    @torch.no_grad()
    def _raw_states(self, deepest: int) -> list[Tensor]:
        """States 0 … `deepest` of the trial texts, as the blocks give them."""
        was_training, norm, run = self.model.training, self.final_norm, self.blocks_run
        self.model.eval()
        self.final_norm = "none"
        states = self._states(self._trial_ids(), None, deepest)
        self.final_norm, self.blocks_run = norm, run
        self.model.train(was_training)
        return [states[number] for number in range(deepest + 1)]

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


def load_backbone(
    name_or_path: str,
    *,
    device: torch.device | str | None = None,
    **options: Any,
) -> Backbone:
    """Load a backbone by shipped name, `all-MiniLM-L6-v2`, local folder in Hugging Face layout, or
    hub id.

    Options are those of `Backbone`; `device` None takes a CUDA accelerator if there is one.

    Raises:
        InputError: for an unknown name, a folder without weights, weights with the wrong checksum,
            a network that does not run on a trial text, or a device that is not here.
    """
    place = chosen_device(device)
    model, tokenizer, limit = load_network(name_or_path)
    # What does not fit together otherwise shows at the first text
    with explained("backbone", name_or_path):
        backbone = Backbone(model, tokenizer, name=name_or_path, max_length=limit, **options)
        backbone.try_longest()
    return backbone.to(place).eval()
