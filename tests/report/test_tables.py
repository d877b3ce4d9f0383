"""Tables: printed, recorded and live numbers side by side, and what a browser and a printed page
show of them.
"""

import re

import numpy as np
import pandas as pd
import pytest
from IPython.core.formatters import DisplayFormatter
from markdown_it import MarkdownIt

from repro import paths
from repro.methods import END_TO_END as END
from repro.methods import STEP_1, STEP_2
from repro.report.figures import Drawing, NothingToDraw, drawing
from repro.report.kinds import join_kinds, paper_values, side_by_side
from repro.report.tables import NO_BREAK, comparison, show, to_myst
from repro.rows import make_rows
from repro.types import InputError

FRAME = pd.DataFrame(
    {
        "method": ["a | b", "<c>"],
        "dim": pd.array([8, None], dtype="Int64"),
        "paper": [79.615, np.nan],
    }
)


def rows(values, **shared):
    made = [
        {"method": END, "metric": "spearman", "dataset": "stsb", "readout": "pooler", **v}
        for v in values
    ]
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


def test_kinds_without_rows_join_to_none_with_the_columns_of_live_ones():
    none, one = rows([]), rows([{"dim": 8, "value": 0.5}])
    assert join_kinds(none, one, one)["kind"].tolist() == ["recorded", "live"]
    joined = join_kinds(none, none, none)
    assert joined.empty and joined.columns.tolist() == [*none.columns, "kind"]


def test_recorded_seeds_are_averaged_and_every_kind_keeps_its_column():
    printed = paper_values("wang2023", "table1")
    printed = printed[(printed["metric"] == "spearman") & (printed["method"] == END)]
    recorded = rows([{"dim": 128, "value": v, "seed": i} for i, v in enumerate((0.70, 0.71, 0.72))])
    live = rows([{"dim": 128, "value": 0.6, "ci_low": 0.58, "ci_high": 0.62, "seed": 0}])
    table = side_by_side(printed, recorded, live).set_index(["method", "dim"])
    assert len(table) == 8
    line = table.loc[(END, 128)]
    assert line["paper"] == pytest.approx(78.17) and line["live"] == pytest.approx(60.0)
    assert (
        line["recorded"] == pytest.approx(71.0)
        and line["recorded_sd"] == pytest.approx(1.0)
        and line["seeds"] == 3
    )
    assert line["gap"] == pytest.approx(60.0 - 78.17)
    assert table["live"].isna().sum() == 7 and table["gap"].isna().sum() == 7
    with pytest.raises(InputError, match="twice"):
        side_by_side(printed, recorded, pd.concat([live, live]))


def test_a_number_repeated_under_three_seeds_is_one_number_without_a_seed():
    same = rows(
        [{"dim": 128, "value": 0.7, "ci_low": 0.68, "ci_high": 0.72, "seed": i} for i in range(3)]
    )
    (line,) = side_by_side(same.iloc[:0], same, same.iloc[:0]).itertuples()
    assert line.recorded == pytest.approx(70.0) and np.isnan([line.recorded_sd, line.seeds]).all()
    assert "| 70.00 |" in comparison(side_by_side(same.iloc[:0], same, same.iloc[:0])).markdown


def test_markdown_has_one_row_per_row_and_escapes_its_bars():
    lines = to_myst(FRAME).splitlines()
    assert len(lines) == 4 and lines[1] == "| :--- | ---: | ---: |"
    parsed = MarkdownIt("commonmark").enable("table").render(to_myst(FRAME))
    assert parsed.count("<tr>") == 3 and len(re.findall("<t[hd][ >]", parsed)) == 9
    assert (
        "a | b" in parsed
        and "–" in lines[3]
        and "&lt;c&gt;" in show(FRAME).html
        and "nan" not in show(FRAME).html
    )


def test_a_table_calls_datasets_as_the_documents_do_and_breaks_no_interval():
    table = pd.DataFrame({"dataset": ["stsb", None], "sickr": ["1.20 [0.30, 2.10]", "–"]})
    shown = show(table)
    assert "<td>STS-B</td>" in shown.html and "| STS-B | 1.20 [0.30, 2.10] |" in shown.markdown
    assert "SICK-R" in shown.html and "stsb" not in shown.html and "None" not in shown.html
    assert '<td class="number">1.20 <span>[0.30, 2.10]</span></td>' in shown.html


def test_a_column_of_numbers_is_aligned_to_its_last_word_and_a_column_of_words_is_not():
    sentence = "measured on no more than a few of these texts"
    table = pd.DataFrame(
        {
            "form": ["vector", "halfvec (not all)", "bit"],
            "kept": ["all", "98.20 [97.10, 99.00]", "–"],
            "bound": ["1.70, ≥ 0.74", "−1.24, up to ±2.39", "3e-05"],
            "size": ["0.61 GB", "0.31 GB", "–"],
            "why": [sentence, "2", "not seen here"],
        }
    )
    shown = show(table).html
    assert '<th class="number">kept</th>' in shown and "<th>form</th>" in shown
    assert '<td class="number words">all</td>' in shown and "<td>vector</td>" in shown
    assert f"<td>halfvec (not{NO_BREAK}all)</td>" in shown, "a short bracket breaks nowhere"
    assert '<td class="number">1.70, <span>≥ 0.74</span></td>' in shown
    assert '<td class="number">−1.24, <span>up to ±2.39</span></td>' in shown
    assert '<td class="number">3e−05</td>' in shown
    assert '<td class="number">0.61 GB</td>' in shown
    assert f'<td class="prose">{sentence}</td>' in shown and "<td><span" in shown


def test_a_figure_without_a_point_says_so_in_its_place():
    @drawing
    def draw() -> Drawing:
        raise NothingToDraw("no size was tried")

    bundle, _ = DisplayFormatter().format(draw())
    assert bundle["text/markdown"] == "Nothing to show under these parameters: no size was tried."
    assert not set(bundle) & {"image/png", "image/svg+xml"}


def test_no_interval_is_a_mean_of_each_runs_own():
    """They are estimates over runs (`over_runs`): what runs differ by is in the interval."""
    root = paths.project_root()
    files = [*(root / "src").rglob("*.py"), *(root / "notebooks").glob("*.md")]
    ends = r"(\"ci_(low|high)\"|\bPOINT\b)"
    averaged = re.compile(rf"{ends}[^\n]*(\n[^\n]*)?\.mean\(|\.mean\(\)[^\n]*{ends}")
    for path in files:
        assert not averaged.search(path.read_text(encoding="utf-8")), path
