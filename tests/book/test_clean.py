"""`repro notebooks`, `run` and `clean` overwrite and remove what they can prove to be theirs, and
nothing else.
"""

import json
import os
import re
import shutil

import pytest

from repro.book import clean, notebook
from repro.paths import project_root

THEIRS = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def test_notebooks_that_were_edited_or_are_somebodys_own_are_named_and_kept_and_the_others_written(
    toy,
    repro,
):
    repro("notebooks")
    edited = toy.edit("notebooks/sized.ipynb")
    toy.write("notebooks/third.md", (toy.root / "notebooks/plain.md").read_text())
    toy.write("notebooks/third.ipynb", json.dumps(THEIRS))
    toy.write(
        "notebooks/plain.md",
        (toy.root / "notebooks/plain.md").read_text() + "\nMore words.\n",
    )
    said = repro("notebooks", ends=2)
    assert (
        all(f"notebooks/{name}.ipynb" in said.err for name in ("sized", "third"))
        and "plain" not in said.err
    )
    assert "move them to names of their own" in said.err and "plain.ipynb" in said.out
    assert (toy.root / "notebooks/sized.ipynb").read_bytes() == edited
    assert json.loads((toy.root / "notebooks/third.ipynb").read_text()) == THEIRS
    assert "More words." in (toy.root / "notebooks/plain.ipynb").read_text()


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["cells"][-1].update(source="2"),
        lambda content: content["cells"][-1].update(execution_count=1),
        lambda content: content["cells"].pop(),
        lambda content: content["metadata"].update(title="mine"),
        lambda content: content["metadata"].pop(notebook.MARK),
        lambda content: content["metadata"].update({notebook.MARK: "0" * 16}),
    ],
)
def test_any_change_makes_a_notebook_its_owners(change, toy):
    path = notebook.to_ipynb(toy.root / "notebooks/plain.md", toy.root / "notebooks")
    content = json.loads(path.read_text())
    assert notebook.ours(path) and not notebook.not_ours(path)
    path.write_text(json.dumps(content))  # Laid out otherwise, as another program saves it
    assert notebook.ours(path)
    change(content)
    path.write_text(json.dumps(content))
    assert notebook.not_ours(path)


def test_a_copy_at_another_place_is_its_owners_and_a_checkout_may_be_moved(toy, tmp_path):
    path = notebook.to_ipynb(toy.root / "notebooks/plain.md", toy.root / "runs" / "a")
    shutil.copytree(toy.root / "runs" / "a", toy.root / "runs" / "kept")
    assert notebook.ours(path) and not notebook.ours(toy.root / "runs" / "kept" / path.name)
    link = toy.root / "notebooks" / "plain.ipynb"
    link.symlink_to(path)
    assert notebook.not_ours(link)
    toy.root.rename(tmp_path / "moved")
    assert notebook.ours(tmp_path / "moved" / "runs" / "a" / path.name)


@pytest.mark.parametrize(
    "content",
    ["", "{", "[" * 100_000, "[]", '{"metadata": 1}', '{"metadata": {"repro": {}}}'],
)
def test_what_is_no_notebook_is_not_ours(content, toy):
    assert notebook.not_ours(toy.write("notebooks/plain.ipynb", content))


@pytest.mark.parametrize("output", ["notebooks/plain.md", "README.md", "mine.ipynb"])
def test_a_run_refuses_an_output_that_no_run_left(output, toy, repro):
    toy.write("README.md", "words")
    toy.write("mine.ipynb", json.dumps(THEIRS))
    before = (toy.root / output).read_bytes()
    said = repro("run plain --output", output, ends=2)
    assert (toy.root / output).read_bytes() == before and not toy.executed
    assert output in said.err and ("another file" in said.err or "move or delete it" in said.err)


def test_a_run_writes_over_its_own_output_but_not_over_an_edited_one(toy, repro):
    for _ in range(2):
        repro("run plain")
    assert toy.executed == ["plain-default"] * 2
    path = toy.root / "runs" / "plain-default.ipynb"
    edited = toy.edit("runs/plain-default.ipynb")
    repro("run plain", ends=2)
    assert path.read_bytes() == edited and len(toy.executed) == 2


def test_clean_leaves_nothing_of_what_was_built_and_everything_else(toy, repro):
    before = toy.files("")
    toy.build()
    repro("notebooks")
    repro("run plain")
    repro("clean")
    assert toy.files("") == before
    assert not repro("clean").out, "where nothing is left there is nothing to say"


