"""Facts of one batch that the page on Table 2 computes for the audit: ranks, two calls, and a constant layer."""

from math import log

import numpy as np
import pytest
import torch

from repro.config import TrainConfig
from repro.losses import compress_target
from repro.objectives import AngleConfig
from repro.training.objectives import base_loss


@pytest.fixture(scope="module")
def page(page_functions):
    return page_functions("ese_table2_ablation", compressed=4)


def test_a_sentence_of_few_values_has_a_matrix_of_few_directions(page):
    x = torch.tensor([1.0, 1.0, -1.0, -1.0, 0.5, 0.5], dtype=torch.float64)
    S = page["singular_values"](torch.outer(x, x))
    A = torch.softmax(torch.outer(x, x) / 6**0.5, dim=1)
    np.testing.assert_allclose(S, torch.linalg.svdvals(A), atol=1e-12)
    assert (1e-7 * S[0] < S).sum() == 3, "three distinct values, three distinct rows"
    flat = page["singular_values"](torch.zeros(6, 6, dtype=torch.float64))
    assert flat[0] == pytest.approx(1.0) and flat[1] < 1e-12, "all rows uniform"


def test_the_exact_target_is_the_same_twice_and_a_randomised_one_is_not(page):
    X = torch.from_numpy(np.random.default_rng(0).normal(size=(80, 24)))
    found = {}
    for how in ("eigh", "randomized"):
        calls = [compress_target(X, 8, dependency="per_batch", decomposition=how, seed=seed) for seed in range(2)]
        found[how] = page["agreement"](*calls)
    exact, randomised = found.values()
    assert exact.pop("sign_flips") == 0 and list(exact.values()) == pytest.approx([1.0] * 3)
    assert 0 < randomised["sign_flips"] < 1 and randomised["last_cosine"] < 0.999 and randomised["subspace_overlap"] < 1


def test_a_constant_layer_has_the_loss_of_equal_scores_and_nothing_to_move_it(page):
    n, rng = 8, np.random.default_rng(0)
    labels = torch.from_numpy((np.arange(n) < 3).astype(np.float32))
    loss = base_loss(TrainConfig(objective="angle", angle=AngleConfig()), labels, torch.arange(2 * n))
    page["loss"] = loss
    constant = page["gradients"](torch.ones(2 * n, 4, dtype=torch.float64))
    other = page["gradients"](torch.from_numpy(rng.normal(size=(2 * n, 4))))
    # both rankings of equal scores are ln(1 + pairs of unlike labels), and all other texts are equally likely partners
    ranking = 2 * log(1 + 3 * (n - 3))
    assert ranking <= constant["base_loss"] <= ranking + 3 / n * log(2 * n - 1) + 1e-6
    # each pair of unlike labels pulls as much as it pushes: nothing is left to move the one vector
    assert constant["shared_gradient"] < 1e-9 < other["base_gradient"]
