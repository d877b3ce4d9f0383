"""Matryoshka is the sum of its parts, whatever the loss and its signature."""

import inspect

import pytest
import torch

from gradients import assert_alike, random
from repro.losses import cosent, info_nce, matryoshka, softmax_nli

DIMS = (2, 3, 8)
X, Y, Z = random(6, 8), random(6, 8, seed=1), random(6, 8, seed=2)
LABELS = torch.tensor([0, 1, 1, 0, 1, 0])
MASK = torch.arange(36).reshape(6, 6) % 7 == 3


def classified(m, u, v, weight, bias):
    blocks = torch.cat([weight[:, :m], weight[:, 8 : 8 + m], weight[:, 16 : 16 + m]], dim=1)
    return softmax_nli(u[:, :m], v[:, :m], LABELS, blocks, bias)


CASES = {
    "info_nce": (
        lambda loss: lambda a, b, c: loss(info_nce)(a, b, z_neg=c, temperature=0.3, mask=MASK),
        lambda m, a, b, c: info_nce(a[:, :m], b[:, :m], z_neg=c[:, :m], temperature=0.3, mask=MASK),
        (X, Y, Z),
    ),
    "graded labels, which are not cut": (
        lambda loss: lambda a, b: loss(cosent)(a, b, Z[:, 0]),
        lambda m, a, b: cosent(a[:, :m], b[:, :m], Z[:, 0]),
        (X, Y),
    ),
    "a classifier, which is cut in blocks": (
        lambda loss: lambda u, v, weight, bias: loss(softmax_nli)(u, v, LABELS, weight, bias),
        classified,
        (X, Y, random(3, 24, seed=2), random(3, seed=3)),
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("weights", [None, (0.5, 0.0, 2.0)])
def test_it_is_the_sum_of_its_parts(case, weights):
    call, part, inputs = CASES[case]
    shares = weights or (1.0,) * len(DIMS)
    assert_alike(
        call(lambda loss: matryoshka(loss, DIMS, weights)),
        lambda *z: sum(c * part(m, *z) for m, c in zip(DIMS, shares, strict=True)),
        *inputs,
    )


def test_the_full_size_alone_is_the_loss_itself():
    assert_alike(matryoshka(info_nce, (8,)), info_nce, X, Y)
    assert inspect.signature(matryoshka(info_nce, (2,))) == inspect.signature(info_nce)
