"""Kernel PCA: pca where the kernel is linear or nearly, scikit-learn's elsewhere, whichever solver finds it."""

import warnings

import numpy as np
import pytest
from sklearn import decomposition

from repro.reducers import KPCA, PCA, kernel, kernel_matrix
from repro.reducers.kernel_matrix import SINGLE, WIDTH, block_lanczos, median_gamma
from repro.types import InputError


def cloud(n=80, D=10, seed=0):
    return np.random.default_rng(seed).standard_normal((n, D)) * np.linspace(2, 0.5, D) + 0.3


def aligned(Y, reference):
    """Y with the signs of the reference's columns."""
    return Y * np.sign((Y * reference).sum(0))


@pytest.mark.parametrize("n, D, p, solver", [(40, 6, 6, "features"), (10, 30, 9, "dense"), (2, 3, 1, "dense")])
def test_a_linear_kernel_is_pca(n, D, p, solver):
    X, Q = cloud(n, D), cloud(7, D, seed=1)
    pca, kpca = PCA(p).fit(X), KPCA(p, kernel="linear").fit(X)
    assert kpca.solver_ == solver
    signs = np.sign((kpca.transform(X) * pca.transform(X)).sum(0))
    np.testing.assert_allclose(kpca.transform(X) * signs, pca.transform(X), atol=1e-5)
    np.testing.assert_allclose(kpca.transform(Q) * signs, pca.transform(Q), atol=1e-5)
    np.testing.assert_allclose(kpca.explained_variance_, pca.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(kpca.explained_variance_ratio_, pca.explained_variance_ratio_, rtol=1e-9)


@pytest.mark.parametrize("gamma", [1e-4, 1e-7, 1e-10])
def test_a_wide_rbf_kernel_tends_to_pca(gamma):
    X = cloud(60)
    pca = PCA(6).fit_transform(X)
    scores = KPCA(6, gamma=gamma).fit_transform(X) / np.sqrt(2 * gamma)
    np.testing.assert_allclose(aligned(scores, pca), pca, atol=max(1e4 * gamma, 1e-5))


@pytest.mark.parametrize("name", ["rbf", "poly", "sigmoid", "cosine", "linear"])
@pytest.mark.parametrize("n, D", [(80, 10), (20, 30)])
def test_scores_are_scikit_learns(name, n, D):
    X, Q = cloud(n, D) / 3, cloud(15, D, seed=1) / 3
    oracle = decomposition.KernelPCA(5, kernel=name, gamma=0.2, coef0=0.7, degree=2, eigen_solver="dense").fit(X)
    ours = KPCA(5, kernel=name, gamma=0.2, coef0=0.7, degree=2)
    expected = oracle.transform(X)
    signs = np.sign((ours.fit_transform(X) * expected).sum(0))
    np.testing.assert_allclose(ours.fit_transform(X) * signs, expected, atol=1e-5)
    np.testing.assert_allclose(ours.transform(Q) * signs, oracle.transform(Q), atol=1e-5)
    np.testing.assert_allclose(ours.eigenvalues_, oracle.eigenvalues_, rtol=1e-7)
    default = decomposition.KernelPCA(5, kernel=name).fit(X)
    np.testing.assert_allclose(KPCA(5, kernel=name).fit(X).eigenvalues_, default.eigenvalues_, rtol=1e-7)


@pytest.mark.parametrize("name", ["rbf", "poly", "cosine"])
def test_rows_of_rank_r_have_r_linear_directions_and_no_more(name):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((50, 4)) @ rng.standard_normal((4, 20))
    Y = KPCA(4, kernel="linear").fit_transform(X)
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    np.testing.assert_allclose(np.linalg.norm(Y[:, None] - Y, axis=2), distances, atol=1e-4)  # lossless
    with pytest.raises(InputError, match=r"n_components is 5: expected 1 to 4 \(the positive eigenvalues"):
        KPCA(5, kernel="linear").fit(X)
    full = KPCA(49, kernel=name).fit(X) if name == "rbf" else KPCA(4, kernel=name).fit(X)
    assert (full.eigenvalues_ > 0).all()


@pytest.mark.parametrize("name, p", [("rbf", 40), ("poly", 40), ("sigmoid", 20)])
def test_lanczos_finds_what_the_dense_solver_finds(name, p, monkeypatch):
    X = cloud(1000, 24)
    X = np.r_[X, -X].astype(np.float32) / 5  # even functions of mirrored rows are hidden from their own components
    fast = KPCA(p, kernel=name)
    scores = fast.fit_transform(X)
    assert fast.solver_ == "lanczos"
    monkeypatch.setattr(kernel, "DENSE_ROWS", 10_000)
    dense = KPCA(p, kernel=name)
    expected = dense.fit_transform(X)
    assert dense.solver_ == "dense"
    np.testing.assert_allclose(fast.eigenvalues_, dense.eigenvalues_, rtol=1e-4)
    # single eigenvectors turn where eigenvalues tie, inner products of the scores do not
    some = np.arange(0, 2000, 50)
    np.testing.assert_allclose(
        scores[some, : p - 5] @ scores[some, : p - 5].T, expected[some, : p - 5] @ expected[some, : p - 5].T, atol=1e-3
    )
    np.testing.assert_allclose(fast.transform(X[some]), scores[some], atol=1e-4)


def test_small_eigenvalues_go_to_double_precision(monkeypatch):
    X = cloud(1500, 6).astype(np.float32)
    fast = KPCA(8, gamma=1e-7).fit(X)  # six linear directions, the others a millionth of them
    assert fast.solver_ == "lanczos" and fast.eigenvalues_[7] < SINGLE * fast.eigenvalues_[0]
    monkeypatch.setattr(kernel, "DENSE_ROWS", 10_000)
    dense = KPCA(8, gamma=1e-7).fit(X)
    np.testing.assert_allclose(fast.eigenvalues_, dense.eigenvalues_, rtol=1e-5)


def test_what_does_not_converge_falls_back_to_the_dense_solver(caplog, monkeypatch):
    X = cloud(1500, 5)
    fast = KPCA(3).fit(X)
    monkeypatch.setattr(kernel_matrix, "TOLERANCE", 0.0)
    with caplog.at_level("INFO"):
        slow = KPCA(3).fit(X)
    assert (fast.solver_, slow.solver_) == ("lanczos", "dense") and "all 1,500 eigenpairs" in caplog.text
    np.testing.assert_allclose(fast.eigenvalues_, slow.eigenvalues_, rtol=1e-6)


def test_lanczos_gives_up_where_it_cannot_be_sure():
    start = np.random.default_rng(0).standard_normal((300, WIDTH))
    flat = np.eye(300) - 1 / 300  # one eigenvalue, 299 times: two of its vectors will do, eighty are beyond a block
    assert block_lanczos(flat, start, 2) is not None
    assert block_lanczos(flat, start, 80) is None
    assert block_lanczos(flat, np.ones((300, WIDTH)), 2) is not None  # a useless start is replaced


def test_indefinite_kernels():
    X = cloud(60)
    clip = KPCA(5, kernel="sigmoid").fit(X)
    low = clip.smallest_eigenvalue_
    assert low < -0.01
    shift = KPCA(5, kernel="sigmoid", indefinite="shift")
    scores = shift.fit_transform(X)
    np.testing.assert_allclose(shift.eigenvalues_, clip.eigenvalues_ - low, rtol=1e-9)
    np.testing.assert_allclose(shift.transform(X), scores, atol=1e-5)
    assert np.abs(shift.transform(X + 1e-9) - scores).max() > 1e-3  # a new row has no shifted diagonal
    jitter, again = (KPCA(5, kernel="sigmoid", indefinite="jitter", seed=1).fit(X) for _ in range(2))
    assert 0 < np.abs(jitter.eigenvalues_ - clip.eigenvalues_).max() < 1e-4
    np.testing.assert_array_equal(again.eigenvalues_, jitter.eigenvalues_)
    everything = KPCA(59, kernel="rbf", indefinite="shift").fit(X)
    assert everything.shift_ == 0 and everything.smallest_eigenvalue_ > 0


def test_a_shift_by_lanczos_is_the_dense_one(monkeypatch):
    X = cloud(1500, 20).astype(np.float32)
    fast = KPCA(5, kernel="sigmoid", indefinite="shift").fit(X)
    monkeypatch.setattr(kernel, "DENSE_ROWS", 10_000)
    dense = KPCA(5, kernel="sigmoid", indefinite="shift").fit(X)
    assert (fast.solver_, dense.solver_) == ("lanczos", "dense")
    assert fast.shift_ == pytest.approx(dense.shift_, rel=1e-3)


def test_positive_eigenvalues_are_the_limit():
    X = cloud(30, 4)
    with pytest.raises(InputError, match=r"n_components is 29: expected 1 to \d+ \(the positive eigenvalues"):
        KPCA(29, kernel="sigmoid").fit(X)
    with pytest.raises(InputError, match=r"n_components is 30: expected 1 to 29 \(n - 1 of 30 rows\)"):
        KPCA(30).fit(X)


@pytest.mark.parametrize("gamma, alike", [(0.01, False), (3.0, True)])
def test_a_kernel_that_is_nearly_the_identity_is_warned_of(gamma, alike):
    X = np.random.default_rng(0).standard_normal((100, 48))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        KPCA(3, gamma=gamma).fit(X)
    assert [str(w.message)[:33] for w in told] == ["the kernel is nearly the identity"] * alike


def test_gamma():
    X = cloud(50)
    squared = ((X[:, None] - X) ** 2).sum(2)[np.triu_indices(50, 1)]
    assert KPCA(2, gamma="median").fit(X).gamma_ == pytest.approx(1 / np.median(squared))
    assert KPCA(2).fit(X).gamma_ == 0.1
    assert median_gamma(cloud(3000), seed=1) == pytest.approx(median_gamma(cloud(3000), seed=2), rel=0.05)
    for wrong, kernel_name in ((0, "rbf"), (-1.0, "rbf"), ("scale", "rbf"), ("median", "poly"), (np.inf, "rbf")):
        with pytest.raises(InputError, match="expected a number above 0, None for 1/D"):
            KPCA(2, kernel=kernel_name, gamma=wrong).fit(X)
    with pytest.raises(InputError, match="most rows are equal"):
        KPCA(2, gamma="median").fit(np.r_[np.zeros((20, 3)), X[:3, :3]])


@pytest.mark.parametrize("options", [{}, {"kernel": "cosine"}])
@pytest.mark.parametrize("p", [1, 4, 7])
def test_a_prefix_of_the_largest_fit_is_the_smaller_fit(options, p):
    X = cloud()
    large = KPCA(8, **options).fit(X)
    np.testing.assert_allclose(
        large.prefix(large.transform(X), p), KPCA(p, **options).fit_transform(X), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("kernel_name", ["rbf", "poly", "sigmoid", "cosine", "linear"])
def test_constant_columns_duplicates_and_zero_rows_are_legal(kernel_name):
    X = np.c_[np.full(24, 3.0), np.repeat(cloud(12, 3), 2, axis=0)]
    X[:2] = 0
    kpca = KPCA(2, kernel=kernel_name)
    Y = kpca.fit_transform(X)
    assert np.isfinite(Y).all() and Y.dtype == np.float32
    np.testing.assert_allclose(Y[::2], Y[1::2], atol=1e-5)
    np.testing.assert_allclose(kpca.transform(X), Y, atol=1e-5)


@pytest.mark.parametrize(
    "options, X, message",
    [
        ({"kernel": "gauss"}, cloud(30), "unknown kernel 'gauss': choose one of rbf, poly, sigmoid, cosine, linear"),
        ({"indefinite": "drop"}, cloud(30), "unknown indefinite 'drop'"),
        ({"kernel": "poly", "degree": 0}, cloud(30), "degree is 0"),
        ({}, np.ones((5, 3)), "all 5 rows of X are equal"),
        ({"kernel": "poly", "degree": 3}, 1e14 * cloud(30), "kernel values overflow: scale X down"),
        ({"kernel": "poly", "degree": 60}, 1e14 * cloud(5), "kernel values overflow: scale X down"),
        (
            {},
            cloud(20_001, 3),
            r"20,001 rows takes 3,200,320,008 bytes in double precision: fit on a sample of at most",
        ),
    ],
)
def test_what_cannot_be_fitted(options, X, message):
    with pytest.raises(InputError, match=message), np.errstate(all="raise"):
        KPCA(2, **options).fit(X)


def test_columns_need_no_kernel_matrix():
    assert KPCA(2, kernel="linear").fit(cloud(20_001, 3)).solver_ == "features"


def test_progress_is_shown_on_request(capsys, monkeypatch):
    monkeypatch.setattr("repro.terminal.shows_progress", lambda: True)
    for wanted in (True, False):
        KPCA(3, progress=wanted).fit(cloud(1500, 8))
        shown = capsys.readouterr().err
        assert ("kernel matrix" in shown and "eigenvectors" in shown) == wanted
