"""Factors: what can vary in a meaning, the values each can take, and how alike two values are."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from microworld import lexicon
from microworld.lexicon import Tree

# Likeness of two values that share their class only, their group as well, or are the same value. Each level adds the
# kernel [same class], [same group] or [same value], all positive semidefinite, so the sum is too.
SAME_CLASS, SAME_GROUP, SAME_VALUE = 0.15, 0.45, 1.0


@dataclass(frozen=True, eq=False)
class Factor:
    """One factor of a frame: its values in tree order, each with its synonyms, group and class."""

    name: str
    weight: float
    """Its share c_f of the frame similarity, before normalising."""
    optional: bool
    """Whether a sentence can leave it unsaid."""
    synonyms: tuple[tuple[str, ...], ...]
    group_of: tuple[int, ...]
    class_of: tuple[int, ...]
    groups: tuple[str, ...]
    classes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.synonyms)

    @cached_property
    def kernel(self) -> NDArray[np.float64]:
        """Value similarity σ_f, (values, values), from the depth of the common ancestor."""
        groups, classes = np.array(self.group_of), np.array(self.class_of)
        same_class = classes[:, None] == classes
        same_group = groups[:, None] == groups
        kernel = SAME_CLASS * same_class + (SAME_GROUP - SAME_CLASS) * same_group
        return kernel + (SAME_VALUE - SAME_GROUP) * np.eye(len(self))

    @cached_property
    def ids(self) -> dict[str, int]:
        """The first synonym of each value → the value."""
        return {synonyms[0]: value for value, synonyms in enumerate(self.synonyms)}

    def members(self, group: int) -> NDArray[np.int64]:
        """The values of one group."""
        return np.flatnonzero(np.array(self.group_of) == group)


def make_factor(name: str, weight: float, tree: Tree, *, optional: bool) -> Factor:
    """Lay a tree out as a factor."""
    synonyms, group_of, class_of, groups = [], [], [], []
    for class_id, branches in enumerate(tree.values()):
        for group, values in branches.items():
            groups.append(group)
            for value in values:
                synonyms.append(tuple(value.split("|")))
                group_of.append(len(groups) - 1)
                class_of.append(class_id)
    return Factor(name, weight, optional, tuple(synonyms), tuple(group_of), tuple(class_of), tuple(groups), tuple(tree))


# Column order of a frame: who, does what, to whom or what, where, of what kind, how, when. The eighth, polarity,
# is no summand of the similarity but multiplies it, so it is no Factor.
FACTORS: tuple[Factor, ...] = (
    make_factor("agent", 0.21, lexicon.BEINGS, optional=False),
    make_factor("action", 0.23, lexicon.ACTIONS, optional=False),
    make_factor("object", 0.23, lexicon.BEINGS | lexicon.THINGS, optional=False),
    make_factor("place", 0.12, lexicon.PLACES, optional=True),
    make_factor("attribute", 0.07, lexicon.ATTRIBUTES, optional=True),
    make_factor("manner", 0.07, lexicon.MANNERS, optional=True),
    make_factor("time", 0.07, lexicon.TIMES, optional=True),
)
NAMES: tuple[str, ...] = (*(factor.name for factor in FACTORS), "polarity")
AGENT, ACTION, OBJECT, PLACE, ATTRIBUTE, MANNER, TIME, POLARITY = range(8)
ANTONYM: dict[int, int] = {
    FACTORS[ACTION].ids[one]: FACTORS[ACTION].ids[other]
    for pair in lexicon.ANTONYMS
    for one, other in (pair, pair[::-1])
}
"""An action → the one that excludes it."""
ABSENT = -1
"""Stands in a frame for a factor left unsaid."""
