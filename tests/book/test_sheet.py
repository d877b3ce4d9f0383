"""The exercises to hand out: every one of them, and not a word of an answer."""

import re
import shutil

import jupytext
import nbformat
import pytest
from bs4 import BeautifulSoup

from repro.book import site
from repro.book.ledger import Ledger
from repro.paths import project_root

SOURCE = project_root() / "book" / "exercises.md"
TITLES = re.findall(r"^### (\w+)\. (.+)$", SOURCE.read_text(encoding="utf-8"), re.MULTILINE)
HINT = re.compile(r"```{admonition} Hint\n:class: dropdown\n(\S+ \S+)")
ASKED = re.compile(r'sheet(?:_answers)?\.html#([\w,]+)"')


def told(name):
    """What stands for the answer of an exercise that was not executed."""
    return f"the answer of {name}"


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    """The real page with an answer of ours in each cell that shows one, rendered as the book is."""
    root = tmp_path_factory.mktemp("checkout")
    tree = root / "_build" / "book"
    (tree / "book").mkdir(parents=True)
    shutil.copy(project_root() / "_config.yml", root)
    shutil.copytree(project_root() / "book" / "_ext", root / "book" / "_ext")
    shutil.copytree(project_root() / "book" / "_static", root / "book" / "_static")
    shutil.copy(project_root() / "book" / "references.bib", root / "book")
    (root / "_toc.yml").write_text("format: jb-book\nroot: book/exercises\n")
    notebook = jupytext.read(SOURCE)
    names = iter(name for name, _ in TITLES)
    for cell in notebook.cells:
        if "hide-output" in cell.metadata.get("tags", []):
            data = {"text/markdown": told(next(names))}
            cell.outputs = [nbformat.v4.new_output("display_data", data)]
    nbformat.write(notebook, tree / "book" / "exercises.ipynb")
    assert next(names, None) is None, "an exercise has no answer"
    ledger = Ledger(root / "_build")
    site.prepare(root, tree, ledger)
    site.render(tree, ledger, fresh=True)
    return root / "_build" / "html"


def articles(path):
    """The exercises of a sheet, by name."""
    page = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
    return {article["id"]: article for article in page.select("article")}


def in_words(text):
    """A text on one line, with straight quotes."""
    return " ".join(text.replace("’", "'").split())


def test_the_sheet_has_every_exercise_and_no_answer(html):
    asked, answered = articles(html / "sheet.html"), articles(html / "sheet_answers.html")
    assert list(asked) == list(answered) == [name for name, _ in TITLES]
    whole = (html / "sheet.html").read_text(encoding="utf-8")
    page = BeautifulSoup(whole, "html.parser")
    assert "the answer of" not in whole and "You learn" not in whole
    assert not page.select("pre, details, .cell, .dropdown")
    hints = HINT.findall(SOURCE.read_text(encoding="utf-8"))
    assert len(hints) == len(TITLES)
    for (name, title), hint in zip(TITLES, hints, strict=True):
        heading = asked[name].h3.extract().get_text()
        assert in_words(heading) == in_words(f"{name}. {title}".replace("*", ""))
        assert len(asked[name].get_text().split()) > 15, f"{name} asks nothing"
        assert hint not in asked[name].get_text()
        assert told(name) in answered[name].get_text()
    cells = jupytext.read(SOURCE).cells
    folded = [cell for cell in cells if "hide-input" in cell.metadata.get("tags", [])]
    code = [cell.source.splitlines()[-1] for cell in folded]
    answers = page_text(html / "sheet_answers.html")
    assert len(code) == len(TITLES) and all(line in answers for line in code)


def page_text(path):
    """What a page says."""
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser").get_text()


def test_a_sheet_asks_for_no_other_file_and_leads_only_to_the_other_sheet(html):
    for name, other in (("sheet", "sheet_answers"), ("sheet_answers", "sheet")):
        text = (html / f"{name}.html").read_text(encoding="utf-8")
        assert re.findall(r'(?:src|href)="([^"]*)"', text) == [f"{other}.html"]


def test_each_lesson_hands_out_the_exercises_that_it_names():
    page = (project_root() / "book" / "teach.md").read_text(encoding="utf-8")
    lessons = re.split("^## ", page, flags=re.MULTILINE)
    named = [lesson for lesson in lessons if ASKED.search(lesson)]
    assert len(named) == 3
    for lesson in named:
        handed = {name for names in ASKED.findall(lesson) for name in names.split(",")}
        prose = ASKED.sub("", lesson)
        said = set(re.findall(r"\b[A-Z]\d\b", prose))
        assert handed == said and handed <= {name for name, _ in TITLES}
