"""Every number with a decimal in the prose of a chapter is computed from recorded rows, is printed
in a paper, or stands so on a page; what is no result is named here.
"""

import re
from dataclasses import dataclass, field, replace
from functools import cache

import pandas as pd
import pytest

from made_rows import verdicts_of_rows as verdicts
from repro import paths
from repro.evaluation.of_rows import estimate, estimates
from repro.evaluation.seeds import Estimate, mean
from repro.papers.zhang import claims as zhang
from repro.report.claims import lift_of
from repro.report.speakers import at_full_width, lifted_by
from repro.results import recorded_rows

MINILM, MPNET, E5 = "all-MiniLM-L6-v2", "all-mpnet-base-v2", "e5-small-en"
USE = "universal-sentence-encoder-multilingual-v3"
CHAPTERS = sorted((paths.project_root() / "book").glob("*.md"))
NUMBER = r"[−-]?\d+\.\d+"
ALONE = re.compile(rf"(?<![\w.−-]){NUMBER}(?!\.?\d)")
INTERVAL = re.compile(
    rf"(?P<value>{NUMBER})(?P<between>(?:(?!{NUMBER})[^()])*)"
    rf"\((?:(?!{NUMBER})[^()])*(?P<low>{NUMBER}) to (?P<high>{NUMBER})"
    rf"|\((?P<value_>{NUMBER})[^()\d−-]*,? (?P<low_>{NUMBER}) to (?P<high_>{NUMBER})\)"
)
"""A value with its interval: `2.9 points on e5 (1.8 to 4.2)`, or `(−0.2, −6.2 to 3.0)`."""
NOT_MEASURED = {
    "wang": r"Section 4\.1",
    "zhang": r"Section 4\.2",
    "audit": r"under scores 72\.6|Section [45]\.[23]|a multiple of 0\.2|from a label of 0\.5",
    "exercises": r"below 0\.5|4\.30, not 1\.96|cosine of 0\.80 to 0\.85",
    "measures": r"0\.63 at rank 2|classes, 3\.0 for twenty",
    "primer": r"noise from 0\.02 to 0\.2",
    "reproduce": r"Python 3\.1[14]( to 3\.13)?|\| printed \| command \|.*\|",
}
"""Places in papers, versions, settings, formulas; 72.6, which a paper prints in its text; and the
table of printed runs, which has a test of its own.
"""


@dataclass(frozen=True)
class Cell:
    """The rows that a quoted number is the mean of."""

    experiment: str
    where: dict = field(default_factory=dict)
    cells: int = 1  # Of a joint interval, how many

    @property
    def estimate(self) -> Estimate:
        rows = recorded_rows(self.experiment)
        for column, wanted in self.where.items():
            rows = rows[rows[column] == wanted]
        return replace(estimate(rows), cells=self.cells)


def cell(experiment, backbone=MINILM, dataset="Avg.", cells=1, **where):
    return Cell(experiment, {"backbone": backbone, "dataset": dataset, **where}, cells)


def lead(experiment, method, dim, metric="spearman_lead", **where):
    return cell(experiment, method=method, dim=dim, metric=metric, **where)


@dataclass(frozen=True)
class Printed:
    """What a paper prints for the claim of a quoted number."""

    claim: str
    what: str = ""

    @property
    def estimate(self):
        told = verdicts()
        told = told[(told["claim_id"] == self.claim) & told["paper"].notna()]
        (value,) = set(told.loc[told["what"].str.contains(self.what, regex=False), "paper"])
        return Estimate({0: float(value)})


@dataclass(frozen=True)
class Difference:
    """Of two numbers of a paper's tables."""

    larger: float
    smaller: float

    @property
    def estimate(self):
        assert {self.larger, self.smaller} <= printed()
        return Estimate({0: self.larger - self.smaller})


