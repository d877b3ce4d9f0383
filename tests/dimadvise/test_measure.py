"""What is found of the full-size neighbours: against sorting everything, against truth, and chosen
from.
"""

import gc
import re
import weakref
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from deployment import surveyed
from dimadvise import measure, screening
from dimadvise.coding import nearest_centroids
from dimadvise.measure import survey
from dimadvise.queries import Queries, crossed, draw
from dimadvise.recall import interval_of, projected
from dimadvise.request import Request
from dimadvise.screening import choose, contenders, is_front, overlooked
from dimadvise.search import Nearest, ranks, searched
from dimadvise.transform import METHODS, fit_transform_of, moments_of
from dimadvise.vectors import in_memory
from dimadvise.ways import Ways, default_sizes, normal_values
from repro.types import InputError


def clustered(n=1500, dim=24):
    rng = np.random.default_rng(0)
    scale = np.arange(1, dim + 1) ** -0.7
    X = (
        rng.normal(size=(30, dim))[rng.integers(30, size=n)] * scale
        + rng.normal(size=(n, dim)) * scale
    )
    return X.astype(np.float32)


def test_blocks_find_what_sorting_finds():
    scores = np.random.default_rng(0).normal(size=(7, 500)).astype(np.float32)
    scores[:, 40] = scores[:, 41] = 9  # Equal ones: the first stands first
    for cuts in ([0, 500], [0, 3, 10, 60, 61, 400, 500], [0, 200, 500]):
        nearest = Nearest(7, 20)
        for a, b in pairwise(cuts):
            nearest.add(scores[:, a:b], a)
        assert (nearest.best()[0] == np.argsort(-scores, axis=1, kind="stable")[:, :20]).all()
    few = Nearest(2, 3)
    few.add(np.ones((2, 1), np.float32), 0)
    assert few.best()[0].tolist() == [[0, -1, -1]] * 2


def test_ranks_are_places_among_those_found():
    found = np.array([[5, 2, 9, 0], [1, 0, 3, -1]])
    assert ranks(np.array([[9, 5, 7], [0, 2, 1]]), found).tolist() == [[2, 0, 4], [1, 4, 0]]


@pytest.mark.parametrize("similarity", ["cosine", "ip", "l2"])
def test_the_full_vectors_find_their_neighbours_and_not_themselves(similarity):
    # Distances do not feel where all vectors lie
    X = clustered(300) + np.float32(1000 * (similarity == "l2"))
    made = Ways(in_memory(X), np.arange(100, 300), similarity, 0)
    own = np.r_[np.arange(20), [-1]]
    full = made.way(*made.full)
    (end,) = searched([full], X[:21], own, [X[:100], X[100:]], 5, [300])
    Z = X.astype(np.float64)
    if similarity == "cosine":
        Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    scores = -((Z[:21, None] - Z[None]) ** 2).sum(-1) if similarity == "l2" else Z[:21] @ Z.T
    scores[np.arange(20), np.arange(20)] = -np.inf
    assert (end.places[0] == np.argsort(-scores, axis=1)[:, :5]).all() and end.places[0][
        20, 0
    ] == 20


def test_queries_are_never_fitted_and_the_two_sets_share_none():
    screening, asked, fitted = draw(in_memory(clustered()), None, np.random.default_rng(0))
    assert len(screening.rows) == 50 and len(asked.rows) == 250 and len(fitted) == 1200
    assert len(np.unique(np.r_[screening.rows, asked.rows, fitted])) == 1500
    assert asked.among(np.array([7, asked.rows[3], 9])).tolist() == [
        1 if i == 3 else -1 for i in range(250)
    ]


@pytest.fixture(scope="module")
def found():
    return surveyed(
        in_memory(clustered()),
        methods=["truncate", "svd"],
        levels=["float16", "int8", "binary"],
        seed=1,
    )


def test_recall_is_measured_for_each_way_with_and_without_re_ranking(found):
    options = found.options.set_index(["method", "dim", "level", "rerank"])
    assert found.corpus == 1500 and found.queries == 1000
    assert options.loc["truncate", 24, "float32", 0]["recall@10"] == 1
    plain, again = (found.options[found.options["rerank"] == r].set_index("way") for r in (0, 4))
    assert (again["recall@10"] >= plain["recall@10"]).all() and (
        again["recall@10"] > plain["recall@10"]
    ).any()
    for k in (1, 10, 100):
        low, value, high = (found.options[f"{part}@{k}"] for part in ("low", "recall", "high"))
        assert ((low <= value + 1e-9) & (value <= high + 1e-9) & (low < high)).all()
    assert (found.options["bytes"] == [found.ways[i].bytes for i in found.options["way"]]).all()
    assert (found.options["expected@10"] == found.options["recall@10"]).all(), (
        "all rows were searched"
    )
    assert any("none is a query" in line for line in found.measured)


