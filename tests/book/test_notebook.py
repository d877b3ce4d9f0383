import ast
import contextlib
import json
import sys
from pathlib import Path
from types import ModuleType
from unittest.mock import Mock

import jupytext
import papermill
import psutil
import pytest
from papermill.exceptions import PapermillExecutionError

from repro.book import builder as book
from repro.book import execution, kernel, notebook, parameters, site
from repro.book.ledger import Ledger
from repro.paths import project_root
from repro.types import InputError

FRONT = """---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {display_name: Python 3, language: python, name: python3}
---
"""
PARAMETERS = """
```{code-cell} ipython3
:tags: [parameters]

dims: list[int] = [64, 16]  # embedding sizes to train
backbone: str = "repro-tiny"  # network to start from
rate: float = 0.5
limit: int | None = None  # None: all of them
sizes: list[int] | None = None
shuffle: bool = True
seeds = [0, 1]
size = 2**7
folder: str | None = None
```
"""


def write(path: Path, *cells: str, parameters: str = "") -> Path:
    blocks = [f"```{{code-cell}} ipython3\n{cell}\n```" for cell in cells]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        FRONT + "\n# Title\n\n" + parameters + "\n\n" + "\n\n".join(blocks) + "\n",
        encoding="utf-8",
    )
    return path


@pytest.fixture
def declared(tmp_path):
    return parameters.parameters_of(write(tmp_path / "n.md", parameters=PARAMETERS))


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("dims", "[64, 16, 8]", [64, 16, 8]),
        ("dims", "64, 16", [64, 16]),
        ("backbone", "12", "12"),
        ("rate", "1e-3", 1e-3),
        ("rate", 1, 1.0),
        ("limit", "null", None),
        ("shuffle", "false", False),
        ("folder", "None", None),
        ("folder", "~", None),
        ("folder", '"null"', "null"),
        ("folder", "'it''s #2'", "it's #2"),
        ("folder", r"'C:\new'", r"C:\new"),
        ("seeds", "all #2", "all #2"),
        ("seeds", "[a, 'b #2']", ["a", "b #2"]),
        ("seeds", "&a [*a]", "&a [*a]"),  # A list within itself is none
    ],
)
def test_values_are_read_as_the_declared_type(declared, name, given, expected):
    value = parameters.validate(declared, {name: given})[name]
    assert value == expected and type(value) is type(expected)
    # Shown, not computed
    assert declared["size"].default == "2 ** 7" and declared["seeds"].kind == "Any"
    assert str(declared["limit"]) == "limit: int | None = None  # None: all of them"


AS_TYPED = [
    *("models/run #2", "# Parameters", "&a foo", "!!str foo", "--- foo", "null # none", ""),
    *("a\nb", '"a\nb"', " x ", "|\n x", "'a' 'b'", "'a' # 'b'", "r'a'", r"'it\'s'", "2", "[a, b]"),
]


@pytest.mark.parametrize("text", AS_TYPED)
def test_text_is_taken_as_it_was_typed(declared, text):
    given = {"folder": text, "backbone": text}
    assert parameters.validate(declared, given) == given


def test_only_words_for_nothing_are_nothing(declared):
    for text in ("", "# 3", "null # none"):
        with pytest.raises(InputError, match="parameter limit is"):
            parameters.validate(declared, {"limit": text})


WRONG = [
    *("dims 64", "dims [64,1.5]", "dims [true]", "rate fast", "shuffle 1", "limit 2.5"),
    *("limit true", "sizes [true]", "sizes [8,1.5]"),
]


@pytest.mark.parametrize(("name", "given"), [wrong.split() for wrong in WRONG])
def test_a_wrong_type_is_refused_with_the_menu(declared, name, given):
    with pytest.raises(
        InputError,
        match=rf"parameter {name} is .*expected .*(?s:.)*backbone: str = 'repro-tiny'",
    ):
        parameters.validate(declared, {name: given})
    with pytest.raises(InputError, match=r"unknown parameter 'dim'(?s:.)*dims: list\[int\]"):
        parameters.validate(declared, {"dim": "64"})


