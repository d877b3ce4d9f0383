"""The list of mistakes behind `make mutants` fits the package, and its runner says so when it does not."""

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "mutants"


@pytest.fixture(scope="module")
def mutants():
    """The runner, whose folder is its path when it runs."""
    spec = importlib.util.spec_from_file_location("mutants_main", FOLDER / "__main__.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        spec.loader.exec_module(module)
    return module


def test_every_mistake_finds_its_line_and_its_tests(mutants):
    listed = mutants.read_list(mutants.LIST.read_text(encoding="utf-8"))
    mutants.check(listed, mutants.ROOT / "src")
    files = {word.split("::")[0] for m in listed for word in m.tests.split() if word.startswith("tests/")}
    assert [file for file in files if not (mutants.ROOT / file).is_file()] == []
    assert len(listed) >= 200
