import os
import re
import subprocess
import sys

import datasets
import pytest

from repro.data import DATASETS, Retrieval, load, load_splits, senteval
from repro.data.hub import to_set
from repro.data.samples import fingerprint
from repro.paths import home
from repro.types import InputError

ON_HUB = [name for name, spec in DATASETS.items() if spec.hub]
LABELLED = ("sicke", "nli", "mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc")
CLASSES = [{"negative", "positive"}, {"0", "1"}, {"entailment", "neutral", "contradiction"}]
CLASSES += [{"objective", "subjective"}, {"ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM"}]


@pytest.mark.parametrize("name", ON_HUB)
def test_a_set_has_the_official_splits_and_labels_on_the_hub_too(hub, name):
    spec, found = DATASETS[name], load_splits(name, source="hub")
    # Its mirror has no more
    assert tuple(found) == (spec.splits if name != "flickr30k" else ("train",))
    assert load(name, source="hub").split == spec.default_split
    for split, data in found.items():
        assert data.source == "hub" and data.split == split
        if name in LABELLED:
            assert set(data.labels) in CLASSES


def test_no_snapshot_is_written_into_a_folder_that_is_no_store(hub_folder, repro_home, monkeypatch):
    monkeypatch.setenv("REPRO_HUB", str(hub_folder))
    repro_home.mkdir()
    (repro_home / "film.mkv").touch()
    for write_one in (lambda: load("nli", source="hub"), senteval.keep):
        with pytest.raises(
            InputError,
            match=r"holds film\.mkv, which is no part of one: set REPRO_HOME",
        ):
            write_one()
    assert [path.name for path in repro_home.iterdir()] == ["film.mkv"]


def test_the_second_use_reads_the_snapshot_and_a_changed_copy_is_another(
    hub,
    write,
    tmp_path,
    monkeypatch,
):
    first = load("flickr30k", source="hub", split="train")
    name = fingerprint("flickr30k", "hub")
    with monkeypatch.context() as patched:
        patched.setattr(datasets, "load_dataset", None)
        assert load("flickr30k", source="hub", split="train").texts == first.texts
    write("hub/embedding-data/flickr30k_captions_quintets/train.jsonl", '{"set": ["a", "b"]}')
    monkeypatch.setenv("REPRO_HUB", str(tmp_path / "hub"))
    assert load("flickr30k", source="hub", split="train").texts == ("a", "b")
    assert fingerprint("flickr30k", "hub") != name
    with pytest.raises(InputError, match=r"REPRO_HUB=.*hub holds no copy of SetFit/20_newsgroups"):
        load("20news", source="hub")


def test_an_unreachable_hub_is_asked_once_and_the_message_says_what_to_do(monkeypatch):
    monkeypatch.setattr(
        datasets, "load_dataset", lambda *_, **__: pytest.fail("the client would retry for long")
    )
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with pytest.raises(
        InputError,
        match=r"nli.*sentence-transformers/all-nli.*refused.*REPRO_DATA.*repro data fetch",
    ):
        load("nli", source="hub")
    with pytest.raises(
        InputError,
        match=r"senteval\.tar of princeton-nlp/.*refused.*REPRO_DATA.*repro data fetch",
    ):
        senteval.keep()
    assert not list((home() / "data").rglob("*.parquet"))


@pytest.mark.parametrize("name", ["stsb", "nli"])
def test_fetching_in_a_process_of_its_own_tells_that_the_hub_was_not_reached(name):
    where = {"HF_ENDPOINT": "http://127.0.0.1:1", "HF_HUB_OFFLINE": "0"}
    command = [sys.executable, "-m", "repro", "data", "fetch", name]
    ended = subprocess.run(
        command, env=os.environ | where, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2 and ended.stderr.count("\n") == 1
    assert re.match(r"error: could not fetch .*refused.*Without a network", ended.stderr)


def test_blank_rows_are_dropped_only_where_the_mirror_is_known_to_have_them():
    rows = [{"text": "a", "label_text": "x"}, {"text": " ", "label_text": "x"}]
    assert to_set(DATASETS["20news"], "test", {"test": rows}).texts == ("a",)


@pytest.mark.parametrize(
    ("name", "row", "message"),
    [
        ("20news", {"text": "who?", "label": 3}, "no column 'label_text' among text, label"),
        ("nli", {"premise": "a", "hypothesis": "b", "label": -1}, "hidden labels"),
        ("nli", {"premise": "a", "hypothesis": "b", "label": 7}, "label '7', expected one of 0, 1"),
        ("subj", {"text": " ", "label": 0}, "blank"),
    ],
)
def test_a_mirror_that_changed_is_noticed(name, row, message):
    with pytest.raises(InputError, match=message):
        to_set(DATASETS[name], "train", {"train": [row]})


def test_captions_are_labelled_by_image(hub):
    data = to_set(
        DATASETS["flickr30k"],
        "train",
        {"train": [{"set": ["a", "b", " "]}, {"set": ["c"]}]},
    )
    assert data.texts == ("a", "b", "c") and data.labels[0] == data.labels[1] != data.labels[2]
    with pytest.raises(
        InputError,
        match="no split 'val': it has train; images whose captions occur in STS",
    ):
        load("flickr30k", source="hub", split="val")


def test_hotpotqa_becomes_retrieval_over_distinct_paragraphs():
    shared = {"title": ["A", "B"], "sentences": [["One.", " Two."], ["Three."]]}
    rows = [
        {
            "id": "x",
            "question": "q?",
            "answer": "A",
            "supporting_facts": {"title": ["A", "A"]},
            "context": shared,
        },
        {
            "id": "y",
            "question": "r?",
            "answer": "B",
            "supporting_facts": {"title": ["B"]},
            "context": shared,
        },
    ]
    data = to_set(DATASETS["hotpotqa"], "test", {"test": rows})
    assert isinstance(data, Retrieval) and data.documents == ("A One. Two.", "B Three.")
    assert data.qrels == {"x": {"d000000": 1, "d000001": 0}, "y": {"d000000": 0, "d000001": 1}}
