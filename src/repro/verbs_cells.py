"""The verb of `repro` on long runs: `sweep` runs a page's cells in a local pool."""

import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import tyro

from repro.terminal import ProfileName, complain, explained, say
from repro.types import InputError, check_dim
from repro.verb_options import Pairs

if TYPE_CHECKING:
    from repro.book.parameters import Parameter
    from repro.printed import PrintedRun

Cell: TypeAlias = tuple[Path, Path, Mapping[str, Any], str]
"""A notebook, where its run goes, its parameters, and when it was recorded, if it was."""
Run: TypeAlias = tuple[str, str | None]
"""The command of a run, and where its data came from."""


@dataclass(frozen=True)
class Sweep:
    """What is run over what.

    Args:
        notebooks: paths of notebooks, whose cells always run, since names of files repeat, or bare
            names of those in the checkout.
        p: another parameter of all cells; may be given several times.
        backbones: networks of pages with a parameter `backbone` or `backbones`: shipped names, hub
            ids, or folders, whose cells always run, since names of folders repeat. By default what
            the page's paper has under the profile paper, else the page's own.
        encoders: the same of pages with `encoder` or `encoders`.
        seeds: of everything drawn; by default the profile's.
        dims: sizes of every cell; by default the page's.
        profile: size of the experiments.
        workers: cells side by side; by default two on two cores or more, and one of the profiles
            for a GPU.
        force: run every cell, recorded or not, as is due after a change of data or code.
        plan: run nothing, and print each cell as a line of JSON: its output, and the `repro` that
            makes it.
    """

    notebooks: tyro.conf.Positional[tuple[Path, ...]]
    p: Pairs
    backbones: tuple[str, ...] = ()
    encoders: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    dims: tuple[int, ...] = ()
    profile: ProfileName = "embedded"
    workers: int | None = None
    force: bool = False
    plan: bool = False


