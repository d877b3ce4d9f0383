import numpy as np
import pytest

from dimadvise import transform, unseen
from dimadvise.transform import METHODS, NESTED, Transform, fit_transform_of, halvings, moments_of
from dimadvise.unseen import NEVER, FoldMoments, Shortened
from dimadvise.vectors import in_memory
from repro.reducers import make_reducer
from repro.types import InputError, unit_rows

X = (np.random.default_rng(0).normal(size=(300, 24)) * 0.8 ** np.arange(24) + 3).astype(np.float32)
OURS = {"truncate": "truncate", "pca": "pca", "svd": "svd", "random": "grp"}


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("method", OURS)
def test_a_fit_by_blocks_is_the_reducer_of_all_rows(method, unit):
    moments = moments_of([X[:7], X[7:7], X[7:200], X[200:]], unit=unit)
    found = fit_transform_of(method, moments, 6, unit=unit)
    whole = (unit_rows(X) if unit else X).astype(np.float64)
    expected = make_reducer(OURS[method], 6, seed=0).fit(whole).transform(whole)
    np.testing.assert_allclose(found.apply(X), expected, atol=2e-4)
    shorter = fit_transform_of(method, moments, 3, unit=unit)
    if method != "random":
        np.testing.assert_allclose(found.prefix(3).apply(X), shorter.apply(X), atol=1e-5)
    assert found.prefix(3).apply(X).shape == (300, 3)


def test_moments_add_and_subtract():
    part, rest, whole = (moments_of([rows], unit=False) for rows in (X[:90], X[90:], X))
    for ours, theirs in ((part + rest, whole), (whole - part, rest)):
        assert ours.rows == theirs.rows
        np.testing.assert_allclose(ours.mean, theirs.mean, rtol=1e-6)
        np.testing.assert_allclose(ours.scatter, theirs.scatter, atol=2e-3)
    with pytest.raises(InputError, match="nothing remains"):
        _ = part - whole
    moments = moments_of([X + 1000], unit=False)  # A large mean leaves small directions precise
    np.testing.assert_allclose(
        moments.scatter,
        moments_of([X], unit=False).scatter,
        rtol=2e-3,
        atol=0.02,
    )


def test_of_many_rows_some_are_fitted_beside_those_that_are_judged_and_never_a_query(monkeypatch):
    monkeypatch.setattr(unseen, "FIT_ROWS", 50)
    judged, folds = np.arange(0, 90, 3), np.repeat([0, 1, NEVER], 10)
    marked = X.copy()
    marked[judged, 0], marked[:, 1] = 1000 + folds, np.arange(300)  # Each tells where it is from

    def whole(seed):
        return FoldMoments(in_memory(marked), judged, folds, unit=False, seed=seed)

    found = whole(3)
    assert found.whole.rows == 50 + 20 and found.without((0,)).rows == 60
    near = moments_of([marked[judged[:20]]], unit=False)
    rest = found.whole - near
    assert abs(rest.mean[0]) < 100, "beside them no judged row is drawn, and no query"
    assert rest.mean[1] == (whole(3).whole - near).mean[1] != (whole(4).whole - near).mean[1]


def test_sizes_are_those_that_the_rows_left_without_any_fold_can_give():
    few, folds = in_memory(X[:12]), np.repeat([0, 1], [6, 2])
    moments = FoldMoments(few, np.arange(8), folds, unit=False)
    pca = Shortened("pca", moments, [(0,), (1,)], [9, 6, 5, 4])
    assert pca.sizes == [5, 4] and pca.transform.dim == 5
    drawn = Shortened("random", moments, [(0,)], [4], seed=3)
    for found in drawn.maps.values():
        expected = make_reducer("grp", 4, seed=3).fit(X).components_.T
        np.testing.assert_allclose(found.matrix, expected, rtol=1e-6)


def test_sizes_halve_down_to_eight():
    assert [round(size) for size in halvings(64, 1)] == [64, 32, 16, 8]
    assert [round(size) for size in halvings(48, 2)] == [48, 34, 24, 17, 12, 8]
    assert halvings(5, 3)[0] == 5 and min(halvings(5, 3)) >= 4.5


