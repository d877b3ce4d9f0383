"""The registry, and the contract of scikit-learn that every reducer keeps."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from repro.reducers import REDUCERS, make_reducer
from repro.types import InputError

NOT_PASSED = {
    "check_array_api_input": "arrays of other libraries: skipped by scikit-learn itself unless SCIPY_ARRAY_API is set"
}
"""every check that a reducer does not pass, with the reason; the same for all"""
SMALL: dict[str, dict[str, object]] = {"autoencoder": {"epochs": 5}, "sbertlp": {"n_neighbors": 5}}
"""parameters that the checks' sets, of some ten rows, call for"""


@pytest.mark.filterwarnings("ignore:the graph of", "ignore:.*eigenvalues below")  # the checks' small sets fall apart
@pytest.mark.parametrize("name", REDUCERS)
def test_scikit_learns_checks_hold(name):
    checks = check_estimator(make_reducer(name, 2, **SMALL.get(name, {})), on_skip=None)
    assert len(checks) > 40
    assert {check["check_name"] for check in checks if check["status"] != "passed"} <= set(NOT_PASSED)


@pytest.mark.parametrize("name", REDUCERS)
def test_every_reducer_clones_and_joins_a_pipeline(name):
    X = np.random.default_rng(0).standard_normal((30, 6))
    reducer = make_reducer(name, 3, seed=4, **SMALL.get(name, {}))
    pipeline = make_pipeline(make_reducer("pca", 5), clone(reducer)).set_output(transform="pandas")
    frame = pipeline.fit_transform(X)
    assert list(frame.columns) == [f"{type(reducer).__name__.lower()}{i}" for i in range(3)]
    assert set(frame.dtypes) == {np.dtype(np.float32)}


def test_the_seed_reaches_those_that_draw():
    assert make_reducer("grp", 3, seed=7).seed == 7
    assert make_reducer("lle", 3, seed=7, n_neighbors=9).n_neighbors == 9


def test_an_unknown_name_or_parameter_lists_the_valid_ones():
    with pytest.raises(InputError, match=f"unknown reducer 'umap': choose one of {', '.join(REDUCERS)}"):
        make_reducer("umap", 2)
    with pytest.raises(InputError, match="pca has no parameter 'whiten': it takes standardize, center_output"):
        make_reducer("pca", 2, whiten=True)
    with pytest.raises(InputError, match="svd has no parameter 'k': it takes none"):
        make_reducer("svd", 2, k=3)


def test_a_fitted_size_beyond_the_fit_set_names_the_limit():
    X = np.random.default_rng(0).standard_normal((6, 4))
    for name, limit in (("truncate", 4), ("pca", 4), ("svd", 4), ("kpca", 5), ("autoencoder", 4), ("isomap", 5)):
        with pytest.raises(InputError, match=f"n_components is 7: expected 1 to {limit}"):
            make_reducer(name, 7).fit(X)


def test_constant_coordinates_do_not_trouble_the_others():
    """all-MiniLM-L6-v2 has three: 127, 223 and 319."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 12)).astype(np.float32)
    constant = np.insert(X, [3, 7, 11], [0.013, -0.02, 0.005], axis=1).astype(np.float32)
    for name in ("pca", "kpca", "isomap", "lle", "sbertlp"):
        options = {**SMALL.get(name, {}), **({"gamma": 0.05} if name == "kpca" else {})}
        Y, Z = (make_reducer(name, 3, **options).fit_transform(A) for A in (X, constant))
        np.testing.assert_allclose(Z * np.sign((Y * Z).sum(0)), Y, atol=1e-3)


def test_reducers_bring_no_torch(python):
    process = python("import sys, repro.reducers\nassert 'torch' not in sys.modules")
    assert process.wait(60) == 0, process.stderr.read()
