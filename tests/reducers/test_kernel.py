"""Kernel PCA: pca where the kernel is linear or nearly, scikit-learn's elsewhere, whichever solver
finds it.
"""

from functools import partial

import numpy as np
import pytest
from sklearn import decomposition

from repro.reducers import KPCA, PCA, kernel, kernel_matrix
from repro.reducers.kernel import SINGLE
from repro.reducers.kernel_matrix import add_noise, median_gamma
from repro.reducers.spectral import WIDTH, block_lanczos
from repro.types import InputError, unit_rows


def cloud(n=80, D=10, seed=0):
    return np.random.default_rng(seed).standard_normal((n, D)) * np.linspace(2, 0.5, D) + 0.3


@pytest.mark.parametrize(
    "n, D, p, solver",
    [(40, 6, 6, "features"), (10, 30, 9, "dense"), (2, 3, 1, "dense")],
)
def test_a_linear_kernel_is_pca(n, D, p, solver):
    X, Q = cloud(n, D), cloud(7, D, seed=1)
    pca, kpca = PCA(p).fit(X), KPCA(p, kernel="linear").fit(X)
    assert kpca.solver_ == solver
    signs = np.sign((kpca.transform(X) * pca.transform(X)).sum(0))
    np.testing.assert_allclose(kpca.transform(X) * signs, pca.transform(X), atol=1e-5)
    np.testing.assert_allclose(kpca.transform(Q) * signs, pca.transform(Q), atol=1e-5)
    np.testing.assert_allclose(kpca.explained_variance_, pca.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(
        kpca.explained_variance_ratio_,
        pca.explained_variance_ratio_,
        rtol=1e-9,
    )


@pytest.mark.parametrize("name", ["rbf", "poly", "sigmoid", "cosine", "linear"])
@pytest.mark.parametrize("n, D", [(80, 10), (20, 30)])
def test_scores_are_scikit_learns(name, n, D):
    X, Q = cloud(n, D) / 3, cloud(15, D, seed=1) / 3
    oracle = decomposition.KernelPCA(
        5,
        kernel=name,
        gamma=0.2,
        coef0=0.7,
        degree=2,
        eigen_solver="dense",
    ).fit(X)
    ours = KPCA(5, kernel=name, gamma=0.2, coef0=0.7, degree=2)
    expected = oracle.transform(X)
    signs = np.sign((ours.fit_transform(X) * expected).sum(0))
    np.testing.assert_allclose(ours.fit_transform(X) * signs, expected, atol=1e-5)
    np.testing.assert_allclose(ours.transform(Q) * signs, oracle.transform(Q), atol=1e-5)
    np.testing.assert_allclose(ours.eigenvalues_, oracle.eigenvalues_, rtol=1e-7)
    default = decomposition.KernelPCA(5, kernel=name).fit(X)
    np.testing.assert_allclose(
        KPCA(5, kernel=name).fit(X).eigenvalues_,
        default.eigenvalues_,
        rtol=1e-7,
    )


@pytest.mark.parametrize("name", ["rbf", "poly", "cosine"])
def test_rows_of_rank_r_have_r_linear_directions_and_no_more(name):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((50, 4)) @ rng.standard_normal((4, 20))
    Y = KPCA(4, kernel="linear").fit_transform(X)
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    # Lossless
    np.testing.assert_allclose(np.linalg.norm(Y[:, None] - Y, axis=2), distances, atol=1e-4)
    with pytest.raises(
        InputError,
        match=r"n_components is 5: expected 1 to 4 \(the positive eigenvalues",
    ):
        KPCA(5, kernel="linear").fit(X)
    full = KPCA(49, kernel=name).fit(X) if name == "rbf" else KPCA(4, kernel=name).fit(X)
    assert (full.eigenvalues_ > 0).all()


@pytest.fixture
def both(monkeypatch):
    """The same reducer fitted by Lanczos and by the dense solver, with the scores of its rows."""

    def fit(X, p, **options):
        fitted = [KPCA(p, **options) for _ in range(2)]
        for one, rows in zip(fitted, (300, 10_000), strict=True):
            monkeypatch.setattr(kernel, "DENSE_ROWS", rows)
            one.scores = one.fit_transform(X)
        assert [one.solver_ for one in fitted] == ["lanczos", "dense"]
        return fitted

    return fit


@pytest.mark.parametrize("name, p", [("rbf", 40), ("poly", 40), ("sigmoid", 20)])
def test_lanczos_finds_what_the_dense_solver_finds(name, p, both):
    X = cloud(350, 24)
    # Even functions of mirrored rows are hidden from their own components
    X = np.r_[X, -X].astype(np.float32) / 5
    fast, dense = both(X, p, kernel=name)
    np.testing.assert_allclose(fast.eigenvalues_, dense.eigenvalues_, rtol=1e-4)
    ratios = fast.explained_variance_ratio_, dense.explained_variance_ratio_
    np.testing.assert_allclose(*ratios, rtol=1e-4)
    # Single eigenvectors turn where eigenvalues tie, inner products of the scores do not
    scores, expected = (one.scores[::20, : p - 5] for one in (fast, dense))
    np.testing.assert_allclose(scores @ scores.T, expected @ expected.T, atol=1e-3)
    np.testing.assert_allclose(fast.transform(X), fast.scores, atol=1e-4)


def test_small_eigenvalues_go_to_double_precision(both):
    # Six linear directions, the others a millionth of them
    fast, dense = both(cloud(600, 6).astype(np.float32), 8, gamma=1e-7)
    assert fast.eigenvalues_[7] < SINGLE * fast.eigenvalues_[0]
    np.testing.assert_allclose(fast.eigenvalues_, dense.eigenvalues_, rtol=1e-5)


def test_lanczos_gives_up_where_it_cannot_be_sure():
    start = np.random.default_rng(0).standard_normal((300, WIDTH))
    # One eigenvalue, 299 times: two of its vectors will do, eighty are beyond a block
    flat = np.eye(300) - 1 / 300
    search = partial(
        block_lanczos, flat.__matmul__, first=4, most=300, close=lambda values: 1e-6 * values[0]
    )
    assert search(start, 2) is not None
    assert search(start, 80) is None
    assert search(np.ones((300, WIDTH)), 2) is not None  # A useless start is replaced


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_row_is_as_near_to_itself_as_can_be_at_any_scale(dtype):
    rng = np.random.default_rng(0)
    for scale in (1e2, 1e4, 1e8, 1e12):
        X = (scale * rng.standard_normal((60, 30))).astype(dtype)
        X[1::2] = X[::2]  # Each row twice
        kpca = KPCA(20)
        scores = kpca.fit_transform(X)
        # K is a block of ones for each pair, of which the constant vector is taken out
        np.testing.assert_allclose(kpca.eigenvalues_, 2, rtol=1e-6)
        np.testing.assert_allclose(kpca.transform(X), scores, atol=1e-5)


def test_long_rows_near_one_another_are_told_by_their_distance():
    rng = np.random.default_rng(1)
    X = (1e3 * rng.standard_normal((100, 30))).astype(np.float32)
    X[1::2] = X[::2] + rng.standard_normal((50, 30)).astype(np.float32)
    single, double = KPCA(40).fit(X), KPCA(40).fit(X.astype(np.float64))
    np.testing.assert_allclose(single.eigenvalues_, double.eigenvalues_, rtol=1e-3)
    np.testing.assert_allclose(single.transform(X), single.fit_transform(X), atol=1e-4)


@pytest.mark.parametrize("name", ["linear", "cosine"])
def test_products_do_not_lose_what_varies_little_about_a_large_mean(name):
    X, mean = cloud(12, 30), np.full(30, 1e9)
    far, small = KPCA(5, kernel=name).fit(X + mean), KPCA(5, kernel="linear")
    rows = X + mean if name == "linear" else unit_rows(X + mean)
    small.fit(rows - rows.mean(0))
    np.testing.assert_allclose(far.eigenvalues_, small.eigenvalues_, rtol=1e-4)
    np.testing.assert_allclose(far.transform(X + mean), far.fit_transform(X + mean), rtol=1e-4)


def test_indefinite_kernels():
    X = cloud(60)
    clip = KPCA(5, kernel="sigmoid").fit(X)
    low = clip.smallest_eigenvalue_
    assert low < -0.01
    shift = KPCA(5, kernel="sigmoid", indefinite="shift")
    scores = shift.fit_transform(X)
    np.testing.assert_allclose(shift.eigenvalues_, clip.eigenvalues_ - low, rtol=1e-9)
    # Of 59 eigenvalues the smallest is shifted to 0
    whole = KPCA(58, kernel="sigmoid", indefinite="shift").fit(X)
    assert whole.explained_variance_ratio_.sum() == pytest.approx(1)
    np.testing.assert_allclose(shift.transform(X), scores, atol=1e-5)
    # A new row has no shifted diagonal
    assert np.abs(shift.transform(X + 1e-9) - scores).max() > 1e-3
    jitter, again = (
        KPCA(5, kernel="sigmoid", indefinite="jitter", seed=1).fit(X) for _ in range(2)
    )
    assert 0 < np.abs(jitter.eigenvalues_ - clip.eigenvalues_).max() < 1e-4
    np.testing.assert_array_equal(again.eigenvalues_, jitter.eigenvalues_)
    everything = KPCA(59, kernel="rbf", indefinite="shift").fit(X)
    assert everything.shift_ == 0 and everything.smallest_eigenvalue_ > 0


@pytest.mark.parametrize("name", ["rbf", "poly", "sigmoid"])
def test_jitter_is_noise_of_a_millionth_of_the_mean_diagonal_drawn_by_the_seed(name):
    X = cloud(60) / 3
    inside = (X**2).sum(1) / 10 + 1  # γ a·a + c of a row with itself
    diagonal = {"rbf": 1.0, "poly": (inside**3).mean(), "sigmoid": np.tanh(inside).mean()}[name]
    clip, *jittered = (
        KPCA(12, kernel=name, indefinite=kind, seed=seed).fit(X).eigenvalues_
        for kind, seed in [("clip", 0), *(("jitter", seed) for seed in range(6))]
    )
    moved = np.array(jittered) - clip
    # To first order an eigenvalue moves by vᵀNv, which has twice the variance of an entry of N
    assert np.sqrt((moved**2).mean() / 2) == pytest.approx(1e-6 * diagonal, rel=0.25)
    assert len(np.unique(moved)) == moved.size


def test_noise_is_symmetric_and_as_large_in_every_block(monkeypatch):
    monkeypatch.setattr(kernel_matrix, "BLOCK", 16)
    K = np.zeros((60, 60))
    add_noise(K, 0.1, np.random.default_rng(0))
    np.testing.assert_array_equal(K, K.T)
    for entries in (K.diagonal(), K[np.triu_indices(16, 1)], K[40:, :16]):
        assert entries.std() == pytest.approx(0.1, rel=0.3)


@pytest.mark.parametrize("gamma, alike", [(0.01, False), (0.1, False), (0.15, True), (3.0, True)])
def test_a_kernel_that_is_nearly_the_identity_is_warned_of(gamma, alike, recwarn):
    KPCA(3, gamma=gamma).fit(np.random.default_rng(0).standard_normal((100, 48)))
    assert [str(w.message)[:33] for w in recwarn] == ["the kernel is nearly the identity"] * alike


def test_gamma():
    X = cloud(50)
    squared = ((X[:, None] - X) ** 2).sum(2)[np.triu_indices(50, 1)]
    assert KPCA(2, gamma="median").fit(X).gamma_ == pytest.approx(1 / np.median(squared))
    assert KPCA(2).fit(X).gamma_ == 0.1
    assert median_gamma(cloud(3000)) == pytest.approx(
        median_gamma(cloud(3000, seed=1)[:2000]),
        rel=0.05,
    )


def test_the_median_of_many_rows_is_that_of_rows_from_everywhere():
    X = cloud(4000, 3) * np.repeat([1.0, 5.0], 2000)[:, None]
    assert median_gamma(X) == pytest.approx(median_gamma(X[::2]), rel=0.1)
    assert median_gamma(X) == median_gamma(X) != median_gamma(X[::-1])


@pytest.mark.parametrize(
    "p, options, X, message",
    [
        (
            2,
            {"kernel": "gauss"},
            cloud(30),
            "unknown kernel 'gauss': choose one of rbf, poly, sigmoid, cosine, linear",
        ),
        (
            29,
            {"kernel": "sigmoid"},
            cloud(30, 4),
            r"n_components is 29: expected 1 to \d+ \(the positive eigenvalues",
        ),
        (2, {}, np.ones((5, 3)), "all 5 rows of X are equal"),
        *(
            (1, {"kernel": "cosine"}, np.outer(np.arange(1, n), cloud(1, 9)), "point the same way")
            for n in (6, 40)
        ),
        (
            2,
            {"kernel": "poly", "degree": 60},
            1e14 * cloud(5),
            "kernel values overflow: scale X down",
        ),
        (
            2,
            {},
            cloud(20_001, 3),
            "20,001 rows takes 3,200,320,008 bytes .*: fit on a sample of at most",
        ),
        (2, {"gamma": "median"}, np.r_[np.zeros((20, 3)), cloud(3, 3)], "most rows are equal"),
        (
            2,
            {"gamma": "median", "kernel": "poly"},
            cloud(30),
            "expected a number above 0, None for 1/D",
        ),
    ],
)
def test_what_cannot_be_fitted(p, options, X, message):
    with pytest.raises(InputError, match=message), np.errstate(all="raise"):
        KPCA(p, **options).fit(X)
