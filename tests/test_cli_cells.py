"""`repro sweep`: the cells of the Snakefile, each once."""

import errno
import json
import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import dimadvise
from dimadvise.apply import apply
from repro.book import execution, notebook
from repro.paths import project_root
from repro.printed import printed_run, printed_runs
from repro.results import read_rows

PAGE = """---
kernelspec: {display_name: Python 3, language: python, name: python3}
---

# A page

```{code-cell} ipython3
:tags: [parameters]

profile: str = "embedded"  # size of the experiment
backbone: str | None = None  # network
dims: list[int] | None = None  # sizes
seed: int = 0  # of what is drawn
record: bool = False  # append the rows to results/
```

```{code-cell} ipython3
import pandas as pd
from repro.report.page import Page
from repro.rows import make_rows
from repro.types import InputError

if backbone == "broken":
    raise InputError("no such network")
page = Page("study", "study", profile, "microworld", seed, record)
rows = [{"backbone": backbone, "dim": dim, "metric": "m", "value": seed + dim / 10} for dim in dims]
page.close(make_rows(rows, **page.shared))
```
"""


@pytest.fixture
def study(write, tmp_path, monkeypatch, no_data):
    """A checkout with one page, whose rows are made of its parameters."""
    write("_toc.yml")
    write("notebooks/study.md", PAGE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_sweep_runs_each_cell_once_and_a_third_seed_only_what_is_new(study, repro):
    line = "sweep study --backbones one two --dims 8 4 --workers 2 --seeds"
    out, err = repro(f"{line} 0 1")
    assert (out.count("executed: "), err) == (4, "")
    first = read_rows(study / "results" / "study.parquet")
    assert len(first) == 8 and first["value"].sum() == pytest.approx(2 * (0.8 + 0.4 + 1.8 + 1.4))
    out, _ = repro(f"{line} 0 1 2")
    assert (out.count("executed: "), out.count("recorded before: ")) == (2, 4)
    for name in ("one", "two"):
        assert f"executed: {study}/runs/study/{name}-seed2" in out
    rows = read_rows(study / "results" / "study.parquet")
    assert len(rows) == 12 and rows[rows["seed"] < 2].reset_index(drop=True).equals(first)
    assert repro(f"{line.replace('8 4', '8')} 0").out.count("executed: ") == 2, (
        "other sizes are other cells"
    )
    for folder in ("a/enc", "b/enc"):
        (study / folder).mkdir(parents=True)
    told = repro("sweep study --backbones a/enc b/enc --dims 4").out.splitlines()
    assert len(set(told)) == 2 and all(
        f"executed: {study}/runs/study/enc-" in line for line in told
    )


def test_a_recorded_cell_says_when_and_runs_again_by_force(study, repro):
    line = "sweep study --backbones one --dims 4"
    repro(line)
    rows = read_rows(study / "results" / "study.parquet")
    told = repro(line).out
    made = f"({rows['created'].iloc[0][:10]}, commit "
    assert "recorded before: " in told and made in told and "--force runs it again" in told
    assert "executed: " in repro(f"{line} --force").out


def test_a_cell_that_is_refused_replaces_no_good_notebook(study, repro, monkeypatch):
    repro("sweep study --backbones one --dims 4")
    (target,) = (study / "runs" / "study").glob("one-seed0-*.ipynb")
    good = target.read_bytes()
    refuse = "def record(*_):\n    raise InputError('a part of a run')\n\n"
    page = (study / "notebooks" / "study.md").read_text()
    start = "page = Page("
    refused = page.replace(
        start, f"{refuse}import repro.report.page as it\nit.record = record\n{start}"
    )
    (study / "notebooks" / "study.md").write_text(refused)
    assert "a part of a run" in repro("sweep study --backbones one --dims 4 --force", ends=1).err
    assert target.read_bytes() == good
    assert notebook.ours(execution.failed_of(target))


def test_a_cell_of_other_parameters_replaces_no_notebook(study, repro):
    def outputs(line):
        told = repro(f"sweep study --backbones one --seeds 0 {line} --plan").out
        return {json.loads(cell)["output"] for cell in told.splitlines()}

    usual = {"runs/study/one-seed0.ipynb"}
    assert outputs("") == outputs("--profile embedded") == usual
    others = ["--dims 4", "--dims 8 4", "-p dims [16]", "--profile gpu", "--profile gpu --dims 4"]
    assert len(usual.union(*map(outputs, others))) == 6
    repro("sweep study --backbones one --dims 4")
    (first,) = (study / "runs" / "study").iterdir()
    before = first.read_bytes()
    repro("sweep study --backbones one --dims 8")
    assert len(list(first.parent.iterdir())) == 2 and first.read_bytes() == before


def test_a_cell_that_is_named_twice_runs_once_and_two_of_one_output_are_refused(
    study, write, repro
):
    write("net/config.json", "{}")
    line = "sweep study --dims 4 --seeds 0 --backbones"
    out, _ = repro(f"{line} net ./net {study}/net net/../net --workers 2")
    assert out.count("executed: ") == 1
    page = PAGE.replace("seed: int = 0", 'encoder: str = "x"  # another network\nseed: int = 0')
    (study / "notebooks" / "study.md").write_text(page)
    err = repro(f"{line} a a-b --encoders b-c c --plan", ends=2).err
    assert "runs/study/a-b-c-seed0-" in err and "would both be written to" in err


def test_pages_of_one_name_replace_no_run_of_each_other_and_hide_none(study, write, repro):
    line = "sweep study --backbones one --dims 4 --seeds 0"
    first = Path(repro(line).out.split()[1])
    before = first.read_bytes()
    for folder in ("a", "b"):
        write(f"{folder}/study.md", PAGE.replace('"study", "study"', f'"study", "{folder}"'))
    out, _ = repro(line.replace("study", "study a/study.md b/study.md", 1))
    assert (out.count("executed: "), out.count("recorded before: ")) == (2, 1)
    assert first.read_bytes() == before
    assert len([*study.glob("runs/study*/*.ipynb")]) == 3
    assert {path.stem for path in (study / "results").glob("*.parquet")} == {"a", "b", "study"}


def test_a_cell_whose_disk_is_full_is_told_by_its_place(study, repro, monkeypatch):
    def full(source, target, values, **_):
        if values["backbone"] == "two":
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(execution, "run", full)
    line = "sweep study --backbones two one two-more --dims 4 --seeds 0 --workers 1"
    out, err = repro(line, ends=1)
    assert err.startswith(f"{study}/runs/study/two-seed0-") and "free some space" in err
    assert out.count("executed: ") == 2


def test_a_cell_that_fails_is_told_and_the_others_go_on(study, repro):
    out, err = repro("sweep study --backbones broken one --dims 4 --workers 1", ends=1)
    assert "no such network" in err and f"executed: {study}/runs/study/one-seed0-" in out
    out, err = repro("sweep study --backbones broken one --dims 4", ends=1)
    assert "recorded before: " in out and "no such network" in err, "what failed is tried again"
    faults = {
        "nothing": "no notebook 'nothing'",
        "study --workers 0": "workers is 0",
        "study --plan --workers 0": "workers is 0",
        "": "nothing to run",
        "study -p profile gpu --plan": "sets the size of a page alone: expected --profile",
    }
    for wrong, said in faults.items():
        assert said in repro(f"sweep {wrong}", ends=2).err


@pytest.mark.parametrize("backbone", ["repro-tiny", "BAAI/bge", "{folder}/two words"])
def test_the_snakefile_runs_the_cells_of_a_sweep(backbone, repro, monkeypatch, tmp_path):
    backbone = backbone.format(folder=tmp_path)
    (tmp_path / "two words").mkdir()
    given = {"notebooks": ["wang_figure2_dimensions"], "backbones": [backbone], "seeds": [1]}
    given |= {"profile": "embedded", "dims": [64, 8]}
    text = (project_root() / "Snakefile").read_text(encoding="utf-8")

    def python(words, **options):
        assert words[1:3] == ["-m", "repro"] and options["check"]
        return SimpleNamespace(stdout=repro("", *words[3:]).out)

    monkeypatch.setattr("subprocess.run", python)
    known = {"config": given}
    exec(text.partition("\nwildcard_constraints:")[0], known)
    ((output, command),) = known["COMMANDS"].items()
    (pattern,) = re.findall(r'output:\n +"(.*)",', text)
    form = re.escape(pattern).replace(r"\{notebook\}", "[^/]+").replace(r"\{cell\}", ".+")
    assert re.fullmatch(form, output), "the rule makes it"
    runs = []
    monkeypatch.setattr(execution, "run", lambda *cell, **_: runs.append(cell))
    repro("", *shlex.split(command))
    monkeypatch.setattr("repro.results.results_folder", lambda: tmp_path)
    repro("sweep wang_figure2_dimensions --seeds 1 --dims 64 8 --backbones", backbone)
    snakes, ours = runs
    assert snakes == ours and snakes[2]["record"] is True and isinstance(ours[1], Path)


PAGES = sorted(page.stem for page in (project_root() / "notebooks").glob("*.md"))


@pytest.mark.parametrize("profile", ["embedded", "paper"])
def test_every_page_is_swept_over_its_own_networks_and_seeds(profile, repro):
    told = repro("", "sweep", *PAGES, "--profile", profile, "--plan").out.splitlines()
    cells = [json.loads(line) for line in told]
    assert {cell["output"].split("/")[1] for cell in cells} == set(PAGES)
    assert len({cell["output"] for cell in cells}) == len(cells), "no cell overwrites another"
    for run in printed_runs():
        own = [cell for cell in cells if cell["output"].startswith(f"runs/{run.page}/")]
        first = printed_run(run.page)
        cells_of_all = max(len(first.networks), 1) if first.over else 1
        assert len(own) == (cells_of_all * len(first.seeds) if profile == "paper" else 1)


def test_a_sweep_takes_networks_by_the_parameter_that_a_page_has(repro):
    def given(line):
        cells = [json.loads(told) for told in repro(f"sweep {line} --plan").out.splitlines()]
        return [cell["command"][4:] for cell in cells]

    seed = ["-p", "seed", "0"]
    rest = ["-p", "profile", "embedded", "-p", "record", "true"]
    for page, option, name, value in (
        ("wang_figure2_dimensions", "backbones", "backbone", "one"),
        ("wang_figure3_loss_decomposition", "backbones", "backbones", '["one"]'),
        ("zhang_table1_timing", "encoders", "encoder", "one"),
        ("zhang_figure3_trec", "encoders", "encoders", '["one"]'),
    ):
        assert given(f"{page} --{option} one") == [[*seed, "-p", name, value, *rest]]
        other = "encoders" if option == "backbones" else "backbones"
        told = repro(f"sweep {page} --{other} one", ends=2).err
        assert f"{page} takes no such networks (its parameters of networks: {name})" in told
    assert given("proposal_train_or_reduce --seeds 4")[0][:3] == ["-p", "seeds", "[4]"]
    assert len(given("zhang_figure3_trec zhang_figure3_trec --encoders a a --seeds 0 0")) == 1
    for line in ("--backbones a -p backbone b", "--seeds 1 -p seed 7"):
        told = repro(f"sweep wang_figure2_dimensions {line} --plan", ends=2).err
        assert "is what the cells of wang_figure2_dimensions differ in" in told
    told = repro("sweep wang_table3_sts --dims 8 -p dims [16] --plan", ends=2).err
    assert "-p dims and --dims are given" in told
    both = given(
        "zhang_figure3_trec wang_figure2_dimensions --encoders a b --backbones c --seeds 5"
    )
    assert [command[5] for command in both] == ['["a"]', '["b"]', "c"]


class Quoted(str):
    """Text that takes Snakemake's `:q`, which quotes for a shell."""

    def __format__(self, how):
        return shlex.quote(self) if how == "q" else super().__format__(how)


def test_jobs_of_shards_are_idempotent_and_make_what_the_rules_promise(repro, tmp_path, capsys):
    """The shell lines of `shards.smk`, each run as Snakemake would, once more, and after a loss."""
    text = (project_root() / "shards.smk").read_text(encoding="utf-8")
    shells = text.split("shell:")[1:]
    encode, put_through = ("".join(re.findall(r'^ +"(.*)"$', shell, re.M)) for shell in shells)
    texts, vectors, advice = tmp_path / "part one.txt", tmp_path / "x.npy", tmp_path / "advice"
    texts.write_text("".join(f"sentence {i} of {i % 7}\n" for i in range(120)), encoding="utf-8")
    params = SimpleNamespace(python="", dimadvise="", encoder=Quoted("repro-tiny"))
    params.advice, params.folder = Quoted(advice), Quoted(tmp_path / "applied" / "x")
    files = {"input": Quoted(texts), "output": Quoted(vectors)}
    repro("", *shlex.split(encode.format(params=params, **files))[2:])
    assert len(np.load(vectors)) == 120
    X = np.load(vectors)
    dimadvise.advise(X, bytes=64, methods=("svd",), levels=("int8",), dims=(8,)).save(advice)
    given = SimpleNamespace(vectors=Quoted(vectors))
    _, source, *options = shlex.split(put_through.format(params=params, input=given))
    options = dict(zip(options[::2], options[1::2], strict=True))
    made = tmp_path / "applied" / "x" / "part-00000.npy"
    assert 'APPLIED / "{shard}" / "part-00000.npy"' in text

    def run():
        apply(
            Path(source),
            Path(options["--advice"]),
            Path(options["--output"]),
            rows_per_shard=int(options["--rows-per-shard"]),
        )
        return made.read_bytes(), capsys.readouterr().out

    first, _ = run()
    assert "1 of 1 shards are there" in run()[1]
    made.unlink()
    assert run()[0] == first