def test_a_way_that_labels_chose_is_measured_with_the_lengths_that_its_map_is_written_with():
    chosen = {"also": [("pca", 6, "float32")], "unit": True}
    found = surveyed(
        in_memory(clustered()),
        similarity="ip",
        methods=["truncate"],
        levels=["int8"],
        **chosen,
    )
    assert found.ways[-1].transform.unit and not any(way.transform.unit for way in found.ways[:-1])


def test_a_recommendation_is_the_fewest_bytes_that_are_sure(found):
    options = found.options
    own = options[options["front"] & (options["rerank"] == 0)]
    chosen = options.loc[choose(options, "recall", 0.8, 0)]
    assert chosen["low@10"] >= 0.8 and own[own["bytes"] < chosen["bytes"]]["low@10"].max() < 0.8
    assert choose(options, "recall", 0.9999, 0) is None, "nothing but the full vectors is as sure"
    best = options.loc[choose(options, "bytes", 12, 0)]
    assert (
        best["bytes"] <= 12
        and best["recall@10"] == options.query("rerank == 0 and bytes <= 12")["recall@10"].max()
    )
    assert choose(options[options["bytes"] > 3], "bytes", 3, 0) is None
    assert choose(options, "bytes", 12, 0, best["bytes"]) != best.name, (
        "the file itself has no more bytes"
    )
    fewer = options.loc[choose(options, "recall", 0.8, 4)]
    assert fewer["bytes"] < chosen["bytes"], "re-ranking takes fewer"
    worse = options.assign(**{"expected@10": options["expected@10"] - 0.1})
    assert worse.loc[choose(worse, "recall", 0.8, 0), "bytes"] > chosen["bytes"], (
        "rows not searched count against it"
    )


def ways(**columns):
    """Options of falling size without re-ranking, all of them on the front."""
    n = len(columns["recall@10"])
    rest = {"bytes": [2 ** (9 - i) for i in range(n)], "rerank": 0, "front": True}
    found = pd.DataFrame({**rest, **columns})
    sure = {name: found["recall@10"] for name in ("low@10", "expected@10")}
    return found.assign(**sure | columns)


def test_a_small_size_that_passes_by_luck_is_not_chosen_past_one_that_fails():
    options = ways(**{"recall@10": [1.0, 0.99, 0.96, 0.93, 0.955]})
    assert choose(options, "recall", 0.95, 0) == 2
    assert choose(options[::-1], "recall", 0.95, 0) == 2, "whatever order they come in"
    assert choose(options, "recall", 0.97, 0) == 1 and choose(options, "recall", 0.995, 0) is None


def test_what_is_promised_is_the_lower_end_less_what_rows_not_searched_may_cost():
    recall = [1.0, 0.99, 0.98, 0.97]
    assert choose(ways(**{"recall@10": recall}), "recall", 0.97, 0) == 3
    low = [1.0, 0.98, 0.97, 0.96]
    assert choose(ways(**{"recall@10": recall, "low@10": low}), "recall", 0.97, 0) == 2
    expected = [1.0, 0.98, 0.97, 0.96]
    both = ways(**{"recall@10": recall, "low@10": low, "expected@10": expected})
    assert choose(both, "recall", 0.97, 0) == 1


def test_recall_is_projected_by_the_law_of_growing_collections_and_never_to_rise():
    stops = [1000, 4000, 16_000]

    def kept(n):
        return float(expit(3 - 2 * np.log(np.log10(n / 10))))

    seen = [kept(n) for n in stops]
    for n in (100_000, 10_000_000):
        assert projected(stops, seen, n, candidates=10) == pytest.approx(kept(n), abs=5e-3)
    assert projected(stops, seen, 16_000, candidates=10) == seen[-1], "nothing is left to project"
    assert projected(stops, seen[::-1], 10**6, candidates=10) == seen[0], "a rise does not go on"
    assert projected(stops, [1.0] * 3, 10**6, candidates=10) == pytest.approx(1, abs=1e-3)


