"""Other people's files in and beside our folders: whatever our commands do, they stay, byte for
byte.
"""

import os
import shutil
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
from tests.soak.kills import TOY
from tests.soak.material import SMALL
from tests.soak.process import ended, forked

from repro.cli import VERBS, apply, main
from repro.store import Store
from repro.writing import partial_of

PLACES = {
    "home": (
        "film.mkv.partial",
        "manifest.json",
        "notes.txt",
        "thesis/old.partial/draft.txt",
        "site/0123456789abcdef/manifest.json",
        "site/0123456789abcdef/index.html",
        "things/readme.md",
        "things/photos/manifest.json",
        "things/mine.123.partial",
        "work/notes.txt",
        "work/things/draft.txt",
        "damaged/letters.txt",
        "0123456789abcdef.1.partial",
    ),
    "out": (
        "notes.txt",
        "plan.partial",
        "manifest.json",
        "dim8/diary.txt",
        "old/part-00000.npy",
        "vectors.json.bak",
    ),
    "_build": ("notes.txt", "mine/index.html", "html/diary.txt", "book/notes.ipynb"),
    "notebooks": ("mine.ipynb", "notes.txt", "toy.ipynb"),
    "runs": ("notes.ipynb", "toy-mine.ipynb"),
    "results": ("notes.txt", "mine.csv"),
}
"""By folder the names that others may have given."""
LINES = {
    "doctor": "doctor --repair",
    "notebooks": "notebooks",
    "train": "train --backbone {m}/tiny --source microworld --sentences 64 "
    "--batch-size 8 --dims 8 --output out",
    "export": "export --encoder {m}/encoder --pooling mean --dim 6 --output out",
    "advise": f"advise {{m}}/X.npy --output out {SMALL}",
    "apply": "apply {m}/X.npy --advice {m}/advice --rows-per-shard 200 --output out",
    "run": "run notebooks/toy.md -p dims [8,4] --record",
    "book": "book",
}
"""Commands on the material, {m}, none of which names any of those files."""


def sprinkled(place, rng):
    """Write some of the foreign files; their paths and contents."""
    written = {}
    for folder, names in PLACES.items():
        for name in rng.sample(names, rng.randint(1, len(names))):
            path = place / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(rng.choice((b"{}", b'{"files": {}, "seconds": 1}', rng.randbytes(40))))
            written[path] = path.read_bytes()
    return written


def beside_our_store(home, rng):
    """A store of ours with an artefact, now and then a damaged one and what a killed run left."""
    kept = np.arange(9.0)
    Store(home).remember("things", {"n": 1}, lambda: kept, code="repro.types")
    Store(home).remember("things", {"n": 2}, lambda: kept, code="repro.types")
    artefacts = sorted(path for path in (home / "things").iterdir() if path.is_dir())
    if rng.random() < 0.5:
        (artefacts[0] / "value.npy").write_bytes(b"damaged")
    if rng.random() < 0.5:
        with mock.patch("os.getpid", return_value=999_999_999):
            left = partial_of(artefacts[1], folder=True)
        left.mkdir()
        (left / "value.npy").write_bytes(b"half")


def trials(name, m, rng, folder, count):
    """A command among such files, of which some lie in a store that another run made."""
    line = LINES[name].format(m=m)
    for number in range(count):
        place = folder / str(number)
        place.mkdir()
        for toy, text in TOY.items():
            (place / toy).parent.mkdir(parents=True, exist_ok=True)
            (place / toy).write_text(text)
        beside_our_store(place / "home", rng)
        written = sprinkled(place, rng)

        def work(place=place):
            os.chdir(place)
            main(line.split(), verbs={**VERBS, "apply": apply})

        log = folder / f"log{number}"
        code = ended(forked(work, log, REPRO_HOME=str(place / "home")), 300)
        heard = log.read_text()
        aside = [path.read_bytes() for path in place.glob("_build/aside/**/*") if path.is_file()]
        lost = []
        for path, content in written.items():
            # Sphinx renders whatever lies in its tree, so that a build moves from there what is not
            # its own.
            moved = "_build/book" in str(path) and content in aside
            if not moved and not kept_as(path, content):
                lost.append(str(path.relative_to(place)))
        if lost:
            yield f"{lost} changed or gone; {heard[-300:]}"
        elif code not in (0, 1, 2) or "Traceback" in heard:
            yield f"ended with {code}: {heard[-500:]}"
        else:
            yield ""
        shutil.rmtree(place)


def kept_as(path: Path, content: bytes) -> bool:
    """Whether a file is where it was, as it was."""
    return path.is_file() and path.read_bytes() == content


TOTALS = {
    "doctor": 200,
    "notebooks": 50,
    "apply": 50,
    "run": 30,
    "export": 30,
    "train": 20,
    "advise": 20,
    "book": 4,
}
KINDS = {
    f"{name} beside foreign files": (partial(trials, name), total) for name, total in TOTALS.items()
}
