import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deployment import BYTES, D, deployed, rows
from dimadvise import deploy
from dimadvise.coding import MENU, SIMILARITIES, packed, unpacked
from dimadvise.report import usage
from dimadvise.transform import METHODS, fit_transform_of, moments_of
from repro.types import InputError

LEVELS = (*MENU[:-1], f"pq{BYTES}")  # Of product codes one


def scores(deployment, Q, C):
    """As the advisor counts: the query's floats against what the codes stand for."""
    q, stored = deployment.queries(Q).astype(np.float64), deployment.stored(C).astype(np.float64)
    if deployment.similarity == "l2" and deployment.level != "binary":
        return -((q[:, None] - stored[None]) ** 2).sum(2)
    return q @ stored.T


def top(values, k):
    return np.argsort(-values, axis=1, kind="stable")[:, :k]


def overlap(one, other):
    return np.mean([len(set(a) & set(b)) / len(a) for a, b in zip(one, other, strict=True)])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_an_index_of_faiss_made_from_the_files_finds_what_the_advisor_counted(
    similarity,
    level,
    tmp_path,
):
    pytest.importorskip("faiss")
    C, Q = rows(900, seed=1), rows(40, seed=2)
    made = deployed(level=level, similarity=similarity)
    deploy.write(tmp_path, made)
    read = deploy.read(tmp_path)
    assert read.bytes == read.codes(C[:3]).nbytes / 3
    np.testing.assert_array_equal(read.stored(C), made.stored(C))
    index = deploy.faiss_index(tmp_path)
    index.add(C)
    # 1 but for ties of short codes
    assert overlap(index.search(Q, 10)[1], top(scores(made, Q, C), 10)) > 0.99


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_re_ranking_in_faiss_orders_the_candidates_by_the_full_vectors(similarity):
    pytest.importorskip("faiss")
    C, Q = rows(900, seed=1), rows(40, seed=2)
    made = deployed(level="int4", similarity=similarity, rerank=4)
    index = deploy.faiss_index(made)
    index.add(C)
    all_of_it = fit_transform_of("truncate", moments_of([C], unit=False), D, unit=False)
    exact = scores(replace(made, transform=all_of_it, level="float32", codebook=None), Q, C)
    candidates = top(scores(made, Q, C), 40)
    expected = np.take_along_axis(candidates, top(np.take_along_axis(exact, candidates, 1), 10), 1)
    found = index.search(Q, 10)[1]
    assert overlap(found, expected) == 1
    plain = deploy.faiss_index(replace(made, rerank=0))
    plain.add(C)
    assert overlap(found, top(exact, 10)) > overlap(plain.search(Q, 10)[1], top(exact, 10))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("similarity", "rerank"), [("cosine", 3), ("ip", 0), ("l2", 7)])
def test_what_is_written_is_read_again_whole(level, similarity, rerank, tmp_path):
    made = replace(deployed("pca-rotated", level, similarity), rerank=rerank)
    deploy.write(tmp_path, made)
    read = deploy.read(tmp_path)
    for name in ("similarity", "level", "rerank", "bytes"):
        assert getattr(read, name) == getattr(made, name), name
    for name in ("method", "dim", "unit"):
        assert getattr(read.transform, name) == getattr(made.transform, name), name
    np.testing.assert_array_equal(read.codes(rows(20)), made.codes(rows(20)))
    np.testing.assert_array_equal(read.queries(rows(20)), made.queries(rows(20)))


@pytest.mark.parametrize("method", METHODS)
def test_a_pipeline_of_scikit_learn_applies_the_written_map_without_fitting(method, tmp_path):
    made, X = deployed(method, similarity="l2"), rows(50, seed=3)
    deploy.write(tmp_path, made)
    Y = (
        make_pipeline(deploy.SavedReducer(tmp_path), StandardScaler())
        .fit(X)
        .steps[0][1]
        .transform(X)
    )
    np.testing.assert_array_equal(Y, made.transform.apply(X))
    with pytest.raises(InputError, match=rf"shape \(1, {D - 1}\)"):
        deploy.SavedReducer(tmp_path).fit(X[:, 1:])


