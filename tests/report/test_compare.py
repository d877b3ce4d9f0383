from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from repro.report.judge import Measurement
from repro.report.scorecard import claims, counts, read_verdicts, scorecard, verdict_frame, write_verdicts
from repro.report.tables import comparison, paper_values, side_by_side
from repro.rows import make_rows
from repro.types import InputError

END = "Encoder_d + pooler_d (end-to-end training)"
STEP_1 = "Encoder_opt + pooler_d (After step 1)"
STEP_2 = "Encoder_opt + new-pooler_d (After step 2)"


def rows(values, **shared):
    made = [{"method": END, "metric": "spearman", "dataset": "stsb", "readout": "pooler", **v} for v in values]
    return make_rows(made, experiment="wang_table1", data_source="local", **shared)


def test_wang_table_1_is_whole_and_its_gains_are_its_differences():
    printed = paper_values("wang2023", "table1")
    assert len(printed) == 40 and set(printed["dataset"]) == {"stsb"}
    cells = printed.set_index(["metric", "method", "dim"])["value"]
    for before, after in ((END, STEP_1), (STEP_1, STEP_2)):
        scores = cells["spearman"][after] - cells["spearman"][before]
        gains = cells["spearman_gain"][after]
        assert len(gains) == 8
        np.testing.assert_allclose(scores[gains.index], gains, atol=1e-9)
    assert cells["spearman", STEP_2, 8] == pytest.approx(0.6415)


def test_recorded_seeds_are_averaged_and_every_kind_keeps_its_column():
    printed = paper_values("wang2023", "table1")
    printed = printed[(printed["metric"] == "spearman") & (printed["method"] == END)]
    recorded = rows([{"dim": 128, "value": v, "seed": i} for i, v in enumerate((0.70, 0.71, 0.72))])
    live = rows([{"dim": 128, "value": 0.6, "ci_low": 0.58, "ci_high": 0.62, "seed": 0}])
    table = side_by_side(printed, recorded, live).set_index(["method", "dim"])
    assert len(table) == 8
    line = table.loc[(END, 128)]
    assert line["paper"] == pytest.approx(78.17) and line["live"] == pytest.approx(60.0)
    assert line["recorded"] == pytest.approx(71.0) and line["recorded_sd"] == pytest.approx(1.0) and line["seeds"] == 3
    assert line["gap"] == pytest.approx(60.0 - 78.17)
    assert table["live"].isna().sum() == 7 and table["gap"].isna().sum() == 7


def test_a_number_repeated_under_three_seeds_is_one_number_without_a_seed():
    same = rows([{"dim": 128, "value": 0.7, "ci_low": 0.68, "ci_high": 0.72, "seed": i} for i in range(3)])
    (line,) = side_by_side(same.iloc[:0], same, same.iloc[:0]).itertuples()
    assert line.recorded == pytest.approx(70.0) and np.isnan([line.recorded_sd, line.seeds]).all()
    assert "| 70.00 |" in comparison(side_by_side(same.iloc[:0], same, same.iloc[:0])).markdown


def test_a_live_cell_named_twice_is_refused():
    live = rows([{"dim": 128, "value": 0.6, "seed": 0}, {"dim": 128, "value": 0.7, "seed": 1}])
    printed = paper_values("wang2023", "table1").query("metric == 'spearman'")
    with pytest.raises(InputError, match="twice"):
        side_by_side(printed, rows([]), live)


def test_a_table_that_is_not_transcribed_is_named():
    with pytest.raises(InputError, match="wang2023_table1"):
        paper_values("wang2023", "table9")


def measured(claim, value, *, test="effect"):
    return Measurement(claim, test, value, value - 1, value + 1, seeds=3, what="gain")


def test_the_scorecard_lists_every_claim_and_keeps_recorded_and_live_apart(tmp_path):
    write_verdicts(
        "page_a",
        verdict_frame("recorded", [measured("WANG-T1-1", 3.0), measured("WANG-T1-1", 0.0)]),
        verdict_frame("live", [measured("WANG-T1-2", -3.0)]),
        folder=tmp_path,
    )
    write_verdicts("page_b", verdict_frame("live", [measured("WANG-T1-1", 3.0)]), folder=tmp_path)
    card = scorecard(tmp_path).set_index("claim_id")
    assert list(card.index) == list(claims()["claim_id"])
    assert card.loc["WANG-T1-1", "recorded"] == "cannot tell"  # its weakest part
    assert card.loc["WANG-T1-1", "live"] == "holds here"
    assert card.loc["WANG-T1-2", "live"] == "does not hold here"
    assert card.loc["WANG-T1-2", "recorded"] == "not attempted"
    table = counts(card.reset_index())
    assert table.select_dtypes("number").to_numpy().sum() == 2 * len(card)


def test_the_nearest_network_that_can_bear_on_a_claim_has_the_word_and_generated_text_none(tmp_path):
    tiny, mini = (
        replace(measured("ESE-T1-1", v), network=n) for v, n in ((-3.0, "repro-tiny"), (3.0, "all-MiniLM-L6-v2"))
    )
    deaf = replace(measured("ESE-T1-3", 3.0), network="all-MiniLM-L6-v2", unmet="at least 4 blocks")
    frames = [verdict_frame("recorded", [tiny, mini, deaf, replace(deaf, network="repro-tiny", unmet="", low=-9.0)])]
    frames.append(verdict_frame("live", [replace(mini, generated=True)]))
    write_verdicts("page", *frames, folder=tmp_path)
    card = scorecard(tmp_path).set_index("claim_id")
    assert card.loc["ESE-T1-1", ["recorded", "network", "others", "live"]].tolist() == [
        "holds here",
        "all-MiniLM-L6-v2",
        "repro-tiny: does not hold here",
        "not attempted",
    ]
    assert card.loc["ESE-T1-3", ["recorded", "network"]].tolist() == ["cannot tell", "repro-tiny"]
    assert card.loc["ESE-T1-3", "others"] == "all-MiniLM-L6-v2: does not apply"


def test_a_page_replaces_its_own_verdicts_and_leaves_no_partial_file(tmp_path):
    write_verdicts("page", verdict_frame("live", [measured("WANG-T1-1", 3.0)]), folder=tmp_path)
    write_verdicts("page", verdict_frame("live", [measured("WANG-T1-2", 3.0)]), folder=tmp_path)
    assert list(read_verdicts(tmp_path)["claim_id"]) == ["WANG-T1-2"]
    assert [path.name for path in tmp_path.iterdir()] == ["page.parquet"]


def test_a_damaged_file_of_verdicts_is_left_out_with_a_warning(tmp_path, caplog):
    write_verdicts("page", verdict_frame("live", [measured("WANG-T1-1", 3.0)]), folder=tmp_path)
    (tmp_path / "garbage.parquet").write_bytes(b"PAR1 and nothing else")
    (tmp_path / "empty.parquet").touch()
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "other.parquet")
    verdict_frame("live", [measured("WANG-T1-1", 3.0)]).assign(verdict="?").to_parquet(tmp_path / "words.parquet")
    assert set(scorecard(tmp_path)["live"]) == {"not attempted", "holds here"}
    assert all(f"{name}.parquet holds no verdicts" in caplog.text for name in ("garbage", "empty", "other", "words"))


def test_an_unknown_claim_is_refused():
    with pytest.raises(InputError, match="WANG-T9-9"):
        verdict_frame("live", [measured("WANG-T9-9", 1.0)])
