"""The ground floor: user errors, places, seeds, absent packages, and what `import repro` brings."""

import json
import os
import re
import sys
import tomllib

import numpy as np
import pytest

from repro import paths, terminal
from repro.seeding import cpu_count, derive_seed, make_rng
from repro.types import InputError, NotInstalled, check_dim, check_embeddings, check_same_length, one_of, optional


def modules_after(python, statement):
    process = python(f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))")
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return set(json.loads(out))


@pytest.mark.parametrize(
    "statement",
    [
        "import repro, repro.cli",
        "import repro.types, repro.paths, repro.seeding, repro.config, repro.store, repro.rows",
        "import repro.evaluation, repro.evaluation.protocol",
        "import repro.report",
        "import repro.data\nrepro.data.load('stsb', split='dev', source='microworld')",
        "import repro.theory",
    ],
)
def test_what_needs_no_network_brings_no_torch(python, statement):
    loaded = modules_after(python, statement)
    assert not loaded & {"torch", "transformers", "accelerate", "datasets"}


def test_the_command_line_starts_before_anything_heavy_is_loaded(python):
    loaded = modules_after(python, "import repro.cli")
    assert not loaded & {"torch", "sklearn", "scipy", "pandas", "matplotlib"}


def test_importing_the_package_is_cheap(python):
    loaded = modules_after(python, "import repro")
    assert not loaded & {"numpy", "pandas", "scipy", "sklearn", "matplotlib", "torch"}


# checks


def test_one_of():
    assert one_of("a", ("a", "b"), "letter") == "a"
    with pytest.raises(InputError, match="unknown letter 'c': choose one of a, b"):
        one_of("c", ("a", "b"), "letter")


def test_embeddings():
    assert check_embeddings([[1, 2]]).dtype == np.float64
    X = np.ones((2, 3), np.float32)
    assert check_embeddings(X) is X
    with pytest.raises(InputError, match=r"Q has NaN or infinite values in 2 of 4 rows, first in row 1"):
        check_embeddings([[1.0], [np.nan], [2.0], [-np.inf]], "Q")
    for shape in ((3,), (0, 2), (2, 0), (1, 2, 3)):
        with pytest.raises(InputError, match="X has shape"):
            check_embeddings(np.zeros(shape))


def test_lengths_and_dims():
    check_same_length(a=[1], b="x")
    with pytest.raises(InputError, match="a has 1, b has 2"):
        check_same_length(a=[1], b=[1, 2])
    assert check_dim(np.int64(3)) == 3 and isinstance(check_dim(np.int64(3)), int)
    for wrong in (0, -1, 2.0, True, "3", None):
        with pytest.raises(InputError, match="size is"):
            check_dim(wrong, what="size")
    with pytest.raises(InputError, match="dim is 9: expected 1 to 8"):
        check_dim(9, limit=8)


# seeds


def test_a_seed_belongs_to_its_component_and_keys():
    known = derive_seed(0, "pooler", 8)
    assert known == derive_seed(0, "pooler", 8) and 0 <= known < 2**63
    others = [
        derive_seed(*keys)
        for keys in (
            (1, "pooler", 8),
            (0, "pooler", 16),
            (0, "step", 8),
            (0, "pooler"),
            (0, "pooler", 8, 0),
            (0, "pooler8"),
        )
    ]
    assert len({known, *others}) == 7
    assert make_rng(0, "a").random() == make_rng(0, "a").random() != make_rng(0, "b").random()


def test_seeds_are_the_same_everywhere(python):
    out, _ = python(
        "from repro.seeding import *; print(derive_seed(3, 'views', 12), make_rng(3, 'x').integers(1 << 40))",
        PYTHONHASHSEED="11",
    ).communicate(timeout=60)
    assert out.split() == [str(derive_seed(3, "views", 12)), str(make_rng(3, "x").integers(1 << 40))]


def test_threads(monkeypatch):
    monkeypatch.setenv("REPRO_THREADS", "3")
    assert cpu_count() == 3
    monkeypatch.setenv("REPRO_THREADS", "0")
    assert cpu_count() == 1
    monkeypatch.setenv("REPRO_THREADS", "many")
    assert 1 <= cpu_count() <= os.cpu_count()


# places


def test_the_checkout_is_found_from_below_it(tmp_path, monkeypatch):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "_toc.yml").touch()
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")
    assert paths.project_root() == tmp_path
    monkeypatch.setenv("REPRO_HOME", "")  # as good as unset
    assert paths.home() == tmp_path / ".repro"


def test_outside_any_checkout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(paths, "PACKAGE", tmp_path / "site-packages" / "repro")
    monkeypatch.setenv("REPRO_HOME", "")  # as good as unset
    with pytest.raises(InputError, match="no project checkout above"):
        paths.project_root()
    assert paths.home() == tmp_path / ".repro"


def test_the_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_DATA", "")
    assert paths.data_folder() is None
    monkeypatch.setenv("REPRO_DATA", str(tmp_path))
    assert paths.data_folder() == tmp_path
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "none"))
    with pytest.raises(InputError, match="which is not a folder: point it at the benchmark files or unset it"):
        paths.data_folder()


def test_inside(tmp_path):
    assert paths.inside(tmp_path, "a/b") == tmp_path / "a" / "b"
    for wrong in ("../x", "a/../../x", "/etc/passwd"):
        with pytest.raises(InputError, match="leads outside"):
            paths.inside(tmp_path, wrong)


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "link").symlink_to(tmp_path)
    with pytest.raises(InputError, match="leads outside"):
        paths.inside(tmp_path / "inner", "link/x")


# absent packages


def test_an_absent_package_explains_itself_when_touched():
    absent = optional("no_such_package_at_all", "eval")
    assert isinstance(absent, NotInstalled)
    for touch in (lambda: absent.IndexFlatIP, lambda: absent(3)):
        with pytest.raises(
            InputError, match=r"is not installed: `pip install -e '.\[eval\]'` in the checkout brings it"
        ):
            touch()
    assert optional("json", "eval") is json


def test_no_message_and_no_file_installs_the_stranger_that_pypi_calls_repro():
    checkout = paths.PACKAGE.parents[1]
    told = [*paths.PACKAGE.rglob("*.py"), *(checkout / name for name in ("README.md", "environment.yml", "Makefile"))]
    assert not [path for path in told if re.search(r"""['" ]repro\[""", path.read_text(encoding="utf-8"))]
    project = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] != "repro" and project["scripts"] == {"repro": "repro.cli:main"}
    assert project["optional-dependencies"]["all"][0].startswith(f"{project['name']}[")


# bars of progress


@pytest.mark.parametrize(
    ("to_terminal", "quiet", "show", "drawn"),
    [(True, "", True, True), (False, "", True, False), (True, "1", True, False), (True, "", False, False)],
)
def test_bars_are_drawn_on_a_terminal_alone(to_terminal, quiet, show, drawn, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: to_terminal)
    monkeypatch.setenv(terminal.QUIET, quiet)
    assert list(terminal.progress_bar(range(3), show=show, desc="counting")) == [0, 1, 2]
    assert ("counting" in capsys.readouterr().err) == drawn


def test_bars_come_from_one_place():
    drawing = [path.name for path in paths.PACKAGE.rglob("*.py") if "import tqdm" in path.read_text(encoding="utf-8")]
    assert drawing == ["terminal.py"]
