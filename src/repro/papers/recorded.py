"""What the recorded rows say of the claims, without a build: verdicts, and lines for `repro
compare`.
"""

from collections.abc import Iterator, Mapping

import pandas as pd

from repro import paths
from repro.papers.ese import claims as ese
from repro.papers.ese.reading import PRINTED_BACKBONE, printed, table1_cells
from repro.papers.proposal import claims as proposal
from repro.papers.sbertlp import claims as sbertlp
from repro.papers.wang import claims as wang
from repro.papers.zhang import claims as zhang
from repro.report.claims import OfExperiment, folded
from repro.report.kinds import KINDS, over_seeds, paper_values
from repro.report.outcomes import NOT_SEEN, OUTCOMES, SILENT
from repro.report.scorecard import counts, decisive, scorecard
from repro.report.tables import MISSING, Shown, show
from repro.report.verdict_frames import read_verdicts, recorded_frame, verdict_frame
from repro.report.verdict_table import beside_printed, verdict_table
from repro.results import recorded_rows, results_folder
from repro.rows import only, ordered
from repro.types import InputError, choices

SCORES = (
    r"spearman|accuracy|majority|exact_match|answer|hit@|recall@|same_first|nmi|ari|purity|turned|"
    r"(depth|drop)_lead"
)
"""Beginnings of the metrics that are shown x100; any other, such as seconds, is shown as it is."""
CELL = ["method", "setting", "readout", "layer", "dataset", "metric", "dim"]
"""What tells the recorded numbers of one network apart."""
RANKED = ("zhang_figure2", "zhang_figure3", "zhang_figure4")
"""Experiments of the three tasks that methods are ranked on."""
PAPERS = {"wang": "wang2023", "zhang": "zhang2024", "sbertlp": "sbertlp2021", "ese": "ese2025"}


def with_folds(rows: pd.DataFrame) -> pd.DataFrame:
    """Recorded rows of a task with those over folds of all its items, and with the ranks on the
    other tasks.
    """
    experiments = set(rows["experiment"]) or {""}
    others = [name for name in RANKED if experiments <= {*RANKED} - {name}]
    ranks = [recorded_rows(name).query("metric == @zhang.RANKS") for name in others]
    return pd.concat([rows, *(recorded_rows(f"{name}_folds") for name in experiments), *ranks])


JUDGES: dict[str, OfExperiment] = {
    **wang.JUDGES,
    **zhang.JUDGES,
    **sbertlp.JUDGES,
    **ese.JUDGES,
    **proposal.JUDGES,
}
"""Experiment to what judges its recorded rows."""


def recorded_verdicts(document: str = "") -> pd.DataFrame:
    """A verdict of every measurement in the recorded rows, of all documents or one, with the
    experiment as its page.
    """
    frames = [verdict_frame("recorded", []).assign(page="")]
    for experiment, judge in JUDGES.items():
        if experiment.startswith(document) and len(rows := recorded_rows(experiment)):
            judged = with_folds(rows) if folded(experiment) else rows
            frames.append(recorded_frame(judge, judged, rows).assign(page=experiment))
    return pd.concat(frames, ignore_index=True)


def spoken_of(document: str) -> Shown:
    """The claims of a document, by the beginning of its experiments, that recorded rows speak of: a
    line each, those that no network can tell last.
    """
    verdicts = recorded_verdicts(document).assign(page="")
    card = scorecard(verdicts)
    card = card[~card["recorded"].isin(SILENT)]
    places = [*(word for word in OUTCOMES if word != "cannot tell"), "cannot tell"]
    return verdict_table(verdicts, ordered(card, "recorded", places))


def chapter_verdicts(document: str, statements: Mapping[str, Mapping[str, str]]) -> Shown:
    """The claims of a document as its chapter numbers them, with the verdicts of the statements
    that each of them makes; see `stated`.
    """
    table = stated(statements, recorded_verdicts(document), of="claim")
    table = table[["claim", "it says", "verdict", "measured", "network"]]
    return show(table, caption="recorded: the claims above, and what decides them")


