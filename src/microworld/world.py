"""The world: frames, how alike two of them are, and the ideal embedding whose dimension is known.

A frame is a row of value ids, one column per factor (`vocabulary.NAMES`), polarity last: 0
affirmed, 1 negated; -1 where the sentence leaves a factor unsaid. Its ideal embedding is the
concatenation of √c_f times the embeddings of its values, normalised; negation multiplies a
similarity by 0.4. So cosine similarity *is* meaning similarity.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from microworld.vocabulary import ABSENT, AGENT, FACTORS, NAMES, OBJECT, PLACE, POLARITY, Frames
from repro.seeding import make_rng
from repro.types import InputError, check_dim, check_same_length

# What a similarity is multiplied by when one frame affirms and the other denies
UNLIKE_POLARITY = 0.4
NEGATED = 0.15  # Share of negated frames
SPLITS = {"train": (0.0, 0.6), "dev": (0.6, 0.7), "test": (0.7, 1.0), "all": (0.0, 1.0)}
"""Which frames belong to a split, as a span of hashes."""


@dataclass(frozen=True)
class World:
    """A world of `factors` factors with at most `values` values each.

    Args:
        factors: 3 (agent, action, object) to 8 (all, the last being polarity), in the order of
            `vocabulary.NAMES`.
        values: The most values a factor keeps; None keeps all. Fewer values, lower dimension.
        seed: Draws which values are kept, and is mixed into every draw of frames.
    """

    factors: int = 8
    values: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if check_dim(self.factors, limit=len(NAMES), what="factors") < 3:
            raise InputError(
                f"factors is {self.factors}: expected 3 to {len(NAMES)}; a sentence needs "
                f"{NAMES[:3]}"
            )
        if self.values is not None and check_dim(self.values, what="values") < 2:
            raise InputError(f"values is {self.values}: expected at least 2, or None for all")

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """The weight c_f of each summand (factors without polarity,), summing to one."""
        weights = np.array([factor.weight for factor in FACTORS[: self.factors]])
        return weights / weights.sum()

    @property
    def has_polarity(self) -> bool:
        """Whether frames can be negated."""
        return self.factors == len(NAMES)

    @cached_property
    def choices(self) -> tuple[NDArray[np.int64], ...]:
        """The value ids that each factor may take, without polarity."""
        choices = []
        for column, factor in enumerate(FACTORS[: self.factors]):
            # Agents and objects share one order, beings first: in a small world, too, whoever acts
            # can be acted upon.
            name, n = (
                ("being", len(FACTORS[AGENT]))
                if column in (AGENT, OBJECT)
                else (factor.name, len(factor))
            )
            order = make_rng(self.seed, "microworld values", name).permutation(n)
            values = np.concatenate([order, np.arange(n, len(factor))])[: self.values]
            choices.append(np.sort(values))
        return tuple(choices)

    def draw(self, n: int, rng: np.random.Generator) -> Frames:
        """Draw n full frames, repeats allowed, from a generator of the caller's."""
        columns = [values[rng.integers(len(values), size=n)] for values in self.choices]
        negated = (rng.random(n) < NEGATED).astype(np.int64)
        return np.stack([*columns, negated] if self.has_polarity else columns).T

    def similarity(self, f: Frames, g: Frames) -> NDArray[np.float64]:
        """Frame similarity s in [0, 1], row by row: Σ c_f σ_f, times 0.4 when polarities differ.

        Where a factor is unsaid in one frame it adds nothing, and the sum is divided by the
        geometric mean of the weight that each frame does say: the cosine of the ideal embeddings.
        For full frames the divisor is one.
        """
        f, g = self._check(f), self._check(g)
        check_same_length(f=f, g=g)
        total = np.zeros(len(f))
        for column, (factor, weight) in enumerate(zip(FACTORS, self.weights, strict=False)):
            in_both = (f[:, column] != ABSENT) & (g[:, column] != ABSENT)
            total += weight * np.where(in_both, factor.kernel[f[:, column], g[:, column]], 0.0)
        total /= np.sqrt(self._said(f) * self._said(g))
        return (
            np.where(f[:, -1] == g[:, -1], total, UNLIKE_POLARITY * total)
            if self.has_polarity
            else total
        )

    def ideal_embeddings(self, frames: Frames) -> NDArray[np.float64]:
        """Unit vectors (n, D) whose inner products are the frame similarities.

        D is the number of values over all factors, doubled by polarity: the kernel [[1, .4], [.4,
        1]] is 0.7 + 0.3 · sign · sign′, so the second half repeats the first times the sign.
        """
        frames = self._check(frames)
        blocks = []
        for column, (root, weight) in enumerate(zip(self.roots, self.weights, strict=True)):
            present = (frames[:, column] != ABSENT)[:, None]
            blocks.append(np.where(present, np.sqrt(weight) * root[frames[:, column]], 0.0))
        X = np.concatenate(blocks, axis=1) / np.sqrt(self._said(frames))[:, None]  # (n, D / 2)
        if not self.has_polarity:
            return X
        sign = 1.0 - 2.0 * frames[:, -1:]
        like, unlike = (1 + UNLIKE_POLARITY) / 2, (1 - UNLIKE_POLARITY) / 2
        return np.concatenate([np.sqrt(like) * X, np.sqrt(unlike) * sign * X], axis=1)

    @cached_property
    def roots(self) -> tuple[NDArray[np.float64], ...]:
        """Per factor a matrix R (all values, kept values) with R Rᵀ = σ_f on the kept values, zero
        elsewhere.
        """
        roots = []
        for factor, chosen in zip(FACTORS, self.choices, strict=False):
            values, vectors = np.linalg.eigh(factor.kernel[np.ix_(chosen, chosen)])
            root = np.zeros((len(factor), len(chosen)))
            root[chosen] = vectors * np.sqrt(np.clip(values, 0, None))
            roots.append(root)
        return tuple(roots)

    @cached_property
    def spectrum(self) -> NDArray[np.float64]:
        """Eigenvalues of the covariance of the ideal embeddings, largest first, known without
        drawing a frame.

        Values are drawn independently, so the covariance Σ of the concatenated factor embeddings φ
        is block diagonal, one √c_f-scaled block per factor. Polarity appends sign · φ; with m =
        E[sign] and μ = E[φ],

            Cov = [[ a Σ,          √(ab) m Σ             ],        a = 0.7, b = 0.3.
                   [ √(ab) m Σ,    b (Σ + (1 − m²) μ μᵀ) ]]
        """
        scaled = [
            np.sqrt(c) * root[chosen]
            for c, root, chosen in zip(self.weights, self.roots, self.choices, strict=True)
        ]
        cov = block_diag(*(np.cov(R.T, bias=True) for R in scaled))
        if self.has_polarity:
            mean = np.concatenate([R.mean(axis=0) for R in scaled])
            sign = 1 - 2 * NEGATED
            a = (1 + UNLIKE_POLARITY) / 2
            b = (1 - UNLIKE_POLARITY) / 2
            cross = np.sqrt(a * b) * sign * cov
            signed = cov + (1 - sign**2) * np.outer(mean, mean)
            cov = np.block([[a * cov, cross], [cross, b * signed]])
        return np.clip(np.linalg.eigvalsh(cov)[::-1], 0, None)

    def dimension(self, share: float = 0.99) -> int:
        """The number of leading eigenvalues that carry `share` of the centred trace."""
        if not 0 < share <= 1:
            raise InputError(f"share is {share}: expected above 0 and at most 1")
        carried = np.cumsum(self.spectrum) / self.spectrum.sum()
        return min(int(np.searchsorted(carried, share - 1e-12)) + 1, len(carried))

    def _said(self, frames: Frames) -> NDArray[np.float64]:
        """The weight of the factors that each frame does say."""
        return (frames[:, : len(self.weights)] != ABSENT) @ self.weights

    def _check(self, frames: Frames) -> Frames:
        frames = np.atleast_2d(np.asarray(frames, dtype=np.int64, order="C"))
        if frames.ndim != 2 or frames.shape[1] != self.factors:
            raise InputError(
                f"frames have shape {frames.shape}: expected (n, {self.factors}), one column per "
                "factor"
            )
        if (frames[:, :3] == ABSENT).any():
            raise InputError(
                "a frame lacks its agent, action or object: only the other factors may be left "
                "unsaid"
            )
        return frames


