"""Files that are damaged in any way: reading them is refused, warned of or mended, and never gives
other values.
"""

import json
import logging
import os
import shutil
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import torch
from tests.soak.material import VECTORS

from dimadvise import deploy
from dimadvise.apply import apply
from dimadvise.vectors import open_vectors
from repro.models import SentenceEncoder
from repro.reading import read_matrix
from repro.report import verdict_frames
from repro.report.claims import claims
from repro.report.verdict import Measurement
from repro.results import read_rows
from repro.store import Store
from repro.training.loop import LoopConfig, train
from repro.types import InputError


def replaced(content, at, piece):
    return content[:at] + piece[: len(content) - at] + content[at + len(piece) :]


def flipped(content, rng):
    at = rng.randrange(len(content))
    return replaced(content, at, bytes([content[at] ^ 1 << rng.randrange(8)]))


UNSUMMED = {
    "another start": lambda content, rng: (
        bytes(b ^ rng.randint(1, 255) for b in content[: rng.randint(8, 64)]) + content[64:]
    ),
    "a cut end": lambda content, rng: content[: rng.randrange(len(content))],
    "nothing in it": lambda content, rng: b"",
    "another kind of content": lambda content, rng: b"PAR1 this is another file \x93NUMPY {}",
    "a neighbour's content": lambda content, rng: None,
    "missing": lambda content, rng: None,
}
"""What is noticed of a format without checksums: a flipped bit of a number there is another number.
"""
ANY = UNSUMMED | {
    "a flipped bit": flipped,
    "a hole": lambda content, rng: replaced(
        content,
        rng.randrange(len(content)),
        bytes(rng.randint(1, 64)),
    ),
    "noise": lambda content, rng: replaced(
        content,
        rng.randrange(len(content)),
        rng.randbytes(rng.randint(1, 64)),
    ),
}


def damage_one(file, way, whole, chosen, ways, rng):
    """Damage a file in one way."""
    damaged = ways[way](whole[file], rng)
    if way.startswith("a neighbour"):
        damaged = whole[rng.choice([path for path in chosen if path.parent == file.parent])]
    if damaged == whole[file]:
        damaged = b""
    file.unlink() if way == "missing" else file.write_bytes(damaged)


def tried(folder, read, rng, count, files="**/*", ways=ANY, spared="", shuffle=None, extra=True):
    """Damage one or two of the files below a folder, now and then put one more there, read, and
    restore them.

    What is wrong with the outcome, if anything.
    """
    whole = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    chosen = [
        path for path in sorted(folder.glob(files)) if path in whole and path.suffix != ".lock"
    ]
    right, heard = read(), []
    logging.getLogger().addHandler(handler := logging.Handler(logging.WARNING))
    handler.emit = heard.append
    for _ in range(count):
        faults = []
        for file in rng.sample(chosen, min(len(chosen), 1 if rng.random() < 0.8 else 2)):
            way = rng.choice([way for way in ways if way != spared])
            damage_one(file, way, whole, chosen, ways, rng)
            faults.append(f"{file.name} {way}")
        if extra and rng.random() < 0.1:
            name = rng.choice(
                ("value.json", "value.npy", "value.b.npy", "pytorch_model.bin", "notes.txt")
            )
            beside = rng.choice(chosen).with_name(name)
            if not beside.exists():
                beside.write_bytes(rng.choice((b"[1]", b"{}", b"")))
                faults.append(f"{name} added")
        if shuffle and rng.random() < 0.1:
            shuffle()
        heard.clear()
        try:
            # Who deletes a network's manifest says that changes to it are meant.
            meant = "manifest.json missing" in faults and len(faults) > 1
            silent = not same(read(), right) and not heard and not meant
            yield f"{' and '.join(faults)}: other values, in silence" if silent else ""
        except InputError:
            yield ""
        except Exception as error:
            yield f"{' and '.join(faults)}: {type(error).__name__}: {error}"
        for path in folder.rglob("*"):
            if path.is_file() and path not in whole:
                path.unlink()
        for path, content in whole.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    logging.getLogger().removeHandler(handler)


