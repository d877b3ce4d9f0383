"""The microworld: English whose meaning is known. `World` has the knobs, `make_set` every dataset's
stand-in.
"""

from microworld.make import SIZES, make_set
from microworld.pairs import Flavour, graded_pairs
from microworld.world import World
