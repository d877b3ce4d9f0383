"""The autoencoder: a network that must rebuild X from a few numbers, x → φ(W₁x + b₁) → W₂· + b₂
(method-autoencoder in the book).

The one reducer that needs torch, and only while it trains: a fitted one transforms with numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from repro.reducers.reducer import Reducer, check_size, deviations
from repro.seeding import make_rng, threads
from repro.terminal import progress_bar
from repro.types import Array, InputError, check_dim, check_dims, check_positive, is_number, one_of

if TYPE_CHECKING:
    from torch import Tensor

Layer = tuple[Array, Array]  # Weights (out, in) and biases (out,)
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "tanh": np.tanh,
    "relu": lambda X: np.maximum(X, 0),
    "sigmoid": lambda X: 0.5 * (1 + np.tanh(0.5 * X)),  # No exp that overflows
    "identity": lambda X: X,
}


def forward(X: Array, layers: list[Layer], activation: str, *, affine: bool) -> Array:
    """X (n, in) through the layers, φ after each; `affine` leaves it out after the last, as
    decoders do.
    """
    for i, (W, b) in enumerate(layers):
        X = X @ W.T.astype(X.dtype) + b.astype(X.dtype)  # (n, out)
        if not affine or i < len(layers) - 1:
            X = ACTIVATIONS[activation](X)
    return X


def initial_layers(sizes: list[int], rng: np.random.Generator) -> list[Layer]:
    """Uniform weights and biases within ±1/√in, torch's own default."""
    layers = []
    for before, after in pairwise(sizes):
        bound = 1 / np.sqrt(before)
        draw = rng.uniform(-bound, bound, (after, before + 1)).astype(np.float32)
        layers.append((draw[:, :before], draw[:, before]))
    return layers


@dataclass(kw_only=True, eq=False, repr=False)
class Autoencoder(Reducer):
    """Network trained by Adam to rebuild centred rows, on one thread; its narrowest layer is the
    embedding.

    The decoder ends affine, so with one layer on each side no activation rebuilds the fitted rows
    better than pca does (Eckart and Young, 1936). There is no prefix: every size is a training of
    its own.

    Fitted, it has `encoder_` and `decoder_` (weights and biases), `mean_` (D,), `losses_` (epochs,
    2) of training and held-out rows, `best_epoch_`, and `explained_variance_ratio_` (1,), what all
    units together rebuild.

    Args:
        n_components: up to D.
        hidden_layers: sizes between D and `n_components`, mirrored in the decoder; none gives a
            single hidden layer.
        activation: tanh, relu, sigmoid or identity, after every layer but the last.
        learning_rate: of Adam.
        batch_size: rows per step.
        epochs: at most so many passes.
        validation: share of the rows held out to choose the epoch that is kept; 0 chooses by the
            training loss.
        patience: epochs without improvement after which training stops.
        progress: show a bar of epochs.
        seed: of initial weights, held-out rows and order of rows.
    """

    slow: ClassVar[bool] = True
    nested: ClassVar[bool] = False

    hidden_layers: tuple[int, ...] = ()
    activation: str = "tanh"
    learning_rate: float = 1e-3
    batch_size: int = 256
    epochs: int = 100
    validation: float = 0.1
    patience: int = 5
    progress: bool = False
    seed: int = 0

    def _learn(self, X: Array) -> None:
        one_of(self.activation, list(ACTIVATIONS), "activation")
        for what in ("batch_size", "epochs", "patience"):
            check_dim(getattr(self, what), what=what)
        if not (is_number(self.validation) and 0 <= self.validation < 1):
            raise InputError(
                f"validation is {self.validation}: expected a share from 0 to below 1, such as 0.1"
            )
        check_positive(self, "learning_rate")
        D = X.shape[1]
        count = check_size(self.n_components, D, f"the columns of X, {D}")
        inner = check_dims(self.hidden_layers, "hidden_layers", each="a size in hidden_layers")
        self.mean_ = X.mean(0, dtype=np.float64)
        centred = X - self.mean_.astype(X.dtype)
        layers = initial_layers(
            [D, *inner, count, *inner[::-1], D],
            make_rng(self.seed, "autoencoder", count),
        )
        layers = self._train(centred.astype(np.float32), layers)
        self.encoder_, self.decoder_ = layers[: len(layers) // 2], layers[len(layers) // 2 :]
        embedded = forward(centred, self.encoder_, self.activation, affine=False)
        rebuilt = forward(embedded, self.decoder_, self.activation, affine=True)
        total = float(np.square(deviations(X)).sum())
        left = float(np.square(centred - rebuilt, dtype=np.float64).sum())
        self.explained_variance_ratio_ = np.array([1 - left / total if total else 0.0])

    def _reduce(self, X: Array) -> Array:
        return forward(X - self.mean_.astype(X.dtype), self.encoder_, self.activation, affine=False)

    def _train(self, X: Array, layers: list[Layer]) -> list[Layer]:
        """The layers of the best epoch, from centred X (n, D) float32."""
        import torch

        # Shared by all sizes: they differ by nothing but their size
        rng = make_rng(self.seed, "autoencoder order")
        order = rng.permutation(len(X))
        held = 0
        if self.validation:
            count = max(1, round(self.validation * len(X)))
            held = min(count, len(X) - 1)
        with threads(1):  # The same weights, bit for bit, on any machine of its kind
            rows = torch.from_numpy(X[order[held:]])
            unseen = torch.from_numpy(X[order[:held]])
            parts = [part for layer in layers for part in layer]
            parameters = [torch.tensor(part, requires_grad=True) for part in parts]
            adam = torch.optim.Adam(parameters, lr=self.learning_rate, fused=True)
            losses: list[tuple[float, float]] = []
            best, kept = float("inf"), [p.detach().clone() for p in parameters]
            for epoch in progress_bar(
                range(1, self.epochs + 1),
                desc="autoencoder",
                show=self.progress,
            ):
                shuffled = rows[torch.from_numpy(rng.permutation(len(rows)))]
                summed = torch.zeros(())
                for batch in shuffled.split(self.batch_size):
                    loss = self._loss(batch, parameters)
                    adam.zero_grad(set_to_none=True)
                    loss.backward()
                    adam.step()
                    summed += loss.detach() * len(batch)
                train = float(summed) / len(rows)
                with torch.no_grad():
                    checked = float(self._loss(unseen, parameters)) if held else train
                losses.append((train, checked))
                if not np.isfinite(train + checked):
                    raise InputError(
                        f"the autoencoder diverged in epoch {epoch}: its training loss is "
                        f"{train:g} and its held-out loss {checked:g}; lower learning_rate (now "
                        f"{self.learning_rate:g}) or scale X down"
                    )
                if checked < best:
                    best, self.best_epoch_, kept = (
                        checked,
                        epoch,
                        [p.detach().clone() for p in parameters],
                    )
                elif epoch - self.best_epoch_ >= self.patience:
                    break
        self.losses_ = np.array(losses)
        arrays = [p.numpy() for p in kept]
        return list(zip(arrays[::2], arrays[1::2], strict=True))

    def _loss(self, batch: Tensor, parameters: list[Tensor]) -> Tensor:
        """Mean squared error of the rebuilt batch (B, D)."""
        import torch
        from torch.nn import functional as F

        activation = getattr(torch, self.activation, None)  # torch knows no identity
        states, last = batch, len(parameters) - 2
        for i in range(0, len(parameters), 2):
            states = F.linear(states, parameters[i], parameters[i + 1])
            if activation is not None and i < last:
                states = activation(states)
        return F.mse_loss(states, batch)
