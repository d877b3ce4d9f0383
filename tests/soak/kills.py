"""Commands that are ended at any moment: the same command then ends in the same bytes, and nothing half stands there."""

import json
import os
import random
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.soak.material import SMALL
from tests.soak.process import ended, forked, orphans

from repro.book import kernel
from repro.cli import VERBS, apply, main

CELLS = """---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {display_name: Python 3, language: python, name: python3}
---

# Toy

```{code-cell} ipython3
:tags: [parameters]

dims: list[int] = [8]  # sizes
```

```{code-cell} ipython3
import numpy as np
from repro.store import Store
X = Store().remember("soak", {"dims": dims}, lambda: np.arange(max(dims)) / 7, code="repro.store")
print(X)
```

```{code-cell} ipython3
print(X.sum())
```
"""
TIMES = re.compile(r"\d[\d.,]*(?= ?(ms|s)\b)|\d+ cores; \S+ s\.")


@dataclass
class Command:
    """A command on the material of a folder; its outputs are below the folder where it runs."""

    line: str
    """with {m} for the folder of the material; outputs are named `out…`"""
    share: float
    """of all kills"""
    made: dict[str, Any] = field(default_factory=dict)
    """what it leaves if nothing stops it, without times"""
    seconds: float = 0.0

    def run(self) -> None:
        """Run it where we stand."""
        sys.modules["__main__"] = ModuleType("__main__")  # what processes that are started anew would import
        kernel.IMPORTED = ("ipykernel.kernelapp",)  # what these pages need: a second in place of six
        main(self.line.split(), verbs={**VERBS, "apply": apply})


COMMANDS = {
    "train": Command(
        "train --backbone {m}/tiny --dims 8 --sentences 256 --batch-size 8 --source microworld --output out", 0.2
    ),
    "train in two processes": Command(
        "train --backbone {m}/tiny --dims 8 4 --sentences 64 --source microworld --workers 2 --output out", 0.01
    ),
    "encode": Command("encode --encoder {m}/tiny --texts {m}/texts.txt --output out.npy", 0.2),
    "reduce": Command("reduce --method autoencoder --dim 8 --input {m}/X.npy --output out.npy", 0.14),
    "advise": Command("advise {m}/X.npy --output out " + SMALL, 0.2),
    "apply": Command("apply {m}/X.npy --advice {m}/advice --rows-per-shard 20 --output out", 0.1),
    "run": Command("run notebooks/toy.md -p dims [8,4] --output out.ipynb", 0.1),
    "book": Command("book", 0.03),
}


def toy_book(folder: Path) -> None:
    """A checkout of two pages."""
    for name, text in {
        "_config.yml": "title: Toy\nonly_build_toc_files: true\n",
        "_toc.yml": "format: jb-book\nroot: book/index\nchapters:\n- file: notebooks/toy\n",
        "book/index.md": "# Book\n\nWords.\n",
        "notebooks/toy.md": CELLS,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def began(command: Command, folder: Path) -> int:
    """Start a command in a folder, with a store of its own there."""
    if not (folder / "book").exists():
        toy_book(folder)

    def work() -> None:
        os.chdir(folder)
        command.run()

    return forked(work, folder / "log", REPRO_HOME=str(folder / "home"))


def reference(command: Command, folder: Path) -> None:
    """Let a command run to its end, and note what it left and how long it took."""
    started = time.perf_counter()
    code = ended(began(command, folder), 300)
    if code:
        raise RuntimeError(f"{command.line} ended with {code}: {(folder / 'log').read_text()[-2000:]}")
    command.seconds, command.made = time.perf_counter() - started, made(folder)


def made(folder: Path) -> dict[str, Any]:
    """What lies at the names of outputs, without what tells the time."""
    found = [path for path in sorted(folder.glob("out*")) if ".partial" not in path.name]
    files = [file for path in found for file in ([path] if path.is_file() else sorted(path.rglob("*")))]
    files += [*folder.glob("_build/book/**/*.ipynb"), *folder.glob("_build/html/*/*.html")]
    return {
        str(file.relative_to(folder)): _timeless(file)
        for file in files
        if file.is_file() and ".partial" not in file.name and not file.name.endswith(".lock")
    }


def half(command: Command, folder: Path) -> list[str]:
    """The files that stand at names of outputs and are not what a whole run leaves there."""
    growing = ("_build", "out/vectors.json")  # a book is built page by page; the note of shards names those there are
    found = {path: value for path, value in made(folder).items() if not path.startswith(growing)}
    return [path for path, value in found.items() if command.made.get(path) != value]


def _timeless(file: Path) -> Any:
    if file.suffix == ".ipynb":
        return [(cell["source"], _said(cell)) for cell in json.loads(file.read_text())["cells"]]
    if file.suffix in (".html", ".json"):
        text = file.read_text()
        if file.name == "report.html":  # draws and tells milliseconds: whole if it ends
            return text.rstrip().endswith("</html>")
        if file.name == "manifest.json" or file.name == "history.json" or file.name == "report.json":
            return _without(json.loads(text), ("seconds", "seal", "ms", "resumed_at", "files", "measured"))
        return text
    return file.read_bytes()


def _said(cell: Any) -> list[Any]:
    return [output.get("text") for output in cell.get("outputs", [])]


def _without(node: Any, names: tuple[str, ...]) -> Any:
    if isinstance(node, dict):
        return {name: _without(value, names) for name, value in node.items() if name not in names}
    return [_without(value, names) for value in node] if isinstance(node, list) else node


def measure(folder: Path) -> None:
    """Run every command to its end."""
    for number, command in enumerate(COMMANDS.values()):
        command.line = command.line.format(m=folder / "material")
        reference(command, folder / f"reference{number}")


def trials(name: str, how: signal.Signals, m: Path, rng: random.Random, folder: Path, count: int) -> Iterator[str]:
    """End a command at random moments, run it again to its end, and say what is wrong, if anything."""
    command = COMMANDS[name]
    for number in range(count):
        place = folder / f"{name}-{number}".replace(" ", "-")
        yield _trial(command, how, rng, place)
        shutil.rmtree(place, ignore_errors=True)


def _trial(command: Command, how: signal.Signals, rng: random.Random, place: Path) -> str:
    pid, delay = began(command, place), rng.uniform(0, command.seconds)
    time.sleep(delay)
    group = how is signal.SIGINT  # which a terminal sends to all
    (os.killpg if group else os.kill)(pid, how)
    code, left = ended(pid), orphans()
    said, when = (place / "log").read_text(), f"{how.name} after {delay:.2f} s"
    if code is None or left:
        return f"{when}: {'it goes on' if code is None else 'left running'}: {left}; {said[-300:]}"
    if wrong := half(command, place):
        return f"{when}: half of {wrong} stands there"
    if how is not signal.SIGKILL and "Traceback" in said:
        return f"{when}: a traceback: {said[-600:]}"
    partials = [str(path.relative_to(place)) for path in place.rglob("*.partial*")]
    partials = [
        path for path in partials if not path.startswith("home")
    ]  # the store's own scratch goes with the next run
    if how is not signal.SIGKILL and partials:
        return f"{when}: {partials} left"
    if code := ended(began(command, place), 300):
        return f"{when}: run again, it ended with {code}: {(place / 'log').read_text()[-600:]}"
    again = made(place)
    if differing := sorted(path for path in {*again, *command.made} if again.get(path) != command.made.get(path)):
        return f"{when}: run again, {differing} differ"
    if partials := [str(path.relative_to(place)) for path in place.rglob("*.partial*")]:
        return f"{when}: run again, {partials} left"
    return ""
