"""What is installed, and from where: the core alone, the extras, and pins that name every file by
its hash.
"""

import ast
import json
import re
import shlex
import sys
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from repro.cli import VERBS
from repro.paths import PACKAGE, project_root
from repro.types import EXTRAS, extra_with

ROOT = project_root()
OURS = {"repro", "rivals", "dimadvise", "microworld", "__future__"}
CORE = {
    "numpy",
    "scipy",
    "sklearn",
    "pandas",
    "pyarrow",
    "safetensors",
    "matplotlib",
    "tqdm",
    "tyro",
    "filelock",
    "psutil",
    "threadpoolctl",
    "docstring_parser",
    "typeguard",
}
"""By their names in `import`: the packages of the core, and those that they bring."""
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
    """Run lines of `repro` in a process that finds no package of any extra: exit code and output of
    each.
    """

    def run(lines):
        code = (
            f"{CORE_ONLY}print(json.dumps([told(words) for words in "
            f"{[shlex.split(line) for line in lines]!r}]))"
        )
        ran = python(code)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    return run


def test_every_verb_names_the_extra_that_it_needs_where_the_core_alone_is_installed(
    with_the_core_alone,
    tmp_path,
):
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
    }
    works = {"data list": 0, "compare wang_table1": 0, "doctor": None}
    works |= {
        f"{verb} --help": 0
        for verb in VERBS
        if not any(line.split()[0] == verb for line in (*needs, *works))
    }
    works["doctor"] = works.pop("doctor")  # Last, for what it says is read
    ends = with_the_core_alone([*needs, *works])
    for (line, extra), (code, said) in zip(needs.items(), ends, strict=False):
        assert code == 2 and said.count("error:") == 1 and "Traceback" not in said, (line, said)
        assert (
            f"is not installed: `pip install -e '.[{extra}]'` in the checkout brings it" in said
        ), (line, said)
    for (line, expected), (code, said) in zip(works.items(), ends[len(needs) :], strict=True):
        assert code in ((0, 1) if expected is None else (expected,)) and "Traceback" not in said, (
            line,
            said,
        )
    assert "backbones: not looked at without torch" in ends[-1][1]


def test_every_package_that_is_imported_comes_with_the_core_or_a_known_extra():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
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


# By hash


LOCKS = [*sorted(ROOT.glob("constraints*.txt")), ROOT / "binder" / "jupyterlab.txt"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
RECIPES = [
    *(ROOT / name for name in ("Makefile", ".ci/run", "binder/postBuild", "environment.yml")),
    *WORKFLOWS,
]
"""Whatever installs something."""


def pins_of(path):
    """The requirements of a file, each with its hashes."""
    joined = path.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]
    return {
        Requirement(line.partition("--hash")[0]): re.findall("--hash=(\\S+)", line)
        for line in lines
    }


def test_every_pin_is_exact_and_has_hashes_and_none_is_pinned_twice():
    assert len(LOCKS) == 4
    for path in LOCKS:
        for pin, hashes in pins_of(path).items():
            assert [spec.operator for spec in pin.specifier] == ["=="] and "*" not in str(
                pin.specifier
            ), pin
            assert hashes and all(re.fullmatch("sha256:[0-9a-f]{64}", each) for each in hashes), pin
    names = [canonicalize_name(pin.name) for path in LOCKS[:3] for pin in pins_of(path)]
    assert len(names) == len(set(names)) > 200


def test_the_pins_are_what_the_project_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    (everything,) = map(Requirement, extras["all"])
    asked = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    for extra in everything.extras:
        asked += extras[extra]
    pinned = {
        canonicalize_name(pin.name): str(pin.specifier)[2:]
        for path in LOCKS[:3]
        for pin in pins_of(path)
    }
    for requirement in map(Requirement, asked):
        assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)]), (
            requirement
        )


def test_whatever_installs_takes_files_by_their_hashes_from_one_index():
    installs = []
    for path in RECIPES:
        text = path.read_text(encoding="utf-8")
        assert not re.search("extra.index", text, re.IGNORECASE), (
            f"{path}: whoever is in both indexes is taken"
        )
        (by_hash,) = re.findall("^BY_HASH := (.*)$", text, re.MULTILINE) or [""]
        installs += re.findall(r"pip install (.*)", text.replace("$(BY_HASH)", by_hash))
    assert len(installs) == 6
    for line in installs:
        words = line.split()
        of_the_checkout = words[-2:] == ["--editable", "."] and "--no-build-isolation" in words
        by_hash = (
            "--require-hashes" in words and "--only-binary" in words and "--requirement" in words
        )
        assert "--no-deps" in words and (of_the_checkout or by_hash), line


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_what_a_workflow_runs_is_pinned_and_can_write_nothing(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        used = [step for step in job["steps"] if "uses" in step]
        assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", step["uses"]) for step in used)
        checkouts = [step for step in used if step["uses"].startswith("actions/checkout@")]
        assert all(step["with"]["persist-credentials"] is False for step in checkouts)
        if "permissions" in job:
            assert not used and not re.search(r"make|pip|\.ci/", str(job["steps"])), (
                "it holds a token that writes"
            )
        else:
            assert checkouts


def test_hooks_of_others_are_pinned_by_their_commits():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    foreign = [repository for repository in config["repos"] if repository["repo"] != "local"]
    assert foreign and all(
        re.fullmatch("[0-9a-f]{40}", repository["rev"]) for repository in foreign
    )
