"""What a loss cannot take is named, with the numbers."""

import math

import pytest
import torch

from gradients import random
from repro import losses
from repro.settings import EspressoConfig
from repro.types import InputError

X, Y, WIDE = random(6, 4), random(6, 4, seed=1), random(6, 15)
THREE, GRADES, CLASSES = X[:3], torch.arange(6), torch.arange(6) % 3
LAYERS = [random(6, 8, seed=i) for i in range(5)]
LEARNED = EspressoConfig(layer_weights="learned")


def nested(dims, weights=None):
    return losses.matryoshka(losses.info_nce, dims, weights)(X, Y)


def ese(layers=LAYERS, **switches):
    return losses.espresso(layers, lambda Z: Z.sum(), size=3, **switches)


def target(size=3, X=LAYERS[0], **switches):
    return losses.compress_target(X, size, **switches)


MISTAKES = [
    (lambda: losses.info_nce(X, Y, temperature=0.0), r"temperature is 0\.0"),
    (lambda: losses.info_nce(THREE, Y), r"\(3, 4\), z2 \(6, 4\)"),
    (lambda: losses.info_nce(X, Y, z_neg=WIDE), r"z_neg has shape \(6, 15\): expected \(N, 4\)"),
    (lambda: losses.info_nce(X, Y, mask=WIDE > 0), r"mask has shape \(6, 15\): expected \(6, 6\)"),
    (lambda: losses.alignment(X, X[:, :1]), r"z1 has shape .*expected two views \(B, d\)"),
    (lambda: losses.alignment(X[:0], X[:0]), r"expected two views \(B, d\)"),
    (lambda: losses.uniformity(X[0]), "expected at least 2 rows"),
    (lambda: losses.uniformity(X[:1]), "expected at least 2 rows"),
    (lambda: losses.angle_pairs(X, THREE, GRADES), r"x has shape \(6, 4\), y \(3, 4\)"),
    (lambda: losses.angle_pairs(X, Y, GRADES[:5]), r"labels has shape \(5,\): expected \(6,\)"),
    (
        lambda: losses.angle_pairs(X, Y, torch.tensor([0, 1, 0, 1, 0, math.nan])),
        "label nan of pair 5",
    ),
    (lambda: losses.cosent(X, Y, GRADES, scale=-1.0), r"scale is -1\.0"),
    (
        lambda: losses.in_batch_negatives(X, Y, GRADES, keys=GRADES),
        r"keys has shape \(6,\): expected \(12,\)",
    ),
    (lambda: losses.angle_triples(X, Y, THREE), r"shapes \(6, 4\), \(6, 4\), \(3, 4\)"),
    (lambda: losses.softmax_nli(X, Y, CLASSES + 1, WIDE[:3, :12]), "label 3: expected 0, 1 or 2"),
    (
        lambda: losses.softmax_nli(X, Y, CLASSES[:5], WIDE[:3, :12]),
        "lengths differ: u has 6, labels has 5",
    ),
    (
        lambda: losses.softmax_nli(X, Y, CLASSES, WIDE[:3, :10]),
        r"weight has shape \(3, 10\): expected \(3, 12\)",
    ),
    (lambda: losses.nli_features(X, THREE), "expected one embedding per side"),
    (lambda: losses.nli_features(X, Y, difference="squared"), "unknown difference 'squared'"),
    (lambda: nested(()), r"dims are \[\]: expected at least one"),
    (lambda: nested((2, 2)), r"dims are \[2, 2\]: expected .* none twice"),
    (lambda: nested((2, 4), (1.0, -1.0)), "expected 2 numbers of 0 or more"),
    (lambda: nested((2, 9)), "dim 9 exceeds the 4 columns"),
    (lambda: losses.matryoshka(losses.info_nce, (2,))(GRADES), "no floating matrix"),
    (lambda: losses.layer_weights(3, "linear"), "unknown layer_weights 'linear'"),
    (lambda: losses.align(X, WIDE), r"x has shape \(6, 4\), target \(6, 15\)"),
    (lambda: ese(form="draft"), "unknown form 'draft': choose one of paper, code"),
    (lambda: ese(LAYERS[:1]), "1 layers: expected layer 0 and at least one"),
    (lambda: ese([*LAYERS, X]), r"layers have shapes \(6, 4\), \(6, 8\)"),
    (lambda: ese(config=EspressoConfig(first_layer=5)), "first_layer is 5: the last layer is 4"),
    (
        lambda: ese(config=LEARNED),
        r"has shape None: learned kinds need .* initial_log_weights\(3\)",
    ),
    (
        lambda: ese(log_weights=torch.zeros(3)),
        r"'log' and log_weights has shape \(3,\): .* the others take none",
    ),
    (lambda: ese(config=LEARNED, log_weights=torch.zeros(2)), r"log_weights has shape \(2,\)"),
    (lambda: target(9), "size is 9: expected 1 to 8"),
    (lambda: target(7, strategy="embeddings"), "size is 7: 6 texts have no more components"),
    (lambda: target(center=True), "center applies to strategy 'embeddings'"),
    (lambda: target(X=torch.ones(0, 8)), r"X has shape \(0, 8\)"),
    (
        lambda: target(X=torch.ones(6, 8, requires_grad=True), decomposition="subspace"),
        "no gradient through",
    ),
]


@pytest.mark.parametrize(("call", "message"), MISTAKES, ids=[message for _, message in MISTAKES])
def test_what_is_wrong_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
