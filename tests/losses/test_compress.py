"""ESE's targets: the equations one sentence at a time, the released code, finite differences, a
stated tolerance.
"""

import math

import numpy as np
import pytest
import torch
from scipy.special import softmax

from gradients import assert_alike, random
from repro.losses import align, compress_target, layer_weights
from repro.losses.dependencies import dependency_matrix
from repro.losses.espresso import each_on_a_thread
from repro.losses.series import LARGEST, sentence_factors
from repro.losses.subspace import TOLERANCE, WIDTH, leading_vectors
from repro.seeding import derive_seed


def states(texts, dim, *, seed=0, scale=1.0, dtype=torch.float64):
    """Random rows with a common part, as pooled states have."""
    own = random(texts + 1, dim, seed=seed)
    return (scale * (0.6 * own[1:] + own[0])).to(dtype)


def targets_by_hand(X, size, dependency):
    """Eqs. 3-5, one sentence at a time, each vector its entry of largest modulus positive; and by
    largest sums.
    """
    X, rows, picked = X.numpy(), [], []
    for x in X:
        A = softmax(
            (X.T @ X if dependency == "per_batch" else np.outer(x, x)) / math.sqrt(len(x)),
            axis=1,
        )
        U, S, _ = np.linalg.svd(A)
        U = U * np.sign(U[np.abs(U).argmax(0), np.arange(len(U))])
        rows.append((U * S)[:, :size].T @ x)
        picked.append((x @ A)[np.argsort(-A.sum(0), kind="stable")[:size]])
    return np.stack(rows), np.stack(picked)


def test_weights_of_twelve_layers():
    weights = layer_weights(11)
    assert weights.sum().item() == pytest.approx(4.8017, abs=5e-5)
    assert weights.tolist() == pytest.approx([1 / (1 + math.log(i)) for i in range(1, 12)])
    assert (
        layer_weights(11, "learned").tolist()
        == layer_weights(11, "learned_literal").tolist()
        == weights.tolist()
    )
    assert layer_weights(3, "uniform").tolist() == [1, 1, 1] and layer_weights(0).tolist() == []


def align_by_hand(x, t, temperature):
    p, q = ((z / temperature).exp() / (z / temperature).exp().sum(1, keepdim=True) for z in (t, x))
    return ((x - t) ** 2).sum() / x.numel() + temperature * (p * (p / q).log()).sum() / len(x)


def test_alignment_is_its_formula():
    x, t = states(5, 4), states(5, 4, seed=1)
    for at in (0.3, 1.0, 4.0):
        assert_alike(
            lambda z, at=at: align(z, t, temperature=at),
            lambda z, at=at: align_by_hand(z, t, at),
            x,
        )
    # No divergence
    assert align(x, t, temperature=0.0).item() == pytest.approx(((x - t) ** 2).mean().item())


@pytest.mark.parametrize("dependency", ["per_sentence", "per_batch"])
@pytest.mark.parametrize(("texts", "dim"), [(12, 6), (5, 16), (1, 8), (7, 1)])
def test_equals_the_equations(dependency, texts, dim):
    X, size = states(texts, dim, scale=0.6, seed=texts), min(dim, 4)
    expected, largest = targets_by_hand(X, size, dependency)
    # Components below 1e-7 of the largest are zero, and come from squares: 1e-8 of the largest in
    # any
    found = compress_target(X, size, dependency=dependency)
    np.testing.assert_allclose(found.numpy(), expected, atol=3e-7 * np.abs(expected).max())
    picked = compress_target(X, size, dependency=dependency, strategy="max_k")
    np.testing.assert_allclose(picked.numpy(), largest, rtol=1e-9)


@pytest.mark.parametrize("dependency", ["per_sentence", "per_batch"])
def test_precision_and_seed_change_nothing(dependency):
    X = states(12, 16, dtype=torch.float32)
    found = compress_target(X, 5, dependency=dependency)
    assert (
        found.dtype
        == compress_target(X.bfloat16(), 5, dependency=dependency).dtype
        == torch.float32
    )
    in_double = compress_target(X.double(), 5, dependency=dependency)
    assert torch.equal(found, in_double.float()), "whatever comes in is decomposed in double"
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(compress_target(X.clone(), 5, dependency=dependency, seed=7), found)


def with_outliers(texts, dim, count, size, *, seed=3):
    """States whose first entries, as many in every row, are the square root of `size` times
    D^{1/4}, of either sign.
    """
    x = states(texts, dim, seed=seed)
    x = x * (math.sqrt(2.0) * dim**0.25 / x.abs().max())
    signs = torch.sign(x[:, :count])
    return torch.cat([signs * math.sqrt(size) * dim**0.25, x[:, count:]], dim=1)


OUTLIERS = {
    "none": with_outliers(4, 128, 0, 0.0),
    "at the border of the series": with_outliers(4, 128, 2, 0.999 * LARGEST),
    "just outliers": with_outliers(4, 128, 2, 1.001 * LARGEST),
    "of a decoder": with_outliers(4, 128, 5, 4e4),
    "in one row alone": torch.cat(
        [with_outliers(1, 128, 3, 900.0), with_outliers(3, 128, 0, 0.0, seed=4)]
    ),
    "so many that A is formed": states(4, 24, seed=3) * 20.0,
}


