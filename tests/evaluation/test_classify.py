from functools import partial

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from repro.evaluation import (
    classify,
    knn,
    knn_accuracy,
    labels,
    linear_probe,
    logistic,
    nested_cv_accuracy,
    senteval,
)
from repro.evaluation.classify import nested_cv, pair_features, probe
from repro.evaluation.labels import FOLDS, stratified_folds
from repro.evaluation.logistic import GRIDS, fold_accuracy
from repro.evaluation.stats import bootstrap_mean
from repro.sets import LabelledPairs, LabelledTexts
from repro.types import InputError


def made(classes=2, n=300, seed=0, sep=0.6):
    return make_classification(
        n,
        16,
        n_informative=8,
        n_classes=classes,
        class_sep=sep,
        flip_y=0.1,
        random_state=seed,
    )


def oracle_fold_accuracy(X, y, fold, C):
    models = (
        LogisticRegression(C=C, max_iter=5000).fit(X[fold != k], y[fold != k]) for k in range(FOLDS)
    )
    return np.mean([model.score(X[fold == k], y[fold == k]) for k, model in enumerate(models)])


ONE_ROW = 0.0075
"""What one row in an inner fold of 14 moves the mean of ten folds by."""


@pytest.mark.parametrize(("classes", "seed"), [(2, 0), (4, 1)])
def test_ten_folds_choose_and_score_as_scikit_learn_does(classes, seed):
    X, y = made(classes, seed=seed)
    train = np.arange(len(y)) < 200
    fold = stratified_folds(y[train], FOLDS, 5)
    scores = [oracle_fold_accuracy(X[train], y[train], fold, C) for C in GRIDS["kfold"]]
    mine = fold_accuracy(X[train], y[train], fold[None], GRIDS["kfold"], 5)[0]
    np.testing.assert_allclose(mine, scores, atol=0.0101)  # Two rows of 200 on the border
    found = probe(X[train], y[train], X[~train], y[~train], seed=5)
    assert found.chosen == (GRIDS["kfold"][mine.argmax()],)
    model = LogisticRegression(C=found.chosen[0], max_iter=5000).fit(X[train], y[train])
    assert found.accuracy == pytest.approx(model.score(X[~train], y[~train]), abs=0.005)
    assert found.correct.mean() == found.accuracy
    assert linear_probe(X[train], y[train], X[~train], y[~train], seed=5) == found.accuracy


