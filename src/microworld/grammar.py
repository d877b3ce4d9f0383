"""English agreement: verb forms, articles, plurals and capitals, for the words of the lexicon."""

from typing import NamedTuple

from microworld.lexicon import IRREGULAR

# One-syllable verbs of consonant, vowel, consonant double their last letter; so do verbs stressed at the end.
_DOUBLING = frozenset({"spot", "tug", "pat", "trap", "hit", "forget", "run", "snap", "drag", "scrub"})


class Verb(NamedTuple):
    """The four forms that the templates need."""

    base: str
    past: str
    participle: str
    gerund: str


def inflect(phrase: str) -> Verb:
    """The forms of a verb phrase; its first word changes, the rest stays: look at, looked at, looking at."""
    base, _, rest = phrase.partition(" ")
    stem = base + base[-1] if base in _DOUBLING else base
    if base in IRREGULAR:
        past, participle = IRREGULAR[base]
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
    irregular = {"child": "children", "knife": "knives", "wolf": "wolves", "policeman": "policemen"}
    irregular |= {"fisherman": "fishermen", "huntsman": "huntsmen", "swine": "swine"}
    head, _, last = noun.rpartition(" ")
    if last in irregular:
        last = irregular[last]
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
