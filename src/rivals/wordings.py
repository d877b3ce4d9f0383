"""Other wordings of a sentence, as positives for contrastive training: synonyms, and mixtures of
several ways (method-augmentation in the book).

A lexicon maps a word, or a phrase of words with single spaces between them, to what may stand in
its place. What the microworld knows about wordings of its own sentences is here, for the files of
its folder name the generated sets, and a change to one makes all of them new.
"""

import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from microworld.texts import BAD, FILM, GOOD, GOODS
from microworld.vocabulary import (
    ACTION,
    AGENT,
    FACTORS,
    OBJECT,
    inflect,
    plural,
    render,
    with_article,
)
from microworld.world import World, draw_split
from repro.data.lines import read_lines
from repro.paths import ASSETS
from repro.seeding import make_rng
from repro.sets import WordVectors
from repro.types import InputError, unit_rows

Lexicon: TypeAlias = Mapping[str, Sequence[str]]
Positives: TypeAlias = tuple[str | None, ...]
"""Another wording of each sentence; None where there is none, so that the sentence is no anchor."""

NEGATIONS, NUMBERS, STOP_WORDS = (
    frozenset(line.split())
    for line in (ASSETS / "function_words.txt").read_text(encoding="utf-8").splitlines()
)
"""Words that are never replaced; stop words carry the frame of a sentence and not its content."""

# A word with a digit in it is a number
_WORD = re.compile(r"(?<!\w)[^\W\d_]+(?:['’-][^\W\d_]+)*(?!\w)")
_TOKEN = re.compile(r"\w+")
_OPENING = " \t\n\"'“”‘’()[]"
NEIGHBOURS, LEAST_COSINE, FREQUENT = 3, 0.75, 6_000
"""Of a word's neighbours: at most so many, from this cosine on, among so many of the most frequent
words.
"""


def synonyms(
    texts: Sequence[str],
    lexicon: Lexicon,
    *,
    p: float = 0.15,
    seed: int = 0,
) -> list[str]:
    """Every text with each content word replaced by one of its synonyms with probability p.

    Numbers, negations, stop words and names, which is what is capitalised inside a sentence, are
    kept, and so is the case of the first letter; `a` and `an` follow the sound of the new word. Of
    overlapping phrases the longest that starts first is taken. What happens to a word is decided by
    the seed, its text and its place in it, so that neither the other texts nor their order matter,
    and what p = 0.1 replaces, p = 0.2 replaces as well.
    """
    if not 0 <= p <= 1:
        raise InputError(f"p is {p}: expected a probability, 0 to 1")
    known = {}
    for word, synonyms_of_word in lexicon.items():
        if others := [other for other in synonyms_of_word if other != word]:
            known[word.lower()] = others
    if not known:
        raise InputError("the lexicon is empty: expected words with their synonyms")
    longest = max(word.count(" ") + 1 for word in known)
    return [_reworded(text, known, longest, p, seed) for text in texts]


def _reworded(
    text: str,
    lexicon: Mapping[str, list[str]],
    longest: int,
    p: float,
    seed: int,
) -> str:
    words = list(_WORD.finditer(text))
    draws = make_rng(seed, "synonyms", text).random((len(words), 2))
    pieces: list[str] = []
    done = i = 0
    while i < len(words):
        unit = _unit_at(text, words, i, lexicon, longest)
        if unit and draws[i, 0] < p:
            start, end = unit[0].start(), unit[-1].end()
            others = lexicon[text[start:end].lower()]
            chosen = others[int(draws[i, 1] * len(others))]
            before = text[done:start]
            if (
                i
                and words[i - 1].group().lower() in ("a", "an")
                and words[i - 1].end() == start - 1
            ):
                article = with_article(chosen).split(" ", 1)[0]
                before = (
                    text[done : words[i - 1].start()]
                    + _with_case_of(words[i - 1].group(), article)
                    + " "
                )
            pieces += [before, _with_case_of(text[start], chosen)]
            done = end
        i += len(unit) or 1
    return "".join([*pieces, text[done:]])


def _unit_at(
    text: str,
    words: Sequence[re.Match[str]],
    i: int,
    lexicon: Mapping[str, list[str]],
    longest: int,
) -> Sequence[re.Match[str]]:
    """The longest phrase at word i that has synonyms and may be replaced; empty if there is
    none.
    """
    for size in range(min(longest, len(words) - i), 0, -1):
        unit = words[i : i + size]
        phrase = text[unit[0].start() : unit[-1].end()].lower()
        if phrase in lexicon and not any(_is_kept(text, word) for word in unit):
            return () if {word.group().lower() for word in unit} <= STOP_WORDS else unit
    return ()


def _is_kept(text: str, word: re.Match[str]) -> bool:
    """Whether a word is a negation, a number or a name."""
    letters = word.group()
    if letters.lower() in NEGATIONS | NUMBERS or letters.lower().endswith(("n't", "n’t")):
        return True
    starts = text[: word.start()].rstrip(_OPENING)[-1:] in ("", *".!?:")
    # An abbreviation is a name wherever it stands
    return letters[0].isupper() and (not starts or (len(letters) > 1 and letters.isupper()))


def _with_case_of(model: str, word: str) -> str:
    return word[0].upper() + word[1:] if model[0].isupper() else word


