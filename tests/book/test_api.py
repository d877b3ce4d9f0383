import ast
import importlib

import pytest

from repro.paths import project_root

PAGES = sorted((project_root() / "book" / "api").glob("*.md"))
SOURCE = '''\
import os
from toy.inner import kept
from other import foreign

SIZES: dict[str, int] = {}
"""How many."""


@frozen
class Made(
    Base,
):
    """What is made."""

    dim: int = 3  # numbers
    """Of a vector."""

    def work(self, n: int) -> int:
        """Work on n."""
        return n
'''


@pytest.fixture
def api(monkeypatch):
    monkeypatch.syspath_prepend(project_root() / "book" / "_ext")
    return importlib.import_module("api")


def test_a_package_hands_on_what_it_defines_and_imports_from_its_own_modules(api):
    names = [name for node in ast.parse(SOURCE).body for name in api.names_of(node, "toy")]
    assert names == ["kept", "SIZES", "Made"]


def test_a_signature_stands_as_it_is_written_with_fields_and_without_bodies(api):
    tree, lines = ast.parse(SOURCE), SOURCE.splitlines()
    shown = {type(node): api.code_of(node, lines).astext() for node in tree.body}
    assert shown[ast.AnnAssign] == "SIZES: dict[str, int] = {}"
    made = "@frozen\nclass Made(\n    Base,\n):\n"
    assert shown[ast.ClassDef] == made + '    dim: int = 3  # numbers\n    """Of a vector."""'
    method = tree.body[-1].body[-1]
    assert api.code_of(method, lines).astext() == "def work(self, n: int) -> int"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_of_the_reference_names_what_is_there(page, api):
    class Reading(api.Api):
        def __init__(self):
            pass

        def read(self, module):
            path = project_root() / "src" / module.replace(".", "/")
            path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            text = path.read_text(encoding="utf-8")
            return ast.parse(text), text.splitlines()

    text = page.read_text(encoding="utf-8")
    for line in text.partition("```{api} ")[2].partition("```")[0].splitlines()[1:]:
        module, _, names = line.partition(":")
        for name in names.split():
            assert name in api.names_of(Reading().found(module, name)[0], "repro")