def drop(frames: Frames, rng: np.random.Generator, share: float = 0.5) -> Frames:
    """Leave each optional factor unsaid with probability `share`, independently."""
    frames = np.copy(frames)
    for column in range(PLACE, min(frames.shape[1], POLARITY)):
        frames[rng.random(len(frames)) < share, column] = ABSENT
    return frames


def in_split(values: Any, split: str) -> Any:
    """Whether something of these values belongs to a split, by a hash of them: nothing is ever in
    two splits.

    Of numbers the answer is one; of columns, such as `frames.T`, one for each row.
    """
    mixed: Any = 0x9E3779B97F4A7C15
    for value in values.astype(np.uint64) if isinstance(values, np.ndarray) else values:
        mixed = ((mixed ^ (value + 2)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        mixed ^= mixed >> 29
    low, high = SPLITS[split]
    place = (mixed >> 11) / 2.0**53
    return (low <= place) & (place < high)


def draw_split(
    world: World,
    n: int,
    rng: np.random.Generator,
    split: str,
    unsaid: float = 0.5,
) -> Frames:
    """Draw n frames, repeats allowed, optional factors dropped at random, all of one split (`all`:
    of any).
    """
    of_split: list[Frames] = []
    for _ in range(200):
        frames = drop(world.draw(max(4 * n, 256), rng), rng, unsaid)
        of_split.append(frames[in_split(frames.T, split)])
        if sum(map(len, of_split)) >= n:
            return np.concatenate(of_split)[:n]
    raise InputError(
        f"{n} frames of the {split} split asked for, but {world} has too few: "
        "raise factors or values"
    )