def read_lexicon(path: Path | str) -> dict[str, tuple[str, ...]]:
    """A lexicon from a file, gzipped or not: a word, a tab, and its synonyms by commas; a word may
    come twice.
    """
    lexicon: dict[str, tuple[str, ...]] = {}
    for number, line in read_lines(Path(os.path.expanduser(path))):
        word, *columns = line.split("\t")
        others = [other.strip() for other in ",".join(columns).split(",")]
        if len(columns) != 1 or not word.strip() or not all(others):
            expected = "expected a word, a tab, synonyms with commas between"
            raise InputError(f"{path} line {number}: {line[:60]!r}; {expected}")
        key = word.strip().lower()
        lexicon[key] = tuple(dict.fromkeys((*lexicon.get(key, ()), *others)))
    if not lexicon:
        raise InputError(f"{path} is empty: expected a word, a tab and its synonyms on every line")
    return lexicon


def neighbour_lexicon(vectors: WordVectors) -> dict[str, tuple[str, ...]]:
    """For every frequent content word those nearest to it by the cosine of their vectors, most
    frequent word first.

    They are related and not always synonyms: words of one theme, and opposites, are near each other
    too.
    """
    content = []
    for number, word in enumerate(vectors.words[:FREQUENT]):
        is_word = len(word) > 2 and _WORD.fullmatch(word)
        if is_word and word not in STOP_WORDS | NEGATIONS | NUMBERS:
            content.append(number)
    X = unit_rows(vectors.vectors[content])
    lexicon: dict[str, tuple[str, ...]] = {}
    for start in range(0, len(content), 1024):
        cosines = X[start : start + 1024] @ X.T  # (chunk, words)
        np.fill_diagonal(cosines[:, start:], -1.0)
        for row in np.flatnonzero(cosines.max(axis=1) >= LEAST_COSINE):
            near = np.flatnonzero(cosines[row] >= LEAST_COSINE)
            near = near[np.argsort(-cosines[row, near], kind="stable")][:NEIGHBOURS]
            word = vectors.words[content[start + row]]
            lexicon[word] = tuple(vectors.words[content[j]] for j in near)
    if not lexicon:
        raise InputError(
            f"no two of the {len(content)} words of {vectors.name} have a cosine of {LEAST_COSINE} "
            "or more"
        )
    return lexicon


def microworld_lexicon() -> dict[str, tuple[str, ...]]:
    """Every word and phrase of generated sentences with those of the same meaning and form.

    A form with several meanings gets only what fits all of them: "film" is a verb here and a noun
    there.
    """
    meanings: set[tuple[str, ...]] = set()
    for column, factor in enumerate(FACTORS):
        for alike in factor.synonyms:
            # Of a verb each of base, past, participle and gerund
            meanings |= set(zip(*map(inflect, alike), strict=True)) if column == ACTION else {alike}
            if column in (AGENT, OBJECT):
                meanings.add(tuple(map(plural, alike)))
    meanings |= {tuple(value.split("|")) for value in (*FILM, *GOODS, *GOOD, *BAD)}
    fitting: dict[str, list[set[str]]] = defaultdict(list)
    for alike in sorted(meanings):
        for form in alike:
            fitting[form.lower()].append(set(alike) - {form})
    common = {form: tuple(sorted(set.intersection(*others))) for form, others in fitting.items()}
    return {form: others for form, others in common.items() if others}


def microworld_paraphrases(texts: Sequence[str], *, size: int, seed: int = 0) -> list[str | None]:
    """Each generated sentence in other words: the same frame, another template, other synonyms
    where there are any.

    The frames of the corpus are drawn again as the generator drew them, which its size decides.
    Opinions and questions, a quarter and more of the corpus, say more or less than a frame and get
    None.
    """
    world = World()
    rng = make_rng(0, "microworld set", "wiki", "train", world.seed)
    frames = draw_split(world, size - size // 5, rng, "train", unsaid=0.4)
    wording = render(frames, rng)
    other = render(frames, make_rng(seed, "paraphrases"), other=(frames, wording))
    reworded = dict(zip(wording.texts, other.texts, strict=True))
    return [reworded.get(text) for text in texts]


def drop_equal(texts: Sequence[str], positives: Sequence[str | None]) -> Positives:
    """The positives, None where one says nothing that its text does not: equal but for white space
    and case.
    """
    kept = []
    for text, positive in zip(texts, positives, strict=True):
        words = positive.lower().split() if positive else []
        kept.append(positive if words and words != text.lower().split() else None)
    return tuple(kept)


def mixture(ways: Mapping[str, Sequence[str | None]], *, seed: int = 0) -> Positives:
    """For each text the positive of one of several ways, each with an equal chance.

    A way that has none for that text leaves it without: to draw again would favour the other ways.
    """
    rows = list(zip(*ways.values(), strict=True))
    chosen = make_rng(seed, "mixture", *ways).integers(len(ways), size=len(rows))
    return tuple(row[way] for row, way in zip(rows, chosen, strict=True))


def token_overlap(a: str, b: str) -> float:
    """Share of the distinct words of two texts that are in both, case aside: 1 for the same words,
    0 for none.
    """
    first = set(_TOKEN.findall(a.lower()))
    second = set(_TOKEN.findall(b.lower()))
    return len(first & second) / max(1, len(first | second))
