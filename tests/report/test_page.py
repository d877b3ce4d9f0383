"""A page: settings that a reader may change, verdicts left for the scorecard while the book is
built, rows recorded.
"""

import ast
import re
import shlex
import sys
import warnings
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from repro.book import notebook
from repro.book.parameters import parameters_of
from repro.paths import project_root
from repro.report import page as pages
from repro.report.page import REAL, ZERO_SAYS, Page
from repro.report.verdict import Measurement
from repro.report.verdict_frames import read_verdicts, recorded_frame
from repro.rows import make_rows
from repro.types import InputError


@pytest.fixture
def live():
    row = {
        "value": 0.5,
        "backbone": "repro-tiny",
        "n_train": 10,
        "metric": "spearman",
        "method": "m",
    }
    return make_rows(
        [row],
        experiment="wang_table1",
        data_source="microworld",
        seed=0,
        profile="embedded",
    )


def judged(rows):
    value = 100 * rows["value"].mean()
    return [
        Measurement("WANG-T1-1", "effect", value, value - 1, value + 1, what=f"of {len(rows)} rows")
    ]


def test_what_a_reader_leaves_out_is_the_profiles(no_data):
    page = Page("wang_table1_two_step_simcse", "wang_table1", seed=3)
    assert page.shared == {
        "experiment": "wang_table1",
        "profile": "embedded",
        "data_source": "microworld",
        "seed": 3,
    }
    usual, changed = page.settings(sentences=None).train, page.settings(sentences=123).train
    assert (usual.seed, usual.source) == (
        3,
        "microworld",
    ) and changed.sentences == 123 != usual.sentences
    assert Page("x", "wang_table1", source="local").data_source == "local"
    asked = {None: "all-mpnet-base-v2", "some/where/all-MiniLM-L6-v2": "all-MiniLM-L6-v2"}
    assert {name: page.past(name)["backbone"].unique().item() for name in asked} == asked


def test_a_page_tells_warnings_as_sentences_without_a_path_of_the_machine(capsys):
    with warnings.catch_warnings(action="always"):
        Page("x", "wang_table1", source="local")
        warnings.warn("1 of 6 classes is rare", stacklevel=1)
    assert capsys.readouterr().err == "warning: 1 of 6 classes is rare\n"


def test_verdicts_of_both_kinds_are_shown_and_count_for_the_book_alone(live, verdicts, monkeypatch):
    page = Page("name", "wang_table1")
    shown = page.close(live, judged, pd.concat([live, live]))
    assert "of 1 rows" in shown.markdown and "of 2 rows" in shown.markdown
    monkeypatch.delenv("REPRO_BOOK")
    alone = Page("other", "wang_table1").close(live, judged, live.iloc[:0])
    assert "live" in alone.markdown and "recorded" not in alone.markdown
    assert read_verdicts()[["kind", "page"]].to_numpy().tolist() == [
        ["recorded", "name"],
        ["live", "name"],
    ]


def test_recorded_rows_may_have_a_judge_of_their_own_and_are_spoken_for_by_the_experiments(
    live, verdicts, monkeypatch
):
    folds = live.assign(experiment="wang_table1_folds", backbone="all-MiniLM-L6-v2")
    kept = []

    def of_recorded(judge, rows, speaking):
        kept.append((judge, len(rows), speaking["experiment"].tolist()))
        return recorded_frame(judge, rows, speaking)

    monkeypatch.setattr(pages, "recorded_frame", of_recorded)
    page = Page("name", "wang_table1")
    page.close(live, lambda rows: [], pd.concat([live, folds]), judged_past=judged)
    page.close(live, judged, pd.concat([live, folds]))
    assert kept == [(judged, 2, ["wang_table1"])] * 2


def test_that_nothing_can_be_recorded_is_told_before_anything_is_trained(monkeypatch, tmp_path):
    monkeypatch.setattr("repro.results.results_folder", lambda: tmp_path / "results")
    (tmp_path / "results").touch()
    assert Page("name", "wang_table1").record is False
    with pytest.raises(InputError, match=r"nothing can be added to .*results \(.*\): record in a"):
        Page("name", "wang_table1", record=True)
    (tmp_path / "results").unlink()
    Page("name", "wang_table1", record=True)
    (tmp_path / "results" / "rows.parquet").touch()
    with pytest.raises(InputError, match="SHA256SUMS"):
        Page("name", "wang_table1", record=True)


