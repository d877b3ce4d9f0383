import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.losses import duplicate_mask, info_nce
from repro.types import InputError


def views(batch, dim, *, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(batch, dim, generator=generator, dtype=dtype) for _ in range(2)]


def by_hand(z1, z2, temperature, z_neg=None, mask=None):
    """The formula of PROTOCOLS §2.1, one row and one column at a time."""
    total = z1.new_zeros(())
    for i in range(len(z1)):
        terms = []
        for j in range(len(z2)):
            if mask is not None and mask[i, j] and i != j:
                continue
            terms.append(torch.exp(torch.dot(z1[i], z2[j]) / (z1[i].norm() * z2[j].norm()) / temperature))
        for negative in z_neg if z_neg is not None else ():
            terms.append(torch.exp(torch.dot(z1[i], negative) / (z1[i].norm() * negative.norm()) / temperature))
        own = torch.dot(z1[i], z2[i]) / (z1[i].norm() * z2[i].norm()) / temperature
        total = total - (own - torch.log(torch.stack(terms).sum()))
    return total / len(z1)


# closed forms


@pytest.mark.parametrize("batch", [2, 7, 64])
def test_identical_rows_give_ln_of_the_batch(batch):
    z = torch.ones(batch, 5)
    assert info_nce(z, 3 * z).item() == pytest.approx(math.log(batch), abs=1e-6)


@pytest.mark.parametrize("temperature", [0.05, 0.5, 2.0])
def test_orthonormal_views(temperature):
    z = 4 * torch.eye(6, dtype=torch.float64)
    expected = math.log(1 + 5 * math.exp(-1 / temperature))
    assert info_nce(z, z, temperature=temperature).item() == pytest.approx(expected, rel=1e-12)


def simplex_bound(batch, temperature):
    return math.log(1 + (batch - 1) * math.exp(-batch / ((batch - 1) * temperature)))


@pytest.mark.parametrize("batch", [2, 5, 9])
def test_the_simplex_attains_the_bound(batch):
    z = torch.eye(batch, dtype=torch.float64) - 1 / batch
    assert info_nce(z, z, temperature=0.3).item() == pytest.approx(simplex_bound(batch, 0.3), rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    batch=st.integers(2, 10),
    dim=st.integers(1, 12),
    temperature=st.floats(0.02, 3.0),
    seed=st.integers(0, 10**6),
    noise=st.floats(0.0, 2.0),
)
def test_never_below_the_simplex_bound(batch, dim, temperature, seed, noise):
    z1, other = views(batch, dim, seed=seed)
    loss = info_nce(z1, z1 + noise * other, temperature=temperature).item()
    assert loss >= simplex_bound(batch, temperature) - 1e-9


# oracle


@pytest.mark.parametrize(("with_negatives", "with_mask"), [(False, False), (True, False), (False, True), (True, True)])
def test_value_and_gradient_equal_a_double_loop(with_negatives, with_mask):
    z1, z2 = views(6, 4)
    z_neg = torch.randn(3, 4, dtype=torch.float64) if with_negatives else None
    mask = torch.rand(6, 6) < 0.3 if with_mask else None
    found, expected = [], []
    for loss, gradients in ((info_nce, found), (by_hand, expected)):
        inputs = [z.clone().requires_grad_() for z in (z1, z2, *([z_neg] if with_negatives else []))]
        extra = {"z_neg": inputs[2]} if with_negatives else {}
        value = loss(inputs[0], inputs[1], temperature=0.2, mask=mask, **extra)
        gradients += [value, *torch.autograd.grad(value, inputs)]
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-12)


def test_gradient_by_finite_differences():
    z1, z2 = (z.requires_grad_() for z in views(4, 3, seed=1))
    z_neg = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    mask = torch.zeros(4, 4, dtype=torch.bool)
    mask[0, 2] = mask[2, 0] = True
    assert torch.autograd.gradcheck(
        lambda a, b, c: info_nce(a, b, temperature=0.5, z_neg=c, mask=mask), (z1, z2, z_neg)
    )


