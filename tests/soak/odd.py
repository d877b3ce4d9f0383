"""Input that nobody should give, drawn at random: it is read, or refused in one message; never a traceback or a hang."""

import contextlib
import faulthandler
import functools
import io
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dimadvise.vectors import FORMS, open_vectors
from repro import data, evaluation
from repro.book import notebook
from repro.cli import VERBS, apply, main
from repro.config import profile
from repro.evaluation.quantise import BITS, fit_codebook, quantise
from repro.models import SentenceEncoder
from repro.models.backbone import load_backbone
from repro.paths import read_matrix, writable_file
from repro.reducers import REDUCERS, make_reducer
from repro.types import InputError
from repro.verbs_embeddings import parameters

HANG = 20  # seconds
Case = Callable[[random.Random], object]
WORDS = [
    *("", " ", "-", "--", "=", "-p", "0", "-1", "1e999", "nan", "inf", "9" * 5000, "0x1f", "1_000", "None", "true"),
    *("[]", "[64, 16]", "[[[", "{}", "{'a': 1}", "(1,)", "[" * 300, "!!python/object:os.system", "&a [*a]", "a: b: c"),
    *("é", "\u202e", "\ud800", "\x00", "\ufeff", "👩‍👩‍👧", "a" * 3000, "\n", "\t", "'", '"', "$(ls)", "; ls", "%s"),
    *("../../x", "/", "/dev/null", ".", "~", "~nobody/x", "nowhere/model", "all-MiniLM-L6-v2x", "repro-tiny:1", "stsb"),
    *("pca", "wiki", "cosine", "int8", "mean", "microworld", "embedded", "X.npy", "texts.txt", "8", "16", "0.5", "3.7"),
]
LETTERS = "ab 01.,\t\n\"'\\[]{}:-_é漢\u0301\u200b\u202e\ud800\x00\U0001f600"


def text(rng: random.Random) -> str:
    """Any text."""
    kind = rng.random()
    if kind < 0.5:
        return rng.choice(WORDS)
    if kind < 0.8:
        return "".join(rng.choices(LETTERS, k=rng.randrange(40)))
    return rng.choice(WORDS) + rng.choice(WORDS)


def bent(content: bytes, rng: random.Random) -> bytes:
    """A file with some of its bytes changed, doubled, dropped or from elsewhere."""
    content = bytearray(content)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(content) + 1)
        piece = rng.choice((rng.randbytes(rng.randint(1, 8)), text(rng).encode("utf-8", "surrogatepass"), content[:at]))
        content[at : at + rng.choice((0, 1, 4, 100))] = piece[:400]
    return bytes(content[: rng.choice((len(content), rng.randrange(len(content) + 1)))])


def matrix(rng: random.Random) -> Any:
    """Any array of numbers."""
    shape = rng.choice(((), (0,), (5,), (0, 4), (4, 0), (1, 1), (1, 4), (6, 4), (6, 4), (12, 4), (12, 3), (2, 3, 4)))
    draw = np.random.default_rng(rng.getrandbits(32))
    X = draw.standard_normal(shape) * rng.choice((0, 1e-300, 1e-30, 1, 1, 1, 1e10, 1e30, 1e300))
    if X.size and rng.random() < 0.3:
        X.flat[rng.randrange(X.size)] = rng.choice((np.nan, np.inf, -np.inf, 0, 1e20))
    kind = rng.choice(("f8", "f8", "f4", "f2", "i8", "i1", "u1", "?", "c16", "U3", "O"))
    with np.errstate(all="ignore"):
        return X.astype(kind)


def tried(case: Case, rng: random.Random, count: int) -> Iterator[str]:
    """Give the case so many inputs: what is wrong with its answers, if anything."""
    for _ in range(count):
        faulthandler.dump_traceback_later(HANG, exit=True)
        state = rng.getstate()
        try:
            case(rng)
        except (InputError, OSError) as error:  # the command tells both in a message
            yield "" if str(error).strip() else "an error without a word"
        except Exception as error:
            frame = error.__traceback__
            while frame and frame.tb_next:
                frame = frame.tb_next
            where = frame and f"{Path(frame.tb_frame.f_code.co_filename).name}:{frame.tb_lineno}"
            yield f"{type(error).__name__} at {where}: {str(error)[:150]} ({hash(state) % 10**6})"
        else:
            yield ""
    faulthandler.cancel_dump_traceback_later()


