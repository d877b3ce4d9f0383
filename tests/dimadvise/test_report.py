import json
import re
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest

import browser
from dimadvise.figures import option_table, share_table, worth_a_choice
from dimadvise.findings import Findings, explanation, headline, number_bytes, size
from dimadvise.report import page, write
from repro.evaluation.quantise import BITS, vector_bytes


def options(answer=("pca", 32, "int8", 4)):
    """Ways to store 64 numbers; recall grows with size and bits, and with re-ranking."""
    found, ways = (
        [],
        product((0, 4), ("truncate", "pca"), (64, 32, 16, 8), ("float32", "int8", "binary")),
    )
    for rerank, method, dim, level in ways:
        lost = (1 - dim / 64) ** 1.5 * (0.7 if method == "truncate" else 0.5) + 4 / BITS[
            level
        ] / dim
        recall = 1 - lost ** (1 + rerank / 4)
        ends = {"recall": recall, "low": recall - 0.01, "high": recall + 0.01}
        near = {f"{end}@{k}": value for end, value in ends.items() for k in (1, 10, 100)}
        way = {"method": method, "dim": dim, "level": level, "rerank": rerank}
        found.append(
            {**way, "bytes": vector_bytes(dim, level), **near, "alike@10": recall, "ms": dim / 100}
            | {"tail@10": (1 - recall) / 2, "expected@10": recall}
        )
    frame = pd.DataFrame(found)
    better = [
        (
            (frame["rerank"] == row.rerank)
            & (frame["bytes"] <= row.bytes)
            & (frame["recall@10"] > row[6])
        ).any()
        for row in frame.itertuples(index=False)
    ]
    chosen = [
        tuple(row) == answer
        for row in frame[["method", "dim", "level", "rerank"]].itertuples(index=False)
    ]
    return frame.assign(front=~np.array(better), answer=chosen)


def findings(answer=("pca", 32, "int8", 4), target=("recall", 0.9), **more):
    return Findings(
        "shop/<vectors>.npy",
        5000,
        64,
        "float16",
        "cosine",
        target,
        options(answer),
        **more,
    )


SHARES = pd.DataFrame(
    [
        (m, d, level, 1 - (1 - d / 64) / 9, 0.99 - (1 - d / 64) / 9)
        for level in ("int8", "float32")
        for m in ("truncate", "pca")
        for d in (64, 32, 16, 8)
    ],
    columns=["method", "dim", "level", "share", "low"],
)
EVERYTHING = findings(
    notes=["3 of 64 columns hold one value in every row: they can go."],
    measured=["Fitted on 2,000 rows, measured with 300 queries over 3,000 others."],
    predicted=["98 % of a score is expected to be kept."],
    shares=SHARES,
    metric="accuracy",
)


def test_the_first_line_is_what_to_do():
    said = headline(findings())
    first = (
        "Store 32 of 64 dimensions (principal components) as int8: 32 bytes a vector instead of "
        "128. "
    )
    second = (
        r"9\.\d of the ten nearest neighbours are found \(recall@10 0\.\d{3} "
        r"\[0\.\d{3}, 0\.\d{3}\]\)"
    )
    assert said.startswith(first) and re.search(second, said)
    assert said.endswith("the first 40 re-ranked by the full vectors.")
    assert "Store all 64 dimensions as int8: 64 bytes" in headline(
        findings(("truncate", 64, "int8", 0))
    )
    assert [number_bytes(kind) for kind in ("float16 and float32", "bfloat16", "uint8")] == [
        4,
        2,
        1,
    ]
    assert [size(n) for n in (0, 999, 48_000_000, 1.54e12)] == ["0 B", "999 B", "48 MB", "1.54 TB"]


KEPT = {
    ("recall", 0.95): "is sure to have a recall@10 of 0.95",
    ("retain", 0.99): "is sure to keep 99 % of the score",
}


@pytest.mark.parametrize(
    ("target", "said"),
    [*KEPT.items(), (("bytes", 4), "fits into 4 bytes a vector")],
)
def test_keeping_everything_is_an_answer(target, said):
    found = findings(None, target)
    assert (
        headline(found) == f"Keep the vectors as they are: nothing smaller that was tried {said}."
    )
    # The legend of the table alone
    assert "instead of" not in " ".join(explanation(found)) and "▶" in page(found)


