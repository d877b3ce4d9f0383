"""Zhang's pages on a small scale: who may learn from what, one fit for all sizes, every number the
task's own.
"""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from sklearn.decomposition import PCA
from sklearn.preprocessing import normalize

from repro import data
from repro.config import PROFILES
from repro.evaluation.classify import linear_probe
from repro.methods import FULL_SIZE
from repro.models.sources import MINILM
from repro.papers.zhang import lines as zhang
from repro.papers.zhang import shapes
from repro.papers.zhang.claims import BETWEEN, DISTANCE, RANKS, SETTINGS
from repro.papers.zhang.tables import halved_table
from repro.papers.zhang.tasks import in_folds, load_task
from repro.results import recorded_rows
from repro.runs import encoders
from repro.runs.encoders import as_published
from repro.runs.lines import TextTable
from repro.types import InputError

BOTH = ("inductive", "transductive")
SHARED = {"experiment": "e", "seed": 3}


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
    stsb = load_task("stsb", "microworld", rows=40, wiki=wiki, store=store)
    return {"stsb": stsb, "trec": load_task("trec", "microworld", rows=300)}


@pytest.fixture
def made(encoder, store):
    def make(
        task,
        methods=("pca", "svd", "grp", "truncate"),
        settings=BOTH,
        dims=(4, 8, 16),
        trained=(),
        **options,
    ):
        ways = zhang.ways_of(methods, settings, **options)
        return list(zhang.lines_of(encoder, task, store, ways, dims=dims, trained_dims=trained))

    return make


def test_who_is_fitted_on_what(tasks):
    task = tasks["stsb"]
    train, test = (set(data.texts_of(task.splits[s])) for s in ("train", "test"))
    assert (
        set(task.fit_texts("inductive")) == train
        and set(task.fit_texts("transductive")) == train | test
    )
    assert task.fit_texts("wiki") == list(dict.fromkeys(task.wiki.texts))
    with pytest.raises(InputError, match=r"wiki.*choose one of inductive, transductive"):
        tasks["trec"].fit_texts("wiki")
    assert "dev" not in task.splits, "nobody learns from, or is judged by, the dev pairs"
    assert set(task.judged_texts) == test
    assert task.describe() == "train: 40 of 1,000; test: 40 of 500, drawn at random"


def test_what_learns_nothing_is_the_same_in_every_setting(made, tasks):
    lines = made(
        tasks["stsb"],
        ("pca", "svd", "grp", "truncate", "autoencoder"),
        SETTINGS,
        dims=[8],
        trained=[0.25],
    )
    for method, count in (("GRP", 1), ("Truncate", 1), ("PCA", 3), ("SVD", 3)):
        assert len({x.table.X.tobytes() for x in lines if x.method == method}) == count
    own = [(x.dim, x.setting) for x in lines if x.method == "Autoencoder"]
    assert own == [(8, setting) for setting in BOTH], "sizes of its own, and no wiki"
    alone = made(tasks["stsb"], ("pca", "autoencoder"), dims=[8], trained=[])
    assert {x.method for x in alone} == {"PCA", "full size"}, (
        "without a size there is no autoencoder"
    )
    with pytest.raises(InputError, match="unknown method 'tsne'"):
        made(tasks["stsb"], ["tsne"])


def test_one_fit_serves_all_sizes_and_sees_the_fit_set_alone(encoder, made, tasks, store):
    task, lines = tasks["trec"], made(tasks["trec"])
    table, test = encoder.embed(task.parts, store), task.splits["test"].texts
    for d in (4, 16):
        line = next(x for x in lines if (x.method, x.dim, x.setting) == ("PCA", d, "transductive"))
        peer = PCA(d, svd_solver="full").fit(
            table[task.fit_texts("transductive")].astype(np.float64)
        )
        expected = peer.transform(table[test].astype(np.float64))
        np.testing.assert_allclose(np.abs(line.table[test]), np.abs(expected), atol=1e-4)


def test_a_variant_stands_beside_its_method(made, tasks):
    standardized = zhang.Variant("pca", "standardized", {"standardize": True})
    rescaled = zhang.Variant("kpca", zhang.RESCALED, rescale=True)
    lines = made(tasks["trec"], ("pca", "kpca"), variants=[standardized, rescaled])
    at = {(x.method, x.dim, x.setting): x.table.X for x in lines}
    assert not np.allclose(at["PCA", 8, "inductive"], at["PCA", 8, "inductive, standardized"])
    # The Gaussian kernel with γ = 1/D, its scores divided by √(2γ)
    expected = at["KPCA", 8, "inductive"] * np.sqrt(32 / 2)
    np.testing.assert_allclose(at["KPCA", 8, f"inductive, {zhang.RESCALED}"], expected, rtol=1e-5)
    form = next(x for x in lines if "," in x.setting)
    assert [x.method for x in lines if zhang.compared(form, x)] == [FULL_SIZE], (
        "variants meet full size alone"
    )


