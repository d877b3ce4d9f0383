"""Zhang's pages on a small scale: who may learn from what, one fit for all sizes, every number the task's own."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.decomposition import PCA

from repro import data
from repro.config import PROFILES
from repro.evaluation.protocol import score_classification, score_sts
from repro.evaluation.stats import paired_spearman_difference
from repro.methods import FULL_SIZE, MAJORITY
from repro.models.pretrained import MINILM
from repro.papers.zhang.encoders import BETWEEN, SETTINGS
from repro.papers.zhang.lines import RESCALED, Variant, lines_of, load_task, reduced_rows, roughness_rows
from repro.runs import encoders
from repro.runs.encoders import TextTable, as_published
from repro.runs.lines import cosines_of
from repro.store import Store
from repro.types import InputError
from shown_code import on_page

BOTH = ("inductive", "transductive")
SHARED = {"experiment": "e", "seed": 3}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("zhang"))


@pytest.fixture(scope="module")
def small(cell_config):
    return replace(PROFILES["embedded"], train=replace(cell_config, pooling="mean"))


@pytest.fixture(scope="module")
def encoder(tiny, small, store):
    torch.set_num_threads(1)
    return next(encoders.load_encoders([tiny], small, store))


@pytest.fixture(scope="module")
def tasks(small, store):
    wiki = replace(small.train, sentences=50)
    return {
        "stsb": load_task("stsb", "microworld", rows=40, wiki=wiki, store=store),
        "trec": load_task("trec", "microworld", rows=300),
        "sicke": load_task("sicke", "microworld", rows=60),
    }


@pytest.fixture
def made(encoder, store):
    def make(task, methods=("pca", "svd", "grp", "truncate"), settings=BOTH, dims=(4, 8, 16), trained=(), **options):
        chosen = {"methods": methods, "settings": settings, "dims": dims, "trained_dims": trained}
        return list(lines_of(encoder, task, store, **chosen, **options))

    return make


def test_who_is_fitted_on_what(tasks):
    task = tasks["stsb"]
    train, test = (set(data.texts_of(task.splits[s])) for s in ("train", "test"))
    assert set(task.fit_texts("inductive")) == train
    assert set(task.fit_texts("transductive")) == train | test
    assert task.fit_texts("wiki") == list(dict.fromkeys(task.wiki.texts))
    for setting in SETTINGS:
        assert len(task.fit_texts(setting)) == len(set(task.fit_texts(setting))), "distinct sentences"
    with pytest.raises(InputError, match=r"wiki.*choose one of inductive, transductive"):
        tasks["trec"].fit_texts("wiki")
    assert "dev" not in task.splits, "nobody learns from, or is judged by, the dev pairs"
    assert set(task.judged_texts) == test
    assert set(tasks["sicke"].splits) == {"train", "dev", "test"}


def test_a_task_says_what_it_kept(tasks):
    assert tasks["stsb"].describe() == "train: 40 of 2,000; test: 40 of 1,000, drawn at random"
    assert load_task("trec", "microworld", profile="gpu").describe() == "train: all 1,500; test: all 500"
    assert load_task("trec", "microworld", profile="embedded").describe().startswith("train: 700 of 1,500")
    assert load_task("trec", "microworld", profile="embedded", rows=0).available["train"] == 1_500


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    X=arrays(np.float32, (12, 6), elements=st.floats(-3, 3, width=32)),
    a=arrays(np.float32, (7, 6), elements=st.floats(-3, 3, width=32)),
    b=arrays(np.float32, (9, 6), elements=st.floats(-3, 3, width=32)),
    seed=st.integers(0, 5),
)
def test_what_learns_nothing_is_the_same_in_every_setting(store, X, a, b, seed):
    for name in ("grp", "truncate"):
        first, *ways = (
            dict(encoders.reduced(name, fit, X, [2, 5], store, seed=seed)) for fit in (a, b, np.vstack([a, b]))
        )
        for other in ways:
            for d, Y in first.items():
                np.testing.assert_array_equal(Y, other[d])


def test_lines_that_learn_nothing_score_the_same_in_every_setting(made, tasks, store):
    rows = reduced_rows(made(tasks["stsb"], settings=SETTINGS), tasks["stsb"], store, progress=False, **SHARED)
    scored = rows[rows["metric"] == "spearman"].groupby(["method", "dim"])["value"].nunique()
    assert (scored[["GRP", "Truncate"]] == 1).all() and (scored["PCA"] > 1).any(), "what learns does not"
    between = rows[(rows["setting"] == BETWEEN) & (rows["method"] == "GRP − GRP")]
    assert len(between) == 3 and (between[["value", "ci_low", "ci_high"]] == 0).all(axis=None)


def test_one_fit_serves_all_sizes_and_sees_the_fit_set_alone(encoder, made, tasks, store):
    task, lines = tasks["trec"], made(tasks["trec"])
    table, test = encoder.embed(task.parts, store), task.splits["test"].texts
    for d in (4, 16):
        line = next(x for x in lines if (x.method, x.dim, x.setting) == ("PCA", d, "transductive"))
        peer = PCA(d, svd_solver="full").fit(table[task.fit_texts("transductive")].astype(np.float64))
        expected = peer.transform(table[test].astype(np.float64))
        np.testing.assert_allclose(np.abs(line.table[test]), np.abs(expected), atol=1e-4)
    found = [(x.method, x.dim, x.setting, x.backbone) for x in lines]
    assert found[0] == (FULL_SIZE, 32, "", encoder.name)
    assert len(found) == len(set(found)) == 1 + 4 * 3 * 2


def test_slow_reductions_come_from_the_store(store):
    X = np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32)
    for name in ("kpca", "autoencoder"):
        first, again = (dict(encoders.reduced(name, X, X[:9], [2, 4], store, seed=1)) for _ in range(2))
        assert {d: Y.shape for d, Y in first.items()} == {2: (9, 2), 4: (9, 4)}
        for d, Y in first.items():
            np.testing.assert_array_equal(Y, again[d])
    assert dict(encoders.reduced("pca", X[:5], X, [6, 7], store)) == {}, "beyond n − 1"


def test_the_autoencoder_has_sizes_of_its_own_and_no_wiki(made, tasks):
    lines = made(tasks["stsb"], ("pca", "autoencoder"), ("inductive", "wiki"), trained=[0.25])
    assert [(x.dim, x.setting) for x in lines if x.method == "Autoencoder"] == [(8, "inductive")]
    assert {x.setting for x in lines if x.method == "PCA"} == {"inductive", "wiki"}


def test_a_variant_stands_beside_its_method(made, tasks, store):
    variants = [Variant("pca", "standardized", {"standardize": True}), Variant("kpca", RESCALED, rescale=True)]
    lines = made(tasks["trec"], ("pca", "kpca"), variants=variants)
    at = {(x.method, x.dim, x.setting): x.table.X for x in lines}
    assert not np.allclose(at["PCA", 8, "inductive"], at["PCA", 8, "inductive, standardized"])
    # the Gaussian kernel with γ = 1/D, its scores divided by √(2γ)
    expected = at["KPCA", 8, "inductive"] * np.sqrt(32 / 2)
    np.testing.assert_allclose(at["KPCA", 8, f"inductive, {RESCALED}"], expected, rtol=1e-5)
    rows = reduced_rows(lines, tasks["trec"], store, progress=False, **SHARED)
    leads = rows[(rows["metric"] == "accuracy_lead") & rows["setting"].str.contains(",")]
    assert set(leads["method"]) == {f"{m} − {FULL_SIZE}" for m in ("PCA", "KPCA")}, "variants meet full size alone"


def test_rows_are_the_tasks_own_scores_with_paired_leads(made, tasks, store):
    task, lines = tasks["stsb"], made(tasks["stsb"])
    rows = reduced_rows(lines, task, store, progress=False, **SHARED)
    at, pairs = {(x.method, x.dim, x.setting): x for x in lines}, task.splits["test"]
    for r in rows[rows["metric"] == "spearman"].itertuples():
        line = at[r.method, r.dim, "" if r.method == FULL_SIZE else r.setting]
        assert r.value == pytest.approx(score_sts(line.table.__getitem__, pairs, seed=3).value, abs=1e-12)
    leads = rows[rows["metric"] == "spearman_lead"].set_index(["method", "dim", "setting"])
    lead = leads.loc["SVD − PCA", 8, "inductive"]
    cosines = [cosines_of(at[m, 8, "inductive"].table, pairs) for m in ("SVD", "PCA")]
    expected = paired_spearman_difference(*cosines, pairs.scores, subsets=pairs.subsets, seed=3)
    assert (lead["value"], lead["ci_low"]) == pytest.approx((expected.value, expected.low), abs=1e-12)
    assert leads.loc[f"PCA − {FULL_SIZE}"].index.get_level_values("setting").nunique() == 2
    methods = set(leads.index.get_level_values(0))
    assert f"GRP − {FULL_SIZE}" in methods and "PCA − SVD" not in methods, "each pair is compared once"
    fitted = dict(zip(rows["setting"].fillna(""), rows["n_train"], strict=True))
    assert {setting: fitted[setting] for setting in BOTH} == {s: len(task.fit_texts(s)) for s in BOTH}
    assert rows.loc[rows["method"] == FULL_SIZE, "n_train"].isna().all()


def test_labelled_rows_and_their_roughness_are_of_one_classifier(made, tasks, store):
    task, lines = tasks["trec"], made(tasks["trec"])
    rows = reduced_rows(lines, task, store, progress=False, **SHARED)
    whole = score_classification(lines[-1].table.__getitem__, task.splits, seed=3)
    own = rows[(rows["method"] == "Truncate") & (rows["dim"] == 16) & (rows["setting"] == "transductive")]
    assert own["value"].item() == whole.value
    assert rows.loc[rows["method"] == MAJORITY, "value"].item() == whole.floor
    jumps = roughness_rows(lines, task, store, **SHARED)
    accuracies = rows[(rows["metric"] == "accuracy") & (rows["method"] == "PCA") & (rows["setting"] == "inductive")]
    expected = accuracies.sort_values("dim")["value"].diff().dropna().std(ddof=0)
    found = jumps[(jumps["method"] == "PCA") & (jumps["setting"] == "inductive")]["value"].item()
    assert found == pytest.approx(expected)
    assert roughness_rows(made(task, dims=[4, 8]), task, store, **SHARED).empty, "two sizes have one difference"


def test_the_autoencoders_roughness_is_held_against_the_roughest_other(made, tasks, store):
    lines = made(tasks["trec"], ("pca", "grp", "autoencoder"), ("inductive",))
    rows = roughness_rows(lines, tasks["trec"], store, **SHARED).set_index("method")["value"]
    assert rows["Autoencoder − others"] == pytest.approx(rows["Autoencoder"] - max(rows["PCA"], rows["GRP"]))


def test_encoders_by_name(small, store, tiny):
    assert encoders.choose_encoders(None, small) == encoders.AT_HAND
    assert encoders.choose_encoders(None, PROFILES["paper"]) == encoders.PAPER
    with pytest.raises(InputError, match="expected one or more different names"):
        encoders.choose_encoders(["a", "a"], small)
    (trained,) = encoders.load_encoders([encoders.TRAINED], small, store)
    assert trained.name.endswith("+ SimCSE") and trained.make().hidden_dim == 32
    first, second = encoders.load_encoders([MINILM, tiny], small, store)
    assert first.name == "all-MiniLM-L6-v2"
    assert encoders.Named("stsb-bert-base", lambda: None, "").note.startswith("fine-tuned on STS-B")
    table = TextTable({"a": 0, "b": 1}, np.array([[3.0, 4.0], [0.0, 0.0]], np.float32))
    np.testing.assert_allclose(as_published(first.name, table).X, [[0.6, 0.8], [0, 0]], rtol=1e-6)
    assert as_published(second.name, table) is table


def test_dims_may_be_shares_of_the_full_size(made, tasks):
    assert encoders.dims_of(384, [0.5, 48, 384, 0.125]) == [48, 192]
    with pytest.raises(InputError, match=r"dims are \[500\]: expected sizes from 1 to 383"):
        encoders.dims_of(384, [500])
    with pytest.raises(InputError, match="unknown method 'tsne'"):
        made(tasks["stsb"], ["tsne"])


def test_only_the_sigmoid_is_indefinite():
    shown = on_page("zhang_figure2_sts", "spectrum")["spectrum"]
    X = np.random.default_rng(0).standard_normal((60, 8))
    X[40:] = X[:20]  # repeated sentences make eigenvalues of exactly zero
    for kernel, gamma in (("rbf", None), ("rbf", "median"), ("poly", None), ("cosine", None)):
        values = shown(X, kernel, gamma)
        assert abs(values[0]) < 1e-12 * values[-1] and (np.abs(values[:20]) < 1e-12 * values[-1]).all()
    for gamma in (None, "median"):
        assert shown(X, "sigmoid", gamma)[0] < -1e-3
