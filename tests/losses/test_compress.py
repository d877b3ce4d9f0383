import math
from itertools import product

import numpy as np
import pytest
import torch

from repro.losses import align, compress_target, layer_weights
from repro.losses.compress import dependency_matrix
from repro.losses.dependencies import LARGEST, Dependencies, chunks, feature_count
from repro.seeding import derive_seed
from repro.types import InputError


def states(texts, dim, *, seed=0, scale=1.0, dtype=torch.float64):
    """Random rows with a common part, as pooled states have."""
    generator = torch.Generator().manual_seed(seed)
    own, common = torch.randn(texts, dim, generator=generator), torch.randn(dim, generator=generator)
    return (scale * (0.6 * own + common)).to(dtype)


def softmax_rows(M):
    E = np.exp(M - M.max(1, keepdims=True))
    return E / E.sum(1, keepdims=True)


def components(A, size):
    """U_k·S_k of A (D, D) from numpy's SVD, each vector with its entry of largest modulus positive."""
    U, S, _ = np.linalg.svd(A)
    U = U * np.sign(U[np.abs(U).argmax(0), np.arange(len(U))])
    return (U * S)[:, :size]


def target_by_hand(X, size, dependency):
    """Eqs. 3-5, one sentence at a time."""
    X = X.numpy()
    D = X.shape[1]
    if dependency == "per_batch":
        whole = components(softmax_rows(X.T @ X / math.sqrt(D)), size)
        return np.stack([whole.T @ x for x in X])
    return np.stack([components(softmax_rows(np.outer(x, x) / math.sqrt(D)), size).T @ x for x in X])


# weights of the layers


def test_weights_of_twelve_layers():
    weights = layer_weights(11)
    assert weights.sum().item() == pytest.approx(4.8017, abs=5e-5)
    assert weights.mean().item() == pytest.approx(0.4365, abs=5e-5)
    assert weights.tolist() == pytest.approx([1 / (1 + math.log(i)) for i in range(1, 12)])
    assert layer_weights(11, "learned").tolist() == layer_weights(11, "learned_literal").tolist() == weights.tolist()
    assert layer_weights(3, "uniform").tolist() == [1, 1, 1]
    assert layer_weights(0).tolist() == []


# alignment


def align_by_hand(x, t, temperature):
    squares = divergence = 0.0
    for found, wanted in zip(x, t, strict=True):
        squares += sum((a - b) ** 2 for a, b in zip(found, wanted, strict=True))
        p = torch.exp(wanted / temperature) / torch.exp(wanted / temperature).sum()
        q = torch.exp(found / temperature) / torch.exp(found / temperature).sum()
        divergence += sum(a * torch.log(a / b) for a, b in zip(p, q, strict=True))
    return squares / x.numel() + temperature * divergence / len(x)


@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_alignment_equals_a_double_loop(temperature):
    x, t = states(5, 4), states(5, 4, seed=1)
    results = []
    for loss in (lambda z: align(z, t, temperature=temperature), lambda z: align_by_hand(z, t, temperature)):
        z = x.clone().requires_grad_()
        value = loss(z)
        results.append((value, torch.autograd.grad(value, z)[0]))
    torch.testing.assert_close(results[0], results[1])


def test_alignment_without_the_divergence_is_the_mean_square():
    x, t = states(5, 4), states(5, 4, seed=1)
    for temperature in (0.0, -1.0):
        assert align(x, t, temperature=temperature).item() == pytest.approx(((x - t) ** 2).mean().item())


def test_alignment_of_equals_is_zero():
    x = states(5, 4)
    assert align(x, x).item() == pytest.approx(0, abs=1e-12)
    # the divergence alone does not see a common shift of a row
    shifted = x + torch.arange(5.0).unsqueeze(1)
    assert align(x, shifted).item() == pytest.approx(((x - shifted) ** 2).mean().item())


