"""What a training can be told: frozen values that need no network imported (method-espresso,
method-two-step in the book).
"""

from dataclasses import dataclass
from typing import Literal, get_args

from repro.types import (
    DataSource,
    InputError,
    check_choices,
    check_dim,
    check_positive,
    finite_number,
)

Pooling = Literal["cls", "mean", "last", "avg_first_last"]
Activation = Literal["tanh", "identity"]
LayerWeights = Literal["log", "uniform", "learned", "learned_literal"]
Decomposition = Literal["eigh", "subspace", "randomized"]
Strategy = Literal["dependencies", "embeddings", "max_k", "none"]
LAYER_WEIGHTS: tuple[str, ...] = get_args(LayerWeights)
DECOMPOSITIONS: tuple[str, ...] = get_args(Decomposition)


@dataclass(frozen=True)
class AngleConfig:
    """Weights and scales of AnglE's terms (Li & Li, 2024); a scale is one over a temperature."""

    cosine_weight: float = 1.0
    in_batch_weight: float = 1.0
    angle_weight: float = 1.0
    negative_weight: float = 1.0  # Of the contrastive term with hard negatives, triples only
    cosine_scale: float = 20.0
    in_batch_scale: float = 20.0
    angle_scale: float = 1.0
    # `mean` divides the angle term's similarity by the embedding size
    angle_pooling: Literal["sum", "mean"] = "sum"

    def __post_init__(self) -> None:
        check_choices(self)
        check_positive(self, "cosine_scale", "in_batch_scale", "angle_scale")
        for name in ("cosine_weight", "in_batch_weight", "angle_weight", "negative_weight"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} is {getattr(self, name)}: expected 0 or more")


ANGLE_PRESETS: dict[str, AngleConfig] = {
    "paper": AngleConfig(),
    "code": AngleConfig(cosine_weight=0.0, angle_weight=0.02, angle_scale=20.0),
    "ese_readme": AngleConfig(cosine_weight=0.0, in_batch_weight=10.0, angle_scale=20.0),
}
"""AnglE's paper, the defaults of its released code, and the command that ESE's authors publish."""


@dataclass(frozen=True)
class EspressoConfig:
    """Every switch of ESE (Li et al., 2025, Eqs. 2-7); the defaults are the printed form."""

    # Of the shallow layers: 1/(1 + ln position), all 1, or learned along
    layer_weights: LayerWeights = "log"
    # First trained layer; 0 is the embedding output, a constant under `cls` pooling
    first_layer: int = 1
    # Last trained layer below the last, counted back from L: -1 is layer L - 1
    last_shallow: int = -1
    reduction: Literal["sum", "mean"] = "sum"  # Over the shallow layers
    full_size_loss: bool = False  # Also train the last layer at full size
    dependency: Literal["per_sentence", "per_batch"] = "per_sentence"
    """One dependency matrix (D, D) for each sentence, or one for the batch."""
    decomposition: Decomposition = "eigh"
    """Exact, exact within a stated tolerance but faster, or randomised with a seed."""
    strategy: Strategy = "dependencies"  # What the compressed target is made of (Table 2)
    center: bool = False  # Subtract the batch mean before `strategy="embeddings"` decomposes
    stop_gradient: bool = True  # Hold the target fixed
    temperature: float = 1.0  # Of the Kullback-Leibler part of the alignment; 0 or less drops it
    alpha: float = 1.0  # Weight of learn-to-express
    beta: float = 1.0  # Weight of learn-to-compress

    def __post_init__(self) -> None:
        check_choices(self)
        for name in ("temperature", "alpha", "beta"):
            finite_number(getattr(self, name), name)
        if self.first_layer < 0:
            raise InputError(
                f"first_layer is {self.first_layer}: expected 0 (embedding output) or more"
            )
        if self.last_shallow > -1:
            raise InputError(
                f"last_shallow is {self.last_shallow}: expected -1 (layer L - 1) or less"
            )


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
"""ESE as printed, and as its authors released it."""


@dataclass(frozen=True)
class LoraConfig:
    """Low-rank adapters instead of training a backbone's own weights (Hu et al., 2022); ESE's
    settings for LLMs.
    """

    rank: int = 32
    alpha: float = 32.0  # The product is scaled by alpha / rank
    dropout: float = 0.1
    # Names of the linear layers that get one; empty takes all inside the blocks
    targets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_dim(self.rank, what="rank")
        check_positive(self, "alpha")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout is {self.dropout}: expected 0 or more, below 1")


