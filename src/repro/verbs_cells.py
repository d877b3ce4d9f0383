"""The verb of `repro` on long runs: `sweep` runs a page's cells in a local pool."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import tyro

from repro.terminal import ProfileName, complain, say
from repro.types import InputError, check_dim

Pairs = Annotated[
    tyro.conf.UseAppendAction[list[tuple[str, str]]],
    tyro.conf.arg(aliases=["-p"], metavar="NAME VALUE"),
]
Cell: TypeAlias = tuple[Path, Path, Mapping[str, Any], str]
"""A notebook, where its run goes, its parameters, and when it was recorded, if it was."""
Run: TypeAlias = tuple[str, str | None]
"""The command of a run, and where its data came from."""


def sweep(
    notebooks: tyro.conf.Positional[tuple[Path, ...]],
    p: Pairs,
    backbones: tuple[str, ...] = ("repro-tiny",),
    seeds: tuple[int, ...] = (0,),
    dims: tuple[int, ...] = (),
    profile: ProfileName = "embedded",
    workers: int | None = None,
    force: bool = False,
) -> int:
    """Pages over backbones and seeds, side by side, their rows recorded: the cells of the
    `Snakefile`, on one machine.

    A cell whose rows are in `results/` is left out: a stopped or a longer sweep runs only what is
    missing.

    Rows do not tell whether data or code have changed since: --force runs all cells.

    Args:
        notebooks: paths of notebooks, or their bare names.
        p: another parameter of all cells; may be given several times.
        backbones: shipped names or hub ids; or folders, whose cells always run, since names of
            folders repeat.
        seeds: of everything drawn.
        dims: sizes of every cell; by default the page's.
        profile: size of the experiments.
        workers: cells side by side; by default two on two cores or more, and one of the profiles
            for a GPU.
        force: run every cell, recorded or not, as is due after a change of data or code.
    """
    from repro.book import notebook
    from repro.paths import inside, project_root
    from repro.seeding import cpu_count, environment

    known = _recorded_runs()
    cells: list[Cell] = []
    for source, backbone, seed in product(map(notebook.locate, notebooks), backbones, seeds):
        given = {"profile": profile, "backbone": backbone, "seed": seed, "record": True, **dict(p)}
        if dims:
            given["dims"] = list(dims)
        values = notebook.from_here(notebook.validate(notebook.parameters_of(source), given))
        folder = project_root() / "runs" / source.stem
        target = inside(folder, f"{label_of(backbone)}-seed{seed}.ipynb")
        is_asked_anyhow = force or Path(backbone).is_dir()
        made = "" if is_asked_anyhow else known.get(_run_of(source, values, profile), "")
        cells.append((source, target, values, made))
    if not cells:
        raise InputError("nothing to run: give at least one notebook, backbone and seed")
    usual = min(2, cpu_count()) if profile == "embedded" else 1
    lanes = usual if workers is None else check_dim(workers, what="workers")
    share = str(max(1, cpu_count() // lanes))
    with (
        environment({"REPRO_THREADS": share, "OMP_NUM_THREADS": share}),
        ThreadPoolExecutor(lanes) as pool,
    ):
        return int(not all([*pool.map(_is_done, cells)]))


def _recorded_runs() -> dict[Run, str]:
    """When, and from which commit, each recorded run was made; of pages whose source is no
    parameter also without it.
    """
    from repro.rows import read_recorded, results_folder

    known: dict[Run, str] = {}
    for path in results_folder().glob("*.parquet"):
        rows = read_recorded(path)[["command", "data_source", "commit", "created"]]
        runs = rows.dropna(subset=["command", "data_source"]).drop_duplicates()
        for told, place, made_by, created in runs.fillna("unknown").to_numpy():
            made = f"{created[:10]}, commit {made_by or 'unknown'}"
            known[told, place] = known[told, None] = made
    return known


def _run_of(source: Path, values: Mapping[str, Any], profile: str) -> Run:
    """The command that a cell's rows name, and the source of its data where a page lets it be
    chosen.
    """
    from repro.book.notebook import parameters_of
    from repro.config import PROFILES
    from repro.data import default_source
    from repro.report.page import command

    declared = parameters_of(source)
    told = command(
        source.stem,
        {name: values.get(name, each.default) for name, each in declared.items()},
    )
    place = values.get("source") or PROFILES[profile].source or default_source()
    return told, place if "source" in declared else None


def _is_done(cell: Cell) -> bool:
    """Run a cell that is not recorded; whether its rows are there then."""
    from repro.book import notebook

    source, target, values, made = cell
    if made:
        way_out = "--force runs it again, as is due after a change of data or code"
        say(f"recorded before: {target} ({made}; {way_out})")
        return True
    try:
        notebook.run(source, target, values, forked=True)
    except notebook.NotebookError as error:
        place = notebook.failed_of(target)
        complain(f"{error} (the notebook up to that cell is at {place})")
        return False
    except InputError as error:
        complain(str(error))
        return False
    say(f"executed: {target}")
    return True


def label_of(backbone: str) -> str:
    """A backbone's name in the names of files; folders of one name are told apart by a digest of
    their paths.
    """
    whole = Path(backbone).resolve()
    return (
        f"{whole.name}-{sha256(str(whole).encode()).hexdigest()[:8]}"
        if whole.is_dir()
        else backbone
    )