@dataclass(frozen=True)
class Lift:
    """What training lifts a network by, or the paper's."""

    network: str = ""
    experiment: str = "wang_table1"

    @property
    def estimate(self):
        lift = lift_of(self.experiment)
        printed = lift["trained"] - lift["untouched"]
        rows = recorded_rows(self.experiment)
        return Estimate({0: lifted_by(rows, self.network) if self.network else printed})


@dataclass(frozen=True)
class BestLift:
    """What the best of several trainings lifts a network by."""

    network: str
    experiment: str

    @property
    def estimate(self):
        rows = recorded_rows(self.experiment)
        trained = at_full_width(rows, self.network)["value"]
        lift = lifted_by(rows, self.network)
        return Estimate({0: lift + 100 * (trained.max() - trained.mean())})


@dataclass(frozen=True)
class Rank:
    """The mean rank of the small autoencoder less PCA's."""

    experiment: str

    @property
    def estimate(self):
        return zhang.ranks_behind(recorded_rows(self.experiment))[1]["Autoencoder"]


@dataclass(frozen=True)
class OverSizes:
    """A difference of reducers of the paper's encoder on STS-B, as a mean over all sizes."""

    method: str
    setting: str

    @property
    def estimate(self):
        rows = recorded_rows("zhang_figure2")
        rows = rows[(rows["backbone"] == MPNET) & (rows["metric"] == "spearman_lead")]
        rows = rows[(rows["method"] == self.method) & (rows["setting"] == self.setting)]
        return mean(list(estimates(rows).values()))


@dataclass(frozen=True)
class Verdict:
    """The part of a claim that a quoted number is the value of."""

    claim: str
    network: str
    what: str

    @property
    def estimate(self):
        told = verdicts()
        told = told[(told["claim_id"] == self.claim) & (told["network"] == self.network)]
        part = told[told["what"].str.contains(self.what, regex=False)].squeeze()
        return Estimate({0: float(part["value"])}, ends=(part["low"], part["high"]))


