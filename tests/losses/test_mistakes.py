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
    (lambda: losses.angle_triples(X, Y, THREE), r"query has shape \(6, 4\), negative \(3, 4\)"),
    (lambda: losses.softmax_nli(X, Y, CLASSES + 1, WIDE[:3, :12]), "label 3: expected 0, 1 or 2"),
    (
        lambda: losses.softmax_nli(X, Y, CLASSES[:5], WIDE[:3, :12]),
        r"labels has shape \(5,\): expected \(6,\), one per pair",
    ),
    (
        lambda: losses.softmax_nli(X, Y, CLASSES, WIDE[:3, :10]),
        r"weight has shape \(3, 10\): expected \(3, 12\)",
    ),
    (
        lambda: losses.softmax_nli(X, Y, CLASSES, SHARES, X[0]),
        r"bias has shape \(4,\): expected \(3,\)",
    ),
    (lambda: losses.info_nce(X, Y, temperature="hot"), "temperature is hot: expected a number"),
    (lambda: losses.info_nce(X, Y, temperature=math.inf), "temperature is inf: expected a number"),
    (lambda: losses.info_nce(X, Y, mask=X.numpy()), "mask is of type ndarray"),
    (lambda: losses.cosent(X, Y, GRADES, scale=None), "scale is None: expected a number"),
    (lambda: losses.align(X, Y, temperature=math.nan), "temperature is nan: expected a finite"),
    (lambda: EspressoConfig(temperature=math.nan), "temperature is nan: expected a finite"),
    (lambda: EspressoConfig(beta=math.inf), "beta is inf: expected a finite"),
    (lambda: losses.layer_weights(-1), "n is -1: expected at least 1"),
    (lambda: nested((2, 4), (1.0, math.nan)), "weights has 1 NaN or infinite values"),
    (lambda: nested((2, 4), 3.0), "weights has shape"),
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
    (lambda: ese([*LAYERS, X]), r"layers\[0\] has shape \(6, 8\), layers\[5\] \(6, 4\)"),
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

SHARES = WIDE[:3, :12]
LOSSES = {
    "z1": lambda X: losses.info_nce(X, Y),
    "z2": lambda X: losses.alignment(Y, X),
    "z_neg": lambda X: losses.info_nce(Y, Y, z_neg=X),
    "z": losses.uniformity,
    "x": lambda X: losses.angle_pairs(X, Y, GRADES),
    "y": lambda X: losses.cosent(Y, X, GRADES),
    "negative": lambda X: losses.angle_triples(Y, Y, X),
    "u": lambda X: losses.softmax_nli(X, Y, CLASSES, SHARES),
    "v": lambda X: losses.nli_features(Y, X),
    "target": lambda X: losses.align(Y, X),
    "X": lambda X: losses.compress_target(X, 2),
    r"layers\[1\]": lambda X: losses.espresso([Y, X], lambda Z: Z.sum(), size=2),
}
"""One matrix of each loss by its name, which another one may take the place of."""
OTHERS = {
    "array": (X.numpy(), r"is of type ndarray: expected a tensor, such as torch\.as_tensor"),
    "list": (X.tolist(), "is of type list: expected a tensor"),
    "nothing": (None, "is of type NoneType: expected a tensor"),
    "sparse": (X.to_sparse(), "is sparse: expected a dense tensor"),
    "whole": (X.long(), r"holds torch\.int64: expected real numbers"),
    "complex": (X.to(torch.complex64), r"holds torch\.complex64: expected real numbers"),
    "single": (X.float(), r"in torch\.float32: expected one precision"),
    "no rows": (X[:0], r"\(0, 4\).*: expected"),
    "no columns": (X[:, :0], r"\(6, 0\).*: expected"),
    "one row": (X[0], r"\(4,\).*: expected"),
}
"""What is none of the matrices (6, 4) in double precision that stand beside it."""
ALONE = {("z", "single"), ("X", "single"), ("z_neg", "no rows"), ("z_neg", "nothing")}
"""Losses that nothing stands beside, and negatives of which there may be none."""


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_names_what_is_no_matrix_as_the_others(name, other):
    given, message = OTHERS[other]
    if (name, other) in ALONE:
        assert torch.isfinite(LOSSES[name](given)).all()
        return
    with pytest.raises(InputError, match=f"({name}.*)?{message}"):
        LOSSES[name](given)


COLUMNS = {
    "labels of classes": ("labels", lambda c: losses.softmax_nli(X, Y, c, SHARES), True),
    "grades": ("labels", lambda c: losses.cosent(X, Y, c), False),
    "keys": (
        "keys",
        lambda c: losses.in_batch_negatives(X, Y, GRADES, keys=torch.cat([c, c])),
        True,
    ),
    "keys of a mask": ("keys", losses.duplicate_mask, True),
    "others of a mask": ("others", lambda c: losses.duplicate_mask(GRADES, c), True),
}


@pytest.mark.parametrize(("name", "loss", "whole"), COLUMNS.values(), ids=COLUMNS)
def test_one_number_a_row_is_whole_where_it_is_a_name(name, loss, whole):
    for column in (CLASSES, CLASSES.int(), CLASSES.byte()):
        assert torch.equal(loss(column), loss(CLASSES))
    with pytest.raises(InputError, match=f"{name} holds torch.complex64"):
        loss(CLASSES.to(torch.complex64))
    with pytest.raises(InputError, match=f"{name} has shape"):
        loss(CLASSES[:, None].repeat(1, 3))
    if whole:
        with pytest.raises(InputError, match=f"{name} holds torch.float32: expected whole numbers"):
            loss(CLASSES.float())


def test_class_probabilities_are_no_labels():
    with pytest.raises(InputError, match=r"labels has shape \(6, 3\): expected \(6,\)"):
        losses.softmax_nli(X, Y, torch.rand(6, 3), SHARES)


def test_a_batch_without_pairs_has_no_loss():
    with pytest.raises(InputError, match=r"u has shape \(0, 4\)"):
        losses.softmax_nli(X[:0], Y[:0], CLASSES[:0], SHARES)


def test_half_and_single_precision_go_together():
    half = losses.softmax_nli(X.bfloat16(), Y.bfloat16(), CLASSES, SHARES.float())
    whole = losses.softmax_nli(X, Y, CLASSES, SHARES)
    assert half.item() == pytest.approx(whole.item(), rel=0.02)
    views = losses.info_nce(X.half(), Y.float())
    assert views.item() == pytest.approx(losses.info_nce(X, Y).item(), rel=0.02)


@pytest.mark.parametrize(("call", "message"), MISTAKES, ids=[message for _, message in MISTAKES])
def test_what_is_wrong_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
