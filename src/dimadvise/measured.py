"""What is known without labels of the share of a score that a smaller size keeps, and how far that
is off.

The spectrum's correlation ρ(d) and the share k(d) of nearest neighbours that stay are not the share
r(d) of a score. A fit on other tasks writes it as 1 − Σ cᵢφᵢ with φ = (1 − ρ, (1 − ρ)², 1 − k, (1 −
k)²) and cᵢ ≥ 0: nothing is lost where neither changes, and the loss never falls as either drops.
Its coefficients, and the errors of each rule where labels could tell, ship with the package. They
are written by `python -m bench.measured` from the recorded rows of the page
`proposal_choosing_dim`, and never by hand.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from repro.paths import ASSETS
from repro.reading import read_json
from repro.types import Array, InputError, check_same_length

# Ρ: predicted correlation; k: neighbours kept
FEATURES = ("1 − ρ", "(1 − ρ)²", "1 − k", "(1 − k)²")
ASSET = ASSETS / "advise_error.json"
SPECTRUM, CALIBRATED, HALF = "spectrum", "calibrated", "half of D"
"""The rules that an answer may rest on, and the one that looks at no embedding."""
NEAR = 0.8  # Share of the ten that ways kept of which the error of projections is told
UNSEEN = "task and encoder left out"
"""What a rule had not seen when its errors were measured: as little as it has seen of a user's
embeddings.
"""


@dataclass(frozen=True)
class Calibration:
    """What was learned: one coefficient of each feature."""

    coefficients: tuple[float, ...]

    def __call__(self, predicted: Array, neighbours: Array) -> Array:
        """Expected share of the score (P,), between 0 and 1."""
        return np.clip(1 - features(predicted, neighbours) @ np.array(self.coefficients), 0, 1)


def features(predicted: Array, neighbours: Array) -> Array:
    """What the loss of score is a sum of (P, 4), zero where nothing changes."""
    check_same_length(predicted=predicted, neighbours=neighbours)
    measures = (np.asarray(values, np.float64) for values in (predicted, neighbours))
    lost = [np.clip(1 - values, 0, 1) for values in measures]
    return np.stack([x**power for x in lost for power in (1, 2)], axis=1)


@dataclass(frozen=True)
class RuleError:
    """Errors of one rule, under one reducer and at one target, over all cases (method-choosing-dim
    in the book).
    """

    reducer: str
    rule: str
    target: float
    cases: int
    log2_median: float  # Of |log₂(predicted size / size by labels)|
    log2_worst: float
    target_met: float  # Share of cases in which the size named kept the target
    # Mean |predicted share − measured share| over sizes; None for a rule that names a size only
    curve: float | None


@dataclass(frozen=True)
class GrowthError:
    """How far recall that was projected to a larger collection was off, over so many ways."""

    encoder: str
    ways: int
    fitted: int  # Vectors of the largest collection that the law saw
    judged: int  # Vectors of the one that it was judged by
    rms: float
    largest: float

    @property
    def statement(self) -> str:
        """What a reader of a projection has to know of its error."""
        return (
            f"From {self.fitted:,} vectors to {self.judged:,} ({self.encoder}, {self.ways} ways "
            f"that kept {NEAR:g} or more) such a law was off by {100 * self.rms:.1f} points (root "
            f"mean square), by {100 * self.largest:.1f} at most."
        )


@dataclass(frozen=True)
class Measured:
    """Where errors were measured, what they were, and which rule answers for each reducer."""

    encoders: tuple[str, ...]
    tasks: tuple[str, ...]
    data_source: str
    commit: str
    date: str
    rules: Mapping[str, str]  # Reducer to the rule that predicts for it
    calibrations: Mapping[str, Calibration]
    errors: tuple[RuleError, ...]
    growth: GrowthError

    def expected(self, reducer: str, predicted: Array, neighbours: Array) -> Array:
        """Share of a score (P,) that sizes are expected to keep; the spectrum's correlation where
        nothing is known.
        """
        if self.rules.get(reducer) == CALIBRATED:
            return self.calibrations[reducer](predicted, neighbours)
        return np.asarray(predicted, np.float64)

    def error_of(self, reducer: str, rule: str, target: float) -> RuleError | None:
        """Errors at the measured target nearest to the one asked for; None where the rule was not
        measured.
        """
        of_rule = [e for e in self.errors if (e.reducer, e.rule) == (reducer, rule)]
        return min(of_rule, key=lambda e: abs(e.target - target), default=None)

    def statement(self, reducers: Sequence[str], target: float) -> list[str]:
        """What a reader of a prediction has to know of its error: where it was measured, then a
        line per reducer.
        """
        lines = [
            f"How far such predictions are off was measured on {len(self.encoders)} encoders and "
            f"{len(self.tasks)} tasks, neither of which the rule had seen ({self.data_source} "
            f"data, commit {self.commit}, {self.date})."
        ]
        for reducer in reducers:
            rule = self.rules.get(reducer, "")
            error, half = self.error_of(reducer, rule, target), self.error_of(reducer, HALF, target)
            if error is None or half is None:
                lines.append(f"{reducer}: how far predictions are off was not measured.")
                continue
            curve = (
                ""
                if error.curve is None
                else f", shares off by {100 * error.curve:.1f} points on average"
            )
            lines.append(
                f"{reducer} (rule: {rule}), to keep {100 * error.target:g} %: sizes off by a "
                f"factor of {_in_words(error)}{curve}. Half of all dimensions, taken blindly: "
                f"{_in_words(half)}."
            )
        return [*lines, "Labels for a few hundred items of your own say more."]


@cache
def read_measured(path: Path = ASSET) -> Measured:
    """The numbers in the package."""
    try:
        record = read_json(path)
        calibrations = {name: Calibration(tuple(c)) for name, c in record["coefficients"].items()}
        errors = tuple(RuleError(**error) for error in record["errors"])
        where = (
            tuple(record["encoders"]),
            tuple(record["tasks"]),
            record["data_source"],
            record["commit"],
            record["date"],
        )
        growth = GrowthError(**record["growth"])
        return Measured(*where, record["rules"], calibrations, errors, growth)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} cannot be read ({error!r}): install the package again") from error


def _in_words(error: RuleError) -> str:
    middle, worst = (f"{2**x:.1f}" for x in (error.log2_median, error.log2_worst))
    return (
        f"{middle} in the median and {worst} at worst, target met in {100 * error.target_met:.0f} "
        "% of cases"
    )