TWO_STEP = "SimCSE-RoBERTa_base w/ two-step training"
STEPS = {
    (name, step): Verdict("WANG-T1-3", name, f"mean gain of step {step}")
    for name in (MINILM, MPNET)
    for step in (1, 2)
}
HARM = {n: Verdict("WANG-F3-1", n, "encoder loss at 8 dims") for n in (MINILM, MPNET, E5)}
AT_32 = {
    name: Cell(
        "wang_table3",
        {
            "backbone": name,
            "dataset": "Avg.",
            "dim": 32,
            "method": f"{TWO_STEP} − PCA",
            "setting": "fitted on 2,000 sentences",
        },
    )
    for name in (MINILM, MPNET)
}
LAST = {"readout": "encoder", "layer": 12, "dim": 384, "metric": "spearman_lead"}
FIRST_64 = cell("proposal_train_or_reduce", method="Truncate", dim=64, metric="spearman")
OF_PCA = {"setting": "fitted on 2,000 sentences", "cells": 5}
E4 = "E4 one matrix per batch − default"
QUOTED = {
    "ese": [
        (
            "ESE scores {} more on e5-small-en ({} to {})",
            lead("ese_figure3", "ESE − RAW", 8, backbone=E5, layer=12),
        ),
        (
            "perhaps {} on all-MiniLM-L6-v2 ({} to {})",
            lead("ese_figure3", "ESE − RAW", 8, layer=6),
        ),
        (
            "the last layer still gains {} points",
            cell("ese_figure3", layer=6, dim=384, metric="spearman_change", method="ESE"),
        ),
        (
            "as it costs e5-small-en {} at the last one",
            cell("ese_table1", backbone=E5, method="RAW + NLI − RAW", **LAST),
        ),
        (
            "on nine times as many pairs, it gains {} there ({} to {})",
            lead("ese_table1_longer", "ESE − RAW", 384, dataset="<Avg."),
        ),
        (
            "and Matryoshka training {} ({} to {})",
            lead("ese_table1_longer", "MRL − RAW", 384, dataset="<Avg."),
        ),
        (
            "they cost all-MiniLM-L6-v2 {} points untouched",
            cell("ese_figure3", layer=3, dim=384, metric="spearman_drop", method="RAW"),
        ),
        (
            "after the longer training {} under ESE ({} to {})",
            cell("ese_figure3_longer", layer=3, dim=384, metric="spearman_drop", method="ESE"),
        ),
        (
            "ESE differs by {} ({} to {}) from the same pairs",
            lead("ese_table1_longer", "ESE − RAW + NLI", 384, layer=6),
        ),
        (
            "costs it nothing there ({}, {} to {})",
            cell("ese_table1", backbone=E5, method="ESE − RAW + NLI", **LAST),
        ),
    ],
    "audit": [
        ("components lose {} points at 128", Difference(76.57, 71.33)),
        ("from {} points at 128", Difference(76.46, 71.33)),
        (" dims to {} at 8. On", Difference(63.09, 54.86)),
        ("it does not: {} at 128", Difference(82.32, 74.73)),
        (", {} at 64", Difference(80.61, 71.06)),
        (", {} at 8.", Difference(68.74, 60.82)),
        ("a loss of {} points, with two-step", Difference(84.84, 82.32)),
        ("(E4; {low} to {high})", lead("ese_table2", E4, 384, dataset="<Avg.")),
        ("one matrix per batch {} ({} to {})", lead("ese_table2", E4, 384, layer=6)),
    ],
    "findings": [
        ("that SimCSE lifts by {} points", Lift()),
        ("lifts all-MiniLM-L6-v2 by {} points", Lift(MINILM)),
        ("all-mpnet-base-v2 by {} and", Lift(MPNET)),
        ("e5-small-en by {} (dev pairs)", Lift(E5)),
        ("Table 1 has {} on BGE-base", Printed("ESE-T1-3")),
        ("stands before it on similarity, by {} ranks", Rank("zhang_figure2")),
        ("behind it on entailment, by {};", Rank("zhang_figure4")),
        (
            "by {} points at 8 dimensions ({} to {})",
            lead("wang_table3", f"{TWO_STEP} − PCA", 8, **OF_PCA),
        ),
        ("and {} at 64 ({} to {})", lead("wang_table3", f"{TWO_STEP} − PCA", 64, **OF_PCA)),
        (
            "two-step training gives {}, the first",
            cell("wang_table3", method=TWO_STEP, dim=64, metric="spearman"),
        ),
        ("as it was published {},", FIRST_64),
        ("PCA of them all {}.", replace(FIRST_64, where=FIRST_64.where | {"method": "PCA"})),
    ],
    "wang": [
        ("loses {} points of Spearman correlation on STS-B on MiniLM", HARM[MINILM]),
        ("and {} on mpnet. The pooler", HARM[MPNET]),
        ("On E5 the encoder is {} points better", HARM[E5]),
        (
            "step 1 gains {} points on average over the widths on MiniLM ({} to {})",
            STEPS[MINILM, 1],
        ),
        ("and step 2 gains {} ({} to {})", STEPS[MINILM, 2]),
        ("The paper has {} ", Printed("WANG-T1-3", "step 1")),
        ("and {}. 4. At 32 dims", Printed("WANG-T1-3", "step 2")),
        ("the best reducer by {} points on MiniLM", AT_32[MINILM]),
        ("and trails it by {} on mpnet", AT_32[MPNET]),
        ("the paper leads by {}.", Difference(73.42, 67.69)),
        ("which SimCSE lifts by {} points", Lift()),
        ("MiniLM by {} points on STS-B's dev", Lift(MINILM)),
        ("mpnet by {} and E5", Lift(MPNET)),
        ("by {}. A statement about", Lift(E5)),
        ("lifts MiniLM by {} points over three trainings", Lift(MINILM, "wang_table2")),
        (", by {} in the best of them", BestLift(MINILM, "wang_table2")),
        (
            "below the full one on {} of the four tasks",
            Verdict("WANG-F2-6", MINILM, "tasks of 4"),
        ),
        (
            "untouched, it scores {} on the seven sets",
            cell("proposal_train_or_reduce", method="full size", metric="spearman"),
        ),
        (
            "and {} on question types. The models",
            cell("zhang_figure3", dataset="trec", method="full size", metric="accuracy"),
        ),
        (
            "have {} at most on the seven sets",
            cell(
                "wang_figure4",
                method="encoder_128",
                readout="encoder",
                setting="test",
                dim=128,
                metric="spearman",
            ),
        ),
        (
            "and {} on question types under",
            cell(
                "wang_figure2",
                dataset="trec",
                dim=384,
                metric="accuracy",
                setting="test",
                readout="pooler",
            ),
        ),
        ("first 64 columns have {} on the seven sets", FIRST_64),
    ],
    "sbertlp": [
        (
            "Universal Sentence Encoder, {} to",
            Verdict("LP-T1-1", "universal-sentence-encoder-multilingual-v3", "mean gain"),
        ),
        ("{} points of similarity, 4", Verdict("LP-T1-1", E5, "mean gain")),
    ],
    "zhang": [("but {} % ({} to {}) of the accuracy", Verdict("ZHANG-S42-1", MPNET, "SICK-E"))],
}
"""By chapter: words with the places of a value and the ends of its interval, and where they are
from.
"""
LESS_FULL = lead("wang_table3", f"{TWO_STEP} − SimCSE-RoBERTa_base", 128, readout="encoder")
BELOW = {"dim": 384, "dataset": "<Avg."}
AT_LAST = {"dim": 384, "layer": 6}
HALVED = {"layer": 3, "dim": 384, "metric": "spearman_drop"}
AT_8 = {"dim": 8, "layer": 6}
ON_PAGES = {
    "ese_table1_sts": [
        (
            "untouched all-MiniLM-L6-v2 there by {} points",
            lead("ese_table1_longer", "ESE − RAW", **BELOW),
        ),
        ("points instead of {}. The control", lead("ese_table1", "ESE − RAW", **BELOW)),
        ("pairs the lead is {} ({} to {})", lead("ese_table1_longer", "ESE − MRL", **BELOW)),
        (", {} before. At the last layer", lead("ese_table1", "ESE − MRL", **BELOW)),
        (
            "costs the control {} points ({} to {})",
            lead("ese_table1_longer", "RAW + NLI − RAW", **AT_LAST),
        ),
        (" and ESE {} ({} to {}). A", lead("ese_table1_longer", "ESE − RAW", **AT_LAST)),
        (
            "over Matryoshka training is {} ({} to {})",
            lead("ese_table1_longer", "ESE − MRL", **AT_LAST),
        ),
        (
            "Matryoshka training by {} ({} to {})",
            lead("ese_table1_longer", "MRL − RAW", **BELOW),
        ),
        (
            "and, by {} points, below it",
            lead("ese_table1_longer", "RAW + NLI − RAW", **BELOW),
        ),
    ],
    "ese_figure3_depth_by_dim": [
        (
            "loses {} points with half of its layers under ESE ({} to {})",
            cell("ese_figure3_longer", method="ESE", **HALVED),
        ),
        ("and {} after 4,800 pairs", cell("ese_figure3", method="ESE", **HALVED)),
        ("untouched it loses {}.", cell("ese_figure3", method="RAW", **HALVED)),
        (
            "Matryoshka training leads ESE by {} ({} to {})",
            lead("ese_figure3_longer", "ESE − MRL", **AT_8),
        ),
        (", {} before. These rows", lead("ese_figure3", "ESE − MRL", **AT_8)),
    ],
    "wang_table3_sts": [
        ("as in the paper, {} ({} to {})", LESS_FULL),
        (
            " and {} ({} to {}). **How often",
            replace(LESS_FULL, where=LESS_FULL.where | {"backbone": MPNET}),
        ),
    ],
    "zhang_figure2_sts": [
        ("surely ahead, by {} points ({} to {})", OverSizes("GRP − PCA", "transductive")),
    ],
    "zhang_table1_timing": [
        ("make training {} times as long", Verdict("ZHANG-S3-1", MPNET, "training")),
        ("on the other encoders {} to", Verdict("ZHANG-S3-1", E5, "training")),
        ("to {} times, at 96", Verdict("ZHANG-S3-1", USE, "training")),
    ],
}
"""The same of single numbers on pages."""


