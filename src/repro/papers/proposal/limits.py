"""Which sets of documents can be retrieved at all: every two of n as the first two of some query (Weller et al., 2025).

By cosine, a query that ranks documents i and j first exists if and only if the segment between them is an edge of the
convex hull of the documents: from j, which lies on the sphere and so is a corner, some edge leads upwards, and only i
is higher. Polytopes whose every two corners share an edge exist with any number of corners from four dimensions on
(Gale, 1963), in three only with four, in two only with three.
"""

from itertools import combinations

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from repro.seeding import derive_seed
from repro.types import Array, InputError, check_dim, check_embeddings, unit_rows

Pairs = NDArray[np.int64]
COOLING = (1.0, 0.02)
"""first and last temperature of the descent: a cold start is stuck, a warm end leaves narrow gaps open"""
LEARNING_RATE = 0.05
"""of the descent, by Adam"""
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
"""one for each two of the people"""


def two_sets(n: int) -> Pairs:
    """All sets of two of n documents (n(n − 1)/2, 2).

    Raises:
        InputError: for fewer than three documents, where the first two are all there are.
    """
    if check_dim(n, what="n") < 3:
        raise InputError(f"n is {n}: expected at least 3 documents, of which a query ranks two first")
    return np.array(list(combinations(range(n), 2)), np.int64)


def margins(Q: Array, C: Array, relevant: Pairs) -> Array:
    """Cosine of the farther relevant document less that of the nearest other, per query: above 0 is realised.

    Args:
        Q: queries (m, d).
        C: documents (n, d).
        relevant: rows of C that each query is to rank first (m, 2).

    Raises:
        InputError: for unusable embeddings, or as many queries as there are no sets for.
    """
    Q, C = check_embeddings(Q, "Q").astype(np.float64), check_embeddings(C, "C").astype(np.float64)
    if len(Q) != len(relevant):
        raise InputError(
            f"lengths differ: Q has {len(Q)} rows, relevant has {len(relevant)}; expected one set per query"
        )
    cosines = unit_rows(Q) @ unit_rows(C).T  # (m, n)
    own = np.take_along_axis(cosines, relevant, axis=1).min(axis=1)
    np.put_along_axis(cosines, relevant, -np.inf, axis=1)
    return np.asarray(own - cosines.max(axis=1))


def realised(Q: Array, C: Array, relevant: Pairs) -> dict[str, float]:
    """Share of the sets that are realised, and the smallest margin, which is negative unless all are."""
    gaps = margins(Q, C, relevant)
    return {"sets_realised": float((gaps > 0).mean()), "margin": float(gaps.min())}


def free_retrieval(n: int, dim: int, *, steps: int = 400, restarts: int = 3, seed: int = 0) -> tuple[Array, Array]:
    """Queries and documents on the sphere that descend towards ranking every two documents first, free of any text.

    Args:
        n: documents; there are n(n − 1)/2 queries.
        dim: of the sphere's space.
        steps: of Adam, while the temperature cools.
        restarts: descents side by side, of which the one that realises most sets is returned.
        seed: of the starts.

    Returns:
        Queries (n(n − 1)/2, dim) and documents (n, dim), float64.
    """
    pairs = torch.from_numpy(two_sets(n))
    generator = torch.Generator().manual_seed(derive_seed(seed, "free retrieval", n, dim))
    shape = (check_dim(restarts, what="restarts"), len(pairs), check_dim(dim))
    Q = torch.randn(*shape, generator=generator).requires_grad_(True)
    C = torch.randn(shape[0], n, dim, generator=generator).requires_grad_(True)
    wanted = torch.zeros(len(pairs), n, dtype=torch.bool).scatter_(1, pairs, True)
    adam = torch.optim.Adam([Q, C], lr=LEARNING_RATE)
    for temperature in np.geomspace(*COOLING, steps):
        logits = F.normalize(Q, dim=-1) @ F.normalize(C, dim=-1).transpose(1, 2) / float(temperature)
        # how far the best of the others stands above the worse of the two, softly
        others = logits.masked_fill(wanted, -torch.inf).logsumexp(-1)
        own = (-logits).masked_fill(~wanted, -torch.inf).logsumexp(-1)
        adam.zero_grad()
        F.softplus(others + own).mean().backward()
        adam.step()
    found = [(Q[r].detach().double().numpy(), C[r].detach().double().numpy()) for r in range(restarts)]
    return max(found, key=lambda f: realised(f[0], f[1], two_sets(n))["sets_realised"])
