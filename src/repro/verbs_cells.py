"""The verb of `repro` on long runs: `sweep` runs a page's cells in a local pool."""

from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import tyro

from repro.terminal import ProfileName, complain, say
from repro.types import InputError, check_dim

Pairs = Annotated[
    tyro.conf.UseAppendAction[list[tuple[str, str]]],
    tyro.conf.arg(aliases=["-p"], metavar="NAME VALUE"),
]


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
    from repro import data
    from repro.book import notebook
    from repro.config import PROFILES
    from repro.paths import inside, project_root
    from repro.report.page import command
    from repro.rows import read_recorded, results_folder
    from repro.seeding import cpu_count, environment

    known: dict[tuple[str, str | None], str] = {}
    for path in results_folder().glob("*.parquet"):
        rows = read_recorded(path)[["command", "data_source", "commit", "created"]]
        runs = rows.dropna(subset=["command", "data_source"]).drop_duplicates()
        for told, place, made_by, created in runs.fillna("unknown").to_numpy():
            made = f"{created[:10]}, commit {made_by or 'unknown'}"
            known[told, place] = known[told, None] = made  # of pages whose source is no parameter
    cells = []
    for source, backbone, seed in product(map(notebook.locate, notebooks), backbones, seeds):
        declared = notebook.parameters_of(source)
        given: dict[str, Any] = {
            "profile": profile,
            "backbone": backbone,
            "seed": seed,
            "record": True,
            **dict(p),
        }
        values = notebook.from_here(
            notebook.validate(declared, given | ({"dims": list(dims)} if dims else {}))
        )
        told = command(
            source.stem,
            {name: values.get(name, each.default) for name, each in declared.items()},
        )
        place = values.get("source") or PROFILES[profile].source or data.default_source()
        place = place if "source" in declared else None
        target = inside(
            project_root() / "runs" / source.stem,
            f"{label_of(backbone)}-seed{seed}.ipynb",
        )
        is_asked_anyhow = force or Path(backbone).is_dir()
        made = "" if is_asked_anyhow else known.get((told, place), "")
        cells.append((source, target, values, made))
    if not cells:
        raise InputError("nothing to run: give at least one notebook, backbone and seed")
    usual = min(2, cpu_count()) if profile == "embedded" else 1
    lanes = usual if workers is None else check_dim(workers, what="workers")
    share = str(max(1, cpu_count() // lanes))

    def done(cell: tuple[Path, Path, dict[str, Any], str]) -> bool:
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

    with (
        environment({"REPRO_THREADS": share, "OMP_NUM_THREADS": share}),
        ThreadPoolExecutor(lanes) as pool,
    ):
        return int(not all([*pool.map(done, cells)]))


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