def same(a, b):
    """Whether two values are equal, their arrays to the last bit."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return (a.shape, a.tobytes()) == (b.shape, b.tobytes()) if isinstance(a, np.ndarray) else a == b


def of_store(value, m, rng, folder, count):
    """Values in the store, whose folders may be exchanged too; each with the seconds that it
    took.
    """

    def read():
        found = [
            Store(folder).remember("things", {"n": n}, lambda n=n: value(n), code="repro.types")
            for n in (0, 1)
        ]
        notes = sorted(folder.glob("things/*/manifest.json"))
        return found, [json.loads(note.read_text())["seconds"] for note in notes]

    def neighbours():
        one, two = (path for path in sorted((folder / "things").iterdir()) if path.is_dir())
        for source, target in ((one, folder / "aside"), (two, one), (folder / "aside", two)):
            source.rename(target)

    read()
    return tried(folder / "things", read, rng, count, shuffle=neighbours)


def of_state(m, rng, folder, count):
    """The state that a training resumes from: it ends with the same weights."""
    X = torch.randn(8, 4, generator=torch.Generator().manual_seed(0))
    config = LoopConfig(steps=6, save_every=2, learning_rate=0.1)

    def run(stop=6):
        torch.manual_seed(0)
        module = torch.nn.Linear(4, 2)

        def loss_at(step):
            if step == stop:
                raise KeyboardInterrupt
            return module(X[step : step + 2]).square().mean()

        train(
            module,
            loss_at,
            config,
            state_path=folder / "work" / "state.safetensors",
            progress=False,
        )
        return module.weight.detach().numpy()

    with suppress(KeyboardInterrupt):
        run(stop=5)
    return tried(folder / "work", run, rng, count)


def of_copy(name, read, m, rng, folder, count, files="**/*", ways=ANY):
    """A copy of a file or folder of the material."""
    (folder / "copy").mkdir()
    target = folder / "copy" / name.rpartition("/")[2]
    (shutil.copytree if (m / name).is_dir() else shutil.copy)(m / name, target)
    return tried(folder / "copy", lambda: read(target), rng, count, files, ways)


def of_shards(m, rng, folder, count):
    """The shards of `dimadvise apply`: given again, the command refuses them, or makes them as they
    were.
    """

    def read(output):
        apply(m / "X.npy", m / "advice", output, rows_per_shard=200)
        return [path.read_bytes() for path in sorted(output.glob("part-*.npy"))]

    return of_copy("shards", read, m, rng, folder, count)


def of_verdicts(m, rng, folder, count):
    """What pages leave for the scorecard; one that left nothing has not been built."""
    verdict_frames.verdicts_folder = lambda: folder / "verdicts"
    os.environ["REPRO_BOOK"] = "1"
    for page, ids in (
        ("a", claims()["claim_id"][:3]),
        ("b", claims()["claim_id"][3:6]),
    ):
        judged = [
            Measurement(name, "effect", paper=1.0, value=0.5 + len(name), low=0.1, high=2.0)
            for name in ids
        ]
        verdict_frames.write_verdicts(page, verdict_frames.verdict_frame("live", judged))
    return tried(
        folder / "verdicts",
        lambda: verdict_frames.read_verdicts().to_csv(),
        rng,
        count,
        spared="missing",
    )


def embedded(folder):
    return SentenceEncoder.load(str(folder)).encode(["the cook thanked the driver", "a dog slept"])


def advised(folder):
    advice, X = deploy.read(folder), np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 32)
    told = ("encoder", "pooling", "layer", "prompt", "unit_rows", "compared_by", "promised")
    return advice.codes(X), advice.vectors(X), [deploy.read_note(folder).get(name) for name in told]


def vectors(path):
    found = open_vectors(path, "matrix" if path.suffix == ".safetensors" else "")
    return found.take(np.arange(found.shape[0]))


KINDS = {
    "array in the store": partial(of_store, lambda n: np.arange(60.0).reshape(3, 20) + n),
    "JSON in the store": partial(of_store, lambda n: {"a": [n, 2.5, "word"], "b": None}),
    "state of a training": of_state,
    "trained encoder": partial(of_copy, "encoder", embedded),
    "exported encoder": partial(of_copy, "exported", embedded),
    "advice": partial(of_copy, "advice", advised, files="*/[rc]*e[rs].[sj]*"),
    "shards": of_shards,
    "recorded rows": partial(
        of_copy, "results", lambda folder: read_rows(folder / "e.parquet").to_csv()
    ),
    "verdicts": of_verdicts,
    "matrix .npy": partial(of_copy, "X.npy", read_matrix, ways=UNSUMMED),
    **{
        f"vectors {Path(name).suffix}": partial(of_copy, name, vectors, ways=UNSUMMED)
        for name in VECTORS
    },
}
