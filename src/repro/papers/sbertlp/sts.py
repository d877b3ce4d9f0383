"""Table 1: seven similarity sets, every system, and the mapping in both settings and under both ways of choosing."""

from collections.abc import Iterator, Mapping, Sequence

from repro.papers.sbertlp.claims import CHOSEN, HONEST, INDUCTIVE, ORACLE, TRANSDUCTIVE, lp
from repro.papers.sbertlp.mapping import Choice, Mapped, Placed, best, grid_scores, map_texts, sts_score
from repro.papers.sbertlp.tasks import scored, sentences
from repro.runs.embeddings import TextTable
from repro.runs.suite import Contender
from repro.sets import DataSet

DEV = {"sickr": "sickr"}
"""set whose dev split chooses neighbours and dims; STS-B for all others"""
SETTINGS = (HONEST, f"{INDUCTIVE}, {CHOSEN}", f"{TRANSDUCTIVE}, {ORACLE}")
Splits = Mapping[str, Mapping[str, DataSet]]


def place(
    table: TextTable, names: Sequence[str], splits: Splits, *, neighbors: Sequence[int], dims: Sequence[int]
) -> Placed:
    """The three mapped versions of every set: setting, set, and the choice made with its test sentences mapped.

    Args:
        table: a system's embeddings of all texts of `splits`.
        names: of the datasets that are judged.
        splits: of those, of the sets with the dev splits, and of the foreign training sentences under `nli`.
        neighbors: grid of neighbours.
        dims: grid of dims.
    """
    picked = dev_choices(table, names, splits, neighbors, dims)
    placed = placed_among_training(table, names, splits, picked)
    for name in names:
        test, dev = scored(splits[name]["test"]), DEV.get(name, "stsb")
        judged = sentences(test)
        own = map_texts(table, judged, judged, neighbors, max(dims))
        yield SETTINGS[0], name, picked[dev, TRANSDUCTIVE].reached(own)
        yield SETTINGS[1], name, picked[dev, INDUCTIVE].reached(placed[name])
        yield SETTINGS[2], name, best(grid_scores(own, dims, sts_score(test))).reached(own)


def rivals(lines: Sequence[Contender]) -> Iterator[tuple[int, int]]:
    """Which lines are compared: every mapped line with its own system, transductive with the other mapped lines."""
    for a, line in enumerate(lines):
        for b, other in enumerate(lines):
            first = line.method == other.method and line.setting == SETTINGS[0] and a != b
            if first or line.method == lp(other.method):
                yield a, b


def fit_sentences(name: str, splits: Splits) -> list[str]:
    """Training sentences of a set: its own, or foreign ones where it has none."""
    own = splits[name].get("train")
    return sentences(own if own is not None else splits["nli"]["train"])


def dev_choices(
    table: TextTable, names: Sequence[str], splits: Splits, neighbors: Sequence[int], dims: Sequence[int]
) -> dict[tuple[str, str], Choice]:
    """By dev set and setting, the best of the grid there."""
    found: dict[tuple[str, str], Choice] = {}
    for name in {DEV.get(name, "stsb") for name in names}:
        dev = scored(splits[name]["dev"])
        judged = sentences(dev)
        for setting, fit in ((TRANSDUCTIVE, judged), (INDUCTIVE, fit_sentences(name, splits))):
            mapped = map_texts(table, fit, judged, neighbors, max(dims))
            found[name, setting] = best(grid_scores(mapped, dims, sts_score(dev)))
    return found


def placed_among_training(
    table: TextTable, names: Sequence[str], splits: Splits, picked: Mapping[tuple[str, str], Choice]
) -> dict[str, dict[int, Mapped]]:
    """The inductive mapping of every set; sets that are fitted on the same foreign sentences share one fit."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name in names:
        groups.setdefault((name if "train" in splits[name] else "nli", DEV.get(name, "stsb")), []).append(name)
    found: dict[str, dict[int, Mapped]] = {}
    for (_, dev), members in groups.items():
        choice, judged = picked[dev, INDUCTIVE], sentences(*(splits[name]["test"] for name in members))
        fit = fit_sentences(members[0], splits)
        found |= dict.fromkeys(members, map_texts(table, fit, judged, [choice.n_neighbors], choice.dim))
    return found
