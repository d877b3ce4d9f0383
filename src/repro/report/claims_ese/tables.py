"""Tables of ESE's pages: Table 1 as printed and as measured, leads, layers by sizes, and what a paired t-test says."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from repro.evaluation.stats import paired_t
from repro.methods import AVERAGE, ESE, ESE_CODE, ESE_METHODS, RAW, SHALLOW_AVERAGE, ese_line
from repro.report.claims_ese.leads import by_backbone, full_dim, has, kept, last_layer
from repro.report.compare import DATASETS, paper_values
from repro.report.judge import Estimate, estimate

ORDER = (*ESE_METHODS, ESE_CODE)
SHALLOW_TITLE = "≺ Avg."
COLUMNS = {**{name: title for title, name in DATASETS.items()}, AVERAGE: AVERAGE, SHALLOW_AVERAGE: SHALLOW_TITLE}
SETS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr", AVERAGE, SHALLOW_AVERAGE)
"""columns of Table 1 in its order"""


def printed(table: str) -> pd.DataFrame:
    """Printed numbers of a table of ESE with columns backbone and method, methods named as here."""
    frame = paper_values("ese2025", table).copy()
    lines = [ese_line(row) for row in frame["method"]]
    return frame.assign(backbone=[b for b, _ in lines], method=[m for _, m in lines])


def table1_cells(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that Table 1 shows: the last layer at full size on every set, and the mean over the shallow layers."""
    parts = []
    for _, own in by_backbone(rows):
        scores = own[(own["metric"] == "spearman") & (own["dim"] == full_dim(own))]
        parts.append(scores[(scores["layer"] == last_layer(own)) | (scores["dataset"] == SHALLOW_AVERAGE)])
    return pd.concat(parts) if parts else rows.iloc[:0]


def table1_wide(frame: pd.DataFrame) -> pd.DataFrame:
    """A line per backbone and method, a column per set, ×100 and averaged over seeds; printed or measured cells."""
    named = frame.assign(order=frame["method"].map(rank))
    first = {backbone: i for i, backbone in enumerate(dict.fromkeys(frame["backbone"]))}
    named = named.assign(first=frame["backbone"].map(first))
    table = 100 * named.pivot_table(index=["first", "backbone", "order", "method"], columns="dataset", values="value")
    table = table[[name for name in SETS if name in table]].reset_index().drop(columns=["first", "order"])
    return table.rename(columns=COLUMNS).rename_axis(columns=None)


def rank(method: str) -> int:
    """Where a line stands among the others."""
    return ORDER.index(method) if method in ORDER else len(ORDER)


def lead_table(past: pd.DataFrame, live: pd.DataFrame) -> pd.DataFrame:
    """Leads at the last layer and over the shallow layers, recorded (mean over seeds) and live (paired intervals)."""
    before, now = _leads(past), _leads(live)
    lines = []
    for backbone, lead in dict.fromkeys([*now, *before]):
        recorded, measured = (leads.get((backbone, lead), {}) for leads in (before, now))
        for place in dict.fromkeys([*measured, *recorded]):
            lines.append(
                {
                    "backbone": backbone,
                    "lead": lead,
                    "place": place,
                    "recorded": _spread(recorded[place]) if place in recorded else "–",
                    "live": shown(estimate_plain(measured[place])) if place in measured else "–",
                }
            )
    return pd.DataFrame(lines, columns=["backbone", "lead", "place", "recorded", "live"])


def _leads(rows: pd.DataFrame) -> dict[tuple[str, str], dict[str, pd.DataFrame]]:
    """By backbone and pair of methods, the rows of the lead at the last layer and over the shallow ones."""
    found: dict[tuple[str, str], dict[str, pd.DataFrame]] = {}
    for backbone, own in by_backbone(rows):
        for lead in own.loc[own["metric"] == "spearman_lead", "method"].unique():
            at = {
                "last layer": kept(own, "spearman_lead", lead, layer=last_layer(own), dim=full_dim(own)),
                SHALLOW_TITLE: kept(own, "spearman_lead", lead, dataset=SHALLOW_AVERAGE, dim=full_dim(own)),
            }
            found[backbone, str(lead)] = {place: part for place, part in at.items() if len(part)}
    return found


