"""Table 1: seven similarity sets, every system, and the mapping in both settings and under both ways of choosing."""

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from repro.papers.sbertlp.encoded import Encoded, lp
from repro.papers.sbertlp.mapping import (
    CHOSEN,
    INDUCTIVE,
    ORACLE,
    TRANSDUCTIVE,
    Choice,
    Mapped,
    best,
    grid_scores,
    map_texts,
    sts_score,
)
from repro.papers.sbertlp.tasks import scored, sentences
from repro.runs.embeddings import TextTable
from repro.runs.suite import Contender
from repro.sets import DataSet

DEV = {"sickr": "sickr"}
"""set whose dev split chooses neighbours and dims; STS-B for all others"""
SETTINGS = (f"{TRANSDUCTIVE}, {CHOSEN}", f"{INDUCTIVE}, {CHOSEN}", f"{TRANSDUCTIVE}, {ORACLE}")


def contenders(
    systems: Sequence[Encoded],
    mapped_on: Sequence[str],
    names: Sequence[str],
    splits: Mapping[str, Mapping[str, DataSet]],
    *,
    neighbors: Sequence[int],
    dims: Sequence[int],
) -> tuple[list[Contender], pd.DataFrame]:
    """Every line of the table, and the neighbours and dims that each mapped line took on each set.

    Args:
        systems: with the embeddings of all texts of `splits`.
        mapped_on: names of the systems that the mapping is put on.
        names: of the datasets that are judged.
        splits: of those, of the sets with the dev splits, and of the foreign training sentences under `nli`.
        neighbors: grid of neighbours.
        dims: grid of dims.
    """
    lines: list[Contender] = []
    chosen: list[dict[str, object]] = []
    for system in systems:
        table = system.table
        lines.append(system.line)
        if system.loaded.system.name not in mapped_on:
            continue
        tables: dict[str, dict[str, TextTable]] = {setting: {} for setting in SETTINGS}
        picked = _dev_choices(table, names, splits, neighbors, dims)
        placed = _placed(table, names, splits, picked)
        for name in names:
            for setting, choice, mapped in _settings(table, name, splits, picked, placed[name], neighbors, dims):
                tables[setting][name] = mapped.at(choice.dim)
                chosen.append(
                    {
                        "method": lp(system.method),
                        "setting": setting,
                        "dataset": name,
                        "neighbours": choice.n_neighbors,
                        "dims": choice.dim,
                        "fitted on": mapped.fitted,
                    }
                )
        lines += [system.mapped(setting, by_task) for setting, by_task in tables.items()]
    return lines, pd.DataFrame(chosen)


def rivals(lines: Sequence[Contender]) -> Iterator[tuple[int, int]]:
    """Which lines are compared: every mapped line with its own system, transductive with the other mapped lines."""
    for a, line in enumerate(lines):
        for b, other in enumerate(lines):
            first = line.method == other.method and line.setting == SETTINGS[0] and a != b
            if first or line.method == lp(other.method):
                yield a, b


def fit_sentences(name: str, splits: Mapping[str, Mapping[str, DataSet]]) -> list[str]:
    """Training sentences of a set: its own, or foreign ones where it has none."""
    own = splits[name].get("train")
    return sentences(own if own is not None else splits["nli"]["train"])


def _dev_choices(
    table: TextTable,
    names: Sequence[str],
    splits: Mapping[str, Mapping[str, DataSet]],
    neighbors: Sequence[int],
    dims: Sequence[int],
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


def _placed(
    table: TextTable,
    names: Sequence[str],
    splits: Mapping[str, Mapping[str, DataSet]],
    picked: Mapping[tuple[str, str], Choice],
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


def _settings(
    table: TextTable,
    name: str,
    splits: Mapping[str, Mapping[str, DataSet]],
    picked: Mapping[tuple[str, str], Choice],
    placed: Mapping[int, Mapped],
    neighbors: Sequence[int],
    dims: Sequence[int],
) -> Iterator[tuple[str, Choice, Mapped]]:
    """The three mapped versions of one set: the choice made, and its test sentences under the mapping."""
    test, dev = scored(splits[name]["test"]), DEV.get(name, "stsb")
    judged = sentences(test)
    choice = picked[dev, TRANSDUCTIVE]
    own = map_texts(table, judged, judged, neighbors, max(dims))
    yield SETTINGS[0], *_reached(choice, own)
    yield SETTINGS[1], *_reached(picked[dev, INDUCTIVE], placed)
    yield SETTINGS[2], *_reached(best(grid_scores(own, dims, sts_score(test))), own)


def _reached(choice: Choice, mapped: Mapping[int, Mapped]) -> tuple[Choice, Mapped]:
    """The choice, or the nearest thing to it where the sentences are too few for it."""
    k = max((k for k in mapped if k <= choice.n_neighbors), default=min(mapped))
    return Choice(k, min(choice.dim, mapped[k].table.X.shape[1]), choice.score), mapped[k]