@dataclass(frozen=True)
class TrainConfig:
    """One end-to-end training: objective, backbone, pooler width, data and schedule
    (method-info-nce, method-softmax-nli in the book).
    """

    objective: str = "simcse"  # A name of `repro.objectives.OBJECTIVES`
    """Contrastive on plain sentences; or on entailment pairs a softmax classifier, AnglE, AnglE on
    prefixes, ESE.
    """
    backbone: str = "repro-tiny"  # Shipped name, local folder or hub id
    layers: int | None = None  # Blocks kept of the backbone, from the first; None keeps all
    dim: int = 128
    """Embedding size d of the pooler; may exceed the hidden size. `ese` has no pooler: its
    compressed size k.
    """
    pooling: Pooling = "cls"
    activation: Activation = "tanh"
    temperature: float = 0.05
    batch_size: int = 64
    """Sentences per step, over all processes; gradient accumulation would not enlarge the negative
    set.
    """
    learning_rate: float = 3e-5
    warmup: float = 0.0  # Share of the steps over which the learning rate rises from 0
    max_length: int = 32  # Tokens kept of a training sentence
    epochs: float = 1.0
    sentences: int = 20_000
    """Training sentences drawn from the corpus; pairs of the `nli` objective, pairs or triples of
    the AnglE ones.
    """
    check_every: int = 125  # Steps between dev checks; the best check is kept
    # Readout whose dev Spearman picks the checkpoint
    checkpoint_by: Literal["pooler", "encoder"] = "pooler"
    # Leave equal texts out of the negatives; False is SimCSE as published
    mask_duplicates: bool = True
    prefixes: tuple[int, ...] = ()
    """Sizes that `matryoshka` trains, up to the hidden size, which is added; empty is 8, 16, 32, …
    512, 768.
    """
    examples: Literal["pairs", "triples"] = "pairs"
    """Of the AnglE objectives: pairs labelled 1 or 0, or premises with an entailed and a
    contradicted hypothesis.
    """
    angle: AngleConfig = ANGLE_PRESETS["paper"]
    espresso: EspressoConfig = ESPRESSO_FORMS["paper"]
    lora: LoraConfig | None = None  # Train low-rank adapters in place of the backbone's weights
    bidirectional: bool = False  # Let the tokens of a decoder backbone see those after them
    # Which states pass the final norm of a backbone that has one
    final_norm: Literal["last", "all", "none"] = "last"
    dropout: float | None = None  # Dropout of every layer; None keeps the backbone's own
    difference: Literal["abs", "signed"] = "abs"
    """Third feature of the `nli` classifier: |u − v|, or u − v as Wang et al. print it."""
    corpus: str = "wiki"
    # Scored pairs whose dev split picks checkpoints, learning rates and opt
    validation: str = "stsb"
    source: DataSource = "microworld"
    bf16: bool = False
    # CPU threads; part of the configuration because sums over threads round differently
    threads: int = 1
    save_every: int = 250  # Steps between resumable states
    seed: int = 0

    def __post_init__(self) -> None:
        check_choices(self)
        check_positive(self, "temperature", "epochs", "learning_rate")
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise InputError(f"dropout is {self.dropout}: expected 0 or more, below 1")
        if not 0 <= self.warmup <= 1:
            raise InputError(f"warmup is {self.warmup}: expected a share of the steps, 0 to 1")
        check_dim(self.max_length, what="max_length")
        check_batch(self.batch_size)
        check_dim(self.dim)
        check_dim(self.sentences, what="sentences")
        if self.layers is not None:
            check_dim(self.layers, what="layers")
        for size in self.prefixes:
            check_dim(size, what="a prefix")
        if list(self.prefixes) != sorted(set(self.prefixes)):
            raise InputError(f"prefixes are {self.prefixes}: expected rising sizes, each once")


@dataclass(frozen=True)
class StepTwoConfig:
    """Step 2 of two-step training: poolers on a frozen encoder (method-two-step in the book)."""

    # Tried side by side; the dev score picks one per dim
    learning_rates: tuple[float, ...] = (1e-5, 3e-5, 1e-4, 1e-3)
    views: int = 2  # Cached dropout views of every sentence
    epochs: float = 1.0
    batch_size: int = 64
    temperature: float = 0.05
    check_every: int = 125
    patience: int = 10
    # Start from the pooler of step 1, or from fresh weights
    start: Literal["current", "random"] = "current"
    clip_norm: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.views < 2:
            raise InputError(
                f"views is {self.views}: step 2 contrasts two dropout views, so at least 2 are "
                "needed"
            )
        if not self.learning_rates:
            raise InputError("learning_rates is empty: give at least one")
        check_positive(self, "temperature", "epochs")
        check_dim(self.patience, what="patience")
        check_batch(self.batch_size)


def check_batch(size: int) -> None:
    """Refuse a batch in which no text has another to be told from."""
    if size < 2:
        raise InputError(f"batch_size is {size}: a contrastive loss needs at least 2 texts")
