"""Commands that are ended at any moment: given again they end in the same bytes, and nothing half
stands there.
"""

import json
import os
import shutil
import signal
import sys
import time
from dataclasses import dataclass, field
from types import ModuleType

from tests.soak.material import SMALL
from tests.soak.process import ended, forked, orphans

from repro.book import kernel
from repro.cli import VERBS, apply, main

CELL = "```{code-cell} ipython3\n%s\n```\n\n"
TOY = {
    "_config.yml": "title: Toy\nonly_build_toc_files: true\n",
    "_toc.yml": "format: jb-book\nroot: book/index\nchapters:\n- file: notebooks/toy\n",
    "book/index.md": "# Book\n\nWords.\n",
    "notebooks/toy.md": "---\njupytext:\n"
    "  text_representation: {extension: .md, format_name: myst}\n"
    "kernelspec: {display_name: Python 3, language: python, name: python3}\n---\n\n# Toy\n\n"
    + CELL % ":tags: [parameters]\n\ndims: list[int] = [8]"
    + CELL
    % "from repro.store import Store\nprint(Store().remember('toy', {'dims': "
    "dims}, lambda: dims, code='repro.store'))" + CELL % "print(sum(dims))",
}
# What notes say of time, and its digests
TIMES = ("seconds", "seal", "page", "ms", "resumed_at", "files", "measured")
# A book is built page by page, and the note of shards names those there are
GROWING = ("_build", "out/vectors.json")


@dataclass
class Command:
    """A command on the material, {m}; what it writes is named `out…` or is a book."""

    line: str
    share: float  # Of all kills
    made: dict = field(default_factory=dict)  # What it leaves if nothing stops it, without times
    seconds: float = 0.0

    def begin(self, folder):
        """Start it in a folder, with a book and a store of its own there."""
        for name, text in TOY.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        (folder / "log").touch()

        def work():
            os.chdir(folder)
            # Which processes that are started anew would import
            sys.modules["__main__"] = ModuleType("__main__")
            # All that the page needs: a second in place of six
            kernel.IMPORTED = ("ipykernel.kernelapp",)
            main(self.line.split(), verbs={**VERBS, "apply": apply})

        return forked(work, folder / "log", REPRO_HOME=str(folder / "home"))

    def half(self, folder):
        """The files at names of outputs that are not what a whole run leaves there."""
        found = {
            path: value for path, value in made(folder).items() if not path.startswith(GROWING)
        }
        return [path for path, value in found.items() if self.made.get(path) != value]


TRAIN = "train --backbone {m}/tiny --source microworld --output out --sentences"
ESE = "--objective ese --layer-weights learned --pooling mean"
COMMANDS = {
    "train": Command(f"{TRAIN} 256 --batch-size 8 --dims 8", 0.15),
    "train ESE": Command(f"{TRAIN} 256 --batch-size 8 --dims 8 {ESE}", 0.05),
    "train in two processes": Command(f"{TRAIN} 64 --dims 8 4 --workers 2", 0.01),
    "encode": Command("encode --encoder {m}/tiny --texts {m}/texts.txt --output out.npy", 0.2),
    "reduce": Command(
        "reduce --method autoencoder --dim 8 --input {m}/X.npy --output out.npy",
        0.14,
    ),
    "advise": Command("advise {m}/X.npy --output out " + SMALL, 0.2),
    "apply": Command("apply {m}/X.npy --advice {m}/advice --rows-per-shard 20 --output out", 0.1),
    "run": Command("run notebooks/toy.md -p dims [8,4] --output out.ipynb", 0.1),
    "book": Command("book", 0.1),
}


def measure(folder, chosen):
    """Run the chosen commands to their ends, and note what they leave and how long they take."""
    for number, name in enumerate(chosen):
        command, place, started = COMMANDS[name], folder / f"whole{number}", time.perf_counter()
        command.line = command.line.format(m=folder / "material")
        if code := ended(command.begin(place), 300):
            raise SystemExit(f"{command.line} ended with {code}: {(place / 'log').read_text()}")
        command.seconds, command.made = time.perf_counter() - started, made(place)


def made(folder):
    """What lies at the names of outputs, without what tells the time."""
    files = [*folder.glob("out*"), *folder.glob("out/**/*"), *folder.glob("_build/book/**/*.ipynb")]
    files = [file for file in (*files, *folder.glob("_build/html/*/*.html")) if file.is_file()]
    kept = [file for file in files if ".partial" not in file.name and file.suffix != ".lock"]
    return {str(file.relative_to(folder)): _timeless(file) for file in kept}


def _timeless(file):
    if file.suffix == ".ipynb":
        cells = json.loads(file.read_text())["cells"]
        return [
            (cell["source"], [output.get("text") for output in cell.get("outputs", [])])
            for cell in cells
        ]
    if file.name == "report.html":  # Draws milliseconds: whole if it ends
        return file.read_text().rstrip().endswith("</html>")
    return (
        _without_times(json.loads(file.read_text()))
        if file.suffix == ".json"
        else file.read_bytes()
    )


def _without_times(node):
    if isinstance(node, dict):
        return {name: _without_times(value) for name, value in node.items() if name not in TIMES}
    return [_without_times(value) for value in node] if isinstance(node, list) else node


def trials(name, how, m, rng, folder, count):
    """End a command at random moments, and run it again to its end; what is wrong, if anything."""
    for number in range(count):
        yield _trial(COMMANDS[name], how, rng, folder / str(number))
        shutil.rmtree(folder / str(number))


def _trial(command, how, rng, place):
    pid, delay = command.begin(place), rng.uniform(0, command.seconds)
    time.sleep(delay)
    # A terminal interrupts all, the others are told one by one
    end = os.killpg if how is signal.SIGINT else os.kill
    end(pid, how)
    code, left = ended(pid), orphans()
    said, when = (place / "log").read_text(), f"{how.name} after {delay:.2f} s"
    partials = [path for path in place.rglob("*.partial*") if place / "home" not in path.parents]
    if code is None or left:
        return f"{when}: goes on: {left or command.line}; {said[-300:]}"
    if half := command.half(place):
        return f"{when}: half of {half} stands there"
    if how is not signal.SIGKILL and (partials or "Traceback" in said):
        return f"{when}: {partials} left; {said[-600:]}"
    if code := ended(command.begin(place), 300):
        return f"{when}: run again, it ended with {code}: {(place / 'log').read_text()[-600:]}"
    again, partials = made(place), list(place.rglob("*.partial*"))
    differing = [
        path for path in again.keys() | command.made if again.get(path) != command.made.get(path)
    ]
    return (
        f"{when}: run again, {differing} differ, {partials} left" if differing or partials else ""
    )
