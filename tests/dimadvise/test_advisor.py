"""The advisor from Python and `dimadvise check`: what it takes, gives and writes, and whether a
promise still holds.
"""

import json
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest

import dimadvise
from deployment import rows
from dimadvise.deploy import read
from dimadvise.report import two_answers
from repro.cli import dimadvise as command
from repro.evaluation.stats import Interval
from repro.types import InputError

FEW = {"methods": ("svd",), "levels": ("int8", "binary"), "dims": (40, 32, 24, 16)}
PLAIN = {"methods": ("truncate",), "levels": ("float32",), "dims": (40, 20)}


@pytest.fixture(scope="module")
def X():
    return rows(900)


@pytest.fixture(scope="module")
def advice(X):
    return dimadvise.advise(X, recall=0.9, **FEW)


def test_an_advice_answers_codes_shows_and_saves_itself(X, advice, tmp_path):
    answer = advice.answer
    assert answer["bytes"] < 160 and answer["low@10"] >= 0.9 and not answer["keep"]
    assert len(advice.options) and advice.options["answer"].sum() == 1
    assert advice.codes(X[:7]).nbytes == 7 * answer["bytes"]
    assert advice.transform.matrix.shape == (40, answer["dim"])
    assert str(advice).startswith(answer["said"])
    assert answer["said"].partition(":")[0] in advice._repr_html_() and "<table" in str(
        advice._repr_html_()
    )
    written = advice.save(tmp_path / "out")
    assert all(path.exists() for path in written)
    told = json.loads((tmp_path / "out" / "report.json").read_text())
    assert told["answer"] == answer and told["other_answer"] == advice.other_answer
    np.testing.assert_array_equal(read(tmp_path / "out").codes(X[:9]), advice.codes(X[:9]))
    (tmp_path / "out" / "report.html").write_text("mine")
    with pytest.raises(InputError, match="has changed since it was written"):
        advice.save(tmp_path / "out")


def test_files_arrays_and_requests_are_advised_alike(X, advice, tmp_path):
    np.save(tmp_path / "X.npy", X)
    by_path = dimadvise.advise(str(tmp_path / "X.npy"), recall=0.9, **FEW)
    request = dimadvise.Request(tmp_path / "X.npy", recall=0.9, **FEW)
    for other in (by_path, dimadvise.advise(request)):
        assert other.answer == advice.answer


def test_labels_are_given_as_they_are_and_their_promise_is_measured_again(tmp_path):
    X = rows(800)
    labels = np.where(X[:, 0] > X[:, 0].mean(), "up", "down")
    found = dimadvise.advise(X[:400], labels=list(labels[:400]), retain=0.95, **PLAIN)
    assert found.note["promised"]["metric"] == "accuracy"
    found.save(tmp_path / "out")
    again = dimadvise.check(tmp_path / "out", X[400:], labels=labels[400:])
    assert again.what == "share of the accuracy that is kept" and again.promised == 0.95
    assert again.holds and again.measured.low <= again.measured.value
    shuffled = dimadvise.check(found, X[400:, ::-1], labels=labels[400:])
    assert not shuffled.holds and shuffled.verdict == "broken"
    with pytest.raises(InputError, match="these labels tell of accuracy"):
        dimadvise.check(dimadvise.advise(X[:300], recall=0.8, **FEW), X, labels=labels)


def test_a_promise_holds_of_new_vectors_and_is_broken_by_others(X, advice):
    fresh = rows(1800)[900:]
    found = dimadvise.check(advice, fresh)
    assert found.promised == 0.9 and found.verdict == "holds" and "promise holds" in str(found)
    assert 0 <= found.tail < 0.1
    asked = dimadvise.check(advice, X, queries=fresh[:200])
    assert "queries among 900 of 900 rows" in asked.about
    other = np.random.default_rng(5).normal(size=(900, 40))
    broken = dimadvise.check(advice, other)
    assert not broken.holds and "advise anew" in str(broken)
    with pytest.raises(InputError, match="has 8 numbers a row, the advice was on 40"):
        dimadvise.check(advice, other[:, :8])


