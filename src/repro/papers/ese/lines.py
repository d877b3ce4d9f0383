"""The lines of ESE's comparison: what each is trained with, and at which sizes it is read.

RAW is the backbone untouched. `RAW + NLI` is the control that the paper lacks: AnglE on the pairs
that MRL and ESE see, but without any scaling, so that what the pairs teach can be told from what
the scaling does (audit E10).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import log2
from typing import Any

from repro.digests import digest
from repro.methods import CONTROL, ESE_CODE, ESE_METHODS, MRL, RAW
from repro.models import SentenceEncoder
from repro.objectives import trained_columns
from repro.runs.cell import TrainedCell, hidden_dim_of, train_all
from repro.runs.encoders import LayerTable, Named, as_it_is, encode_layers_once, states_identity
from repro.settings import ESPRESSO_FORMS, EspressoConfig, TrainConfig
from repro.store import Store
from repro.training.end_to_end import fresh_encoder
from repro.types import check_dim, one_of

PAPER_SHARE = 128 / 768  # Of the hidden size that ESE compresses to
PRINTED_DIMS = (64, 128, 256, 512, 768)  # The sizes that Table 3 and Figure 6 search with


@dataclass(frozen=True)
class LayeredEncoder(Named):
    """An encoder that is read at every layer; its name is the method of its rows."""

    make: Callable[[], SentenceEncoder]
    cell: TrainedCell | None = None  # Its training; None for the untouched backbone

    @property
    def columns(self) -> dict[str, Any]:
        """Columns of its rows; `n_train` counts training pairs, none for the untouched backbone."""
        columns = {"method": self.name, "backbone": self.backbone, "n_train": self.n_train}
        return columns | (trained_columns(self.cell.config) if self.cell else {})

    def less(self, rival: "LayeredEncoder", sign: str = "−") -> dict[str, Any]:
        """Columns of the rows that compare it with another line, as in `ESE − RAW`."""
        return {**self.columns, "method": f"{self.name} {sign} {rival.name}"}

    def states(self, texts: Iterable[str], store: Store) -> LayerTable:
        """Pooled states of texts at all layers, from one pass or from the store."""
        return encode_layers_once(self.make, self.identity, texts, store)


def compression_size(hidden_dim: int) -> int:
    """ESE's k for a backbone: the power of two nearest to the paper's share of the hidden size, 128
    of 768.
    """
    return max(2, int(2 ** round(log2(hidden_dim * PAPER_SHARE))))


def sizes(hidden_dim: int, dims: Sequence[int] | None = None) -> list[int]:
    """The sizes to search with: those given that a network has, its full size added.

    None takes the printed ones where the network reaches them, else as many by halving its own.
    """
    if dims is None:
        halved = [hidden_dim // 2**i for i in range(len(PRINTED_DIMS))]
        dims = PRINTED_DIMS if hidden_dim >= max(PRINTED_DIMS) else [d for d in halved if d > 1]
    return sorted({check_dim(d) for d in dims if d < hidden_dim} | {hidden_dim})


def line_config(base: TrainConfig, method: str, *, size: int | None = None) -> TrainConfig:
    """The training behind a method: `base` with the method's objective, and nothing that the
    objective does not read.

    A `size` of None is the paper's share of the hidden size.
    """
    one_of(method, [*ESE_METHODS[1:], ESE_CODE], "trained method")
    hidden_dim = hidden_dim_of(base)
    # A setting that is not read must not name another cell, or pages would train what the store
    # already holds
    plain = replace(base, objective="angle", dim=hidden_dim, prefixes=(), espresso=EspressoConfig())
    if method == CONTROL:
        return plain
    if method == MRL:
        return replace(plain, objective="matryoshka", prefixes=base.prefixes)
    form = ESPRESSO_FORMS["code"] if method == ESE_CODE else base.espresso
    compressed = compression_size(hidden_dim) if size is None else size
    return replace(plain, objective="ese", dim=compressed, espresso=form)


def ese_lines(
    base: TrainConfig,
    store: Store,
    *,
    methods: Sequence[str] = ESE_METHODS,
    size: int | None = None,
) -> list[LayeredEncoder]:
    """The lines of some methods, in their order; those that the store does not hold are trained,
    side by side.

    Of `base` the objective and the dim are not read; `size` is ESE's compressed size k.
    """
    configs = {method: line_config(base, method, size=size) for method in methods if method != RAW}
    trained = {line.name: line for line in trained_lines(configs, store)}
    return [raw_line(base) if method == RAW else trained[method] for method in methods]


def trained_lines(configs: dict[str, TrainConfig], store: Store) -> list[LayeredEncoder]:
    """A line for every named configuration; equal ones share a training."""
    return [
        LayeredEncoder(
            name,
            partial(getattr, cell, "encoder"),
            cell.key,
            config.backbone,
            config.sentences,
            cell=cell,
        )
        for (name, config), cell in zip(
            configs.items(),
            train_all(list(configs.values()), store),
            strict=True,
        )
    ]


def raw_line(base: TrainConfig) -> LayeredEncoder:
    """The untouched backbone, read with the pooling and down to the depth that the others are
    trained with.
    """
    # What their trainings start from
    plain = replace(base, objective="angle", lora=None, dropout=None)
    identity, read = (
        states_identity(base.backbone, base.pooling),
        ("bidirectional", "final_norm", "layers"),
    )
    if any(getattr(base, name) != getattr(TrainConfig(), name) for name in read):
        identity = digest({"states": identity, **{name: getattr(base, name) for name in read}})
    load = as_it_is(base.backbone, partial(fresh_encoder, plain, pooler=False))
    return LayeredEncoder(RAW, load, identity, base.backbone)
