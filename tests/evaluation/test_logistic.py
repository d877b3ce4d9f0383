"""The batched fits minimise scikit-learn's objective, so scikit-learn is the oracle."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from repro.evaluation.logistic import fit_logistic


def made(classes):
    shape = {"n_informative": 8, "n_redundant": 0, "n_classes": classes}
    return make_classification(400, 12, **shape, class_sep=0.7, flip_y=0.05, random_state=0)


def everyone(y, models=1):
    return np.ones((models, len(y)), bool)


def slopes(models, k):
    """As scikit-learn's `coef_` has them (outputs, D)."""
    return models.weights[k, :-1].T


def oracle_of(X, y, C):
    return LogisticRegression(C=C, tol=1e-8, max_iter=10_000).fit(X, y)


@pytest.mark.parametrize("classes", [2, 3, 6])
def test_coefficients_are_scikit_learns(classes):
    X, y = made(classes)
    penalties = np.array([0.01, 0.25, 8.0])
    models = fit_logistic(X, y, everyone(y, 3), penalties)
    for k, C in enumerate(penalties):
        oracle = oracle_of(X, y, C)
        scale = np.abs(oracle.coef_).max()
        np.testing.assert_allclose(slopes(models, k), oracle.coef_, atol=3e-3 * scale)
        np.testing.assert_allclose(
            models.weights[k, -1],
            oracle.intercept_,
            atol=5e-3 * max(scale, 1),
        )
        assert (models.predict(X)[k] == oracle.predict(X)).mean() > 0.995


@pytest.mark.parametrize(
    ("classes", "few", "penalties"),
    [(3, 0.6, (0.5, 2.0, 0.1)), (2, 0.1, (0.02, 0.02, 0.02))],
)
def test_every_model_learns_from_its_own_rows_alone_and_weighs_its_penalty_by_them(
    classes,
    few,
    penalties,
):
    X, y = made(classes)
    members = np.random.default_rng(0).random((3, len(y))) < np.array([[few], [0.6], [1.0]])
    models = fit_logistic(X, y, members, np.array(penalties))
    for k, own in enumerate(members):
        oracle = oracle_of(X[own], y[own], penalties[k])
        np.testing.assert_allclose(
            slopes(models, k),
            oracle.coef_,
            atol=min(5e-3, 0.01 * np.abs(oracle.coef_).max()),
        )


@pytest.mark.parametrize("scale", [1e-4, 1e-2, 1e3])
def test_coefficients_turn_with_the_unit_of_the_features(scale):
    """Of features times s under C/s² they are divided by s, though gradients are small early."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((400, 200))
    y = (Z[:, :5].sum(1) + rng.standard_normal(400) > 0).astype(int)
    found = fit_logistic(scale * Z, y, everyone(y), np.array([1 / scale**2]))
    expected = oracle_of(Z, y, 1.0).coef_
    allowed = 5e-3 * np.abs(expected).max()
    np.testing.assert_allclose(scale * slopes(found, 0), expected, atol=allowed)


@pytest.mark.parametrize("rows", [300, 30])
@pytest.mark.parametrize("deviation", [1e-1, 1e-3])
def test_a_direction_of_little_variance_is_learnt_from(deviation, rows):
    rng = np.random.default_rng(0)
    z = rng.standard_normal(rows)
    others = rng.standard_normal((rows, 3)) @ rng.standard_normal((3, 39))
    y = (z + 0.8 * rng.standard_normal(rows) > 0).astype(int)
    X, C = np.column_stack([deviation * z, others]), 1 / deviation**2
    found = fit_logistic(X, y, everyone(y), np.array([C]))
    oracle = LogisticRegression(C=C, tol=1e-10, max_iter=10_000, solver="newton-cg").fit(X, y)
    own = oracle.coef_[0, 0]
    assert own * deviation > 0.5 and slopes(found, 0)[0, 0] == pytest.approx(own, rel=0.02)


def test_ill_scaled_states_converge_quickly():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((500, 40))
    X, y = Z * np.logspace(-3, 3, 40) + 50, (Z.sum(1) + rng.standard_normal(500) > 0).astype(int)
    found, soon = (
        fit_logistic(X, y, everyone(y, 2), np.array([0.25, 8.0]), max_iter=most)
        for most in (1000, 200)
    )
    assert np.isfinite(found.weights).all()
    np.testing.assert_array_equal(soon.weights, found.weights)


WIDE, LABELS = make_classification(60, 300, n_informative=10, random_state=0)
SOME, OF_SOME = made(2)


@pytest.mark.parametrize(
    ("X", "y"),
    [(WIDE, LABELS), (np.hstack([SOME, SOME[:, :3], np.full((len(SOME), 1), 7.0)]), OF_SOME)],
    ids=["more features than rows", "constant and repeated columns"],
)
def test_awkward_features_have_scikit_learns_coefficients(X, y):
    models = fit_logistic(X, y, everyone(y), np.array([0.5]))
    np.testing.assert_allclose(slopes(models, 0), oracle_of(X, y, 0.5).coef_, atol=3e-3)
