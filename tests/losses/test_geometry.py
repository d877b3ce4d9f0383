import math

import pytest
import torch
import torch.nn.functional as F

from repro.losses import alignment, uniformity
from repro.types import InputError


def test_collapsed_points_are_aligned_and_not_uniform():
    z = torch.ones(9, 5)
    assert alignment(z, 2 * z).item() == pytest.approx(0.0, abs=1e-6)
    assert uniformity(z).item() == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("points", [2, 3, 8, 33])
def test_the_simplex(points):
    z = torch.eye(points, dtype=torch.float64) - 1 / points
    assert uniformity(z).item() == pytest.approx(-4 * points / (points - 1), rel=1e-9)


def test_alignment_is_two_minus_twice_the_mean_cosine():
    torch.manual_seed(0)
    z1, z2 = torch.randn(2, 20, 7, dtype=torch.float64)
    expected = 2 - 2 * F.cosine_similarity(z1, z2).mean()
    torch.testing.assert_close(alignment(z1, z2), expected)
    assert alignment(z1, -z1).item() == pytest.approx(4.0)


def test_equals_the_reference_code_of_wang_and_isola():
    # SsnL/align_uniform, __init__.py
    torch.manual_seed(1)
    z1, z2 = (F.normalize(z, dim=-1) for z in torch.randn(2, 30, 6, dtype=torch.float64))
    torch.testing.assert_close(alignment(z1, z2), (z1 - z2).norm(dim=1).pow(2).mean())
    torch.testing.assert_close(uniformity(z1), torch.pdist(z1, p=2).pow(2).mul(-2).exp().mean().log())


def test_scale_does_not_matter():
    torch.manual_seed(2)
    z = torch.randn(12, 4, dtype=torch.float64)
    scale = torch.rand(12, 1, dtype=torch.float64) + 0.1
    torch.testing.assert_close(uniformity(z * scale), uniformity(z))


def test_points_spread_over_the_sphere_come_near_its_known_value():
    # for uniform points in high dimension squared distances concentrate at 2, so the measure tends to -4
    torch.manual_seed(3)
    z = torch.randn(400, 256, dtype=torch.float64)
    assert uniformity(z).item() == pytest.approx(-4 + 8 / 256, abs=0.02)
    assert uniformity(z) > -4 * 400 / 399 - 1e-12


@pytest.mark.parametrize("rows", [0, 1])
def test_uniformity_needs_two_rows(rows):
    with pytest.raises(InputError, match=f"uniformity of {rows} row"):
        uniformity(torch.ones(rows, 3))
    assert math.isfinite(uniformity(torch.eye(2)).item())
