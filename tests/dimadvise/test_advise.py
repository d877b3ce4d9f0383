import json
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from deployment import advised
from dimadvise.advisor import advise
from dimadvise.bounds import share_bounds, spearman_influence
from dimadvise.candidates import Candidate, most_kept, smallest, why_none
from dimadvise.coding import Deployment
from dimadvise.deploy import read_linear, write
from dimadvise.evidence import Classes, Pairs, Search
from dimadvise.inputs import case_of, from_encoder
from dimadvise.request import Request
from dimadvise.transform import TURNED, Transform, fit_transform_of, moments_of, unchanged
from dimadvise.unseen import FoldMoments, Shortened
from dimadvise.vectors import in_memory
from dimadvise.ways import fitted
from repro import data
from repro.cli import dimadvise
from repro.reducers import PCA, make_reducer
from repro.types import InputError, unit_rows


def cloud(n=900, seed=0):
    """Embeddings of 32 numbers that use six directions, turned, with a little noise in all."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(32, 32)))[0]
    X = np.concatenate([rng.normal(size=(n, 6)), 0.02 * rng.normal(size=(n, 26))], axis=1)
    return (X @ turn).astype(np.float32)


def graded(X):
    rng = np.random.default_rng(1)
    first, second = rng.integers(0, len(X), (2, 400))
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    return Pairs(first, second, (unit[first] * unit[second]).sum(1) + 0.1 * rng.normal(size=400))


def test_the_answer_is_the_number_of_directions_that_are_used():
    X = cloud()
    advice = advised({None: X}, evidence=graded(X), dims=[32, 16, 12, 8, 6, 4, 2])
    assert advice.answer is not None and (advice.answer.method, advice.answer.dim) == ("svd", 6)
    assert advice.answer.low >= advice.retain == 0.99
    assert advice.confidence == pytest.approx(1 - 0.05 / 3)
    assert (
        advice.transform is not None
        and advice.transform.matrix.shape == (32, 6)
        and advice.rows == 900
    )
    shares = advice.shares_of(None)
    assert shares is not None and set(shares["level"]) == {"float32"} and "layer" not in shares
    assert shares.set_index(["method", "dim"]).loc[("svd", 6), "low"] == advice.answer.low
    assert 5 < advice.ratio < 6.5
    below = [c for c in advice.candidates if c.method == "pca" and c.dim < 6]
    assert all(c.low < 0.99 for c in below)


def test_unrelated_embeddings_share_no_neighbours():
    A, B = np.random.default_rng(0).normal(size=(2, 400, 16))
    found = advised({1: A, 2: B}, dims=[16])
    kept = {c.layer: c.neighbours for c in found.candidates if c.method == "truncate"}
    # By chance 10 of 399; a row is no neighbour of its own
    assert kept[2] == 1.0 and kept[1] < 0.06


def test_ten_neighbours_are_compared_under_maps_that_have_not_seen_who_asks():
    X = np.random.default_rng(0).normal(size=(50, 48))
    sizes = [48, 40, 33, 27, 21, 16, 12, 9, 6]
    found = advised({None: X}, dims=sizes, methods=("svd", "truncate"))
    kept = {(c.method, c.dim): c.neighbours for c in found.candidates}
    assert kept["truncate", 48] == 1
    assert kept["svd", 48] < 0.95, "48 directions of all 50 rows would keep everything"
    tenths = np.array(list(kept.values())) * 100  # Ten of the rows ask, for ten each
    np.testing.assert_allclose(tenths, np.round(tenths))


def test_queries_and_documents_of_files_are_told_apart(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
    lines = [f"{query}\t{59 - query}\t1" for query in range(40)]
    (tmp_path / "qrels.tsv").write_text("\n".join(["query\tdocument\trelevance", *lines]) + "\n")
    turned = 3 * X[::-1][:40]  # The first query is the last document
    case = case_of(Request(qrels=tmp_path / "qrels.tsv"), X, turned)
    assert case.evidence.queries.tolist() == list(range(60, 100))
    assert scores(case.evidence, case.versions[None]) == 1


def scores(evidence, X):
    """Scores of the matrix as it is."""
    return advised({None: X}, evidence=evidence, methods=("truncate",), dims=[X.shape[1]]).reference


def test_labels_that_say_nothing_cannot_be_learnt_and_the_unit_of_embeddings_plays_no_part():
    rng = np.random.default_rng(0)
    evidence = Classes(np.arange(200), rng.choice(["a", "b"], 200))
    assert 0.35 < scores(evidence, rng.normal(size=(200, 64))) < 0.65
    X = np.random.default_rng(0).normal(size=(200, 8))
    evidence = Classes(np.arange(200), np.where(X[:, 0] + X[:, 1] > 0.4, "up", "down"))
    assert scores(evidence, X) == scores(evidence, 1e-4 * X) > 0.9


def test_row_lengths_that_no_cosine_sees_change_no_answer():
    """And without labels, where the answer is a prediction."""
    X, lengths = (
        cloud(),
        np.random.default_rng(3).uniform(0.1, 10, size=(900, 1)).astype(np.float32),
    )
    for evidence in (graded(X), None):
        found = [
            advised({None: Y}, evidence=evidence, dims=[32, 8, 6, 4]) for Y in (X, lengths * X)
        ]
        assert (
            found[0].transform.unit
            and found[0].answer is not None
            and found[0].answer.dim == found[1].answer.dim
        )
        assert bool(found[0].predicted) == (evidence is None) and found[0].answer.dim <= 8
        name = "share" if evidence else "expected"
        one, other = ([(getattr(c, name), c.neighbours) for c in each.candidates] for each in found)
        np.testing.assert_allclose(one, other, atol=2e-3)


def test_embeddings_of_ones_own_need_no_torch(python, tmp_path):
    X = cloud(300)
    np.save(tmp_path / "X.npy", X)
    arguments = [
        "advise",
        str(tmp_path / "X.npy"),
        "--recall",
        "0.5",
        "--output",
        str(tmp_path / "out"),
    ]
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
    ran = python(said)
    assert ran.returncode == 0 and (tmp_path / "out" / "reducer.safetensors").is_file(), ran.stderr


def test_a_document_at_the_second_place_counts_by_its_discount():
    unit = np.eye(40)
    documents = np.concatenate([np.hstack([unit, 0 * unit]), np.hstack([unit, 0.1 * unit])])
    found = Search(np.arange(80, 120), np.arange(80), {i: {40 + i: 1.0} for i in range(40)})
    assert scores(found, np.concatenate([documents, documents[:40]])) == pytest.approx(
        1 / np.log2(3)
    )


def test_the_items_that_would_do_follow_from_the_width_of_the_bound():
    close = Candidate(None, "pca", 8, 1.0, 1.0, share=0.995, low=0.985)
    said = why_none([close], 16, 0.99, Pairs(np.arange(100), np.arange(100), np.arange(100.0)))
    # Half as wide
    assert "100 labelled items are too few" in said and "about 400 items would do" in said


@pytest.mark.parametrize("method", ["truncate", "random", "svd", "pca-rotated"])
def test_every_map_may_answer_with_values_of_its_own(tmp_path, method):
    X = write_graded(tmp_path)
    wanted = {"retain": 0.2, "dims": [24], "levels": ["lloyd4"], "methods": [method]}
    found = advise(X, pairs=tmp_path / "pairs.tsv", **wanted)
    turned = TURNED if method.startswith(("svd", "pca")) else ""
    assert found.answer["method"] == method.removesuffix(TURNED) + turned
    assert found.answer["level"] == "lloyd4" and found.codes(X).shape == (len(X), 12)


def test_a_shallower_layer_may_win_only_by_its_bound():
    X = cloud()
    worse = (X + 0.6 * np.random.default_rng(5).normal(size=X.shape)).astype(np.float32)
    found = advised({3: worse, 6: X}, evidence=graded(X), dims=[32, 8, 6])
    assert (
        found.answer is not None
        and found.answer.layer == 6
        and found.confidence == pytest.approx(1 - 0.05 / 6)
    )
    found = advised({3: X[:, ::-1], 6: X}, evidence=graded(X), dims=[32, 8, 6])
    assert found.answer is not None and found.answer.layer == 3  # As good and cheaper
    low = (
        found.shares_of(3)
        .set_index(["method", "dim"])
        .loc[(found.answer.method, found.answer.dim), "low"]
    )
    assert low == found.answer.low != found.shares_of(6)["low"].max(), "of this layer"
    # A size passes by its bound, not by its share
    found = [
        Candidate(None, "pca", dim, 1.0, 1.0, share=1.0, low=low)
        for dim, low in ((8, 0.99), (4, 0.98))
    ]
    answer = smallest(found, 16, None, 0.985, labelled=True)
    assert answer is not None and answer.dim == 8


def test_an_exported_reducer_is_read_as_it_was_written(tmp_path):
    with pytest.raises(InputError, match="expected a folder that `dimadvise advise` wrote"):
        read_linear(tmp_path)
    for name in ("pca", "svd"):
        reducer = make_reducer(name, 5).fit(cloud(200))
        bias = -reducer.components_ @ reducer.mean_ if name == "pca" else np.zeros(5)
        write(
            tmp_path / name,
            Deployment(Transform(name, 5, reducer.components_.T, bias, unit=False), "ip"),
        )
        for found, written in zip(
            read_linear(tmp_path / name),
            (reducer.components_.T, bias),
            strict=True,
        ):
            np.testing.assert_array_equal(found, written.astype(np.float32))
        assert json.loads((tmp_path / name / "reducer.json").read_text())["dim"] == 5
    tensors = tmp_path / "pca" / "reducer.safetensors"
    tensors.write_bytes((tmp_path / "svd" / "reducer.safetensors").read_bytes())
    with pytest.raises(InputError, match="has changed since it was written, or belongs to another"):
        read_linear(tmp_path / "pca")


def test_a_strangers_file_is_not_written_over_and_an_earlier_advice_leaves_no_reducer(
    tmp_path,
    repro,
):
    np.save(tmp_path / "X.npy", cloud(200))
    np.save(
        tmp_path / "full.npy",
        np.random.default_rng(0).normal(size=(200, 8)).astype(np.float32),
    )
    (tmp_path / "report.html").write_text("a stranger's")
    refused = repro("advise", tmp_path / "X.npy", "--output", tmp_path, ends=2)
    assert (
        "report.html was written by no advice, or has changed since: move it away or give another"
        in refused.err
    )
    assert (tmp_path / "report.html").read_text() == "a stranger's"
    for content in ("[" * 100_000, '["answer", "options", "target"]', '{"answer": 1}'):
        (tmp_path / "report.json").write_text(content)
        refused = repro("advise", tmp_path / "X.npy", "--output", tmp_path, ends=2)
        assert "report.json was written by no advice" in refused.err
        assert (tmp_path / "report.json").read_text() == content
    out = tmp_path / "out"
    for name, recall, chosen in (("X", 0.5, True), ("full", 0.999, False)):
        more = ["--dims", 6, 4, "--recall", recall]
        said = repro("advise", tmp_path / f"{name}.npy", "--output", out, *more)
        assert ("Keep the vectors as they are" not in said.out) == chosen
        assert (out / "reducer.safetensors").exists() == (out / "reducer.json").exists() == chosen
    for name in ("report.html", "report.json"):
        before = (out / name).read_text()
        (out / name).write_text(before.replace("answer", "answered", 1) + "<!-- mine -->")
        refused = repro("advise", tmp_path / "X.npy", "--output", out, ends=2)
        assert f"{name}" in refused.err and "changed since" in refused.err
        assert (out / name).read_text() != before, "what was edited stays"
        (out / name).write_text(before)


def test_no_map_has_seen_what_it_is_judged_by():
    X, (first, second) = cloud(60), np.random.default_rng(2).permutation(60).reshape(2, 30)
    pairs = Pairs(first, second, np.arange(30.0))
    vectors = in_memory(np.concatenate([X, cloud(20, seed=5)]))
    folds = pairs.folds(vectors, seed=0)
    assert (folds.fold_of(first) == folds.fold_of(second)).all(), (
        "both rows of a pair lie in one fold"
    )
    moments = FoldMoments(vectors, folds.rows, folds.fold, unit=False)
    shortened = Shortened("pca", moments, pairs.splits(folds), [4])
    for fold in range(5):
        others = vectors.take(
            np.flatnonzero(~np.isin(np.arange(80), folds.rows[folds.fold == fold]))
        )
        assert len(others) == 68
        alone = fit_transform_of("pca", moments_of([others], unit=False), 4, unit=False)
        np.testing.assert_allclose(shortened.maps[fold,].matrix, alone.matrix, atol=1e-4)
    whole = PCA(4).fit(vectors.take(range(80)))
    assert np.allclose(shortened.transform.bias, whole.transform(np.zeros((1, 32))), atol=1e-4)


def test_pairs_of_rows_that_are_all_linked_are_judged_by_maps_that_have_seen_neither():
    first, second = np.triu_indices(12, 1)
    pairs = Pairs(first, second, np.arange(66.0))
    folds = pairs.folds(in_memory(cloud(12)), seed=0)
    assert np.ptp(np.bincount(folds.fold)) <= 1 and {
        len(split) for split in pairs.splits(folds)
    } == {1, 2}
    repeated = np.concatenate([cloud(40)] * 2)
    folds = Pairs(np.arange(40), np.arange(1, 41), np.arange(40.0)).folds(
        in_memory(repeated),
        seed=0,
    )
    assert folds.fold_of(np.array([0])) == folds.fold_of(np.array([40])), (
        "equal vectors are one text"
    )


def test_folds_turn_with_the_seed_spread_classes_evenly_and_keep_equal_vectors_together():
    X, labels = cloud(100), np.repeat(["a", "b"], 50)
    vectors, order = in_memory(X), np.random.default_rng(0).permutation(100)
    evidence = [Pairs(order[:50], order[50:], np.arange(50.0)), Classes(order, labels[order])]
    for each in evidence:
        first, again, other = (each.folds(vectors, seed=seed).fold for seed in (1, 1, 2))
        assert (first == again).all() and (first != other).any()
    folds = evidence[1].folds(vectors, seed=0)
    by_class = [np.bincount(folds.fold_of(np.flatnonzero(labels == name))) for name in "ab"]
    assert (np.array(by_class) == 10).all()
    twice = in_memory(np.concatenate([X[:50], X[:50]]))
    folds = evidence[1].folds(twice, seed=0)
    assert (folds.fold_of(np.arange(50)) == folds.fold_of(np.arange(50, 100))).all()


def test_the_classifiers_penalty_is_the_one_that_served_best_on_folds_it_had_not_seen(monkeypatch):
    """What overfits serves best where it was learnt, and what learns nothing nowhere."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 150)
    X = np.column_stack([y + 0.6 * rng.normal(size=150), 0.6 * rng.normal(size=(150, 60))])
    labels = Classes(np.arange(150), np.where(y, "up", "down"))

    def reached(*penalties):
        monkeypatch.setattr("dimadvise.evidence.PENALTIES", np.array(penalties))
        return scores(labels, X)

    fitting, strong, loose = reached(1.0), reached(1e-6), reached(1e6)
    assert fitting > max(strong, loose) + 0.05
    assert reached(1e-6, 1.0, 1e6) == reached(1e6, 1.0, 1e-6) == fitting