def test_recall_that_cannot_be_projected_is_no_number_and_chooses_nothing():
    stops, seen = [1000, 4000, 16_000], [0.99, 0.98, 0.97]
    assert np.isnan(projected(stops, seen, 10**6, candidates=9000)), "chance finds a good part"
    assert np.isnan(projected(stops[2:], seen[2:], 10**6, candidates=10)), "one size tells no fall"
    assert projected(stops[2:], seen[2:], 16_000, candidates=10) == seen[-1]
    options = ways(**{"recall@10": [1.0, 0.99], "expected@10": np.nan})
    assert choose(options, "recall", 0.5, 0) is None
    part = surveyed(
        in_memory(clustered(300)), methods=["svd"], levels=["int8"], dims=[24], depth=20, sample=200
    )
    unknown = part.options["expected@10"].isna()
    assert (unknown == (part.options["rerank"] == 20)).all()


def test_a_way_without_re_ranking_is_measured_again_once(monkeypatch):
    tables = []

    def kept(*given):
        tables.append(tabulated(*given))
        return tables[-1]

    tabulated = measure.tabulate
    monkeypatch.setattr(measure, "tabulate", kept)
    X = clustered(300)
    _, asked, fitted = draw(in_memory(X), None, np.random.default_rng(0))
    way = Ways(in_memory(X), fitted, "cosine", 0).way("svd", 6, "int8")
    option = measure.found_again(way, in_memory(X), np.arange(300), asked)
    assert option["rerank"] == 0 and tables[0][0]["way"].tolist() == [0, 1]


def test_ways_that_nobody_holds_are_given_back():
    made = Ways(in_memory(clustered(300)), np.arange(300), "cosine", 0)
    assert made.way("svd", 6, "int8").transform is made.way("svd", 6, "binary").transform
    held = weakref.ref(made)
    del made
    gc.collect()
    assert held() is None


def test_the_seed_draws_the_queries_and_the_rows_that_are_searched(monkeypatch):
    X, given = clustered(600), {"methods": ["truncate"], "levels": ["int4"], "dims": [12]}

    def recalls(**more):
        found = surveyed(in_memory(X), **given, **more).options
        return found["recall@10"].tolist()

    assert recalls(seed=1) == recalls(seed=1) != recalls(seed=2)
    drawn = draw(in_memory(X), None, np.random.default_rng(0))
    monkeypatch.setattr(measure, "draw", lambda *others: drawn)
    assert recalls(seed=1) == recalls(seed=2), "of all rows nothing is left to draw"
    assert recalls(seed=1, sample=200) != recalls(seed=2, sample=200)


@pytest.mark.parametrize("rows", [1600, 300])
def test_recall_falls_as_rows_are_added(rows):
    part = surveyed(
        in_memory(clustered(4000)), methods=["svd"], levels=["int8"], dims=[6], sample=rows
    )
    row = part.options[(part.options["dim"] == 6) & (part.options["rerank"] == 0)].iloc[0]
    assert part.corpus == rows and row["expected@10"] < row["recall@10"]
    assert any("among 4,000" in line for line in part.measured)


def test_the_interval_covers_the_recall_of_all_queries():
    """The recall of every row as a query, against intervals from a thousand, over seeds."""
    X = clustered(1500)
    options = {"methods": ["svd"], "levels": ["int8", "binary"], "dims": [12, 6]}
    hits, cases = 0, 0
    for seed in range(3):
        found = surveyed(in_memory(X), **options, seed=seed)
        (end,) = searched(found.ways, X, np.arange(len(X)), [X], 100, [len(X)])
        truth = [float((ranks(end.places[0][:, :10], places) < 10).mean()) for places in end.places]
        for row in found.options[
            (found.options["rerank"] == 0) & (found.options["way"] > 0)
        ].itertuples():
            hits += (
                found.options.loc[row.Index, "low@10"]
                <= truth[row.way]
                <= found.options.loc[row.Index, "high@10"]
            )
            cases += 1
    assert cases >= 6 and hits / cases >= 0.9


