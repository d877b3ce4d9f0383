"""Sentences that need every set of two: who likes what, each thing liked by just two (LIMIT, Weller et al., 2025)."""

import numpy as np

from repro.papers.proposal.limits import two_sets
from repro.seeding import make_rng
from repro.sets import Retrieval
from repro.types import InputError

NAMES = "Alice Boris Clara David Elena Frank Grace Henry Irene Jakob Karen Louis Maria Nolan Olive Peter"
PEOPLE = tuple(NAMES.split())
WORDS = """
apples bridges candles dragons eagles ferries gardens hockey igloos jazz kites lemons mirrors noodles owls
puzzles quilts rivers sailing tennis umbrellas violins whales yoghurt zebras almonds beaches castles dancing
elephants fishing glaciers horses islands jewels kayaks lakes mountains needles oranges pianos quarries
rabbits statues trains urchins valleys walnuts yachts bicycles chess deserts engines forests guitars hammers
insects jungles knitting lanterns museums nectarines opera pottery roses skiing tulips volcanoes waterfalls
archery ballet cycling drums emeralds fossils grapes harbours jigsaws kangaroos lobsters maps novels orchids
parrots robots spiders tractors vinegar windmills acrobats baskets comets dolphins easels flutes geysers
hedgehogs jackets lighthouses magnets nightingales otters peacocks rockets sundials telescopes vases wolves
anchors beetles cactuses daisies eclipses foxes gloves honey ivy jellyfish ponds saddles turnips
"""
THINGS = tuple(WORDS.split())


def limit_texts(n: int, *, seed: int = 0) -> Retrieval:
    """Make n people documents, and queries of the n(n − 1)/2 things, each of which two of them like.

    Raises:
        InputError: for more people or things than there are words for.
    """
    pairs = two_sets(n)
    if n > len(PEOPLE) or len(pairs) > len(THINGS):
        raise InputError(f"n is {n}: there are names for {len(PEOPLE)} people and {len(THINGS)} things")
    things = np.array(THINGS)[make_rng(seed, "limit texts", n).permutation(len(THINGS))[: len(pairs)]]
    documents = []
    for person in range(n):
        liked = things[(pairs == person).any(axis=1)]
        documents.append(f"{PEOPLE[person]} likes {', '.join(liked[:-1])} and {liked[-1]}.")
    queries = tuple(f"Who likes {thing}?" for thing in things)
    qrels = {q: {PEOPLE[i]: 1, PEOPLE[j]: 1} for q, (i, j) in zip(queries, pairs.tolist(), strict=True)}
    return Retrieval("limit", "microworld", queries, queries, PEOPLE[:n], tuple(documents), qrels)
