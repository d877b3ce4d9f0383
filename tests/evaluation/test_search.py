"""Exact search: ties, prefixes, and that faiss on renormalised prefixes finds what exact cosines find."""

import sys

import numpy as np
import pytest

from repro.evaluation import search
from repro.paths import PACKAGE
from repro.types import InputError

rng = np.random.default_rng(0)
Q, C = rng.normal(size=(40, 48)).astype(np.float32), rng.normal(size=(500, 48)).astype(np.float32)


def test_top_documents_equal_a_plain_sort():
    unit = [X / np.linalg.norm(X, axis=1, keepdims=True) for X in (Q.astype(float), C.astype(float))]
    expected = np.argsort(-(unit[0] @ unit[1].T), axis=1)[:, :7]
    np.testing.assert_array_equal(search.top_documents(Q, C, 7), expected)
    np.testing.assert_array_equal(search.top_documents(Q, C), expected[:, :1])


def test_ties_go_to_the_lower_row_wherever_equal_documents_stand():
    repeated = np.concatenate([C[:3], C, C[:3]])  # rows 0-2 again at 3-5 and at the end
    found = search.top_documents(C[:3], repeated, 3)
    np.testing.assert_array_equal(found, [[0, 3, 503], [1, 4, 504], [2, 5, 505]])
    zeros = np.zeros((2, 48))
    np.testing.assert_array_equal(search.top_documents(zeros, C, 4), [[0, 1, 2, 3]] * 2)  # all cosines 0
    np.testing.assert_array_equal(
        search.top_documents([[1.0, 0.0]], [[0.0, -1.0], [-0.0, 1.0], [0.0, 0.0]], 3), [[0, 1, 2]]
    )


def test_blocks_change_nothing(monkeypatch):
    whole = search.top_documents(Q, C, 5)
    monkeypatch.setattr(search, "BLOCK", 3 * len(C))
    np.testing.assert_array_equal(search.top_documents(Q, C, 5), whole)


def test_lengths_play_no_part():
    scaled = C * np.geomspace(0.01, 100, len(C))[:, None]
    np.testing.assert_array_equal(search.top_documents(Q * 3, scaled, 5), search.top_documents(Q, C, 5))


@pytest.mark.parametrize("dim", [4, 16, 48])
def test_faiss_on_renormalised_prefixes_is_exact_cosine(dim):
    pytest.importorskip("faiss", reason="the extra eval brings it")
    index = search.FlatIndex(C, dim)
    assert len(index) == 500 and index.dim == dim
    np.testing.assert_array_equal(index.search(Q, 10), search.top_documents(Q[:, :dim], C[:, :dim], 10))


def test_prefixes_left_as_they_are_would_be_ranked_by_length_too():
    pytest.importorskip("faiss", reason="the extra eval brings it")
    by_length = search.FlatIndex(C, 4, renormalize=False).search(Q)
    assert (by_length != search.top_documents(Q[:, :4], C[:, :4])).mean() > 0.2
    units = [search.unit_prefix(X)[:, :4].astype(float) for X in (Q, C)]
    distances = ((units[0][:, None] - units[1][None]) ** 2).sum(2)
    np.testing.assert_array_equal(by_length[:, 0], distances.argmin(1))
    whole = search.FlatIndex(C, renormalize=False).search(Q, 5)
    np.testing.assert_array_equal(whole, search.top_documents(Q, C, 5))  # at full size it makes no difference


def test_unit_prefix():
    X = search.unit_prefix([[3.0, 4.0, 9.0], [0.0, 0.0, 1.0]], 2)
    np.testing.assert_allclose(X, [[0.6, 0.8], [0, 0]])
    assert search.unit_prefix(C).dtype == np.float32


def test_bad_input_is_named():
    with pytest.raises(InputError, match=r"Q has 3 columns, C 48"):
        search.top_documents(Q[:, :3], C)
    with pytest.raises(InputError, match="k is 501: expected 1 to 500"):
        search.top_documents(Q, C, 501)
    with pytest.raises(InputError, match="dim is 49: expected 1 to 48"):
        search.unit_prefix(C, 49)
    with pytest.raises(InputError, match=r"C has NaN or infinite values in 1 of 2 rows, first in row 1"):
        search.top_documents([[1.0]], [[1.0], [np.nan]])


def test_without_faiss_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(InputError, match=r"faiss is not installed: `pip install -e '.\[eval\]'`"):
        search.FlatIndex(C)
    assert len(search.top_documents(Q, C)) == 40  # the exact search does without


def test_faiss_is_imported_here_alone():
    texts = {path.name: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    assert [name for name, text in texts.items() if '"faiss"' in text or "import faiss" in text] == ["search.py"]
