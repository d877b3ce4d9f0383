"""The verbs of `repro` on many runs of a page: `sweep` runs them in a local pool."""

from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from repro.terminal import complain, say
from repro.types import InputError, check_dim

Pairs = Annotated[tyro.conf.UseAppendAction[list[tuple[str, str]]], tyro.conf.arg(aliases=["-p"], metavar="NAME VALUE")]


def sweep(
    notebooks: tyro.conf.Positional[tuple[Path, ...]],
    p: Pairs,
    backbones: tuple[str, ...] = ("repro-tiny",),
    seeds: tuple[int, ...] = (0,),
    dims: tuple[int, ...] = (),
    profile: Literal["embedded", "gpu", "paper"] = "embedded",
    workers: int | None = None,
) -> int:
    """Pages over backbones and seeds, side by side, their rows recorded: the cells of the `Snakefile`, on one machine.

    A cell whose rows are in `results/` is left out, so that a stopped or a longer sweep runs only what is missing; what
    a killed cell had trained is found in the store.

    Args:
        notebooks: paths of notebooks, or their bare names.
        p: another parameter of all cells; may be given several times.
        backbones: shipped names or hub ids; or folders, whose cells always run, since names of folders repeat.
        seeds: of everything drawn.
        dims: sizes of every cell; by default the page's.
        profile: size of the experiments.
        workers: cells side by side; by default two on two cores or more, and one of the profiles for a GPU.
    """
    from repro.book import notebook
    from repro.paths import project_root
    from repro.report.page import command
    from repro.rows import read_rows, results_folder
    from repro.seeding import cpu_count, environment

    known = {said for path in results_folder().glob("*.parquet") for said in read_rows(path)["command"].dropna()}
    cells = []
    for source, backbone, seed in product(map(notebook.locate, notebooks), backbones, seeds):
        declared = notebook.parameters_of(source)
        given: dict[str, Any] = {"profile": profile, "backbone": backbone, "seed": seed, "record": True, **dict(p)}
        values = notebook.from_here(notebook.validate(declared, given | ({"dims": list(dims)} if dims else {})))
        told = command(source.stem, {name: values.get(name, each.default) for name, each in declared.items()})
        target = project_root() / "runs" / source.stem / f"{backbone.strip('/')}-seed{seed}.ipynb"
        cells.append((source, target, values, told in known and not Path(backbone).is_dir()))
    if not cells:
        raise InputError("nothing to run: give at least one notebook, backbone and seed")
    usual = min(2, cpu_count()) if profile == "embedded" else 1
    lanes = usual if workers is None else check_dim(workers, what="workers")
    share = str(max(1, cpu_count() // lanes))

    def done(cell: tuple[Path, Path, dict[str, Any], bool]) -> bool:
        source, target, values, there = cell
        if there:
            say(f"recorded before: {target}")
            return True
        try:
            notebook.run(source, target, values, forked=True)
        except (notebook.NotebookError, InputError) as error:
            complain(f"{error} (the notebook up to that cell is at {target})")
            return False
        say(f"executed: {target}")
        return True

    with environment({"REPRO_THREADS": share, "OMP_NUM_THREADS": share}), ThreadPoolExecutor(lanes) as pool:
        return int(not all([*pool.map(done, cells)]))
