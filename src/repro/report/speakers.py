"""Who may speak of a claim (method-verdicts in the book): what a network lacks of all that is asked
of it, whose network it is, and what the rows of a measurement say of that.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import isnan, nan
from pathlib import Path
from typing import Any

import pandas as pd

from repro.evaluation.power import FEWEST_SEEDS
from repro.methods import BASELINES, END_TO_END, UNTRAINED
from repro.objectives import ANGLE_RECIPES
from repro.report.claims import experiment_of, lift_of, pages_of, record_of
from repro.report.tables import names
from repro.report.verdict import Measurement
from repro.results import recorded_rows
from repro.types import one_of

STAND_INS = (
    "all-mpnet-base-v2",
    "e5-small-en",
    "all-MiniLM-L6-v2",
    "universal-sentence-encoder-multilingual-v3",
    "repro-mini",
    "repro-tiny",
    "repro-tiny + SimCSE",
)
"""Every other network, from the nearest to a paper's to the farthest."""
MENDED = "flow|whitening|-LP"  # In the names of such lines
BLOCKS = {
    "repro-tiny": 2,
    "repro-mini": 6,
    "all-MiniLM-L6-v2": 6,
    "e5-small-en": 12,
    "all-mpnet-base-v2": 12,
}
SIZES = {"repro-tiny": 128, "repro-mini": 384, "all-MiniLM-L6-v2": 384, "e5-small-en": 384}
SIZES |= dict.fromkeys(("all-mpnet-base-v2", "roberta-base", "bert-base-uncased"), 768)
"""Full sizes of networks with rows; to ask the networks themselves would load torch."""
FEWEST_BLOCKS = 4  # Of a network that is asked about depth
LEAST_LIFT = 0.2  # Of the paper's: what training has to lift a network that speaks of it


@dataclass(frozen=True)
class Known:
    """What rows say of the networks of an experiment."""

    rows: pd.DataFrame

    @cached_property
    def scores(self) -> Mapping[str, float | None]:
        """Full-size scores of networks on STS-B; None where the rows hold none."""
        scored = self.rows
        # A page without STS-B says nothing of its networks' scores there, but recorded ones do
        if (scored["dataset"] != "stsb").all():
            scored = recorded_rows("sbertlp_table1")
        by_network = scored[scored["dataset"] == "stsb"].groupby("backbone")
        return {str(name): full_score(on_network) for name, on_network in by_network}

    @cached_property
    def lift(self) -> Mapping[str, Any]:
        """What the experiment's training is printed to lift; empty where nothing is."""
        return lift_of(str(self.rows["experiment"].iloc[0]))

    @cached_property
    def lifted(self) -> Mapping[str, tuple[float, int]]:
        """By how many points training lifts each of our networks (`lifted_by`), and in how many
        seeds.
        """
        own = self.lift["rows"] in set(self.rows["experiment"].iloc[:1])
        rows = on_dev(self.rows if own else recorded_rows(self.lift["rows"]))
        lifted = {}
        for name, on_network in rows.groupby("backbone"):
            seeds = at_full_width(on_network, str(name))["seed"].nunique()
            lifted[str(name)] = (lifted_by(on_network, str(name)), int(seeds))
        return lifted


def short_names(networks: str) -> list[str]:
    """The names of networks with commas between them; of a hub id, without its owner."""
    return [Path(name).name for name in networks.split(", ")]


def nearness(network: str, own_networks: Sequence[str] = ()) -> int:
    """The place of a network: first a paper's own, then the stand-ins, then all others."""
    order = (*own_networks, *STAND_INS)
    # A hub id without its owner
    return order.index(name) if (name := Path(network).name) in order else len(order)


def deep(m: Measurement, known: Known) -> str:
    """Depth cannot be told from a network of two or three layers."""
    few = {name: BLOCKS.get(name, FEWEST_BLOCKS) for name in m.network.split(", ")}
    shallow = [f"{name} has {blocks}" for name, blocks in few.items() if blocks < FEWEST_BLOCKS]
    return f"{', '.join(shallow)} blocks; at least {FEWEST_BLOCKS} are needed" if shallow else ""


