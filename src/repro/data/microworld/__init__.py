"""The microworld: English whose meaning is known. `World` has the knobs, `make_set` every dataset's stand-in."""

from repro.data.microworld.graded import Flavour, GradedPairs, graded_pairs
from repro.data.microworld.make import SIZES, make_set
from repro.data.microworld.relations import role_swaps
from repro.data.microworld.world import World

__all__ = ["SIZES", "Flavour", "GradedPairs", "World", "graded_pairs", "make_set", "role_swaps"]
