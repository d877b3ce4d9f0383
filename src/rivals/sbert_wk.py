"""SBERT-WK: word states fused over layers, then words over the sentence, both by geometry alone
(Wang and Kuo, 2020).

A layer weighs more for a word where its state departs from the neighbouring layers' (low alignment,
high novelty), and a word weighs more where its state keeps changing from layer to layer. Every 0/0
becomes uniform weights, so that layers that are all alike give the plain mean of the tokens.
"""

import math

import numpy as np
import torch
from torch import Tensor

from repro.models.encoder import STATE_BUDGET, SentenceEncoder
from repro.models.layerless import LayerlessEncoder
from repro.models.packing import pack_by_tokens
from repro.terminal import progress_bar
from repro.types import Array, InputError

NOTHING = 1e-7
"""Novelties and deviations below this are rounding; SBERT-WK divides by their sum."""
WINDOW = 2
"""Neighbours of a layer, to each side."""
LEAST = 3
"""Layers: of two, each is the other's only neighbour, all weights are equal and what is left is a
plain mean.
"""


def first_layer(n_layers: int) -> int:
    """4 as published for 12 blocks, which leaves out the lower third; a shallower network leaves
    out the same share.
    """
    return min(4, math.ceil(n_layers / 3))


def coordinates(states: Tensor) -> Tensor:
    """States of one word over L layers (..., D, L) as L columns of at most L numbers with the same
    inner products.
    """
    return torch.linalg.qr(states.double(), mode="r").R


def layer_weights(R: Tensor) -> Tensor:
    """Weight of each layer for each word (N, L) from the columns of R (N, r, L): inverse alignment
    plus novelty.

    Inverse alignment is 1/(mean cosine with the layers at most `WINDOW` away). Novelty is the share
    of the state outside the span of these layers: |last entry|/norm of the last column of a QR with
    this layer at the end. Each is divided by its sum over layers, then both are added and halved.
    """
    n_layers = R.shape[-1]
    unit = torch.nn.functional.normalize(R, dim=-2)  # (N, r, L)
    cosines = unit.transpose(-1, -2) @ unit  # (N, L, L)
    alignment, novelty = [], []
    for k in range(n_layers):
        window = range(max(0, k - WINDOW), min(n_layers, k + WINDOW + 1))
        near = [j for j in window if j != k]
        alignment.append(cosines[:, k, near].mean(-1))
        # (N, at most 2·WINDOW + 1)
        last = torch.linalg.qr(unit[:, :, [*near, k]], mode="r").R[..., -1]
        outside = last[:, len(near) :].norm(dim=-1)
        novelty.append(outside / last.norm(dim=-1).clamp_min(NOTHING))
    by_alignment = _shares(1 / _off_zero(torch.stack(alignment, -1)))
    by_novelty = _shares(torch.stack(novelty, -1))
    return (by_alignment + by_novelty) / 2


def word_weights(R: Tensor) -> Tensor:
    """Variance (N,) of the cosines between adjacent layers, from the columns of R (N, r, L)."""
    unit = torch.nn.functional.normalize(R, dim=-2)
    cosines = (unit[..., 1:] * unit[..., :-1]).sum(-2)  # (N, L−1)
    spread = cosines.var(-1, correction=0)
    return torch.where(spread > NOTHING**2, spread, torch.zeros_like(spread))


def fuse(states: Tensor, mask: Tensor) -> Tensor:
    """Sentence embeddings (B, D) from token states of several layers (L, B, T, D) and their mask
    (B, T).
    """
    real = mask.bool()
    words = states[:, real].movedim(0, -1)  # (N, D, L), the unmasked tokens of all sentences
    R = coordinates(words)
    fused = (words @ layer_weights(R).unsqueeze(-1).to(words.dtype)).squeeze(-1)  # (N, D)
    weights = torch.zeros(mask.shape, dtype=R.dtype, device=R.device)
    weights[real] = word_weights(R)
    uniform = mask / mask.sum(1, keepdim=True)
    total = weights.sum(1, keepdim=True)
    weights = torch.where(total > 0, weights / total.clamp_min(1e-300), uniform.to(weights.dtype))
    placed = torch.zeros(*mask.shape, states.shape[-1], dtype=states.dtype, device=states.device)
    placed[real] = fused
    return (weights.unsqueeze(-1).to(states.dtype) * placed).sum(1)


def _off_zero(x: Tensor) -> Tensor:
    """Cosines whose inverse stays finite: the sign is kept, the size is at least 1e-3."""
    return torch.where(x < 0, x.clamp_max(-1e-3), x.clamp_min(1e-3))


def _shares(x: Tensor) -> Tensor:
    """Rows divided by their sums; uniform where all of a row is nothing."""
    x = torch.where(x.abs() > NOTHING, x, torch.zeros_like(x))
    total = x.sum(-1, keepdim=True)
    divisor = torch.where(total == 0, torch.ones_like(total), total)
    return torch.where(total.abs() > 0, x / divisor, 1 / x.shape[-1])


class SbertWK(LayerlessEncoder):
    """SBERT-WK on the token states of an encoder; special tokens count, as in mean pooling."""

    def __init__(self, encoder: SentenceEncoder) -> None:
        self.encoder, self.dim = encoder, encoder.hidden_dim
        top = encoder.n_layers
        self.layers = list(range(first_layer(top), top + 1))
        if len(self.layers) < LEAST:
            raise InputError(
                f"{top} layers, of which {len(self.layers)} from layer {self.layers[0]} up: "
                f"SBERT-WK compares neighbouring layers and needs at least {LEAST}; take a deeper "
                "network (all-MiniLM-L6-v2 has 6)"
            )

    @torch.no_grad()
    def embed(self, texts: list[str], *, progress: bool = False) -> Array:
        """Fused embeddings (n, D) of distinct texts."""
        backbone = self.encoder.backbone
        ids, _ = backbone.tokenize(texts)
        budget = STATE_BUDGET["cpu" if backbone.device.type == "cpu" else "cuda"] // self.dim
        X = np.empty((len(texts), self.dim), np.float32)
        with progress_bar(total=len(texts), desc="SBERT-WK", show=progress) as bar:
            for batch in pack_by_tokens([len(row) for row in ids], max(1, budget)):
                tokens, mask = self.encoder.padded([ids[i] for i in batch])
                states = torch.stack(backbone(tokens, mask, self.layers))  # (layers, B, T, D)
                all_tokens = torch.ones_like(tokens) if mask is None else mask
                X[batch] = fuse(states, all_tokens).cpu().numpy()
                bar.update(len(batch))
        return X
