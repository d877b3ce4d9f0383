"""What a build executes again, one cause at a time; and that it replaces and removes nothing but
what it wrote.
"""

import json
import os
import platform
import re
import tomllib
from pathlib import Path

import papermill
import pytest

from repro.book import builder, site
from repro.book.ledger import Ledger
from repro.manifests import sha256
from repro.types import InputError

PAGES = {"sized", "plain", "scorecard"}
SIZED_LAST = r"(?s)(- file: notebooks/sized\n)(.*?)(- file: book)", r"\2\1\3"
NEW_PAGE = "# Another\n\n```{code-cell} ipython3\n4\n```\n"


def replaced(name, text="another"):
    return lambda toy, monkeypatch: toy.write(name, text)


def appended(name, text):
    return lambda toy, monkeypatch: toy.write(name, (toy.root / name).read_text() + text)


def removed(name):
    return lambda toy, monkeypatch: (toy.root / name).unlink()


def touched(name):
    """The same bytes, written at another time."""
    return lambda toy, monkeypatch: os.utime(toy.root / name, ns=(1, 1))


def set_to(variable, folder):
    return lambda toy, monkeypatch: monkeypatch.setenv(
        variable,
        str(toy.write(f"{folder}/file", "").parent),
    )


def unset(variable):
    return lambda toy, monkeypatch: monkeypatch.delenv(variable)


def newer(library):
    def change(toy, monkeypatch):
        before = site.installed
        monkeypatch.setattr(
            site, "installed", lambda name: "99" if name == library else before(name)
        )

    return change


def other_python(toy, monkeypatch):
    monkeypatch.setattr(platform, "python_version", lambda: "4.0")


