"""Agreement of embeddings: closed forms, and what must not change it."""

import numpy as np
import pytest
from scipy.stats import ortho_group, spearmanr

from repro.evaluation import cosine_agreement, linear_cka
from repro.evaluation.agreement import prefix_cka
from repro.types import InputError

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 12)) * np.geomspace(1, 0.1, 12) + 0.5
Y = X[:, :5] + 0.3 * rng.normal(size=(60, 5))
pairs = rng.permutation(np.column_stack(np.triu_indices(60, 1)))[
    :200
]  # no text with itself: its cosine is 1 either way


def test_equal_embeddings_agree_wholly():
    assert linear_cka(X, X) == pytest.approx(1) and cosine_agreement(X, X, pairs) == pytest.approx(1)


def test_rotation_and_scale_change_nothing():
    turned = 7 * X @ ortho_group.rvs(12, random_state=1)
    assert linear_cka(turned, X) == pytest.approx(1) and cosine_agreement(turned, X, pairs) == pytest.approx(1)
    assert linear_cka(turned, Y) == pytest.approx(linear_cka(X, Y))
    assert cosine_agreement(turned, Y, pairs) == pytest.approx(cosine_agreement(X, Y, pairs))
    assert linear_cka(X + 3, Y - 1) == pytest.approx(linear_cka(X, Y))  # CKA centres
    assert linear_cka(X, Y) == pytest.approx(linear_cka(Y, X))


def test_linear_cka_from_its_definition():
    centre = np.eye(60) - 1 / 60
    K, L = (centre @ Z @ Z.T @ centre for Z in (X, Y))
    assert linear_cka(X, Y) == pytest.approx((K * L).sum() / np.sqrt((K * K).sum() * (L * L).sum()))
    assert 0 < linear_cka(X, Y) < 1


def test_linear_cka_of_orthogonal_columns():
    # one column each, uncorrelated: 0; two columns of which one is shared, of variances a and b: a / √(a² + b²)
    t = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    a, b = np.sin(t)[:, None], np.cos(t)[:, None]
    assert linear_cka(a, b) == pytest.approx(0, abs=1e-12)
    assert linear_cka(np.hstack([2 * a, b]), a) == pytest.approx(4 / np.sqrt(16 + 1))


def test_few_texts_of_many_dimensions_give_the_same():
    wide = rng.normal(size=(10, 40))
    K, L = (Z @ Z.T for Z in (wide - wide.mean(0), X[:10] - X[:10].mean(0)))
    assert linear_cka(wide, X[:10]) == pytest.approx((K * L).sum() / np.sqrt((K * K).sum() * (L * L).sum()))


def test_weights_are_repetitions():
    counts = rng.integers(0, 4, 60)
    assert linear_cka(X, Y, weights=counts) == pytest.approx(
        linear_cka(np.repeat(X, counts, 0), np.repeat(Y, counts, 0))
    )


def test_prefix_cka_is_linear_cka_with_the_first_columns():
    counts = rng.integers(0, 4, 60)
    for weights in (None, counts):
        expected = [linear_cka(X, X[:, :d], weights=weights) for d in (1, 5, 12)]
        np.testing.assert_allclose(prefix_cka(X, [1, 5, 12], weights=weights), expected, rtol=1e-12)
    assert prefix_cka(X, [12])[0] == pytest.approx(1) and np.isnan(prefix_cka(np.ones((4, 3)), [2])).all()
    with pytest.raises(InputError, match="dim is 13: expected 1 to 12"):
        prefix_cka(X, [13])


def test_cosine_agreement_is_spearman_of_cosines():
    def cosines(Z):
        unit = Z / np.linalg.norm(Z, axis=1, keepdims=True)
        return (unit[pairs[:, 0]] * unit[pairs[:, 1]]).sum(1)

    assert cosine_agreement(X, Y, pairs) == pytest.approx(spearmanr(cosines(X), cosines(Y)).statistic)


def test_a_constant_side_has_no_agreement():
    assert np.isnan(linear_cka(np.ones((5, 2)), X[:5]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linear_cka(X, Y[:5]), "lengths differ: X has 60, Y has 5"),
        (lambda: linear_cka(X, Y, weights=np.zeros(60)), "weights run from 0.0 to 0.0"),
        (lambda: cosine_agreement(X, Y, [0, 1]), r"pairs has shape \(2,\)"),
        (lambda: cosine_agreement(X, Y, [[0, 60]]), "pairs name rows 0 to 60: expected 0 to 59"),
        (lambda: cosine_agreement(X, Y, [[0.5, 1.0]]), "expected whole numbers"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
