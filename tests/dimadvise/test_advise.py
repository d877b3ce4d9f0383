import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dimadvise.advice import Candidate, _neighbours_kept, _smallest, _why_none, advise
from dimadvise.evidence import Classes, Pairs, Search
from dimadvise.inputs import from_encoder, from_matrix
from dimadvise.report import candidate_table, headline, savings, size
from repro import data
from repro.reducers import make_reducer
from repro.reducers.export import linear_form, read_linear, write_linear
from repro.types import InputError


def cloud(n=900, full=32, used=6, seed=0):
    """Embeddings that use six directions, turned, with a little noise in all."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(full, full)))[0]
    X = np.concatenate([rng.normal(size=(n, used)), 0.02 * rng.normal(size=(n, full - used))], axis=1)
    return (X @ turn).astype(np.float32)


def graded(X, n=400, noise=0.1, seed=1):
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, len(X), n), rng.integers(0, len(X), n)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    return Pairs(first, second, (unit[first] * unit[second]).sum(1) + noise * rng.normal(size=n))


def test_the_answer_is_the_number_of_directions_that_are_used():
    X = cloud()
    advice = advise({None: X}, evidence=graded(X), dims=[32, 16, 12, 8, 6, 4, 2])
    assert advice.answer is not None and (advice.answer.method, advice.answer.dim) == ("pca", 6)
    assert advice.answer.low >= 0.99 and advice.confidence == 0.975 and advice.seen
    some = advise({None: X}, fit_rows=slice(0, 450), evidence=graded(X), dims=[32])
    assert some.seen, "though of the judged rows only half are fitted"
    assert 5 < advice.intrinsic["participation ratio"] < 6.5
    below = [c for c in advice.candidates if c.method == "pca" and c.dim < 6]
    assert all(c.low < 0.99 for c in below)
    assert headline(advice).startswith("6 of 32 dimensions (principal components) keep")


def test_unrelated_embeddings_share_no_neighbours():
    A, B = np.random.default_rng(0).normal(size=(2, 400, 16))
    same, other = _neighbours_kept(A, [A, B], 0)
    assert same == 1.0 and other < 0.06  # by chance 10 of 399; a row is no neighbour of its own
    found = advise({1: A, 2: B}, dims=[16])
    assert {c.layer: c.neighbours > 0.5 for c in found.candidates if c.method == "truncate"} == {1: False, 2: True}


def test_labels_that_say_nothing_cannot_be_learnt():
    rng = np.random.default_rng(0)
    values, _ = Classes(np.arange(200), rng.choice(["a", "b"], 200)).draws([rng.normal(size=(200, 64))], seed=0)
    assert 0.35 < values[0] < 0.65


def test_the_unit_of_embeddings_plays_no_part_in_accuracy():
    X = np.random.default_rng(0).normal(size=(200, 8))
    labels = np.where(X[:, 0] + X[:, 1] > 0.4, "up", "down")
    values, _ = Classes(np.arange(200), labels).draws([X, 1e-4 * X], seed=0)
    assert values[0] == values[1] > 0.9


def test_row_lengths_that_no_cosine_sees_change_no_answer():
    """And without labels, where the answer is a prediction."""
    X, lengths = cloud(), np.random.default_rng(3).uniform(0.1, 10, size=(900, 1)).astype(np.float32)
    for evidence in (graded(X), None):
        found = [advise({None: Y}, evidence=evidence, dims=[32, 8, 6, 4]) for Y in (X, lengths * X)]
        assert found[0].unit and found[0].answer is not None and found[0].answer.dim == found[1].answer.dim
        assert ("prediction" in headline(found[0])) == (evidence is None) and found[0].answer.dim <= 8
        columns = ["share" if evidence else "expected", "neighbours"]
        one, other = (candidate_table(each)[columns].to_numpy() for each in found)
        np.testing.assert_allclose(one, other, atol=2e-3)


def test_embeddings_of_ones_own_need_no_torch(python, tmp_path):
    X = cloud(300)
    np.save(tmp_path / "X.npy", X)
    arguments = ["advise", "--embeddings", str(tmp_path / "X.npy"), "--output", str(tmp_path / "out")]
    said = f"""
import sys

class NoTorch:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers"):
            raise ImportError(name)