@pytest.mark.parametrize(
    ("value", "high", "verdict"),
    [(0.95, 0.96, "holds"), (0.94, 0.955, "in doubt"), (0.9, 0.92, "broken")],
)
def test_a_promise_is_broken_where_it_is_surely_missed(value, high, verdict):
    found = dimadvise.Check("recall@10", 0.95, Interval(value, 0.8, high), 0.1, "all")
    assert found.verdict == verdict and found.holds == (verdict != "broken")


def test_check_is_a_command_for_a_nightly_job(X, advice, tmp_path, monkeypatch, capsys):
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "other.npy", np.random.default_rng(5).normal(size=(900, 40)))
    advice.save(tmp_path / "out")
    cases = (
        ("X.npy", "out", 0, "The promise holds"),
        ("other.npy", "out", 1, "The promise is broken"),
        ("X.npy", "", 2, "expected a folder that"),
    )
    for name, folder, code, words in cases:
        given = ["check", tmp_path / name, "--advice", tmp_path / folder]
        monkeypatch.setattr("sys.argv", ["dimadvise", *map(str, given)])
        with pytest.raises(SystemExit) as stopped:
            command()
        said = capsys.readouterr()
        assert stopped.value.code == code and words in said.out + said.err


def test_two_answers_are_told_what_memory_holds_alone_and_what_re_scoring_saves(X, advice):
    other = advice.other_answer
    assert other["rerank"] == 4 and other["bytes"] < advice.answer["bytes"]
    (told,) = two_answers(advice.findings)
    assert told.startswith(f"In memory alone: {advice.answer['bytes']} bytes")
    assert f"Re-scored: {other['bytes']} bytes" in told and "160 bytes each" in told
    assert "the first 40 found" in told and "--depth 4" in told
    deep = dimadvise.advise(X, recall=0.9, depth=4, **FEW)
    assert deep.answer["bytes"] == other["bytes"] and deep.deployment.rerank == 4
    assert two_answers(deep.findings)[0].startswith("In memory alone:")
    same = replace(
        advice.findings, other_row=int(advice.options.index[advice.options["answer"]][0])
    )
    assert not two_answers(same), "nothing is saved"


def test_recall_is_projected_to_the_owners_number_with_its_error(X, advice):
    many = dimadvise.advise(X, recall=0.9, rows_total=10**7, **FEW)
    assert many.answer["bytes"] >= advice.answer["bytes"]
    assert many.answer["expected@10"] < many.answer["recall@10"]
    told = str(many)
    assert "Among 10,000,000 vectors recall@10 is projected to be" in told
    assert "such a law was off by" in told and "no measurement" in told
    assert "Further than a tenfold its error is not known" in told
    assert "projected" not in str(advice)


def test_what_keeps_its_vectors_has_no_codes_and_a_job_may_fail_by_it(tmp_path, repro):
    X = np.random.default_rng(0).normal(size=(300, 8))
    kept = dimadvise.advise(X, recall=0.999, dims=(8, 6), levels=("int4",), methods=("svd",))
    assert kept.answer["keep"] and kept.deployment is None
    with pytest.raises(InputError, match="There is no map"):
        kept.codes(X)
    np.save(tmp_path / "X.npy", X)
    given = ["advise", tmp_path / "X.npy", "--recall", 0.999, "--levels", "int4"]
    given += ["--methods", "svd", "--output", tmp_path / "out"]
    repro(*given)
    assert "Keep the vectors as they are" in repro(*given, "--fail-if-kept", ends=3).out


def test_importing_it_brings_neither_pandas_nor_torch(python):
    heavy = ("torch", "pandas", "scipy", "sklearn", "pyarrow")
    ran = python(f"import sys, dimadvise; print([name for name in {heavy} if name in sys.modules])")
    assert ran.stdout.strip() == "[]", ran.stderr


def test_the_code_of_the_readme_runs_as_it_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    readme = files("dimadvise").joinpath("README.md").read_text(encoding="utf-8")
    code = readme.split("```python\n")[1].partition("```")[0]
    given = {"X": rows(300)[:, :16], "X_of_today": rows(600)[300:, :16]}
    exec(code, given)
    assert given["again"].holds and len(given["codes"]) == 300
    assert (tmp_path / "advice" / "report.html").exists()