def test_pairs_are_bounded_as_items_that_share_rows():
    rng, (first, second) = np.random.default_rng(5), np.triu_indices(12, 1)
    rows, grades = rng.normal(size=12), rng.normal(size=66)
    reference = grades + 0.3 * rng.normal(size=66)
    found = np.stack([reference, reference + rows[first] + rows[second]])
    pairs = Pairs(first, second, grades)
    folds = pairs.folds(in_memory(cloud(12)), seed=0)
    _, kept = pairs.bounds(found, folds, confidence=0.95)
    links = np.stack([first, second], axis=1)
    expected = share_bounds(spearman_influence(found, grades), links, confidence=0.95)
    np.testing.assert_array_equal(kept.low, expected.low)
    alone = share_bounds(spearman_influence(found, grades), np.arange(66)[:, None], confidence=0.95)
    assert kept.low[1] < alone.low[1]


def test_queries_are_fitted_by_no_map():
    X = cloud(100)
    search = Search(np.arange(60, 100), np.arange(60), {i: {i: 1.0} for i in range(40)})
    folds = search.folds(in_memory(X), seed=0)
    moments = FoldMoments(in_memory(X), folds.rows, folds.fold, unit=True)
    unit = X[:60] / np.linalg.norm(X[:60], axis=1, keepdims=True)
    assert moments.whole.rows == 60 and np.allclose(
        moments.whole.mean,
        unit.mean(axis=0),
        atol=1e-5,
    )


