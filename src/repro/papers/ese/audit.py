"""Audit E1, E4 and E6 at the level of the loss: facts of one batch that need no training.

Rows of method `E1 …`, `E4 …`, `E6 …`; the book's audit quotes them by these names.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from repro.config import TrainConfig
from repro.losses import align, compress_target, layer_weights, shallow_layers
from repro.models import SentenceEncoder
from repro.objectives import ESPRESSO_FORMS
from repro.papers.ese.lines import Line
from repro.rows import make_rows
from repro.runs.cell import threads
from repro.runs.texts import training_examples
from repro.training.angle import base_loss, texts_and_labels
from repro.types import Array

CONSTANT, RANK, RANDOMISED = "E1 constant layer 0", "E4 rank of a sentence's matrix", "E6 two randomised calls"
NEGLIGIBLE = 1e-7
"""share of the largest singular value below which one counts as rounding"""


def rank_rows(lines: Sequence[Line], texts: Sequence[str], store: Any, **shared: Any) -> pd.DataFrame:
    """Numerical rank of the dependency matrix softmax(xxᵀ/√D) of each sentence, by layer (E4).

    `numerical_rank` is the median over sentences, its interval runs from the smallest to the largest; `second_share` is
    the median of S₂/S₁. Setting `per batch` is the one matrix of all these sentences.

    Args:
        lines: whose states are taken.
        texts: the sentences.
        store: where states are kept.
        shared: columns common to all rows.
    """
    rows: list[dict[str, Any]] = []
    for line in lines:
        table = line.states(texts, store)
        for layer in table.layers:
            X = torch.from_numpy(np.array(table.at(layer)[texts], np.float64))
            common = {"method": RANK, "backbone": line.backbone, "layer": layer, "dim": X.shape[1]}
            with threads(1):  # matrices this small do not pay for a second core
                values = {"per sentence": singular_values(X), "per batch": batch_values(X)[None]}
            for kind, S in values.items():
                setting = f"{line.method}, {kind}"
                ranks = np.greater(S, NEGLIGIBLE * S[:, :1]).sum(1)
                rows.append(
                    {
                        **common,
                        "setting": setting,
                        "metric": "numerical_rank",
                        "value": float(np.median(ranks)),
                        "ci_low": float(ranks.min()),
                        "ci_high": float(ranks.max()),
                    }
                )
                share = float(np.median(S[:, 1] / S[:, 0]))
                rows.append({**common, "setting": setting, "metric": "second_share", "value": share})
    return make_rows(rows, **shared)


def singular_values(X: Tensor) -> Array:
    """Singular values (n, D), descending, of each sentence's matrix softmax(xxᵀ/√D), for rows x of X (n, D)."""
    return np.stack([_values(x[:, None] @ x[None]) for x in X])


def batch_values(X: Tensor) -> Array:
    """The same (D,) of the one matrix softmax(XᵀX/√D) of all rows."""
    return _values(X.mT @ X)


def _values(products: Tensor) -> Array:
    A = torch.softmax(products / products.shape[0] ** 0.5, dim=-1)
    return np.asarray(torch.linalg.svdvals(A))


def repeat_rows(X: Array, size: int, *, backbone: str, layer: int, seed: int = 0, **shared: Any) -> pd.DataFrame:
    """What a second call makes of the same batch (E6): randomised with another seed, and exact.

    `sign_flips` is the share of components whose column changed sign, `column_cosine` the median |cosine| of equal
    columns, `last_cosine` that of the last, `subspace_overlap` the mean squared cosine of the principal angles between
    the two spaces of columns.

    Args:
        X: pooled states (B, D) of one batch at one layer; B at least `size`.
        size: compressed size k.
        backbone: of the rows.
        layer: of the rows.
        seed: of the first call; the second has the next.
        shared: columns common to all rows.
    """
    states = torch.from_numpy(np.array(X, np.float64))
    rows = []
    for decomposition in ("randomized", "eigh"):
        first, second = (
            compress_target(states, size, dependency="per_batch", decomposition=decomposition, seed=seed + call)
            for call in range(2)
        )
        common = {"method": RANDOMISED, "backbone": backbone, "layer": layer, "dim": size, "setting": decomposition}
        rows += [{**common, "metric": metric, "value": value} for metric, value in _agreement(first, second).items()]
    return make_rows(rows, seed=seed, **shared)


