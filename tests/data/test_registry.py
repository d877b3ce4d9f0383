from collections import Counter

import pytest

from microworld import SIZES
from repro.data import DATASETS, default_source, describe, fetch, get_spec, load
from repro.types import InputError


def test_every_name_has_a_microworld_stand_in_with_the_same_splits():
    assert set(SIZES) == set(DATASETS)
    assert all(tuple(SIZES[name]) == spec.splits for name, spec in DATASETS.items())


def test_unknown_names_list_the_valid_ones(no_data):
    with pytest.raises(InputError, match=r"unknown dataset 'stsbb'.*sts12.*trec.*glove"):
        get_spec("stsbb")
    with pytest.raises(InputError, match="split of trec 'dev': choose one of train, test, all"):
        load("trec", split="dev")
    with pytest.raises(InputError, match=r"unknown source 'disk'.*local, hub, microworld"):
        load("trec", source="disk")
    with pytest.raises(InputError, match="leave out source='hub'"):
        load("some/file.tsv", source="hub")


def test_the_source_is_chosen_by_the_folder_and_recorded(no_data, monkeypatch, tmp_path):
    assert default_source() == "microworld"
    assert load("cr", limit=5).source == "microworld"
    monkeypatch.setenv("REPRO_DATA", str(tmp_path))
    assert default_source() == "local"
    assert load("cr", source="microworld", limit=5).source == "microworld"


def test_descriptions_need_no_data(no_data):
    rows = {row["name"]: row for row in describe()}
    assert set(rows) == set(DATASETS) and rows["stsb"]["rows"] == "5,749 / 1,500 / 1,379"
    assert all(row["local"] == "–" and row["licence"] and row["microworld"] for row in rows.values())


def test_a_dataset_without_mirror_says_so():
    with pytest.raises(InputError, match=r"glove has no hub mirror.*REPRO_DATA"):
        fetch("glove")


@pytest.mark.real_data
@pytest.mark.parametrize("name", [name for name, spec in DATASETS.items() if spec.floor is not None])
def test_the_floor_is_the_share_of_the_largest_test_class(real_data, name):
    spec = DATASETS[name]
    labels = load(name, source="local").labels
    count = Counter(labels.tolist()).most_common(1)[0][1]
    # SentEval's blank lines count as examples of the smaller classes, so the local share is a little higher.
    assert 100 * count / len(labels) == pytest.approx(spec.floor, abs=0.005 if not spec.local_sizes else 0.05)