def test_an_encoder_brings_the_evidence_of_its_texts():
    encoder = SimpleNamespace(encode=lambda texts, progress: np.zeros((len(texts), 2), np.float32))
    case = from_encoder(encoder, Request(texts="stsb", source="microworld"))
    judged = data.load("stsb", split="test", source="microworld")
    assert isinstance(case.evidence, Pairs) and case.versions[None].shape == (2 * len(judged), 2)
    case = from_encoder(encoder, Request(texts="hotpotqa", source="microworld"))
    assert (
        isinstance(case.evidence, Search)
        and len(case.evidence.unfitted) == len(case.evidence.queries) > 0
    )


def test_pairs_of_equal_vectors_alone_have_nothing_to_rank_by():
    X = np.repeat(cloud(200), 2, axis=0)
    pairs = Pairs(np.arange(0, 400, 2), np.arange(1, 400, 2), np.arange(200.0))
    with pytest.raises(InputError, match="all 200 pairs have the cosine 1: nothing to rank by"):
        advised({None: X}, evidence=pairs, dims=[32, 8])


def write_graded(folder):
    """A cloud as X.npy, and grades of its pairs as pairs.tsv."""
    X = cloud(400)
    pairs = graded(X)
    np.save(folder / "X.npy", X)
    lines = ["row1\trow2\tscore"]
    for first, second, grade in zip(pairs.first, pairs.second, pairs.grades, strict=True):
        lines.append(f"{first}\t{second}\t{grade}")
    (folder / "pairs.tsv").write_text("\n".join(lines) + "\n")
    return X


