"""The lines of ESE's comparison: a backbone as it is, and after three trainings on the same pairs and seed.

RAW is the backbone untouched. `RAW + NLI` is the control that the paper lacks: AnglE on the pairs that MRL and ESE
see, but without any scaling, so that what the pairs teach can be told from what the scaling does (audit E10).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import log2
from typing import Any

from repro.config import TrainConfig
from repro.digests import digest
from repro.methods import CONTROL, ESE_CODE, ESE_METHODS, MRL, RAW
from repro.models import SentenceEncoder
from repro.objectives import ESPRESSO_FORMS, EspressoConfig
from repro.runs.cell import TrainedCell, hidden_dim_of, train_all
from repro.runs.embeddings import LayerTable, encode_layers_once, states_identity
from repro.store import Store
from repro.types import one_of

PAPER_SHARE = 128 / 768
"""of the hidden size that ESE compresses to"""


@dataclass(frozen=True)
class Line:
    """One line of the comparison: an encoder, not loaded until something has to be encoded."""

    method: str
    backbone: str
    config: TrainConfig | None
    """how it was trained; None for the untouched backbone"""
    encoder: Callable[[], SentenceEncoder]
    identity: str
    """digest of everything that decides its states"""
    cell: TrainedCell | None = None
    """the training itself; None for the untouched backbone"""

    @property
    def columns(self) -> dict[str, Any]:
        """Columns of its rows; `n_train` counts training pairs, none for the untouched backbone."""
        n_train = None if self.config is None else self.config.sentences
        return {"method": self.method, "backbone": self.backbone, "n_train": n_train}

    def less(self, rival: "Line", sign: str = "−") -> dict[str, Any]:
        """Columns of the rows that compare it with another line, as in `ESE − RAW`."""
        return {**self.columns, "method": f"{self.method} {sign} {rival.method}"}

    def states(self, texts: Iterable[str], store: Store, *, progress: bool = False) -> LayerTable:
        """Pooled states of texts at all layers, from one pass or from the store."""
        return encode_layers_once(self.encoder, self.identity, texts, store, progress=progress)


def compression_size(hidden_dim: int) -> int:
    """ESE's k for a backbone: the power of two nearest to the paper's share of the hidden size, 128 of 768."""
    return max(2, int(2 ** round(log2(hidden_dim * PAPER_SHARE))))


def line_config(base: TrainConfig, method: str, *, size: int | None = None) -> TrainConfig:
    """The training behind a method: `base` with the method's objective, and nothing that the objective does not read.

    Args:
        base: backbone, data, schedule and seed, the same for all methods.
        method: `RAW + NLI`, `MRL`, `ESE`, or `ESE (code)`.
        size: compressed size k of ESE; None is the paper's share of the hidden size.

    Raises:
        InputError: for another method.
    """
    one_of(method, [m for m in (*ESE_METHODS, ESE_CODE) if m != RAW], "trained method")
    hidden_dim = hidden_dim_of(base)
    # a setting that is not read must not name another cell, or pages would train what the store already holds
    plain = replace(base, objective="angle", dim=hidden_dim, prefixes=(), espresso=EspressoConfig())
    if method == CONTROL:
        return plain
    if method == MRL:
        return replace(plain, objective="matryoshka", prefixes=base.prefixes)
    form = ESPRESSO_FORMS["code"] if method == ESE_CODE else base.espresso
    return replace(plain, objective="ese", dim=size or compression_size(hidden_dim), espresso=form)


def ese_lines(
    base: TrainConfig,
    store: Store,
    *,
    methods: Sequence[str] = ESE_METHODS,
    size: int | None = None,
    progress: bool = True,
) -> list[Line]:
    """The lines of some methods, in their order; those that the store does not hold are trained, side by side.

    Args:
        base: backbone, data, schedule and seed of the trainings; its objective and dim are not read.
        store: where trained encoders are kept.
        methods: of `ESE_METHODS`, or `ESE (code)`.
        size: compressed size k of ESE; None is the paper's share of the hidden size.
        progress: show progress bars.

    Raises:
        InputError: for an unknown method.
    """
    for method in methods:
        one_of(method, [*ESE_METHODS, ESE_CODE], "method")
    configs = {method: line_config(base, method, size=size) for method in methods if method != RAW}
    trained = {line.method: line for line in trained_lines(configs, store, progress=progress)}
    return [raw_line(base) if method == RAW else trained[method] for method in methods]


def trained_lines(configs: dict[str, TrainConfig], store: Store, *, progress: bool = True) -> list[Line]:
    """A line for every named configuration; equal ones share a training."""
    cells = train_all(list(configs.values()), store, progress=progress)
    return [
        Line(name, cell.config.backbone, cell.config, partial(getattr, cell, "encoder"), cell.key, cell)
        for name, cell in zip(configs, cells, strict=True)
    ]


def raw_line(base: TrainConfig) -> Line:
    """The untouched backbone, read with the pooling and down to the depth that the others are trained with."""
    options: dict[str, Any] = {"pooling": base.pooling}
    identity = states_identity(base.backbone, base.pooling)
    if base.bidirectional or base.final_norm != "last":
        options |= {"bidirectional": base.bidirectional, "final_norm": base.final_norm}
        identity = digest({"states": identity, "bidirectional": base.bidirectional, "norm": base.final_norm})
    if base.layers is not None:
        identity = digest({"states": identity, "layers": base.layers})
    return Line(RAW, base.backbone, None, partial(_untouched, base.backbone, base.layers, options), identity)


def _untouched(backbone: str, layers: int | None, options: dict[str, Any]) -> SentenceEncoder:
    encoder = SentenceEncoder.load(backbone, **options)
    if layers is not None:
        encoder.backbone.keep(layers)
    return encoder