WORDED = [
    (deployed(level="int8"), "L2norm,PCA21,L2norm,SQ8"),
    (deployed("pca-rotated", "int4", "l2", rerank=4), "PCAR21,SQ4,RFlat"),
    (deployed("pca", f"pq{BYTES}", "ip"), "PCA21,PQ7"),
]
WORDED_LEVELS = ("float32", "float16", "int8", "int4", f"pq{BYTES}")
WORDLESS = [(method, level) for method in METHODS for level in LEVELS]


@pytest.mark.parametrize(("made", "factory"), WORDED)
def test_the_factory_string_makes_an_index_of_the_same_kind(made, factory, tmp_path):
    deploy.write(tmp_path, made)
    assert json.loads((tmp_path / "reducer.json").read_text())["faiss_factory"] == factory
    assert f"faiss.index_factory({D}, '{factory}'" in usage(tmp_path, made)


@pytest.mark.parametrize(("method", "level"), WORDLESS)
def test_every_printed_line_of_python_runs(method, level, tmp_path):
    """Faiss has no words for singular directions, cut columns, random projections or bits."""
    faiss = pytest.importorskip("faiss")
    made = deployed(method, level)
    deploy.write(tmp_path, made)
    printed = usage(tmp_path, made)
    is_worded = method in ("pca", "pca-rotated") and level in WORDED_LEVELS
    assert ("index_factory" in printed) == is_worded
    code = "\n".join(line for line in printed.splitlines() if not line.startswith("$"))
    names = {"X": rows(300), "Q": rows(5), "faiss": faiss, "make_pipeline": make_pipeline}
    exec(code, names | {"LogisticRegression": LogisticRegression})


def test_files_that_are_damaged_missing_or_not_ours_are_refused(tmp_path, write):
    deploy.write(tmp_path, deployed(level="int8"))
    codes = tmp_path / deploy.CODES
    codes.write_bytes(codes.read_bytes()[:-1] + b"x")
    with pytest.raises(InputError, match="has changed since it was written"):
        deploy.read(tmp_path)
    codes.unlink()
    with pytest.raises(InputError, match="is missing"):
        deploy.read(tmp_path)
    note = tmp_path / "reducer.json"
    note.write_text(note.read_text().replace('"level": "int8"', '"level": "int4"'))
    with pytest.raises(InputError, match=r"reducer.json has changed"):
        deploy.read(tmp_path)
    note.write_text('{"a": 1}')
    with pytest.raises(InputError, match="was written by no advice"):
        deploy.write(tmp_path, deployed(level="int8"))
    note.unlink()
    with pytest.raises(
        InputError,
        match=r"reducer\.safetensors was written by no advice, or has changed",
    ):
        deploy.write(tmp_path, deployed(level="int8"))
    (tmp_path / deploy.WEIGHTS).unlink()
    deploy.write(tmp_path, deployed(level="int8"))
    deploy.write(tmp_path, deployed())
    # Of the earlier one nothing is left
    assert not codes.exists() and deploy.read(tmp_path).level == "float32"
    foreign = write("other/reducer.json", "mine")
    with pytest.raises(InputError, match="not valid JSON"):
        deploy.write(foreign.parent, deployed())
    assert foreign.read_text() == "mine\n" and not foreign.with_name(deploy.CODES).exists()


def test_tensors_that_the_note_does_not_prove_to_be_ours_are_neither_replaced_nor_removed(tmp_path):
    deploy.write(tmp_path, deployed())
    for name, words in (
        (deploy.CODES, "written by no advice"),
        (deploy.WEIGHTS, "has changed since"),
    ):
        before = (tmp_path / name).read_bytes() if (tmp_path / name).exists() else None
        (tmp_path / name).write_text("mine")
        for change in (deploy.remove, lambda folder: deploy.write(folder, deployed(level="int8"))):
            with pytest.raises(InputError, match=rf"{name} .*{words}"):
                change(tmp_path)
            assert (tmp_path / name).read_text() == "mine"
        (tmp_path / name).unlink()
        if before is not None:
            (tmp_path / name).write_bytes(before)
    deploy.remove(tmp_path)
    assert not list(tmp_path.iterdir())
    deploy.remove(tmp_path)  # Nothing is there to be removed


