"""The words, which are tables in `words/`, and English agreement for them: verb forms, articles, plurals, capitals.

Common words only, so that a WordPiece vocabulary trained on any English knows them. A cell of `words/` may hold
synonyms with bars between them; a lone hyphen stands for no word at all.
"""

from collections.abc import Callable
from importlib.resources import files
from typing import NamedTuple

import numpy as np


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
