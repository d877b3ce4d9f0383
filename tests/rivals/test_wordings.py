"""Rewordings keep what they promise to keep, repeat by seed, and say what the generator's frames
say.
"""

import numpy as np
import pytest

from microworld.vocabulary import FACTORS
from repro.sets import WordVectors
from repro.types import InputError
from rivals import wordings

EVERY_WORD = {
    word: ["WRONG"]
    for word in ("paris", "nasa", "not", "don't", "two", "3", "b2b", "the", "never", "i")
}
KEPT = "The NASA team in Paris did not, and don't you never, buy two of 3 b2b {}? I do"
PHRASES = {
    "car": ["automobile"],
    "orange": ["fruit"],
    "look at": ["watch"],
    "look": ["stare"],
    "at": ["WRONG"],
}


@pytest.mark.parametrize(
    ("lexicon", "text", "expected"),
    [
        (
            {"big": ["huge"], "bark": ["yelp"]},
            "Big dogs bark at big cats.",
            "Huge dogs yelp at huge cats.",
        ),
        # Numbers, negations, stop words and names stay
        (EVERY_WORD | {"goods": ["wares"]}, KEPT.format("goods"), KEPT.format("wares")),
        # A sentence may open with a capital, a name may not change
        (
            {"dogs": ["hounds"], "brown": ["tan"]},
            'Dogs ran. "Dogs bark!" Mr Brown saw Dogs; brown dogs. BROWN',
            'Hounds ran. "Hounds bark!" Mr Brown saw Dogs; tan hounds. BROWN',
        ),
        # Articles follow the sound, the longest phrase wins, and it has single spaces
        (
            PHRASES,
            "A car, an orange. Look at a car!",
            "An automobile, a fruit. Watch an automobile!",
        ),
        (PHRASES, "look  at, look", "stare  at, stare"),
    ],
)
def test_what_may_be_replaced_is(lexicon, text, expected):
    assert wordings.synonyms([text], lexicon, p=1) == [expected]
    assert wordings.synonyms([text], lexicon, p=0) == [text]


def test_a_text_is_reworded_alike_in_any_company(sentences):
    lexicon, some = wordings.microworld_lexicon(), list(sentences[:50])
    backwards = wordings.synonyms(some[::-1], lexicon, p=0.5, seed=3)
    assert wordings.synonyms(some, lexicon, p=0.5, seed=3)[::-1] == backwards
    assert backwards != wordings.synonyms(some[::-1], lexicon, p=0.5, seed=4)


def test_chance_is_the_share_replaced_and_grows_with_what_was_replaced_before():
    lexicon, some = {"cat": ["dog"]}, [f"{i} " + "cat " * 20 for i in range(100)]
    few, many = (wordings.synonyms(some, lexicon, p=p) for p in (0.15, 0.4))
    share = sum(text.count("dog") for text in few) / 2_000
    assert share == pytest.approx(0.15, abs=4 * np.sqrt(0.15 * 0.85 / 2_000))
    for a, b in zip(few, many, strict=True):
        assert all(y == "dog" for x, y in zip(a.split(), b.split(), strict=True) if x == "dog")
    with pytest.raises(InputError, match=r"p is 1\.5"):
        wordings.synonyms(["a"], {"a": ["b"]}, p=1.5)
    with pytest.raises(InputError, match="lexicon is empty"):
        wordings.synonyms(["a"], {"a": ["a"]})


def test_a_lexicon_is_read_and_its_faults_are_named(write):
    path = write("words.tsv", "Big\thuge, large", "look at\twatch", "big\tvast,huge")
    assert wordings.read_lexicon(path) == {"big": ("huge", "large", "vast"), "look at": ("watch",)}
    for line in ("big", "big\t", "\thuge", "big\thuge,,vast", "big\thuge\tvast"):
        with pytest.raises(InputError, match=r"bad\.tsv line 2: .*expected a word, a tab"):
            wordings.read_lexicon(write("bad.tsv", "a\tb", line))


def test_neighbours_are_those_of_a_direct_search():
    rng = np.random.default_rng(0)
    words = (
        "the",
        "two",
        "4th",
        *(f"word{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(60)),
    )
    X = rng.normal(size=(len(words), 4)).astype(np.float32)
    found = wordings.neighbour_lexicon(WordVectors("v", "local", words, X))
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    for i, word in enumerate(words[3:], start=3):
        near = sorted((-float(unit[i] @ unit[j]), words[j]) for j in range(3, len(words)) if j != i)
        expected = tuple(other for cosine, other in near[:3] if -cosine >= 0.75)
        assert found.get(word, ()) == expected
    assert not {"the", "two", "4th"} & set(found)


def test_the_generators_lexicon_stays_within_a_meaning():
    lexicon = wordings.microworld_lexicon()
    assert set(lexicon["physician"]) == {"doctor", "medic"}
    assert set(lexicon["noticed"]) == {"spotted"}, (
        "neither `saw` nor `seen` fits both its past and its participle"
    )
    assert "film" not in lexicon, "a verb in one place, a noun in another"
    assert set(lexicon["automobiles"]) == {"cars", "motor cars"}


def test_paraphrases_are_the_same_frame_in_other_words(sentences):
    again = wordings.microworld_paraphrases(sentences, size=len(sentences), seed=1)
    pairs = [(a, b) for a, b in zip(sentences, again, strict=True) if b]
    assert 0.65 < len(pairs) / len(sentences) < 0.8, (
        "all sentences that say a frame and nothing else"
    )
    assert np.mean([wordings.token_overlap(a, b) for a, b in pairs]) < 0.3
    # Every value of the frame that both say is the same value: synonyms of each other or equal
    agents = {phrase: i for i, value in enumerate(FACTORS[2].synonyms) for phrase in value}
    for pair in pairs[:100]:
        words = [f" {text.lower().strip('.?')} " for text in pair]
        said = [{i for phrase, i in agents.items() if f" {phrase} " in text} for text in words]
        assert said[0] & said[1]
    assert again != wordings.microworld_paraphrases(sentences, size=len(sentences), seed=2)
    assert wordings.microworld_paraphrases(["No frame says this."], size=400) == [None]


def test_a_mixture_takes_each_way_equally_often():
    n = 3_000
    ways = {name: tuple(f"{name} {i}" for i in range(n)) for name in ("x", "y")} | {
        "z": (None,) * n
    }
    found = wordings.mixture(ways, seed=5)
    counts = [
        sum(text is not None and text.startswith(name) for text in found) for name in ("x", "y")
    ]
    for count in (*counts, found.count(None)):
        assert count == pytest.approx(n / 3, abs=4 * np.sqrt(n * 2 / 9))
    assert all(text is None or text.endswith(f" {i}") for i, text in enumerate(found))
    assert found == wordings.mixture(ways, seed=5) != wordings.mixture(ways, seed=6)


def test_wordings_are_compared_without_case_and_space():
    assert wordings.drop_equal(["A b"] * 4, ["a  B ", "a c", None, " "]) == (
        None,
        "a c",
        None,
        None,
    )
    assert wordings.token_overlap("The cat, the CAT!", "cat the") == 1
    assert wordings.token_overlap("a b", "b c") == pytest.approx(1 / 3)
