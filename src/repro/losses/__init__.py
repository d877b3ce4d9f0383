"""Losses: functions of embeddings; none of them sees a model."""

from repro.losses.angle import angle, angle_pairs, angle_triples, cosent, in_batch_negatives
from repro.losses.compress import align, compress_target, layer_weights
from repro.losses.contrastive import duplicate_mask, info_nce
from repro.losses.distributed import gather_with_grad
from repro.losses.espresso import espresso, initial_log_weights, shallow_layers
from repro.losses.geometry import alignment, uniformity
from repro.losses.matryoshka import matryoshka
from repro.losses.nli import nli_features, softmax_nli

__all__ = [
    "align",
    "alignment",
    "angle",
    "angle_pairs",
    "angle_triples",
    "compress_target",
    "cosent",
    "duplicate_mask",
    "espresso",
    "gather_with_grad",
    "in_batch_negatives",
    "info_nce",
    "initial_log_weights",
    "layer_weights",
    "matryoshka",
    "nli_features",
    "shallow_layers",
    "softmax_nli",
    "uniformity",
]