def test_the_command_measures_and_writes(tmp_path, repro):
    write_graded(tmp_path)
    arguments = ["advise", tmp_path / "X.npy", "--pairs", tmp_path / "pairs.tsv", "--retain", 0.9]
    out = tmp_path / "out"
    said = repro(*arguments, "--output", out)
    assert "with 95 % confidence at least 90 %" in said.out
    assert said.err.startswith("measuring, "), "a log tells at once that work has begun"
    assert not repro(*arguments, "--output", out, "--quiet").err
    page, (matrix, bias) = (out / "report.html").read_text(), read_linear(out)
    assert (
        "data:image/svg+xml" in page
        and "<table" in page
        and "nan" not in page.lower().replace("financ", "")
    )
    said = json.loads((out / "report.json").read_text())
    assert said["target"] == ["retain", 0.9] and {row["method"] for row in said["shares"]} == {
        "truncate",
        *(f"{name}{turned}" for name in ("svd", "pca") for turned in ("", TURNED)),
    }
    assert matrix.shape == (32, len(bias))
    note = json.loads((out / "reducer.json").read_text())
    low, value, high = (note["promised"]["recall@10"][i] for i in (1, 0, 2))
    assert low <= value <= high and note["promised"]["corpus"] == 400 and note["unit_rows"]