def test_fronts_and_contenders():
    sizes, recall = np.array([10, 10, 8, 6, 4, 2]), np.array([0.9, 1.0, 0.95, 0.95, 0.5, 0.6])
    assert is_front(sizes, recall).tolist() == [False, True, False, True, False, True]
    assert contenders(sizes, np.stack([recall, recall[::-1]], axis=1)) == [1, 3, 4, 5]
    sure = interval_of(np.ones(100))
    assert sure.high == 1 and 0.95 < sure.low < 0.97, "no miss among a hundred proves no more"


def test_what_more_rows_may_bring_near_is_thinned_less_where_it_is_re_ranked():
    """Signs of 20,000 real vectors find 0.02 more than those of 5,000 do."""
    sizes = np.array([24, 20, 17, 14, 11])
    recall = np.array([0.955, 0.935, 0.924, 0.88, 0.87])
    both = np.stack([recall[::-1], recall], axis=1)

    def measured(what, doublings):
        return sizes[contenders(sizes, both, (what, 0.95), doublings)].tolist()

    assert measured("recall", 0) == [24, 17, 11]
    assert measured("recall", 2) == [24, 20, 17, 11], "what is 0.05 below may come up, not 0.07"
    assert measured("recall", 4) == [24, 20, 17, 14, 11]
    alone = contenders(sizes, recall[:, None], ("recall", 0.95), 4)
    assert sizes[alone].tolist() == [24, 17, 11], "without re-ranking more rows hide neighbours"


def test_a_few_fine_numbers_that_miss_a_little_among_few_rows_are_measured_too():
    ways = {
        ("truncate", 64, "float32"): (256, 1.0),
        ("svd", 64, "float16"): (128, 0.97),
        ("svd", 48, "float32"): (192, 0.925),
        ("svd", 48, "float16"): (96, 0.92),
        ("pca", 48, "float16"): (96, 0.91),
        ("svd", 32, "float16"): (64, 0.88),
        ("svd", 16, "float16"): (32, 0.7),
        ("svd", 64, "binary"): (8, 0.93),
    }
    sizes, recall = (np.array(column) for column in zip(*ways.values(), strict=True))
    tried = list(ways)

    def found(what, amount, doublings=4):
        aim = what, amount
        return [tried[place] for place in overlooked(tried, sizes, recall, aim, doublings)]

    few = ("svd", 48, "float16")
    chosen = contenders(sizes, recall[:, None], ("recall", 0.95))
    assert few not in [tried[place] for place in chosen], "signs of fewer bytes find more"
    assert found("recall", 0.95) == [("svd", 32, "float16"), few]
    assert found("recall", 0.99) == [few], "what misses too much is left out"
    assert found("recall", 0.6) == [], "signs are sure to do"
    assert found("recall", 0.95, doublings=2) == [few], "among a few times the rows little moves"
    assert found("recall", 0.9, doublings=0) == [], "all rows were screened already"
    assert found("bytes", 96) == overlooked(tried, sizes, recall, None, 4) == []


def test_what_more_rows_may_change_is_measured_only_where_more_are_searched(monkeypatch):
    """A store that was screened whole has no other rows."""
    asked = []
    monkeypatch.setattr(
        "dimadvise.screening.overlooked",
        lambda *told: asked.append(told[-1]) or [],
    )
    monkeypatch.setattr("dimadvise.measure.SCREENED", 150)
    few = {"methods": ["svd"], "levels": ["binary"], "dims": [16]}
    for sample in (150, 300, 10_000):
        surveyed(in_memory(clustered(600)), aim=("recall", 0.9), sample=sample, **few)
    assert asked == [0, 1, 2]


def test_a_range_of_eight_bits_has_room_for_new_rows_at_both_ends():
    X = clustered(400)
    ends = np.stack([X.min(0), X.max(0)])
    span = ends[1] - ends[0]
    for level, steps, room in (("int8", 255, 0.02), ("int4", 15, 0.0)):
        way = Ways(in_memory(X), np.arange(400), "ip", 0).way("truncate", 24, level)
        step = way.codebook.step
        beyond = ends + np.array([[-1.0], [1.0]], np.float32) * (room * span - step * 0.01)
        lost = np.abs(way.stored(beyond) - beyond)
        assert (lost <= 0.51 * step).all()
        np.testing.assert_allclose(step, (1 + 2 * room) * span / steps, rtol=1e-5)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("similarity", ["cosine", "ip", "l2"])