def stated(
    statements: Mapping[str, Mapping[str, str]],
    verdicts: pd.DataFrame,
    of: str,
) -> pd.DataFrame:
    """A line per statement: in whose words, the part that decides it with its number, the network,
    how many of the networks named for it say so, and the verdict with its reason in a few words.

    Args:
        statements: by what they are of, which heads its first line alone, claims and their words.
        verdicts: of recorded rows, as `recorded_verdicts` gives them.
        of: heading of what they are of, such as "document".
    """
    card = scorecard(verdicts.assign(page="")).set_index("claim_id")
    lines = []
    for owner, listed in statements.items():
        for claim, words in listed.items():
            claim_row = card.loc[claim]
            parts = decisive(only(verdicts, claim_id=claim), claim_row["network"])
            measured = MISSING
            if len(parts) and claim_row["recorded"] not in SILENT:
                quantity = str(parts.iloc[0]["what"])
                for prefix in (f"{claim_row['network']}: ", f"{claim_row['network']}, "):
                    quantity = quantity.replace(prefix, "")
                measured = f"{quantity}: {beside_printed(parts.iloc[0])}"
            reason = f" ({claim_row['briefly']})" if claim_row["briefly"] else ""
            lines.append(
                {
                    of: owner,
                    "it says": words,
                    "measured": measured,
                    "network": claim_row["network"] or MISSING,
                    "networks": claim_row["tally"] or MISSING,
                    "verdict": f"{claim_row['recorded']}{reason}",
                }
            )
    table = pd.DataFrame(lines)
    table[of] = table[of].mask(table[of].duplicated(), "")
    return table


def scorecard_lines() -> Iterator[str]:
    """All claims with the verdicts of the recorded rows and, once the book is built, of live ones;
    then the counts.
    """
    live = read_verdicts().query("kind == 'live'")
    card = scorecard(pd.concat([recorded_verdicts(), live], ignore_index=True))
    for row in card.itertuples():
        shown = f" live: {row.live:<18}" if len(live) else ""
        tally = f" ({row.tally})" if row.tally else ""
        verdict = f"{row.recorded}{tally}"
        yield f"{row.claim_id:<14} recorded: {verdict:<24}{shown} {row.statement}"
        if row.recorded in NOT_SEEN and row.why:
            yield f"{'':<14} {row.why}"
    yield ""
    table = counts(card)
    table = table if len(live) else only(table, numbers="recorded")
    yield from table.to_string(index=False).splitlines()
    if live.empty:
        yield "no live verdicts, as no book is built here: `make book` makes them"


def experiment_lines(experiment: str) -> Iterator[str]:
    """The recorded numbers of one experiment, network by network, beside what the paper prints of
    the same line.

    A number is a mean over seeds, with their standard deviation and count where anything was drawn.
    Below the numbers of a network stand the commands that make them again.
    """
    recorded = recorded_rows(experiment)
    if recorded.empty:
        experiments = sorted(path.stem for path in results_folder().glob("*.parquet"))
        raise InputError(f"no recorded rows of {experiment!r}: {choices(experiment, experiments)}")
    kinds = f"{KINDS[0]} and {KINDS[1]} numbers, scores x100, others (seconds, sizes) as they are"
    yield f"{experiment}: {kinds}; live numbers are on the page of the book"
    # The rows that the paper's table has, beside a network whose numbers are for order
    if experiment == "ese_table1":
        recorded = table1_cells(recorded)
    paper, pooled = _printed(experiment), (recorded["readout"] == "pooler").any()
    for backbone, rows_of_network in recorded.groupby("backbone", sort=False, dropna=False):
        cells = rows_of_network.groupby(CELL, sort=False, dropna=False)["value"]
        numbers = over_seeds(cells).astype({"seeds": "Int64"}).reset_index()
        shown = numbers.merge(paper, "left", on=[c for c in paper if c != "paper"])
        if pooled:  # Wang's tables print the pooler's output
            shown.loc[shown["readout"] != "pooler", "paper"] = float("nan")
        score = shown["metric"].str.match(SCORES)
        shown.loc[score, ["paper", "recorded", "sd"]] *= 100
        drawn_with, hardware = (
            ", ".join(dict.fromkeys(rows_of_network[c].dropna().astype(str)))
            for c in ("seed", "hardware")
        )
        yield f"\n{'no network' if pd.isna(backbone) else backbone}: seeds {drawn_with}; {hardware}"
        shown = shown[[*CELL, "paper", "recorded", "sd", "seeds"]].dropna(axis="columns", how="all")
        lines = shown.to_string(index=False, na_rep="", float_format="{:.4g}".format)
        yield from lines.splitlines()
        yield from (f"  {command}" for command in rows_of_network["command"].dropna().unique())


def _printed(experiment: str) -> pd.DataFrame:
    """What the paper prints of an experiment in a column `paper`, beside those that tell its lines
    apart.
    """
    short, _, table = experiment.partition("_")
    if not (paths.PAPER_VALUES / f"{PAPERS.get(short)}_{table}.csv").is_file():
        return pd.DataFrame({"method": [], "paper": []})
    frame = paper_values(PAPERS[short], table)
    if short == "ese":
        frame = only(printed(table), backbone=PRINTED_BACKBONE)
    told_apart = [name for name in ("dataset", "metric", "dim") if frame[name].notna().any()]
    key_columns = ["method", *told_apart]
    cells = frame.drop_duplicates(key_columns)[[*key_columns, "value"]]
    return cells.rename(columns={"value": "paper"})