def test_the_command_answers_each_kind_of_target_and_apply_does_what_it_says(
    tmp_path,
    repro,
    monkeypatch,
):
    monkeypatch.chdir(tmp_path)
    X = cloud(500)
    np.save("X.npy", X)
    np.save("Q.npy", cloud(40, seed=9))
    (tmp_path / "labels.txt").write_text(
        "".join(f"{label}\n" for label in np.where(X[:, 0] > 0, "up", "down"))
    )
    told = repro(
        "advise X.npy --queries Q.npy --bytes 8 --depth 3 --similarity ip --levels int8 binary"
    ).out
    assert "re-ranked by the full vectors" in told
    note = json.loads((tmp_path / "advice" / "reducer.json").read_text())
    assert (
        note["bytes"] <= 8
        and note["rerank"] == 3
        and note["similarity"] == "ip"
        and not note["unit_rows"]
    )
    monkeypatch.setattr(
        "sys.argv",
        ["dimadvise", "apply", "X.npy", "--rows-per-shard", "200", "--quiet"],
    )
    with pytest.raises(SystemExit) as stopped:
        dimadvise()
    codes = [np.load(path) for path in sorted((tmp_path / "vectors").glob("*.npy"))]
    assert (
        not stopped.value.code
        and sum(map(len, codes)) == 500
        and codes[0].nbytes == 200 * note["bytes"]
    )
    repro("advise X.npy --labels labels.txt --retain 0.8 --output by_labels --levels int8")
    note = json.loads((tmp_path / "by_labels" / "reducer.json").read_text())
    assert note["compared_by"] == "classifier" and not note["unit_rows"]
    repro("advise X.npy --similarity ip --retain 0.9 --output ip")
    assert not json.loads((tmp_path / "ip" / "reducer.json").read_text())["unit_rows"], (
        "lengths count there"
    )
    np.save("bytes.npy", (20 * X[:, :30]).round().astype(np.int8))
    given = "advise bytes.npy --labels labels.txt --dims 24 --levels float32 --output by"
    kept = repro(given).out
    assert "Keep the vectors" in kept, "24 dims as float32 are 96 bytes, the file has 30 a row"
    assert (
        "Use it" not in (tmp_path / "by" / "report.html").read_text()
        and not (tmp_path / "by" / "reducer.json").exists()
    )
    np.save("half.npy", X[:110].astype(np.float16))
    assert (
        "58 bytes a vector instead of 64"
        in repro("advise half.npy --retain 0.5 --dims 29 --output half").out
    )


