"""The words, which are tables in `words/`: English agreement, and what can vary in a meaning.

Common words only, so that a WordPiece vocabulary trained on any English knows them. A cell of `words/` may hold
synonyms with bars between them; a lone hyphen stands for no word at all.

A meaning is a frame, a row of values of some factors. A value's place in the tree factor → class → group is its
meaning: two values are alike as far as they share their group (a pet, a vehicle) or their class (an animal, a thing).
Group names are words too, the general terms. Anyone can act; anyone and anything can be acted upon: ten animate groups,
then ten of things, are twenty topics.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray


def table(name: str) -> list[list[str]]:
    """The rows of a table in `words/`, its header left out."""
    lines = (files("microworld") / "words" / f"{name}.tsv").read_text(encoding="utf-8").splitlines()[1:]
    return [["" if cell == "-" else cell for cell in line.split("\t")] for line in lines]


LISTS: dict[str, tuple[str, ...]] = {}
for _list, _entry in table("lists"):
    LISTS[_list] = (*LISTS.get(_list, ()), _entry)
_VERBS = {base: (past, participle) for base, past, participle in (row.split("|") for row in LISTS["irregular verb"])}
_NOUNS = dict(row.split("|") for row in LISTS["irregular noun"])


class Verb(NamedTuple):
    """The four forms that the templates need."""

    base: str
    past: str
    participle: str
    gerund: str


def inflect(phrase: str) -> Verb:
    """The forms of a verb phrase; its first word changes, the rest stays: look at, looked at, looking at."""
    base, _, rest = phrase.partition(" ")
    stem = base + base[-1] if base in LISTS["verb that doubles"] else base
    if base in _VERBS:
        past, participle = _VERBS[base]
    elif base.endswith("e"):
        past = participle = base + "d"
    elif base.endswith("y") and base[-2] not in "aeiou":
        past = participle = base[:-1] + "ied"
    else:
        past = participle = stem + "ed"
    gerund = (base[:-1] if base.endswith("e") and not base.endswith("ee") else stem) + "ing"
    tail = f" {rest}" if rest else ""
    return Verb(base + tail, past + tail, participle + tail, gerund + tail)


def with_article(phrase: str) -> str:
    """The phrase after `a` or `an`, by its first sound."""
    vowel = phrase[0].lower() in "aeiou" and not phrase.startswith(("uni", "use", "usual", "one", "eu"))
    return f"{'an' if vowel or phrase.startswith(('hour', 'honest')) else 'a'} {phrase}"


def plural(noun: str) -> str:
    """The plural of a noun phrase; its last word changes."""
    head, _, last = noun.rpartition(" ")
    if last in _NOUNS:
        last = _NOUNS[last]
    elif last.endswith(("s", "sh", "ch", "x")):
        last += "es"
    elif last.endswith("y") and last[-2] not in "aeiou":
        last = last[:-1] + "ies"
    else:
        last += "s"
    return f"{head} {last}".strip()


def sentence(body: str, end: str = ".") -> str:
    """The body with a capital and its end mark."""
    return body[0].upper() + body[1:] + end


def pick(rng: np.random.Generator, values: tuple[str, ...]) -> str:
    """A random value, said by a random synonym."""
    synonyms = values[int(rng.random() * len(values))].split("|")
    return synonyms[int(rng.random() * len(synonyms))]


class Labelled(NamedTuple):
    """Texts and their labels."""

    texts: list[str]
    labels: list[str]


def distinct(labels: list[str], make: Callable[[str], str]) -> Labelled:
    """A text for each label, made anew while it repeats an earlier one."""
    texts: dict[str, str] = {}
    for label in labels:
        text = make(label)
        while text in texts:
            text = make(label)
        texts[text] = label
    return Labelled(list(texts), labels)


# Meanings

Frames: TypeAlias = NDArray[np.int64]
"""Value ids (n, factors), one column per factor in the order of `NAMES`; -1 where left unsaid."""
# Likeness of two values that share their class only, their group as well, or are the same value. Each level adds the
# kernel [same class], [same group] or [same value], all positive semidefinite, so the sum is too.
SAME_CLASS, SAME_GROUP, SAME_VALUE = 0.15, 0.45, 1.0
SPLIT_SHARES = {"train": 0.6, "dev": 0.1, "test": 0.3}


@dataclass(frozen=True, eq=False)
class Factor:
    """One factor of a frame: its values in tree order, each with its synonyms, group and class."""

    name: str
    weight: float
    """Its share c_f of the frame similarity, before normalising."""
    optional: bool
    """Whether a sentence can leave it unsaid."""
    synonyms: tuple[tuple[str, ...], ...]
    group_of: NDArray[np.int64]
    class_of: NDArray[np.int64]
    groups: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.synonyms)

    @cached_property
    def kernel(self) -> NDArray[np.float64]:
        """Value similarity σ_f, (values, values), from the depth of the common ancestor."""
        same_class = self.class_of[:, None] == self.class_of
        same_group = self.group_of[:, None] == self.group_of
        kernel = SAME_CLASS * same_class + (SAME_GROUP - SAME_CLASS) * same_group
        return kernel + (SAME_VALUE - SAME_GROUP) * np.eye(len(self))


def _factor(name: str, weight: float, *sources: str) -> Factor:
    """A factor of the rows in `words/factors.tsv` that carry one of these names; its own without any."""
    rows = [row[1:] for row in table("factors") if row[0] in (sources or (name,))]
    classes, groups = (list(dict.fromkeys(row[level] for row in rows)) for level in (0, 1))
    class_of, group_of = (
        np.array([names.index(row[level]) for row in rows]) for level, names in enumerate((classes, groups))
    )
    synonyms = tuple(tuple(row[2].split("|")) for row in rows)
    return Factor(name, weight, not sources and name != "action", synonyms, group_of, class_of, tuple(groups))


# Column order of a frame: who, does what, to whom or what, where, of what kind, how, when. The eighth, polarity,
# is no summand of the similarity but multiplies it, so it is no Factor.
FACTORS: tuple[Factor, ...] = (
    _factor("agent", 0.21, "being"),
    _factor("action", 0.23),
    _factor("object", 0.23, "being", "thing"),
    _factor("place", 0.12),
    _factor("attribute", 0.07),
    _factor("manner", 0.07),
    _factor("time", 0.07),
)
NAMES: tuple[str, ...] = (*(factor.name for factor in FACTORS), "polarity")
AGENT, ACTION, OBJECT, PLACE, ATTRIBUTE, MANNER, TIME, POLARITY = range(8)
ABSENT = -1
"""Stands in a frame for a factor left unsaid."""


def drop(frames: Frames, rng: np.random.Generator, share: float = 0.5) -> Frames:
    """Leave each optional factor unsaid with probability `share`, independently."""
    frames = frames.copy()
    for column in range(PLACE, min(frames.shape[1], POLARITY)):
        frames[rng.random(len(frames)) < share, column] = ABSENT
    return frames


def split_of(frames: Frames) -> NDArray[np.str_]:
    """The split that each frame belongs to, (n,), by a hash of its values: no frame is ever in two splits."""
    mixed = np.full(len(frames), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in frames.T:
        mixed = (mixed ^ (column + 2).astype(np.uint64)) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    edges = np.cumsum(list(SPLIT_SHARES.values()))[:-1]
    place = (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53
    return np.array(list(SPLIT_SHARES))[np.searchsorted(edges, place, side="right")]