def test_rows_are_recorded_only_where_that_was_asked_for(live, monkeypatch):
    written = []
    monkeypatch.setattr(pages, "record", lambda rows: written.append(rows) or ["a<b>/x.parquet"])
    assert Page("name", "wang_table1").close(live).markdown == "" and not written
    shown = Page("name", "wang_table1", record=True).close(live)
    assert "a<b>/x.parquet" in shown.markdown and "a&lt;b&gt;/x.parquet" in shown.html
    assert len(written) == 1 and written[0]["command"].tolist() == ["repro run name"]


def test_a_row_says_the_command_that_makes_it_again(tmp_path, monkeypatch):
    main = ModuleType("__main__")
    exec(
        "backbone: str | None = None\ndims: list[int] = [8, 4]\nrecord: bool = True\nfolders: list "
        "= []",
        vars(main),
    )
    # The second: a system on it
    name, main.folders = tmp_path.name, [str(tmp_path), f"{tmp_path}-flow"]
    monkeypatch.setitem(sys.modules, "__main__", main)
    page = Page("name", "wang_table1")
    main.dims.append(2)  # What the page's code does to a parameter later
    said = shlex.split(pages.command("name", page.parameters))
    assert said == [
        "repro",
        "run",
        "name",
        "-p",
        "dims",
        "[8, 4]",
        "-p",
        "folders",
        f'["{name}", "{name}-flow"]',
    ]
    rows = make_rows(
        [{"value": 0.5, "command": "repro run name -p dims '[8]'"}],
        experiment="x",
        data_source="local",
    )
    shown = page.badges(rows, rows).html
    assert "-p dims" in shown and "no network: <code>repro run name</code>.</p>" in shown


def test_an_empty_list_is_none_of_what_a_page_can_do_without_and_refused_of_all_else():
    values = {"dims": [8], "switch_dims": []}
    assert (
        Page("x", "wang_table1", may_be_empty=["switch_dims"], parameters=values).parameters
        == values
    )
    with pytest.raises(InputError, match=r"switch_dims is \[\]: expected one value or more"):
        Page("x", "wang_table1", may_be_empty=["also"], parameters=values)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("rows", -3, "rows is -3: expected 0 or more"),
        ("rounds", 0, "rounds is 0: expected 1 or more"),
        ("labelled", 0, "labelled is 0: expected 1 or more"),
        ("encode_dims", [8, -1], "encode_dims holds -1: expected numbers above 0"),
        ("searched", [0], "searched holds 0: expected numbers above 0"),
        ("temperatures", [0.5, 0.0], "temperatures holds 0.0: expected numbers above 0"),
        ("shares", [float("nan")], "shares holds nan: expected numbers above 0"),
        ("targets", [1.0, 2.0], "targets holds 2.0: expected shares up to 1"),
    ],
)
def test_a_number_of_which_nothing_is_made_is_refused_by_the_name_that_the_reader_gave(
    name, value, said
):
    with pytest.raises(InputError, match=said):
        Page("x", "wang_table1", parameters={"dim": 8, name: value})


def test_a_number_of_which_something_is_made_is_taken():
    values = {"rows": 0, "seed": -1, "seeds": [0, -1], "starts": [0], "warmup": 0, "margin": -1}
    values |= {"dim": 1, "folds": 0, "two_step": False, "dims": [0.5, 8], "methods": ["pca"]}
    assert Page("x", "wang_table1", parameters=values).parameters == values


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("rows", 2, "rows is 2: expected 0, or 3 or more"),
        ("rows", -1, "rows is -1: expected 0, or 3 or more"),
        ("points", 1, "points is 1: expected 2 or more"),
        ("batches", [64, 1], "batches holds 1: expected 2 or more"),
        ("draws", 0, "draws is 0: expected 1 or more"),
    ],
)
def test_a_page_says_of_what_it_needs_more_than_one(name, value, said):
    least = {"rows": 3, "points": 2, "batches": 2}
    with pytest.raises(InputError, match=f"{said}$"):
        Page("x", "wang_table1", least=least, parameters={name: value})
    enough = {"rows": 0, "points": 2, "batches": [2, 64], "draws": 1}
    assert Page("x", "wang_table1", least=least, parameters=enough).parameters == enough


