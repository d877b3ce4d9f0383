"""The list of mistakes behind `make mutants` fits the package; each is found by its meaning."""

import ast
import shutil
import subprocess
import sys

import pytest

from mutants import mutations

MUTANTS = mutations.read_list(mutations.LIST.read_text(encoding="utf-8"))
SOURCE = '''"""A module."""

POWER = 0.8  # of a test


@register("mean", kind="first")
def mean(values, *, weights=None, limit=10):
    """The mean of values."""
    if weights is None:
        return sum(values) / len(values)  # a plain one

    total = sum(
        value * weight  # each by its own
        for value, weight in zip(values, weights, strict=True)
    )
    return total / sum(weights), f"{total} of {limit}"


class Fit:
    """A dataclass, of sorts."""

    steps: int = 100
    rate: float = field(default=0.1)

    @property
    def size(self):
        return self.X[:, : self.steps]

    @size.setter
    def size(self, steps):
        def checked():
            return max(steps, 1)

        self.steps = checked()
        self.X = self.X[:steps]
'''


def made(function: str, before: str, after: str, number: int = 0) -> str:
    return mutations.made_in_module(SOURCE, function, before, after, number)


def test_every_mistake_finds_its_code_and_its_tests():
    assert mutations.faults_of(MUTANTS) == []


def test_every_mistake_is_found_however_its_file_is_formatted(tmp_path):
    mutants = [mutant for mutant in MUTANTS if mutant.file.endswith(".py")]
    for mutant in mutants:
        copied = tmp_path / mutant.file
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(mutations.ROOT / "src" / mutant.file, copied)
    style = ["--isolated", "--line-length=60", "--config=format.quote-style='single'"]
    command = [sys.executable, "-m", "ruff", "format", *style, tmp_path]
    subprocess.run(command, check=True, capture_output=True)
    for mutant in mutants:
        assert mutant.made_in((tmp_path / mutant.file).read_text(encoding="utf-8"))


PIECES = {
    "a constant": ("<module>", "POWER = 0.8", "POWER = 0.5", "0.8", "0.5"),
    "an operand": ("mean", "len(values)", "len(values) - 1", "len(values)", "(len(values) - 1)"),
    "a comparison": ("mean", "weights is None", "weights", "weights is None", "(weights)"),
    "an argument": ("mean", "value*weight", "value", "value * weight", "(value)"),
    "a keyword": ("mean", "strict=True", "strict=False", "True", "False"),
    "a default value": ("mean", "10", "1", "=10", "=(1)"),
    "a decorator": ("mean", "kind='first'", 'kind="last"', "first", "last"),
    "a field": ("Fit", "steps: int = 100", "steps: int = 1", "100", "1"),
    "a default of a field": ("Fit", "default=0.1", "default=0.0", "0.1", "0.0"),
    "a slice": ("Fit.size", ":, :self.steps", ":, :1", ": self.steps", ":1"),
    "a statement": ("Fit.size", "return max(steps, 1)", "pass", "return max(steps, 1)", "pass"),
    "in a function": ("Fit.size.checked", "max(steps, 1)", "steps", "max(steps, 1)", "(steps)"),
}


@pytest.mark.parametrize("piece", PIECES)
def test_a_piece_is_replaced_alone_and_every_line_stays(piece):
    function, before, after, text, instead = PIECES[piece]
    assert SOURCE.count(text) == 1
    assert made(function, before, after) == SOURCE.replace(text, instead)


def test_statements_side_by_side_are_one_piece_and_lost_lines_become_empty():
    before = "self.steps = checked(); self.X = self.X[:steps]"
    changed = made("Fit.size", before, "self.X = self.X[:checked()]")
    assert changed.splitlines()[-2:] == ["        self.X = self.X[:checked()]", ""]
    assert len(changed.splitlines()) == len(SOURCE.splitlines())
    longer = made("Fit.size", before, "if steps: self.steps = steps")
    assert longer.splitlines()[-2:] == ["        if steps:", "            self.steps = steps"]


