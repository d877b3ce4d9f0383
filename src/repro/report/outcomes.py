"""What a verdict may say: its words in the order of the legend, which of them decide, and how those
of several are joined.
"""

from collections.abc import Iterable
from math import isnan
from typing import Literal, TypeAlias

Outcome: TypeAlias = str
MEANING: dict[Outcome, str] = {
    "reproduced": "on the paper's own network, data and protocol, our interval lies on the "
    "claim's side, near the printed size where one is printed",
    "holds here": "on a network in the paper's place, our interval lies on the claim's side, and "
    "holds the printed size where one is printed",
    "direction only": "the effect has the claimed sign, but not the printed size",
    "split": "networks that can bear on the claim decide it differently; counted as neither",
    "cannot tell": "the data decide neither for the claim nor against it: our interval holds what "
    "would be no effect, or is not sure among all parts and networks, or something is missing; "
    "beside it stands which",
    "not seen here": "on a network in the paper's place, our interval contradicts the claim; "
    "beside it stands the likely reason",
    "not reproduced": "on the paper's own network, data and protocol, our interval contradicts "
    "the claim",
    "answered": "the document asks, and claims nothing; beside it stands the answer",
    "does not apply": "this network cannot bear on the claim; beside it stands the condition "
    "that it fails",
    "not attempted": "no runs speak of it; beside it stands what is missing",
    "up": "on generated text, which judges no paper: above the null",
    "unclear": "on generated text, which judges no paper: not told from the null",
    "down": "on generated text, which judges no paper: below the null",
}
OUTCOMES: tuple[Outcome, ...] = tuple(MEANING)  # In the order of the legend
ON_GENERATED: tuple[Outcome, ...] = ("up", "unclear", "down")
SILENT: tuple[Outcome, ...] = ("does not apply", "not attempted")
"""Verdicts of a network that leave the word to another one."""
SEEN_AGAIN: tuple[Outcome, ...] = ("reproduced", "holds here", "direction only")
NOT_SEEN: tuple[Outcome, ...] = ("not reproduced", "not seen here")
"""Verdicts of a network that decides, for the claim and against it."""
_WEAKEST_FIRST: tuple[Outcome, ...] = (
    *NOT_SEEN,
    "split",
    "not attempted",
    "does not apply",
    "cannot tell",
    "answered",
    "direction only",
    "holds here",
    "reproduced",
    *ON_GENERATED,
)
Answer = Literal["yes", "no", "open"]
Testable = Literal["same", "analogue", "only that network", "question", "ours"]
TESTABLE: dict[Testable, str] = {
    "same": "tested on a network of the paper",
    "analogue": "tested on networks in the place of the paper's",
    "only that network": "speaks of one network, and is judged on no other",
    "question": "asked, not claimed: answered, not judged",
    "ours": "an observation of this book, outside the count",
}
"""What kind of statement a claim is, and so who may judge it."""
REASONS: dict[str, str] = {
    "network": "the network is not the paper's",
    "training": "the network is trained less than the paper's",
    "recipe": "settings or protocol are not the paper's",
    "size": "the sizes are not the paper's",
    "paper": "the paper's own numbers do not bear the statement out",
}
"""Why a statement is likely not seen here: in one word, and in a sentence."""


def survivors(chances: Iterable[float], level: float = 0.05) -> int:
    """How many of some decisions hold together, by Holm: the surest first, each at the level left
    for those that remain.
    """
    known = sorted(p for p in chances if not isnan(p))
    for rank, p in enumerate(known):
        if p > level / (len(known) - rank):
            return rank
    return len(known)


def worst(outcomes: list[Outcome]) -> Outcome:
    """The verdict of a claim of several parts that must all hold: its weakest, a contradiction
    weighing most.
    """
    return min(outcomes, key=_WEAKEST_FIRST.index) if outcomes else "not attempted"
