"""The verbs of `repro` around the book and its numbers: book, run, notebooks, compare, data, doctor, export."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from repro.terminal import complain, say, shows_progress
from repro.types import InputError, installed, installing, one_of

if TYPE_CHECKING:
    from repro.models import SentenceEncoder

PACKAGES = ("torch", "transformers", "scikit-learn", "papermill", "jupytext", "jupyter-book", "datasets", "accelerate")
Pairs = Annotated[tyro.conf.UseAppendAction[list[tuple[str, str]]], tyro.conf.arg(aliases=["-p"], metavar="NAME VALUE")]


def book(
    only: tuple[str, ...] = (),
    force: bool = False,
    profile: Literal["embedded", "gpu", "paper"] = "embedded",
    timeout: float | None = None,
) -> int:
    """The book as web pages in `_build/html`: pages that changed are executed, and all are rendered.

    Args:
        only: names of pages to execute, the others stay as they are; by default all that changed.
        force: execute all pages, changed or not.
        profile: size of the experiments.
        timeout: seconds one cell may take; by default as long as it needs.
    """
    from repro.book.builder import build
    from repro.paths import project_root

    built = build(project_root(), profile=profile, only=only or None, force=force, timeout=timeout)
    for line in built.complaints:
        complain(line)
    for page in built.failures:
        complain(f"{page.name} failed: {page.error}")
    say(f"{'the book is' if built.ok else 'the book, with faults, is'} at {built.index} ({built.seconds:.0f} s)")
    return 0 if built.ok else 1


def run(
    notebook: tyro.conf.Positional[Path],
    p: Pairs,
    output: Path | None = None,
    record: bool = False,
    timeout: float | None = None,
) -> int:
    """One page of the book with dims, networks or seeds of your own, as an executed notebook.

    A wrong name or type of a parameter is refused, and the valid ones are listed.

    Args:
        notebook: path of a notebook, or its bare name.
        p: a notebook parameter; may be given several times.
        output: where the executed notebook goes; by default below `runs/`.
        record: append its rows to `results/`.
        timeout: seconds one cell may take; by default as long as it needs.
    """
    from repro.book import notebook as notebooks
    from repro.config import PROFILES
    from repro.paths import writable_file

    source = notebooks.locate(notebook)
    given = dict(p) | ({"record": "True"} if record else {})
    values = notebooks.from_here(notebooks.validate(notebooks.parameters_of(source), given))
    if "profile" in values:
        one_of(values["profile"], list(PROFILES), "profile")
    target = writable_file(output) if output else notebooks.default_output(source, values)
    try:
        notebooks.run(source, target, values, timeout=timeout, progress=shows_progress())
    except notebooks.NotebookError as error:
        complain(f"{error} (the notebook up to that cell is at {target})")
        return 1
    say(f"executed: {target}")
    return 0


def notebooks() -> int:
    """All pages as `notebooks/*.ipynb`, not yet executed, for Jupyter and plain papermill."""
    from repro.book.notebook import to_ipynb
    from repro.paths import project_root

    folder = project_root() / "notebooks"
    for source in sorted(folder.glob("*.md")):
        say(str(to_ipynb(source, folder)))
    return 0


def compare(
    experiment: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="[EXPERIMENT]")] = None,
) -> int:
    """A paper's printed numbers beside those measured here; without a name, the verdicts on all claims.

    Args:
        experiment: such as wang_table1; by default the scorecard of all claims.
    """
    from repro.papers.recorded import experiment_lines, scorecard_lines

    for line in scorecard_lines() if experiment is None else experiment_lines(experiment):
        say(line)
    return 0


def data(
    verb: tyro.conf.Positional[Literal["list", "check", "fetch"]],
    name: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="[NAME]")] = None,
) -> int:
    """The datasets there are, whether your files of them are whole, or one of them from the hub.

    Args:
        verb: list them, check local files against the official counts, or fetch one from the hub.
        name: one dataset, needed for fetch; by default check looks at all.
    """
    from repro import data as sets

    if verb == "list":
        for row in sets.describe():
            say(
                f"{row['name']:<10} {row['title']:<28} {row['rows']:>24} rows  "
                f"local: {row['local']:<4} hub: {row['hub']:<40} {row['licence']}"
            )
        return 0
    if verb == "check":
        found = list(sets.check(name))
        for item in found:
            expected = " or ".join(f"{count:,}" for count in item.expected)
            count = "–" if item.found is None else f"{item.found:,}"
            say(f"{'ok ' if item.ok else 'BAD'} {item.name:<10} {item.split:<32} {count:>9} of {expected} {item.note}")
        return 0 if all(item.ok for item in found) else 1
    if name is None:
        raise InputError("fetch needs a dataset name: `repro data list` shows them")
    from repro.data.hub import fetch  # brings pyarrow

    for path in fetch(name):
        say(str(path))
    return 0


def doctor(repair: bool = False) -> int:
    """Whether installation, data and stored artefacts are in order; with --repair they are mended.

    Args:
        repair: move damaged artefacts aside, so that they are made anew, and remove what killed runs left.
    """
    faults = 0
    for line, bad in examine(repair=repair):
        say(("BAD " if bad else "ok  ") + line)
        faults += bad
    return 0 if repair or not faults else 1


def examine(*, repair: bool = False) -> Iterator[tuple[str, bool]]:
    """Findings of `repro doctor`, one by one: a line, and whether it is a fault."""
    from repro import paths
    from repro.models.pretrained import MINILM, SHIPPED, locate
    from repro.rows import hardware
    from repro.store import Store

    yield f"hardware: {hardware()}", False
    for package in PACKAGES:
        absent = (found := installed(package)) == "absent"
        yield f"{package} {found}" + (f": `make .venv/.ready`, or {installing('all')}" if absent else ""), absent
    for name in (*SHIPPED, MINILM):
        try:
            yield f"backbone {name}: {locate(name)}", False
        except InputError as error:
            yield f"backbone {name}: {error}", True
    yield f"REPRO_DATA: {paths.data_folder() or 'not set; the microworld is used'}", False
    store = Store()
    there = next(folder for folder in (store.home, *store.home.parents) if folder.exists())
    yield f"store: {store.home} ({shutil.disk_usage(there).free / 1e9:.1f} GB free)", False
    artefacts = list(store.artefacts())
    for artefact in artefacts:
        fault = store.fault(artefact)
        if fault:
            if repair:
                store.set_aside(artefact, fault)
            yield f"{artefact}: {fault}; {'moved' if repair else '`repro doctor --repair` moves it'} aside", True
    yield f"{len(artefacts)} artefacts examined", False
    for partial in store.partials():
        if not partial.exists() or not store.abandoned(partial):
            continue  # went with the folder it was in, or is still being written
        if repair:
            shutil.rmtree(partial) if partial.is_dir() else partial.unlink()
        yield f"{partial}: left by a killed run" + ("; removed" if repair else ""), True


def export(
    output: Path,
    encoder: str | None = None,
    layer: int | None = None,
    dim: int | None = None,
    reducer: Path | None = None,
    pooling: Literal["cls", "mean", "last"] | None = None,
    normalize: bool = False,
) -> int:
    """A folder that `SentenceTransformer` loads: an encoder as it is, cut to a layer, or followed by a reducer.

    Args:
        output: a new folder.
        encoder: name, folder or hub id, such as a folder that `repro train --output` wrote; by default the one that
            --reducer was fitted on.
        layer: leave out the blocks above this one; the pooler, which reads the last, is left out too. By default the
            layer that --reducer was fitted on, else the last.
        dim: keep the first so many numbers; by default all.
        reducer: folder of a reducer that `repro advise` wrote, fitted on this encoder's embeddings; by default none.
        pooling: token states to sentence state; by default the encoder's own.
        normalize: end with rows of length 1, as after a --reducer that was judged by cosines in any case.
    """
    from repro.models import SentenceEncoder
    from repro.models.folders import export_folder
    from repro.reducers.export import read_linear, read_note

    map_, note = (None, {}) if reducer is None else (read_linear(reducer), read_note(reducer))
    name = note.get("encoder") if encoder is None else encoder
    if name is None:
        raise InputError("give --encoder, or with --reducer the folder that `repro advise --encoder` wrote")
    network = SentenceEncoder.load(name, pooling=pooling, prompt=note.get("prompt"))
    normalize |= note.get("compared_by") == "cosine"
    if "encoder" in note:
        layer = _layer_fitted_on(network, layer, note)
        if Path(name).name != Path(note["encoder"]).name:
            complain(f"warning: the reducer was fitted on {note['encoder']}, and is put behind {name}")
    unit = bool(note.get("unit_rows"))
    export_folder(network, output, layer=layer, dim=dim, reducer=map_, unit_rows=unit, normalize=normalize)
    megabytes = sum(path.stat().st_size for path in output.rglob("*") if path.is_file()) / 1e6
    say(f"{output}: {network.n_layers} layers, {megabytes:.1f} MB; SentenceTransformer({str(output)!r}) loads it")
    return 0


def _layer_fitted_on(network: "SentenceEncoder", layer: int | None, note: dict[str, Any]) -> int | None:
    """The layer that a reducer was fitted on, after checking that no other layer or pooling is asked for."""
    if network.pooling != note.get("pooling", network.pooling):
        raise InputError(
            f"--pooling {network.pooling}: the reducer was fitted on {note['pooling']} pooling; leave --pooling out"
        )
    noted: int | None = note.get("layer")
    fitted, asked = (network.backbone.layer_index(at) for at in (noted, noted if layer is None else layer))
    if asked != fitted:
        raise InputError(
            f"--layer {asked}: the reducer was fitted on layer {fitted} of {network.n_layers}; leave --layer out, or "
            "fit a reducer on that one"
        )
    return noted
