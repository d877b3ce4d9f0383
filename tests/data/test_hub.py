import json
import subprocess
import sys

import datasets
import pytest

from repro.data import DATASETS, LabelledPairs, Retrieval, ScoredPairs, fetch, load
from repro.data.hub import to_set
from repro.paths import home
from repro.types import InputError


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub that serves what is put on it, through the real `datasets` on local JSON files, and counts calls."""
    monkeypatch.setenv("REPRO_HOME", str(tmp_path / "home"))
    real, shelf, calls = datasets.load_dataset, {}, []

    def load_dataset(repository, config=None, *, split, revision=None, data_files=None):
        calls.append((repository, config, split, revision))
        if (repository, split) not in shelf:
            raise ConnectionError("no route to host")
        path = tmp_path / f"{len(calls)}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in shelf[repository, split]))
        return real("json", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache"))

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    shelf["calls"] = calls
    return shelf


def test_the_second_use_is_offline(hub):
    hub["mteb/stsbenchmark-sts", "test"] = [{"sentence1": "a", "sentence2": "b", "score": 2.5, "genre": "x"}]
    data = load("stsb", source="hub")
    assert isinstance(data, ScoredPairs) and data.source == "hub" and data.scores.tolist() == [2.5]
    assert hub["calls"] == [("mteb/stsbenchmark-sts", None, "test", DATASETS["stsb"].hub.revision)]
    hub.pop(("mteb/stsbenchmark-sts", "test"))
    assert load("stsb", source="hub").texts1 == ("a",)
    assert len(hub["calls"]) == 1


def test_an_unreachable_hub_says_what_to_do(hub):
    with pytest.raises(
        InputError, match=r"stsb.*mteb/stsbenchmark-sts.*no route to host.*REPRO_DATA.*repro data fetch"
    ):
        load("stsb", source="hub")
    assert not list((home() / "data").rglob("*.parquet"))


def test_splits_are_joined_and_labels_renamed(hub):
    hub["nyu-mll/glue", "train"] = [{"sentence1": "a", "sentence2": "b", "label": 1}]
    hub["nyu-mll/glue", "validation"] = [{"sentence1": "c", "sentence2": "d", "label": 0}]
    data = load("mrpc", source="hub", split="train")
    assert isinstance(data, LabelledPairs) and data.texts1 == ("a", "c") and data.labels.tolist() == ["1", "0"]
    for part in ("train", "test"):
        hub["SetFit/subj", part] = [{"text": part, "label": 1 if part == "train" else 0}]
    assert load("subj", source="hub").labels.tolist() == ["subjective", "objective"]
    assert len(fetch("subj")) == 2


def test_a_split_that_the_mirror_lacks_is_refused_with_its_note(hub):
    with pytest.raises(InputError, match="no split 'test': it has train, dev; GLUE hides the test labels"):
        load("sst2", source="hub")
    with pytest.raises(InputError, match="official test set cannot be told apart"):
        load("sickr", source="hub")


def test_blank_rows_are_dropped_only_where_the_mirror_is_known_to_have_them():
    news = to_set(DATASETS["20news"], "test", [{"text": "a", "label_text": "x"}, {"text": " ", "label_text": "x"}])
    assert news.texts == ("a",)
    with pytest.raises(InputError, match="blank"):
        to_set(DATASETS["subj"], "all", [{"text": " ", "label": 0}])


@pytest.mark.parametrize(
    ("name", "row", "message"),
    [
        ("trec", {"text": "who?", "label": 3}, "no column 'label_coarse_original' among text, label"),
        ("sst2", {"sentence": "fine", "label": -1}, "hidden labels"),
        ("mr", {"text": "fine", "label": 7}, "label '7', expected one of 0, 1"),
    ],
)
def test_a_mirror_that_changed_is_noticed(name, row, message):
    with pytest.raises(InputError, match=message):
        to_set(DATASETS[name], "train", [row])


def test_hotpotqa_becomes_retrieval_over_distinct_paragraphs():
    shared = {"title": ["A", "B"], "sentences": [["One.", " Two."], ["Three."]]}
    rows = [
        {"id": "x", "question": "q?", "answer": "A", "supporting_facts": {"title": ["A", "A"]}, "context": shared},
        {"id": "y", "question": "r?", "answer": "B", "supporting_facts": {"title": ["B"]}, "context": shared},
    ]
    data = to_set(DATASETS["hotpotqa"], "test", rows)
    assert isinstance(data, Retrieval) and data.documents == ("A One. Two.", "B Three.")
    assert data.qrels == {"x": {"d000000": 1, "d000001": 0}, "y": {"d000000": 0, "d000001": 1}}


def test_captions_are_labelled_by_image():
    data = to_set(DATASETS["flickr30k"], "train", [{"set": ["a", "b"]}, {"set": ["c"]}])
    assert data.texts == ("a", "b", "c") and data.labels[0] == data.labels[1] != data.labels[2]


def test_importing_data_brings_neither_datasets_nor_torch():
    code = "import sys, repro.data; sys.exit(bool({'datasets', 'torch', 'pandas'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
