"""Which positives teach most: the table of augmentations, their leads over dropout with verdicts, and a reading."""

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from repro.methods import UNTRAINED
from repro.report.compare import DATASETS
from repro.report.judge import estimate
from repro.report.tables import MISSING
from repro.report.verdict import Measurement

REFERENCE = "dropout"
"""what the others are compared with: unsupervised SimCSE"""
ORDER = (UNTRAINED, REFERENCE, "synonym", "back-translation", "paraphrase", "mixture")
"""of lines; recorded rows come sorted by name"""
TITLES = {name: title for title, name in DATASETS.items()}
POINTS, SHARES = ("spearman",), ("survivors", "token_overlap")
"""metrics that are shown ×100, and in per cent"""


def wording_table(rows: pd.DataFrame, notes: Mapping[str, str]) -> pd.DataFrame:
    """A line per augmentation: survivors, words shared with the sentence, and what it is made from or lacks.

    Args:
        rows: of `augmentation_rows`; seeds are averaged.
        notes: by augmentation, what it needs or lacks; one without rows has its line as well.
    """
    lines = []
    for name, note in notes.items():
        own = rows[rows["method"] == name]
        shares = {"survivors, %": _spread(own, "survivors", 0), "words shared, %": _spread(own, "token_overlap", 0)}
        lines.append({"positives": name, **shares, "made from": note})
    return pd.DataFrame(lines)


def augmentation_table(rows: pd.DataFrame) -> pd.DataFrame:
    """A line per augmentation: survivors, alignment, uniformity and every score; mean ± sd over seeds."""
    lines = []
    for name in in_order(rows["method"], ORDER):
        own = rows[rows["method"] == name]
        line = {
            "positives": name,
            "survivors, %": _spread(own, "survivors", 0),
            "alignment": _spread(own, "alignment", 3),
            "uniformity": _spread(own, "uniformity", 3),
        }
        for dataset in _datasets(rows):
            line[TITLES.get(dataset, dataset)] = _spread(own[own["dataset"] == dataset], "spearman", 2)
        lines.append(line)
    return pd.DataFrame(lines)


def augmentation_leads(rows: pd.DataFrame) -> pd.DataFrame:
    """Every augmentation's Spearman less dropout's on each set, judged as the claim that it is above.

    One seed carries the noise that a single training is assumed to have.
    """
    lines = []
    for name, dataset, found in _leads(rows[rows["method"] != UNTRAINED]):
        lines.append(
            {
                "positives": name,
                "set": TITLES.get(dataset, dataset),
                "verdict": found.verdict,
                "seeds": found.seeds,
                "points above dropout": f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]",
            }
        )
    return pd.DataFrame(lines)


def augmentation_reading(rows: pd.DataFrame) -> list[str]:
    """What the rows say, in sentences: who leads dropout on each set, and who has the best geometry."""
    trained = rows[rows["method"] != UNTRAINED]
    found = {(name, dataset): lead for name, dataset, lead in _leads(trained)}
    said = []
    for dataset in _datasets(rows):
        own = trained[(trained["metric"] == "spearman") & (trained["dataset"] == dataset)]
        means = 100 * own.groupby("method")["value"].mean()
        best = str(means.idxmax())
        words = {"reproduced": [], "within noise": [], "not reproduced": []}  # type: dict[str, list[str]]
        for (name, of), lead in found.items():
            if of == dataset:
                words[lead.verdict].append(name)
        parts = [
            f"{_listed(names)} {verb}"
            for names, verb in (
                (words["reproduced"], "above dropout"),
                (words["within noise"], "not told apart from dropout"),
                (words["not reproduced"], "below dropout"),
            )
            if names
        ]
        told = f" By the intervals, {'; '.join(parts)}." if parts else ""
        said.append(f"{TITLES.get(dataset, dataset)}: highest is {best} with {means[best]:.2f}.{told}")
    geometry = trained[trained["metric"].isin(["alignment", "uniformity"])]
    means = geometry.groupby(["metric", "method"])["value"].mean()
    if {"alignment", "uniformity"} <= set(geometry["metric"]):
        closest, widest = (str(means[metric].idxmin()) for metric in ("alignment", "uniformity"))
        both = f"{closest} has both" if closest == widest else f"{closest} has the first and {widest} the second"
        said.append(f"Closest positives and widest spread: {both}.")
    return said


def in_order(names: Iterable[str], order: Sequence[str]) -> list[str]:
    """The distinct names, those of `order` first and as there."""
    return sorted(dict.fromkeys(names), key=lambda name: order.index(name) if name in order else len(order))


def _leads(rows: pd.DataFrame) -> list[tuple[str, str, Measurement]]:
    own = rows[rows["metric"] == "spearman_lead"]
    found = []
    for dataset in _datasets(rows):
        of_one = own[own["dataset"] == dataset]
        for name in in_order(of_one["method"], ORDER):
            e = estimate(of_one[of_one["method"] == name])
            found.append((name, dataset, Measurement("", "effect", e.value, e.low, e.high, seeds=e.seeds)))
    return found


def _datasets(rows: pd.DataFrame) -> list[str]:
    return in_order(rows.loc[rows["metric"] == "spearman", "dataset"], list(TITLES))


def _spread(rows: pd.DataFrame, metric: str, digits: int) -> str:
    values = rows.loc[rows["metric"] == metric, "value"] * (100 if metric in POINTS + SHARES else 1)
    if values.empty:
        return MISSING
    return f"{values.mean():.{digits}f}" + (f" ± {values.std():.{digits}f}" if len(values) > 1 else "")


def _listed(names: list[str]) -> str:
    """Names with `and` before the last, and the verb that fits their number."""
    return f"{names[0]} is" if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]} are"
