"""The advisor from Python and `dimadvise check`: what it takes, gives and writes, and whether a
promise still holds.
"""

import json
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from importlib.resources import files
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import spearmanr

import dimadvise
from deployment import rows
from dimadvise import inputs
from dimadvise.again import Stored
from dimadvise.deploy import read
from dimadvise.findings import two_answers
from dimadvise.inputs import case_of
from dimadvise.stores import STORES
from dimadvise.vectors import in_memory
from repro.cli import dimadvise as command
from repro.evaluation.stats import Interval
from repro.locks import locked
from repro.types import InputError, unit_rows

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


def test_labels_judge_float16_where_a_store_has_no_byte(X):
    labels = np.where(X[:200, 0] > 0, "up", "down").tolist()
    given = {"methods": ("truncate",), "dims": (40, 20), "labels": labels}
    pgvector = dimadvise.advise(X[:200], store="pgvector", **given)
    assert set(pgvector.findings.shares["level"]) == {"float32", "float16", "binary"}
    usearch = dimadvise.advise(X[:200], store="usearch", **given)
    assert set(usearch.findings.shares["level"]) == {"float32", "int8", "binary"}


def test_what_labels_chose_for_a_store_is_coded_and_judged_as_it_compares(X, tmp_path):
    """Recall of numbers of eight bits by themselves is the recall that is told."""
    unit = unit_rows(X)
    pairs = [(a, a + 1, unit[a] @ unit[a + 1]) for a in range(len(X) - 1)]
    (tmp_path / "pairs.tsv").write_text(
        "row1\trow2\tscore\n" + "".join(f"{a}\t{b}\t{score}\n" for a, b, score in pairs)
    )
    given = {"methods": ("pca",), "levels": ("int8",), "dims": (24,), "retain": 0.5}
    advice = dimadvise.advise(X, pairs=tmp_path / "pairs.tsv", store="usearch", **given)
    codes = advice.codes(X).astype(np.float64)
    assert advice.codes(X).dtype == np.int8
    nearest = []
    for rows_compared in (unit, unit_rows(codes)):
        cosines = rows_compared @ rows_compared.T - 2 * np.eye(len(X))
        nearest.append(np.argsort(-cosines, axis=1)[:, :10])
    kept = np.mean([np.isin(*pair).mean() for pair in zip(*nearest, strict=True)])
    assert kept == pytest.approx(advice.answer["recall@10"], abs=0.03)
    first, second = unit_rows(codes[:-1]), unit_rows(codes[1:])
    grades = [score for _, _, score in pairs]
    share = spearmanr((first * second).sum(1), grades).statistic
    assert share == pytest.approx(advice.answer["share"], abs=0.01)


def test_no_way_is_advised_that_the_store_does_not_hold(monkeypatch):
    monkeypatch.setitem(STORES["pgvector"], "limits", {"float32": 20, "float16": 30, "binary": 40})
    X = rows(400)
    labels = np.where(X[:, 39] > X[:, 39].mean(), "up", "down").tolist()
    given = {"methods": ("truncate",), "dims": (28, 10), "labels": labels, "bytes": 8000}
    advice = dimadvise.advise(X, store="pgvector", **given)
    tried = set(advice.findings.shares[["dim", "level"]].itertuples(index=False, name=None))
    assert (advice.answer["dim"], advice.answer["level"]) in tried
    expected = {"float32": (10,), "float16": (28, 10), "binary": (40, 28, 10)}
    assert tried == {(dim, level) for level, dims in expected.items() for dim in dims}


@pytest.mark.parametrize("similarity", ["ip", "l2"])
def test_a_score_of_cosines_is_not_told_of_a_store_that_ranks_by_lengths_too(X, judged, similarity):
    with pytest.raises(InputError, match=f"similarity is {similarity}: ndcg@10 is judged by cos"):
        dimadvise.advise(X[:200], X[:40], qrels=judged, similarity=similarity, **PLAIN)