def _agreement(first: Tensor, second: Tensor) -> dict[str, float]:
    norms = first.norm(dim=0) * second.norm(dim=0)
    alive = norms > 0  # columns of components that are not there are zero
    cosines = ((first * second).sum(0)[alive] / norms[alive]).numpy()
    bases = [torch.linalg.qr(T[:, alive] / T[:, alive].norm(dim=0)).Q for T in (first, second)]
    overlap = float((bases[0].mT @ bases[1]).square().sum() / int(alive.sum()))
    return {
        "sign_flips": float((cosines < 0).mean()),
        "column_cosine": float(np.median(np.abs(cosines))),
        "last_cosine": float(abs(cosines[-1])),
        "subspace_overlap": overlap,
    }


def constant_rows(config: TrainConfig, *, size: int, **shared: Any) -> pd.DataFrame:
    """What the embedding output contributes under `cls` pooling (E1), on one training batch without dropout.

    At layer 0 and at the last: `distinct_vectors` among the batch's texts; `base_loss`; the norm of its gradient by
    each state, `base_gradient`, and of the sum of these gradients, `shared_gradient`. `loss_share` is how much of the
    released form's total layer 0 makes up.

    Args:
        config: backbone and data; the batch is its first training examples.
        size: compressed size k.
        shared: columns common to all rows.
    """
    batch = replace(config, sentences=config.batch_size, examples="pairs")
    (one, two), labels = texts_and_labels(training_examples(batch))
    encoder = SentenceEncoder.load(config.backbone, pooling="cls")
    keys = torch.from_numpy(np.unique([*one, *two], return_inverse=True)[1])
    loss = base_loss(batch, labels, keys)
    states = [torch.from_numpy(h).double() for h in encoder.encode_layers([*one, *two])]
    code = ESPRESSO_FORMS["code"]
    shallow = shallow_layers(len(states), code)
    weights = layer_weights(len(shallow))

    def part(layer: int) -> Tensor:
        X = states[layer]
        target = compress_target(X, size, dependency=code.dependency, decomposition="eigh")
        return loss(X[:, :size]) + align(X[:, :size], target, temperature=code.temperature)

    parts = [(w * part(layer)).item() / len(shallow) for w, layer in zip(weights, shallow, strict=True)]
    total = sum(parts) + (part(len(states) - 1) + loss(states[-1])).item()
    common = {"method": CONSTANT, "backbone": config.backbone, "dim": size}
    rows = [{**common, "layer": 0, "metric": "loss_share", "value": parts[0] / total}]
    for layer in (0, len(states) - 1):
        rows += [{**common, "layer": layer, **row} for row in _of_layer(states[layer][:, :size], loss)]
    return make_rows(rows, **shared)


def _of_layer(prefix: Tensor, loss: Any) -> Iterator[dict[str, Any]]:
    leaf = prefix.clone().requires_grad_()
    value = loss(leaf)
    value.backward()
    assert leaf.grad is not None
    yield {"metric": "distinct_vectors", "value": float(len(torch.unique(prefix, dim=0)))}
    yield {"metric": "base_loss", "value": value.item()}
    # of rows scaled to unit length, so that layers of different scale compare
    yield {"metric": "base_gradient", "value": float((leaf.grad.norm(dim=1) * prefix.norm(dim=1)).mean())}
    # all that can move a vector that every text shares
    yield {"metric": "shared_gradient", "value": float(leaf.grad.sum(0).norm() * prefix.norm(dim=1).mean())}