def lead_rows(rows: pd.DataFrame, pairs: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Leads of some lines at the last layer and over the shallow ones: rows with variant, place and interval."""
    parts = [
        part.assign(variant=lead, place=place)
        for (_, lead), pair in _leads(rows).items()
        if tuple(lead.split(" − ")) in pairs
        for place, part in pair.items()
    ]
    return pd.concat(parts, ignore_index=True) if parts else rows.iloc[:0].assign(variant="", place="")


def estimate_plain(rows: pd.DataFrame) -> Estimate:
    """Mean over seeds with the interval over items alone, for tables; verdicts add the seeds' noise."""
    return estimate(rows, deterministic=True)


def shown(e: Estimate) -> str:
    """An estimate as text."""
    return f"{e.value:.2f} [{e.low:.2f}, {e.high:.2f}]" if np.isfinite(e.half) else f"{e.value:.2f}"


def _spread(rows: pd.DataFrame) -> str:
    values = 100 * rows["value"].dropna().to_numpy(float)
    if not len(values):
        return "–"
    seeds = f"{len(values)} seed{'s' if len(values) > 1 else ''}"
    return f"{values.mean():.2f}" + (f" ± {values.std(ddof=1):.2f}" if len(values) > 1 else "") + f" ({seeds})"


def grid_table(rows: pd.DataFrame, *, dataset: str = AVERAGE) -> pd.DataFrame:
    """Scores ×100 by backbone, method and layer, a column per size, averaged over seeds."""
    own = rows[(rows["metric"] == "spearman") & (rows["dataset"] == dataset) & rows["layer"].notna()]
    order = {backbone: i for i, backbone in enumerate(dict.fromkeys(own["backbone"]))}
    named = own.assign(first=own["backbone"].map(order), order=own["method"].map(rank))
    keys = ["first", "backbone", "order", "method", "layer"]
    table = 100 * named.pivot_table(index=keys, columns="dim", values="value", dropna=False).dropna(how="all")
    table.columns = [str(dim) for dim in table.columns]
    return table.reset_index().drop(columns=["first", "order"]).rename_axis(columns=None)


def drop_table(rows: pd.DataFrame, *, dataset: str = AVERAGE) -> pd.DataFrame:
    """What the middle layer costs each line at full size, in points, and ESE's cost less each rival's."""
    lines = []
    for backbone, own in by_backbone(rows):
        dropped = own[own["metric"].isin(["spearman_drop", "drop_lead"]) & (own["dataset"] == dataset)]
        at = {str(m): part for m, part in dropped[dropped["dim"] == full_dim(own)].groupby("method")}
        for method in [*ORDER, *(f"{ESE} − {rival}" for rival in ORDER)]:
            if method in at:
                layers = f"{last_layer(own)} to {int(at[method]['layer'].iloc[0])}"
                lines.append((backbone, method, layers, shown(estimate_plain(at[method]))))
    return pd.DataFrame(lines, columns=["backbone", "line", "layers", "points lost"])


def t_table(rows: pd.DataFrame, rivals: Sequence[str]) -> pd.DataFrame:
    """ESE's lead on the mean over the shallow layers under a paired t-test, by what is taken as the unit (audit E12).

    Seeds are what the paper's sentence needs; sets and layers share a training, so they are not independent.
    """
    lines = []
    for backbone, own in by_backbone(rows):
        if not has(own, ESE):
            continue
        full, shallow = full_dim(own), sorted({int(x) for x in own["layer"].dropna() if 0 < x < last_layer(own)})
        scores = own[(own["metric"] == "spearman") & (own["dim"] == full) & own["layer"].isin(shallow)]
        for rival in rivals:
            for unit, keys in (("seeds", "seed"), ("sets", "dataset"), ("layers", "layer")):
                mine, theirs = (_by_unit(scores[scores["method"] == m], keys) for m in (ESE, rival))
                shared = sorted(set(mine.index) & set(theirs.index))
                if unit == "seeds" and rival == RAW and len(theirs) == 1:
                    theirs, shared = mine * 0 + theirs.iloc[0], sorted(mine.index)  # one answer for all seeds
                if len(shared) < 3:
                    lines.append((backbone, f"{ESE} − {rival}", unit, len(shared), "too few", "–"))
                    continue
                gap, p = paired_t(mine.loc[shared], theirs.loc[shared])
                e = gap.times(100)
                text = f"{e.value:.2f} [{e.low:.2f}, {e.high:.2f}]"
                lines.append((backbone, f"{ESE} − {rival}", unit, len(shared), text, f"{p:.1e}"))
    return pd.DataFrame(lines, columns=["backbone", "lead", "unit", "number", "mean", "p"])


def _by_unit(scores: pd.DataFrame, key: str) -> pd.Series:
    """Mean over the shallow layers and the sets, by seed, set or layer."""
    own = scores[scores["dataset"] != AVERAGE]
    return own.groupby(key)["value"].mean().astype(float)
