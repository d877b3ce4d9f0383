"""Matrices of any shape, with constant columns and duplicates: every reducer keeps scikit-learn's
contract and ours.
"""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

from repro.reducers import REDUCERS, make_reducer, reduced, reducer
from repro.store import Store
from repro.types import InputError

SMALL = {
    "autoencoder": {"epochs": 2},
    **{name: {"n_neighbors": 2} for name in ("isomap", "lle", "sbertlp")},
}
"""Parameters that sets of some ten rows call for."""
LIMITS = {
    **dict.fromkeys(("truncate", "centred", "autoencoder"), lambda n, D: D),
    "pca": lambda n, D: min(n - 1, D),
    "svd": min,
    "grp": lambda n, D: 3 * D,
}
"""Largest n_components for n distinct rows of D columns, n − 1 for the others."""
UNLIMITED = ("grp",)
"""Reducers that have no largest n_components; `LIMITS` says what is tried of them."""
several = settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
every = pytest.mark.parametrize("name", REDUCERS)


def cloud(n, D):
    return np.random.default_rng(0).standard_normal((n, D)) * np.linspace(2, 0.5, D) + 0.3


def small(name, size):
    return make_reducer(name, size, **SMALL.get(name, {}))


@st.composite
def matrices(draw, duplicates=False):
    """X (n, D) of float32 or float64, some columns constant, its columns of very different size."""
    n, D = draw(st.integers(4, 24)), draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.standard_normal((n, D)) * 10.0 ** rng.uniform(-2, 2, D) + rng.uniform(-5, 5, D)
    for column in draw(st.sets(st.integers(1, D), max_size=3)):
        if column < D:
            X[:, column] = draw(st.sampled_from([0.0, 1.0, 0.1, -7.5]))
    if duplicates:
        X = X[draw(st.lists(st.integers(0, n - 1), min_size=4, max_size=30))]
    return X.astype(draw(st.sampled_from([np.float32, np.float64])))


# The checks' small sets fall apart
@pytest.mark.filterwarnings("ignore:the graph of", "ignore:.*eigenvalues below")
@every
def test_scikit_learns_checks_hold(name):
    options = {"autoencoder": {"epochs": 5}, "sbertlp": {"n_neighbors": 5}}.get(name, {})
    checks = check_estimator(make_reducer(name, 2, **options), on_skip=None)
    assert len(checks) > 40
    # Scikit-learn skips other libraries' arrays itself unless SCIPY_ARRAY_API is set
    assert {check["check_name"] for check in checks if check["status"] != "passed"} <= {
        "check_array_api_input"
    }


def test_names_and_parameters():
    assert (
        make_reducer("grp", 3, seed=7).seed == 7
        and make_reducer("lle", 3, seed=7, n_neighbors=9).n_neighbors == 9
    )
    with pytest.raises(
        InputError,
        match=f"unknown reducer 'umap': choose one of {', '.join(REDUCERS)}",
    ):
        make_reducer("umap", 2)
    with pytest.raises(
        InputError,
        match="pca has no parameter 'whiten': it takes standardize, center_output",
    ):
        make_reducer("pca", 2, whiten=True)


@pytest.mark.filterwarnings("ignore::UserWarning")  # Of graphs in pieces
@every
@several
@given(X=matrices(), data=st.data())
def test_shape_type_and_prefix(name, X, data):
    n, D = X.shape
    size = data.draw(
        st.integers(1, LIMITS.get(name, lambda n, D: n - 1)(n, D)),
        label="n_components",
    )
    reducer = small(name, size)
    try:
        Y = reducer.fit_transform(X)
    except InputError as error:
        # Data on a line, or rounding, may leave fewer positive eigenvalues than rows
        assert "positive eigenvalues" in str(error) and name in ("kpca", "isomap")
        return
    again = clone(reducer).fit(X).transform(X)
    for Z in (Y, again, reducer.transform(np.asfortranarray(X))):
        assert (
            Z.shape == (n, size)
            and Z.dtype == np.float32
            and np.isfinite(Z).all()
            and Z.flags.c_contiguous
        )
    if name not in ("lle", "sbertlp", "isomap"):  # Theirs are tested with their own tolerances
        np.testing.assert_allclose(again, Y, atol=2e-3 * max(np.abs(Y).max(), 1e-6))
    assert reducer.prefix(Y, size).shape == Y.shape
    if reducer.nested:
        assert reducer.prefix(Y, 1).shape == (n, 1)


@pytest.mark.parametrize("name", [name for name in REDUCERS if name not in UNLIMITED])
@pytest.mark.parametrize("n, D", [(12, 5), (5, 9)])
def test_sizes_out_of_range_name_the_limit(name, n, D):
    X, limit = cloud(n, D), LIMITS.get(name, lambda n, D: n - 1)(n, D)
    for size, said in (
        (limit + 1, f" {limit + 1}: expected 1 to {limit}"),
        (0, ""),
        (2.0, ""),
        (True, ""),
    ):
        with pytest.raises(InputError, match=f"n_components is{said}"):
            small(name, size).fit(X)
    if name in ("isomap", "lle", "sbertlp"):
        with pytest.raises(InputError, match=f"n_neighbors is {n}: expected 1 to {n - 1}"):
            make_reducer(name, 1, n_neighbors=n).fit(X)


