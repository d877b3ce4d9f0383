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


def test_a_line_that_has_gone_or_stands_twice_is_named(mutants, tmp_path):
    (tmp_path / "mean.py").write_text("x = total / n\ny = total / n\n")
    part = '["mean.py"]\narea = "losses"\ntests = "t.py"\nmutants = [["n is off", {}]]'
    for line, words in (
        ("'total / (n - 1)', 'total / n'", "0 times: expected once"),
        ("'total / n', 'total'", "2 times: expected once"),
        ("'x = total / n', 'x = total / n'", "nothing changed"),
        ("'x = total / n', 'x = total /'", "no Python after the change"),
    ):
        with pytest.raises(mutants.ListError, match=words):
            mutants.check(mutants.read_list(part.format(line)), tmp_path)
    with pytest.raises(mutants.ListError, match="there is no such file"):
        mutants.check(mutants.read_list(part.format("'a', 'b'").replace("mean.py", "gone.py")), tmp_path)
    good = mutants.read_list(part.format("'x = total / n', 'x = total', 't.py -k mean'"))
    mutants.check(good, tmp_path)
    assert good[0].tests == "t.py -k mean"