def test_what_a_piece_means_decides_not_how_it_is_written():
    whole = "total = sum((value * weight for value, weight in zip(values, (weights), strict=True)))"
    changed = ast.parse(made("mean", whole, "total = 0"))
    expected = ast.parse(SOURCE)
    expected.body[2].body[2] = ast.parse("total = 0").body[0]
    assert ast.unparse(changed) == ast.unparse(expected)


def test_of_equal_pieces_the_number_says_which():
    assert made("mean", "weights", "ones", 1) == SOURCE.replace("weights is None", "(ones) is None")
    assert made("mean", "weights", "ones", 3) == SOURCE.replace("sum(weights)", "sum((ones))")
    with pytest.raises(mutations.Unfit, match="number 4 of several, but found 3 times in mean"):
        made("mean", "weights", "ones", 4)
    with pytest.raises(mutations.Unfit, match="number 1 of several, but found 1 times"):
        made("mean", "len(values)", "1", 1)


@pytest.mark.parametrize(
    ("function", "before", "after", "fault"),
    [
        ("mean", "weight", "1", "expected once, but found 2 times in mean"),
        ("Fit.size", "self.X", "0", "expected once, but found 3 times in Fit.size"),
        ("mean", "median", "1", "not found in mean: median"),
        ("mean", "max(steps, 1)", "1", "not found in mean, but in Fit.size, Fit.size.checked: max"),
        ("median", "len(values)", "1", "not found in median, but in mean: len"),
        ("Fit", "checked()", "1", "not found in Fit, but in Fit.size: checked"),
        ("<module>", "steps: int = 100", "steps: int = 1", "not found in <module>, but in Fit:"),
        ("mean", "len(values)", "len( values )", "nothing is changed"),
        ("mean", "len(values", "1", "not both can be read"),
        ("mean", "len(values)", "strict=", "not both can be read"),
        ("Fit", "steps", "size", "cannot be cut out of line .* name what encloses it"),
    ],
)
def test_a_piece_that_is_not_there_once_is_refused(function, before, after, fault):
    with pytest.raises(mutations.Unfit, match=fault):
        made(function, before, after)


def test_a_mistake_in_a_script_is_text_of_one_function():
    script = """const limit = 5;
function first(a) { if (a < limit) { return a; } }
function other(a) { return a < limit; }
"""
    changed = mutations.made_in_script(script, "first", "a < limit", "a <= limit")
    assert changed == script.replace("(a < limit)", "(a <= limit)")
    changed = mutations.made_in_script(script, "<module>", "limit = 5", "limit = 6")
    assert changed == script.replace("5", "6")
    twice = [("<module>", "a < limit"), ("first", "a")]
    never = [("first", "return a <"), ("last", "a")]
    for function, before in [*twice, *never]:
        with pytest.raises(mutations.Unfit, match="expected once, but found"):
            mutations.made_in_script(script, function, before, "b")


def test_a_list_gives_functions_numbers_and_tests_of_their_own():
    text = """
    ["a.py"]
    area = "losses"
    tests = "a.py"
    mutants = [["f", "m", 'x', 'y'], ["f", "m", 'x', 'y', 2], ["f", "m", 'x', 'y', "b.py", 3]]
    """
    assert [(m.tests, m.number) for m in mutations.read_list(text)] == [
        ("a.py", 0),
        ("a.py", 2),
        ("b.py", 3),
    ]


def test_a_list_with_a_lost_file_or_a_mistake_twice_says_so():
    lost = mutations.Mutant("losses", "repro/lost.py", "f", "gone", "a", "b", "tests/lost.py")
    first, *_ = MUTANTS
    faults = mutations.faults_of([lost, first, first])
    root = mutations.ROOT
    assert faults == [
        f"repro/lost.py, 'gone': there is no {root}/src/repro/lost.py",
        f"repro/lost.py, 'gone': there is no {root}/tests/lost.py",
        f"{first.file}, {first.means!r}: listed twice",
    ]
