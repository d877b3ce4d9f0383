"""What the objectives of ESE's page can be told: AnglE's weights and scales, and ESE's two forms, by name.

Plain values, so that a configuration can hold them without a network being imported (PROTOCOLS §2.3, §2.5).
"""

from dataclasses import dataclass
from typing import Literal

from repro.types import InputError, check_dim, one_of

LayerWeights = Literal["log", "uniform", "learned", "learned_literal"]
Dependency = Literal["per_sentence", "per_batch"]
Decomposition = Literal["eigh", "subspace", "randomized"]
Strategy = Literal["dependencies", "embeddings", "max_k", "none"]
LAYER_WEIGHTS = ("log", "uniform", "learned", "learned_literal")
DECOMPOSITIONS = ("eigh", "subspace", "randomized")


@dataclass(frozen=True)
class AngleConfig:
    """Weights and scales of AnglE's terms (Li & Li, 2024); a scale is one over a temperature."""

    cosine_weight: float = 1.0
    in_batch_weight: float = 1.0
    angle_weight: float = 1.0
    negative_weight: float = 1.0
    """of the contrastive term with hard negatives, triples only"""
    cosine_scale: float = 20.0
    in_batch_scale: float = 20.0
    angle_scale: float = 1.0
    angle_pooling: Literal["sum", "mean"] = "sum"
    """`mean` divides the angle term's similarity by the embedding size"""

    def __post_init__(self) -> None:
        for name in ("cosine_scale", "in_batch_scale", "angle_scale"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} is {getattr(self, name)}: expected a number above 0")
        for name in ("cosine_weight", "in_batch_weight", "angle_weight", "negative_weight"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} is {getattr(self, name)}: expected 0 or more")
        one_of(self.angle_pooling, ("sum", "mean"), "angle_pooling")


ANGLE_PRESETS: dict[str, AngleConfig] = {
    "paper": AngleConfig(),
    "code": AngleConfig(cosine_weight=0.0, angle_weight=0.02, angle_scale=20.0),
    "ese_readme": AngleConfig(cosine_weight=0.0, in_batch_weight=10.0, angle_scale=20.0),
}
"""AnglE's paper, the defaults of its released code, and the command that ESE's authors publish"""


@dataclass(frozen=True)
class EspressoConfig:
    """Every switch of ESE (Li et al., 2025, Eqs. 2-7); the defaults are the printed form."""

    layer_weights: LayerWeights = "log"
    """of the shallow layers: 1/(1 + ln position), all 1, or learned along"""
    first_layer: int = 1
    """first trained layer; 0 is the embedding output, a constant under `cls` pooling"""
    last_shallow: int = -1
    """last trained layer below the last, counted back from L: -1 is layer L - 1"""
    reduction: Literal["sum", "mean"] = "sum"
    """over the shallow layers"""
    full_size_loss: bool = False
    """also train the last layer at full size"""
    dependency: Dependency = "per_sentence"
    """one dependency matrix (D, D) for each sentence, or one for the batch"""
    decomposition: Decomposition = "eigh"
    """exact, exact within a stated tolerance but faster, or randomised with a seed"""
    strategy: Strategy = "dependencies"
    """what the compressed target is made of (Table 2)"""
    center: bool = False
    """subtract the batch mean before `strategy="embeddings"` decomposes"""
    stop_gradient: bool = True
    """hold the target fixed"""
    temperature: float = 1.0
    """of the Kullback-Leibler part of the alignment; 0 or less drops it"""
    alpha: float = 1.0
    """weight of learn-to-express"""
    beta: float = 1.0
    """weight of learn-to-compress"""

    def __post_init__(self) -> None:
        one_of(self.layer_weights, LAYER_WEIGHTS, "layer_weights")
        one_of(self.reduction, ("sum", "mean"), "reduction")
        one_of(self.dependency, ("per_sentence", "per_batch"), "dependency")
        one_of(self.decomposition, DECOMPOSITIONS, "decomposition")
        one_of(self.strategy, ("dependencies", "embeddings", "max_k", "none"), "strategy")
        if self.first_layer < 0:
            raise InputError(f"first_layer is {self.first_layer}: expected 0 (embedding output) or more")
        if self.last_shallow > -1:
            raise InputError(f"last_shallow is {self.last_shallow}: expected -1 (layer L - 1) or less")


ESPRESSO_FORMS: dict[str, EspressoConfig] = {
    "paper": EspressoConfig(),
    "code": EspressoConfig(
        first_layer=0,
        last_shallow=-2,
        reduction="mean",
        full_size_loss=True,
        dependency="per_batch",
        decomposition="randomized",
    ),
}
"""ESE as printed, and as its authors released it"""


@dataclass(frozen=True)
class LoraConfig:
    """Low-rank adapters instead of training a backbone's own weights (Hu et al., 2022); ESE's settings for LLMs."""

    rank: int = 32
    alpha: float = 32.0
    """the product is scaled by alpha / rank"""
    dropout: float = 0.1
    targets: tuple[str, ...] = ()
    """names of the linear layers that get one; empty takes all inside the blocks"""

    def __post_init__(self) -> None:
        check_dim(self.rank, what="rank")
        if not self.alpha > 0:
            raise InputError(f"alpha is {self.alpha}: expected a number above 0")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout is {self.dropout}: expected 0 or more, below 1")
