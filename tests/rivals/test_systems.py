import json
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from repro import data
from repro.evaluation import sts_spearman
from repro.papers.sbertlp.at_hand import encode_systems, load_systems, menu
from repro.paths import PAPER_VALUES
from repro.results import recorded_rows
from repro.runs.encoders import encode_tasks
from repro.store import Store
from repro.types import InputError
from rivals import SYSTEMS, Missing, SystemConfig, fit_texts, load_system, loaders, trained
from rivals.flow import FlowConfig
from rivals.infersent import InferSentConfig
from rivals.sbert_wk import SbertWK

HERE = [
    n
    for n, system in SYSTEMS.items()
    if not system.hub and n != "fasttext" and not n.startswith("minilm")
]
PUBLISHED = sorted(name for name, system in SYSTEMS.items() if system.hub)
ODD = ["zebra zzzz", "", "the dog"]


@pytest.fixture(scope="module")
def vectors(tmp_path_factory, sentences):
    """A file of random vectors for the words of the microworld."""
    words = sorted({word for text in sentences for word in text.lower().rstrip(".?!").split()})
    rows = np.random.default_rng(0).normal(size=(len(words), 5)).round(3)
    path = tmp_path_factory.mktemp("vectors") / "random.txt"
    np.savetxt(path, np.column_stack([words, rows.astype(str)]), fmt="%s", encoding="utf-8")
    return str(path)


@pytest.fixture
def config(deep, vectors, monkeypatch):
    """Everything on a random BERT, random word vectors and a few hundred generated pairs."""
    monkeypatch.setitem(
        trained.INFERSENT,
        "embedded",
        InferSentConfig(hidden_dim=4, classifier_dim=8, epochs=1),
    )
    monkeypatch.setitem(
        loaders.FLOW,
        "embedded",
        FlowConfig(depth=2, hidden_dim=8, epochs=1, batch_size=64),
    )
    return SystemConfig(source="microworld", backbone=deep, sentences=200, vectors=vectors)


@pytest.fixture(scope="module")
def tasks():
    return {"stsb": {"test": data.load("stsb", source="microworld", limit=40)}}


def test_every_system_of_the_paper_has_a_line():
    tables = pd.concat([pd.read_csv(PAPER_VALUES / f"sbertlp2021_table{n}.csv") for n in (1, 2, 3)])
    rows = tables["row"].str.replace("BERT CLS-", "BERT-CLS-")  # As Table 1 spells it
    printed = set(rows[~rows.str.endswith("-LP")])
    assert printed and printed == {system.row for system in SYSTEMS.values()} - {""}


@pytest.mark.parametrize("name", HERE)
def test_each_is_encoded_once_and_found_again(name, config, tasks, store):
    kept = Store()  # Of this test alone; what others trained may be had from theirs
    loaded = load_system(name, config, store)
    encoder = loaded.make()
    table = encode_tasks(lambda: encoder, loaded.identity, tasks, kept)
    assert np.isfinite(table.X).all() and table.X.std() > 0 and table.X.dtype == np.float32
    found = encode_tasks(
        lambda: pytest.fail("encoded twice"),
        load_system(name, config, store).identity,
        tasks,
        kept,
    )
    np.testing.assert_array_equal(found.X, table.X)
    X = encoder.encode(ODD)
    assert X.shape == (3, table.X.shape[1]) and np.isfinite(X).all()
    assert encoder.encode([]).shape == (0, X.shape[1])
    assert "{" not in loaded.line and (name not in ("glove", "sif", "infersent") or not X[:2].any())


@pytest.mark.parametrize("name", ("sif", "infersent", "sbert", "bert_flow", "whitening"))
def test_the_identity_follows_what_decides_the_output(name, config):
    one, two = (
        load_system(name, replace(config, sentences=n), Store()).identity for n in (100, 99)
    )
    assert one != two and len(one) == 16


def test_fits_learn_from_as_many_sentences_as_are_asked_for(config):
    texts, fitted = fit_texts(config), load_system("whitening", config, Store())
    assert fitted.n_train == len(texts) == len(set(texts)) == 200 and "200 sentences" in fitted.line
    Z = fitted.make().encode(texts)
    np.testing.assert_allclose(np.cov(Z.T, bias=True), np.eye(Z.shape[1]), atol=1e-3)
    assert set(fit_texts(replace(config, seed=1))) != set(texts)


def test_sbert_is_the_trained_cell_of_the_nli_objective(config, store):
    loaded = load_system("sbert", config, store)
    encoder = loaded.make()
    assert (
        encoder.pooling == "mean"
        and encoder.dim == encoder.hidden_dim == 32
        and loaded.n_train == 200
    )
    note = json.loads(
        (store.folder("encoders", loaded.identity) / "history.json").read_text(encoding="utf-8")
    )
    assert note["config"]["checkpoint_by"] == "encoder", "the mean of states is what is read"