def test_methods_and_settings_are_compared_once(made, tasks, store):
    task = tasks["stsb"]
    rows = zhang.reduced_rows(made(task), task, store, **SHARED)
    leads = rows[rows["metric"] == "spearman_lead"].set_index(["method", "dim", "setting"])
    scores = rows[rows["metric"] == "spearman"].set_index(["method", "dim", "setting"])["value"]
    lead = scores["SVD", 8, "inductive"] - scores["PCA", 8, "inductive"]
    assert leads.loc[("SVD − PCA", 8, "inductive"), "value"] == pytest.approx(lead)
    assert "PCA − SVD" not in leads.index.get_level_values(0)
    grp = leads.loc["GRP − GRP"]
    assert set(grp.index.get_level_values("setting")) == {BETWEEN} and (
        grp[["value", "ci_low"]] == 0
    ).all(axis=None)
    assert set(rows.loc[rows["setting"] == "inductive", "n_train"]) == {
        len(task.fit_texts("inductive"))
    }


def test_folds_that_leave_a_split_without_rows_are_refused():
    with pytest.raises(InputError, match="folds is 2: expected 3 or more parts"):
        in_folds(load_task("sicke", "microworld", rows=60), 2)  # One is judged, one is for dev


def test_in_folds_every_row_is_judged_once_by_what_the_others_teach(encoder, made, store):
    with pytest.raises(InputError, match="folds is -3: expected 2 or more"):
        in_folds(load_task("trec", "microworld", rows=300), -3)
    task = in_folds(load_task("trec", "microworld", rows=300), 3)
    texts = [text for part in task.folds.values() for text in part["test"].texts]
    assert sorted(texts) == sorted(text for part in task.splits.values() for text in part.texts)
    lines = made(task, ["pca"], dims=[4])
    own = next(x for x in lines if x.method == "PCA" and x.setting == "inductive")
    table, right = encoder.embed(task.parts, store), []
    for name, part in task.folds.items():
        train, test = part["train"], part["test"]
        peer = PCA(4, svd_solver="full").fit(table[data.texts_of(train)].astype(np.float64))
        X, Z = own.on(name)[train.texts], own.on(name)[test.texts]
        np.testing.assert_allclose(np.abs(Z), np.abs(peer.transform(table[test.texts])), atol=1e-4)
        right += [linear_probe(X, train.labels, Z, test.labels, seed=3)] * len(test)
    rows = zhang.reduced_rows(lines, task, store, **SHARED)
    assert rows.set_index(["method", "setting"]).loc[
        ("PCA", "inductive"), "value"
    ] == pytest.approx(np.mean(right))
    both = in_folds(load_task("sicke", "microworld", rows=60), 5)
    rows_of = [{split: len(items) for split, items in part.items()} for part in both.folds.values()]
    assert rows_of == [{"train": 108, "dev": 36, "test": 36}] * 5


def test_pairs_in_folds_are_judged_together(encoder, made, store):
    task, by_hand = in_folds(load_task("stsb", "microworld", rows=60), 4), []
    table = encoder.embed(task.parts, store)
    for part in task.folds.values():
        peer = PCA(4, svd_solver="full").fit(table[part.fit_texts("inductive")].astype(np.float64))
        X, Y = (
            normalize(peer.transform(table[side]))
            for side in (part.pairs.texts1, part.pairs.texts2)
        )
        by_hand += zip((X * Y).sum(1), part.pairs.scores, strict=True)
    assert len(by_hand) == sum(map(len, task.splits.values())), "every pair once"
    rows = zhang.reduced_rows(made(task, ["pca"], dims=[4]), task, store, **SHARED).set_index(
        ["method", "setting"]
    )
    assert rows.loc[("PCA", "inductive"), "value"] == pytest.approx(spearmanr(by_hand)[0])


