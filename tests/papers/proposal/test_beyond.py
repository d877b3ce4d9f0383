"""What is known beforehand: which documents can be retrieved together, LIMIT in small, and worlds
of known dimension.

In four dimensions every two documents can be retrieved, below only where geometry allows it.
"""

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from microworld import World
from repro import theory
from repro.types import InputError
from shown_code import on_page

PAGE = on_page(
    "beyond_retrieval_limits",
    "circle_curve",
    "free_retrieval",
    "limit_texts",
    "margins",
    "most_sets",
)


@pytest.mark.parametrize("n", [3, 4, 7, 30, 100])
def test_the_curve_realises_every_set_in_four_dimensions(n):
    C, Q = PAGE["circle_curve"](n)
    sets = PAGE["two_sets"](n)
    assert C.shape == (n, 4) and len(Q) == n * (n - 1) // 2
    assert np.linalg.norm(C, axis=1) == pytest.approx(np.ones(n))
    cosines = Q @ C.T
    assert np.array_equal(np.sort(np.argsort(-cosines, axis=1)[:, :2], axis=1), sets)
    own = np.take_along_axis(cosines, sets, axis=1)
    assert own[:, 0] == pytest.approx(own[:, 1], abs=1e-12), (
        "the two stand equally high, as the polynomial says"
    )


def test_a_query_cannot_rank_two_of_two_first():
    with pytest.raises(InputError, match="2 documents: expected at least 3"):
        PAGE["two_sets"](2)


@pytest.mark.parametrize("n", [5, 9, 14])
def test_most_sets_on_a_sphere_is_the_number_of_edges_of_a_hull(n):
    X = np.random.default_rng(n).normal(size=(n, 3))
    hull = ConvexHull(X / np.linalg.norm(X, axis=1, keepdims=True))
    edges = {
        tuple(sorted((a, b))) for t in hull.simplices for a, b in zip(t, np.roll(t, 1), strict=True)
    }
    most_sets = PAGE["most_sets"]
    assert most_sets(n, 3) == len(edges) == 3 * n - 6
    assert most_sets(n, 2) == n and most_sets(n, 4) == n * (n - 1) // 2


def test_descent_reaches_what_is_possible_and_no_more():
    for dim in (2, 3, 4):
        found = PAGE["realised"](*PAGE["free_retrieval"](6, dim))
        assert found["sets_realised"] * 15 <= PAGE["most_sets"](6, dim) + 1e-9
        assert (found["margin"] > 0) == (dim == 4)
    C = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.0]])
    Q = np.array([[3.0, 3.0], [1.0, 0.0], [0.0, 1.0]])
    assert PAGE["margins"](Q, C) == pytest.approx([np.sqrt(2), -1.0, 0.0])


def test_texts_need_every_two_people_once():
    texts = PAGE["limit_texts"](7, 3)
    answers = {frozenset(found) for found in texts.qrels.values()}
    assert len(texts.queries) == len(answers) == 21 and all(len(a) == 2 for a in answers)
    words = (set(document.strip(".").replace(",", "").split()) for document in texts.documents)
    documents = dict(zip(texts.document_ids, words, strict=True))
    for query, found in texts.qrels.items():
        thing = query.removeprefix("Who likes ").removesuffix("?")
        assert {person for person, words in documents.items() if thing in words} == set(found)
    assert PAGE["limit_texts"](16, 0).queries, "names and things suffice"


@pytest.mark.parametrize("factors", [3, 6, 8])
def test_known_values_are_those_of_many_frames(factors):
    world = World(factors, values=4)
    drawn = world.draw(20_000, np.random.default_rng(0))
    X = world.ideal_embeddings(drawn)
    known = on_page("beyond_microworld", "effective_rank", "participation_ratio")
    assert theory.effective_rank(X) == pytest.approx(known["effective_rank"](world), rel=0.02)
    assert theory.participation_ratio(X) == pytest.approx(
        known["participation_ratio"](world),
        rel=0.02,
    )


def test_ideal_vectors_have_the_graded_similarity():
    _, graded, ideal = on_page("beyond_microworld", values=4, seed=1)["draw_pairs"](5, 60)
    assert 5 * (ideal[0] * ideal[1]).sum(axis=1) == pytest.approx(graded.scores, abs=1e-9)
