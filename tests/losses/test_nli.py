"""Softmax over entailment pairs: the logits written out."""

import math

import pytest
import torch
import torch.nn.functional as F

from gradients import assert_alike, random
from repro.losses import softmax_nli

U, V, WEIGHT, BIAS = random(12, 5), random(12, 5, seed=1), random(3, 15, seed=2), random(3)
LABELS = torch.arange(12) % 3


@pytest.mark.parametrize("difference", ["abs", "signed"])
def test_value_and_gradient_are_cross_entropy_of_the_written_out_logits(difference):
    def by_hand(u, v, weight, bias):
        third = (u - v).abs() if difference == "abs" else u - v
        logits = u @ weight[:, :5].T + v @ weight[:, 5:10].T + third @ weight[:, 10:].T + bias
        return F.cross_entropy(logits.float(), LABELS)

    found = lambda u, v, weight, bias: softmax_nli(u, v, LABELS, weight, bias, difference=difference)  # noqa: E731
    assert_alike(found, by_hand, U, V, WEIGHT, BIAS, rtol=1e-6, atol=1e-6)  # logits are in single precision
    assert softmax_nli(U, V, LABELS, torch.zeros(3, 15, dtype=U.dtype)).item() == pytest.approx(math.log(3))