@pytest.mark.parametrize(
    ("target", "metric", "unknown"),
    [
        (("retain", 0.99), "accuracy", True),
        (("retain", 0.99), None, True),
        (("bytes", 4), "accuracy", True),
        (("bytes", 4), None, False),
        (("recall", 0.9), "accuracy", False),
    ],
)
def test_what_labels_did_not_judge_is_unknown_and_not_refused(tmp_path, target, metric, unknown):
    write(tmp_path / "report.html", findings(None, target, metric=metric))
    told = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert told["answer"]["keep"]
    assert told["other_answer"] == ({} if unknown else told["answer"])


def test_recall_of_too_few_rows_is_not_projected():
    found = findings(searched=200)
    found.options["expected@10"] = np.nan
    said = "To 5,000 vectors recall@10 cannot be projected: 200 are too few."
    assert said in explanation(found) and "is projected to be" not in " ".join(explanation(found))


def test_the_first_line_speaks_of_all_rows_and_tells_what_was_measured_from_what_is_projected():
    found = findings(searched=2000)
    found.options["expected@10"] -= 0.03
    expected = found.answer["expected@10"]
    said = headline(found)
    assert f"neighbours are found among 5,000 (recall@10 {expected:.3f}, projected from" in said
    assert "] measured among 2,000)" in said
    assert "projected" not in headline(replace(found, searched=5000))
    assert "among 9,000" in headline(replace(found, total=9000))


def test_where_labels_keep_everything_the_nearest_miss_is_named():
    found = findings(None, ("retain", 0.995), shares=SHARES, metric="accuracy")
    said = " ".join(explanation(found))
    assert (
        "Closest came all 64 dimensions as int8, 64 bytes: it keeps 100.0 % of the accuracy, with "
        "95 % confidence at least 99.0 %, which is 0.5 points short." in said
    ), "float32 keeps as much, but takes more than the file does"
    assert "Closest came" not in " ".join(explanation(replace(found, shares=None)))
    unknown = replace(found, shares=SHARES.assign(low=np.nan))
    assert "Closest came" not in " ".join(explanation(unknown))


def test_labels_are_answered_by_the_share_of_their_score():
    found = findings(("pca", 32, "float32", 0), ("retain", 0.9), shares=SHARES, metric="accuracy")
    assert headline(found).endswith(
        "This keeps 94.4 % of the accuracy, with 95 % confidence at least 90 %."
    )
    unbounded = replace(found, shares=SHARES.assign(low=np.nan))
    assert headline(unbounded).endswith("This keeps 94.4 % of the accuracy.")


def told_apart():
    """Findings whose recall differs by the number of neighbours, and whose shares do by method."""
    found = findings()
    for k, lost in ((1, 0.2), (100, 0.1)):
        for end in ("recall", "low", "high"):
            found.options[f"{end}@{k}"] = found.options[f"{end}@10"] - lost
    less = 0.1 * (SHARES["method"] == "truncate")
    return replace(found, shares=SHARES.assign(share=SHARES["share"] - less))


def test_it_says_what_is_saved_and_found_of_the_recommendation_alone():
    found, chosen = told_apart(), told_apart().answer
    said = " ".join(explanation(found))
    rows = found.rows
    saved = f"{rows:,} vectors take {size(32 * rows)} instead of {size(128 * rows)}; the index"
    assert saved in said, "of the reader's own vectors"
    more = " ".join(explanation(replace(found, total=1_000_000)))
    assert "1,000,000 vectors take 32 MB instead of 128 MB; the index of a store" in more
    one, hundred = (100 * chosen["recall@10"] - lost for lost in (20, 10))
    nearest = f"found for {one:.1f} % of queries, and {hundred:.1f} % of the hundred nearest"
    assert nearest not in said, "fewer would be re-ranked if fewer were wanted"
    found.options.loc[found.options["answer"], "rerank"] = 0
    assert nearest in " ".join(explanation(found))
    low, high = (f"{chosen['recall@10'] + end:.3f}" for end in (-0.01, 0.01))
    assert f"[{low}, {high}]" in headline(found)
    for method, kept in (("pca", 94.4), ("truncate", 84.4)):
        told = replace(found, target=("retain", 0.9), options=options((method, 32, "int8", 4)))
        assert f"This keeps {kept} % of the" in headline(told)


