"""The scorecard: what all networks say together of a claim, and how many have which verdict."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

import pandas as pd

from repro.report.claims import claims, record_of
from repro.report.outcomes import (
    NOT_SEEN,
    ON_GENERATED,
    OUTCOMES,
    SEEN_AGAIN,
    SILENT,
    Outcome,
    survivors,
    worst,
)
from repro.report.speakers import short_names
from repro.report.verdict_frames import read_verdicts
from repro.results import in_one_block


@dataclass(frozen=True)
class Told:
    """What all networks that a claim names say of it together."""

    verdict: Outcome
    network: str = ""  # The first that says so
    tally: str = ""  # How many of those that can bear on it say so
    others: str = ""  # What the rest say
    why: str = ""
    briefly: str = ""  # The same in a few words


def heard(claim: str, parts: pd.DataFrame) -> dict[str, Outcome]:
    """What each network says that the claim's record names, in the order of the record: its weakest
    part; of a question, whether it answers a part.

    Networks that speak together are heard where the last of them would be, if all are named.
    """
    if parts.empty:
        return {}
    judges = list(record_of(claim)["judges"])
    ranked_words: dict[str, tuple[int, Outcome]] = {}
    for name, on_network in parts.groupby("network", sort=False):
        place = rank(claim, str(name))
        if place < len(judges):
            verdicts = list(on_network["verdict"])
            word = "answered" if "answered" in verdicts else worst(verdicts)
            ranked_words[str(name)] = (place, word)
    in_order = sorted(ranked_words, key=lambda name: ranked_words[name][0])
    return {name: ranked_words[name][1] for name in in_order}


def rank(claim: str, networks: str) -> int:
    """The place of networks, with commas between them, among those that the claim's record names:
    the last of them counts; one that is not named comes after all.
    """
    judges = list(record_of(claim)["judges"])
    places = [judges.index(n) if n in judges else len(judges) for n in short_names(networks)]
    return max(places)


def told(claim: str, parts: pd.DataFrame) -> Told:
    """The verdict of a claim from its measurements on all networks.

    Every network that its record names and that passes its conditions is counted; those that
    decide differently make the verdict `split`. A claim that speaks of certain networks only needs
    all of them, and one against it is enough.
    """
    record = record_of(claim)
    word_of_network = heard(claim, parts)
    speaking = {name: word for name, word in word_of_network.items() if word not in SILENT}
    seen = [name for name, word in speaking.items() if word in SEEN_AGAIN]
    not_seen = [name for name, word in speaking.items() if word in NOT_SEEN]
    lacking = missing = ""
    if record["testable"] == "only that network":
        present = {one for name in speaking for one in short_names(name)}
        absent = [name for name in record["judges"] if name not in present]
        lacking = f"needs {' and '.join(absent)}" if absent else ""
        missing = f"{len(absent)} networks are missing" if absent[1:] else "a network is missing"
        seen = [] if not_seen else seen
    if seen and not_seen:
        word, first = "split", seen[0]
        why = f"{', '.join(seen)} for it, {', '.join(not_seen)} against it"
        briefly = ""
    elif seen and lacking:
        word, first, why, briefly = "cannot tell", seen[0], lacking, missing
    else:
        word = together_of(list(speaking.values()) or list(word_of_network.values()))
        first = next((name for name in word_of_network if word_of_network[name] == word), "")
        why, briefly = reason_of(parts, first, word)
        why = lacking if word in SILENT and lacking else why
    agreeing = seen if word in ("split", *SEEN_AGAIN) else not_seen if word in NOT_SEEN else []
    if word in ("cannot tell", "answered"):
        agreeing = [name for name in speaking if speaking[name] == word] or seen
    tally = f"{len(agreeing)} of {len(speaking)}" if speaking else ""
    others = [f"{name}: {outcome}" for name, outcome in word_of_network.items() if name != first]
    return Told(word, first, tally, "; ".join(others), why, briefly)


def together_of(words: Sequence[Outcome]) -> Outcome:
    """What networks say that do not disagree: what is said on the paper's own network, else the
    weaker of those that decide, else the first.
    """
    for own_word in ("not reproduced", "reproduced"):
        if own_word in words:
            return own_word
    deciding = [word for word in words if word in (*SEEN_AGAIN, *NOT_SEEN, "answered")]
    return worst(deciding) if deciding else next(iter(words), "not attempted")


def reason_of(parts: pd.DataFrame, network: str, word: Outcome) -> tuple[str, str]:
    """What stands beside a verdict on a network, the most telling first, and the same in a few
    words; of one without any, what stands beside any part.
    """
    if parts.empty:
        return "", ""
    with_reason = decisive(parts, network)
    with_reason = with_reason if len(with_reason) else parts[parts["verdict"] == word]
    why, briefly = (list(filter(None, with_reason[name])) for name in ("why", "briefly"))
    return next(iter(why), ""), next(iter(briefly), "")


def decisive(parts: pd.DataFrame, network: str) -> pd.DataFrame:
    """The parts of a claim that decide it on a network: those of its word, the most telling first.

    A contradiction and an answer are told by the part that is surest, all else by the part that is
    least sure.
    """
    on_network = parts[parts["network"] == network]
    if on_network.empty:
        return on_network
    verdicts = list(on_network["verdict"])
    word = "answered" if "answered" in verdicts else worst(verdicts)
    on_network = on_network[on_network["verdict"] == word]
    surest = word in (*NOT_SEEN, "answered")
    return on_network.sort_values("chance", ascending=surest, kind="stable", na_position="last")


def scorecard(verdicts: pd.DataFrame | None = None) -> pd.DataFrame:
    """Every claim with its recorded and its live verdict, each by the networks that its record
    names.

    Beside the recorded one: the first network that says so (`network`), how many of those that can
    bear on the claim do (`tally`), the `others`, the reason or what it would take (`why`, in a few
    words `briefly`), on how much it rests (`rests`) and how likely it is by luck (`chance`).
    Generated text judges nothing. Verdicts are those given, by default those that the build's pages
    left.
    """
    verdicts = in_one_block(read_verdicts() if verdicts is None else verdicts)
    card = claims().copy()
    for kind in ("recorded", "live"):
        of_kind = verdicts[(verdicts["kind"] == kind) & ~verdicts["verdict"].isin(ON_GENERATED)]
        of_claim = dict(list(of_kind.groupby("claim_id")))
        parts_of = [of_claim.get(claim, of_kind.iloc[:0]) for claim in card["claim_id"]]
        pairs = list(zip(card["claim_id"], parts_of, strict=True))
        outcomes = [told(claim, parts) for claim, parts in pairs]
        card[kind] = [one.verdict for one in outcomes]
        if kind == "recorded":
            for column in ("network", "tally", "others", "why", "briefly"):
                card[column] = [getattr(one, column) for one in outcomes]
            rested = [rests_on(one, parts) for one, (_, parts) in zip(outcomes, pairs, strict=True)]
            card["rests"], card["chance"] = zip(*rested, strict=True)
    card["page"] = card["claim_id"].map(verdicts.groupby("claim_id")["page"].first()).fillna("")
    return card


def rests_on(one: Told, parts: pd.DataFrame) -> tuple[str, float]:
    """On how much a verdict rests, such as "1 of 8 parts, 3 seeds, 1 of 2 networks", and how likely
    it is by luck; nothing of one that nobody told.

    One part is enough against a claim; for it all are needed, so the least sure of them counts.
    """
    if parts.empty or one.verdict in SILENT:
        return "", nan
    deciding = decisive(parts, one.network)
    if deciding.empty:
        return "", nan
    on_network = parts[parts["network"] == one.network]
    of_network = len(on_network)
    seeds = int(deciding["seeds"].min())
    of_all = int(one.tally.split()[-1])
    counts_in_words = (
        f"{len(deciding)} of {of_network} part{'s' * (of_network != 1)}, {seeds} "
        f"seed{'s' * (seeds != 1)}, {one.tally} network{'s' * (of_all != 1)}"
    )
    if one.verdict in SEEN_AGAIN:
        return counts_in_words, float(on_network["chance"].max())
    return counts_in_words, float(deciding["chance"].iloc[0]) if one.verdict in NOT_SEEN else nan


def counted(card: pd.DataFrame) -> pd.DataFrame:
    """The claims that are counted: all but what this book observed by itself."""
    return card[card["testable"] != "ours"]


def front_sentence(card: pd.DataFrame) -> str:
    """What the recorded runs say of all documents together, for the front page."""
    card = counted(card)
    count_of = card["recorded"].value_counts()

    def number(*outcomes: Outcome) -> int:
        return int(sum(count_of.get(outcome, 0) for outcome in outcomes))

    tested = number(*SEEN_AGAIN, *NOT_SEEN, "split", "cannot tell")
    against = card[card["recorded"].isin(NOT_SEEN)]
    on_own = [
        set(short_names(network)) <= set(record_of(claim)["own"])
        for claim, network in zip(against["claim_id"], against["network"], strict=True)
    ]
    own_count = sum(on_own)
    on_papers = f"{own_count or 'None'} of these {'were' if own_count > 1 else 'was'}"
    decided = number(*SEEN_AGAIN, *NOT_SEEN)
    return (
        f"Of {tested} statements that our networks could test, "
        f"{number('reproduced', 'holds here')} were seen again, {number('direction only')} in "
        f"direction only, and {len(against)} were not. {on_papers} contradicted on the paper's own "
        f"network. Networks disagree on {number('split')}, and on {number('cannot tell')} no "
        f"network can tell. Of the {decided} that are decided, {survivors(card['chance'])} stay so "
        "if all are to hold at once (Holm)."
    )


def counts(card: pd.DataFrame) -> pd.DataFrame:
    """How many claims of each document have which verdict, recorded and live; what this book
    observed by itself is not counted.
    """
    long = (
        counted(card)
        .rename(columns={"paper": "document"})
        .melt(
            "document",
            ["recorded", "live"],
            "numbers",
            "verdict",
        )
    )
    table = long.groupby(["document", "numbers", "verdict"]).size().unstack(fill_value=0)
    return table.reindex(
        columns=[o for o in OUTCOMES if o not in ON_GENERATED],
        fill_value=0,
    ).reset_index()
