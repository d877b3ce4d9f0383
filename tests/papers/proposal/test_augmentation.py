"""Augmentations by name, trained for equal steps; dropout is the SimCSE cell; what is not at hand
says so.
"""

from dataclasses import replace

import numpy as np
import pytest

from repro import data
from repro.data.samples import training_sentences
from repro.data.sampling import take
from repro.evaluation import sts_spearman
from repro.papers.proposal import augmentation
from repro.runs.cell import cell_key
from repro.store import Store
from repro.types import InputError
from rivals.wordings import token_overlap


def made_of(texts, source="microworld", **options):
    corpus = data.Corpus("wiki", source, texts)
    ways = augmentation.make_augmentations(corpus, Store(), **options)
    return {way.name: way for way in ways}


def test_ways_at_hand_and_ways_that_wait():
    texts = data.load("wiki", source="microworld", limit=96).texts
    made = made_of(texts)
    assert list(made) == list(augmentation.WAYS)
    assert made["dropout"].positives == texts, "under dropout, equality is the method"
    assert (
        made["back-translation"].positives is None
        and "translators" in made["back-translation"].note
    )
    for name in ("synonym", "paraphrase"):
        kept = [(a, b) for a, b in zip(texts, made[name].positives, strict=True) if b]
        assert kept and all(a != b for a, b in kept) and len(kept) < len(texts)
    for i, mixed in enumerate(made["mixture"].positives):
        assert mixed in [made[name].positives[i] for name in ("dropout", "synonym", "paraphrase")]
    for source, others in (("local", ("a b",)), ("microworld", ("Nobody generated this.",))):
        assert made_of(others, source, names=["paraphrase"])["paraphrase"].positives is None, (
            "generated ones only"
        )


def test_back_translation_runs_where_a_pair_is_named(translators):
    texts, pair = data.load("wiki", source="microworld", limit=6).texts, [translators["t5"]] * 2
    made = made_of(texts, names=["dropout", "back-translation", "mixture"], translators=pair)
    assert len(made["back-translation"].positives) == 6 and made["mixture"].positives is not None
    with pytest.raises(InputError, match="expected two networks"):
        made_of(texts, translators=pair[:1])
    assert (
        made_of(texts, names=["back-translation"], translators=[])["back-translation"].positives
        is None
    )


def test_a_lexicon_is_the_users_or_the_generators(write, tmp_path, monkeypatch):
    own = str(write("own.tsv", "big\thuge"))
    assert augmentation.choose_lexicon("local", own) == ({"big": ("huge",)}, "lexicon own.tsv")
    assert (
        augmentation.choose_lexicon("microworld")[0]
        and augmentation.choose_lexicon("hub")[0] is None
    )
    monkeypatch.setenv("REPRO_DATA", str(tmp_path))
    assert augmentation.choose_lexicon("local")[0] is None, "no vectors in that folder"


def test_rows_are_what_the_embeddings_say(cell_config):
    store, names, small = (
        Store(),
        ["dropout", "paraphrase"],
        replace(cell_config, sentences=64, check_every=4),
    )
    sets = {name: data.load(name, split="test", source="microworld") for name in ("stsb", "sickr")}
    tasks = {name: {"test": take(pairs, 80)} for name, pairs in sets.items()}
    texts = training_sentences(small, store)
    corpus = data.Corpus("wiki", "microworld", texts)
    made = {1: augmentation.make_augmentations(corpus, store, seed=1, names=names)}
    rows = augmentation.augmentation_rows(small, texts, made, tasks, store, experiment="x")
    at = rows.set_index(["method", "dataset", "metric"])["value"]
    dropout, paraphrase = made[1]
    cell = augmentation.train_augmented(replace(small, seed=1), texts, paraphrase, store)
    assert cell.hit and len(cell.history.losses) == 4, "as many steps as all sentences fill"
    same = augmentation.train_augmented(replace(small, seed=1), texts, dropout, store)
    assert same.key == cell_key(replace(small, seed=1)), "dropout is the cell of other pages"
    pairs, encode = tasks["stsb"]["test"], cell.encoder.encode
    expected = sts_spearman(encode(pairs.texts1), encode(pairs.texts2), pairs.scores)
    assert at["paraphrase", "stsb", "spearman"] == pytest.approx(expected, abs=1e-6)
    lead = at["paraphrase", "sickr", "spearman"] - at["dropout", "sickr", "spearman"]
    assert at["paraphrase", "sickr", "spearman_lead"] == pytest.approx(lead)
    assert {"alignment", "uniformity"} <= set(rows.loc[rows["dataset"] == "stsb", "metric"])
    kept, words = (
        [(a, b) for a, b in zip(texts, paraphrase.positives, strict=True) if b],
        "training sentences",
    )
    assert at["paraphrase", words, "survivors"] == pytest.approx(len(kept) / 64)
    assert at["paraphrase", words, "token_overlap"] == pytest.approx(
        np.mean([token_overlap(*k) for k in kept])
    )
    assert ("untrained backbone", "stsb", "spearman") in at.index