@pytest.fixture
def opened(monkeypatch):
    """Run the first cells of a page with values of a reader's own, up to where it is a `Page`."""

    def run(name, **given):
        main = ModuleType("__main__")
        monkeypatch.setitem(sys.modules, "__main__", main)
        for cell in notebook.read(project_root() / "notebooks" / f"{name}.md").cells:
            if cell.cell_type == "code":
                exec(compile(cell.source, name, "exec"), vars(main))
                vars(main).update(given if notebook.declares(cell) else {})
                if "page = Page(" in cell.source:
                    return vars(main)

    return run


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("ese_figure6_efficiency", {"vectors": 9}, "vectors is 9: expected 10 or more"),
        ("proposal_alignment_uniformity", {"points": 1}, "points is 1: expected 2 or more"),
        ("proposal_alignment_uniformity", {"batch": 1}, "batch is 1: expected 2 or more"),
        ("proposal_alignment_uniformity", {"batches": [1]}, "batches holds 1: expected 2 or more"),
        ("proposal_alignment_uniformity", {"temperatures": [1e-6]}, "temperatures holds 1e-06, at"),
        ("as_a_library", {"sentences": 31}, "sentences is 31: expected 32 or more"),
        ("backbone_recipe", {"sentences": 127}, "sentences is 127: expected 128 or more"),
        ("proposal_johnson_lindenstrauss", {"rows": 2}, "rows is 2: expected 0, or 3 or more"),
        ("proposal_johnson_lindenstrauss", {"targets": [1.0]}, "targets holds 1: expected dist"),
        ("zhang_figure2_sts", {"rows": 2}, "rows is 2: expected 0, or 3 or more"),
    ],
)
def test_a_page_refuses_too_little_before_its_work(name, given, said, opened):
    with pytest.raises(InputError, match=said):
        opened(name, **given)


def test_meanings_that_are_too_few_to_be_neighbours_are_told_by_what_draws_them(opened):
    here = opened("beyond_microworld", pairs=3, values=2)
    cells = notebook.read(project_root() / "notebooks" / "beyond_microworld.md").cells
    (code,) = (cell.source for cell in cells if "def estimated(" in cell.source)
    (function,) = (
        line for line in ast.parse(code).body if getattr(line, "name", "") == "estimated"
    )
    exec(ast.unparse(function), here)
    X = np.random.default_rng(0).standard_normal((20, 8))
    with pytest.raises(InputError, match="pairs is 3 and values is 2: 10 different meanings"):
        here["estimated"](X[:5], X[5:10])
    assert len(here["estimated"](X[:10], X[10:])) == 4


def test_the_pages_say_by_which_parameters_zero_says_something_and_which_are_no_whole_numbers():
    zeros, wholes, reals = {"seed"}, set(), set()
    for source in (project_root() / "notebooks").glob("*.md"):
        (cell,) = filter(notebook.declares, notebook.read(source).cells)
        for declared in cell.source.splitlines():
            if found := re.match(r"(\w+): ([^=]*) = .*?  # (.*)", declared):
                name, kind, comment = found.groups()
                if "list" not in kind and "int" in kind:
                    wholes.add(name)
                if "list" not in kind and "float" in kind:
                    reals.add(name)
                if re.search(r"\b0(:| (keeps|takes))", comment):
                    zeros.add(name)
    assert reals == set(REAL)
    assert zeros - {"seed"} <= set(ZERO_SAYS) <= wholes
    assert set(ZERO_SAYS) - zeros == {"examples", "steps"}  # Of which 0 is none


@pytest.mark.parametrize("values", [["pca", "svd", "pca"], [8, 8], [0.5, 0.5]])
def test_a_value_that_a_list_holds_twice_is_refused_but_of_a_readers_own_texts(values):
    with pytest.raises(InputError, match=r"methods has .* twice: expected each value once"):
        Page("x", "wang_table1", parameters={"methods": values})
    assert Page("x", "wang_table1", parameters={"texts": values}).parameters == {"texts": values}


@pytest.mark.parametrize(
    "page", sorted((project_root() / "notebooks").glob("*.md")), ids=lambda page: page.stem
)
def test_a_page_says_of_the_lists_that_it_can_do_without_that_they_may_be_empty(page):
    said = {
        name
        for name, parameter in parameters_of(page).items()
        if "[] for none" in parameter.comment
    }
    code = "\n".join(cell.source for cell in notebook.read(page).cells if cell.cell_type == "code")
    taken = re.findall(r"may_be_empty=(\[.*?\])", code)
    assert said == {name for names in taken for name in ast.literal_eval(names)}