def test_a_way_has_the_map_of_its_method_seed_and_lengths(method, similarity):
    X = clustered(400)
    made = Ways(in_memory(X), np.arange(300), similarity, 5)
    unit = similarity == "cosine"
    moments = moments_of([X[:300]], unit=unit)
    expected = fit_transform_of(method, moments, 7, unit=unit, seed=5)
    found = made.way(method, 7, "float16").transform
    assert (found.method, found.unit) == (method, unit)
    if method == "random":  # Cut from the widest one, which is scaled anew
        expected = fit_transform_of(method, moments, 24, unit=unit, seed=5).prefix(7)
    np.testing.assert_allclose(found.matrix, expected.matrix, atol=1e-4)
    np.testing.assert_allclose(found.bias, expected.bias, atol=1e-4)


def test_sizes_halve_twice_in_whole_bytes():
    assert default_sizes(384) == [
        384,
        272,
        192,
        136,
        96,
        64,
        48,
        32,
        24,
        16,
        12,
        8,
    ] and default_sizes(5) == [5]


def test_product_codes_are_ways_too():
    pytest.importorskip("faiss", reason="the extra eval brings it")
    found = surveyed(
        in_memory(clustered(700, 64)), levels=["pq"], dims=[64], methods=["svd", "opq"]
    )
    kinds = {(way.transform.method, way.level, way.bytes) for way in found.ways}
    assert kinds & {("svd", "pq8", 8), ("opq", "pq8", 8)}
    assert found.options[found.options["level"] == "pq8"]["recall@10"].max() > 0.1
    levels = {
        way[2]
        for way in Ways(in_memory(4e4 * clustered(200, 64)), np.arange(200), "ip", 0).all(
            (),
            (),
            [64],
        )
    }
    made = Ways(in_memory(clustered(700, 64)), np.arange(700), "cosine", 0)
    tried = {way for way in made.all(["svd-rotated"], ["pq"], [64]) if way[2] != "float32"}
    assert tried == {("svd-rotated", 64, f"pq{count}") for count in (8, 16, 32)}
    lloyd = {f"lloyd{bits}" for bits in (7, 6, 5, 4, 3, 2)}
    assert levels == {"float32", "int8", "int4", "binary", *lloyd}, (
        "rows too few for centroids, numbers too large for float16"
    )


def test_without_faiss_product_codes_are_not_tried_and_it_is_said(monkeypatch):
    monkeypatch.setattr(measure, "has_faiss", lambda: False)
    monkeypatch.setattr("dimadvise.ways.has_faiss", lambda: False)
    found = surveyed(in_memory(clustered(300, 64)), dims=[64, 8])
    assert not any(level.startswith("pq") for level in found.options["level"])
    assert any("pip install faiss-cpu" in note for note in found.notes)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"similarity": "dot"}, "unknown similarity 'dot'"),
        ({"methods": ["lda"]}, "unknown method 'lda'"),
        ({"levels": ["int2"]}, "unknown level 'int2'"),
    ],
)
def test_what_cannot_be_measured_is_told(options, words):
    with pytest.raises(InputError, match=words):
        surveyed(in_memory(clustered(200)), **options)


def test_queries_that_are_documents_are_not_their_own_neighbours_and_their_number_is_said():
    X, new = clustered(300), clustered(500)[300:]
    ways = {"methods": ["svd"], "levels": ["int8"], "dims": [24, 6]}
    plain = surveyed(in_memory(X), in_memory(X[:200]), **ways)
    table = plain.options.set_index(["method", "dim", "level", "rerank"])
    # With the query itself among the documents, nearly all would find it first
    assert table.loc[("svd", 6, "int8", 0), "recall@1"] < 0.8
    assert any(line.startswith("50 of 50 queries are documents") for line in plain.notes)
    assert any("50 queries of yours (50 are documents" in line for line in plain.measured)
    mixed = surveyed(in_memory(X), in_memory(np.concatenate([X[:60], new])), **ways)
    (said,) = (line for line in mixed.notes if "queries are documents" in line)
    told = int(said.split()[0])
    assert 0 < told <= 60 and f"{told} of {mixed.queries}" in said
    foreign = surveyed(in_memory(X), in_memory(new), **ways)
    assert not any("queries are documents" in line for line in foreign.notes)


