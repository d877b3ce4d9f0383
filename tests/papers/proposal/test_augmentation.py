"""Augmentations by name, trained for equal steps; dropout is the SimCSE cell; what is not at hand says so."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from repro import data
from repro.data.augment import token_overlap
from repro.data.sampling import take
from repro.evaluation import sts_spearman
from repro.losses import alignment, uniformity
from repro.papers.proposal import augmentation, geometry
from repro.runs.cell import cell_key, training_sentences
from repro.store import Store
from repro.types import InputError


@pytest.fixture(scope="module")
def tasks():
    return {name: {"test": take(data.load(name, split="test", source="microworld"), 80)} for name in ("stsb", "sickr")}


@pytest.fixture(scope="module")
def small(cell_config):
    return replace(cell_config, sentences=64, check_every=4, batch_size=16)


def by_name(augmentations):
    return {augmentation.name: augmentation for augmentation in augmentations}


def test_ways_at_hand_and_ways_that_wait(sentences):
    texts = data.load("wiki", source="microworld", limit=96).texts
    made = by_name(augmentation.make_augmentations(texts, "microworld", Store()))
    assert list(made) == list(augmentation.WAYS)
    assert made["dropout"].positives == texts, "under dropout, equality is the method"
    assert made["back-translation"].positives is None and "translators" in made["back-translation"].note
    for name in ("synonym", "paraphrase"):
        kept = [(a, b) for a, b in zip(texts, made[name].positives, strict=True) if b]
        assert kept and all(a != b for a, b in kept) and len(kept) < len(texts)
    for i, mixed in enumerate(made["mixture"].positives):
        assert mixed in [made[name].positives[i] for name in ("dropout", "synonym", "paraphrase")]


def test_back_translation_runs_where_a_pair_is_named(translators):
    texts = data.load("wiki", source="microworld", limit=6).texts
    pair = [translators["t5"], translators["t5"]]
    made = by_name(
        augmentation.make_augmentations(
            texts, "microworld", Store(), names=["dropout", "back-translation", "mixture"], translators=pair
        )
    )
    assert made["back-translation"].note == "t5, t5"
    assert len(made["back-translation"].positives) == 6 and made["mixture"].positives is not None
    with pytest.raises(InputError, match="expected two networks"):
        augmentation.make_augmentations(texts, "microworld", Store(), translators=pair[:1])
    with pytest.raises(InputError, match="unknown augmentation 'noise'"):
        augmentation.make_augmentations(texts, "microworld", Store(), names=["noise"])


def test_a_lexicon_is_the_users_or_the_generators(tmp_path, monkeypatch):
    path = tmp_path / "own.tsv"
    path.write_text("big\thuge\n", encoding="utf-8")
    assert augmentation.choose_lexicon("local", str(path)) == ({"big": ("huge",)}, "lexicon own.tsv")
    assert "generator" in augmentation.choose_lexicon("microworld")[1]
    assert augmentation.choose_lexicon("hub")[0] is None
    monkeypatch.setenv("REPRO_DATA", str(tmp_path))
    assert augmentation.choose_lexicon("local")[0] is None, "no vectors in that folder"


def test_paraphrases_are_for_generated_sentences_only():
    for source, texts in (("local", ("a b",)), ("microworld", ("Nobody generated this.",))):
        (made,) = augmentation.make_augmentations(texts, source, Store(), names=["paraphrase"])
        assert made.positives is None and "generated" in made.note


def test_rows_are_what_the_embeddings_say(small, tasks):
    store = Store()
    texts = training_sentences(small, store)
    made = {
        s: augmentation.make_augmentations(texts, "microworld", store, seed=s, names=["dropout", "paraphrase"])
        for s in (0, 1)
    }
    rows = augmentation.augmentation_rows(small, texts, made, tasks, store, experiment="x")
    at = rows.set_index(["seed", "method", "dataset", "metric"])["value"]
    paraphrase = made[1][1]
    cell = augmentation.train_augmented(replace(small, seed=1), texts, paraphrase, store)
    assert cell.hit and len(cell.history.losses) == 4, "as many steps as all sentences fill"
    pairs = tasks["stsb"]["test"]
    X = cell.encoder.encode(data.texts_of(pairs))
    found = sts_spearman(X[: len(pairs)], X[len(pairs) :], pairs.scores)
    assert at[1, "paraphrase", "stsb", "spearman"] == pytest.approx(found, abs=1e-6)
    lead = at[1, "paraphrase", "sickr", "spearman"] - at[1, "dropout", "sickr", "spearman"]
    assert at[1, "paraphrase", "sickr", "spearman_lead"] == pytest.approx(lead)
    distinct = torch.from_numpy(cell.encoder.encode(list(dict.fromkeys(data.texts_of(pairs)))))
    assert at[1, "paraphrase", "stsb", "uniformity"] == pytest.approx(float(uniformity(distinct)), abs=1e-4)
    sides = geometry.positives_of(pairs)
    Z1, Z2 = (torch.from_numpy(cell.encoder.encode(side)) for side in sides)
    assert at[1, "paraphrase", "stsb", "alignment"] == pytest.approx(float(alignment(Z1, Z2)), abs=1e-4)
    kept = [(a, b) for a, b in zip(texts, paraphrase.positives, strict=True) if b]
    words = "training sentences"
    assert at[1, "paraphrase", words, "survivors"] == pytest.approx(len(kept) / 64)
    assert at[1, "paraphrase", words, "token_overlap"] == pytest.approx(np.mean([token_overlap(*k) for k in kept]))
    assert at[0, "dropout", words, "survivors"] == at[0, "dropout", words, "token_overlap"] == 1
    same = augmentation.train_augmented(small, texts, made[0][0], store)
    assert same.key == cell_key(small), "dropout is the cell of other pages"
    assert at[0, "dropout", "stsb", "spearman"] != at[1, "dropout", "stsb", "spearman"], (
        "seeds are trainings of their own"
    )
    assert ("untrained backbone", "spearman") in set(zip(rows["method"], rows["metric"], strict=True))


def test_what_cannot_be_trained_is_named(small, tasks):
    store, texts = Store(), ("a b", "c d")
    (waiting,) = augmentation.make_augmentations(texts, "local", store, names=["paraphrase"])
    with pytest.raises(InputError, match="paraphrase: only generated sentences"):
        augmentation.train_augmented(small, texts, waiting, store)
    with pytest.raises(InputError, match="no seed"):
        augmentation.augmentation_rows(small, texts, {}, tasks, store)
    with pytest.raises(InputError, match="'trec' is not a set of scored pairs"):
        labelled = {"trec": {"test": data.load("trec", split="test", source="microworld")}}
        augmentation.augmentation_rows(small, texts, {0: [waiting]}, labelled, store)
