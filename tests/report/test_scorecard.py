"""Networks by their own names, beside those whose place they take, with full-size scores; and who
may judge what.
"""

import re
from dataclasses import replace
from math import nan

import numpy as np
import pandas as pd
import pytest

from repro.evaluation.seeds import Estimate
from repro.report import scorecard
from repro.report.judge import Measurement, effect
from repro.report.page import badge
from repro.report.scorecard import claims, counts, verdict_frame, write_verdicts
from repro.rows import make_rows


def test_a_badge_says_in_whose_place_a_network_is_and_its_full_size_score_beside_tfidf(monkeypatch):
    scores = [
        ("SBERT", "repro-tiny", 0.42),
        ("SimCSE", "repro-tiny", 0.23),
        ("n-gram TF-IDF", "tfidf", 0.54),
    ]
    at = {"metric": "spearman", "dataset": "stsb"}
    rows = make_rows(
        [{**at, "method": m, "backbone": b, "value": v} for m, b, v in scores],
        data_source="local",
    )
    monkeypatch.setattr(
        scorecard, "recorded_rows", lambda name: rows if name == "proposal_baselines" else rows[:0]
    )
    monkeypatch.setattr(
        "repro.report.page.full_size_scores",
        scorecard.full_size_scores.__wrapped__,
    )
    live = make_rows(
        [{"backbone": "repro-tiny", "value": 0.5}],
        experiment="wang_table1",
        data_source="local",
        seed=0,
    )
    for said in (
        "repro-tiny (the paper: RoBERTa-base) 23.0 after SimCSE, 42.0",
        "counted words (n-gram TF-IDF) 54.0",
    ):
        assert said in badge(live).markdown and said in badge(live).html


@pytest.fixture
def floor(monkeypatch):
    monkeypatch.setattr(scorecard, "full_size_scores", lambda: {scorecard.BASELINES["tfidf"]: 54.5})


def rows_on(backbone, score=0.8, **shared):
    made = [
        {"metric": "spearman", "dataset": "stsb", "dim": dim, "value": v}
        for dim, v in ((384, score), (8, 0.9))
    ]
    better = {"metric": "spearman", "dataset": "stsb", "dim": 384, "value": 0.9}
    made += [{**better, "method": "RAW-LP"}, {**better, "setting": "dev"}]
    return make_rows(
        [{"method": "RAW", "data_source": "local", **shared, **line} for line in made],
        backbone=backbone,
    )


def judged(claim, of, what="gain"):
    (m,) = scorecard.placed([Measurement(claim, "effect", 2.0, 1.0, 3.0, what=what)], of)
    return m


CONDITIONS = [
    ("ESE-F3-1", "all-MiniLM-L6-v2", 0.8, "gain", ""),
    ("ESE-F3-1", "repro-tiny", 0.8, "gain", "at least 4 blocks: repro-tiny has 2 blocks"),
    ("ESE-F7-1", "repro-tiny", 0.4, "gain", ""),
    ("WANG-T1-1", "repro-tiny", 0.55, "gain", ""),
    ("WANG-T1-1", "repro-tiny", 0.24, "gain", "above counted words' 54.5: repro-tiny has 24.0"),
    ("WANG-F2-1", "repro-tiny", 0.24, "trec: largest change", ""),
    ("WANG-F2-1", "repro-tiny", 0.24, "stsb: largest change", "above counted words'"),
    ("ESE-T3-1", "repro-tiny", 0.24, "smallest lead", "above counted words'"),
    ("WANG-S53-1", "repro-tiny", 0.24, "classification: lead", ""),
    (
        "ZHANG-S42-1",
        "repro-tiny + SimCSE",
        0.24,
        "STS-B, repro-tiny + SimCSE: loss",
        "repro-tiny + SimCSE has 24.0",
    ),
    ("ZHANG-S42-9", "repro-tiny", 0.24, "STS-B: largest difference", ""),
]


@pytest.mark.parametrize(("claim", "backbone", "score", "what", "unmet"), CONDITIONS)
def test_conditions(floor, claim, backbone, score, what, unmet):
    """The score is that of the largest size on test pairs, and of nothing that was mended after
    training.
    """
    m = judged(claim, rows_on(backbone, score), what)
    assert unmet in m.unmet and bool(unmet) == bool(m.unmet)
    assert m.verdict == ("does not apply" if unmet else "holds here")


