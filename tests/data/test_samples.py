import gzip

import pytest

from repro.config import TrainConfig
from repro.data import samples
from repro.data.samples import fingerprint, training_sentences
from repro.store import Store
from repro.types import InputError


def test_the_sample_is_drawn_once(monkeypatch):
    config = TrainConfig(sentences=50, source="microworld")
    first = training_sentences(config, Store())
    assert len(first) == 50 and all(isinstance(text, str) for text in first)
    monkeypatch.setattr(samples.data, "load", None)
    assert training_sentences(config, Store()) == first
    assert training_sentences(TrainConfig(sentences=50, source="microworld", dim=3, seed=4), Store()) == first


def test_a_corpus_must_be_one():
    with pytest.raises(InputError, match="'stsb' is not a corpus of plain sentences"):
        training_sentences(TrainConfig(corpus="stsb", sentences=10, source="microworld"), Store())


def test_a_file_of_ones_own(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("one line\nanother line\na third\n")
    config = TrainConfig(corpus=str(path), sentences=3, source="local")
    assert training_sentences(config, Store()) == ("one line", "another line", "a third")
    before = fingerprint(str(path), "local")
    path.write_text("one line\nanother line\nsomething else\n")
    assert fingerprint(str(path), "local") != before
    assert training_sentences(config, Store())[-1] == "something else"  # in the same process


def test_fingerprints_tell_sources_apart(tmp_path, monkeypatch):
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "wiki.txt.gz").write_bytes(gzip.compress(b"a\nb\n"))
    monkeypatch.setenv("REPRO_DATA", str(tmp_path))
    found = {fingerprint("wiki", source) for source in ("local", "hub", "microworld")}
    assert len(found) == 3