def test_near_ties_are_told_where_they_make_recall_low():
    found = findings()
    assert "about as near as the tenth" not in " ".join(explanation(found))
    found.options["alike@10"] = 0.987
    assert "counting those too, recall@10 is 0.987" in " ".join(explanation(found))


def test_tables_begin_with_the_fewest_bytes_and_tell_shares_from_bounds():
    table = option_table(options())
    sizes = [int(text.removeprefix("▶ ").replace(",", "")) for text in table["bytes"]]
    assert sizes == sorted(sizes) and table["bytes"].str.startswith("▶").sum() == 1
    shares = share_table(SHARES)
    assert shares.iloc[0].tolist() == ["64", "pca", "int8", "100.0 %", "99.0 %"]
    assert shares["dims"].tolist() == [str(dim) for dim in (64, 32, 16, 8) for _ in range(4)]


def test_the_short_table_has_the_fewest_bytes_that_surely_reach_each_step():
    everything = options().assign(**{"low@10": lambda found: found["recall@10"] - 0.04})
    chosen = everything[everything["answer"]]
    expected = set(zip(chosen["rerank"], chosen["bytes"], strict=True))
    for depth in (0, 4):
        own = everything[everything["front"] & (everything["rerank"] == depth)]
        for step in (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999):
            sure = own[own["low@10"] >= step]["bytes"]
            expected |= {(depth, sure.min())} if len(sure) else set()
    short = worth_a_choice(everything)
    assert set(zip(short["rerank"], short["bytes"], strict=True)) == expected


def test_the_short_table_holds_the_answer_and_only_the_front():
    short = worth_a_choice(options())
    assert (
        short["answer"].sum() == 1 and (short["front"] | short["answer"]).all() and len(short) < 12
    )
    assert not short.duplicated(["method", "dim", "level", "rerank"]).any()


def test_the_page_tells_everything_and_escapes_names():
    told = page(EVERYTHING, usage="index = faiss_index('advice')")
    for part in (
        headline(EVERYTHING),
        *explanation(EVERYTHING),
        "How it was measured",
        "Before you rely on it",
    ):
        assert part in told
    assert (
        told.count("<figure>") == 2 == told.count("<figcaption>")
        and "faiss_index(&#x27;advice&#x27;)" in told
    )
    assert "shop/&lt;vectors&gt;.npy" in told and "<vectors>" not in told
    assert "http" not in re.sub(r'src="data:[^"]*"', "", told)  # Nothing is fetched


def test_the_same_numbers_are_written_for_machines(tmp_path):
    write(tmp_path / "report.html", EVERYTHING)
    told = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert len(told["options"]) == len(EVERYTHING.options)
    assert len(told["shares"]) == len(SHARES)
    first = (tmp_path / "report.html").read_bytes()
    write(tmp_path / "report.html", EVERYTHING)
    assert (tmp_path / "report.html").read_bytes() == first


@pytest.mark.skipif(browser.browser() is None, reason="no Chromium here")
def test_a_browser_finds_nothing_broken_wide_or_narrow(tmp_path):
    write(
        tmp_path / "report.html",
        EVERYTHING,
        usage="from dimadvise.deploy import faiss_index\n" + "x" * 300,
    )
    found = browser.measured(tmp_path, [tmp_path / "report.html"])
    assert browser.broken(found) == [] and (found["figure"] < 1).all()


def test_a_report_written_twice_is_the_same_to_the_byte(tmp_path):
    told = findings()
    write(tmp_path / "report.html", told)
    first = (tmp_path / "report.json").read_bytes()
    write(tmp_path / "report.html", told)
    assert (tmp_path / "report.json").read_bytes() == first


def test_the_answer_for_a_program_is_an_object_and_keeping_everything_is_one(tmp_path):
    write(tmp_path / "report.html", EVERYTHING)
    answer = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["answer"]
    assert answer["said"] == headline(EVERYTHING) and answer["keep"] is False
    named = {"method": "pca", "dim": 32, "level": "int8", "bytes": 32, "rerank": 4}
    assert named.items() <= answer.items() and answer["share"] == pytest.approx(0.944, abs=1e-3)
    assert answer["low@10"] <= answer["recall@10"] <= answer["high@10"]
    write(tmp_path / "report.html", findings(None))
    answer = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["answer"]
    assert answer == {"said": headline(findings(None)), "keep": True, "bytes": 128}
