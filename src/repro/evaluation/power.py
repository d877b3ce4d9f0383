"""How far the interval of a mean over seeds reaches, and how many seeds or items it takes to see
an effect (method-seeds in the book).
"""

from math import ceil, inf, isnan, nan, sqrt

from scipy.special import ndtri, stdtrit

FEWEST_SEEDS = 3  # With fewer, nothing that was drawn at random is judged
MOST_SEEDS = 200  # Nobody would go beyond to settle a claim
POWER = 0.8  # Share of cases in which an effect is to be seen


def error_of_mean(seed_sd: float, seeds: int, item_error: float) -> tuple[float, float]:
    """Standard error of a mean over seeds on shared items, and its degrees of freedom; without a
    spread, NaN.
    """
    if isnan(seed_sd):
        return nan, nan
    between = seed_sd**2 / seeds
    variance = between + item_error**2
    return sqrt(variance), (variance / between) ** 2 * (seeds - 1) if between > 0 else inf


def reach(freedom: float, cells: int = 1) -> float:
    """How many standard errors a 95 % interval reaches, of one cell or of each of several that are
    judged together.
    """
    return float(-stdtrit(freedom, (1 - 0.95 ** (1 / cells)) / 2))


def seeds_needed(
    seed_sd: float,
    item_error: float,
    size: float,
    cells: int = 1,
    power: float = POWER,
) -> int | None:
    """The fewest seeds with which an effect, `size` away from the null, is seen in a share `power`
    of cases.

    None if the items are too few: more seeds do not lower the error over items.
    """
    beyond = float(ndtri(power))
    # Left to the error between the seeds
    room = (size / (reach(inf, cells) + beyond)) ** 2 - item_error**2
    if room <= 0:
        return None
    least = max(FEWEST_SEEDS, ceil(seed_sd**2 / room))
    for seeds in range(least, MOST_SEEDS + 1):  # Few seeds have few degrees of freedom
        error, freedom = error_of_mean(seed_sd, seeds, item_error)
        if (reach(freedom, cells) + beyond) * error <= size:
            return seeds
    return max(least, MOST_SEEDS + 1)


def items_needed(item_error: float, size: float, cells: int = 1, power: float = POWER) -> float:
    """How many times the items it takes to see an effect, `size` away from the null, in a share
    `power` of cases, however many seeds there are.
    """
    least = size / (reach(inf, cells) + float(ndtri(power)))  # Error with which it is seen
    return (item_error / least) ** 2
