"""Functions that ESE's pages show to the reader: facts of a batch, chance, common maps and tests of leads."""

from math import log

import numpy as np
import pandas as pd
import pytest
import torch

from repro.losses import compress_target
from repro.methods import ESE, RAW
from repro.objectives import AngleConfig, TrainConfig
from repro.training.ese import base_loss
from repro.types import InputError

rng = np.random.default_rng(0)


@pytest.fixture(scope="module")
def audit(page_functions):
    return page_functions("ese_table2_ablation", compressed=4)


@pytest.fixture(scope="module")
def joint_map(page_functions):
    return page_functions("ese_figure7_compression", perplexity=30.0)["joint_map"]


def test_a_sentence_of_few_values_has_a_matrix_of_few_directions(audit):
    x = torch.tensor([1.0, 1.0, -1.0, -1.0, 0.5, 0.5], dtype=torch.float64)
    S = audit["singular_values"](torch.outer(x, x))
    A = torch.softmax(torch.outer(x, x) / 6**0.5, dim=1)
    np.testing.assert_allclose(S, torch.linalg.svdvals(A), atol=1e-12)
    assert (1e-7 * S[0] < S).sum() == 3, "three distinct values, three distinct rows"
    flat = audit["singular_values"](torch.zeros(6, 6, dtype=torch.float64))
    assert flat[0] == pytest.approx(1.0) and flat[1] < 1e-12, "all rows uniform"


def test_the_exact_target_is_the_same_twice_and_a_randomised_one_is_not(audit):
    X = torch.from_numpy(np.random.default_rng(0).normal(size=(80, 24)))
    found = {}
    for how in ("eigh", "randomized"):
        calls = [compress_target(X, 8, dependency="per_batch", decomposition=how, seed=seed) for seed in range(2)]
        found[how] = audit["agreement"](*calls)
    exact, randomised = found.values()
    assert exact.pop("sign_flips") == 0 and list(exact.values()) == pytest.approx([1.0] * 3)
    assert 0 < randomised["sign_flips"] < 1 and randomised["last_cosine"] < 0.999 and randomised["subspace_overlap"] < 1


def test_a_constant_layer_has_the_loss_of_equal_scores_and_nothing_to_move_it(audit):
    n, rng = 8, np.random.default_rng(0)
    labels = torch.from_numpy((np.arange(n) < 3).astype(np.float32))
    loss = base_loss(TrainConfig(objective="angle", angle=AngleConfig()), labels, torch.arange(2 * n))
    audit["loss"] = loss
    constant = audit["gradients"](torch.ones(2 * n, 4, dtype=torch.float64))
    other = audit["gradients"](torch.from_numpy(rng.normal(size=(2 * n, 4))))
    # both rankings of equal scores are ln(1 + pairs of unlike labels), and all other texts are equally likely partners
    ranking = 2 * log(1 + 3 * (n - 3))
    assert ranking <= constant["base_loss"] <= ranking + 3 / n * log(2 * n - 1) + 1e-6
    # each pair of unlike labels pulls as much as it pushes: nothing is left to move the one vector
    assert constant["shared_gradient"] < 1e-9 < other["base_gradient"]


def test_a_map_holds_both_sets_and_follows_its_seed(joint_map):
    X = rng.normal(size=(30, 8))
    first = joint_map(X, 4, 0, False)
    assert first.shape == (60, 2) and np.isfinite(first).all()
    np.testing.assert_array_equal(first, joint_map(X, 4, 0, False))
    assert not np.allclose(first, joint_map(X, 4, 1, False))
    with pytest.raises(InputError, match="dim is 9: expected 1 to 8"):
        joint_map(X, 9, 0, False)


def test_a_shallow_read_runs_no_later_block(page_functions, untrained_lines):
    blocks_run = page_functions("ese_figure6_efficiency", timed_texts=["a text"])["blocks_run"]
    assert [blocks_run(untrained_lines[0].make(), layer) for layer in (1, 2)] == [1, 2]


def test_the_t_test_says_what_its_unit_is(page_functions):
    t_tests = page_functions("ese_table1_sts", methods=[RAW, ESE])["t_tests"]
    cells = [
        (m, s, k, n) for m in (RAW, ESE) for s in ((0, 1, 2) if m == ESE else (0,)) for k in (1, 2, 3) for n in "ab"
    ]
    rows = pd.DataFrame(cells, columns=["method", "seed", "layer", "dataset"])
    rows["value"] = 0.3 + 0.39 * (rows["method"] == ESE) + 0.01 * rows["layer"] * (rows["method"] == ESE)
    last = rows[rows["layer"] == 1].assign(layer=4)
    rows = pd.concat([rows, last]).assign(metric="spearman", dim=8, backbone="net")
    table = t_tests(rows)[["unit", "number", "mean", "p"]].astype(str)
    assert sorted(table.itertuples(index=False, name=None)) == [
        ("layers", "3", "41.00 [38.52, 43.48]", "2.0e-04"),
        ("seeds", "3", "41.00 [41.00, 41.00]", "0.0e+00"),
        ("sets", "2", "too few", "–"),
    ]
    assert t_tests(rows[rows["method"] == RAW]).empty
