"""Operations on frames: leave factors unsaid, tell which split a frame belongs to."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from microworld.taxonomy import ABSENT, AGENT, OBJECT, PLACE, POLARITY

Frames: TypeAlias = NDArray[np.int64]
"""Value ids (n, factors), one column per factor in the order of `taxonomy.NAMES`; -1 where left unsaid."""

SPLIT_SHARES = {"train": 0.6, "dev": 0.1, "test": 0.3}


def drop(frames: Frames, rng: np.random.Generator, share: float = 0.5) -> Frames:
    """Leave each optional factor unsaid with probability `share`, independently."""
    frames = frames.copy()
    for column in range(PLACE, min(frames.shape[1], POLARITY)):
        frames[rng.random(len(frames)) < share, column] = ABSENT
    return frames


def swap_roles(frames: Frames) -> Frames:
    """Who acts and who is acted upon change places; only beings act, so the objects must be beings."""
    swapped = frames.copy()
    swapped[:, AGENT], swapped[:, OBJECT] = frames[:, OBJECT], frames[:, AGENT]
    return swapped


def split_of(frames: Frames) -> NDArray[np.str_]:
    """The split that each frame belongs to, (n,), by a hash of its values: no frame is ever in two splits."""
    mixed = np.full(len(frames), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in frames.T:
        mixed = (mixed ^ (column + 2).astype(np.uint64)) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    edges = np.cumsum(list(SPLIT_SHARES.values()))[:-1]
    place = (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53
    return np.array(list(SPLIT_SHARES))[np.searchsorted(edges, place, side="right")]