def test_equals_the_reference_code_of_simcse():
    # princeton-nlp/SimCSE, cl_forward: CosineSimilarity(dim=-1) / temp, then cross-entropy on the diagonal
    z1, z2 = views(16, 8, dtype=torch.float32)
    similarity = F.cosine_similarity(z1.unsqueeze(1), z2.unsqueeze(0), dim=-1) / 0.05
    expected = F.cross_entropy(similarity, torch.arange(16))
    torch.testing.assert_close(info_nce(z1, z2), expected, rtol=1e-5, atol=1e-6)


# masks and negatives


def test_the_diagonal_stays_whatever_the_mask_says():
    z1, z2 = views(5, 4)
    everything = torch.ones(5, 5, dtype=torch.bool)
    assert info_nce(z1, z2, mask=everything).item() == pytest.approx(0.0, abs=1e-12)
    diagonal = torch.eye(5, dtype=torch.bool)
    assert info_nce(z1, z2, mask=diagonal).item() == info_nce(z1, z2).item()
    assert bool(diagonal.all(0).sum() == 0 and everything.all())  # the caller's masks are as they were


def test_equal_texts_are_no_negatives():
    keys = torch.tensor([0, 1, 0, 2])
    mask = duplicate_mask(keys)
    assert mask.tolist() == [[bool(a == b) for b in keys] for a in keys]
    # texts 0 and 2 are equal: were they negatives, two perfect views would still cost ln 2 each
    z = torch.eye(4, dtype=torch.float64)[[0, 1, 0, 2]]
    cold = {"temperature": 0.01}
    assert info_nce(z, z, mask=mask, **cold).item() == pytest.approx(0.0, abs=1e-12)
    assert info_nce(z, z, **cold).item() == pytest.approx(math.log(2) / 2)


def test_every_row_sees_every_further_negative():
    z = torch.eye(3, dtype=torch.float64)
    # row 0 meets its positive twice, the others meet one more stranger
    expected = (math.log(2 + 2 * math.exp(-2)) + 2 * math.log(1 + 3 * math.exp(-2))) / 3
    assert info_nce(z, z, temperature=0.5, z_neg=5 * z[:1]).item() == pytest.approx(expected)


def test_zero_rows_have_cosine_zero_and_a_finite_gradient():
    z = torch.zeros(3, 4, requires_grad=True)
    loss = info_nce(z, z)
    loss.backward()
    assert loss.item() == pytest.approx(math.log(3), abs=1e-6)
    assert torch.isfinite(z.grad).all()


def test_mixed_precision_leaves_the_logits_exact():
    z1, z2 = views(8, 16, dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = info_nce(z1, z2)
    assert mixed.dtype == torch.float32
    torch.testing.assert_close(mixed, info_nce(z1, z2), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"temperature": 0.0}, "temperature is 0.0"),
        ({"temperature": -1.0}, "temperature is -1.0"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"z2": torch.ones(4, 4)}, r"\(3, 4\), z2 \(4, 4\)"),
        ({"z2": torch.ones(3, 5)}, r"\(3, 4\), z2 \(3, 5\)"),
        ({"z1": torch.ones(4), "z2": torch.ones(4)}, r"expected two views"),
        ({"z1": torch.ones(0, 4), "z2": torch.ones(0, 4)}, r"expected two views"),
        ({"z_neg": torch.ones(2, 5)}, r"z_neg has shape \(2, 5\): expected \(N, 4\)"),
        ({"mask": torch.zeros(3, 4, dtype=torch.bool)}, r"mask has shape \(3, 4\): expected \(3, 3\)"),
    ],
)
def test_errors_name_the_numbers(change, message):
    arguments = {"z1": torch.ones(3, 4), "z2": torch.ones(3, 4), **change}
    with pytest.raises(InputError, match=message):
        info_nce(arguments.pop("z1"), arguments.pop("z2"), **arguments)