@pytest.mark.filterwarnings("ignore:the graph of")
@every
def test_input_that_cannot_be_used_is_refused(name):
    X = cloud(9, 4)
    broken = np.where(np.arange(36).reshape(9, 4) == 21, np.nan, X)
    for wrong, said in (
        (X * 1e150, "X reaches .* at most 1e.15"),
        (X[:0], "0 sample"),
        (broken, "first in row 5"),
    ):
        with pytest.raises(InputError, match=said):
            small(name, 2).fit(wrong)
    with pytest.raises(NotFittedError):
        small(name, 2).transform(X)
    with pytest.raises(InputError, match=r"3 features, but \w+ is expecting 4"):
        small(name, 2).fit(X).transform(X[:, 1:])


@pytest.mark.filterwarnings("ignore:the graph of")
@every
def test_numbers_that_would_vanish_in_single_precision_are_refused_not_reduced_to_zero(name):
    X, told = cloud(9, 4), "X reaches only .*: expected 0 or at least 1e-20.* divide it by"
    for tiny in (X * 1e-25, (X * 1e-40).astype(np.float32), X * 1e-60, X * 1e-310):
        with pytest.raises(InputError, match=told):
            small(name, 2).fit(tiny)
    fitted = small(name, 2).fit(X * 1e-18)
    assert fitted.transform(X * 1e-18).any()
    with pytest.raises(InputError, match="X reaches only"):
        fitted.transform(X * 1e-45)


@pytest.mark.parametrize("name, entry", [("isomap", 24), ("lle", 17), ("sbertlp", 17), ("kpca", 4)])
def test_more_rows_than_there_is_memory_for_are_refused_with_advice(name, entry, monkeypatch):
    X = cloud(200, 4)
    monkeypatch.setattr(reducer, "available_bytes", lambda: entry * 200**2 / 4)
    with pytest.raises(
        InputError,
        match=r"200 rows need about .* GB .* a sample of at most 100 rows and transform",
    ):
        small(name, 2).fit(X)
    monkeypatch.undo()
    assert 2**20 < reducer.available_bytes() < 2**60


@pytest.mark.filterwarnings("ignore::UserWarning")
@every
@several
@given(X=matrices(duplicates=True))
def test_equal_rows_get_equal_outputs(name, X):
    distinct, group = np.unique(X, axis=0, return_inverse=True)
    try:
        Y = small(name, 1).fit(X).transform(X)
    except InputError as error:
        assert len(distinct) < 4 or "positive eigenvalues" in str(error), error
        return
    assert np.isfinite(Y).all()
    first = np.unique(group, return_index=True)[1]
    np.testing.assert_allclose(Y, Y[first][group], atol=1e-4 * max(np.abs(Y).max(), 1e-6))


@pytest.mark.parametrize("p", [1, 4])
@every
def test_a_prefix_of_the_largest_fit_is_the_smaller_fit_or_refused(name, p):
    X = cloud(60, 12)
    large = make_reducer(name, 9).fit(X)
    if not large.nested:
        told = f"{type(large).__name__} of 9 components holds none of {p}: .* n_components={p}"
        with pytest.raises(InputError, match=told):
            large.prefix(large.transform(X), p)
        return
    for beyond in (0, 10):
        with pytest.raises(InputError, match=f"n_components is {beyond}: expected 1 to 9"):
            large.prefix(large.transform(X), beyond)
    smaller = make_reducer(name, p).fit_transform(X)
    np.testing.assert_allclose(large.prefix(large.transform(X), p), smaller, rtol=1e-4, atol=1e-4)


@every
@pytest.mark.parametrize("how", [{"requires_grad": True}, {"dtype": torch.bfloat16}], ids=str)
def test_a_tensor_that_numpy_cannot_read_is_refused(name, how):
    with pytest.raises(InputError, match="X is no matrix that numpy can read"):
        small(name, 2).fit(torch.randn(20, 3, **how))


def test_sizes_that_few_rows_cannot_fit_are_told_of_and_left_out(tmp_path, capsys):
    X = np.random.default_rng(0).standard_normal((40, 6))
    found = dict(reduced("pca", X[:4], X, [2, 4, 5, 8], Store(tmp_path)))
    assert list(found) == [2]
    assert "left out: pca at 4, 5 dims: it was fitted on 4 rows" in capsys.readouterr().err
    assert list(dict(reduced("pca", X, X, [2, 8], Store(tmp_path)))) == [2]
    assert not capsys.readouterr().err  # X itself has no 8 dims
