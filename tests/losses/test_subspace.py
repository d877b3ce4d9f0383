import numpy as np
import pytest
import torch

from repro.losses import compress_target
from repro.losses.compress import dependency_matrix
from repro.losses.parallel import each_on_a_thread
from repro.losses.subspace import SMALLEST, TOLERANCE, WIDTH, leading_vectors

DIM, TEXTS, SIZE = 288, 96, 64


def falling(*, seed=0, power=1.0, scale=1.0, dtype=torch.float32):
    """States whose dependency matrix has a few dozen singular values and a tail, like those of a network."""
    generator = torch.Generator().manual_seed(seed)
    spread = torch.arange(1, TEXTS + 1) ** -power
    X = torch.randn(TEXTS, TEXTS, generator=generator) * spread @ torch.randn(TEXTS, DIM, generator=generator)
    return (scale * X / X.square().mean().sqrt()).to(dtype)


def exact(A, size):
    U, S, _ = torch.linalg.svd(A.double())
    return U[:, :size], S


@pytest.mark.parametrize("power", [1.0, 2.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_vectors_are_those_of_a_matrix_within_the_tolerance(power, dtype):
    A = dependency_matrix(falling(power=power, scale=0.4, dtype=dtype))
    found = leading_vectors(A, SIZE)
    assert found is not None
    U, S = (part.double() for part in found)
    wide, (_, values) = A.double(), exact(A, SIZE)
    assert len(S) <= SIZE and bool((S.diff() <= 0).all())
    torch.testing.assert_close(U.T @ U, torch.eye(len(S), dtype=torch.float64), atol=1e-5, rtol=0)
    # Uᵀ A = S Vᵀ with orthonormal V: the other half of A's triples misses by no more than the tolerance
    V = wide.T @ U / S
    missed = torch.linalg.matrix_norm(wide @ V - U * S, 2)
    assert missed <= TOLERANCE * values[0]
    assert (S - values[: len(S)]).abs().max() <= TOLERANCE * values[0]
    if len(S) < SIZE:
        assert values[len(S)] <= 2 * TOLERANCE * values[0]


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_the_target_is_the_exact_one_within_the_tolerance(power):
    X = falling(power=power, scale=0.4)
    found, expected = compress_target(X, SIZE, decomposition="subspace"), compress_target(X, SIZE)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    assert not torch.equal(found, expected)
    assert (found - expected).abs().max() <= 2 * TOLERANCE * expected.abs().max()


def test_the_same_states_give_the_same_bytes():
    X = falling()
    first = compress_target(X, SIZE, decomposition="subspace", seed=0)
    assert torch.equal(first, compress_target(X.clone(), SIZE, decomposition="subspace", seed=5))


@pytest.mark.parametrize(
    ("name", "A"),
    [
        ("identity", torch.eye(DIM)),
        ("many equal values beside a large one", (torch.eye(DIM) + 1) / (DIM + 1)),
        ("flat", torch.softmax(torch.randn(DIM, DIM, generator=torch.Generator().manual_seed(0)), dim=1)),
        ("small", torch.softmax(torch.zeros(SMALLEST - 1, SMALLEST - 1), dim=1)),
    ],
)
def test_where_it_is_not_sure_it_says_so(name, A):
    assert leading_vectors(A, SIZE) is None, name


def test_where_it_is_not_sure_the_target_is_the_exact_one():
    # independent coordinates of large variance: A is the identity but for 1e-4, and its vectors hang on that
    X = 3 * torch.randn(400, DIM, generator=torch.Generator().manual_seed(0))
    A = dependency_matrix(X)
    assert (A - torch.eye(DIM)).abs().max() < 0.2
    assert torch.equal(compress_target(X, SIZE, decomposition="subspace"), compress_target(X, SIZE))


@pytest.mark.parametrize("rank", [1, 2, WIDTH, 2 * WIDTH + 3])
def test_a_matrix_of_low_rank_has_no_further_components(rank):
    generator = torch.Generator().manual_seed(rank)
    weights = torch.rand(DIM, rank, generator=generator).softmax(1)
    A = weights @ (3 * torch.randn(rank, DIM, generator=generator)).softmax(1)
    found = leading_vectors(A, SIZE)
    assert found is not None
    U, S = found
    values = exact(A, SIZE)[1]
    padded = np.pad(S.numpy(), (0, SIZE - len(S)))
    np.testing.assert_allclose(padded, values[:SIZE].numpy(), atol=1e-5 * values[0].item())
    assert (U * S @ (U * S).T - A @ A.T).abs().max() <= 1e-4


def test_constant_states():
    for X in (torch.zeros(TEXTS, DIM), torch.ones(TEXTS, DIM), falling()[:1].expand(TEXTS, DIM).contiguous()):
        found, expected = compress_target(X, SIZE, decomposition="subspace"), compress_target(X, SIZE)
        torch.testing.assert_close(found, expected, rtol=0, atol=2 * TOLERANCE * max(1.0, expected.abs().max().item()))


# side by side


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_keep_their_order_and_threads_their_number(threads):
    matrices = [torch.full((2, 2), float(i)) for i in range(7)]
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        found = each_on_a_thread(lambda i, matrix: matrix + i, matrices)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert [matrix[0, 0].item() for matrix in found] == [2.0 * i for i in range(7)]
    assert each_on_a_thread(lambda i, matrix: matrix, []) == []


@pytest.mark.parametrize("threads", [1, 2])
def test_results_carry_no_gradient_and_mistakes_come_through(threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        matrices = [torch.ones(2, 2, requires_grad=True)] * 3
        assert not any(found.requires_grad for found in each_on_a_thread(lambda i, matrix: 2 * matrix, matrices))
        with pytest.raises(ZeroDivisionError):
            each_on_a_thread(lambda i, matrix: matrix * (1 // i), matrices)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