def sweep(options: Sweep) -> int:
    """Pages over networks and seeds, side by side, their rows recorded: the cells of the
    `Snakefile`, on one machine.

    A cell whose rows are in `results/` is left out: a stopped or a longer sweep runs only what is
    missing.

    Rows do not tell whether data or code have changed since: --force runs all cells.
    """
    from repro.book.notebook import locate
    from repro.book.parameters import from_here, parameters_of, validate
    from repro.printed import completed
    from repro.seeding import cpu_count, environment

    usual = min(2, cpu_count()) if options.profile == "embedded" else 1
    lanes = usual if options.workers is None else check_dim(options.workers, what="workers")
    recorded_runs = {} if options.plan else _recorded_runs()
    cells: list[Cell] = []
    given_at: dict[Path, tuple[Path, dict[str, Any]]] = {}
    for source in dict.fromkeys(map(locate, options.notebooks)):
        declared = parameters_of(source)
        for target, parameters in _cells_of(source, declared, options):
            all_parameters = completed(source.stem, parameters)
            values = from_here(validate(declared, all_parameters))
            if target in given_at:  # Asked for twice, such as `network` and `./network`
                _refuse_others(target, given_at[target], (source, values))
                continue
            given_at[target] = source, values
            if options.plan:
                say(json.dumps(_plan_of(source, target, parameters)))
            of_folders = any(
                Path(name).is_dir() for name in (*options.backbones, *options.encoders)
            )
            is_asked_anyhow = options.force or of_folders or not _is_found_by_name(source)
            recorded_when = ""
            if not is_asked_anyhow:
                recorded_when = recorded_runs.get(
                    _run_of(source, declared, values, options.profile), ""
                )
            cells.append((source, target, values, recorded_when))
    if not cells:
        raise InputError("nothing to run: give at least one notebook")
    if options.plan:
        return 0
    share = str(max(1, cpu_count() // lanes))
    with (
        environment({"REPRO_THREADS": share, "OMP_NUM_THREADS": share}),
        ThreadPoolExecutor(lanes) as pool,
    ):
        return int(not all([*pool.map(_is_done, cells)]))


def _refuse_others(
    target: Path,
    first: tuple[Path, Mapping[str, Any]],
    second: tuple[Path, Mapping[str, Any]],
) -> None:
    """Refuse two runs of one output that are not the same: the later would replace the earlier, or
    be written into it.
    """
    if first != second:
        cells = " and ".join(f"{source} with {dict(values)}" for source, values in (first, second))
        raise InputError(f"{cells} would both be written to {target}: sweep one alone, and move it")


def _cells_of(
    source: Path,
    declared: Mapping[str, Any],
    options: Sweep,
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Where each run of a page goes, and what it is given; of what all cells share, parameters that
    the page has. What is unusual among these is in the name, so that no run replaces another's, and
    so is the place of a page that its bare name does not find.
    """
    from repro.config import PROFILES
    from repro.digests import digest
    from repro.paths import inside, project_root

    shared: dict[str, Any] = {"profile": options.profile, "record": True}
    shared = {name: value for name, value in shared.items() if name in declared}
    if options.dims:
        shared["dims"] = list(options.dims)
        if "dims" in dict(options.p):
            raise InputError("-p dims and --dims are given: expected one of them")
    if "profile" in dict(options.p):  # Which decides seeds, networks, workers and names of files
        raise InputError("-p profile sets the size of a page alone: expected --profile, of a sweep")
    shared |= dict(options.p)
    usual = {"profile": "embedded", "record": True}
    unusual = {name: value for name, value in shared.items() if usual.get(name) != value}
    ending = f"-{digest(unusual)[:8]}" if unusual else ""
    run = _printed(source, options)
    seeds = options.seeds or (run.seeds if run else PROFILES[options.profile].seeds)
    label = source.stem if _is_found_by_name(source) else _with_digest(source)
    folder = project_root() / "runs" / label
    for chosen, seed in product(_networks(source, declared, options), dict.fromkeys(seeds)):
        by_name = {"seed": seed, "seeds": [seed]}
        seed_values = {name: value for name, value in by_name.items() if name in declared}
        if twice := sorted((seed_values | chosen).keys() & dict(options.p)):
            raise InputError(
                f"-p {twice[0]} is what the cells of {source.stem} differ in: give --seeds, "
                "--backbones or --encoders"
            )
        labels = [label_of(name) for name in networks_in(chosen)] or [options.profile]
        yield (
            inside(folder, f"{'-'.join(labels)}-seed{seed}{ending}.ipynb"),
            seed_values | chosen | shared,
        )


def _printed(source: Path, options: Sweep) -> "PrintedRun | None":
    from repro.printed import PROFILE, printed_run

    return printed_run(source.stem) if options.profile == PROFILE else None


def _networks(
    source: Path,
    declared: Mapping[str, Any],
    options: Sweep,
) -> list[dict[str, Any]]:
    """What each cell sets the page's parameters of networks to: those asked for, else those of its
    paper under the profile `paper`, else nothing.
    """
    run = _printed(source, options)
    by_option = {"backbone": options.backbones, "encoder": options.encoders}
    chosen: list[dict[str, Any]] = [{}]
    fits = False
    for option, networks in by_option.items():
        name = next((name for name in (option, f"{option}s") if name in declared), None)
        if name is None:
            continue
        fits = fits or bool(networks)
        if run and run.over == name:
            networks = networks or run.networks
        if networks:
            once = dict.fromkeys(networks)
            values = [[network] if name.endswith("s") else network for network in once]
            chosen = [{**others, name: value} for others, value in product(chosen, values)]
    if any(by_option.values()) and not fits:
        has = ", ".join(name for name in declared if name.startswith(tuple(by_option))) or "none"
        raise InputError(
            f"{source.stem} takes no such networks (its parameters of networks: {has}): "
            "--backbones sets backbone or backbones, --encoders encoder or encoders"
        )
    return chosen


def networks_in(values: Mapping[str, Any]) -> list[str]:
    """The networks that some parameters name."""
    networks: list[str] = []
    for value in values.values():
        networks += [value] if isinstance(value, str) else value
    return networks


def _plan_of(source: Path, target: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """A cell for other programs: its output, and the arguments of `repro` that make it."""
    from repro.paths import project_root

    command = ["run", str(source), "--output", str(target)]
    for name, value in given.items():
        command += ["-p", name, value if isinstance(value, str) else json.dumps(value)]
    output = target.relative_to(project_root()).as_posix()
    return {"output": output, "command": command}


def _recorded_runs() -> dict[Run, str]:
    """When, and from which commit, each recorded run was made; of pages whose source is no
    parameter also without it.
    """
    from repro.results import read_recorded, results_folder

    made_when: dict[Run, str] = {}
    for path in results_folder().glob("*.parquet"):
        rows = read_recorded(path)[["command", "data_source", "commit", "created"]]
        runs = rows.dropna(subset=["command", "data_source"]).drop_duplicates()
        for command, place, made_by, created in runs.fillna("unknown").to_numpy():
            when = f"{created[:10]}, commit {made_by or 'unknown'}"
            made_when[command, place] = made_when[command, None] = when
    return made_when


def _run_of(
    source: Path, declared: Mapping[str, "Parameter"], values: Mapping[str, Any], profile: str
) -> Run:
    """The command that a cell's rows name, and the source of its data where a page lets it be
    chosen.
    """
    from repro.config import PROFILES
    from repro.data import default_source
    from repro.report.page import command

    command_line = command(
        source.stem,
        {name: values.get(name, parameter.default) for name, parameter in declared.items()},
    )
    place = values.get("source") or PROFILES[profile].source or default_source()
    return command_line, place if "source" in declared else None


def _is_done(cell: Cell) -> bool:
    """Run a cell that is not recorded; whether its rows are there then."""
    from repro.book import execution

    source, target, values, recorded_when = cell
    if recorded_when:
        way_out = "--force runs it again, as is due after a change of data or code"
        say(f"recorded before: {target} ({recorded_when}; {way_out})")
        return True
    try:
        execution.run(source, target, values, forked=True)
    except execution.NotebookError as error:
        place = execution.failed_of(target)
        complain(f"{error} (the notebook up to that cell is at {place})")
        return False
    except InputError as error:
        complain(str(error))
        return False
    except OSError as error:  # Such as of a disk that is full: of this cell alone
        complain(f"{target}: {explained(error)}")
        return False
    say(f"executed: {target}")
    return True


def label_of(backbone: str) -> str:
    """A backbone's name in the names of files; folders of one name are told apart by a digest of
    their paths.
    """
    folder = Path(backbone).resolve()
    return _with_digest(folder) if folder.is_dir() else backbone


def _with_digest(path: Path) -> str:
    """The name of a file or folder without its ending, and a digest of where it is."""
    name = path.stem if path.is_file() else path.name
    return f"{name}-{sha256(os.fsencode(path)).hexdigest()[:8]}"


def _is_found_by_name(source: Path) -> bool:
    """Whether the bare name of a page, which commands and rows tell, finds it in the checkout:
    pages elsewhere may have the names of others.
    """
    from repro.book.notebook import locate

    try:
        return locate(source.stem) == source
    except InputError:
        return False