sys.meta_path.insert(0, NoTorch)
from repro.cli import main
sys.exit(main({arguments}))
"""
    process = python(said)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0 and (tmp_path / "out" / "reducer.safetensors").is_file(), errors


def test_a_document_at_the_second_place_counts_by_its_discount():
    unit = np.eye(40)
    documents = np.concatenate([np.hstack([unit, 0 * unit]), np.hstack([unit, 0.1 * unit])])
    found = Search(np.arange(80, 120), np.arange(80), {i: {40 + i: 1.0} for i in range(40)})
    values, _ = found.draws([np.concatenate([documents, documents[:40]])], seed=0)
    assert values[0] == pytest.approx(1 / np.log2(3))


def test_the_items_that_would_do_follow_from_the_width_of_the_bound():
    close = Candidate(None, "pca", 8, 1.0, 1.0, share=0.995, low=0.985)
    said = _why_none([close], 16, 0.99, Pairs(np.arange(100), np.arange(100), np.arange(100.0)))
    assert "100 labelled items are too few" in said and "about 400 items would do" in said  # half as wide


def test_savings_count_bytes():
    million, billion = savings(64, 16).to_dict("records")
    assert (million["memory now"], million["then"], billion["then"]) == (256_000_000, 64_000_000, 64_000_000_000)
    assert million["a query now"] > 0 and size(1_540_000_000) == "1.54 GB"


def test_a_shallower_layer_may_win_only_by_its_bound():
    X = cloud()
    worse = (X + 0.6 * np.random.default_rng(5).normal(size=X.shape)).astype(np.float32)
    found = advise({3: worse, 6: X}, evidence=graded(X), dims=[32, 8, 6])
    assert found.answer is not None and found.answer.layer == 6 and found.confidence == pytest.approx(1 - 0.05 / 4)
    found = advise({3: X[:, ::-1], 6: X}, evidence=graded(X), dims=[32, 8, 6])
    assert found.answer is not None and found.answer.layer == 3  # as good and cheaper


def test_a_size_passes_by_its_bound_not_by_its_share():
    found = [Candidate(None, "pca", dim, 1.0, 1.0, share=1.0, low=low) for dim, low in ((8, 0.99), (4, 0.98))]
    answer = _smallest(found, 16, None, 0.985, labelled=True)
    assert answer is not None and answer.dim == 8


def test_what_is_odd_about_the_embeddings_is_said():
    X = cloud(50)
    X[:, 3] = 0.5
    X[7] = X[2]
    notes = " ".join(advise({None: X}, dims=[8]).notes)
    assert "1 of 32 columns" in notes and "1 of 50 rows repeat" in notes and "50 rows for 32 dimensions" in notes


def test_an_exported_reducer_is_the_reducer(tmp_path):
    X = cloud(200)
    with pytest.raises(InputError, match="expected a folder that `repro advise` wrote"):
        read_linear(tmp_path)
    for name in ("truncate", "pca", "svd", "grp"):
        reducer = make_reducer(name, 8, seed=3).fit(X)
        write_linear(tmp_path / name, *linear_form(reducer, 5), reducer=name)
        matrix, bias = read_linear(tmp_path / name)
        np.testing.assert_allclose(X @ matrix + bias, reducer.prefix(reducer.transform(X), 5), atol=1e-5)
        assert json.loads((tmp_path / name / "reducer.json").read_text())["dim"] == 5
    with pytest.raises(InputError, match="LLE is no matrix"):
        linear_form(make_reducer("lle", 2, n_neighbors=5).fit(X))
    tensors = tmp_path / "pca" / "reducer.safetensors"
    tensors.write_bytes((tmp_path / "svd" / "reducer.safetensors").read_bytes())
    with pytest.raises(InputError, match="has changed since it was written, or belongs to another"):
        read_linear(tmp_path / "pca")


def test_a_strangers_file_is_not_written_over_and_an_earlier_advice_leaves_no_reducer(tmp_path, repro):
    np.save(tmp_path / "X.npy", cloud(200))
    np.save(tmp_path / "full.npy", np.random.default_rng(0).normal(size=(200, 8)).astype(np.float32))
    (tmp_path / "report.html").write_text("a stranger's")
    code, _, errors = repro("advise", "--embeddings", tmp_path / "X.npy", "--output", tmp_path)
    assert code == 2 and "report.html was written by no advice: give another --output" in errors
    assert (tmp_path / "report.html").read_text() == "a stranger's"
    out = tmp_path / "out"
    for given, chosen in (("X", True), ("full", False)):
        code, text, errors = repro("advise", "--embeddings", tmp_path / f"{given}.npy", "--output", out, "--dims", 6, 4)
        assert code == 0 and ("Keep all" not in text) == chosen, errors
        assert (out / "reducer.safetensors").exists() == (out / "reducer.json").exists() == chosen


def test_no_bound_is_printed_where_it_does_not_hold():
    X, other = cloud(), cloud(500, seed=0)
    pairs = graded(X)
    right = Classes(np.arange(400), np.where(X[:400, 0] > 0, "up", "down"))
    for evidence, fit_rows, reducer, words in (
        (pairs, None, "pca", "--fit-on, with texts that are not judged, gives a bound"),
        (pairs, None, "truncate", ""),
        (pairs, slice(900, 1400), "pca", ""),
        (right, slice(900, 1400), "pca", "of 400 items that are right or wrong too few can change"),
    ):
        versions = {None: np.concatenate([X, other])}
        found = advise(versions, fit_rows=fit_rows, evidence=evidence, methods=(reducer,), dims=[32, 31])
        told = " ".join([headline(found), *explanation(found)])
        assert found.answer is None or ("no lower bound is given" in told) == bool(words)
        assert ("with 95 % confidence" in told or "Bounds hold" in told) == (not words) and words in told
        assert candidate_table(found)["low"].isna().all() == bool(words)
    assert why_no_bound(replace(found, retain=0.9), found.candidates[0]) == "", "400 items tell a loss of ten per cent"


def test_reducers_fitted_on_other_rows_are_judged_on_rows_they_have_not_seen(tmp_path, repro):
    X, other = cloud(400), cloud(500, seed=0)[400:]
    pairs = graded(X)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "other.npy", other)
    lines = [f"{a}\t{b}\t{g}" for a, b, g in zip(pairs.first, pairs.second, pairs.grades, strict=True)]
    (tmp_path / "pairs.tsv").write_text("\n".join(["row1\trow2\tscore", *lines]) + "\n")
    case = from_matrix(X, pairs=tmp_path / "pairs.tsv", fit_on=other)
    assert case.fit_rows == slice(400, 500)
    apart, among = (
        advise(case.versions, fit_rows=rows, evidence=case.evidence, retain=0.9) for rows in (case.fit_rows, None)
    )
    assert (apart.seen, among.seen, apart.rows, among.rows) == (False, True, 100, 500)
    unit = other / np.linalg.norm(other, axis=1, keepdims=True)
    assert apart.reducer is not None and np.allclose(apart.reducer.mean_, unit.mean(axis=0), atol=1e-5)
    arguments = ["advise", "--embeddings", tmp_path / "X.npy", "--pairs", tmp_path / "pairs.tsv", "--retain", 0.9]
    out = tmp_path / "out"
    code, told, _ = repro(*arguments, "--fit-on", tmp_path / "other.npy", "--output", out)
    assert code == 0 and "fitted on 100 embeddings, none of which is judged" in told
    assert "Bounds hold with" in told and "No bound is given" not in told
    page, (matrix, bias) = (out / "report.html").read_text(), read_linear(out)
    assert "data:image/svg+xml" in page and "<table" in page and "nan" not in page.lower().replace("financ", "")
    assert set(pd.read_parquet(out / "candidates.parquet")["reducer"]) == {"truncate", "pca"}
    assert matrix.shape == (32, len(bias))


def test_texts_to_fit_on_leave_out_those_that_are_judged(tmp_path):
    encoder = SimpleNamespace(encode=lambda texts, progress: np.zeros((len(texts), 2)))
    judged = data.load("stsb", split="test", source="microworld")
    case = from_encoder(encoder, "stsb", source="microworld", fit_on="stsb")
    trained = set(data.texts_of(data.load("stsb", split="train", source="microworld"))) - set(data.texts_of(judged))
    assert case.fit_rows == slice(2 * len(judged), 2 * len(judged) + len(trained))
    (tmp_path / "same.txt").write_text("\n".join(dict.fromkeys(data.texts_of(judged))) + "\n")
    with pytest.raises(InputError, match="0 texts are not judged"):
        from_encoder(encoder, "stsb", source="microworld", fit_on=str(tmp_path / "same.txt"))
