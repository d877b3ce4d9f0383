"""Files that are damaged in any way: reading them is refused, warned of or mended, and never gives other values."""

import json
import logging
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dimadvise import deploy
from dimadvise.apply import apply
from dimadvise.vectors import open_vectors
from repro.models import SentenceEncoder
from repro.paths import read_matrix
from repro.reducers.export import read_note
from repro.report import scorecard
from repro.rows import read_rows
from repro.store import Store
from repro.training.loop import LoopConfig, train
from repro.types import InputError

Read = Callable[[], Any]
FOREIGN = b"PAR1 this is another file \x93NUMPY {}"


def flipped(file: Path, rng: random.Random) -> None:
    """One bit is another."""
    content = bytearray(file.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    file.write_bytes(content)


def overwritten(file: Path, rng: random.Random) -> None:
    """Up to 64 bytes somewhere are others, or zeros as a disk leaves them."""
    content = bytearray(file.read_bytes())
    start = rng.randrange(len(content))
    stop = min(len(content), start + rng.randint(1, 64))
    before = content[start:stop]
    content[start:stop] = bytes(stop - start) if rng.random() < 0.5 else rng.randbytes(stop - start)
    content[start] ^= 255 if content[start:stop] == before else 0
    file.write_bytes(content)


def headless(file: Path, rng: random.Random) -> None:
    """The first bytes are others."""
    content = file.read_bytes()
    size = min(rng.randint(8, 64), len(content))
    file.write_bytes(bytes(byte ^ rng.randint(1, 255) for byte in content[:size]) + content[size:])


def cut(file: Path, rng: random.Random) -> None:
    """The end is missing."""
    file.write_bytes(file.read_bytes()[: rng.randrange(file.stat().st_size)])


def emptied(file: Path, rng: random.Random) -> None:
    """Nothing is left."""
    file.write_bytes(b"")


def missing(file: Path, rng: random.Random) -> None:
    """The file is gone."""
    file.unlink()


def exchanged(file: Path, rng: random.Random) -> None:
    """Another file stands there: a neighbour, or something foreign."""
    others = [path for path in sorted(file.parent.iterdir()) if path.is_file() and path != file]
    file.write_bytes(rng.choice(others).read_bytes() if others and rng.random() < 0.7 else FOREIGN)


ANY = (flipped, flipped, overwritten, headless, cut, emptied, missing, exchanged)
UNSUMMED = (headless, cut, cut, emptied, missing, exchanged)
"""what a format without checksums can show: of one that only holds numbers, a flipped bit is another number"""


class Heard(logging.Handler):
    """Whether a warning was given."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def tried(
    folder: Path, read: Read, rng: random.Random, count: int, files: str = "**/*", ways: Sequence[Any] = ANY
) -> Iterator[str]:
    """Damage one of the files below a folder, read, restore: what is wrong with the outcome, if anything."""
    whole = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    chosen = [path for path in sorted(folder.glob(files)) if path in whole and path.suffix != ".lock"]
    heard, right = Heard(), read()
    logging.getLogger().addHandler(heard)
    for _ in range(count):
        file, way = rng.choice(chosen), rng.choice(ways)
        way(file, rng)
        if file.is_file() and file.read_bytes() == whole[file]:
            missing(file, rng)
        heard.said.clear()
        try:
            found = read()
        except InputError:
            yield ""
        except Exception as error:
            yield f"{file.name} {way.__name__}: {type(error).__name__}: {error}"
        else:
            silent = not same(found, right) and not heard.said
            yield f"{file.name} {way.__name__}: silently {str(found)[:200]}" if silent else ""
        for path in folder.rglob("*"):
            if path.is_file() and path not in whole:
                path.unlink()
        for path, content in whole.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    logging.getLogger().removeHandler(heard)


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal, their arrays to the last bit."""
    if isinstance(a, dict | list | tuple):
        keys = (set(a), set(b)) if isinstance(a, dict) else (len(a), len(b))
        return keys[0] == keys[1] and all(same(a[k], b[k]) for k in (a if isinstance(a, dict) else range(len(a))))
    return a.tobytes() == b.tobytes() and a.shape == b.shape if isinstance(a, np.ndarray) else a == b or a is b


def of_store(value: Any) -> Callable[..., Iterator[str]]:
    """Trials on a value in the store, a neighbour beside it, whose folders may be exchanged too."""

    def trials(m: Path, rng: random.Random, folder: Path, count: int) -> Iterator[str]:
        store = Store(folder)

        def read() -> Any:
            found = [store.remember("things", {"n": n}, lambda n=n: value(n), code="repro.types") for n in (0, 1)]
            return found, [
                json.loads(path.read_text())["seconds"] for path in sorted(folder.glob("things/*/manifest.json"))
            ]

        read()
        folders = [path for path in sorted((folder / "things").iterdir()) if path.is_dir()]

        def swapped(file: Path, rng: random.Random) -> None:
            for source, target in (
                (folders[0], folder / "aside"),
                (folders[1], folders[0]),
                (folder / "aside", folders[1]),
            ):
                source.rename(target)

        return tried(folder / "things", read, rng, count, ways=(*ANY, swapped))

    return trials


def of_state(m: Path, rng: random.Random, folder: Path, count: int) -> Iterator[str]:
    """Trials on the state that a training resumes from: it ends with the same weights."""
    state, config = folder / "state" / "state.safetensors", LoopConfig(steps=6, save_every=2, learning_rate=0.1)
    state.parent.mkdir()
    X = torch.randn(8, 4, generator=torch.Generator().manual_seed(0))

    def run(stop: int = 6) -> bytes:
        torch.manual_seed(0)
        module = torch.nn.Linear(4, 2)

        def loss_at(step: int) -> Any:
            if step == stop:
                raise KeyboardInterrupt
            return module(X[step : step + 2]).square().mean()

        train(module, loss_at, config, state_path=state, progress=False)
        return module.weight.detach().numpy().tobytes()

    try:
        run(stop=5)
    except KeyboardInterrupt:
        pass
    return tried(state.parent, run, rng, count)


def of_copy(name: str, read: Callable[[Path], Any], files: str = "**/*", ways: Sequence[Any] = ANY) -> Any:
    """Trials on a copy of a file or folder of the material."""

    def trials(m: Path, rng: random.Random, folder: Path, count: int) -> Iterator[str]:
        target = folder / "copy" / name
        target.parent.mkdir(parents=True)
        (shutil.copytree if (m / name).is_dir() else shutil.copy)(m / name, target)
        return tried(target if target.is_dir() else target.parent, lambda: read(target), rng, count, files, ways)

    return trials


def _embedded(folder: Path) -> Any:
    return SentenceEncoder.load(str(folder)).encode(["the cook thanked the driver", "a dog slept"])


def _advised(folder: Path) -> Any:
    advice, X = deploy.read(folder), np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 32)
    return advice.codes(X), advice.vectors(X), read_note(folder)