def test_scatter_is_exact_where_the_mean_is_large_against_what_varies():
    """Numbers of 4,096 and a few of its last bits: their mean is off, once it is rounded to one."""
    bits = np.random.default_rng(0).integers(0, 4, size=(300, 6))
    near = (4096 + bits * 2.0**-11).astype(np.float32)
    found = moments_of([near[:100], near[100:]], unit=False)
    centred = bits * 2.0**-11 - (bits * 2.0**-11).mean(0)
    np.testing.assert_allclose(found.mean - 4096, (bits * 2.0**-11).mean(0), rtol=1e-9)
    total = np.square(centred).sum()
    np.testing.assert_allclose(found.scatter, centred.T @ centred, atol=1e-6 * total)


def test_all_turns_are_as_likely_and_the_seed_draws_one():
    moments = moments_of([X], unit=False)
    plain = fit_transform_of("pca", moments, 3, unit=False).matrix
    turns = []
    for seed in range(12):
        turned = fit_transform_of("pca-rotated", moments, 3, unit=False, seed=seed)
        turns.append(np.linalg.pinv(plain) @ turned.matrix)
        np.testing.assert_allclose(turns[-1] @ turns[-1].T, np.eye(3), atol=1e-5)
        np.testing.assert_allclose(turned.bias, -moments.mean @ turned.matrix, atol=1e-3)
    positive = (np.array(turns) > 0).mean(0)
    assert (positive > 0).all() and (positive < 1).all(), "no entry has one sign under every seed"
    again = fit_transform_of("pca-rotated", moments, 3, unit=False, seed=11)
    np.testing.assert_array_equal(turned.matrix, again.matrix)


def test_a_rotation_moves_no_distance_and_evens_out_the_columns():
    moments = moments_of([X], unit=False)
    plain, turned = (
        fit_transform_of(m, moments, 8, unit=False, seed=3).apply(X) for m in ("pca", "pca-rotated")
    )
    np.testing.assert_allclose(plain @ plain.T, turned @ turned.T, atol=1e-3)
    assert turned.var(0).max() / turned.var(0).min() < plain.var(0).max() / plain.var(0).min()
    wide = fit_transform_of("random", moments, 24, unit=False)
    for dim in (24, 12):  # Lengths are kept on average at every size
        assert np.linalg.norm(wide.prefix(dim).matrix) ** 2 == pytest.approx(24, rel=0.2)


def test_rows_of_zeros_and_lengths():
    found = fit_transform_of("svd", moments_of([X], unit=True), 4, unit=True)
    np.testing.assert_allclose(found.apply(5 * X), found.apply(X), atol=1e-6)
    assert (found.apply(0 * X[:2]) == 0).all()


def test_what_cannot_be_fitted_is_told():
    few = moments_of([X[:5]], unit=False)
    for method, most in (("pca", 4), ("pca-rotated", 4), ("svd", 5)):
        assert fit_transform_of(method, few, most, unit=False).dim == most
        with pytest.raises(
            InputError,
            match=f"of 5 rows of 24 numbers gives at most {most} dims, not {most + 1}",
        ):
            fit_transform_of(method, few, most + 1, unit=False)
    with pytest.raises(InputError, match="unknown method 'lda'"):
        fit_transform_of("lda", few, 2, unit=False)
    with pytest.raises(InputError, match="no rows to fit on"):
        moments_of([], unit=False)
    turned = fit_transform_of("pca-rotated", moments_of([X], unit=False), 4, unit=False)
    with pytest.raises(InputError, match="unknown method whose maps are nested"):
        turned.prefix(2)
    with pytest.raises(InputError, match=r"expected \(n, 24\)"):
        turned.apply(X[:, :5])
    assert set(NESTED) < set(METHODS) and isinstance(turned, Transform)


def test_rows_whose_products_would_not_fit_into_memory_are_refused_before_the_work(monkeypatch):
    monkeypatch.setattr(transform, "available_bytes", lambda: 32 * 40**2)
    assert moments_of([np.ones((3, 40))], unit=False).rows == 3
    wanted = "rows of 41 numbers need about .* keep at most 40 columns"
    with pytest.raises(InputError, match=wanted):
        moments_of([np.ones((3, 41))], unit=False)