def test_few_rows_of_many_numbers_are_advised_on_too(tmp_path, repro):
    np.save(tmp_path / "X.npy", np.random.default_rng(0).normal(size=(120, 128)))
    # 96 rows are fitted
    given = ["advise", tmp_path / "X.npy", "--output", tmp_path / "out", "--dims", 110, 128]
    assert "100 queries can prove a recall of 0.9" in repro(*given, "--recall", 0.99).out
    assert "of 128 dim" in repro(*given, "--retain", 0.3).out


def test_a_prediction_is_told_only_where_a_share_of_a_score_is_asked_for(tmp_path, repro):
    np.save(tmp_path / "X.npy", cloud(300))
    given = ["advise", tmp_path / "X.npy", "--output", tmp_path / "out", "--dims", 8, 16]
    assert "a task's score" not in repro(*given).out
    assert "a task's score" in repro(*given, "--retain", 0.5).out


def test_labels_judge_every_map_size_and_level_and_the_fewest_bytes_are_the_answer():
    X, levels = cloud(), ("float32", "int8", "lloyd4", "binary")
    sizes = [32, 16, 12, 8, 6, 4, 2]
    found = advised({None: X}, evidence=graded(X), retain=0.95, dims=sizes, levels=levels)
    tried = {(c.method, c.dim, c.level) for c in found.candidates}
    walks = set(product(("truncate", "svd", "pca"), ("float32", "int8", "binary")))
    walks |= {(name, "lloyd4") for name in ("truncate", f"svd{TURNED}", f"pca{TURNED}")}
    assert tried == {(method, size, level) for (method, level), size in product(walks, sizes)}
    assert found.confidence == pytest.approx(1 - 0.05 / 12), "every walk has its part of the error"
    assert (found.answer.method, found.answer.level) == (f"svd{TURNED}", "lloyd4")
    assert found.answer.bytes == found.deployment.bytes <= 4, "6 numbers as float32 are 24"
    assert found.deployment.codes(X).shape == (900, found.answer.bytes)


