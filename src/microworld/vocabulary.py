"""The words, which are tables in `words/`: English agreement, what can vary in a meaning, and
sentences that say it.

Common words only, so that a WordPiece vocabulary trained on any English knows them. A cell of
`words/` may hold synonyms with bars between them; a lone hyphen stands for no word at all.

A meaning is a frame, a row of values of some factors. A value's place in the tree factor → class →
group is its meaning: two values are alike as far as they share their group (a pet, a vehicle) or
their class (an animal, a thing). Group names are words too, the general terms. Anyone can act;
anyone and anything can be acted upon: ten animate groups, then ten of things, are twenty topics.

A template says a frame in two ways, affirmed and denied, with slots: A the agent and O the object
with their articles, V past, N participle, G gerund and B base form of the verb. What a template has
no slot for (place, time, manner) follows it or is fronted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray


def table(name: str) -> list[list[str]]:
    """The rows of a table in `words/`, its header left out."""
    lines = (
        (files("microworld") / "words" / f"{name}.tsv").read_text(encoding="utf-8").splitlines()[1:]
    )
    return [["" if cell == "-" else cell for cell in line.split("\t")] for line in lines]


LISTS: dict[str, tuple[str, ...]] = {}
for _list, _entry in table("lists"):
    LISTS[_list] = (*LISTS.get(_list, ()), _entry)
_VERBS = {
    base: (past, participle)
    for base, past, participle in (row.split("|") for row in LISTS["irregular verb"])
}
_NOUNS = dict(row.split("|") for row in LISTS["irregular noun"])


class Verb(NamedTuple):
    """The four forms that the templates need."""

    base: str
    past: str
    participle: str
    gerund: str


@cache
def inflect(phrase: str) -> Verb:
    """The forms of a verb phrase; its first word changes, the rest stays: look at, looked at,
    looking at.
    """
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


@cache
def with_article(phrase: str) -> str:
    """The phrase after `a` or `an`, by its first sound."""
    vowel = phrase[0].lower() in "aeiou" and not phrase.startswith(
        ("uni", "use", "usual", "one", "eu")
    )
    return f"{'an' if vowel or phrase.startswith(('hour', 'honest')) else 'a'} {phrase}"


@cache
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


# Meanings

Frames: TypeAlias = NDArray[np.int64]
"""Value ids (n, factors), one column per factor in the order of `NAMES`; -1 where left unsaid."""
# Likeness of two values that share their class only, their group as well, or are the same value.
# Each level adds the kernel [same class], [same group] or [same value], all positive semidefinite,
# so the sum is too.
SAME_CLASS, SAME_GROUP, SAME_VALUE = 0.15, 0.45, 1.0


@dataclass(frozen=True, eq=False)
class Factor:
    """One factor of a frame: its values in tree order, each with its synonyms, group and class."""

    name: str
    weight: float  # Its share c_f of the frame similarity, before normalising
    optional: bool  # Whether a sentence can leave it unsaid
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
    """A factor of the rows in `words/factors.tsv` that carry one of these names; its own without
    any.
    """
    rows = [row[1:] for row in table("factors") if row[0] in (sources or (name,))]
    classes, groups = (list(dict.fromkeys(row[level] for row in rows)) for level in (0, 1))
    class_of, group_of = (
        np.array([names.index(row[level]) for row in rows])
        for level, names in enumerate((classes, groups))
    )
    synonyms = tuple(tuple(row[2].split("|")) for row in rows)
    return Factor(
        name,
        weight,
        not sources and name != "action",
        synonyms,
        group_of,
        class_of,
        tuple(groups),
    )


# Column order of a frame: who, does what, to whom or what, where, of what kind, how, when. The
# eighth, polarity, is no summand of the similarity but multiplies it, so it is no Factor.
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
ABSENT = -1  # Stands in a frame for a factor left unsaid


# Sentences

TEMPLATES = table("templates")  # (affirmed, denied, end mark)
_PLAIN = 11  # The first so many say that it happened or did not, and nothing else
# "yesterday, this is the car that …" would date the pointing, not the deed
_UNFRONTED = frozenset({4, 8, 9, 13})
_NOMINAL = len(TEMPLATES) - 1
_ORDERS = (
    (MANNER, PLACE, TIME),
    (MANNER, TIME, PLACE),
    (PLACE, MANNER, TIME),
    (PLACE, TIME, MANNER),
)


def _words(factor: Factor) -> NDArray[np.object_]:
    """Words by value and synonym; then the groups by name ("some pet"), and last, where `ABSENT`
    finds it, no word.
    """
    wordings = [*factor.synonyms, *((group,) for group in factor.groups), ("",)]
    most = max(map(len, wordings))
    padded = [[*synonyms, *[""] * (most - len(synonyms))] for synonyms in wordings]
    return np.array(padded, dtype=object)


_WORDS = [_words(factor) for factor in FACTORS]
_COUNTS = [np.maximum((words != "").sum(axis=1), 1) for words in _WORDS]
# A verb of several words makes no noun ("the looking at of the car"): what says so is said plainly
# instead.
_COMPOUND = np.array([[" " in verb for verb in verbs] for verbs in _WORDS[ACTION]])


class Wording(NamedTuple):
    """Sentences not yet said, and the choices that make them."""

    drawn: list[tuple[Any, ...]]  # What `say` is given for each
    picks: NDArray[np.int64]  # Which synonym says each factor, (n, factors without polarity)
    templates: NDArray[np.int64]  # Which template each sentence uses, (n,)

    @property
    def texts(self) -> list[str]:
        """All sentences, said."""
        return [say(*row) for row in self.drawn]


def render(
    frames: Frames,
    rng: np.random.Generator,
    *,
    other: tuple[Frames, Wording] | None = None,
    differ: float = 1.0,
    plain: bool = False,
) -> Wording:
    """Say each frame once, in a drawn template with drawn synonyms, articles and order of place,
    time and manner.

    With `other` frames and their wording, in another template and, with the probability `differ`,
    by another synonym wherever the two frames share a value that has one. `plain` keeps to
    templates that state the frame, no more and no less: no question, no hearsay.
    """
    n, kinds = len(frames), _PLAIN if plain else len(TEMPLATES)
    picks, templates = _pick_synonyms(frames, rng, other, differ), rng.integers(kinds, size=n)
    if other is not None:
        templates = (other[1].templates + rng.integers(1, kinds, size=n)) % kinds
    clumsy = _COMPOUND[frames[:, ACTION], picks[:, ACTION]] & (templates == _NOMINAL)
    templates = np.where(clumsy, 0, templates)
    denied = frames[:, POLARITY] if frames.shape[1] > POLARITY else np.zeros(n, dtype=np.int64)
    articles = rng.random((n, 2)) < 0.7
    orders = rng.integers(len(_ORDERS), size=n)
    # A third of the sentences front one of place, time, manner
    fronts = rng.integers(3 * len(_ORDERS[0]), size=n)
    drawn = (column.tolist() for column in (denied, templates, articles, orders, fronts))
    return Wording(list(zip(spoken(frames, picks), *drawn, strict=True)), picks, templates)


def spoken(frames: Frames, picks: NDArray[np.int64]) -> list[tuple[str, ...]]:
    """The words of each frame's seven factors; none where one is unsaid or the world has no such
    factor.
    """
    columns = [
        words[frames[:, i], picks[:, i]].tolist()
        for i, words in enumerate(_WORDS[: picks.shape[1]])
    ]
    unsaid = [""] * len(frames)
    missing = len(FACTORS) - len(columns)
    return list(zip(*columns, *[unsaid] * missing, strict=True))


def say(
    words: tuple[str, ...],
    denied: int = 0,
    template: int = 0,
    articles: Sequence[bool] = (True, True),
    order: int = 0,
    front: int = 99,
) -> str:
    """One sentence of the words of a frame, every choice that `render` draws given.

    `articles` say whether agent and object take `the`; the phrase with the number `front`, if any,
    comes first.
    """
    agent, action, thing, _, adjective, _, _ = words
    verb, noun = inflect(action), f"{adjective} {thing}" if adjective else thing
    nouns = [
        f"the {phrase}" if the else with_article(phrase)
        for phrase, the in zip((agent, noun), articles, strict=True)
    ]
    pattern, end = TEMPLATES[template][denied], TEMPLATES[template][2]
    body = pattern.format(
        A=nouns[0],
        O=nouns[1],
        B=verb.base,
        V=verb.past,
        N=verb.participle,
        G=verb.gerund,
    )
    rest = [words[column] for column in _ORDERS[order] if words[column]]
    if front < len(rest) and end == "." and template not in _UNFRONTED:
        body = f"{rest.pop(front)}, {body}"
    return sentence(" ".join([body, *rest]), end)


def _pick_synonyms(
    frames: Frames,
    rng: np.random.Generator,
    other: tuple[Frames, Wording] | None,
    differ: float,
) -> NDArray[np.int64]:
    picks = []
    for column, values in enumerate(frames.T[: len(FACTORS)]):
        counts, draws = _COUNTS[column][values], rng.random(len(frames))
        picks.append((draws * counts).astype(np.int64))
        if other is not None:
            shared = (
                (other[0][:, column] == values) & (counts > 1) & (rng.random(len(frames)) < differ)
            )
            moved = (
                other[1].picks[:, column] + 1 + (draws * (counts - 1)).astype(np.int64)
            ) % counts
            picks[-1] = np.where(shared, moved, picks[-1])
    return np.stack(picks, axis=1)
