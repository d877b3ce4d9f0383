"""Wang's pooler: z = activation(h Wᵀ + b), W (dim, hidden_dim) (Wang et al., 2023, §2; PROTOCOLS §1.2)."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from repro.seeding import derive_seed
from repro.types import Array, check_dim, one_of

ACTIVATIONS = ("tanh", "identity")


class Head(nn.Module):
    """What turns pooled states (n, hidden_dim) into embeddings (n, dim)."""

    dim: int
    settings: Any
    """what its constructor takes, after the hidden size"""

    @torch.no_grad()
    def project(self, h: Array) -> Array:
        """Project stored states h (n, D) to embeddings (n, dim), both numpy."""
        device = next((weight.device for weight in self.parameters()), torch.device("cpu"))
        z = self(torch.from_numpy(np.ascontiguousarray(h, dtype=np.float32)).to(device))
        return np.asarray(z.cpu().numpy())


class Pooler(Head):
    """The layer that is resized: d(D + 1) parameters, d may exceed D."""

    def __init__(
        self, hidden_dim: int, dim: int, *, activation: str = "tanh", bias: bool = True, normalize: bool = False
    ) -> None:
        super().__init__()
        check_dim(dim)
        self.activation = one_of(activation, ACTIVATIONS, "activation")
        self.normalize = normalize
        self.linear = nn.Linear(hidden_dim, dim, bias=bias)
        self.dim = dim
        self.settings = {"dim": dim, "activation": activation, "bias": bias, "normalize": normalize}

    @property
    def hidden_dim(self) -> int:
        """Backbone hidden size D."""
        return self.linear.in_features

    def initialise(self, seed: int) -> "Pooler":
        """Fresh weights W ~ N(0, 0.02²), b = 0, from a generator owned by (seed, dim)."""
        generator = torch.Generator().manual_seed(derive_seed(seed, "pooler", self.dim))
        with torch.no_grad():
            self.linear.weight.normal_(0.0, 0.02, generator=generator)
            if self.linear.bias is not None:
                self.linear.bias.zero_()
        return self

    def forward(self, h: Tensor) -> Tensor:
        """Project h (B, D) to z (B, dim)."""
        z = self.linear(h)
        if self.activation == "tanh":
            z = torch.tanh(z)
        return nn.functional.normalize(z, dim=-1, eps=1e-12) if self.normalize else z
