"""The verbs of `repro` on long runs: `sweep` runs a page's cells in a local pool, `plan` says what
they will cost.
"""

from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from itertools import product
from pathlib import Path
from timeit import repeat
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


def plan(notebook: tyro.conf.Positional[Path], p: Pairs, flops: float | None = None) -> int:
    """What a page's trainings would cost under some parameters, in operations, memory, disk and
    hours; none is spent.

    The page's own code is followed, on generated texts, up to where it needs an encoder.

    Args:
        notebook: path of a notebook, or its bare name.
        p: a notebook parameter; may be given several times.
        flops: operations a second; by default what a product of matrices reaches here, the most
            that can be.
    """
    from repro.book import notebook as notebooks
    from repro.config import PROFILES
    from repro.runs.plan import LENGTH, estimate, follow

    source = notebooks.locate(notebook)
    declared = notebooks.parameters_of(source)
    usual = {"source": "microworld"} if "source" in declared else {}
    values = notebooks.from_here(notebooks.validate(declared, dict(p) | usual))
    cells = [cell.source for cell in notebooks.read(source).cells if cell.cell_type == "code"]
    found, stopped = follow(cells, values)
    known = values.get("seeds", declared["seeds"].default) if "seeds" in declared else [0]
    repeats = len(known or PROFILES[values.get("profile", "embedded")].seeds)
    noted = len({each["seed"] for each in found if "objective" in each}) or 1
    step_two = any("train_two_step(" in code for code in cells)
    total = estimate(found, seeds=max(1, repeats // noted), step_two=step_two)
    if not total["trainings"]:
        raise InputError(
            f"no training of {source.name} comes before {stopped.splitlines()[0][:200]}"
        )
    rate = flops or _matmul_rate()
    say(
        f"trainings    {total['trainings']:,.0f}, after each at most "
        f"{total['texts']:,.0f} texts are encoded"
    )
    say(
        f"operations   {total['operations']:.2e}, if every text has {LENGTH} "
        "tokens or what its training cuts it to"
    )
    say(
        f"memory       {total['memory'] / 1e9:.1f} GB: weights, gradients, Adam's "
        "moments, the states of a batch"
    )
    say(f"disk         {total['disk'] / 1e9:.1f} GB: encoders and embeddings")
    say(f"hours        {total['operations'] / rate / 3600:.2g} at {rate:.2e} operations a second")
    return 0


def _matmul_rate() -> float:
    """Operations a second of a product of two matrices, the fastest of twenty."""
    import torch

    from repro.models.pretrained import default_device

    A = torch.randn(1024, 1024, device=default_device())
    return 2 * 1024**3 / min(repeat(lambda: float((A @ A)[0, 0]), number=1, repeat=20))
