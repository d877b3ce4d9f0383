"""The encoder: backbone → pooling → optional pooler; texts in, embeddings out (PROTOCOLS §1).

Every text is tokenised and encoded once per call, whatever the number of layers read: equal texts are
merged, batches are packed by token count with texts of like length, and the order is restored. On the CPU
each thread encodes batches of its own: a row's bytes then do not depend on the number of threads.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from repro.models import pooling as pooling_module
from repro.models.backbone import Backbone
from repro.models.folders import read_backbone, read_head, read_note, read_pooling, write_encoder
from repro.models.packing import merge_equal, pack_by_tokens
from repro.models.parts import prompt_of
from repro.models.pooler import Head, Pooler
from repro.models.pretrained import locate
from repro.terminal import progress_bar
from repro.types import Array, InputError, check_dim, one_of

log = logging.getLogger(__name__)
STATE_BUDGET = {"cpu": 2**19, "cuda": 2**25}
"""entries of a batch's states, padded tokens × hidden_dim; on the CPU few enough to stay in the cache"""


class SentenceEncoder(nn.Module):
    """A backbone with a pooling and, possibly, a pooler, or the parts of a published encoder in its place.

    Readouts: `encoder` is h (n, hidden_dim), `pooler` is z (n, dim). Without a pooler, z is h.
    """

    def __init__(self, backbone: Backbone, *, pooling: str = "cls", pooler: Head | None = None) -> None:
        super().__init__()
        self.backbone = backbone
        self.pooling = one_of(pooling, pooling_module.NAMES, "pooling")
        self.pooler = pooler
        self.prompt = ""
        self.texts_encoded = 0
        self.texts_truncated = 0
        self._warned: set[str] = set()

    @classmethod
    def load(
        cls,
        name_or_path: str,
        *,
        dim: int | None = None,
        pooling: str | None = None,
        activation: str = "tanh",
        seed: int = 0,
        device: str | None = None,
        bidirectional: bool | None = None,
        final_norm: str | None = None,
        prompt: str | None = "",
    ) -> "SentenceEncoder":
        """Load a backbone, an encoder written by `save`, or a published one with all that follows its pooling.

        Args:
            name_or_path: `repro-tiny`, `all-MiniLM-L6-v2`, a local folder or a hub id.
            dim: size of a fresh pooler; None keeps what follows the pooling in the folder, if anything does.
            pooling: `cls`, `mean`, `last`, `avg_first_last`; None takes the one the folder records, else `cls`, or
                `last` of a causal decoder. Another than the folder records leaves out what follows it there.
            activation: of a fresh pooler, `tanh` or `identity`.
            seed: of a fresh pooler's weights.
            device: such as `cpu` or `cuda:0`; None takes the accelerator if there is one.
            bidirectional: let the tokens of a decoder see those after them; None takes what the folder records.
            final_norm: which states pass the norm after the last block, `last`, `all` or `none`; None likewise.
            prompt: put before every text: a name among the folder's prompts, or a text; None is the folder's default.

        Raises:
            InputError: for an unknown name, pooling, activation, final norm or prompt, dim < 1, a damaged folder, or
                adapters that were trained beside other weights than their base has now.
        """
        folder = Path(locate(name_or_path))
        note = read_note(folder)
        backbone = read_backbone(
            name_or_path, folder, note, device=device, bidirectional=bidirectional, final_norm=final_norm
        )
        encoder = cls(backbone, pooling=pooling or read_pooling(name_or_path, note, backbone))
        if dim is None:
            encoder.pooler = read_head(name_or_path, note, backbone, pooling)
        else:
            encoder.pooler = Pooler(backbone.hidden_dim, check_dim(dim), activation=activation).initialise(seed)
        encoder.prompt = prompt_of(name_or_path, prompt)
        return encoder.to(backbone.device).eval()

    def save(self, folder: Path) -> None:
        """Write everything `load` needs: Hugging Face layout, with the pooler beside it; of adapters, only these."""
        write_encoder(folder, self.backbone, self.pooling, self.pooler)

    @property
    def hidden_dim(self) -> int:
        """Backbone hidden size D."""
        return self.backbone.hidden_dim

    @property
    def n_layers(self) -> int:
        """Number of blocks L."""
        return self.backbone.n_layers

    @property
    def dim(self) -> int:
        """Embedding size: the pooler's, or the hidden size without one."""
        return self.hidden_dim if self.pooler is None else self.pooler.dim

    def pooled(self, ids: Tensor, mask: Tensor | None, layers: Sequence[int] | None = None) -> list[Tensor]:
        """Pooled states h (B, D) of the wanted layers (by default the last), with gradient."""
        wanted = [self.n_layers] if layers is None else list(layers)
        full = torch.ones_like(ids) if mask is None else mask
        if self.pooling == pooling_module.AVG_FIRST_LAST:
            first, *states = self.backbone(ids, mask, [1, *wanted])
            return [pooling_module.pool((first + s) / 2, full, "mean") for s in states]
        return [pooling_module.pool(s, full, self.pooling) for s in self.backbone(ids, mask, wanted)]

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
            texts: any sequence of strings; equal ones are encoded once and get identical rows.
            readout: `pooler` for z, `encoder` for h; the same without a pooler.
            layer: 0 … L; below L the pooled state h of that layer is returned, and no later block runs.
            normalize: divide each row by its length.
            progress: show a progress bar.

        Raises:
            TypeError: for an item that is not a string, with its index.
            InputError: for a layer out of range, an unknown readout, or embeddings that are not finite.
        """
        one_of(readout, ("encoder", "pooler"), "readout")
        depth = self.backbone.layer_index(layer)
        if depth < self.n_layers and readout == "pooler" and self.pooler is not None:
            self._warn(f"layer {depth} is below the last: its pooled state is returned, the pooler reads the last")
        X = self.encode_layers(texts, [depth], progress=progress)[0]
        if readout == "pooler" and self.pooler is not None and depth == self.n_layers:
            X = self.pooler.project(X) if len(X) else np.zeros((0, self.dim), np.float32)
            self._check_finite((~np.isfinite(X)).any(axis=1), "texts")
        if normalize:
            X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
        return X

    def encode_layers(
        self, texts: Sequence[str], layers: Sequence[int] | None = None, *, progress: bool = False
    ) -> Array:
        """Pooled states h of several layers from one pass: (len(layers), n, hidden_dim) float32.

        Raises:
            TypeError: for an item that is not a string, with its index.
            InputError: for a layer out of range, or states that are not finite.
        """
        wanted = list(range(self.n_layers + 1)) if layers is None else [self.backbone.layer_index(n) for n in layers]
        if 0 in wanted and self.pooling == "cls":
            self._warn("layer 0 under cls pooling is one constant vector for every text")
        if self.pooling == "cls" and self.backbone.causal:
            self._warn("cls pooling of a causal decoder reads a token that has seen no other: use mean or last")
        distinct, inverse = merge_equal(texts)
        rows = np.zeros((len(wanted), len(distinct), self.hidden_dim), np.float32)
        if not distinct:
            return rows
        was_training = self.training
        self.eval()
        ids, truncated = self.backbone.tokenize([self.prompt + text for text in distinct])
        self.texts_encoded += len(distinct)
        self.texts_truncated += truncated
        if truncated:
            log.info("%d of %d texts cut at %d tokens", truncated, len(distinct), self.backbone.max_length)
        budget = STATE_BUDGET["cpu" if self.backbone.device.type == "cpu" else "cuda"] // self.hidden_dim
        batches = list(pack_by_tokens([len(row) for row in ids], max(1, budget)))

        @torch.no_grad()  # here, since it holds for one thread; inference mode would taint what a network caches
        def read(batch: np.ndarray[Any, Any]) -> Array:
            h = self.pooled(*self.padded([ids[i] for i in batch]), wanted)
            return np.asarray(torch.stack(h).float().cpu().numpy())

        workers = min(torch.get_num_threads(), len(batches)) if self.backbone.device.type == "cpu" else 1
        bad = np.zeros(len(distinct), bool)
        bar = progress_bar(total=len(distinct), desc="encoding", show=progress)
        with bar, _one_thread_each(workers) as side_by_side:
            for batch, h in zip(batches, side_by_side(read, batches), strict=True):
                rows[:, batch] = h
                bad[batch] = ~np.isfinite(h).all(axis=(0, 2))
                bar.update(len(batch))
        self.train(was_training)
        self._check_finite(bad, "distinct texts")
        return rows[:, inverse]

    def padded(self, ids: list[list[int]]) -> tuple[Tensor, Tensor | None]:
        """Token ids (B, T) and their mask, None if nothing is padded, on the encoder's device."""
        lengths = np.array([len(row) for row in ids])
        width = int(lengths.max())
        table = np.full((len(ids), width), self.backbone.pad_id, np.int64)
        for i, row in enumerate(ids):
            table[i, : len(row)] = row
        tensor = torch.from_numpy(table).to(self.backbone.device)
        if (lengths == width).all():
            return tensor, None
        mask = (np.arange(width) < lengths[:, None]).astype(np.int64)
        return tensor, torch.from_numpy(mask).to(self.backbone.device)

    def _check_finite(self, bad: Any, what: str) -> None:
        if bad.any():
            raise InputError(
                f"{self.backbone.name} gives NaN or infinite embeddings to {int(bad.sum())} of {len(bad)} {what}, "
                f"first to number {int(bad.argmax())}: its weights are damaged, or overflow in this precision"
            )

    def _warn(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            log.warning(message)


@contextmanager
def _one_thread_each(workers: int) -> Iterator[Callable[..., Any]]:
    """A `map` that works on several items at a time, each on one thread: small products do not repay splitting."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        if workers == 1:
            yield map
        else:
            with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
                yield pool.map
    finally:
        torch.set_num_threads(threads)