def test_clean_leaves_what_was_changed_or_was_never_ours_and_says_so(toy, repro):
    toy.build()
    repro("notebooks")
    repro("run plain")
    repro("run sized")
    theirs = {
        "_build/html/CNAME": "my.site",
        "_build/html/notebooks/plain.html": "edited",
        "_build/book/book/index.md": "edited",
        "_build/aside/html/old.html": "mine",
        "runs/advice/report.html": "advice",
        "runs/mine.ipynb": json.dumps(THEIRS),
        "notebooks/mine.ipynb": json.dumps(THEIRS),
        ".ruff_cache/CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n",
        ".ruff_cache/thesis.txt": "mine",
        "_build/rendering/thesis.md": "mine",
    }
    for name, text in theirs.items():
        toy.write(name, text)
    shutil.copy(toy.root / "runs/plain-default.ipynb", toy.root / "runs/best.ipynb")
    kept = {name: text.encode() for name, text in theirs.items()}
    kept["runs/best.ipynb"] = (toy.root / "runs/best.ipynb").read_bytes()
    edited = (
        "runs/sized-default.ipynb",
        "notebooks/sized.ipynb",
        "_build/book/notebooks/sized.ipynb",
    )
    for name in edited:
        kept[name] = toy.edit(name)
    said = repro("clean").out
    found = toy.files("")
    assert {name: found.get(name) for name in kept} == kept
    for place in ("_build", "runs"):
        assert {name for name in found if name.startswith(place)} == {
            name for name in kept if name.startswith(place)
        }
    assert not (toy.root / "notebooks/plain.ipynb").exists()
    places = (
        "_build/html (2 files)",
        "_build/book (2 files)",
        "_build/aside",
        "_build/rendering",
        "runs/advice",
        "runs/mine.ipynb",
    )
    assert all(
        f"changed since: {place}\n" in said for place in (*places, "runs/best.ipynb", *edited[:2])
    )


@pytest.mark.parametrize("ending", [".partial.ipynb", ".partial"])
def test_clean_removes_what_killed_runs_had_half_written_and_no_other(
    ending, toy, repro, half_written
):
    place, dead = toy.root / "runs/toy/n.ipynb", 2**22 + 1  # No process has such a number
    kept = [
        half_written(place, os.getpid(), ending),
        half_written(place, dead, ending, "0" * 8),
        toy.root / f"runs/toy/n.ipynb.1.{'0' * 16}{ending}",
    ]
    kept[-1].write_text("mine")
    left = half_written(place, dead, ending)
    assert "runs/toy (3 files)" in repro("clean").out
    assert not left.exists() and all(path.exists() for path in kept)


def test_a_build_on_another_disk_by_a_link_is_ours_too(toy, repro, tmp_path):
    (tmp_path / "disk").mkdir()
    (toy.root / "_build").symlink_to(tmp_path / "disk")
    toy.build()
    toy.build()
    assert not toy.executed
    assert "stays" not in repro("clean").out
    assert not list((tmp_path / "disk").iterdir()) and (toy.root / "_build").is_dir()


@pytest.mark.parametrize("place", ["runs", "notebooks", "_build"])
def test_clean_removes_nothing_of_another_checkout_that_a_link_leads_to(
    place, toy, repro, tmp_path
):
    toy.build()
    repro("notebooks")
    repro("run plain")
    before = toy.files(place)
    linking = tmp_path / "linking"
    linking.mkdir()
    shutil.copytree(toy.root / "notebooks", linking / "notebooks")
    for file in (linking / "notebooks").glob("*.ipynb"):
        file.unlink()
    shutil.copy(toy.root / "_toc.yml", linking)
    if place == "notebooks":
        shutil.rmtree(linking / "notebooks")
    (linking / place).symlink_to(toy.root / place)
    said = "\n".join(map(str, clean.clean(linking)))
    assert toy.files(place) == before
    assert str(linking / place) in said


def test_a_pipe_among_notebooks_is_left_alone_and_named(toy, repro, pipe):
    toy.write("notebooks/piped.md", (toy.root / "notebooks/plain.md").read_text())
    pipes = [toy.root / "runs/x.ipynb", toy.root / "notebooks/piped.ipynb"]
    (toy.root / "runs").mkdir()
    for path in pipes:
        pipe(path)
    assert "notebooks/piped.ipynb" in repro("notebooks", ends=2).err
    said = repro("clean").out
    assert "runs/x.ipynb" in said and "notebooks/piped.ipynb" in said
    assert all(path.is_fifo() for path in pipes)


def test_git_ignores_the_notebooks_that_are_made_and_no_others():
    lines = (project_root() / ".gitignore").read_text(encoding="utf-8").splitlines()
    ignored = {line for line in lines if line.startswith("notebooks/")}
    pages = {path.stem for path in (project_root() / "notebooks").glob("*.md")}
    assert ignored == {f"notebooks/{page}.ipynb" for page in pages}
    assert not any("*" in line and re.search("ipynb$", line) for line in lines)


@pytest.mark.parametrize("verb", ["clean", "book"])
def test_a_folder_where_builds_take_notes_is_named_and_left(verb, toy, repro):
    mine = toy.write("_build/book.json/mine.txt", "mine")
    assert "book.json is a folder" in repro(verb, ends=2).err
    assert mine.read_text() == "mine"