def chosen_on_dev(m: Measurement, known: Known) -> str:
    """Settings that nobody chose for a network say little of what training can do with it."""
    chosen = {*record_of(m.claim_id)["own"], *(Path(own).name for own, _ in ANGLE_RECIPES)}
    lacking = [n for n in m.network.split(", ") if Path(n).name not in chosen]
    reason = "is trained with the paper's settings; ones chosen for it on dev pairs are needed"
    return f"{', '.join(lacking)} {reason}" if lacking else ""


def above_words(m: Measurement, known: Known) -> str:
    """A network that says less of similarity than counted words do cannot say what its size does to
    it. Asked of the parts that speak of similarity.
    """
    if not re.search(record_of(m.claim_id).get("asked_of", ""), m.what):
        return ""
    floor = full_size_scores().get(BASELINES["tfidf"], nan)
    scores = {name: known.scores.get(name) for name in m.network.split(", ")}
    below_floor = [
        f"{name} scores {score:.1f} on STS-B at full size"
        for name, score in scores.items()
        if score is not None and score <= floor
    ]
    asked_for = f"more than the {floor:.1f} of counted words is needed"
    return f"{', '.join(below_floor)}; {asked_for}" if below_floor else ""


def taught(m: Measurement, known: Known) -> str:
    """A network that training does not lift has nothing to show of a way to train: it has to be
    lifted by at least a fifth of what the paper's is.
    """
    lift = known.lift
    if not lift:
        return ""
    of_paper = lift["trained"] - lift["untouched"]
    least = LEAST_LIFT * of_paper
    for name in m.network.split(", "):
        lifted, seeds = known.lifted.get(name, (nan, 0))
        if isnan(lifted):
            return f"{UNTOLD}needs {lift['objective']} at full width beside the untouched {name}"
        if seeds < FEWEST_SEEDS:
            needed = f"needs {FEWEST_SEEDS} seeds of {lift['objective']} at full width, of which"
            return f"{UNTOLD}{needed} {name} has {seeds}"
        if lifted < least:
            points = f"{lifted:.1f}".replace("-", "−")
            return (
                f"{lift['objective']} lifts {name} by {points} points on STS-B's dev pairs; "
                f"{least:.1f} are needed, a fifth of the paper's {of_paper:.1f}"
            )
    return ""


UNTOLD = "not told: "
"""How the words of a condition begin that no row tells of."""


def lifted_by(rows: pd.DataFrame, network: str) -> float:
    """In points, the encoder's score on dev pairs after training at full width less that of the
    untouched network, at the same readout; NaN where rows hold only one of them.
    """
    scores = dev_scores(rows, network)
    untouched = scores[scores["method"] == UNTRAINED]
    trained = at_full_width(rows, network)
    return 100 * float(trained["value"].mean() - untouched["value"].mean())


def at_full_width(rows: pd.DataFrame, network: str) -> pd.DataFrame:
    """The encoder's scores on dev pairs after training at full width, a row per seed."""
    scores = dev_scores(rows, network)
    trained = scores[scores["method"] == END_TO_END]
    return trained[trained["dim"] == SIZES.get(Path(network).name, trained["dim"].max())]


def dev_scores(rows: pd.DataFrame, network: str) -> pd.DataFrame:
    """The scores of a network's encoder on dev pairs."""
    return on_dev(rows[rows["backbone"] == network])


def on_dev(rows: pd.DataFrame) -> pd.DataFrame:
    """The scores of all encoders on dev pairs."""
    encoder_rows = rows[(rows["readout"] == "encoder") & (rows["metric"] == "spearman")]
    return encoder_rows[encoder_rows["setting"].fillna("").str.startswith("dev")]


def full_score(rows: pd.DataFrame) -> float | None:
    """The best Spearman × 100 on STS-B's test pairs of any line at the largest size; None where
    rows hold none.

    What was mended after training, by a flow or a mapping, says nothing of the network.
    """
    on_stsb = (rows["metric"] == "spearman") & (rows["dataset"] == "stsb")
    test_rows = rows[on_stsb & rows["dim"].notna()]
    test_rows = test_rows[~test_rows["setting"].fillna("").str.startswith("dev")]
    test_rows = test_rows[
        (test_rows["dim"] == test_rows["dim"].max()) & ~test_rows["method"].str.contains(MENDED)
    ]
    means = test_rows.groupby(["method", "readout", "layer"], dropna=False)["value"].mean()
    return 100 * float(means.max()) if len(means) else None