@pytest.mark.parametrize(
    ("method", "level"),
    list(product(("truncate", "svd", "pca", "random"), ("lloyd4", "int8"))),
)
def test_what_labels_judged_is_what_is_written(method, level):
    X = cloud()
    evidence = graded(X)
    found = advised(
        {None: X}, evidence=evidence, retain=0.2, dims=[24], levels=[level], methods=[method]
    )
    assert found.deployment.named == {
        "method": found.answer.method,
        "dim": 24,
        "level": level,
    }
    stored = found.deployment.stored(X)
    sides = [unit_rows(stored[side]) for side in (evidence.first, evidence.second)]
    kept = spearmanr((sides[0] * sides[1]).sum(1), evidence.grades).statistic / found.reference
    assert kept == pytest.approx(found.answer.share, abs=0.01)


def test_codes_are_judged_as_they_are_stored_by_ranges_of_rows_that_are_not_judged():
    X = cloud(200)
    evidence = graded(X)
    folds = evidence.folds(in_memory(X), seed=0)
    moments = FoldMoments(in_memory(X), folds.rows, folds.fold, unit=True)
    split = evidence.splits(folds)[0]
    assert not np.isin(folds.fold_of(moments.drawn), split).all()
    seen = np.setdiff1d(np.arange(200), folds.rows[np.isin(folds.fold, split)])
    assert {tuple(row) for row in moments.unseen(split)} == {tuple(row) for row in X[seen]}
    ways = []

    def coder(Y):
        ways.append(fitted(unchanged(Y.shape[1]), "cosine", "int8", Y))
        return ways[-1]

    shortened = Shortened("pca", moments, [split], [8, 4])
    shortened.coder = coder
    rows = np.arange(20)
    plain = shortened(rows, split)
    for size, stored in zip((8, 4), shortened.at_sizes(rows, split), strict=True):
        np.testing.assert_array_equal(stored, ways[-1].stored(plain[:, :size]))
        assert 0 < np.abs(stored - unit_rows(plain[:, :size])).max() < 0.1


@given(table=st.lists(st.tuples(*4 * [st.integers(0, 9)]), min_size=1, max_size=40))
@settings(max_examples=100, deadline=None)
def test_no_answer_is_dominated_whatever_the_table_holds(table):
    """Whatever passed in its own walk has more bytes, or as many and keeps no more."""
    names, levels = ("truncate", "pca"), ("float32", "int8", "binary")
    ways = {}
    for method, level, dim, low in table:
        ways[names[method % 2], levels[level % 3], dim + 1] = low / 10
    found = [
        Candidate(None, method, dim, share=low, low=low, level=level)
        for (method, level, dim), low in ways.items()
    ]
    answer = smallest(found, 100, None, 0.5, labelled=True)
    passed = []
    for c in found:
        larger = [o for o in found if (o.method, o.level) == (c.method, c.level) and o.dim >= c.dim]
        if all(other.low >= 0.5 for other in larger):
            passed.append(c)
    if not passed:
        assert answer is None
        return
    assert answer in passed
    assert not any(c.bytes < answer.bytes for c in passed)
    assert not any(c.bytes == answer.bytes and c.low > answer.low for c in passed)
    within = most_kept(found, 20)
    fitting = [c for c in found if c.bytes <= 20]
    if fitting:
        assert within.low == max(c.low for c in fitting)


def test_labels_choose_what_bytes_hold_and_levels_are_obeyed(tmp_path, repro):
    write_graded(tmp_path)
    out = tmp_path / "out"
    given = ["advise", tmp_path / "X.npy", "--pairs", tmp_path / "pairs.tsv", "--output", out]
    fewer = ["--levels", "int8", "int4", "--dims", 32, 16, 8, 6, 4]
    for target in (["--bytes", 6], ["--retain", 0.9]):
        everything = repro(*given, *fewer, *target).out
        pairs = len((tmp_path / "pairs.tsv").read_text().splitlines()) - 1
        assert f"The Spearman correlation was judged by {pairs:,} graded pairs" in everything
        assert "Its recall@10 is 0." in everything, "what `check` holds it to without labels"
        told = everything.splitlines()[0]
        assert " of the Spearman correlation" in told and (" as int8" in told or " as int4" in told)
        shares = json.loads((out / "report.json").read_text())["shares"]
        assert {row["level"] for row in shares} == {"int8", "int4"}
        note = json.loads((out / "reducer.json").read_text())
        assert note["bytes"] <= 6 and note["level"] in told
