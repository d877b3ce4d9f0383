"""Sentences whose intrinsic dimension is known, as graded pairs."""

from dataclasses import dataclass

import numpy as np

from microworld import Flavour, World, graded_pairs
from repro.seeding import make_rng
from repro.sets import ScoredPairs
from repro.types import Array


@dataclass(frozen=True, eq=False)
class Probe:
    """Graded pairs of one world, with the ideal embeddings of both sides (n, D) each."""

    world: World
    pairs: ScoredPairs
    ideal: tuple[Array, Array]

    @property
    def name(self) -> str:
        """What rows and figures call the world."""
        return f"{self.world.factors} factors"

    @classmethod
    def draw(cls, factors: int, pairs: int, *, values: int | None = None, seed: int = 0) -> "Probe":
        """Graded pairs of a world of that many factors, in sentences that leave nothing unsaid where they can.

        Args:
            factors: 3 to 8.
            pairs: how many.
            values: the most values a factor takes; None is all.
            seed: of the world and of the pairs.

        Raises:
            InputError: for a knob out of reach, or more pairs than the world has.
        """
        world = World(factors, values=values, seed=seed)
        rng = make_rng(seed, "probe pairs", factors, values)
        drawn = graded_pairs(world, pairs, rng, flavour=Flavour(unsaid=0.0))
        name = f"{factors} factors"
        texts, subsets = (tuple(drawn.texts1), tuple(drawn.texts2)), np.array([name] * pairs, object)
        scored = ScoredPairs(name, "microworld", "test", *texts, 5 * drawn.similarity, subsets)
        return cls(world, scored, (world.ideal_embeddings(drawn.frames1), world.ideal_embeddings(drawn.frames2)))