def kind(make: Callable[[Path], Case]) -> Callable[[Path, random.Random, Path, int], Iterator[str]]:
    """Trials of the case that the material and a folder of its own make."""

    def trials(m: Path, rng: random.Random, folder: Path, count: int) -> Iterator[str]:
        contextlib.chdir(m).__enter__()
        return tried(make(folder), rng, count)

    return trials


def lines(folder: Path) -> Case:
    """The command line, up to what its verb would do: 0, or 2 and a message without a traceback."""

    def stub(verb: Any) -> Any:
        @functools.wraps(verb)
        def nothing(*given: Any, **named: Any) -> int:
            return 0

        return nothing

    verbs = {name: stub(verb) for name, verb in {**VERBS, "apply": apply}.items()}
    good = [
        "train --backbone repro-tiny --dims 8 16 --objective ese --alpha 0.5 --output o",
        "encode --encoder repro-tiny --texts texts.txt --output o.npy --pooling mean --normalize",
        "reduce --method pca --dim 8 --input X.npy --output o.npy --param seed=1",
        "advise X.npy --dims 8 --levels int8 --recall 0.9 --output o",
        "run notebooks/toy.md -p dims [8] -p seed 0 --timeout 3",
        "evaluate --encoder repro-tiny --data stsb --layers 1 2 --dims 8",
    ]

    def case(rng: random.Random) -> None:
        name, *words = rng.choice(good).split()
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(words) + 1)
            words[at : at + rng.randint(0, 2)] = [text(rng)] if rng.random() < 0.7 else []
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                main([name, *words], verbs={name: verbs[name]})
            except SystemExit as stop:
                if stop.code not in (0, 2) or "Traceback" in out.getvalue():
                    raise ValueError(f"{words} ended with {stop.code}: {out.getvalue()[-300:]}") from None

    return case


def settings(folder: Path) -> Case:
    """The parameters of pages and reducers, and the fields of a training."""
    pages = [notebook.parameters_of(path) for path in sorted(Path(__file__).parents[2].glob("notebooks/*.md"))]
    numbers = ("dim", "layers", "batch_size", "sentences", "epochs", "temperature", "seed")
    words = ("objective", "pooling", "activation", "difference", "source", "final_norm", "backbone")

    def case(rng: random.Random) -> None:
        chosen = rng.random()
        if chosen < 0.6:
            declared = rng.choice(pages)
            notebook.from_here(notebook.validate(declared, {rng.choice(list(declared) or [text(rng)]): text(rng)}))
        elif chosen < 0.85:
            method = rng.choice(list(REDUCERS))
            make_reducer(method, rng.choice((8, 0, -1)), **parameters(method, [f"{text(rng)}={text(rng)}", text(rng)]))
        else:
            field = rng.choice(numbers)
            given = {field: rng.choice((0, -1, 1, 3, 0.5, 10**9, float("nan"), float("inf")))}
            profile("embedded", **given, **{rng.choice(words): text(rng)})

    return case


def files(folder: Path, contents: list[tuple[str, bytes]], read: Callable[[Path], object]) -> Case:
    """Files bent at random, sometimes under the ending of another form."""

    def case(rng: random.Random) -> None:
        name, content = rng.choice(contents)
        path = folder / (rng.choice(contents)[0] if rng.random() < 0.1 else name)
        path.write_bytes(bent(content, rng))
        read(path)

    return case