def rare():
    """A rare class seen through small features: a strong penalty answers the majority."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal(600)
    return 0.02 * (z[:, None] + 0.3 * rng.standard_normal((600, 4))), (z > 1.1).astype(int)


def test_where_one_penalty_is_clearly_best_it_is_chosen():
    X, y = rare()
    fold = stratified_folds(y, FOLDS, 0)
    scores = np.array([oracle_fold_accuracy(X, y, fold, C) for C in GRIDS["kfold"]])
    assert np.sort(scores)[-1] > np.sort(scores)[-2] + 0.005
    assert scores[0] == pytest.approx((y == 0).mean(), abs=0.005)
    found = probe(X, y, X, y, seed=0)
    assert found.chosen == (GRIDS["kfold"][scores.argmax()],) != (GRIDS["kfold"][0],)
    best = GRIDS["nested"][-1]
    assert nested_cv(X * np.sqrt(GRIDS["kfold"][-1] / best), y, seed=0).chosen == (best,) * FOLDS


@pytest.mark.parametrize("form", ["kfold", "split"])
def test_the_model_that_answers_has_the_penalty_that_was_chosen(form):
    X, y = rare()
    X = 2 * X * np.sqrt(GRIDS["kfold"][-1] / GRIDS[form][-1])  # So that the weakest penalty is best
    (a, ya), (b, yb), (c, yc) = ((X[i::3], y[i::3]) for i in range(3))
    found = probe(a, ya, c, yc, dev=(b, yb) if form == "split" else None)

    def right(C):
        return LogisticRegression(C=C, max_iter=5000).fit(a, ya).predict(c) == yc

    chosen, first = right(found.chosen[0]), right(GRIDS[form][0])
    assert (found.correct == chosen).mean() > 0.99 and (found.correct == first).mean() < 0.98


def test_the_models_of_nested_folds_have_the_penalties_that_were_chosen():
    X, y = rare()
    X = X * np.sqrt(GRIDS["kfold"][-1] / GRIDS["nested"][-1])
    found, outer = nested_cv(X, y), stratified_folds(y, FOLDS, 0)
    expected = oracle_fold_accuracy(X, y, outer, found.chosen[0])
    first = oracle_fold_accuracy(X, y, outer, GRIDS["nested"][0])
    assert len(set(found.chosen)) == 1 and found.accuracy == pytest.approx(expected, abs=0.004)
    assert found.accuracy > first + 0.02


@pytest.mark.parametrize("classes", [2, 3])
def test_a_dev_split_chooses_the_penalty(classes):
    X, y = made(classes, n=500, sep=0.3)
    parts = np.split(np.arange(500), [200, 350])
    (a, ya), (b, yb), (c, yc) = [(X[part], y[part]) for part in parts]
    found = probe(a, ya, c, yc, dev=(b, yb))
    models = [LogisticRegression(C=C, max_iter=5000).fit(a, ya) for C in GRIDS["split"]]
    best = int(np.argmax([model.score(b, yb) for model in models]))
    assert found.chosen == (GRIDS["split"][best],)
    assert found.accuracy == pytest.approx(models[best].score(c, yc), abs=0.005)


def test_nested_cross_validation_equals_the_loops():
    X, y = made(2, n=240)
    found = nested_cv(X, y, seed=2)
    outer, accuracies = stratified_folds(y, FOLDS, 2), []
    for i in range(FOLDS):
        rows = np.flatnonzero(outer != i)
        if i % 4 == 0:  # The oracle is slow
            inner = stratified_folds(y[rows], FOLDS, 2, "inner", i)
            scores = [oracle_fold_accuracy(X[rows], y[rows], inner, C) for C in GRIDS["nested"]]
            mine = scores[list(GRIDS["nested"]).index(found.chosen[i])]
            assert mine == pytest.approx(max(scores), abs=ONE_ROW)
        model = LogisticRegression(C=found.chosen[i], max_iter=5000).fit(X[rows], y[rows])
        accuracies.append(model.score(X[outer == i], y[outer == i]))
    assert found.accuracy == pytest.approx(np.mean(accuracies), abs=0.005)
    assert nested_cv_accuracy(X, y, seed=2) == found.accuracy
    assert found.correct.shape == (len(y),)


def test_no_row_of_an_outer_fold_helps_to_choose_its_penalty(monkeypatch):
    X, y, seen = made(2, n=200)[0], np.repeat([0, 1], 100), []
    monkeypatch.setattr(
        logistic, "fold_accuracy", lambda *given: seen.append(given[2]) or fold_accuracy(*given)
    )
    nested_cv(X, y, seed=2)
    inner, outer = seen[0], stratified_folds(y, FOLDS, 2)
    np.testing.assert_array_equal(inner == -1, outer == np.arange(FOLDS)[:, None])
    drawn = {tuple(fold[fold >= 0]) for fold in inner}
    assert len(drawn) == FOLDS, "drawn anew for every outer fold, though all leave as many rows"
    nested_cv(X, y, seed=3)
    assert not drawn & {tuple(fold[fold >= 0]) for fold in seen[1]}


def test_every_outer_fold_is_told_by_the_penalty_that_its_own_inner_folds_chose(monkeypatch):
    X, y = rare()
    X, outer = X * 3, stratified_folds(y, FOLDS, 0)
    best = np.arange(FOLDS) % 6
    monkeypatch.setattr(logistic, "fold_accuracy", lambda *given: np.eye(6)[best])
    found = nested_cv(X, y)
    assert found.chosen == tuple(GRIDS["nested"][best])
    expected = np.empty(len(y), bool)
    for i, C in enumerate(found.chosen):
        model = LogisticRegression(C=C, max_iter=5000).fit(X[outer != i], y[outer != i])
        expected[outer == i] = model.predict(X[outer == i]) == y[outer == i]
    assert (found.correct == expected).mean() > 0.995


def test_the_penalties_that_are_tried_are_sentevals():
    nested, kfold = ([2.0**t for t in range(*ends)] for ends in ((-2, 4), (-1, 6)))
    tried = {name: grid.tolist() for name, grid in GRIDS.items()}
    assert tried == {"nested": nested, "split": nested, "kfold": kfold}
    for grid in senteval.GRIDS.values():
        assert grid == pytest.approx([10.0**t for t in range(-5, -1)])


@pytest.mark.parametrize("protocol", ["logreg", "senteval"])
def test_seed_and_protocol_reach_the_score_and_its_interval_is_about_the_mean_over_folds(protocol):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 35)
    X, texts = rng.normal(size=(105, 3)) + np.eye(3)[y], tuple(map(str, range(105)))
    whole = LabelledTexts("made", "local", "all", texts, y)
    score = classify.score_classification(lambda _: X, {"all": whole}, protocol=protocol, seed=3)
    found = nested_cv(X, y, protocol=protocol, seed=3)
    interval = bootstrap_mean(found.correct, seed=3)
    assert score.value == found.accuracy != interval.value
    apart = found.accuracy - interval.value
    expected = interval.low + apart, interval.high + apart
    assert (score.ci_low, score.ci_high) == pytest.approx(expected)
    halves = {
        name: LabelledTexts("made", "local", name, texts[part], y[part])
        for name, part in {"train": slice(0, None, 2), "test": slice(1, None, 2)}.items()
    }
    embed = lambda texts: X[[int(text) for text in texts]]  # noqa: E731
    split = classify.score_classification(embed, halves, protocol=protocol, seed=3)
    expected = probe(X[::2], y[::2], X[1::2], y[1::2], protocol=protocol, seed=3)
    assert (split.items == expected.correct).all() and split.floor == expected.floor


def test_nested_accuracy_is_the_mean_over_folds_of_unequal_size():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(105, 3)), np.repeat([0, 1, 2], 35)
    found, fold = nested_cv(X + y[:, None], y), stratified_folds(y, 10, 0)
    assert found.accuracy == pytest.approx(
        np.mean([found.correct[fold == i].mean() for i in range(10)]),
        abs=1e-12,
    )
    assert found.accuracy != pytest.approx(found.correct.mean(), abs=1e-6)


def test_the_form_follows_from_the_splits_and_the_floor_is_the_trainings_majority():
    X, y = made(2, n=260)
    texts, y = np.arange(260).astype(str), y.astype(str)
    splits = {"train": slice(0, 120), "dev": slice(120, 180), "test": slice(180, 260)}
    tasks = {
        name: LabelledTexts("made", "local", name, tuple(texts[at]), y[at])
        for name, at in splits.items()
    }
    (a, ya), (b, yb), (c, yc) = ((X[part], y[part]) for part in splits.values())

    def embed(texts):
        return X[[int(text) for text in texts]]

    def score(*names):
        return classify.score_classification(embed, {name: tasks[name] for name in names})

    kfold, split, nested = score("train", "test"), score("train", "dev", "test"), score("test")
    assert kfold.value == linear_probe(a, ya, c, yc)
    assert split.value == linear_probe(a, ya, c, yc, X_dev=b, y_dev=yb)
    assert nested.value == nested_cv_accuracy(c, yc)
    for found in (kfold, split, nested):
        assert (
            found.ci_low <= found.value <= found.ci_high and 0 <= found.floor <= 1 and found.n == 80
        )
    pairs = [
        LabelledPairs("made", "local", name, t.texts, t.texts[::-1], t.labels)
        for name, t in tasks.items()
    ]
    found = classify.score_classification(embed, {"train": pairs[0], "test": pairs[2]})
    assert found.value == linear_probe(pair_features(a, a[::-1]), ya, pair_features(c, c[::-1]), yc)
    assert labels.majority_share(np.array(["a", "a", "b"]), np.array(["a", "b", "b", "b"])) == 0.25


def test_folds_spread_every_class_evenly_and_pair_features_are_sentevals():
    y = np.repeat(["a", "b", "c"], [101, 57, 10])
    fold = stratified_folds(y, 10, 0)
    counts = np.array([np.bincount(fold[y == name], minlength=10) for name in "abc"])
    assert (np.ptp(counts, axis=1) <= 1).all() and np.ptp(counts.sum(0)) <= 1
    assert (stratified_folds(y, 10, 0) == fold).all()
    assert (stratified_folds(y, 10, 1) != fold).any()
    u, v = np.array([[1.0, -2.0]]), np.array([[3.0, 0.5]])
    assert pair_features(u, v).tolist() == [[2.0, 2.5, 3.0, -1.0]]
    assert (pair_features(u, v) == pair_features(v, u)).all()


@pytest.mark.parametrize("rare", [1, 9])
def test_a_rare_class_is_warned_of_and_spread_over_the_folds_it_has_rows_for(rare):
    y = np.array(["a"] * 40 + ["b"] * 40 + ["rare"] * rare)
    X = (
        np.eye(3)[np.unique(y, return_inverse=True)[1]] * 3
        + np.random.default_rng(0).normal(size=(len(y), 3)) / 4
    )
    with pytest.warns(
        UserWarning,
        match=rf"1 of 3 classes .* miss from some: 'rare' \({rare}\)$",
    ) as told:
        scores = [
            nested_cv_accuracy(X, y),
            linear_probe(X, y, X, y),
            knn.knn_cv_correct(X, y).mean(),
        ]
    assert len(told) == 3  # Not once more for every inner fold
    assert min(scores) >= 1 - rare / len(y) - 0.01  # The common classes are told apart
    fold = stratified_folds(y, 10, 0, "quiet")
    assert len(np.unique(fold[y == "rare"])) == rare and np.ptp(np.bincount(fold)) <= 1


@pytest.mark.parametrize("score", [linear_probe, knn_accuracy])
def test_labels_that_no_answer_can_equal_are_refused(score):
    X, y = made(n=60)
    with pytest.raises(InputError, match="y_test has numbers and y_train has not"):
        score(X, y.astype(str), X, y)
    with pytest.raises(InputError, match="y_test has texts and y_train has not"):
        score(X, y, X, y.astype(str))
    missing = y.astype(object)
    for nothing in (None, float("nan")):
        missing[3] = nothing
        with pytest.raises(InputError, match=rf"y_train\[3\] is {nothing}: expected a label"):
            score(X, missing, X, y)
    missing[3] = "one"
    with pytest.raises(InputError, match="y_train has texts and numbers"):
        score(X, missing, X, y)


@pytest.mark.parametrize("score", [linear_probe, partial(knn_accuracy, k=3)])
def test_classes_that_training_has_not_seen_are_told_in_a_line(score):
    X = np.random.default_rng(0).normal(size=(60, 4))
    y_train, y = np.repeat([0, 1], 30), np.array([0] * 20 + [1] * 20 + [7] * 15 + [8] * 5)
    told = r"2 of 4 classes of y_test, such as 7, are not .* the 20 of 60 rows that have them count"
    with pytest.warns(UserWarning, match=told):
        assert score(X, y_train, X, y) <= 40 / 60