@pytest.mark.parametrize("kind", OUTLIERS)
def test_factors_or_matrix_the_target_is_the_equations(kind):
    x = OUTLIERS[kind]
    assert (sentence_factors(x) is None) == kind.startswith("so many")
    expected, sums = targets_by_hand(x, 6, "per_sentence")
    found = compress_target(x, 6, dependency="per_sentence").numpy()
    # What lies at the border of 1e-7 may or may not count.
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())
    picked = compress_target(x, 6, dependency="per_sentence", strategy="max_k").numpy()
    np.testing.assert_allclose(picked, sums, rtol=1e-7)


@pytest.mark.parametrize("kind", [kind for kind in OUTLIERS if not kind.startswith("so many")])
def test_the_product_of_the_factors_is_the_matrix(kind):
    x = OUTLIERS[kind]
    G, F = sentence_factors(x)
    A = torch.softmax(x.unsqueeze(2) * x.unsqueeze(1) / math.sqrt(x.shape[1]), dim=-1)
    assert (G @ F.mT - A).abs().max() < 1e-11


def test_randomised_equals_the_released_code():
    # AngleESETrainer.pca_compress of AnglE 0.6.1, given our random start
    X = states(24, 40, dtype=torch.float32)
    with torch.random.fork_rng():
        torch.manual_seed(derive_seed(5, "compress"))
        u, s, _ = torch.svd_lowrank(torch.softmax(X.T @ X / 40**0.5, dim=-1), q=8)
    expected = X @ (u @ torch.diag(s))
    found = compress_target(X, 8, decomposition="randomized", seed=5)
    torch.testing.assert_close(
        found * torch.sign((found * expected).sum(0)),
        expected,
        rtol=1e-3,
        atol=1e-4,
    )


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize(("texts", "dim"), [(30, 8), (6, 20)])
def test_components_of_the_embeddings(texts, dim, center):
    X = states(texts, dim)
    found = X - X.mean(0) if center else X
    V = torch.linalg.svd(found, full_matrices=False).Vh[:4].T
    V = V * torch.sign(V.gather(0, V.abs().argmax(0, keepdim=True)))
    T = compress_target(X, 4, strategy="embeddings", center=center)
    torch.testing.assert_close(T, found @ V, rtol=1e-6, atol=1e-8)


CASES = [{"dependency": kind} for kind in ("per_sentence", "per_batch")]
CASES += [{**case, "strategy": "max_k"} for case in CASES]
CASES += [{"strategy": "embeddings", "center": center} for center in (False, True)]
DEGENERATE = {
    "zero": lambda: torch.zeros(6, 8),
    "one text over and over": lambda: states(1, 8).expand(6, 8).contiguous(),
    "equal singular values": lambda: 3 * torch.eye(8)[:6],
    "far beyond": lambda: states(6, 8) * 1e3,
    "tiny": lambda: states(6, 8) * 1e-12,
}


GRADIENTS = {str(case): (case, states(6, 8)) for case in CASES}
GRADIENTS |= {
    "a matrix that is formed": (CASES[0], states(2, 6) * 4),
    "factors with outliers": (CASES[0], with_outliers(1, 64, 1, 20.0)),
    "largest sums with outliers": (CASES[0] | {"strategy": "max_k"}, with_outliers(1, 64, 1, 20.0)),
}


@pytest.mark.parametrize("kind", GRADIENTS)
def test_the_gradient_through_the_target_is_that_of_finite_differences(kind):
    case, X = GRADIENTS[kind]
    if "formed" in kind:
        assert sentence_factors(X) is None
    if "outliers" in kind:
        assert sentence_factors(X) is not None
    X = X.clone().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda z: compress_target(z, 3, **case), (X,), eps=1e-6, atol=1e-4, rtol=1e-3
    )


@pytest.mark.parametrize("kind", DEGENERATE)
def test_targets_and_gradients_are_finite_on_odd_input(kind):
    for case in CASES:
        X = DEGENERATE[kind]().double().requires_grad_()
        T = compress_target(X, 3, **case)
        (gradient,) = torch.autograd.grad(T.square().sum() + T.sum(), X)
        assert bool(torch.isfinite(T).all()) and bool(torch.isfinite(gradient).all())
        torch.testing.assert_close(T.detach(), compress_target(X.detach(), 3, **case))
    assert bool(compress_target(states(6, 8) * math.nan, 3).isnan().all())


@pytest.mark.parametrize("case", [*CASES[:2], *CASES[4:]], ids=str)
def test_where_there_is_no_further_component_the_target_is_zero_and_no_gradient_passes(case):
    X = states(6, 4).repeat(1, 2).requires_grad_()  # Four of eight columns are copies: rank 4
    beyond = compress_target(X, 6, **case)[:, 4:]
    (gradient,) = torch.autograd.grad(beyond.sum(), X)
    assert bool((beyond == 0).all()) and bool((gradient == 0).all())