def of_shards(m: Path, rng: random.Random, folder: Path, count: int) -> Iterator[str]:
    """Trials on the shards of `dimadvise apply`: given again, the command refuses them or makes them as they were."""
    output = folder / "shards"
    shutil.copytree(m / "shards", output)

    def read() -> Any:
        apply(m / "X.npy", m / "advice", output, rows_per_shard=200)
        return [path.read_bytes() for path in sorted(output.glob("*.npy"))]

    return tried(output, read, rng, count)


def of_verdicts(m: Path, rng: random.Random, folder: Path, count: int) -> Iterator[str]:
    """Trials on what pages leave for the scorecard."""
    from repro.report.judge import Measurement
    from repro.seeding import environment

    scorecard.verdicts_folder = lambda: folder / "verdicts"
    (folder / "verdicts").mkdir()
    claims = scorecard.claims()["claim_id"][:6]
    judged = [
        Measurement(claim, "effect", paper=1.0, value=0.5 + i, low=0.1, high=2.0) for i, claim in enumerate(claims)
    ]
    with environment({"REPRO_BOOK": "1"}):
        for page in ("a", "b"):
            scorecard.write_verdicts(page, scorecard.verdict_frame("live", judged[:3] if page == "a" else judged[3:]))
    return tried(
        folder / "verdicts",
        lambda: scorecard.read_verdicts().to_csv(),
        rng,
        count,
        ways=tuple(w for w in ANY if w is not missing),
    )


def _rows(folder: Path) -> Any:
    return read_rows(folder / "e.parquet").to_csv()


def _vectors(path: Path) -> Any:
    found = open_vectors(path)
    return found.take(np.arange(found.shape[0]))


def _tensor(path: Path) -> Any:
    found = open_vectors(path, "matrix")
    return found.take(np.arange(found.shape[0]))


KINDS: dict[str, Callable[[Path, random.Random, Path, int], Iterator[str]]] = {
    "array in the store": of_store(lambda n: np.arange(60.0).reshape(3, 20) + n),
    "JSON in the store": of_store(lambda n: {"a": [n, 2.5, "word"], "b": None}),
    "state of a training": of_state,
    "trained encoder": of_copy("encoder/dim8", _embedded),
    "exported encoder": of_copy("exported", _embedded),
    "advice": of_copy("advice", _advised, "[rc]*e[rs].[sj]*"),
    "shards": of_shards,
    "recorded rows": of_copy("results", _rows),
    "verdicts": of_verdicts,
    "matrix .npy": of_copy("X.npy", read_matrix, ways=UNSUMMED),
    "vectors .npy": of_copy("X.npy", _vectors, ways=UNSUMMED),
    "vectors .npz": of_copy("X.npz", _vectors, ways=UNSUMMED),
    "vectors .safetensors": of_copy("advice/reducer.safetensors", _tensor, ways=UNSUMMED),
    "vectors .parquet": of_copy("X.parquet", _vectors, ways=UNSUMMED),
}