@pytest.mark.parametrize("n", [1500, 120])
def test_no_map_is_fitted_on_a_document_that_is_a_query(n):
    X = clustered(n)
    screening, asked, fitted = draw(in_memory(X), in_memory(X[::-1]), np.random.default_rng(0))
    queries = np.concatenate([screening.full, asked.full])
    assert len(queries) == n // 5, "a fifth is asked, the rest is fitted on"
    assert (
        len(fitted) == n - n // 5
        and len(np.unique(np.concatenate([X[fitted], queries]), axis=0)) == n
    )
    foreign = clustered(n + 400)[n:]
    screening, asked, fitted = draw(in_memory(X), in_memory(foreign), np.random.default_rng(0))
    assert len(screening.full) + len(asked.full) == 400 and len(fitted) == n


def test_queries_of_zeros_are_refused_or_told():
    rng = np.random.default_rng(0)
    documents = in_memory(rng.normal(size=(300, 16)).astype(np.float32), "documents")
    asked = rng.normal(size=(60, 16)).astype(np.float32)
    asked[::2] = 0
    notes = survey(documents, in_memory(asked, "asked"), Request(levels=("int8",))).notes
    assert any(re.search(r"sampled queries are zero and have no direction", each) for each in notes)
    with pytest.raises(InputError, match="all 60 sampled queries in asked are zero"):
        survey(documents, in_memory(asked * 0, "asked"))


def test_a_query_is_known_by_the_first_row_searched_that_it_equals():
    X = clustered(50)
    X[[7, 30, 41]] = X[4]
    X[0, 0], X[9, 0] = 0, np.inf
    X[9] = np.where(np.isinf(X[9]), -0.0, X[0])  # The same numbers, one zero with a sign
    Q = np.stack([X[4], X[0], X[12] + 1])
    queries = Queries(Q, np.full(3, -1))
    vectors = in_memory(X)
    assert queries.found_in(vectors, np.arange(50)).rows.tolist() == [4, 0, -1]
    corpus = np.array([41, 9, 30, 20])
    found = queries.found_in(vectors, corpus)
    assert found.rows.tolist() == [30, 9, -1] and found.among(corpus).tolist() == [2, 1, -1]


def test_near_ties_that_change_places_are_told_beside_recall():
    """Which of copies with a little noise is nearest is chance; that one is near is not."""
    rng = np.random.default_rng(0)
    X = np.repeat(clustered(100), 20, axis=0)
    X = (X + 1e-3 * rng.normal(size=X.shape)).astype(np.float32)
    ways = {"methods": ["svd"], "levels": ["int8"], "dims": [24]}
    tied = surveyed(in_memory(X), **ways).options.query("level == 'int8' and rerank == 0").iloc[0]
    assert tied["recall@10"] < 0.9 < 0.99 < tied["alike@10"]
    apart = surveyed(in_memory(clustered()), **ways).options.query("rerank == 0")
    assert (apart["alike@10"] >= apart["recall@10"]).all()
    assert (apart["alike@10"] - apart["recall@10"]).max() < 0.02


def test_of_few_rows_nearly_all_are_queries_once_of_maps_that_have_not_seen_them():
    vectors = in_memory(clustered(150))
    _, asked, fitted = draw(vectors, None, np.random.default_rng(0))
    parts = crossed(vectors, asked, fitted)
    rows = np.concatenate([part.rows for part, _ in parts])
    assert len(np.unique(rows)) == len(rows) == 125, "25 of 150 are too few to prove much"
    for part, seen in parts:
        assert not np.isin(part.rows, seen).any()
        np.testing.assert_array_equal(part.full, vectors.take(part.rows))
    found = surveyed(vectors, levels=["int8"], methods=["svd"], dims=[24])
    assert found.queries == 125 and found.options.loc[0, "low@10"] > 0.95


def test_sizes_lie_closer_where_the_answer_is_expected():
    """The answer's size lies between two that halve twice, and other bytes are used up."""
    usual = set(default_sizes(24))
    ways = {"methods": ["svd"], "levels": ["int8"]}
    found = surveyed(in_memory(clustered()), **ways, aim=("recall", 0.9))
    assert {way.transform.dim for way in found.ways} - usual
    chosen = found.options.loc[choose(found.options, "recall", 0.9, 0)]
    plain = surveyed(in_memory(clustered()), **ways).options
    assert chosen["bytes"] < plain.loc[choose(plain, "recall", 0.9, 0), "bytes"]
    within = surveyed(in_memory(clustered()), **ways, aim=("bytes", 11)).options
    assert within.loc[choose(within, "bytes", 11, 0), "bytes"] == 11