def test_run_uses_this_interpreter_the_callers_environment_and_the_given_values(
    tmp_path,
    monkeypatch,
):
    monkeypatch.setenv("REPRO_DATA", "/somewhere")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "no-kernels-here"))
    code = (
        "import os, sys\nprint(sys.executable, os.environ['REPRO_DATA'], os.getcwd(), dims, rate, "
        "sep='|')"
    )
    source = write(tmp_path / "n.md", code, parameters=PARAMETERS)
    executed = execution.run(source, tmp_path / "out" / "n.ipynb", {"dims": "[8]", "rate": 1})
    printed = executed.cells[-1].outputs[0].text.strip().split("|")
    assert printed == [sys.executable, "/somewhere", str(tmp_path), "[8]", "1.0"]
    assert json.loads((tmp_path / "out" / "n.ipynb").read_text())["cells"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["n.ipynb"]


def test_a_mistake_in_a_cell_stays_an_input_error_and_the_output_is_kept(tmp_path, half_written):
    mistake = "if True:\n    raise InputError('dim is 0: expected at least 1')"
    source = write(
        tmp_path / "n.md",
        "from repro.types import InputError\nprint('before')",
        mistake,
    )
    half_written(tmp_path / "n.ipynb", 999_999_999, ".partial.ipynb")  # By a run that was killed
    with pytest.raises(InputError, match=r"n\.md, cell 3.*raise InputError.*dim is 0"):
        execution.run(source, tmp_path / "n.ipynb")
    assert "before" in (tmp_path / "n.failed.ipynb").read_text()
    assert sorted(path.name for path in tmp_path.glob("n*")) == ["n.failed.ipynb", "n.md"]


def test_a_refusal_tells_what_was_given_where_it_names_none_of_it(tmp_path, monkeypatch):
    source = write(tmp_path / "n.md", "1", parameters=PARAMETERS)

    refusal = "6 rows: the dims need 10"
    for kind, error, given, said in (
        ("InputError", InputError, {"rate": 0.1}, r"dims need 10 \(given: rate 0\.1\)$"),
        ("InputError", InputError, {"backbone": "x" * 99}, r" \(given: backbone x{60}…\)$"),
        ("InputError", InputError, {"rate": 0.1, "dims": [8]}, "dims need 10$"),
        ("InputError", InputError, {}, "dims need 10$"),
        ("KeyError", execution.NotebookError, {"rate": 0.1}, "dims need 10$"),
    ):
        stopped = PapermillExecutionError(1, 1, "1", kind, refusal, [])
        monkeypatch.setattr(papermill, "execute_notebook", Mock(side_effect=stopped))
        with pytest.raises(error, match=said):
            execution.run(source, tmp_path / "n.ipynb", given)


def test_a_run_that_fails_replaces_no_good_one_and_a_good_one_takes_its_notes_away(
    tmp_path, monkeypatch
):
    good, fails = write(tmp_path / "n.md", "1"), write(tmp_path / "other.md", "1/0")
    output = tmp_path / "n.ipynb"

    def execute(node, partial, **_):
        Path(partial).write_text(jupytext.writes(node, fmt="ipynb"), encoding="utf-8")
        if "1/0" in node.cells[-1].source:
            raise RuntimeError("no")

    monkeypatch.setattr(papermill, "execute_notebook", execute)
    execution.run(good, output)
    before = output.read_bytes()
    with pytest.raises(execution.NotebookError):
        execution.run(fails, output)
    assert output.read_bytes() == before and notebook.ours(execution.failed_of(output))
    execution.run(good, output)
    assert not execution.failed_of(output).exists()
    execution.failed_of(output).write_text("mine")
    with pytest.raises(InputError, match=r"n\.failed\.ipynb is not an executed notebook as a run"):
        execution.run(good, output)
    assert execution.failed_of(output).read_text() == "mine"


@pytest.mark.parametrize("fails", [False, True])
def test_a_notebook_that_somebody_saves_during_a_run_stays(fails, tmp_path, monkeypatch, capsys):
    source, output = write(tmp_path / "n.md", "1"), tmp_path / "n.ipynb"
    target = execution.failed_of(output) if fails else output
    target.with_name(f"{target.stem}.2.ipynb").write_text("another's")

    def execute(node, partial, **_):
        Path(partial).write_text(jupytext.writes(node, fmt="ipynb"), encoding="utf-8")
        target.write_text("mine")
        if fails:
            raise RuntimeError("no")

    monkeypatch.setattr(papermill, "execute_notebook", execute)
    with pytest.raises(execution.NotebookError) if fails else contextlib.nullcontext():
        execution.run(source, output)
    assert target.read_text() == "mine"
    assert target.with_name(f"{target.stem}.2.ipynb").read_text() == "another's"
    free = target.with_name(f"{target.stem}.3.ipynb")
    assert notebook.ours(free) and f"what was executed is at {free}" in capsys.readouterr().err


CELL = {"cell_type": "code", "id": "a", "source": "1", "outputs": [], "execution_count": None}


def saved(cell=CELL | {"metadata": {}}, **changes):
    """A notebook as JSON, with what is wrong about it."""
    whole = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole | changes)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("n.ipynb", "[]"),
        ("n.ipynb", "3"),
        ("n.ipynb", "{}"),
        ("n.ipynb", "[" * 100_000),
        ("n.ipynb", saved(CELL)),
        ("n.ipynb", saved(1)),
        ("n.ipynb", saved(CELL | {"metadata": {"tags": 3}})),
        ("n.ipynb", saved(metadata=[])),
        ("n.ipynb", saved(metadata={"kernelspec": "x"})),
        ("n.ipynb", saved(cells={})),
        ("n.ipynb", saved(nbformat=2)),
        ("n.ipynb", saved(nbformat=9)),
        ("n.md", "---\na: [\n---\n# T\n"),
        ("n.md", "---\n- a\n---\n# T\n"),
        ("n.md", "---\nkernelspec: x\n---\n# T\n"),
        ("n.md", "---\njupytext: 3\n---\n# T\n"),
        ("n.md", "---\na: 1\n---\n```{code-cell}\n:tags: [\n1\n```\n"),
    ],
)
def test_what_is_no_notebook_is_told_in_a_sentence(name, content, repro, tmp_path):
    (tmp_path / name).write_text(content)
    said = repro("run", tmp_path / name, "--output", tmp_path / "o.ipynb", ends=2).err
    assert f"{tmp_path / name} is not a notebook that can be read: " in said
    assert len(said.splitlines()) == 1 and not (tmp_path / "o.ipynb").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("n.ipynb", saved()),
        ("n.ipynb", saved({k: v for k, v in CELL.items() if k != "id"} | {"metadata": {}})),
        ("n.md", "---\nkernelspec:\n  name: python3\n---\n\n# Größe\n\n```{code-cell}\n1\n```\n"),
        ("n.md", "# T\n\n```{code-cell}\n1\n```\n"),
    ],
)
def test_a_notebook_whose_kernel_or_cells_have_no_name_is_read(name, content, tmp_path):
    (tmp_path / name).write_text(content, encoding="utf-8")
    node = notebook.read(tmp_path / name)
    assert node.cells[-1].source == "1" and node.metadata["kernelspec"]["display_name"]
    assert len(node.cells) == 1 or node.cells[0].source in ("# Größe", "# T")


