"""The registry, and the contract of scikit-learn that every reducer keeps."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from repro.reducers import REDUCERS, make_reducer
from repro.types import InputError

NOT_HELD: dict[str, dict[str, str]] = {name: {} for name in REDUCERS}
"""checks that a reducer's nature forbids, with the reason: none so far"""


SMALL: dict[str, dict[str, object]] = {"autoencoder": {"epochs": 5}, "sbertlp": {"n_neighbors": 5}}
"""parameters that the checks' sets, of some ten rows, call for"""


@pytest.mark.filterwarnings("ignore:the graph of", "ignore:.*eigenvalues below")  # the checks' small sets fall apart
@pytest.mark.parametrize("name", REDUCERS)
def test_scikit_learns_checks_hold(name):
    check_estimator(make_reducer(name, 2, **SMALL.get(name, {})), expected_failed_checks=NOT_HELD[name], on_skip=None)


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