def named(what: str, networks: list[str]) -> list[str]:
    """The networks that a text names; a name within a longer one that it names does not count."""
    present = [name for name in networks if name in what]
    return [name for name in present if sum(name in other for other in present) == 1]


CONDITIONS = {
    condition.__name__: condition for condition in (deep, chosen_on_dev, above_words, taught)
}
"""What a claim may ask of a network: in words, what the network lacks."""


def asked(m: Measurement, known: Known) -> Measurement:
    """A measurement with what its network lacks of all that the claim asks of it."""
    asks = record_of(m.claim_id)["asks"]
    conditions = [one_of(name, list(CONDITIONS), f"condition of {m.claim_id}") for name in asks]
    lacking = [CONDITIONS[name](m, known) for name in conditions]
    unmet = [words for words in lacking if words and not words.startswith(UNTOLD)]
    untold = [words.removeprefix(UNTOLD) for words in lacking if words.startswith(UNTOLD)]
    return replace(
        m,
        unmet=m.unmet or "; ".join(unmet),
        unknown=m.unknown or "; ".join(untold),
    )


def placed(measurements: Iterable[Measurement], rows: pd.DataFrame) -> Iterator[Measurement]:
    """Measurements with what their rows and the record of their claim say of who speaks: network,
    generated text, scope, the condition that fails.

    A measurement that names no network of its rows speaks for all of them. Parts of a claim are
    counted on all networks that its record names and that can bear on it, since each may contradict
    it; so are these networks, since on each it may hold.
    """
    everyone = [str(name) for name in rows["backbone"].dropna().unique()]
    generated = (rows["data_source"] == "microworld").any()
    trained_here = set(rows.loc[rows["profile"] != "paper", "backbone"])
    known = Known(rows)
    experiments = rows["experiment"].dropna()
    protocol = str(experiments.iloc[0]) if len(experiments) else ""
    # Folds of all items are judged by what the others teach; the papers have a test split
    another = "protocol" in experiment_of(protocol) or protocol.endswith("_folds")
    with_speakers = []
    for m in measurements:
        record = record_of(m.claim_id)
        network = m.network or ", ".join(named(m.what, everyone) or everyone)
        speakers = network.split(", ")
        # By us; the paper's own training is its profile's
        smaller = record["trained"] and not trained_here.isdisjoint(speakers)
        of_paper = set(short_names(network)) <= set(record["own"])
        other_protocol = another or "protocol" in record
        same = bool(network) and of_paper and not (smaller or other_protocol)
        others = set(short_names(network)) - set(record["judges"])
        alone = record["testable"] == "only that network" and others
        m = replace(
            m,
            network=network,
            generated=bool(generated),
            scope="same" if same else "substitute",
            testable=record["testable"],
            likely=record["likely"],
            missing=m.missing
            or (f"the claim speaks of {', '.join(record['judges'])} alone" if alone else ""),
        )
        with_speakers.append(asked(m, known))
    bearing = [m for m in with_speakers if may_decide(m)]
    parts_of_claim = Counter(m.claim_id for m in bearing)
    networks = Counter(claim for claim, _ in {(m.claim_id, m.network) for m in bearing})
    for m in with_speakers:
        together = pages_of(m.claim_id) * max(1, parts_of_claim[m.claim_id])
        all_needed = m.testable == "only that network"
        on_any = 1 if all_needed else max(1, networks[m.claim_id])
        yield replace(m, parts=together, networks=on_any)


def may_decide(m: Measurement) -> bool:
    """Whether a measurement has an interval, and its network is named and passes the conditions."""
    if m.unmet or m.unknown or m.missing or isnan(m.low):
        return False
    return set(short_names(m.network)) <= set(record_of(m.claim_id)["judges"])


@lru_cache
def full_size_scores() -> dict[str, float]:
    """Spearman × 100 on STS-B's test pairs at full size, of recorded networks and TF-IDF, by what
    readers are shown.
    """
    rows = pd.concat([recorded_rows("proposal_baselines"), recorded_rows("sbertlp_table1")])
    rows = rows[(rows["dataset"] == "stsb") & (rows["metric"] == "spearman")]
    others = set(BASELINES) - {"tfidf"}
    rows = rows[(rows["setting"].fillna("") == "") & ~rows["backbone"].isin(others)]
    shown = rows["method"].map(names(rows))
    scores = rows.groupby(shown, sort=False)["value"].first()
    return (100 * scores).to_dict()
