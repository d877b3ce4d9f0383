"""Losses: functions of embeddings; none of them sees a model."""

from repro.losses.angle import angle, angle_pairs, angle_triples, cosent, in_batch_negatives
from repro.losses.contrastive import alignment, duplicate_mask, info_nce, uniformity
from repro.losses.espresso import align, compress_target, espresso, layer_weights, shallow_layers
from repro.losses.matryoshka import matryoshka
from repro.losses.nli import nli_features, softmax_nli