@pytest.mark.parametrize("level", ["float32", "float16"])
def test_a_classifier_judges_rows_of_one_length_where_such_are_stored(level):
    """Classes differ in length alone, of which cosines leave nothing."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 400)
    X = (rng.normal(size=(400, 20)) + 3) * (1 + labels[:, None])
    given = {"methods": ("truncate",), "levels": (level,), "dims": (20, 10), "retain": 0.8}
    given["labels"] = labels.astype(str).tolist()
    by_distance = dimadvise.advise(X, **given)
    assert by_distance.findings.shares["share"].min() > 0.9
    by_cosine = dimadvise.advise(X, similarity="cosine", **given)
    assert by_cosine.findings.shares["share"].max() < 0.7


def test_of_two_saved_in_one_folder_at_once_the_second_waits(advice, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    with ThreadPoolExecutor(1) as pool:
        with locked(out / ".advice.lock"):
            saving = pool.submit(advice.save, out)
            wait([saving], timeout=0.5)
            assert not saving.done() and not list(out.glob("re*"))
        assert all(path.exists() for path in saving.result())


@pytest.mark.filterwarnings("error")
def test_queries_that_are_zero_but_for_one_keep_what_that_one_keeps(X):
    asked = np.zeros((40, 40), np.float32)
    asked[:, -1] = np.arange(40) < 8
    found = dimadvise.advise(X, asked, recall=0.9, **FEW).findings
    assert any("sampled queries are zero" in note for note in found.notes)


def test_files_arrays_and_requests_are_advised_alike(X, advice, tmp_path):
    np.save(tmp_path / "X.npy", X)
    by_path = dimadvise.advise(str(tmp_path / "X.npy"), recall=0.9, **FEW)
    request = dimadvise.Request(tmp_path / "X.npy", recall=0.9, **FEW)
    for other in (by_path, dimadvise.advise(request)):
        assert other.answer == advice.answer


@pytest.mark.parametrize("role", ["vectors", "queries"])
@pytest.mark.parametrize("asked", ["advise", "check"])
def test_what_was_found_of_old_rows_and_new_is_refused(
    X, advice, tmp_path, monkeypatch, asked, role
):
    paths = {name: tmp_path / f"{name}.npy" for name in ("vectors", "queries")}
    for path in paths.values():
        np.save(path, X)
    module, name = {"advise": ("answer", "answered"), "check": ("again", "checked")}[asked]
    first = [] if asked == "advise" else [advice]
    function = getattr(dimadvise, asked)

    def found(*_):
        if written:
            np.save(written.pop(), X[::-1])
        return "found"

    monkeypatch.setattr(f"dimadvise.{module}.{name}", found)
    written = [paths[role]]
    with pytest.raises(InputError, match=rf"{role}\.npy was written to while it was read: give"):
        function(*first, paths["vectors"], paths["queries"])
    assert function(*first, paths["vectors"], paths["queries"]) == "found"


def test_labels_that_are_written_to_while_they_are_read_are_refused(X, tmp_path, monkeypatch):
    """Rows of before and of after would be judged as one table."""
    vectors, labels = tmp_path / "X.npy", tmp_path / "labels.txt"
    np.save(vectors, X)
    labels.write_text("a\nb\n" * (len(X) // 2))
    classed = inputs.classed

    def written_to(*given):
        evidence = classed(*given)
        labels.write_text("b\na\n" * (len(X) // 2))
        return evidence

    monkeypatch.setattr(inputs, "classed", written_to)
    monkeypatch.setattr("dimadvise.answer.answered", lambda *_: "answered")
    with pytest.raises(InputError, match=r"labels\.txt was written to while it was read"):
        dimadvise.advise(vectors, labels=labels)
    monkeypatch.setattr(inputs, "classed", classed)
    assert dimadvise.advise(vectors, labels=labels) == "answered"


def test_labels_of_a_table_that_names_rows_are_in_the_order_of_the_vectors(tmp_path):
    X, labels = rows(60), ["up", "down"] * 30
    ids = [f"doc{row}" for row in range(60)]
    vectors = tmp_path / "X.parquet"
    pq.write_table(pa.table({"id": ids, "vector": X.tolist()}), vectors)

    def given(names):
        lines = [f"{name}\t{label}\n" for name, label in zip(names, labels, strict=True)]
        table = tmp_path / "labels.tsv"
        table.write_text("".join(["docid\tlabel\n", *lines]))
        return case_of(dimadvise.Request(vectors), vectors, labels=table).evidence

    assert list(given(ids).labels) == labels
    # Names of others tell nothing of the order.
    assert list(given(range(60)).labels) == labels
    with pytest.raises(InputError, match=r"labels.tsv names row 0 'doc59', .* names it 'doc0'"):
        given(ids[::-1])


@pytest.mark.parametrize("form", ["", "X.parquet", "X.jsonl"])
@pytest.mark.parametrize("column", ["row", "id"])
def test_labels_that_count_their_rows_in_another_order_are_refused(tmp_path, column, form):
    """Whatever form the vectors have, which do not name their rows."""
    table, labels, X = tmp_path / "labels.csv", ["up", "down"] * 30, rows(60)
    pq.write_table(pa.table({"vector": X.tolist()}), tmp_path / "X.parquet")
    (tmp_path / "X.jsonl").write_text("".join(f"{row}\n" for row in X.tolist()))
    vectors = tmp_path / form if form else X

    def given(numbers):
        lines = [f"{number},{label}\n" for number, label in zip(numbers, labels, strict=True)]
        table.write_text("".join([f"{column},label\n", *lines]))
        return list(case_of(dimadvise.Request(), vectors, labels=table).evidence.labels)

    for in_order in (range(60), range(1, 61), range(0, 120, 2), [7] * 60):
        assert given(in_order) == labels
    for first in (0, 1):
        with pytest.raises(InputError, match=rf"row 0 '{first + 59}', .* '{first}': bring the"):
            given(range(first + 59, first - 1, -1))


def test_labels_as_an_array_in_a_file_are_told_their_way_out(tmp_path):
    np.save(tmp_path / "labels.npy", np.arange(60))
    with pytest.raises(InputError, match=r"from a table or a text, np\.savetxt\('labels\.txt'"):
        case_of(dimadvise.Request(), rows(60), labels=tmp_path / "labels.npy")


@pytest.mark.parametrize(
    "missing",
    [None, float("nan"), pd.NA, pd.NaT, np.ma.masked],
    ids=["None", "nan", "NA", "NaT", "masked"],
)
def test_a_label_that_is_missing_is_no_class(missing):
    labels = ["up", "down"] * 30
    with pytest.raises(InputError, match="labels: row 7 has none"):
        case_of(dimadvise.Request(), rows(60), labels=[*labels[:7], missing, *labels[8:]])
    with pytest.raises(
        InputError, match=r"labels has shape \(60, 2\): expected one label for each"
    ):
        case_of(dimadvise.Request(), rows(60), labels=np.eye(2)[[0, 1] * 30])


def test_labels_are_given_as_they_are_and_their_promise_is_measured_again(tmp_path):
    X = rows(800)
    labels = np.where(X[:, 0] > X[:, 0].mean(), "up", "down")
    found = dimadvise.advise(X[:400], labels=list(labels[:400]), retain=0.95, **PLAIN)
    assert found.note["promised"]["metric"] == "accuracy"
    found.save(tmp_path / "out")
    again = dimadvise.check(tmp_path / "out", X[400:], labels=labels[400:])
    assert again.what == "share of the accuracy that is kept" and again.promised == 0.95
    assert not again.broken and again.measured.low <= again.measured.value
    shuffled = dimadvise.check(found, X[400:, ::-1], labels=labels[400:])
    assert shuffled.broken and shuffled.verdict == "broken"
    with pytest.raises(InputError, match="these labels tell of accuracy"):
        dimadvise.check(dimadvise.advise(X[:300], recall=0.8, **FEW), X, labels=labels)


def test_a_promise_holds_of_new_vectors_and_is_broken_by_others(X, advice):
    fresh = rows(1800)[900:]
    found = dimadvise.check(advice, fresh)
    assert found.promised == 0.9 and found.verdict == "holds" and "promise holds" in str(found)
    assert 0 <= found.tail < 0.1 and found.about == "180 queries among 900 of 900 rows"
    asked = dimadvise.check(advice, X, queries=fresh[:200])
    assert "queries among 900 of 900 rows" in asked.about
    other = np.random.default_rng(5).normal(size=(900, 40))
    broken = dimadvise.check(advice, other)
    assert broken.broken and "advise anew" in str(broken)
    with pytest.raises(InputError, match="has 8 numbers a row, the advice was on 40"):
        dimadvise.check(advice, other[:, :8])


@pytest.mark.parametrize(
    ("value", "high", "verdict"),
    [
        (0.95, 0.96, "holds"),
        (0.94, 0.955, "in doubt"),
        (0.9, 0.92, "broken"),
        (0.9, np.nan, "in doubt"),
    ],
)
def test_a_promise_is_broken_where_it_is_surely_missed(value, high, verdict):
    found = dimadvise.Check("recall@10", 0.95, Interval(value, 0.8, high), 0.1, "all")
    assert found.verdict == verdict and found.broken == (verdict == "broken")


def test_among_fewer_rows_than_promised_it_is_said_that_more_is_found(X, advice):
    fewer = dimadvise.check(advice, X, sample=300)
    words = "among 300 of 900 rows; promised among 900, and among fewer more is found"
    assert fewer.about.endswith(words) and words in str(fewer)
    assert "promised among" not in dimadvise.check(advice, X).about
    more = dimadvise.check(advice, np.concatenate([X, X + 1]))
    assert "among 1,800 of 1,800 rows; promised among 900, and among more less" in more.about


def test_an_option_that_would_be_dropped_is_refused(X, advice):
    request = dimadvise.Request(recall=0.9)
    for more in ({"recall": 0.8}, {"queries": X}, {"labels": ["a"] * 900}):
        (name,) = more
        with pytest.raises(InputError, match=f"{name} beside a whole request: set it in"):
            dimadvise.advise(request, **more)
    for more in ({"column": "v"}, {"queries": X, "queries_column": "v"}):
        with pytest.raises(
            InputError, match=r"column belongs to a file of \w+, which is not given"
        ):
            dimadvise.advise(X, **more)
    with pytest.raises(InputError, match="unknown option 'output'"):
        dimadvise.advise(X, output="there")
    with pytest.raises(InputError, match="unknown option 'depth': choose one of pairs, qrels"):
        dimadvise.check(advice, X, depth=4)


@pytest.fixture
def judged(X, tmp_path):
    """The path, as text, of a table in which each of 40 queries has its document."""
    lines = [f"{row}\t{row}\t1\n" for row in range(40)]
    (tmp_path / "qrels.tsv").write_text("query\tdocument\trelevance\n" + "".join(lines))
    return str(tmp_path / "qrels.tsv")


def test_bytes_are_compared_with_those_of_the_file_though_relevant_documents_judge(X, judged):
    """The documents are of two bytes a number, the queries of four."""
    short = X[:200].astype(np.float16)
    ways = {**PLAIN, "levels": ("int8",)}
    for target in ({"recall": 0.5}, {"bytes": 79}):
        found = dimadvise.advise(short, X[:40], qrels=judged, **target, **ways)
        assert found.findings.kind == "float16" and found.findings.full_bytes == 80
        assert "instead of 80" in found.answer["said"]


def test_a_share_is_measured_again_without_documents_read_for_recall(X, judged, monkeypatch):
    found = dimadvise.advise(X[:200], X[:40], qrels=judged, retain=0.9, **PLAIN)
    monkeypatch.setattr("dimadvise.inputs.Case.searched", None)
    again = dimadvise.check(found, X[:200], queries=X[:40], qrels=judged)
    assert again.what == "share of the nDCG@10 that is kept" and not again.broken


def test_the_rows_of_folds_are_coded_once(X):
    coded = []

    def stored(rows):
        coded.append(len(rows))
        return rows[:, :3]

    deployment = SimpleNamespace(transform=SimpleNamespace(dim=3), stored=stored, queries=stored)
    known, rows = Stored(deployment, in_memory(X)), np.arange(9)
    for fold in range(5):
        full, short = known.at_sizes(rows, (fold,))
        assert full.shape == (9, 40) and short.shape == (9, 3)
    assert coded == [9]
    sides = zip(known.at_sizes(rows), known.at_sizes(rows[:4]), strict=True)
    assert [(len(one), len(other)) for one, other in sides] == [(9, 4)] * 2
    list(known.at_sizes(rows[:4], asked=True))
    assert coded == [9, 4, 4], "queries are coded in their own way"


def test_what_cannot_be_projected_is_said_beside_the_vectors_that_are_kept(X):
    found = dimadvise.advise(X[:300], recall=0.5, depth=50, rows_total=10**6, **FEW)
    assert found.answer["keep"]
    assert "To 1,000,000 vectors recall@10 cannot be projected: 300 are too few." in str(found)


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


def test_check_knows_columns_by_the_names_that_advise_does(X, tmp_path, monkeypatch):
    np.savez(tmp_path / "two.npz", a=X[:300], b=X[:60])
    lines = [f"{row}\t{row}\t1\n" for row in range(60)]
    (tmp_path / "named.tsv").write_text("Q\tdocument\trelevance\n" + "".join(lines))
    names = {"qrels": tmp_path / "named.tsv", "columns": ("query=Q",)}
    found = dimadvise.advise(X[:300], X[:60], retain=0.9, **names, **PLAIN)
    found.save(tmp_path / "out")
    monkeypatch.chdir(tmp_path)
    given = "check two.npz --queries two.npz --qrels named.tsv --advice out"
    given += " --column a --queries-column b --columns query=Q"
    monkeypatch.setattr("sys.argv", ["dimadvise", *given.split()])
    with pytest.raises(SystemExit) as stopped:
        command()
    assert not stopped.value.code


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
    assert "points (root mean square), by" in told
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
    assert not given["again"].broken and len(given["codes"]) == 300
    assert (tmp_path / "advice" / "report.html").exists()


def test_an_encoder_that_gives_every_text_one_vector_keeps_no_promise(X, advice):
    for row in (np.zeros(40), np.ones(40), X[5]):
        with pytest.raises(InputError, match="all 300 embeddings are equal"):
            dimadvise.check(advice, np.tile(row, (300, 1)).astype(np.float32))


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("dims", 16, "dims is 16: expected several whole numbers"),
        ("dims", [16.5], "dims is 16.5: expected a whole number"),
        ("recall", "0.9", "recall is '0.9': expected a share"),
        ("recall", True, "recall is True: expected a share"),
        ("bytes", "96", "bytes is '96': expected a whole number"),
        ("depth", 4.5, "depth is 4.5: expected a whole number"),
        ("rows_total", 10**400, "expected a number below 2**63"),
        ("sample", "200", "sample is '200': expected a whole number"),
        ("seed", None, "seed is None: expected a whole number"),
        ("levels", "int8", "levels is 'int8': expected several names"),
    ],
)
def test_options_of_another_kind_are_refused_in_a_sentence(X, option, value, said):
    with pytest.raises(InputError) as refused:
        dimadvise.advise(X, **{option: value})
    assert said in str(refused.value)


def test_arrays_and_numbers_of_numpy_are_options_too(X):
    options = {"dims": np.array([24, 40]), "recall": np.float32(0.9), "sample": np.int64(400)}
    assert dimadvise.advise(X, methods=["svd"], levels=["int8"], **options).answer["bytes"]


def test_a_column_of_ids_is_not_taken_for_a_number_of_the_vectors():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(120, 4))).assign(ID=range(120))
    with pytest.raises(InputError, match="column 'ID' of vectors names rows"):
        dimadvise.advise(frame)


@pytest.mark.parametrize("name", ["pairs", "qrels"])
def test_a_table_is_given_by_its_path(name):
    with pytest.raises(InputError, match=f"{name} is a list: expected the path of a table"):
        dimadvise.advise(np.eye(120), **{name: [(0, 1, 0.5)]})