@cache
def prose(path) -> str:
    """The words of a page that a reader reads: no code, drawing, formula or link."""
    text = re.sub(r"\A---.*?^---$", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
    for hidden in (
        r"```(\{code-cell\}|bash).*?```",
        r"<svg.*?</svg>",
        r"\$\$.*?\$\$|\$[^$\n]*\$",
        r"(\{[a-z:]+\})?`[^`\n]*`",
    ):
        text = re.sub(hidden, "", text, flags=re.S)
    return " ".join(text.split())


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def agrees(said: str, value: float) -> bool:
    """Whether a number is what is said, whichever way it points, to its last digit."""
    digits = len(said.partition(".")[2])
    return abs(abs(number(said)) - abs(value)) <= 0.5 * 10**-digits + 1e-9


def told_by_an_interval(value: str, low: str, high: str) -> bool:
    """Whether a part of a claim has this value and these ends, or the same the other way round."""
    told = verdicts()[["value", "low", "high"]].dropna().astype(float)
    for middle, lower, upper in told.itertuples(index=False):
        for ends in ((lower, upper), (-upper, -lower)):
            same_side = all(
                abs(number(said) - end) <= 0.05 + 1e-9
                for said, end in zip((low, high), ends, strict=True)
            )
            if same_side and agrees(value, middle):
                return True
    return False


@cache
def on_pages() -> set:
    """Values with their intervals, without signs, in the prose of the pages."""
    pages = (paths.project_root() / "notebooks").glob("*.md")
    return {found for page in pages for _, found in intervals(prose(page))}


def intervals(text: str):
    """Every value with its interval: where they stand, and the three numbers without signs."""
    for found in INTERVAL.finditer(text):
        names = ("value", "low", "high") if found["value"] else ("value_", "low_", "high_")
        yield (
            [found.span(name) for name in names],
            tuple(found[name].lstrip("−-") for name in names),
        )


@cache
def printed() -> set:
    """Printed numbers: of the tables, and what claims say is printed."""
    tables = [pd.read_csv(path)["value"] for path in paths.PAPER_VALUES.glob("*.csv")]
    said = verdicts()["paper"].dropna().astype(float).abs()
    return {round(float(value), 4) for value in pd.concat([*tables, said])}


def without(text: str, span: tuple[int, int]) -> str:
    """The text with a part of it blank."""
    return text[: span[0]] + " " * (span[1] - span[0]) + text[span[1] :]


def quotation(text: str, words: str, e: Estimate) -> tuple[tuple[int, int], list]:
    """Where a text quotes an estimate, and each number told with the one that should be."""
    pattern = re.escape(words)
    for place in (r"\{\}", r"\{low\}", r"\{high\}"):
        pattern = pattern.replace(place, f"({NUMBER})")
    found = re.search(pattern, text)
    assert found, words
    said = list(found.groups())
    ends = sorted([abs(e.low), abs(e.high)]) if len(said) > 1 else []
    expected = ends if "{low}" in words else [e.value, *ends]
    told = [said[0], *sorted(said[1:], key=lambda end: abs(number(end)))]
    told = sorted(said, key=lambda end: abs(number(end))) if "{low}" in words else told
    return found.span(), list(zip(told, expected, strict=True))


def unexplained(chapter: str, text: str) -> list[str]:
    """The numbers of a chapter that nothing here explains, with the words before each."""
    for place in re.finditer(NOT_MEASURED.get(chapter, r"(?!)"), text):
        text = without(text, place.span())
    for words, source in QUOTED.get(chapter, []):
        span, pairs = quotation(text, words, source.estimate)
        assert all(agrees(*pair) for pair in pairs), (words, pairs)
        text = without(text, span)
    for place in ALONE.finditer(text):
        exact = len(place[0].partition(".")[2]) > 1  # What is measured is told to one decimal
        if exact and any(agrees(place[0], value) for value in printed()):
            text = without(text, place.span())
    for spans, numbers in intervals(text):
        signed = [text[slice(*span)] for span in spans]
        if told_by_an_interval(*signed) or numbers in on_pages():
            for span in spans:
                text = without(text, span)
    return [text[max(0, m.start() - 90) : m.end() + 30] for m in ALONE.finditer(text)]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_number_of_a_chapter_is_computed_printed_or_quoted(path):
    assert unexplained(path.stem, prose(path)) == []


def test_the_end_of_an_interval_that_another_cell_gives_is_not_told():
    """Of the smallest or largest of several numbers the end that decides is that of the cell named;
    the other end may be of a cell with three seeds, and far out.
    """
    told = verdicts()
    for claim, network, page, words in (
        ("ESE-F5-2", MINILM, "ese_table2_ablation", "At size 8 ESE is {} behind"),
        ("ESE-F3-2", E5, "ese_figure3_depth_by_dim", "the score falls by {} from layer 1 to 2"),
        ("WANG-T4-1", MINILM, "wang_table4_classification", "training is {} points behind"),
    ):
        part = told[(told["claim_id"] == claim) & (told["network"] == network)].iloc[0]
        assert part["extreme"], claim
        text = prose(paths.project_root() / "notebooks" / f"{page}.md")
        value, rest = re.escape(words).split(r"\{\}")
        least = re.search(rf"{value}({NUMBER}){rest}[^(]*\(at least ({NUMBER})\)", text)
        assert least and agrees(least[1], part["value"]) and agrees(least[2], part["high"]), claim


@pytest.mark.parametrize("page", ON_PAGES)
def test_numbers_of_pages_are_those_of_their_rows(page):
    text = prose(paths.project_root() / "notebooks" / f"{page}.md")
    for words, source in ON_PAGES[page]:
        _, pairs = quotation(text, words, source.estimate)
        assert all(agrees(*pair) for pair in pairs), (words, pairs)


def test_a_caption_says_which_encoders_raise_the_score_under_a_pooler():
    rows = recorded_rows("wang_figure4")
    rows = rows[(rows["metric"] == "spearman_gain") & (rows["setting"] == "test")]
    rows = rows[(rows["dataset"] == "stsb") & (rows["readout"] == "pooler")]
    gains = rows.groupby(["backbone", "method", "dim"])["value"].mean()
    widest = gains[MPNET]["encoder_768"]
    assert set(widest[widest < 0].index) == {8}
    assert (gains[MINILM].filter(like="encoder_", axis=0) < 0).all()
    assert (gains[E5]["encoder_384"] < 0).all()
    page = paths.project_root() / "notebooks" / "wang_figure4_encoder_pooler_grid.md"
    caption = " ".join(page.read_text(encoding="utf-8").replace('"', "").split())
    assert "the widest encoder raises it for all poolers but the narrowest" in caption
    assert "on all-MiniLM-L6-v2 no encoder does" in caption


def test_a_search_in_a_part_of_the_paragraphs_says_of_how_many():
    pages = [*CHAPTERS, *(paths.project_root() / "notebooks").glob("*.md")]
    for path in pages:
        searched = re.findall(r"\d,\d{3} paragraphs", prose(path))
        assert set(searched) <= {"6,615 paragraphs"}, path.name