@given(table=st.lists(st.tuples(*3 * [st.integers(0, 20)]), min_size=1, max_size=30))
@settings(max_examples=100, deadline=None)
def test_no_recall_is_dominated_whatever_the_table_holds(table):
    """No other way finds more in the bytes of the answer, or as much in fewer."""
    sizes, recall, lost = np.array(table, float).T
    recall, least = recall / 20, recall / 20 - lost / 100
    found = pd.DataFrame({"bytes": 1 + sizes, "recall@10": recall, "expected@10": recall})
    found = found.assign(**{"low@10": least, "rerank": 0, "front": is_front(1 + sizes, recall)})
    for what, amount in (("recall", 0.5), ("bytes", 9)):
        row = choose(found, what, amount, 0)
        if row is None:
            continue
        chosen = found.loc[row]
        no_larger = found[found["bytes"] <= chosen["bytes"]]
        assert no_larger["recall@10"].max() == chosen["recall@10"]
        assert (
            no_larger[no_larger["recall@10"] == chosen["recall@10"]]["bytes"].min()
            == chosen["bytes"]
        )


def test_lloyd_max_values_are_those_of_the_table_that_max_printed():
    for bits, half in ((2, (0.4528, 1.510)), (3, (0.2451, 0.7560, 1.344, 2.152))):
        expected = [*(-value for value in half[::-1]), *half]
        np.testing.assert_allclose(normal_values(2**bits), expected, atol=1e-3)
    assert normal_values(64)[-1] == pytest.approx(3.76, abs=0.1)


@pytest.mark.parametrize("level", ["lloyd6", "lloyd4", "lloyd2"])
def test_every_number_has_the_nearest_of_its_values(level):
    X = clustered(300)
    way = Ways(in_memory(X), np.arange(300), "ip", 0).way("svd-rotated", 20, level)
    Y, values = way.vectors(X), way.centroids[:, :, 0]
    apart = np.abs(Y[:, :, None] - values).min(2)
    np.testing.assert_allclose(np.abs(way.stored(X) - Y), apart, atol=1e-6)
    assert way.bytes == -(-20 * int(level[-1]) // 8) == way.codes(X).shape[1]
    np.testing.assert_array_equal(way.decode(way.codes(X)), way.stored(X))


@given(st.integers(0, 10**6), st.integers(1, 5), st.sampled_from([2, 4, 16, 128, 256]))
def test_the_nearest_of_any_ascending_values_is_found_and_of_equals_the_first(seed, dim, count):
    rng = np.random.default_rng(seed)
    # Whole numbers tie often, and a column may have one value, many times, or lie far from zero.
    values = np.sort(rng.integers(-4, 5, (dim, count)) * rng.choice([0, 1, 1e-30, 1e30], (dim, 1)))
    values = (values + rng.choice([0, 1000], (dim, 1))).astype(np.float32)
    near = values[np.arange(dim), rng.integers(count, size=(300, dim))]
    Y = (near + rng.integers(-9, 10, (300, dim)) / 2).astype(np.float32)
    middles = (values[:, 1:] + values[:, :-1]) / 2
    found = nearest_centroids(Y, values[:, :, None])
    np.testing.assert_array_equal(found, (Y[:, None] > middles.T).sum(1))


def test_parts_of_product_codes_are_those_of_the_nearest_centroids():
    rng = np.random.default_rng(0)
    centroids = rng.normal(size=(3, 256, 4)).astype(np.float32)
    Y = rng.normal(size=(700, 12)).astype(np.float32)
    apart = ((Y.reshape(700, 3, 1, 4).astype(np.float64) - centroids) ** 2).sum(3)
    np.testing.assert_array_equal(nearest_centroids(Y, centroids), apart.argmin(2))


def test_progress_is_shown_from_the_first_way_that_is_tried(monkeypatch):
    shown = []

    def watched(items, **options):
        shown.append((options["desc"], options["show"], len(items)))
        return items

    for module in (measure, screening):
        monkeypatch.setattr(module, "progress_bar", watched)
    surveyed(in_memory(clustered(300)), methods=["svd"], levels=["int8"], dims=[24, 12])
    assert shown[0] == ("screening", True, 3) and shown[1][:2] == ("measuring", True)