def test_a_component_counts_from_a_ten_millionth_of_the_largest():
    sizes = torch.tensor([1.0, 1e-3, 1e-6, 1e-8], dtype=torch.float64)
    U, V = (torch.linalg.qr(random(8, 4, seed=seed)).Q for seed in (0, 1))
    T = compress_target(U * sizes @ V.T, 4, strategy="embeddings")
    torch.testing.assert_close(T.norm(dim=0)[:3], sizes[:3], rtol=1e-3, atol=0)
    assert bool((T[:, 3] == 0).all())


def test_of_entries_as_large_but_for_rounding_the_first_is_positive():
    for rounding in (0.0, 1e-12, -1e-12):
        direction = torch.tensor([1.0, -1.0 - rounding, 0.5, 0.0], dtype=torch.float64)
        X = torch.outer(random(6), direction)
        found = compress_target(X, 1, strategy="embeddings")[:, 0]
        torch.testing.assert_close(found, 1.5 * X[:, 0])


DIM, TEXTS, SIZE = 288, 96, 64


@pytest.mark.parametrize(("power", "dtype"), [(1.0, torch.float32), (2.0, torch.float64)])
def test_the_vectors_are_those_of_a_matrix_within_the_tolerance(power, dtype):
    # States whose dependency matrix has a few dozen singular values and a tail, like those of a
    # network
    X = random(TEXTS, TEXTS) * torch.arange(1, TEXTS + 1) ** -power @ random(TEXTS, DIM, seed=1)
    X = (0.4 * X / X.square().mean().sqrt()).to(dtype)
    A = dependency_matrix(X)
    U, S = (part.double() for part in leading_vectors(A, SIZE))
    wide, values = A.double(), torch.linalg.svdvals(A.double())
    assert len(S) <= SIZE and bool((S.diff() <= 0).all())
    torch.testing.assert_close(U.T @ U, torch.eye(len(S), dtype=torch.float64), atol=1e-5, rtol=0)
    # Uᵀ A = S Vᵀ with orthonormal V: the other half of A's triples misses by no more than the
    # tolerance
    missed = torch.linalg.matrix_norm(wide @ (wide.T @ U / S) - U * S, 2)
    assert missed <= TOLERANCE * values[0]
    assert (S - values[: len(S)]).abs().max() <= TOLERANCE * values[0]
    if len(S) < SIZE:
        assert values[len(S)] <= 2 * TOLERANCE * values[0]
    # And so are the targets, the same bytes each time
    found, expected = compress_target(X, SIZE, decomposition="subspace"), compress_target(X, SIZE)
    assert (
        found.shape == expected.shape
        and found.dtype == expected.dtype
        and not torch.equal(found, expected)
    )
    assert (found - expected).abs().max() <= 2 * TOLERANCE * expected.abs().max()
    assert torch.equal(found, compress_target(X.clone(), SIZE, decomposition="subspace", seed=5))


def test_where_it_is_not_sure_it_says_so_and_the_target_is_the_exact_one():
    flat = torch.softmax(random(DIM, DIM), dim=1)
    for A in (
        torch.eye(DIM),
        (torch.eye(DIM) + 1) / (DIM + 1),
        flat,
        torch.full((255, 255), 1 / 255),
    ):
        assert leading_vectors(A, SIZE) is None
    # Independent coordinates of large variance: A is the identity but for 1e-4, and its vectors
    # hang on that
    X = 3 * random(400, DIM, dtype=torch.float32)
    assert torch.equal(compress_target(X, SIZE, decomposition="subspace"), compress_target(X, SIZE))


def test_of_more_equal_singular_values_than_a_block_holds_none_is_lost():
    Q = torch.linalg.qr(random(DIM, DIM)).Q
    equal = WIDTH + 4
    values = torch.cat([torch.full((equal,), 5.0), 0.5 ** torch.arange(DIM - equal)]).double()
    found = leading_vectors(Q * values @ Q.T, 2 * WIDTH)
    assert found is None or (found[1][:equal] > 4).all()


@pytest.mark.parametrize("rank", [1, WIDTH, 2 * WIDTH + 3])
def test_a_matrix_of_low_rank_has_no_further_components(rank):
    A = random(DIM, rank).softmax(1) @ (3 * random(rank, DIM, seed=1)).softmax(1)
    U, S = leading_vectors(A.float(), SIZE)
    values = torch.linalg.svdvals(A)
    padded = np.pad(S.numpy(), (0, SIZE - len(S)))
    np.testing.assert_allclose(padded, values[:SIZE].numpy(), atol=1e-5 * values[0].item())
    assert (U * S @ (U * S).T - A @ A.T).abs().max() <= 1e-4


def test_threads_keep_order_and_number_and_record_no_gradient():
    matrices = [torch.full((2, 2), float(i), requires_grad=True) for i in range(7)]
    torch.set_num_threads(3)
    found = each_on_a_thread(lambda i, matrix: matrix + i, matrices)
    assert torch.get_num_threads() == 3
    assert [matrix[0, 0].item() for matrix in found] == [2.0 * i for i in range(7)]
    assert not any(matrix.requires_grad for matrix in found)
