"""Opinions: sentiment about films and goods, short opinion phrases, and subjective against objective sentences."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from microworld.frames import split_of
from microworld.grammar import sentence, with_article
from microworld.surface import render
from microworld.world import World, draw_split

FILM = (
    "film|movie|picture",
    "story|plot|script",
    "acting|performance",
    "ending|final scene",
    "music|soundtrack",
    "hero|main character",
    "dialogue|conversation",
    "camera work|photography",
    "opening|first scene",
    "humor|comedy",
    "director|film maker",
    "cast|group of actors",
)
GOODS = (
    "phone|telephone",
    "camera|digital camera",
    "battery|battery life",
    "screen|display",
    "price|cost",
    "service|customer support",
    "manual|user guide",
    "sound|sound quality",
    "software|program",
    "design|shape",
    "keyboard|set of keys",
    "case|cover",
)
# Paired: each quality has its opposite in the same place.
GOOD = (
    "wonderful|great|excellent",
    "exciting|gripping|thrilling",
    "clever|smart|brilliant",
    "charming|delightful|lovely",
    "strong|powerful",
    "useful|helpful",
    "impressive|remarkable|surprising",
    "elegant|fine|splendid",
    "beautiful|pretty",
    "clear|simple|well made",
)
BAD = (
    "terrible|awful|horrible",
    "boring|dull|tedious",
    "stupid|silly|foolish",
    "annoying|irritating",
    "weak|poor|feeble",
    "useless|worthless|pointless",
    "disappointing|unsatisfying",
    "cheap|shabby",
    "ugly|hideous",
    "confusing|unclear|messy",
)

# E what the label says, F its opposite, X the subject, Y another. Every third template turns its words round, so
# that the words alone do not give the label away.
PLAIN = (
    "the {X} is {R}{E}",
    "i found the {X} {R}{E}",
    "what {aE} {X}",
    "i think that the {X} is {R}{E}",
    "everyone agrees that the {X} was {R}{E}",
    "the {X} turned out to be {R}{E}",
    "this is {aE} {X}",
    "to me the {X} seemed {R}{E}",
    "the {X} and the {Y} are both {R}{E}",
    "{aE} {X} with {aE2} {Y}",
)
TURNED = (
    "the {X} is not {F} at all",
    "nobody could call the {X} {F}",
    "the {X} is anything but {F}",
    "although the {Y} is {F}, the {X} is {R}{E}",
    "the {X} is {R}{E}, even if the {Y} is {F}",
    "i expected {aF} {X}, but it was {R}{E}",
    "they told me the {X} was {F}, and they were wrong",
)
DEGREES = ("", "", "very ", "really ", "so ", "quite ", "truly ", "rather ")

VERBS = {
    "positive": ("support|back|endorse", "welcome|applaud", "praise|admire", "trust|believe in", "celebrate|enjoy"),
    "negative": ("condemn|denounce", "reject|oppose", "fear|distrust", "criticize|attack", "regret|deplore"),
}
MATTERS = (
    "the peace plan",
    "the new law",
    "the election",
    "the president's words",
    "the trade agreement",
    "the reform",
    "the report",
    "the war",
    "the government",
    "the decision",
    "human rights",
    "the visit",
    "the new policy",
    "the court's ruling",
    "the alliance",
    "the treaty",
    "the new tax",
    "the protest",
    "the army",
    "the budget",
    "the union",
    "the school reform",
    "the summit",
    "the proposal",
    "the minister",
    "the border deal",
)
MOODS = {
    "positive": ("happy|glad|pleased", "hopeful|optimistic", "proud", "grateful|thankful", "confident|sure"),
    "negative": ("angry|furious", "worried|anxious|concerned", "ashamed", "disappointed", "afraid|scared"),
}
PHRASES = (
    "{M} about {X}",
    "{R}{M} about {X}",
    "{V} {X}",
    "{D} {V} {X}",
    "would {V} {X}",
    "continue to {V} {X}",
    "{aE} view of {X}",
    "never {W} {X}",
    "not {N} about {X}",
    "no reason to {W} {X}",
    "refused to {W} {X}",
)
STRENGTHS = ("strongly", "openly", "clearly", "deeply", "fully", "firmly")

_FEELINGS = (
    "it is {E} that",
    "i feel it is {E} that",
    "how {E} that",
    "i find it {R}{E} that",
    "it seems {R}{E} to me that",
)
# A feeling that the story gives to somebody is a fact about the story: only the first person makes it an opinion.
_FACTS = (
    "the {X} tells us that",
    "in the {X},",
    "the report says that",
    "",
    "",
    "the hero of the {X} feels it is {E} that",
    "in the {X} a man finds it {R}{E} that",
    "they say it seems {R}{E} that",
)


class Labelled(NamedTuple):
    """Texts and their labels."""

    texts: list[str]
    labels: list[str]


def sentiments(
    n: int, rng: np.random.Generator, *, about: tuple[str, ...] = FILM, positive: float = 0.5, split: str = "all"
) -> Labelled:
    """Make n distinct opinions, labelled positive or negative; splits differ in what is said of what."""
    return _distinct(n, rng, positive, "positive", "negative", lambda good: _opinion(rng, about, good, split))


def phrases(n: int, rng: np.random.Generator, *, positive: float = 0.31) -> Labelled:
    """Make n distinct short opinion phrases, labelled positive or negative."""
    return _distinct(n, rng, positive, "positive", "negative", lambda good: _phrase(rng, good))


def subjectivity(world: World, n: int, rng: np.random.Generator, *, split: str = "all") -> Labelled:
    """Make n distinct sentences: opinions and feelings about events (subjective), or the bare events (objective)."""
    events = iter(render(draw_split(world, 8 * n, rng, split), rng, plain=True).texts)
    return _distinct(n, rng, 0.5, "subjective", "objective", lambda felt: _felt(rng, next(events), felt, split))


def pick(rng: np.random.Generator, values: tuple[str, ...]) -> str:
    """A random value, said by a random synonym."""
    synonyms = values[int(rng.random() * len(values))].split("|")
    return synonyms[int(rng.random() * len(synonyms))]


def _distinct(
    n: int, rng: np.random.Generator, share: float, yes: str, no: str, make: Callable[[bool], str]
) -> Labelled:
    """Make n texts without repeats, exactly `share` of them labelled `yes`, in random order."""
    wanted = rng.permutation(np.arange(n) < round(share * n)).tolist()
    texts: dict[str, str] = {}
    for positive in wanted:
        text = make(positive)
        while text in texts:
            text = make(positive)
        texts[text] = yes if positive else no
    return Labelled(list(texts), list(texts.values()))


def _opinion(rng: np.random.Generator, about: tuple[str, ...], good: bool, split: str = "all") -> str:
    says, opposite = (GOOD, BAD) if good else (BAD, GOOD)
    # The frame of an opinion: what it is about, along which of the paired qualities, and for or against.
    subject, quality = int(rng.integers(len(about))), int(rng.integers(len(GOOD)))
    while split not in ("all", split_of(np.array([[subject, quality, good]]))[0]):
        subject, quality = int(rng.integers(len(about))), int(rng.integers(len(GOOD)))
    other = (subject + int(rng.integers(1, len(about)))) % len(about)
    E, F = pick(rng, (says[quality],)), pick(rng, (opposite[quality],))
    words = {"X": pick(rng, (about[subject],)), "Y": pick(rng, (about[other],)), "E": E, "F": F}
    articles = {"aE": with_article(E), "aE2": with_article(pick(rng, says)), "aF": with_article(F)}
    template = pick(rng, TURNED if rng.random() < 1 / 3 else PLAIN)
    return sentence(template.format(**words, **articles, R=pick(rng, DEGREES)), "!" if rng.random() < 0.1 else ".")


def _phrase(rng: np.random.Generator, good: bool) -> str:
    says, opposite = ("positive", "negative") if good else ("negative", "positive")
    return pick(rng, PHRASES).format(
        X=pick(rng, MATTERS),
        M=pick(rng, MOODS[says]),
        N=pick(rng, MOODS[opposite]),
        V=pick(rng, VERBS[says]),
        W=pick(rng, VERBS[opposite]),
        D=pick(rng, STRENGTHS),
        R=pick(rng, DEGREES),
        aE=with_article(pick(rng, GOOD if good else BAD)),
    )


def _felt(rng: np.random.Generator, event: str, felt: bool, split: str) -> str:
    if felt and rng.random() < 0.5:
        return _opinion(rng, FILM, bool(rng.random() < 0.5), split)
    words = {"E": pick(rng, GOOD + BAD), "R": pick(rng, DEGREES), "X": pick(rng, FILM[:2])}
    opening = pick(rng, _FEELINGS if felt else _FACTS).format(**words)
    return sentence(f"{opening} {event[0].lower()}{event[1:-1]}".strip())
