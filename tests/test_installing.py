"""What is installed, and from where: the core alone, the extras, and pins that name every file by its hash."""

import ast
import json
import shlex
import sys
import tomllib

import pytest

from repro.cli import VERBS
from repro.paths import PACKAGE, project_root
from repro.types import EXTRAS, extra_with

ROOT = project_root()
OURS = {"repro", "rivals", "dimadvise", "microworld", "__future__"}
CORE = {
    *("numpy", "scipy", "sklearn", "pandas", "pyarrow", "safetensors", "matplotlib", "tqdm", "tyro", "filelock"),
    *("psutil", "threadpoolctl", "docstring_parser", "typeguard"),
}
"""by their names in `import`: the packages of the core, and those that they bring"""
CORE_ONLY = """
import contextlib, io, json, sys
from importlib.machinery import PathFinder
from repro.types import EXTRAS

HIDDEN = {package for packages in EXTRAS.values() for package in packages}


class CoreFinder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in HIDDEN else super().find_spec(name, path, target)


def told(words):
    from repro.cli import main

    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main(words)
        except SystemExit as stopped:
            return stopped.code, said.getvalue()


sys.meta_path[:] = [CoreFinder if finder is PathFinder else finder for finder in sys.meta_path]
"""


@pytest.fixture
def with_the_core_alone(python):
    """Run lines of `repro` in a process that finds no package of any extra: exit code and output of each."""

    def run(lines):
        code = f"{CORE_ONLY}print(json.dumps([told(words) for words in {[shlex.split(line) for line in lines]!r}]))"
        ran = python(code)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    return run


def test_every_verb_names_the_extra_that_it_needs_where_the_core_alone_is_installed(with_the_core_alone, tmp_path):
    (tmp_path / "t.txt").write_text("one\ntwo\n")
    (tmp_path / "rows.csv").write_text("score,sentence1,sentence2\n1,a,b\n2,c,d\n")
    needs = {
        f"encode --encoder repro-tiny --texts {tmp_path}/t.txt --output {tmp_path}/X.npy": "train",
        f"evaluate --encoder repro-tiny --data {tmp_path}/rows.csv": "train",
        f"export --encoder repro-tiny --output {tmp_path}/out": "train",
        f"advise --encoder repro-tiny --texts {tmp_path}/t.txt --output {tmp_path}/advice": "train",
        "train --sentences 64": "train",
        f"pretrain --corpus {tmp_path}/t.txt --output {tmp_path}/net": "train",
        "data fetch stsb": "train",
        "book": "book",
        "notebooks": "book",
        "run playground": "book",
        "sweep playground": "book",
        "plan playground": "book",
    }
    works = {"data list": 0, "compare wang_table1": 0, "reduce --help": 0, "doctor": None}
    assert {line.split()[0] for line in (*needs, *works)} == set(VERBS)
    ends = with_the_core_alone([*needs, *works])
    for (line, extra), (code, said) in zip(needs.items(), ends, strict=False):
        assert code == 2 and said.count("error:") == 1 and "Traceback" not in said, (line, said)
        assert f"is not installed: `pip install -e '.[{extra}]'` in the checkout brings it" in said, (line, said)
    for (line, expected), (code, said) in zip(works.items(), ends[len(needs) :], strict=True):
        assert code in ((0, 1) if expected is None else (expected,)) and "Traceback" not in said, (line, said)
    assert "backbones: not looked at without torch" in ends[-1][1]


def test_every_package_that_is_imported_comes_with_the_core_or_a_known_extra():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(EXTRAS) <= set(extras)
    imported = set()
    for path in PACKAGE.parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {name.name.partition(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(str(node.module).partition(".")[0])
    foreign = imported - OURS - CORE - set(sys.stdlib_module_names)
    assert {"torch", "jupytext"} <= foreign
    assert not {name for name in foreign if extra_with(name) is None}
    assert extra_with("torch.nn") == "train" and extra_with("repro.nothing") is None