@pytest.mark.parametrize("step", range(5))
def test_an_advice_is_written_again_wherever_it_was_stopped(tmp_path, monkeypatch, step):
    deploy.write(tmp_path, deployed(level="int8"))
    steps = []

    def stopping(change):
        def stopped(*given, **options):
            steps.append(change)
            if len(steps) > step:
                raise KeyboardInterrupt
            return change(*given, **options)

        return stopped

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", stopping(os.replace))
        patched.setattr(Path, "unlink", stopping(Path.unlink))
        with pytest.raises(KeyboardInterrupt):
            deploy.write(tmp_path, deployed("svd", level="int4"))
    deploy.write(tmp_path, deployed("svd", level="int4"))
    assert deploy.read(tmp_path).level == "int4"


def test_a_promise_that_was_edited_is_refused_whether_or_not_its_seal_was_removed(tmp_path):
    deploy.write(tmp_path, deployed(), promised={"recall@10": [0.9, 0.88, 0.92]})
    note = tmp_path / "reducer.json"
    whole = json.loads(note.read_text())
    note.write_text(json.dumps(whole | {"promised": {"recall@10": [1, 1, 1]}}))
    for read in (deploy.read, deploy.read_note, deploy.read_linear):
        with pytest.raises(InputError, match=r"reducer.json has changed since it was written"):
            read(tmp_path)
    note.write_text(json.dumps({key: value for key, value in whole.items() if key != "seal"}))
    for read in (deploy.read, deploy.read_note, deploy.read_linear):
        with pytest.raises(InputError, match=r"reducer.json has no seal"):
            read(tmp_path)
    note.write_text(json.dumps(whole))
    assert deploy.read_note(tmp_path)["promised"] == {"recall@10": [0.9, 0.88, 0.92]}


@pytest.mark.parametrize("depth", [900, 980, 100_000])
def test_a_note_that_is_nested_deeply_is_refused(tmp_path, depth):
    deploy.write(tmp_path, deployed())
    note = tmp_path / "reducer.json"
    note.write_text(note.read_text().rstrip("}") + ', "more": ' + "[" * depth + "]" * depth + "}")
    with pytest.raises(InputError, match=r"reducer\.json (is not valid JSON|has changed)"):
        deploy.read(tmp_path)
    with pytest.raises(InputError, match=r"reducer\.json (is not valid JSON|has changed)"):
        deploy.write(tmp_path, deployed())


@pytest.mark.parametrize("name", [deploy.NOTE, deploy.WEIGHTS, deploy.CODES])
def test_a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for(name, tmp_path, pipe):
    deploy.write(tmp_path, deployed(level="int8"))
    pipe(tmp_path / name)
    for use in (deploy.read, deploy.remove):
        with pytest.raises(InputError, match=rf"{name} .*(pipe or a device|is missing)"):
            use(tmp_path)
    assert (tmp_path / name).is_fifo()


def test_codes_without_what_they_need_are_refused_and_faiss_is_asked_for(monkeypatch):
    made = deployed(level="int8")
    for wrong in (
        {"codebook": None},
        {"level": "int4"},
        {"level": "pq8"},
        {"level": "int3"},
        {"similarity": "dot"},
    ):
        with pytest.raises(InputError):
            replace(made, **wrong)
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(InputError, match=r"faiss is not installed: .*eval"):
        deploy.faiss_index(deployed())


@pytest.mark.parametrize("bits", range(1, 9))
def test_packed_numbers_are_unpacked_as_they_were(bits):
    numbers = np.random.default_rng(bits).integers(2**bits, size=(20, 13)).astype(np.uint8)
    codes = packed(numbers, bits)
    assert codes.shape == (20, -(-13 * bits // 8))
    np.testing.assert_array_equal(unpacked(codes, 13, bits), numbers)