def test_curves_are_of_the_same_scores_and_held_against_pca_and_the_roughest_other(
    made,
    tasks,
    store,
):
    methods = ("pca", "svd", "kpca", "grp", "truncate")
    task, lines = tasks["trec"], made(tasks["trec"], methods, settings=["inductive"])
    rows = zhang.reduced_rows(lines, task, store, **SHARED)
    lines += [replace(line, method="Autoencoder") for line in lines if line.method == "Truncate"]
    own = rows[
        (rows["metric"] == "accuracy")
        & rows["method"].isin(("PCA", "SVD", "KPCA", "GRP", "Truncate"))
    ]
    at = own.pivot(index="dim", columns="method", values="value").rename(
        columns={"Truncate": "Autoencoder"}
    )
    curves = shapes.curve_rows(lines, task, store, **SHARED)
    found = {metric: part.set_index("method")["value"] for metric, part in curves.groupby("metric")}
    jumps, apart = at.diff().dropna().std(ddof=0), at.sub(at["PCA"], axis=0).abs().mean()
    assert found["roughness"].to_dict() == pytest.approx(jumps.to_dict())
    roughest = jumps.drop("Autoencoder").max()
    assert found["roughness_lead"]["Autoencoder − others"] == pytest.approx(
        jumps["Autoencoder"] - roughest
    )
    assert found[DISTANCE].to_dict() == pytest.approx(apart.drop("PCA").to_dict())
    two = shapes.curve_rows([line for line in lines if line.dim != 16], task, store, **SHARED)
    assert set(two["metric"]) == {DISTANCE}, "two sizes have one difference"
    four = shapes.curve_rows(
        [line for line in lines if line.method != "KPCA"],
        task,
        store,
        **SHARED,
    )
    assert set(four["metric"]) == {"roughness", DISTANCE}, (
        "the roughest of three is not the roughest of the other four"
    )
    swapped = {"PCA": "GRP", "GRP": "PCA"}  # And the autoencoder lacks a size, which is not theirs
    other = [
        replace(x, method=swapped.get(x.method, x.method))
        for x in lines
        if (x.method, x.dim) != ("Autoencoder", 16)
    ]
    turned = shapes.curve_rows(other, task, store, **SHARED).set_index(["metric", "method"])[
        "value"
    ]
    assert turned[DISTANCE, "GRP"] == pytest.approx(found[DISTANCE]["GRP"]), (
        "whichever is above, at all of their sizes"
    )
    ranks = at.rank(axis=1, ascending=False).mean()
    renamed = [replace(line, backbone=name) for name in ("a", "b", "repro-tiny") for line in lines]
    ranked = shapes.curve_rows(renamed, task, store, **SHARED).query(f"metric == '{RANKS}'")
    assert set(ranked["setting"]) == {"a, b"}, "published encoders"
    assert ranked.set_index("method")["value"].to_dict() == pytest.approx(
        (ranks - ranks["PCA"]).drop("PCA").to_dict()
    )


def test_encoders_are_taken_as_published_and_sizes_may_be_shares(small):
    with pytest.raises(InputError, match="expected one or more different names"):
        encoders.choose_encoders(["a", "a"], small)
    table = TextTable({"a": 0, "b": 1}, np.array([[3.0, 4.0], [0.0, 0.0]], np.float32))
    np.testing.assert_allclose(as_published(MINILM, table).X, [[0.6, 0.8], [0, 0]], rtol=1e-6)
    assert as_published("other", table) is table
    assert encoders.dims_of(384, [0.5, 48, 384, 0.125]) == [48, 192]
    with pytest.raises(InputError, match=r"dims are \[500\]: expected sizes from 1 to 383"):
        encoders.dims_of(384, [500])
    with pytest.raises(InputError, match=r"dims holds 1\.5: expected whole numbers, or shares"):
        encoders.dims_of(384, [0.5, 1.5])


def test_an_unknown_kernel_and_sizes_of_the_autoencoder_are_refused_by_their_names(made, tasks):
    with pytest.raises(InputError, match="unknown kernel 'gauss': choose one of rbf, poly"):
        zhang.ways_of(["pca", "kpca"], ["inductive"], "gauss")
    with pytest.raises(InputError, match=r"autoencoder_dims are \[500\]: expected sizes from 1"):
        made(tasks["stsb"], trained=(500,))


def test_a_loss_of_one_training_is_told_without_an_interval():
    table = halved_table({"recorded": recorded_rows("zhang_figure4_folds")})
    told = set(table["recorded"])
    assert told and all(re.fullmatch(r"−?\d+\.\d\d|–", loss) for loss in told), told