def vectors(folder: Path) -> Case:
    """Files of vectors."""
    X, contents = np.arange(24, dtype=np.float32).reshape(6, 4), []
    for ending in FORMS:
        source = {".npz": "X.npz", ".npy": "X.npy", ".safetensors": "advice/reducer.safetensors"}.get(
            ending, "X.parquet"
        )
        content = Path(source).read_bytes()[:30_000]
        if ending in (".jsonl", ".ndjson"):
            content = "".join(json.dumps({"v": row.tolist(), "id": i}) + "\n" for i, row in enumerate(X)).encode()
        if ending in (".fvecs", ".bvecs"):
            kind = "<f4" if ending == ".fvecs" else "u1"
            content = b"".join(np.int32(4).tobytes() + row.astype(kind).tobytes() for row in X)
        contents.append((f"v{ending}", content))

    def read(path: Path) -> None:
        for _ in open_vectors(path).blocks(64):
            pass
        if path.suffix == ".npy":
            read_matrix(path)

    return files(folder, contents, read)


def tables(folder: Path) -> Case:
    """Tables and texts."""
    rows = [(0.5 * i, f"a cook number {i}", 'a dog, "slept"; well') for i in range(5)]
    tsv = "score\tsentence1\tsentence2\n" + "".join("\t".join(map(str, row)) + "\n" for row in rows)
    csv = "label,text\n" + "".join(f'{i},"{row[1]}, yes"\n' for i, row in enumerate(rows))
    objects = "".join(json.dumps({"label": i % 2, "text": row[1]}) + "\n" for i, row in enumerate(rows))
    packed = __import__("gzip").compress(tsv.encode())
    contents = {"t.tsv": tsv, "t.csv": csv, "t.jsonl": objects, "t.json": objects, "t.txt": csv}
    read = functools.partial(data.load, source="local")
    return files(folder, [*((n, c.encode()) for n, c in contents.items()), ("t.tsv.gz", packed)], read)


def measures(folder: Path) -> Case:
    """Scores, codes and reducers of odd arrays."""

    def case(rng: random.Random) -> None:
        X, Y, y = matrix(rng), matrix(rng), matrix(rng)
        with np.errstate(all="ignore"):
            rng.choice(
                (
                    lambda: evaluation.sts_spearman(
                        X, Y if rng.random() < 0.3 else X, y if rng.random() < 0.5 else range(6)
                    ),
                    lambda: evaluation.retrieval_scores(X, Y, {0: {0: 1}, 1: [2]}),
                    lambda: evaluation.knn_accuracy(X, [0, 1] * 3, Y, [0, 1] * 3),
                    lambda: evaluation.cluster_scores(X, [0, 1, 1] * 2, seed=0),
                    lambda: quantise(Y, fit_codebook(X, rng.choice(list(BITS)))),
                    lambda: make_reducer(rng.choice(("truncate", "pca", "svd", "grp")), 2).fit(X).transform(Y),
                )
            )()

    return case


def names(folder: Path) -> Case:
    """Names of networks, sets and outputs."""

    def case(rng: random.Random) -> None:
        name = text(rng).replace("\0", "").encode(errors="replace").decode()  # as no argument of a command holds them
        if rng.random() < 0.2:
            load_backbone(name) if name not in ("repro-tiny", "all-MiniLM-L6-v2") else None
        elif rng.random() < 0.5:
            data.load(
                name, source=rng.choice((None, "microworld", "local")), split=rng.choice((None, text(rng))), limit=9
            )
        else:
            writable_file(folder / name)

    return case


def texts(folder: Path) -> Case:
    """Texts for an encoder."""
    encoder = SentenceEncoder.load("encoder/dim8")

    def case(rng: random.Random) -> None:
        given = [text(rng) for _ in range(rng.randint(1, 3))]
        X = encoder.encode(given)
        if X.shape != (len(given), 8) or not np.isfinite(X).all():
            raise ValueError(f"{given} gave {X}")

    return case


KINDS = {
    "command lines": (kind(lines), 3_000),
    "parameters and settings": (kind(settings), 40_000),
    "files of vectors": (kind(vectors), 20_000),
    "tables": (kind(tables), 20_000),
    "arrays": (kind(measures), 15_000),
    "names": (kind(names), 5_000),
    "texts": (kind(texts), 2_000),
}