@pytest.mark.parametrize("kind", ["1/0", "3", "[int]", "int[0]", "1 | 2", "int.x", "'1/0'"])
def test_a_parameter_that_is_declared_with_no_type_is_refused(kind, tmp_path):
    cell = f"```{{code-cell}}\n:tags: [parameters]\n\nx: {kind} = 3\n```\n"
    declared = parameters.parameters_of(write(tmp_path / "n.md", parameters=cell))
    with pytest.raises(InputError, match=r"parameter x is declared as .* expected a type, such as"):
        parameters.validate(declared, {"x": "1"})


@pytest.mark.parametrize(
    "kind", ["'int'", "Unknown", "Unknown[int]", "Literal[1, 2]", "int | None", "open('f')"]
)
def test_a_type_is_found_without_calling_anything(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    declared = {"x": parameters.Parameter("x", kind, 3)}
    assert parameters.validate(declared, {"x": "1"}) == {"x": 1}


@pytest.mark.parametrize("timeout", ["0", "-1", "nan"])
@pytest.mark.parametrize("verb", ["run playground", "book"])
def test_a_time_that_is_none_is_refused(verb, timeout, repro):
    said = repro(f"{verb} --timeout {timeout}", ends=2).err
    assert f"timeout is {float(timeout)}: expected a number above 0" in said


def test_a_kernel_that_does_not_start_is_told_in_a_sentence(tmp_path, monkeypatch):
    def execute(*arguments, **options):
        raise RuntimeError("Kernel didn't respond in 60 seconds")

    monkeypatch.setattr(papermill, "execute_notebook", execute)
    with pytest.raises(
        execution.NotebookError, match=r"n\.md: Kernel didn't respond in 60 seconds"
    ):
        execution.run(write(tmp_path / "n.md", "1"), tmp_path / "n.ipynb")


def test_notebooks_are_found_by_path_or_name_but_not_outside(tmp_path, monkeypatch):
    source = write(tmp_path / "notebooks" / "study.md", "1")
    (tmp_path / "_toc.yml").touch()
    monkeypatch.chdir(tmp_path)
    assert notebook.locate(source) == notebook.locate("study") == source.resolve()
    write(tmp_path / "book" / "primer.md", "1")
    (tmp_path / "book" / "prose.md").write_text("# Words")
    with pytest.raises(InputError, match=r"'stduy' in .*: choose one of primer, study \(did you"):
        notebook.locate("stduy")
    with pytest.raises(InputError, match=r"'notebooks/primer.md' in .* \(did you mean primer\?\)"):
        notebook.locate("notebooks/primer.md")
    with pytest.raises(InputError, match="outside"):
        notebook.locate("../../secret")


PAGES = sorted((project_root() / "notebooks").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_plain_papermill_knows_every_parameter_of_every_page_and_its_type(page, tmp_path):
    target, declared = notebook.to_ipynb(page, tmp_path), parameters.parameters_of(page)
    seen = papermill.inspect_notebook(str(target))
    assert list(seen) == list(declared)
    assert "None" not in {parameter["inferred_type_name"] for parameter in seen.values()}
    values: dict = {}
    exec(next(filter(notebook.declares, notebook.read(target).cells)).source, values)
    defaults = {name: p.default for name, p in declared.items()}
    assert {name: values[name] for name in declared} == defaults
    assert parameters.validate(parameters.parameters_of(target), defaults)


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A toy book, not rendered; surroundings are fixed, for the real ones hash the package under
    development.
    """
    monkeypatch.setattr(site, "surroundings", lambda root: {"src/repro": "same"})
    monkeypatch.setattr(site, "render", lambda tree, ledger, fresh: [])
    (tmp_path / "_config.yml").write_text("title: Toy\nonly_build_toc_files: true\n")
    chapters = "chapters:\n- file: notebooks/good\n- file: notebooks/bad\n"
    (tmp_path / "_toc.yml").write_text(f"format: jb-book\nroot: book/index\n{chapters}")
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "index.md").write_text("# Toy\n\nWords.\n\n```python\n1 / 0\n```\n")
    write(tmp_path / "notebooks" / "good.md", "print(6 * 7)")
    write(tmp_path / "notebooks" / "bad.md", "1 / 0")
    return tmp_path


def test_only_what_changed_is_executed_and_a_failure_stops_nothing_else(
    checkout,
    monkeypatch,
    capsys,
):
    renders = []

    def render(tree, ledger, fresh):
        renders.append(fresh)
        ledger.write(ledger.folder / "html" / "index.html", b"")
        return []

    monkeypatch.setattr(site, "render", render)

    def built(**options):
        made = book.build(checkout, **options)
        return made, [page.status for page in made.pages]

    first, states = built()
    assert states == ["copied", "executed", "failed"] and not first.ok
    assert (
        "ZeroDivisionError" in first.failures[0].error and "first build" in capsys.readouterr().out
    )
    write(checkout / "notebooks" / "bad.md", "1 / 1")
    second, states = built()
    assert states == ["unchanged", "unchanged", "executed"] and second.ok
    assert set(built()[1]) == {"unchanged"}
    assert renders == [True, False]  # Fresh at first; nothing to render the third time

    monkeypatch.setattr(site, "surroundings", lambda root: {"src/repro": "edited"})
    _, states = built(only=["good"])
    assert (
        states == ["unchanged", "executed", "skipped"]
        and "because: src/repro changed" in capsys.readouterr().out
    )
    with pytest.raises(InputError, match="choose one of index, good, bad"):
        book.build(checkout, only=["god"])


def test_a_page_that_measures_time_runs_after_the_others_and_one_that_is_not_there_is_refused(
    checkout,
    capsys,
):
    for name, front in (("good", "runs_alone: true\n"), ("bad", "")):
        path = checkout / "notebooks" / f"{name}.md"
        path.write_text(path.read_text().replace("---\n", f"---\n{front}", 1))
    book.build(checkout)
    told = [
        line.split()[1] for line in capsys.readouterr().out.splitlines() if line.startswith("[")
    ]
    assert told[-1] == "notebooks/good:"
    path.unlink()
    with pytest.raises(InputError, match="notebooks/bad"):
        book.build(checkout)


def test_rendering_is_strict_and_says_what_is_wrong_every_time(tmp_path):
    tree = tmp_path / "_build" / "book"
    tree.mkdir(parents=True)
    (tmp_path / "_config.yml").write_text("title: Toy\n")
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: index\n")
    (tree / "index.md").write_text("# Toy\n\nSee {doc}`nowhere`.\n")
    ledger = Ledger(tmp_path / "_build")
    site.prepare(tmp_path, tree, ledger)
    assert any("nowhere" in line for line in site.render(tree, ledger, fresh=True))
    (tree / "index.md").write_text("# Toy\n\nWords.\n")
    assert site.render(tree, ledger, fresh=True) == []
    assert "Words." in (tmp_path / "_build" / "html" / "index.html").read_text()


# Kernels forked from a process that has imported the heavy libraries

forks = pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux only")


@forks
def test_two_forked_notebooks_share_nothing(tmp_path, monkeypatch):
    source = write(
        tmp_path / "n.md",
        "import os, sys\nprint('torch' in sys.modules, 'left_behind' in os.environ, "
        "os.environ['SEEN_BY_KERNEL'])",
        "os.environ['left_behind'] = '1'\nprint(os.getcwd(), os.getsid(0) == os.getpid())",
    )
    for seen in ("first", "second"):
        monkeypatch.setenv("SEEN_BY_KERNEL", seen)
        node = execution.run(source, tmp_path / f"{seen}.ipynb", forked=True)
        printed = [
            output.text
            for cell in node.cells
            for output in cell.get("outputs", [])
            if "text" in output
        ]
        assert printed == [f"True False {seen}\n", f"{tmp_path} True\n"]


@forks
def test_a_forked_kernel_ends_by_its_time_limit(tmp_path):
    note = tmp_path / "pid"
    code = f"import os, time\nopen({str(note)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    source, output = write(tmp_path / "n.md", "print('reached')", code), tmp_path / "n.ipynb"
    with pytest.raises(execution.NotebookError, match="longer than 3 s"):
        execution.run(source, output, timeout=3, forked=True)
    left = notebook.read(execution.failed_of(output))
    told = [cell.outputs for cell in left.cells if cell.cell_type == "code"]
    assert told[0][0].text == "reached\n", "what was executed before the limit is kept"
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(int(note.read_text())).wait(30)


def test_no_line_begins_with_a_per_cent_sign_which_would_hide_it():
    sources = [
        *(project_root() / "notebooks").glob("*.md"),
        *(project_root() / "book").rglob("*.md"),
    ]
    hidden = [source.name for source in sources if "\n%" in source.read_text(encoding="utf-8")]
    assert len(sources) > 50 and not hidden, "MyST takes such a line for a comment"


# What plain papermill passes

PASSED = {
    "a list as text": (
        {"dims": "[8]"},
        r"parameter dims is '\[8\]': expected list\[int\]",
        '-y "dims: [8]"',
    ),
    "a name like a number": (
        {"backbone": 12},
        "parameter backbone is 12: expected str",
        "-r backbone 12",
    ),
    "no number": ({"limit": "few"}, r"parameter limit is 'few': expected int \| None\.", ""),
    "a misspelt name": ({"dim": [64]}, r"unknown parameter 'dim'(?s:.)*  dims: list\[int\]\n", ""),
}


def run_cells(monkeypatch, target, passed):
    """Run parameters and check of an .ipynb as a kernel does, with papermill's cell between
    them.
    """
    main = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    node = papermill.iorw.load_notebook_node(str(target))
    cells = papermill.parameterize.parameterize_notebook(
        node,
        passed,
        kernel_name="python3",
        language="python",
    ).cells
    main.In = [""]
    for cell in [cell for cell in cells if cell.cell_type == "code"][:3]:
        main.In.append(cell.source)
        exec(cell.source, vars(main))
    return main


@pytest.mark.parametrize("case", PASSED)
def test_a_notebook_refuses_what_plain_papermill_passes_unchecked(case, tmp_path, monkeypatch):
    passed, said, option = PASSED[case]
    target = notebook.to_ipynb(write(tmp_path / "n.md", "1", parameters=PARAMETERS), tmp_path)
    with pytest.raises(InputError, match=said) as refused:
        run_cells(monkeypatch, target, passed)
    assert option in str(refused.value) and ("papermill's" in str(refused.value)) == bool(option)


def test_a_notebook_takes_what_plain_papermill_passes_rightly(tmp_path, monkeypatch):
    target = notebook.to_ipynb(write(tmp_path / "n.md", "1", parameters=PARAMETERS), tmp_path)
    main = run_cells(monkeypatch, target, {"dims": [8], "rate": 1, "limit": 5, "seeds": "all"})
    assert (main.dims, main.rate, main.limit, main.seeds) == ([8], 1.0, 5, "all") and type(
        main.rate
    ) is float


def test_plain_papermill_ends_with_the_message(tmp_path):
    target = notebook.to_ipynb(
        write(tmp_path / "n.md", "print(dims)", parameters=PARAMETERS),
        tmp_path,
    )
    options = {
        "kernel_manager_class": kernel.manager(forked=False),
        "progress_bar": False,
        "cwd": tmp_path,
    }
    done = papermill.execute_notebook(target, tmp_path / "out.ipynb", {"dims": [8]}, **options)
    assert done.cells[-1].outputs[0].text == "[8]\n"
    with pytest.raises(papermill.PapermillExecutionError, match="unknown parameter 'dim'"):
        papermill.execute_notebook(target, tmp_path / "out.ipynb", {"dim": [8]}, **options)


def test_no_page_computes_a_table_that_nobody_sees():
    """A notebook shows the last line of a cell: a table before it is lost unless displayed."""
    lost = []
    folders = project_root() / "notebooks", project_root() / "book"
    pages = [page for folder in folders for page in folder.glob("*.md")]
    assert len(pages) > 50
    for page in pages:
        for cell in notebook.read(page).cells:
            lines = ast.parse(cell.source).body if cell.cell_type == "code" else []
            for line in lines[:-1]:
                called = line.value.func if is_call(line) else None
                name = getattr(called, "attr", getattr(called, "id", ""))
                if name in ("show", "comparison", "verdict_table", "Markdown"):
                    lost.append(f"{page.name}: {ast.unparse(line)[:60]}")
    assert not lost


def is_call(line):
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Call)
