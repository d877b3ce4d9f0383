"""Losses: functions of embeddings; none of them sees a model."""

from repro.losses.contrastive import duplicate_mask, info_nce
from repro.losses.distributed import gather_with_grad
from repro.losses.geometry import alignment, uniformity
from repro.losses.nli import nli_features, softmax_nli

__all__ = [
    "alignment", "duplicate_mask", "gather_with_grad", "info_nce", "nli_features", "softmax_nli", "uniformity",
]  # fmt: skip