def test_who_speaks_where_and_on_what(floor):
    own = "BAAI/bge-base-en-v1.5"
    beside = pd.concat([rows_on(own, profile="paper"), rows_on("repro-tiny", profile="embedded")])
    assert judged("ESE-T1-1", beside, f"{own}: gain").verdict == "reproduced"
    assert judged("ESE-T1-1", rows_on(own, profile="gpu")).verdict == "holds here", (
        "of a smaller training"
    )
    assert judged("WANG-T1-1", rows_on("bge-base-en-v1.5")).verdict == "holds here", (
        "own network of another paper"
    )
    assert judged("WANG-T1-1", rows_on("repro-tiny", 0.2, data_source="microworld")).verdict == "up"
    assert scorecard.rank("ESE-T1-1", "repro-tiny, all-MiniLM-L6-v2") == scorecard.rank(
        "ESE-T1-1",
        "repro-tiny",
    )
    both = make_rows(
        [{"backbone": name} for name in ("repro-tiny", "repro-tiny + SimCSE")],
        data_source="local",
    )
    assert judged("PROP-T-2", both, "repro-tiny + SimCSE: slope").network == "repro-tiny + SimCSE"
    assert judged("PROP-T-2", both).network == "repro-tiny, repro-tiny + SimCSE"


def measured(claim, value):
    return Measurement(claim, "effect", value, value - 1, value + 1, seeds=3, what="gain")


def test_the_scorecard_lists_every_claim_and_keeps_recorded_and_live_apart(verdicts):
    recorded = verdict_frame("recorded", [measured("WANG-T1-1", 3.0), measured("WANG-T1-1", 0.0)])
    write_verdicts("page_a", recorded, verdict_frame("live", [measured("WANG-T1-2", -3.0)]))
    write_verdicts("page_b", verdict_frame("live", [measured("WANG-T1-1", 3.0)]))
    card = scorecard.scorecard().set_index("claim_id")
    assert list(card.index) == list(claims()["claim_id"])
    assert card.loc["WANG-T1-1", "recorded"] == "cannot tell"  # its weakest part
    assert card.loc["WANG-T1-1", "live"] == "holds here"
    assert card.loc["WANG-T1-2", "live"] == "does not hold here"
    assert card.loc["WANG-T1-2", "recorded"] == "not attempted"
    table = counts(card.reset_index())
    assert table.select_dtypes("number").to_numpy().sum() == 2 * len(card)


def test_the_nearest_network_that_can_bear_on_a_claim_has_the_word_and_generated_text_none(
    verdicts,
):
    tiny = replace(measured("ESE-T1-1", -3.0), network="repro-tiny")
    mini = replace(measured("ESE-T1-1", 3.0), network="all-MiniLM-L6-v2")
    deaf = replace(measured("ESE-T1-3", 3.0), network="all-MiniLM-L6-v2", unmet="at least 4 blocks")
    # Nearer, but of one training
    once = replace(tiny, network="all-mpnet-base-v2", low=nan, high=nan, seeds=1)
    rest = [deaf, replace(deaf, network="repro-tiny", unmet="", low=-9.0)]
    frames = [verdict_frame("recorded", [once, tiny, mini, *rest])]
    frames.append(verdict_frame("live", [replace(mini, generated=True)]))
    write_verdicts("page", *frames)
    card = scorecard.scorecard().set_index("claim_id")
    assert card.loc["ESE-T1-1", ["recorded", "network", "others", "live"]].tolist() == [
        "holds here",
        "all-MiniLM-L6-v2",
        "repro-tiny: does not hold here; all-mpnet-base-v2: cannot tell",
        "not attempted",
    ]
    assert card.loc["ESE-T1-3", ["recorded", "network"]].tolist() == ["cannot tell", "repro-tiny"]
    assert card.loc["ESE-T1-3", "others"] == "all-MiniLM-L6-v2: does not apply"


def test_parts_of_a_claim_are_counted_over_networks_that_can_bear_on_it(floor):
    networks = ("repro-tiny", "all-MiniLM-L6-v2")
    found = [
        replace(measured("ESE-F3-1", value), network=name)
        for value in (1.0, 2.0)
        for name in networks
    ]
    found += [replace(found[1], low=nan, high=nan), replace(found[1], claim_id="ZHANG-S42-11")]
    assert [m.parts for m in scorecard.placed(found, pd.concat(map(rows_on, networks)))] == [
        2,
        2,
        2,
        2,
        2,
        3,
    ]


