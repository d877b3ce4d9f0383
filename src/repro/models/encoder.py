"""Encoders: texts in, embeddings out (method-encoding in the book).

A network is backbone → pooling → optional head.

Every text is tokenised and encoded once per call, whatever the number of layers read: equal texts
are merged, batches are packed by token count with texts of like length, and the order is restored.
On the CPU each thread encodes batches of its own: a row's bytes then do not depend on the number of
threads.
"""

import logging
from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from repro.models.backbone import Backbone
from repro.models.packing import in_order, merge_equal, pack_by_tokens
from repro.models.pooling import AVG_FIRST_LAST, Head, Pooler, pool, poolings_of
from repro.models.published import leaves_prompt_out, prompt_of
from repro.models.saved import read_encoder, write_encoder
from repro.seeding import one_thread_each
from repro.terminal import progress_bar
from repro.types import Array, InputError, one_of, unit_rows

log = logging.getLogger(__name__)
READOUTS = ("encoder", "pooler")
STATE_BUDGET = {"cpu": 2**19, "cuda": 2**25}
"""The most numbers in the states of a batch, padded tokens × hidden_dim: few enough, on the CPU, to
stay in its cache.
"""
CAUSAL_CLS = "cls pooling of a causal decoder reads a token that has seen no other"


class SentenceEncoder(nn.Module):
    """A backbone with a pooling and, possibly, a pooler, or the parts of a published encoder in its
    place.

    Readouts: `encoder` is h (n, hidden_dim), `pooler` is z (n, dim). Without a pooler, z is h.
    """

    def __init__(
        self,
        backbone: Backbone,
        *,
        pooling: str = "cls",
        pooler: Head | None = None,
    ) -> None:
        super().__init__()
        self.backbone, self.pooling, self.pooler = backbone, pooling, pooler
        poolings_of(pooling)
        if pooling == AVG_FIRST_LAST:
            backbone.layer_index(1)
        self.prompt = ""
        self.leaves_prompt_out = False
        """Whether the pooling reads no token of the prompt, as INSTRUCTOR's does."""
        self.texts_encoded = 0
        self.texts_truncated = 0
        self._warned: set[str] = set()

    @classmethod
    def load(
        cls,
        name_or_path: str | Path,
        *,
        dim: int | None = None,
        pooling: str | None = None,
        activation: str = "tanh",
        seed: int = 0,
        device: str | None = None,
        bidirectional: bool | None = None,
        final_norm: str | None = None,
        prompt: str | None = None,
    ) -> "SentenceEncoder":
        """Load a backbone, an encoder written by `save`, or a published one with all that follows
        its pooling.

        Args:
            name_or_path: `repro-tiny`, `all-MiniLM-L6-v2`, a local folder or a hub id.
            dim: size of a fresh pooler; None keeps what follows the pooling in the folder, if
                anything does.
            pooling: `cls`, `mean`, `last`, `max`, `weightedmean`, `mean_sqrt_len_tokens`, several
                of these joined by `+`, or `avg_first_last`; None takes the one the folder records,
                else `cls`, or `last` of a causal decoder. Another than the folder records leaves
                out what follows it there.
            activation: of a fresh pooler, `tanh` or `identity`.
            seed: of a fresh pooler's weights.
            device: such as `cpu`, `cuda:0` or `mps`; None takes a CUDA accelerator if there is one.
            bidirectional: let the tokens of a decoder see those after them; None takes what the
                folder records.
            final_norm: which states pass the norm after the last block, `last`, `all` or `none`;
                None likewise.
            prompt: put before every text: a name among the folder's prompts, or a text; None is the
                folder's default, "" none.

        Raises:
            InputError: for an unknown name, pooling, activation, final norm, prompt or device,
                dim < 1, a damaged folder, adapters that were trained beside other weights than
                their base has now, or `avg_first_last` where layers cannot be told apart.
        """
        if not isinstance(name_or_path, str | Path):
            raise InputError(f"the network is {name_or_path!r}: expected a name or a folder")
        name_or_path = str(name_or_path)
        backbone, pooling, head = read_encoder(
            name_or_path,
            pooling,
            with_head=dim is None,
            device=device,
            bidirectional=bidirectional,
            final_norm=final_norm,
        )
        if dim is not None:
            width = len(poolings_of(pooling)) * backbone.hidden_dim
            head = Pooler(width, dim, activation=activation).initialise(seed)
        encoder = cls(backbone, pooling=pooling, pooler=head)
        encoder.prompt = prompt_of(name_or_path, prompt)
        encoder.leaves_prompt_out = leaves_prompt_out(name_or_path)
        return encoder.to(backbone.device).eval()

    def save(self, folder: Path) -> None:
        """Write everything `load` needs: Hugging Face layout, with the pooler beside it; of
        adapters, only these.
        """
        more: dict[str, Any] = {"include_prompt": False} if self.leaves_prompt_out else {}
        if self.prompt:
            more["prompt"] = self.prompt
        write_encoder(folder, self.backbone, self.pooling, self.pooler, **more)

    @property
    def hidden_dim(self) -> int:
        """Size D of the pooled states: the network's, as often as there are poolings side by
        side.
        """
        return len(poolings_of(self.pooling)) * self.backbone.hidden_dim

    @property
    def n_layers(self) -> int:
        """Number of blocks L."""
        return self.backbone.n_layers

    @property
    def dim(self) -> int:
        """Embedding size: the pooler's, or the hidden size without one."""
        return self.hidden_dim if self.pooler is None else self.pooler.dim

    def pooled(
        self,
        ids: Tensor,
        mask: Tensor | None,
        layers: Sequence[int] | None = None,
    ) -> list[Tensor]:
        """Pooled states h (B, D) of the wanted layers (by default the last), with gradient."""
        chosen = [self.n_layers] if layers is None else layers
        full = torch.ones_like(ids) if mask is None else mask
        start = self._tokens_left_out()
        if self.pooling == AVG_FIRST_LAST:
            first, *states = self.backbone(ids, mask, [1, *chosen])
            averaged = [(first + s) / 2 for s in states]
            return [pool(s[:, start:], full[:, start:], "mean") for s in averaged]
        states = self.backbone(ids, mask, chosen)
        return [pool(s[:, start:], full[:, start:], self.pooling) for s in states]

    def _tokens_left_out(self) -> int:
        """How many tokens of the prompt the pooling passes over; a special one at its end is the
        text's.
        """
        if not self.leaves_prompt_out or not self.prompt:
            return 0
        prompt = self.backbone.tokenizer.encode(self.prompt)
        return len(prompt.ids) - prompt.special_tokens_mask[-1]

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Both readouts of a batch of token ids (B, T): h (B, D) and z (B, dim)."""
        h = self.pooled(ids, mask)[0]
        return h, h if self.pooler is None else self.pooler(h)

    def encode(
        self,
        texts: Sequence[str],
        *,
        readout: str = "pooler",
        layer: int | None = None,
        normalize: bool = False,
        progress: bool = False,
    ) -> Array:
        """Embed texts as a float32 matrix (n, dim), rows in the order of the texts.

        Args:
            texts: strings in any order-keeping form, a column of a table by place; equal ones are
                encoded once and get identical rows.
            readout: `pooler` for z, `encoder` for h; the same without a pooler.
            layer: 0 … L; below L the pooled state h of that layer is returned, and no later block
                runs.
            normalize: divide each row by its length; a zero row stays zero.
            progress: of the batches, on a terminal.

        Raises:
            TypeError: for an item that is not a string, with its index, and for a table or what has
                no order.
            InputError: for a layer out of range, an unknown readout, a text without a token,
                embeddings that are not finite, or different texts that all get one vector.
        """
        texts = in_order(texts)
        pooler = self.pooler if one_of(readout, READOUTS, "readout") == "pooler" else None
        depth = self.backbone.layer_index(layer)
        if depth < self.n_layers and pooler is not None:
            self._warn(
                f"layer {depth} is below the last: its pooled state is returned, the pooler reads "
                "the last"
            )
            pooler = None
        X = self.encode_layers(texts, [depth], progress=progress)[0]
        if pooler is not None:
            X = pooler.project(X)
            self._check_finite(X, texts, range(len(texts)), "texts")
        return unit_rows(X) if normalize else X

    def encode_layers(
        self,
        texts: Sequence[str],
        layers: Sequence[int] | None = None,
        *,
        progress: bool = False,
    ) -> Array:
        """Pooled states h of several layers from one pass: (len(layers), n, hidden_dim) float32;
        errors as `encode`.
        """
        texts = in_order(texts)
        chosen = self._layers_wanted(layers)
        distinct, inverse = merge_equal(texts)
        if not distinct:
            return np.zeros((len(chosen), 0, self.hidden_dim), np.float32)
        first_places = np.unique(inverse, return_index=True)[1].tolist()
        ids = self._token_ids(texts, first_places)
        was_training = self.training
        self.eval()
        rows = self._states(ids, chosen, progress=progress)
        self.train(was_training)
        for layer, h in zip(chosen, rows, strict=True):
            self._check_finite(h, texts, first_places, "distinct texts")
            if layer > 0:  # [CLS] of the embedding output is the same for all by its nature
                self._check_tells_apart(h, ids)
        return rows if len(distinct) == len(texts) else rows[:, inverse]

    def _layers_wanted(self, layers: Sequence[int] | None) -> list[int]:
        """Layers by number, None for all, with a warning where the pooling reads little of them."""
        numbers = list(range(self.n_layers + 1))
        if layers is not None:
            numbers = [self.backbone.layer_index(layer) for layer in layers]
        if not numbers:
            raise InputError("layers is []: expected one layer or more")
        if 0 in numbers and self.pooling == "cls":
            self._warn("layer 0 under cls pooling is one constant vector for every text")
        if self.pooling == "cls" and self.backbone.causal:
            self._warn(f"{CAUSAL_CLS}: use mean or last")
        return numbers

    def _token_ids(self, texts: Sequence[str], places: Sequence[int]) -> list[list[int]]:
        """Token ids of the texts at some places, which are counted; none may be without a token."""
        ids, truncated = self.backbone.tokenize([self.prompt + texts[place] for place in places])
        start = self._tokens_left_out()
        for place, row in zip(places, ids, strict=True):
            if len(row) <= start:
                text, name = _named(texts, place), self.backbone.name
                raise InputError(f"{text} has no token for {name}: nothing to pool, drop it")
        self.texts_encoded += len(ids)
        self.texts_truncated += truncated
        if truncated:
            length = self.backbone.max_length
            log.info("%d of %d texts cut at %d tokens", truncated, len(ids), length)
        return ids

    def _states(self, ids: list[list[int]], layers: list[int], *, progress: bool) -> Array:
        """Pooled states (len(layers), len(ids), hidden_dim) of token ids, batch by batch."""
        on_cpu = self.backbone.device.type == "cpu"
        budget = STATE_BUDGET["cpu" if on_cpu else "cuda"] // self.hidden_dim
        batches = list(pack_by_tokens([len(row) for row in ids], budget))
        workers = min(torch.get_num_threads(), len(batches)) if on_cpu else 1
        rows = np.zeros((len(layers), len(ids), self.hidden_dim), np.float32)

        # Here, since it holds for one thread; inference mode would taint what a network caches
        @torch.no_grad()
        def read(batch: NDArray[np.int64]) -> Array:
            h = self.pooled(*self.padded([ids[i] for i in batch]), layers)
            return np.asarray(torch.stack(h).float().cpu().numpy())

        bar = progress_bar(total=len(ids), desc="encoding", show=progress)
        with bar, one_thread_each(workers) as side_by_side:
            for batch, h in zip(batches, side_by_side(read, batches), strict=True):
                rows[:, batch] = h
                bar.update(len(batch))
        return rows

    def padded(self, ids: list[list[int]]) -> tuple[Tensor, Tensor | None]:
        """Token ids (B, T) and their mask, None if nothing is padded, on the encoder's device."""
        lengths = torch.tensor([len(row) for row in ids])
        mask = torch.arange(int(lengths.max())) < lengths[:, None]
        table = torch.full(mask.shape, self.backbone.pad_id)
        table[mask] = torch.tensor(list(chain.from_iterable(ids)), dtype=torch.long)
        device = self.backbone.device
        return table.to(device), None if bool(mask.all()) else mask.long().to(device)

    def _check_finite(self, X: Array, texts: Sequence[str], places: Sequence[int], of: str) -> None:
        """Refuse rows that are not finite, and name the first: row i is of text `places[i]`."""
        bad = np.flatnonzero(~np.isfinite(X).all(axis=1))
        if len(bad):
            first = _named(texts, places[bad[0]])
            raise InputError(
                f"{self.backbone.name} gives NaN or infinite embeddings to {len(bad)} of {len(X)} "
                f"{of}, first to {first}: its weights are damaged, or overflow in this precision"
            )

    def _check_tells_apart(self, h: Array, ids: list[list[int]]) -> None:
        """Refuse states h (n, D) that are all alike, to rounding, where the tokens are not."""
        other = next((number for number, row in enumerate(ids) if row != ids[0]), None)
        alike = partial(np.allclose, rtol=1e-5, atol=1e-6 * float(np.abs(h[0]).mean()))
        if other is None or not alike(h[other], h[0]) or not alike(h, h[0]):
            return
        why = f"{self.pooling} pooling reads a state that is the same for all; try another one"
        if self.pooling == "cls" and self.backbone.causal:
            why = f"{CAUSAL_CLS}; use mean or last"
        name = self.backbone.name
        raise InputError(f"{name} gives all {len(h)} different texts one vector: {why}")

    def _warn(self, message: str) -> None:
        if message not in self._warned:
            log.warning(message)
        self._warned.add(message)


def _named(texts: Sequence[str], number: int) -> str:
    """Which text it is, in words: its place, from 0, and how it begins."""
    text = texts[number]
    return f"texts[{number}] ({text[:40]!r}{'…' if len(text) > 40 else ''})"