CODE = "the code it imports changed"
CAUSES = {
    "code that a page imports": (replaced("src/rivals/code.py"), {"sized"}, CODE),
    "code that it imports by way of other": (replaced("src/repro/code.py"), {"sized"}, CODE),
    "code that it imports in a function": (replaced("src/microworld/code.py"), {"sized"}, CODE),
    "code of such a page gone": (removed("src/repro/code.py"), {"sized"}, CODE),
    "code that no page imports": (replaced("src/dimadvise/code.py"), set(), ""),
    "a comment on code": (appended("src/rivals/code.py", "# Why.\n"), set(), ""),
    "a new module": (replaced("src/repro/deep/new.py"), set(), ""),
    "code that executes pages": (replaced("src/repro/book/kernel.py"), PAGES, CODE),
    "an asset": (replaced("src/repro/papers/a.toml"), PAGES, "a file beside the code"),
    "an asset of another package": (replaced("src/rivals/systems.tsv"), {"sized"}, "a file beside"),
    "recorded rows": (replaced("results/rows.parquet"), PAGES, "results/ changed"),
    "new recorded rows": (replaced("results/more.parquet"), PAGES, "results/ changed"),
    "recorded rows gone": (removed("results/rows.parquet"), PAGES, "results/ changed"),
    "data": (replaced("data/sts/stsb.tsv", "others"), PAGES, "the data source changed"),
    "data of the same size": (touched("data/sts/stsb.tsv"), PAGES, "the data source changed"),
    "new data": (replaced("data/sts/sickr.tsv"), PAGES, "the data source changed"),
    "data gone": (removed("data/sts/stsb.tsv"), PAGES, "the data source changed"),
    "no data": (unset("REPRO_DATA"), PAGES, "the data source changed"),
    "data elsewhere": (set_to("REPRO_DATA", "elsewhere"), PAGES, "the data source changed"),
    "copies of the hub": (set_to("REPRO_HUB", "hub"), PAGES, "the data source changed"),
    "a library": (newer("numpy"), PAGES, "a library version changed"),
    "Python": (other_python, PAGES, "a library version changed"),
    "a page's text": (
        replaced("notebooks/plain.md", "# P\n\n```{code-cell} ipython3\n4\n```\n"),
        {"plain"},
        "its text",
    ),
    "a verdict gone": (removed("_build/verdicts/sized.parquet"), {"sized"}, "its verdicts changed"),
    "a verdict damaged": (
        replaced("_build/verdicts/sized.parquet"),
        {"sized"},
        "its verdicts changed",
    ),
    "an executed page gone": (
        removed("_build/book/notebooks/plain.ipynb"),
        {"plain"},
        "first build",
    ),
    "an executed page damaged": (
        replaced("_build/book/notebooks/plain.ipynb"),
        {"plain"},
        "executed copy changed",
    ),
    "a cache of Python's": (replaced("src/repro/__pycache__/code.pyc"), set(), ""),
    "another notebook": (replaced("notebooks/mine.ipynb"), set(), ""),
    "prose": (replaced("book/index.md"), set(), ""),
    "nothing": (lambda toy, monkeypatch: None, set(), ""),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_a_change_executes_what_hangs_on_it_and_says_so(cause, toy, monkeypatch, capsys):
    change, expected, reason = CAUSES[cause]
    assert toy.build().ok and set(toy.executed) == PAGES
    change(toy, monkeypatch)
    capsys.readouterr()
    assert toy.build().ok and set(toy.executed) == expected and len(toy.executed) == len(expected)
    said = re.findall(r"executing because: (.*)", capsys.readouterr().out)
    assert len(said) == len(expected) and all(reason in line for line in said)
    toy.build()
    assert not toy.executed, "what was executed for a cause is not executed for it again"


def test_another_profile_executes_the_pages_that_have_one(toy, capsys):
    toy.build()
    capsys.readouterr()
    toy.build(profile="gpu")
    assert (
        toy.executed == ["sized"]
        and "sized: executing because: the profile changed" in capsys.readouterr().out
    )
    toy.build(profile="gpu")
    assert not toy.executed


def test_another_verdict_of_a_page_executes_the_scorecard_after_it(toy, capsys):
    toy.build()
    toy.verdicts["sized"] = "refuted"
    toy.write("notebooks/sized.md", (toy.root / "notebooks/sized.md").read_text() + "\nMore.\n")
    toy.build()
    assert toy.executed == ["sized", "scorecard"]
    toc = (toy.root / "_toc.yml").read_text()
    toy.write("_toc.yml", toc.replace("- file: notebooks/sized\n", ""))
    toy.build()
    assert toy.executed == ["scorecard"], "a page that is gone speaks no more"


BROKEN = {
    "a bracket": b"root: [a",
    "a tab": b"root: book/index\nchapters:\n\t- file: a\n",
    "a tag": b"root: !!python/object/apply:os.getcwd []\n",
    "no UTF-8": b"root: \xff\xfe\xfd\n",
    "itself": b"root: book/index\nchapters: &a [*a]\n",
    "a list": b"- root: book/index\n",
    "a text": b"book/index\n",
    "a date": b"root: 2024-13-45\n",
}
NO_CONTENTS = {
    "nothing": b"",
    "no root": b"format: jb-book\n",
    "a misspelt name": b"format: jb-book\nroot: book/index\nchapter:\n- file: book/scorecard\n",
    "no list": b"format: jb-book\nroot: book/index\nchapters: book/scorecard\n",
}


@pytest.mark.parametrize("name", ["_toc.yml", "_config.yml"])
def test_a_broken_file_of_the_book_is_told_in_a_sentence_and_removes_no_page(toy, name):
    toy.build()
    before = toy.files("_build/book")
    assert "notebooks/sized.ipynb" in before
    for content in [*BROKEN.values(), *(NO_CONTENTS.values() if name == "_toc.yml" else ())]:
        (toy.root / name).write_bytes(content)
        with pytest.raises(InputError, match=rf"{name}\b.*expected .*restore it with git"):
            toy.build()
        assert toy.files("_build/book") == before


def test_a_page_whose_parameters_are_no_python_stops_no_other(toy):
    toy.write(
        "notebooks/sized.md",
        (toy.root / "notebooks/sized.md").read_text().replace("profile: str =", "profile: ="),
    )
    book = toy.build()
    assert [page.name for page in book.failures] == [
        "notebooks/sized"
    ] and "not valid Python" in book.failures[0].error
    assert set(toy.executed) == PAGES - {"sized"}


def test_data_behind_a_link_are_seen_and_a_link_that_leads_back_is_left(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "data" / "sts").symlink_to(tmp_path / "other")
    (tmp_path / "data" / "back").symlink_to(tmp_path / "data")
    before = site.stamps(tmp_path / "data")
    (tmp_path / "other" / "stsb.tsv").write_text("pairs")
    assert site.stamps(tmp_path / "data") != before


def test_every_library_that_computes_is_watched(toy, monkeypatch):
    before, installed = site.surroundings(toy.root), site.installed
    for library in site.WATCHED:
        versions = {library: "99"}
        monkeypatch.setattr(
            site, "installed", lambda name, v=versions: v.get(name) or installed(name)
        )
        assert site.differences(before, site.surroundings(toy.root)) == [
            "a library version changed"
        ]
    project = tomllib.loads(
        (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    )["project"]
    extras = project["optional-dependencies"]
    wanted = [
        *project["dependencies"],
        *(each for name in ("train", "eval", "classic", "translate") for each in extras[name]),
    ]
    named = {re.split(r"[><=\[]", each)[0] for each in wanted}
    # The last is an oracle
    carry = {"pyarrow", "safetensors", "tqdm", "tyro", "filelock", "psutil", "ir-measures"}
    assert named - carry <= set(site.WATCHED)


# What a build writes, replaces and removes


def test_what_stands_where_a_build_writes_and_is_not_ours_is_moved_aside_whole(toy, capsys):
    theirs = {
        "html/index.html": "my index",
        "book/notebooks/plain.ipynb": "{}",
        "book/notebooks/draft.md": "my draft",
        "verdicts/sized.parquet": "mine",
        "render.log": "my log",
        "rendering/thesis.tex": "my thesis",
    }
    for name, text in theirs.items():
        toy.write(f"_build/{name}", text)
    assert toy.build().ok and set(toy.executed) == PAGES
    aside = {str(name): content.decode() for name, content in toy.files("_build/aside").items()}
    assert aside == theirs and "not as a build left it, hence moved to" in capsys.readouterr().err
    assert "Words." in (toy.root / "_build/html/index.html").read_text()
    toy.build()
    assert not toy.executed and toy.files("_build/aside").keys() == theirs.keys()


def test_a_fresh_rendering_moves_what_lies_in_sphinxs_folder_aside(toy, capsys):
    toy.build()
    theirs = {"rendering/own/a.txt": "mine", "rendering/thesis.md": "mine"}
    for name, text in theirs.items():
        toy.write(f"_build/{name}", text)
    toc = (toy.root / "_toc.yml").read_text()
    toy.write("_toc.yml", toc.replace("- file: notebooks/sized\n", ""))
    assert toy.build().ok
    aside = {str(name): content.decode() for name, content in toy.files("_build/aside").items()}
    assert aside == theirs and "not as a build left it" in capsys.readouterr().err


def test_the_same_folder_as_another_source_of_data_is_another_cause(toy, monkeypatch, tmp_path):
    before = site.surroundings(toy.root)
    monkeypatch.setenv("REPRO_HUB", os.environ["REPRO_DATA"])
    monkeypatch.delenv("REPRO_DATA")
    now = site.surroundings(toy.root)
    assert site.differences(before, now) == ["the data source changed"]


def test_files_beside_those_of_a_build_stay_as_they_are(toy):
    theirs = {
        "html/CNAME": "my.site",
        "html/_static/mine.css": "p {}",
        "notes.txt": "mine",
        "verdicts/notes.txt": "mine",
    }
    for name, text in theirs.items():
        toy.write(f"_build/{name}", text)
    toy.build()
    toy.build(force=True)
    assert {name: toy.files()[name].decode() for name in theirs} == theirs
    assert not (toy.root / "_build" / "aside").exists()


@pytest.mark.parametrize(
    "name",
    ["book/notebooks/plain.ipynb", "book/book/index.md", "html/notebooks/plain.html"],
)
def test_what_was_edited_since_a_build_gives_way_to_the_next_one(name, toy):
    toy.build()
    before = toy.files()[name]
    toy.write(f"_build/{name}", "edited")
    assert toy.build().ok
    assert toy.files()[name] == before and toy.files("_build/aside") == {name: b"edited"}


def test_what_is_no_page_any_more_is_removed_where_it_was_ours(toy):
    toy.build()
    toy.write("_build/book/notebooks/sized.md", "mine")
    toc = (toy.root / "_toc.yml").read_text()
    toy.write("_toc.yml", toc.replace("- file: notebooks/sized\n", ""))
    toy.build()
    assert [name for name in toy.files() if "sized" in name] == ["aside/book/notebooks/sized.md"]


class Killed(BaseException):
    """In place of a signal."""


@pytest.mark.parametrize("step", [1, 4, 8, 12, 16, 18])
def test_a_build_that_was_stopped_at_any_step_is_made_good_by_the_next(step, toy, monkeypatch):
    monkeypatch.setattr(builder, "cpu_count", lambda: 1)

    def write(number):
        toy.write("results/rows.parquet", f"{number}")
        toy.write("book/index.md", f"# Toy\n\n{number} words.\n")

    def built():
        return {name: toy.files(f"_build/{name}") for name in ("book", "html", "verdicts")}

    write(2)
    toy.build()
    expected = built()
    write(1)
    toy.build()
    write(2)
    steps, replace = iter(range(step)), os.replace

    def until_killed(*names):
        if next(steps, None) is None:
            raise Killed
        replace(*names)

    with monkeypatch.context() as killing, pytest.raises(Killed):
        killing.setattr(os, "replace", until_killed)
        toy.build()
    assert toy.build().ok
    assert built() == expected and not (toy.root / "_build" / "aside").exists()
    toy.build()
    assert not toy.executed


def test_a_rendering_that_was_stopped_is_begun_afresh(toy, monkeypatch):
    toy.build()
    toy.write("book/index.md", "# Toy\n\nOther words.\n")

    def stopped(command, **options):
        toy.write("_build/rendering/_build/html/half.html", "half a pa")
        toy.write("_build/rendering/_build/half.log", "")
        raise Killed

    with monkeypatch.context() as stopping, pytest.raises(Killed):
        stopping.setattr(site.subprocess, "run", stopped)
        toy.build()
    toy.build()
    assert not any("half" in name for name in toy.files())
    assert b"Other words." in toy.files()["html/index.html"]


@pytest.mark.parametrize("name", ["_config.yml", "book/_static/look.css", "book/_ext/deck.py"])
def test_what_all_pages_look_like_is_rendered_though_no_page_has_changed(toy, monkeypatch, name):
    before = "title: Toy\n" if name == "_config.yml" else "# Before\n"
    toy.write(name, before)
    toy.build()
    renders = []
    render = site.render

    def noted(tree, ledger, *, fresh):
        renders.append(fresh)
        return render(tree, ledger, fresh=fresh)

    monkeypatch.setattr(site, "render", noted)
    toy.write(name, before.replace("Toy", "Other").replace("Before", "After"))
    with monkeypatch.context() as stopping, pytest.raises(Killed):
        # Between the change and the rendering
        stopping.setattr(site, "prune", stopped)
        toy.build()
    toy.build()
    assert renders == [True] and not toy.executed
    toy.build()
    assert renders == [True]


def test_a_rendering_is_told_which_pages_are_not_up_to_date(toy, monkeypatch):
    told, render = [], site.render

    def noted(tree, ledger, *, fresh):
        told.append(os.environ[builder.SKIPPED].splitlines())
        return render(tree, ledger, fresh=fresh)

    monkeypatch.setattr(site, "render", noted)
    toy.build(only=["plain"])
    toy.build()
    assert told == [["notebooks/sized", "book/scorecard"], []]
    assert builder.SKIPPED not in os.environ


def stopped(*arguments, **options):
    raise Killed


def test_a_page_that_somebody_deleted_from_the_rendered_book_comes_back(toy):
    toy.build()
    before = toy.files("_build/html")
    (toy.root / "_build/html/notebooks/plain.html").unlink()
    toy.build()
    assert toy.files("_build/html") == before and not toy.executed


def test_a_ledger_that_names_files_elsewhere_is_not_believed(toy, tmp_path):
    outside = tmp_path / "thesis.tex"
    outside.write_text("mine")
    digest = sha256(outside)
    noted = {"pages": {}, "rendered": "", "files": {"html/../../../thesis.tex": [digest]}}
    ledger = Ledger(toy.write("_build/book.json", json.dumps(noted)).parent)
    assert not ledger.readable and not ledger.files
    toy.build()
    assert outside.read_text() == "mine"


def test_code_that_is_edited_while_pages_are_executed_executes_those_that_ran_the_old(
    toy, monkeypatch
):
    """Kernels are forked from a process that has imported all code by then."""
    monkeypatch.setattr(builder, "cpu_count", lambda: 1)
    execute = papermill.execute_notebook

    def edited_meanwhile(node, output, **options):
        if not toy.executed:
            toy.write("src/repro/code.py", "x = 2\n")
        return execute(node, output, **options)

    monkeypatch.setattr(papermill, "execute_notebook", edited_meanwhile)
    toy.write("_toc.yml", re.sub(*SIZED_LAST, (toy.root / "_toc.yml").read_text()))
    toy.build()
    assert toy.executed == ["plain", "sized", "scorecard"]
    toy.build()
    assert toy.executed == ["sized"]
