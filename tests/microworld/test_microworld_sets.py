import re
from functools import cache

import numpy as np
import pytest

from microworld import SIZES, World, make_set
from microworld.pairs import entailments, paraphrases
from microworld.vocabulary import TEMPLATES, inflect, plural, render, with_article
from microworld.world import drop
from repro.data import Retrieval, WordVectors, load, texts_of


@cache
def microworld(name, **options):
    return load(name, source="microworld", **options)


LABELS = {
    "trec": ["ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM"],
    "mr": ["negative", "positive"],
    "sst2": ["0", "1"],
    "nli": ["contradiction", "entailment", "neutral"],
}
"""Of the real sets."""


@pytest.mark.parametrize("name", [name for name in SIZES if name not in ("glove", "wiki")])
def test_every_set_has_its_size_and_labels_and_its_bytes_depend_on_the_seed_alone(name):
    for split, size in SIZES[name].items():
        data = microworld(name, split=split)
        assert len(data) == size and data.split == split and data.source == "microworld"
        # A world that is given is drawn from anew; sets of the usual one are kept
        again, other = (
            texts_of(make_set(name, split, seed=seed, world=World())) for seed in (0, 1)
        )
        assert texts_of(data) == again != other
        assert load(name, split=split, source="microworld") is data
    assert name not in LABELS or np.unique(microworld(name).labels).tolist() == LABELS[name]


def test_all_joins_the_splits():
    data = microworld("stsb", split="all")
    assert len(data) == 1800 and data.split == "all"
    assert data.texts1[:1000] == microworld("stsb", split="train").texts1
    assert 0 <= data.scores.min() < 0.3 and data.scores.max() == pytest.approx(5)


@pytest.mark.parametrize("name", ["trec", "sst2", "mrpc", "stsb", "20news"])
def test_train_and_test_share_words_but_no_text(name):
    train, test = (set(texts_of(microworld(name, split=split))) for split in ("train", "test"))
    words = [set(re.findall(r"[a-z]+", " ".join(texts).lower())) for texts in (train, test)]
    # Abbreviations are coined per question, so TREC's test set has a few of its own.
    assert len(words[1] & words[0]) / len(words[1]) > (0.9 if name == "trec" else 0.97)
    assert len(train & test) <= 0.001 * len(test)
    corpus = set(microworld("wiki").texts)
    assert len(corpus & test) <= 0.001 * len(test)


def test_two_wordings_of_a_frame_share_few_content_words():
    rng = np.random.default_rng(0)
    frames = World().draw(300, rng)
    first = render(frames, rng)
    second = render(frames, rng, other=(frames, first))
    function = re.compile(  # Words that carry the template rather than the frame
        r"\b(the|an?|it|was|that|did|not|is|this|what|there|by|in|on|at|of|to|had|got|never|with|one)\b"
    )
    words = (
        [set(re.findall(r"[a-z]+", function.sub(" ", t.lower()))) for t in side.texts]
        for side in (first, second)
    )
    assert (
        np.mean([len(one & other) / len(one | other) for one, other in zip(*words, strict=True)])
        < 0.25
    )
    assert (first.templates != second.templates).mean() > 0.9 and len(TEMPLATES) >= 12


def test_entailment_is_not_given_away_by_negation():
    premises, hypotheses, labels = entailments(World(), 2000, np.random.default_rng(0))
    negation = re.compile(r"\b(not|never|nobody)\b", re.I)
    denied = np.array([bool(negation.search(text)) for text in hypotheses])
    labels = np.array(labels)
    for label in ("entailment", "neutral", "contradiction"):
        assert 0.2 < denied[labels == label].mean() < 0.8
    assert len(set(premises) & set(hypotheses)) < 20


def test_paraphrases_and_their_hard_negatives_overlap_alike():
    texts1, texts2, labels = paraphrases(World(), 1000, np.random.default_rng(0))
    words1, words2 = ([set(text.lower().split()) for text in side] for side in (texts1, texts2))
    overlap, labels = (
        np.array([len(a & b) for a, b in zip(words1, words2, strict=True)]),
        np.array(labels),
    )
    assert abs(overlap[labels == "1"].mean() - overlap[labels == "0"].mean()) < 0.5


def test_each_query_has_one_document_that_names_its_answer():
    data = microworld("hotpotqa")
    assert isinstance(data, Retrieval) and len(data.documents) == 500
    documents = dict(zip(data.document_ids, data.documents, strict=True))
    for query, answer in zip(data.query_ids, data.answers, strict=True):
        (document,) = (name for name, relevance in data.qrels[query].items() if relevance)
        assert answer in documents[document].lower()


def test_counted_word_vectors_know_what_goes_together():
    vectors = microworld("glove")
    assert isinstance(vectors, WordVectors) and vectors.vectors.shape[1] == 50
    unit = vectors.vectors / np.linalg.norm(vectors.vectors, axis=1, keepdims=True)

    def cosine(one, other):
        return unit[vectors.words.index(one)] @ unit[vectors.words.index(other)]

    assert cosine("film", "story") > cosine("film", "horse")
    assert cosine("doctor", "nurse") > cosine("doctor", "yesterday")


def test_verbs_articles_and_plurals_agree():
    verbs = [
        "look at|looked at|looked at|looking at",
        "carry|carried|carried|carrying",
        "hide|hid|hidden|hiding",
    ]
    verbs += [
        "drag|dragged|dragged|dragging",
        "free|freed|freed|freeing",
        "envy|envied|envied|envying",
    ]
    assert ["|".join(inflect(forms.split("|")[0])) for forms in verbs] == verbs
    assert [with_article(noun) for noun in ("old car", "usual car", "dog")] == [
        "an old car",
        "a usual car",
        "a dog",
    ]
    plurals = {
        "child": "children",
        "lorry": "lorries",
        "watch": "watches",
        "wild wolf": "wild wolves",
    }
    assert [plural(noun) for noun in plurals] == list(plurals.values())
    rng = np.random.default_rng(0)
    for text in render(drop(World().draw(2000, rng), rng), rng).texts:
        assert re.fullmatch(r"[A-Z][A-Za-z',\- ]+[.?]", text), text
        assert "  " not in text and not re.search(r"\ba [aeio]", text.replace("a one", "")), text