@pytest.mark.parametrize("parts", [1, 4])
def test_a_claim_of_many_parts_and_two_networks_is_contradicted_wrongly_in_5_of_100_cases_at_most(
    parts,
):
    """It is true by a hair; networks of six and nine seeds, as recorded. By simple intervals it
    were 5 and 19.
    """
    rng, runs, false, networks = (
        np.random.default_rng(0),
        500,
        0,
        {"all-mpnet-base-v2": 6, "all-MiniLM-L6-v2": 9},
    )
    for _ in range(runs):
        found = []
        for network, seeds in networks.items():
            # Items, which seeds share
            drawn = 0.5 * rng.normal(size=(parts, 1)) + rng.normal(size=(parts, seeds))
            estimates = [Estimate(dict(enumerate(values)), 0.5) for values in drawn]
            found += [
                effect("WANG-T1-1", e, "", network=network, parts=2 * parts) for e in estimates
            ]
        said = scorecard.by_network("WANG-T1-1", verdict_frame("recorded", found))
        false += next(iter(said.values())) == "does not hold here"
    assert 0.005 < false / runs <= 0.05


def test_a_claim_is_one_line_with_the_number_that_decides_and_all_parts_on_a_click():
    parts = [
        replace(measured("ESE-T1-1", v), network="all-MiniLM-L6-v2", paper=2.5)
        for v in (3.0, -4.0, 5.0)
    ]
    built = [replace(part, generated=True) for part in parts]
    both = pd.concat(
        [verdict_frame("recorded", parts), verdict_frame("live", built)],
        ignore_index=True,
    )
    shown = scorecard.verdict_table(both)
    line = shown.html[: shown.html.index("</summary>")]
    assert "does not hold here" in line and "−4.00 [−5.00, −3.00]" in line and "3.00 [" not in line
    assert shown.html.count('<details class="claim"') == 1 and shown.html.count("<tr>") == 1 + 6
    unprinted = verdict_frame("recorded", [replace(part, paper=None) for part in built])
    # Few dims measure no claim
    one_kind = pd.concat([unprinted, verdict_frame("live", [])], ignore_index=True)
    assert "same direction 2" in scorecard.verdict_table(one_kind).html
    assert "generated text: same direction 2, other direction 1." in shown.html
    assert "- **does not hold here** ESE-T1-1: " in shown.markdown
    found = verdict_frame("recorded", parts).assign(page="")
    # Most claims have no measurement
    every = scorecard.verdict_table(found, scorecard.scorecard(found))
    assert every.html.count('<details class="claim"') == len(scorecard.claims())


def test_a_whisker_shows_number_interval_null_and_printed_number():
    frame = verdict_frame("recorded", [replace(measured("ESE-T1-1", 3.0), paper=-4.0)])
    drawn = scorecard.whisker(frame.iloc[0])
    # Printed, ours; 60 is the null
    assert [float(x) for x in re.findall(r'cx="([\d.]+)"', drawn)] == [6.0, 100.5]
    assert 'd="M87.0 8H114.0"' in drawn
    assert "8H" not in scorecard.whisker(frame.assign(low=nan).iloc[0])
    assert scorecard.whisker(frame.assign(value=nan).iloc[0]) == ""


def test_a_damaged_file_of_verdicts_is_left_out_with_a_warning(verdicts, caplog):
    for page in ("page", "flipped"):
        write_verdicts(page, verdict_frame("live", [measured("WANG-T1-1", 3.0)]))
    (verdicts / "garbage.parquet").write_bytes(b"PAR1 and nothing else")
    (verdicts / "empty.parquet").touch()
    words = verdict_frame("live", [measured("WANG-T1-1", 3.0)]).assign(verdict="?", page="words")
    for name, frame in (
        ("other", pd.DataFrame({"a": [1]})),
        ("words", words),
        ("renamed", words.assign(verdict="up")),
    ):
        frame.to_parquet(verdicts / f"{name}.parquet")
    flipped = (verdicts / "flipped.parquet").read_bytes()
    (verdicts / "flipped.parquet").write_bytes(flipped.replace(b"WANG-T1-1", b"WANG-T1-2", 1))
    assert set(scorecard.scorecard()["live"]) == {"not attempted", "holds here"}
    left_out = ("flipped", "garbage", "empty", "other", "words", "renamed")
    assert all(f"{name}.parquet holds no verdicts" in caplog.text for name in left_out)