def test_alignment_under_mixed_precision_is_exact():
    x, t = states(5, 4, dtype=torch.float32), states(5, 4, seed=1, dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        assert align(x, t).item() == align(x, t.double()).item()
        assert align(x.bfloat16(), t).dtype == torch.float32


# the exact target


@pytest.mark.parametrize("dependency", ["per_sentence", "per_batch"])
@pytest.mark.parametrize(("texts", "dim"), [(12, 6), (5, 16), (1, 8), (7, 1)])
@pytest.mark.parametrize("scale", [0.3, 1.0])
def test_equals_the_equations(dependency, texts, dim, scale):
    X = states(texts, dim, scale=scale, seed=texts)
    size = min(dim, 4)
    found = compress_target(X, size, dependency=dependency)
    expected = target_by_hand(X, size, dependency)
    # components below 1e-7 of the largest are zero, and come from squares: 1e-8 of the largest in any
    np.testing.assert_allclose(found.numpy(), expected, atol=3e-7 * np.abs(expected).max())


def test_single_precision_input_gives_the_same_target():
    X = states(12, 16, dtype=torch.float32)
    for dependency in ("per_sentence", "per_batch"):
        found = compress_target(X, 5, dependency=dependency)
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, compress_target(X.double(), 5, dependency=dependency).float())
        half = compress_target(X.bfloat16(), 5, dependency=dependency)
        assert half.dtype == torch.float32
        with torch.autocast("cpu", torch.bfloat16):
            assert torch.equal(compress_target(X, 5, dependency=dependency), found)


@pytest.mark.parametrize("dependency", ["per_sentence", "per_batch"])
def test_the_exact_target_is_the_same_over_two_calls_whatever_the_seed(dependency):
    X = states(24, 32, dtype=torch.float32)
    first = compress_target(X, 8, dependency=dependency)
    assert torch.equal(first, compress_target(X.clone(), 8, dependency=dependency, seed=7))


def test_rows_of_the_dependency_matrix_sum_to_one_and_the_first_value_is_at_least_one():
    for dim in (5, 64, 100):
        A = dependency_matrix(states(20, dim))
        expected = softmax_rows((states(20, dim).T @ states(20, dim)).numpy() / math.sqrt(dim))
        np.testing.assert_allclose(A.numpy(), expected, rtol=1e-9)
        torch.testing.assert_close(A.sum(1), torch.ones(dim, dtype=torch.float64))
        assert torch.linalg.svdvals(A)[0].item() >= 1 - 1e-12


def test_every_vector_has_its_largest_entry_positive():
    X = states(30, 8)
    US = torch.linalg.lstsq(X, compress_target(X, 8)).solution  # B > D: X·US determines US
    largest = US.gather(0, US.abs().argmax(0, keepdim=True))
    assert bool((largest > 0).all())


@pytest.mark.parametrize("scale", [1e-3, 1e-2])
def test_small_states_have_two_components(scale):
    # x = εz: A is 1/D plus a part of rank one, hence T₁ = √D·|x̄| and T₂ = ‖x − x̄‖³/D^{1.5}, all others near 0
    D = 64
    x = states(6, D, scale=scale)
    T = compress_target(x, 8, dependency="per_sentence")
    spread = (x - x.mean(1, keepdim=True)).norm(dim=1)
    torch.testing.assert_close(T[:, 0].abs(), math.sqrt(D) * x.mean(1).abs(), rtol=20 * scale, atol=0)
    torch.testing.assert_close(T[:, 1].abs(), spread**3 / D**1.5, rtol=20 * scale, atol=0)
    assert bool((T[:, 2:].abs() <= scale * T[:, 1:2].abs()).all())
    S = Dependencies(x).components()[1]
    torch.testing.assert_close(S[:, 1], spread**2 / D**1.5, rtol=20 * scale, atol=0)


def test_a_sentence_has_few_components():
    S = Dependencies(states(8, 384, scale=0.5)).components()[1]
    assert int(S.ge(1e-7 * S[:, :1]).sum(1).max()) <= 8
    T = compress_target(states(8, 384, scale=0.5), 128, dependency="per_sentence")
    assert T.shape == (8, 128)
    assert bool((T[:, 8:] == 0).all())


# the two ways to a sentence's matrix


