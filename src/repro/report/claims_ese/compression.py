"""Claim on Figure 7, ESE-F7-1, and its tables: is the prefix of an embedding closer to the whole under ESE?

The claim is made of distances in a map. It holds only if measures without a map agree (audit E16), so it is judged by
both.
"""

import pandas as pd

from repro.methods import ESE
from repro.report.claims_ese.leads import RIVALS, by_backbone, estimate_of
from repro.report.claims_ese.tables import rank
from repro.report.judge import effect
from repro.report.verdict import Measurement

MEASURES = {"cosine_agreement": "rank correlation of pair cosines", "linear_cka": "linear CKA"}


def figure7(rows: pd.DataFrame, dim: int | None = None) -> list[Measurement]:
    """Distances in the map, and agreement without one, against both rivals of the paper.

    Args:
        rows: of `ese.compression`.
        dim: size of the prefix that is judged; None is that of the maps.
    """
    found = []
    for backbone, own in by_backbone(rows):
        maps = own[own["metric"] == "map_distance_lead"]
        if maps.empty:
            continue
        size = int(maps["dim"].iloc[0]) if dim is None else dim
        for rival in RIVALS:
            leads = maps[(maps["method"] == f"{ESE} − {rival}") & (maps["dim"] == size)]
            for setting, lead in leads.groupby("setting", sort=False):
                value, low, high = (float(lead[c].mean()) for c in ("value", "ci_low", "ci_high"))
                what = f"{backbone}: distance of full and first {size} in the map, ESE less {rival} ({setting})"
                seeds = int(lead["seed"].nunique())
                found.append(Measurement("ESE-F7-1", "effect", value, low, high, direction=-1, seeds=seeds, what=what))
            for metric, words in MEASURES.items():
                part = own[own["metric"] == f"{metric}_lead"]
                for dataset in part["dataset"].dropna().unique():
                    e = estimate_of(part, f"{metric}_lead", f"{ESE} − {rival}", dataset=dataset, dim=size)
                    if e is not None:
                        what = f"{backbone}: {words} of full and first {size} ×100, ESE less {rival}"
                        found.append(effect("ESE-F7-1", e, what))
    return found


def map_table(rows: pd.DataFrame) -> pd.DataFrame:
    """By form and line: mean distance in the map under each seed, mean and spread, and its share of the map's scale."""
    own = rows[rows["metric"].isin(["map_distance", "map_share"])]
    split = own["setting"].str.split(", ", n=1)
    own = own.assign(form=split.str[0], drawn=split.str[1])
    lines = []
    for (form, backbone, method), part in own.groupby(["form", "backbone", "method"], sort=False):
        distance, share = (part[part["metric"] == name] for name in ("map_distance", "map_share"))
        each = distance.groupby("drawn", sort=False)["value"].mean()
        lines.append(
            {
                "rows": form,
                "backbone": backbone,
                "line": method,
                **dict(each.items()),
                "mean ± sd": f"{each.mean():.2f} ± {each.std(ddof=1):.2f}" if len(each) > 1 else f"{each.mean():.2f}",
                "by the mean distance of two sentences": share["value"].mean(),
            }
        )
    order = {form: i for i, form in enumerate(dict.fromkeys(line["rows"] for line in lines))}
    return pd.DataFrame(sorted(lines, key=lambda line: order[line["rows"]]))


def agreement_table(rows: pd.DataFrame) -> pd.DataFrame:
    """By size and line: share of the length in the prefix, and both measures ×100 with intervals; means over seeds."""
    names = {"kept_length": "length kept, %", **MEASURES}
    own = rows[rows["metric"].isin(list(names))]
    means = own.groupby(["backbone", "dim", "method", "metric"], sort=False)[["value", "ci_low", "ci_high"]].mean()
    lines: dict[tuple[str, int, str], dict[str, object]] = {}
    for (backbone, dim, method, metric), row in means.iterrows():
        line = lines.setdefault((backbone, dim, method), {"backbone": backbone, "dims": int(dim), "line": method})
        line[names[metric]] = _cell(row)
    backbones = list(dict.fromkeys(backbone for backbone, _, _ in lines))
    ordered = sorted(lines, key=lambda key: (backbones.index(key[0]), key[1], rank(key[2])))
    return pd.DataFrame([lines[key] for key in ordered], columns=["backbone", "dims", "line", *names.values()])


def _cell(row: pd.Series) -> str:
    value, low, high = (100 * float(row[c]) for c in ("value", "ci_low", "ci_high"))
    return f"{value:.1f}" if pd.isna(low) else f"{value:.1f} [{low:.1f}, {high:.1f}]"
