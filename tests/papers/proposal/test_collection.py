"""Neighbours kept and retrieval in collections of several sizes, against a plain sort of
everything.
"""

from dataclasses import replace

import numpy as np
import pytest

from repro.evaluation.growth import fit_law
from repro.evaluation.retrieve import retrieval_scores
from repro.papers.proposal.collection import Collection, Questions, draw_texts
from repro.papers.proposal.growing import collection_rows, statement, with_setting
from repro.papers.proposal.rescoring import rescoring_statement, rescoring_table, rescorings
from repro.papers.proposal.searches import FULL, HAMMING, Nearest, Way
from repro.reducers import make_reducer
from repro.results import recorded_rows
from repro.types import InputError, unit_rows
from shown_code import on_page

SIZES = [50, 600, 1_500]
PAGE = on_page("beyond_collection_size", "held_out", "law_errors", "straight")


@pytest.fixture(scope="module")
def collection():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 6)) @ rng.normal(size=(6, 12)) + 0.3 * rng.normal(size=(2_000, 12))
    X = X.astype(np.float32)
    paragraphs = X[:40]
    questions = paragraphs[:10] + 0.5 * rng.normal(size=(10, 12)).astype(np.float32)
    relevant = [np.array([number, number + 20]) for number in range(10)]
    asked = Questions("asked", questions, paragraphs, relevant)
    return Collection("made", X[40:60], X[60:400], [X[400:1_000], X[1_000:1_100], X[1_100:]], asked)


@pytest.fixture(scope="module")
def rows(collection):
    ways = [
        Way("svd", 4, "float32"),
        Way("svd", 8, "int8"),
        Way(FULL, 12, "binary"),
        Way(FULL, 12, HAMMING),
    ]
    return collection_rows(collection, ways, SIZES, depths=(10, 40), experiment="collection")


def value(rows, method, dim, setting, metric="neighbours_kept"):
    chosen = rows[(rows["method"] == method) & (rows["dim"] == dim) & (rows["metric"] == metric)]
    (found,) = chosen[chosen["setting"] == setting]["value"]
    return found


def by_sorting(Q, C, k):
    return np.argsort(-(Q @ C.T), axis=1, kind="stable")[:, :k]


def reduced_to(collection, dim):
    fitted = make_reducer("svd", 8).fit(unit_rows(collection.teaching))
    return lambda X: unit_rows(fitted.prefix(fitted.transform(unit_rows(X)), dim))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("depth", "ending"), [(10, ""), (40, ", 40 re-scored")])
def test_neighbours_kept_are_those_of_a_plain_sort(collection, rows, size, depth, ending):
    documents = np.concatenate(list(collection.searched))[:size]
    truth = by_sorting(unit_rows(collection.asking), unit_rows(documents), 10)
    shorter = reduced_to(collection, 4)
    found = by_sorting(shorter(collection.asking), shorter(documents), depth)
    kept = [np.isin(right, ours).mean() for right, ours in zip(truth, found, strict=True)]
    assert value(rows, "SVD", 4, f"float32, {size:,} vectors{ending}") == pytest.approx(
        np.mean(kept)
    )


def test_two_sides_of_bits_are_compared_by_hamming_distance(collection, rows):
    documents = unit_rows(np.concatenate(list(collection.searched)))[:1_500]
    mean = unit_rows(collection.teaching).mean(0)
    truth = by_sorting(unit_rows(collection.asking), documents, 10)
    signs = [np.where(mean < X, 1.0, -1.0) for X in (unit_rows(collection.asking), documents)]
    found = by_sorting(*signs, 10)
    kept = [np.isin(right, ours).mean() for right, ours in zip(truth, found, strict=True)]
    assert value(rows, "full size", 12, f"{HAMMING}, 1,500 vectors") == pytest.approx(np.mean(kept))


def test_questions_search_the_paragraphs_and_the_collection_together(collection, rows):
    documents = np.concatenate(list(collection.searched))[:600]
    asked = collection.asked
    shorter = reduced_to(collection, 4)
    searched = np.concatenate([shorter(asked.paragraphs), shorter(documents)])
    qrels = {number: gold.tolist() for number, gold in enumerate(asked.relevant)}
    right = retrieval_scores(shorter(asked.questions), searched, qrels, ks=(10,))["ndcg@10"]
    assert 0.05 < right < 0.95
    assert value(rows, "SVD", 4, "float32, 600 vectors", "ndcg@10") == pytest.approx(right)


def test_full_floats_keep_everything_and_a_change_is_paired_by_query(rows):
    for size in SIZES:
        assert value(rows, "full size", 12, f"float32, {size:,} vectors") == 1
    now = value(rows, "SVD", 4, "float32, 1,500 vectors")
    before = value(rows, "SVD", 4, "float32, 50 vectors")
    change = value(rows, "SVD", 4, "float32, 1,500 vectors", "neighbours_kept_change")
    assert change == pytest.approx(now - before)


def test_texts_are_drawn_once_and_never_serve_twice():
    texts = [f"sentence {number % 90}" for number in range(100)]
    drawn = draw_texts(texts, asking=10, teaching=20)
    assert [len(part) for part in drawn] == [10, 20, 60]
    assert len({*drawn.asking, *drawn.teaching, *drawn.searched}) == 90
    assert drawn == draw_texts(texts, asking=10, teaching=20)
    with pytest.raises(InputError, match="90 distinct"):
        draw_texts(texts, asking=50, teaching=40)


def test_a_size_beyond_the_collection_is_refused(collection):
    for sizes in ([50, 5_000], [5]):
        expected = "documents: expected more than 10 in each, and at most the 1600 that there are"
        with pytest.raises(InputError, match=rf"collections of \{sizes} {expected}"):
            collection_rows(collection, [], sizes)


