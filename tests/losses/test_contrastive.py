"""InfoNCE, alignment, uniformity: closed forms, formulas pair by pair, their authors' own code; and
NLI's softmax.
"""

import math

import pytest
import torch
import torch.nn.functional as F

from gradients import assert_alike, random
from repro.losses import alignment, duplicate_mask, info_nce, softmax_nli, uniformity
from repro.theory import simplex_bound


def by_hand(z1, z2, temperature, z_neg=(), mask=None):
    """The formula (method-info-nce in the book), one row and one column at a time."""
    total = z1.new_zeros(())
    for i, row in enumerate(z1):
        kept = [z2[j] for j in range(len(z2)) if i == j or mask is None or not mask[i, j]]
        scores = [
            torch.dot(row, z) / (row.norm() * z.norm()) / temperature
            for z in (z2[i], *kept, *z_neg)
        ]
        total = total - (scores[0] - torch.log(torch.stack(scores[1:]).exp().sum()))
    return total / len(z1)


@pytest.mark.parametrize("batch", [2, 7, 64])
def test_identical_orthonormal_and_simplex_rows(batch):
    z = torch.ones(batch, 5)
    assert info_nce(z, 3 * z).item() == pytest.approx(math.log(batch), abs=1e-6)
    assert [alignment(z, a * z).item() for a in (2, -1)] == pytest.approx([0.0, 4.0], abs=1e-6)
    assert uniformity(z).item() == pytest.approx(0.0, abs=1e-6)
    simplex = torch.eye(batch, dtype=torch.float64) - 1 / batch
    assert info_nce(simplex, simplex, temperature=0.3).item() == pytest.approx(
        simplex_bound(0.3, batch),
        rel=1e-9,
    )
    z = 4 * torch.eye(batch, dtype=torch.float64)
    assert info_nce(z, z, temperature=0.5).item() == pytest.approx(
        math.log(1 + (batch - 1) * math.exp(-2)),
        rel=1e-12,
    )
    assert uniformity(simplex).item() == pytest.approx(-4 * batch / (batch - 1), rel=1e-9)


@pytest.mark.parametrize("with_negatives", [False, True])
@pytest.mark.parametrize("with_mask", [False, True])
def test_value_and_gradient_equal_a_double_loop(with_negatives, with_mask):
    mask = random(6, 6, seed=3) < -0.5 if with_mask else None
    inputs = [*random(2, 6, 4), *([random(3, 4, seed=2)] if with_negatives else [])]
    assert_alike(
        lambda a, b, *c: info_nce(a, b, temperature=0.2, mask=mask, z_neg=c[0] if c else None),
        lambda a, b, *c: by_hand(a, b, 0.2, c[0] if c else (), mask),
        *inputs,
    )


def test_equals_the_reference_code():
    # princeton-nlp/SimCSE, cl_forward: CosineSimilarity(dim=-1) / temp, then cross-entropy on the
    # diagonal
    z1, z2 = random(2, 16, 8, dtype=torch.float32)
    similarity = F.cosine_similarity(z1.unsqueeze(1), z2.unsqueeze(0), dim=-1) / 0.05
    torch.testing.assert_close(
        info_nce(z1, z2),
        F.cross_entropy(similarity, torch.arange(16)),
        rtol=1e-5,
        atol=1e-6,
    )
    # SsnL/align_uniform, __init__.py
    u1, u2 = F.normalize(z1, dim=-1), F.normalize(z2, dim=-1)
    torch.testing.assert_close(alignment(z1, z2), (u1 - u2).norm(dim=1).pow(2).mean())
    torch.testing.assert_close(
        uniformity(z1),
        torch.pdist(u1, p=2).pow(2).mul(-2).exp().mean().log(),
    )


def test_equal_texts_are_no_negatives():
    keys = torch.tensor([0, 1, 0, 2])
    mask = duplicate_mask(keys)
    assert mask.tolist() == [[bool(a == b) for b in keys] for a in keys]
    own = info_nce(*random(2, 4, 4), mask=torch.ones(4, 4) > 0)
    assert own.item() == pytest.approx(0.0, abs=1e-12)  # A row's own column stays
    # Texts 0 and 2 are equal: were they negatives, two perfect views would still cost ln 2 each
    z = torch.eye(4, dtype=torch.float64)[[0, 1, 0, 2]]
    assert info_nce(z, z, mask=mask, temperature=0.01).item() == pytest.approx(0.0, abs=1e-12)
    assert info_nce(z, z, temperature=0.01).item() == pytest.approx(math.log(2) / 2)


def test_zero_rows_and_mixed_precision():
    z = torch.zeros(3, 4, requires_grad=True)
    loss = info_nce(z, z)
    loss.backward()
    assert loss.item() == pytest.approx(math.log(3), abs=1e-6) and torch.isfinite(z.grad).all()
    z1, z2 = random(2, 8, 16, dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = info_nce(z1, z2)
    assert mixed.dtype == torch.float32
    torch.testing.assert_close(mixed, info_nce(z1, z2), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_rows_of_half_precision_are_compared_in_single(dtype):
    z1, z2, z_neg = (z.to(dtype) for z in random(3, 8, 16))
    exact = info_nce(z1.double(), z2.double(), z_neg=z_neg.double())
    torch.testing.assert_close(info_nce(z1, z2, z_neg=z_neg).double(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("length", [1e-9, 1e-3, 1e9])
def test_no_loss_knows_the_lengths_of_rows(length):
    z1, z2, z_neg = random(3, 8, 16)
    found = info_nce(length * z1, z2 / length, z_neg=length * z_neg)
    torch.testing.assert_close(found, info_nce(z1, z2, z_neg=z_neg))
    torch.testing.assert_close(alignment(length * z1, z2), alignment(z1, z2))
    torch.testing.assert_close(uniformity(length * z1), uniformity(z1))


@pytest.mark.parametrize("difference", ["abs", "signed"])
def test_softmax_over_entailment_pairs_is_cross_entropy_of_the_written_out_logits(difference):
    labels, inputs = (
        torch.arange(12) % 3,
        [random(12, 5), random(12, 5, seed=1), random(3, 15, seed=2), random(3)],
    )

    def by_hand(u, v, weight, bias):
        third = (u - v).abs() if difference == "abs" else u - v
        logits = u @ weight[:, :5].T + v @ weight[:, 5:10].T + third @ weight[:, 10:].T + bias
        return F.cross_entropy(logits.float(), labels)

    def found(u, v, weight, bias):
        return softmax_nli(u, v, labels, weight, bias, difference=difference)

    assert_alike(found, by_hand, *inputs, rtol=1e-6, atol=1e-6)  # Logits are in single precision
    assert softmax_nli(*inputs[:2], labels, torch.zeros_like(inputs[2])).item() == pytest.approx(
        math.log(3)
    )
