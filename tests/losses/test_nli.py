"""Softmax over entailment pairs: closed forms, and what the signed difference cannot say."""

import math

import pytest
import torch
import torch.nn.functional as F

from repro.losses import nli_features, softmax_nli
from repro.types import InputError


@pytest.fixture
def pairs():
    generator = torch.Generator().manual_seed(0)
    u, v = torch.randn(2, 12, 5, generator=generator)
    return u, v, torch.arange(12) % 3


def test_no_weights_give_the_entropy_of_three_classes(pairs):
    assert softmax_nli(*pairs, torch.zeros(3, 15)).item() == pytest.approx(math.log(3))


@pytest.mark.parametrize("difference", ["abs", "signed"])
def test_value_and_gradient_are_cross_entropy_of_the_written_out_logits(pairs, difference):
    u, v, labels = pairs
    u.requires_grad_()
    weight, bias = torch.randn(3, 15, generator=torch.Generator().manual_seed(1)), torch.tensor([0.1, -0.2, 0.3])
    third = (u - v).abs() if difference == "abs" else u - v
    logits = u @ weight[:, :5].T + v @ weight[:, 5:10].T + third @ weight[:, 10:].T + bias
    expected = F.cross_entropy(logits, labels)
    found = softmax_nli(u, v, labels, weight, bias, difference=difference)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(torch.autograd.grad(found, u)[0], torch.autograd.grad(expected, u)[0])


def logits(u, v, weight, difference):
    return F.linear(nli_features(u, v, difference=difference), weight)


def test_signed_logits_are_a_part_of_u_plus_a_part_of_v(pairs):
    u, v, _ = pairs
    weight = torch.randn(3, 15, generator=torch.Generator().manual_seed(1))
    other_u, other_v = u.flip(0), v.roll(3, 0)

    def gap(difference):
        straight = logits(u, v, weight, difference) + logits(other_u, other_v, weight, difference)
        return (straight - logits(u, other_v, weight, difference) - logits(other_u, v, weight, difference)).abs().max()

    assert gap("signed") < 1e-4
    assert gap("abs") > 0.1


def closeness_accuracy(difference):
    """Pairs in one dim whose label says only whether they are close: half and half, by a fitted linear head."""
    generator = torch.Generator().manual_seed(2)
    u = torch.rand(4000, 1, generator=generator)
    close = torch.arange(4000) % 2
    # on a circle, so that neither side alone says anything of the label
    v = (u + torch.where(close == 1, 0.0, 0.5).unsqueeze(1)) % 1.0
    weight, bias = torch.zeros(3, 3, requires_grad=True), torch.zeros(3, requires_grad=True)
    optimiser = torch.optim.Adam([weight, bias], lr=0.3)
    for _ in range(300):
        optimiser.zero_grad()
        softmax_nli(u, v, close, weight, bias, difference=difference).backward()
        optimiser.step()
    guesses = F.linear(nli_features(u, v, difference=difference), weight, bias).argmax(1)
    return (guesses == close).float().mean().item()


def test_only_the_absolute_difference_can_tell_close_pairs_from_far_ones():
    assert closeness_accuracy("abs") > 0.99
    assert closeness_accuracy("signed") == pytest.approx(0.5, abs=0.03)


def test_what_is_wrong_is_named(pairs):
    u, v, labels = pairs
    weight = torch.zeros(3, 15)
    with pytest.raises(InputError, match="label 3: expected 0, 1 or 2"):
        softmax_nli(u, v, labels + 1, weight)
    with pytest.raises(InputError, match="lengths differ: u has 12, labels has 11"):
        softmax_nli(u, v, labels[:-1], weight)
    with pytest.raises(InputError, match=r"weight has shape \(3, 10\): expected \(3, 15\)"):
        softmax_nli(u, v, labels, weight[:, :10])
    with pytest.raises(InputError, match="unknown difference 'squared'"):
        softmax_nli(u, v, labels, weight, difference="squared")
    with pytest.raises(InputError, match="no pairs"):
        softmax_nli(u[:0], v[:0], labels[:0], weight)
    with pytest.raises(InputError, match="expected one embedding per side"):
        softmax_nli(u, v[:, :4], labels, weight)