def test_a_map_of_more_dims_than_its_texts_have_is_refused_by_the_name_that_tables_have(collection):
    few = replace(collection, teaching=collection.teaching[:5])
    with pytest.raises(InputError, match=r"dim is 6: expected 1 to 4 .* of 5 rows"):
        collection_rows(few, [Way("pca", 6, "float32")], [50])


def test_shards_are_cut_into_who_asks_what_teaches_and_what_is_searched():
    X = np.arange(40, dtype=np.float32).reshape(20, 2)
    collection = Collection.of_shards("made", [X[:7], X[7:14], X[14:]], asking=4, teaching=5)
    assert np.array_equal(collection.asking, X[:4]) and np.array_equal(collection.teaching, X[4:9])
    assert collection.size == 11 and np.array_equal(np.concatenate(collection.searched), X[9:])


def test_ties_go_to_the_document_that_came_first():
    nearest = Nearest(1, 3)
    nearest.offer(np.array([[1.0, 0, 1, 0, 0, 0, 0, 0]], np.float32), 0)
    nearest.offer(np.array([[1.0, 1, 2]], np.float32), 8)
    assert nearest.rows.tolist() == [[10, 0, 2]]


@pytest.fixture(scope="module")
def grown():
    X = np.random.default_rng(0).normal(size=(2_000, 12)) / np.arange(1, 13) ** 0.7
    collection = Collection("made", X[:100], X[100:400], [X[400:]])
    ways = [Way("svd", dim, "float32") for dim in (2, 4, 6, 8, 10)]
    frame = collection_rows(collection, ways, [120, 400, 1_500], depths=(10, 40), experiment="e")
    return with_setting(frame.assign(backbone="made"))


def test_settings_say_level_size_and_candidates(rows):
    said = with_setting(rows.assign(backbone="made"))
    hamming = said[said["level"] == HAMMING]
    assert set(hamming["vectors"]) == set(SIZES) and set(hamming["candidates"]) == {10, 40}
    assert set(said[said["method"] == "SVD"]["share"].round(2)) == {0.33, 0.67}


def test_a_law_of_small_collections_is_near_what_a_larger_one_keeps(grown):
    assert not PAGE["laws"](grown, 400)
    (key, law), *_ = PAGE["laws"](grown, 1_500, PAGE["straight"]).items()
    measured = grown[(grown["dim"] == 6) & (grown["vectors"] == 1_500)]
    kept = measured[(measured["metric"] == "neighbours_kept") & (measured["candidates"] == 10)][
        "value"
    ].item()
    assert key == ("made", "SVD", "float32", 10)
    assert law(0.5, 1_500) == pytest.approx(kept, abs=0.04)


def test_errors_are_those_of_the_size_that_was_held_out(grown):
    errors = PAGE["law_errors"](grown, 1_500, 1_500, PAGE["straight"])
    assert not errors["same"].any() and errors["rms"].between(0.01, 6).all()


def test_a_law_is_judged_in_a_collection_ten_times_larger():
    held_out = PAGE["held_out"]
    assert held_out([1_000, 3_000, 10_000, 30_000, 100_000]) == (10_000, 100_000)
    assert held_out([1_000, 3_000, 10_000, 29_000]) == (10_000, 29_000)
    assert held_out([1_000, 3_000, 10_000]) is None


def test_candidates_are_projected_with_the_error_of_as_long_a_stretch():
    rows = with_setting(recorded_rows("beyond_collection_size"))
    found = {(each.dim, each.candidates): each for each in rescorings(rows, 20_000_000)}
    for (dim, candidates), each in found.items():
        setting = (
            f"float32, 1,000,000 vectors{'' if candidates == 10 else f', {candidates} re-scored'}"
        )
        assert each.measured == value(rows, "SVD", dim, setting)
        assert each.projected < each.measured + 0.05, "no larger collection keeps more"
    half = found[128, 100]
    way = rows[
        (rows["candidates"] == 100) & (rows["level"] == "float32") & (rows["method"] == "SVD")
    ]
    way = way[(way["metric"] == "neighbours_kept") & (way["vectors"] <= 30_000)]
    law = fit_law(
        *(way[name].to_numpy(float) for name in ("share", "vectors", "value")), candidates=100
    )
    assert half.off == pytest.approx(float(law(0.5, 1_000_000)) - half.measured)
    said = rescoring_statement(rows, 20_000_000)
    assert (
        f"the law says {100 * half.projected:.1f} %" in said and "re-score 100 candidates" in said
    )
    assert f"but not with 200 candidates ({100 * found[128, 200].projected:.1f} %)" in said
    table = rescoring_table(rows, 20_000_000).set_index("dimensions")
    assert table.loc["64 of 256", "20,000,000, projected"].startswith("more than 200 (")
    for vectors in (1_000_000, 200_000_000):
        with pytest.raises(InputError, match="vectors planned: expected more than the 1,000,000"):
            rescorings(rows, vectors)


def test_the_statement_has_half_and_fewest_dimensions_in_both_collections(grown):
    said = statement(grown)
    for dim in (6, 2):
        for size in (120, 1_500):
            kept = value(grown, "SVD", dim, f"float32, {size:,} vectors")
            assert f"{100 * kept:.1f} % (" in said
    before, after = (value(grown, "SVD", 6, f"float32, {size:,} vectors") for size in (120, 1_500))
    assert said.startswith(
        f"Half of the dimensions of made keep {100 * before:.0f} % of the ten nearest neighbours "
        f"among 120 sentences, and {100 * after:.0f} % among 1,500. To keep 95 % there takes "
    )
    assert statement(grown[:0]) == "No rows are recorded."