def test_products_with_the_columns_equal_those_with_the_matrix():
    x = states(3, 48)
    A = Dependencies(x)
    assert A.right is not None  # never formed
    dense = torch.softmax(x.unsqueeze(2) * x.unsqueeze(1) / math.sqrt(48), dim=-1)
    V = torch.randn(3, 48, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(A.times(V), dense @ V, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(A.transposed_times(V), dense.mT @ V, rtol=1e-9, atol=1e-11)
    which = torch.tensor([[0, 7], [3, 3], [47, 1]])
    expected = torch.stack([dense[i][:, which[i]] for i in range(3)])
    torch.testing.assert_close(A.columns(which), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("largest", [0.01, 1.0, 5.0, 0.999 * LARGEST, 1.001 * LARGEST, 60.0])
def test_columns_or_matrix_the_target_is_the_equations(largest):
    x = states(4, 128, seed=3)
    x = x * (math.sqrt(largest) * 128**0.25 / x.abs().max())
    formed = feature_count(x / 128**0.25) is None
    assert formed == (largest > LARGEST)
    assert (Dependencies(x).right is None) == formed
    expected = target_by_hand(x, 6, "per_sentence")
    found = compress_target(x, 6, dependency="per_sentence").numpy()
    # what lies at the border of 1e-7 may or may not count
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())
    picked = compress_target(x, 6, dependency="per_sentence", strategy="max_k").numpy()
    np.testing.assert_allclose(picked, max_k_by_hand(x, 6, "per_sentence"), rtol=1e-7)


def test_the_number_of_columns_is_enough_and_no_more():
    for largest in (1e-6, 0.1, 1.0, 8.0):
        count = feature_count(torch.full((1, 1000), math.sqrt(largest)))
        assert largest**count / math.factorial(count) < 1e-12
        assert count == 2 or largest ** (count - 1) / math.factorial(count - 1) >= 1e-12


def test_rows_are_taken_in_runs_that_fit_in_memory(monkeypatch):
    x = states(40, 48)
    x[7] *= 30  # must be formed
    whole = compress_target(x, 5, dependency="per_sentence")
    monkeypatch.setattr("repro.losses.dependencies.CHUNK", 3 * 48 * 48)
    assert len(chunks(x)) > 10 and sum(len(part) for part in chunks(x)) == 40
    torch.testing.assert_close(compress_target(x, 5, dependency="per_sentence"), whole, rtol=1e-6, atol=1e-7)


# randomised, as released


def test_randomised_equals_the_released_code():
    # AngleESETrainer.pca_compress of AnglE 0.6.1, given our random start
    X = states(24, 40, dtype=torch.float32)
    A = torch.softmax(X.T @ X / 40**0.5, dim=-1)
    with torch.random.fork_rng():
        torch.manual_seed(derive_seed(5, "compress"))
        u, s, _ = torch.svd_lowrank(A, q=8)
    expected = X @ (u @ torch.diag(s))
    found = compress_target(X, 8, decomposition="randomized", seed=5)
    turned = found * torch.sign((found * expected).sum(0))
    torch.testing.assert_close(turned, expected, rtol=1e-3, atol=1e-4)


def test_randomised_is_the_same_for_a_seed_and_turns_with_it():
    X = states(48, 64, dtype=torch.float32, scale=0.3)
    runs = [compress_target(X, 32, decomposition="randomized", seed=seed) for seed in (0, 0, *range(1, 8))]
    assert torch.equal(runs[0], runs[1])
    exact = compress_target(X, 32)
    signs = torch.stack([torch.sign((run * exact).sum(0)) for run in runs])
    assert bool((signs != signs[0]).any(0).float().mean() > 0.5)  # most components show both signs over eight seeds
    for run in runs:  # the first survives
        cosine = torch.nn.functional.cosine_similarity(run[:, 0], exact[:, 0], dim=0)
        assert abs(cosine.item()) > 0.9999


# the other strategies of Table 2


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize(("texts", "dim"), [(30, 8), (6, 20)])
def test_components_of_the_embeddings(texts, dim, center):
    X = states(texts, dim)
    T = compress_target(X, 4, strategy="embeddings", center=center)
    found = X - X.mean(0) if center else X
    _, S, Vt = torch.linalg.svd(found, full_matrices=False)
    V = Vt[:4].T * torch.sign(Vt[:4].T.gather(0, Vt[:4].T.abs().argmax(0, keepdim=True)))
    torch.testing.assert_close(T, found @ V, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(T.norm(dim=0), S[:4])


def test_all_components_of_the_embeddings_keep_every_product():
    X = states(30, 8)
    T = compress_target(X, 8, strategy="embeddings")
    torch.testing.assert_close(T @ T.T, X @ X.T)


def max_k_by_hand(X, size, dependency):
    X = X.numpy()
    rows = []
    for x in X:
        A = softmax_rows((X.T @ X if dependency == "per_batch" else np.outer(x, x)) / math.sqrt(len(x)))
        largest = sorted(range(len(x)), key=lambda j, A=A: -A[:, j].sum())[:size]
        rows.append([sum(x[i] * A[i, j] for i in range(len(x))) for j in largest])
    return np.array(rows)


@pytest.mark.parametrize("dependency", ["per_sentence", "per_batch"])
def test_the_columns_with_the_largest_sums(dependency):
    X = states(6, 12)
    found = compress_target(X, 3, dependency=dependency, strategy="max_k")
    np.testing.assert_allclose(found.numpy(), max_k_by_hand(X, 3, dependency), rtol=1e-9)


# gradients


CASES = [
    {"dependency": "per_sentence"},
    {"dependency": "per_batch"},
    {"strategy": "embeddings"},
    {"strategy": "embeddings", "center": True},
    {"dependency": "per_sentence", "strategy": "max_k"},
    {"dependency": "per_batch", "strategy": "max_k"},
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_gradient_through_the_target_is_that_of_finite_differences(case):
    X = states(6, 8).requires_grad_()
    assert torch.autograd.gradcheck(lambda z: compress_target(z, 3, **case), (X,), eps=1e-6, atol=1e-5, rtol=1e-4)


def test_the_gradient_through_a_formed_matrix_is_that_of_finite_differences():
    X = (states(2, 6) * 4).requires_grad_()
    assert feature_count(X.detach() / 6**0.25) is None
    assert torch.autograd.gradcheck(
        lambda z: compress_target(z, 3, dependency="per_sentence"), (X,), eps=1e-6, atol=1e-4, rtol=1e-3
    )


DEGENERATE = {
    "zero": lambda: torch.zeros(6, 8),
    "constant": lambda: torch.ones(6, 8),
    "one text over and over": lambda: states(1, 8).expand(6, 8).contiguous(),
    "equal singular values": lambda: 3 * torch.eye(8)[:6],
    "far beyond": lambda: states(6, 8) * 1e3,
    "tiny": lambda: states(6, 8) * 1e-12,
}


@pytest.mark.parametrize(("case", "kind"), list(product(CASES, DEGENERATE)), ids=str)
def test_targets_and_gradients_are_finite_on_odd_input(case, kind):
    X = DEGENERATE[kind]().double().requires_grad_()
    T = compress_target(X, 3, **case)
    (gradient,) = torch.autograd.grad(T.square().sum() + T.sum(), X)
    assert bool(torch.isfinite(T).all()) and bool(torch.isfinite(gradient).all())
    torch.testing.assert_close(T.detach(), compress_target(X.detach(), 3, **case))


def test_a_target_without_gradient_asks_for_none():
    X = states(6, 8).requires_grad_()
    assert not compress_target(X.detach(), 3).requires_grad
    with torch.no_grad():
        assert not compress_target(X, 3, decomposition="randomized").requires_grad


# mistakes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": 9}, "size is 9: expected 1 to 8"),
        ({"size": 0}, "size is 0"),
        ({"size": 7, "strategy": "embeddings"}, "size is 7: 6 texts have no more components"),
        ({"strategy": "none"}, "unknown strategy of a target 'none'"),
        ({"dependency": "per_layer"}, "unknown dependency 'per_layer'"),
        ({"decomposition": "svd"}, "unknown decomposition 'svd': choose one of eigh, subspace, randomized"),
        ({"center": True}, "center applies to strategy 'embeddings'"),
        ({"X": torch.ones(8)}, r"X has shape \(8,\)"),
        ({"X": torch.ones(0, 8)}, r"X has shape \(0, 8\)"),
        ({"X": torch.ones(6, 8, requires_grad=True), "decomposition": "randomized"}, "no gradient through"),
        ({"X": torch.ones(6, 8, requires_grad=True), "decomposition": "subspace"}, "no gradient through"),
    ],
)
def test_errors_of_the_target_name_the_numbers(change, message):
    arguments = {"X": states(6, 8), "size": 3, **change}
    with pytest.raises(InputError, match=message):
        compress_target(arguments.pop("X"), arguments.pop("size"), **arguments)


def test_states_that_are_not_finite_give_a_target_that_is_not():
    X = states(6, 8)
    X[2, 3] = math.nan
    for case in CASES:
        assert bool(compress_target(X, 3, **case).isnan().all())


def test_errors_of_weights_and_alignment():
    with pytest.raises(InputError, match="unknown layer_weights 'linear'"):
        layer_weights(3, "linear")
    with pytest.raises(InputError, match="n is -1"):
        layer_weights(-1)
    with pytest.raises(InputError, match=r"x has shape \(5, 4\), target \(5, 3\)"):
        align(states(5, 4), states(5, 3))
