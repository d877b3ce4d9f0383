"""Matrices of any shape, with constant columns and duplicates: every reducer keeps its promise or says why not."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from repro.reducers import REDUCERS, make_reducer, memory
from repro.types import InputError

PARAMETERS = {
    "kpca": {"kernel": "rbf"},
    "autoencoder": {"epochs": 2},
    "isomap": {"n_neighbors": 2},
    "lle": {"n_neighbors": 2},
    "sbertlp": {"n_neighbors": 2},
}
LIMITS = {
    "truncate": lambda n, D: D,
    "pca": lambda n, D: min(n - 1, D),
    "svd": min,
    "grp": lambda n, D: 3 * D,
    "kpca": lambda n, D: n - 1,
    "autoencoder": lambda n, D: D,
    "isomap": lambda n, D: n - 1,
    "lle": lambda n, D: n - 1,
    "sbertlp": lambda n, D: n - 1,
}
"""largest n_components for n distinct rows of D columns; grp has none"""
several = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


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


@pytest.mark.parametrize("name", REDUCERS)
@several
@given(X=matrices(), data=st.data())
def test_shape_type_and_prefix(name, X, data):
    n, D = X.shape
    limit = LIMITS[name](n, D)
    size = data.draw(st.integers(1, limit), label="n_components")
    reducer = make_reducer(name, size, **PARAMETERS.get(name, {}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of graphs in pieces
        try:
            Y = reducer.fit_transform(X)
        except InputError as error:
            # data on a line, or rounding, may leave fewer positive eigenvalues than rows
            assert "positive eigenvalues" in str(error) and name in ("kpca", "isomap")
            return
        again = clone(reducer).fit(X)
    assert Y.shape == (n, size) and Y.dtype == np.float32 and np.isfinite(Y).all()
    scale = max(np.abs(Y).max(), 1e-6)
    if name not in ("lle", "sbertlp", "isomap"):  # theirs are tested with their own tolerances
        np.testing.assert_allclose(again.transform(X), Y, atol=2e-3 * scale)
    assert reducer.prefix(Y, size).shape == Y.shape
    if name != "autoencoder":
        assert reducer.prefix(Y, 1).shape == (n, 1)
    assert list(reducer.get_feature_names_out()) == [f"{type(reducer).__name__.lower()}{i}" for i in range(size)]


@pytest.mark.parametrize("name", [name for name in REDUCERS if name != "grp"])
@several
@given(X=matrices(), beyond=st.integers(1, 5))
def test_sizes_out_of_range_name_the_limit(name, X, beyond):
    limit = LIMITS[name](*X.shape)
    reducer = make_reducer(name, limit + beyond, **PARAMETERS.get(name, {}))
    with pytest.raises(InputError, match=f"n_components is {limit + beyond}: expected 1 to {limit}"):
        reducer.fit(X)


@pytest.mark.parametrize("name", ["isomap", "lle", "sbertlp"])
@several
@given(X=matrices(), beyond=st.integers(0, 5))
def test_neighbours_out_of_range_name_the_limit(name, X, beyond):
    n = len(X)
    with pytest.raises(InputError, match=f"n_neighbors is {n + beyond}: expected 1 to {n - 1}"):
        make_reducer(name, 1, n_neighbors=n + beyond).fit(X)


@pytest.mark.parametrize("name", REDUCERS)
@several
@given(X=matrices(), data=st.data())
def test_one_bad_number_names_its_row(name, X, data):
    row = data.draw(st.integers(0, len(X) - 1))
    X[row, data.draw(st.integers(0, X.shape[1] - 1))] = data.draw(st.sampled_from([np.nan, np.inf, -np.inf]))
    with pytest.raises(InputError, match=f"first in row {row}"):
        make_reducer(name, 1, **PARAMETERS.get(name, {})).fit(X)


@pytest.mark.parametrize("name", REDUCERS)
def test_outputs_are_stored_row_by_row_whatever_the_order_of_the_input(name):
    X = np.asfortranarray(np.random.default_rng(0).standard_normal((20, 5)))
    for Y in ((reducer := make_reducer(name, 3, **PARAMETERS.get(name, {}))).fit_transform(X), reducer.transform(X)):
        assert Y.flags.c_contiguous and not Y.flags.f_contiguous


@pytest.mark.parametrize("name", REDUCERS)
@pytest.mark.parametrize("factor, said", [(1e150, "X reaches .*: expected at most 1e.15"), (1j, "X holds complex")])
def test_numbers_that_single_precision_cannot_hold_are_refused(name, factor, said):
    with pytest.raises(InputError, match=said):
        make_reducer(name, 2, **PARAMETERS.get(name, {})).fit(np.random.default_rng(0).standard_normal((9, 4)) * factor)


@pytest.mark.parametrize("name, entry", [("isomap", 24), ("lle", 17), ("sbertlp", 17), ("kpca", 4)])
def test_more_rows_than_there_is_memory_for_are_refused_with_advice(name, entry, monkeypatch):
    X, needed = np.random.default_rng(0).standard_normal((200, 4)), entry * 200**2
    reducer = make_reducer(name, 2, **PARAMETERS.get(name, {}))
    monkeypatch.setattr(memory, "available_bytes", lambda: needed / 4)
    with pytest.raises(InputError, match=r"200 rows need about .* GB .* a sample of at most 100 rows and transform"):
        reducer.fit(X)
    monkeypatch.setattr(memory, "available_bytes", lambda: 24 * 200**2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of graphs in pieces
        reducer.fit(X)


def test_the_memory_that_is_available_is_known_or_without_bound(monkeypatch):
    assert 2**20 < memory.available_bytes() < 2**60
    monkeypatch.setattr(memory, "Path", lambda path: Path("nowhere"))
    assert 2**20 < memory.available_bytes() < 2**60
    monkeypatch.setattr(memory, "os", None)
    assert memory.available_bytes() == np.inf


@pytest.mark.parametrize("name", REDUCERS)
@several
@given(X=matrices(duplicates=True))
def test_equal_rows_get_equal_outputs(name, X):
    distinct, group = np.unique(X, axis=0, return_inverse=True)
    reducer = make_reducer(name, 1, **PARAMETERS.get(name, {}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            Y = reducer.fit(X).transform(X)
        except InputError as error:
            assert len(distinct) < 4 or "positive eigenvalues" in str(error), error
            return
    assert np.isfinite(Y).all()
    scale = max(np.abs(Y).max(), 1e-6)
    for i in range(len(distinct)):
        same = Y[group == i]
        np.testing.assert_allclose(same, same[:1].repeat(len(same), 0), atol=1e-4 * scale)


@several
@given(X=matrices(), data=st.data())
def test_a_random_projection_is_the_same_in_both_settings(X, data):
    """Fitted on the training rows or on training and test rows, it learns nothing but the columns."""
    cut = data.draw(st.integers(1, len(X) - 1))
    for name in ("grp", "truncate"):
        size = data.draw(st.integers(1, X.shape[1]))
        inductive = make_reducer(name, size, seed=3).fit(X[:cut]).transform(X)
        transductive = make_reducer(name, size, seed=3).fit(X).transform(X)
        np.testing.assert_array_equal(inductive, transductive)


@several
@given(X=matrices(), data=st.data())
def test_pca_never_keeps_less_than_any_other_axes(X, data):
    size = data.draw(st.integers(1, min(len(X) - 1, X.shape[1])))
    total = ((X - X.mean(0)) ** 2).sum()
    best = make_reducer("pca", size).fit(X)
    for name in ("truncate", "svd", "autoencoder"):
        other = make_reducer(name, size, **PARAMETERS.get(name, {})).fit(X)
        back = other.inverse_transform(other.transform(X)).astype(np.float64)
        assert best.explained_variance_ratio_.sum() >= 1 - ((X - back) ** 2).sum() / max(total, 1e-12) - 1e-4