def test_settings_are_those_that_the_dev_split_prefers():
    infersent = {
        name: getattr(trained.INFERSENT["embedded"], name) for name in ("learning_rate", "epochs")
    }
    rows = recorded_rows("systems_recipe")
    assert set(rows["dataset"]) == {"stsb"} and set(rows["data_source"]) == {"local"}
    for method, settings in (("sbert", trained.SBERT["repro-tiny"]), ("infersent", infersent)):
        tried = rows[(rows["method"] == method) & (rows["metric"] == "spearman")]
        best = set(tried.loc[tried["value"].idxmax(), "setting"].split(", "))
        assert {f"{name}={value}" for name, value in settings.items()} <= best


def test_trials_score_what_is_loaded_on_dev_pairs_alone(config, monkeypatch):
    monkeypatch.setattr(trained, "SBERT_TRIED", [{"learning_rate": 2e-5}])
    monkeypatch.setattr(trained, "INFERSENT_TRIED", [{"learning_rate": 0.1, "epochs": 1}])
    dev, rows = (
        data.load("stsb", split="dev", source="microworld"),
        trained.trial_rows(config, Store()),
    )
    for name, value in rows[rows["metric"] == "spearman"].set_index("method")["value"].items():
        encoder = load_system(name, config, Store()).make()
        X1, X2 = (encoder.encode(side, readout="encoder") for side in (dev.texts1, dev.texts2))
        assert value == pytest.approx(sts_spearman(X1, X2, dev.scores), abs=1e-6)


def test_a_folder_is_a_system_by_its_name(config, deep, tasks):
    own = load_system(deep, replace(config, backbone="repro-tiny"), Store())
    (line,) = encode_systems([own], tasks, Store()).values()
    same = load_system("bert_avg", config, Store())
    assert (line.method, own.row, own.identity) == ("deep", "", same.identity)
    assert menu("microworld", [deep, "sbert"])[-1] == deep
    flow, same = (load_system(name, config, Store()) for name in (f"{deep}-flow", "bert_flow"))
    assert (flow.identity, flow.line) == (same.identity, same.line)


def test_sbert_wk_of_a_network_of_two_layers_is_missing_and_the_others_are_loaded(config, tiny):
    shallow = replace(config, backbone=tiny)
    found, missing = load_systems(["sbert", "sbert_wk"], shallow, Store())
    assert [loaded.name for loaded in found] == ["sbert"] and missing["system"].tolist() == [
        "sbert_wk"
    ]
    assert "2 layers" in missing["missing"][0] and "all-MiniLM-L6-v2 has 6" in missing["missing"][0]
    with pytest.raises(InputError, match=r"\['sbert_wk'\]: none .*all-MiniLM-L6-v2 has 6"):
        load_systems(["sbert_wk"], shallow, Store())


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_weights_are_read_from_a_folder(name, config, deep, tmp_path, tasks):
    # A small encoder in the same form
    model = shutil.copytree(deep, tmp_path / SYSTEMS[name].hub.rpartition("/")[2])
    loaded = load_system(name, replace(config, weights=str(tmp_path), sentences=100), Store())
    X = encode_tasks(loaded.make, loaded.identity, tasks, Store()).X
    assert X.shape[1] == 32 and model.name in loaded.line
    assert isinstance(loaded.make(), SbertWK) == name.endswith("_wk")
    assert not name.endswith("cls") or loaded.make().pooling == "cls"


def test_without_weights_it_says_what_is_missing_and_where_to_get_it(config, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    for name in PUBLISHED:
        with pytest.raises(Missing, match=f"hf download {SYSTEMS[name].hub}"):
            load_system(name, replace(config, weights=str(tmp_path)), Store())
        with pytest.raises(Missing, match="is not in the hub's cache on this machine"):
            load_system(name, config, Store())


def test_word_vectors_of_the_users_own(config, write):
    path = write("mine.vec", "2 3", "the 1 2 3", "dog 3 2 1")
    config = replace(config, vectors=str(path), fasttext=str(path))
    for name in ("glove", "fasttext"):
        np.testing.assert_allclose(
            load_system(name, config, Store()).make().encode(["The dog!"]),
            [[2, 2, 2]],
        )
    before = load_system("glove", config, Store())
    assert before.line == "mine.vec, mean of words"
    write("mine.vec", "2 3", "the 1 2 3", "dog 9 2 1")
    assert load_system("glove", config, Store()).identity != before.identity


def test_vectors_that_are_missing_are_never_replaced(config, tmp_path, monkeypatch):
    with pytest.raises(Missing, match="crawl-300d-2M-subword"):
        load_system("fasttext", config, Store())
    with pytest.raises(Missing, match="no word vectors"):
        load_system("glove", replace(config, vectors=str(tmp_path / "absent.txt")), Store())
    with pytest.raises(Missing, match="no hub mirror"):
        load_system("infersent", replace(config, source="hub", vectors=None), Store())
    monkeypatch.setenv("REPRO_DATA", str(tmp_path))
    with pytest.raises(Missing, match=r"glove\.6B\.zip"):
        load_system("sif", replace(config, source="local", vectors=None), Store())
    with pytest.raises(InputError, match="unknown system 'elmo'"):
        load_system("elmo", config, Store())
