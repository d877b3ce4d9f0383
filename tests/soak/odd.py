"""Input that nobody should give, drawn at random: it is read, or refused in a message; never a
traceback or a hang.
"""

import contextlib
import faulthandler
import functools
import gzip
import io
import json
import os
import traceback
from pathlib import Path

import numpy as np
from safetensors.numpy import load
from tests.soak.material import VECTORS

from dimadvise.vectors import open_vectors
from repro import data, evaluation
from repro.book.parameters import from_here, parameters_of, validate
from repro.cli import VERBS, main
from repro.config import profile
from repro.evaluation.quantise import BITS, fit_codebook, quantise
from repro.models import SentenceEncoder
from repro.models.backbone import load_backbone
from repro.reading import read_matrix
from repro.reducers import REDUCERS, make_reducer
from repro.types import InputError
from repro.verbs_reduce import parameters
from repro.writing import writable_file

HANG = 20  # Seconds
WORDS = [
    "",
    " ",
    "-",
    "--",
    "=",
    "-p",
    "0",
    "-1",
    "1e999",
    "nan",
    "inf",
    "9" * 5000,
    "0x1f",
    "1_000",
    "None",
    "true",
    "[]",
    "[64, 16]",
    "[[[",
    "{}",
    "{'a': 1}",
    "(1,)",
    "[" * 300,
    "!!python/object:os.system",
    "&a [*a]",
    "a: b: c",
    "é",
    "\u202e",
    "\ud800",
    "\x00",
    "\ufeff",
    "👩‍👩‍👧",
    "a" * 3000,
    "\n",
    "\t",
    "'",
    '"',
    "$(ls)",
    "; ls",
    "%s",
    "../../x",
    "/",
    "/dev/null",
    ".",
    "~",
    "~nobody/x",
    "nowhere/model",
    "repro-tiny:1",
    "stsb",
    "wiki",
    "X.npy",
    "pca",
    "cosine",
    "int8",
    "mean",
    "microworld",
    "embedded",
    "texts.txt",
    "16",
    "0.5",
    "3.7",
    "8",
]
LETTERS = "ab 01.,\t\n\"'\\[]{}:-_é漢\u0301\u200b\u202e\ud800\x00\U0001f600"
PAGES = sorted(Path(__file__).parents[2].glob("notebooks/*.md"))
ROWS = [[str(0.5 * i), f"a cook number {i}", 'a dog, "slept"; well'] for i in range(5)]
TABLES = {
    "t.tsv": "score\tsentence1\tsentence2\n" + "".join("\t".join(row) + "\n" for row in ROWS),
    "t.csv": "label,text\n" + "".join(f'{row[0]},"{row[1]}, yes"\n' for row in ROWS),
    "t.jsonl": "".join(json.dumps({"label": row[0], "text": row[1]}) + "\n" for row in ROWS),
    "t.txt": "".join(f"{row[2]}\n" for row in ROWS),
}
LINES = (
    "train --backbone repro-tiny --dims 8 16 --objective ese --alpha 0.5 --output o",
    "encode --encoder repro-tiny --texts texts.txt --output o.npy --pooling mean --normalize",
    "reduce --method pca --dim 8 --input X.npy --output o.npy --param seed=1",
    "advise X.npy --dims 8 --levels int8 --recall 0.9 --output o",
    "run notebooks/toy.md -p dims [8] -p seed 0 --timeout 3",
    "evaluate --encoder repro-tiny --data stsb --layers 1 2 --dims 8",
)


def text(rng):
    if rng.random() < 0.4:
        return "".join(rng.choices(LETTERS, k=rng.randrange(40)))
    return rng.choice(WORDS) + (rng.choice(WORDS) if rng.random() < 0.3 else "")


def trials(case, m, rng, folder, count):
    """Give a case so many inputs; what is wrong with its answers, if anything."""
    os.chdir(m)
    for _ in range(count):
        faulthandler.dump_traceback_later(HANG, exit=True)
        try:
            with np.errstate(all="ignore"):
                case(rng, folder)
            yield ""
        except (InputError, OSError) as error:  # The command tells both in a message
            yield "" if str(error).strip() else "an error without a word"
        except Exception:
            yield traceback.format_exc()[-400:]
    faulthandler.cancel_dump_traceback_later()


def command_line(rng, folder):
    """Up to what a verb would do: 0, or 2 and a message."""
    name, *words = rng.choice(LINES).split()
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(words) + 1)
        words[at : at + rng.randint(0, 2)] = [text(rng)] if rng.random() < 0.7 else []
    verb = functools.wraps(VERBS[name])(lambda *_, **__: 0)
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        try:
            main([name, *words], verbs={name: verb})
        except SystemExit as stop:
            if stop.code not in (0, 2) or "Traceback" in out.getvalue():
                raise ValueError(
                    f"{words} ended with {stop.code}: {out.getvalue()[-300:]}"
                ) from None


declared_by = functools.cache(parameters_of)


def setting(rng, folder):
    """A parameter of a page or of a reducer, or a field of a training."""
    place, declared, method = (
        rng.random(),
        declared_by(rng.choice(PAGES)),
        rng.choice(list(REDUCERS)),
    )
    if place < 0.6:
        from_here(validate(declared, {rng.choice([*declared, text(rng)]): text(rng)}))
    elif place < 0.85:
        make_reducer(
            method,
            rng.choice((8, 0, -1)),
            **parameters(method, [f"{text(rng)}={text(rng)}", text(rng)]),
        )
    else:
        number = rng.choice((0, -1, 1, 3, 0.5, 10**9, float("nan"), float("inf")))
        field = rng.choice(("dim", "layers", "batch_size", "sentences", "epochs", "seed"))
        profile(
            "embedded",
            **{
                field: number,
                rng.choice(("objective", "pooling", "source", "backbone")): text(rng),
            },
        )


@functools.cache
def vectors():
    X = np.arange(24, dtype=np.float32).reshape(6, 4)
    made = {f"v{Path(source).suffix}": Path(source).read_bytes()[:30_000] for source in VECTORS}
    made["v.jsonl"] = b"".join(
        b'{"v": %s, "id": 1}\n' % json.dumps(row.tolist()).encode() for row in X
    )
    for kind, dtype in (("f", "f4"), ("b", "u1")):
        made[f"v.{kind}vecs"] = b"".join(b"\4\0\0\0" + row.astype(dtype).tobytes() for row in X)
    return made


def file_of(contents, read, rng, folder):
    """A file with some bytes changed, doubled, dropped or from elsewhere, now and then under
    another's ending.
    """
    made = contents()
    name = rng.choice(list(made))
    content, path = (
        bytearray(made[name]),
        folder / (rng.choice(list(made)) if rng.random() < 0.1 else name),
    )
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(content) + 1)
        odd = rng.choice(
            (rng.randbytes(4), text(rng).encode("utf-8", "surrogatepass"), bytes(content[:at]))
        )
        content[at : at + rng.choice((0, 1, 4, 100))] = odd[:400]
    path.write_bytes(content[: rng.choice((len(content), rng.randrange(len(content) + 1)))])
    read(path)


def read_vectors(path):
    for _ in open_vectors(path).blocks(64):
        pass
    if path.suffix == ".npy":
        read_matrix(path)


@functools.cache
def tables():
    made = {name: content.encode() for name, content in TABLES.items()}
    return made | {"t.tsv.gz": gzip.compress(made["t.tsv"])}


def array(rng):
    shape = rng.choice(
        (
            (),
            (0,),
            (5,),
            (0, 4),
            (4, 0),
            (1, 1),
            (1, 4),
            (6, 4),
            (6, 4),
            (12, 4),
            (12, 3),
            (2, 3, 4),
        )
    )
    X = np.random.default_rng(rng.getrandbits(32)).standard_normal(shape)
    X = X * rng.choice((0, 1e-300, 1e-30, 1, 1, 1, 1e10, 1e30, 1e300))
    if X.size and rng.random() < 0.3:
        X.flat[rng.randrange(X.size)] = rng.choice((np.nan, np.inf, -np.inf, 0, 1e20))
    return X.astype(rng.choice(("f8", "f8", "f4", "f2", "i8", "i1", "u1", "?", "c16", "U3", "O")))


ARRAYS = (
    lambda X, Y, rng: evaluation.sts_spearman(
        X,
        rng.choice((X, Y)),
        rng.choice((array(rng), range(6))),
    ),
    lambda X, Y, rng: evaluation.retrieval_scores(X, Y, {0: {0: 1}, 1: [2]}),
    lambda X, Y, rng: evaluation.knn_accuracy(X, [0, 1] * 3, Y, [0, 1] * 3),
    lambda X, Y, rng: evaluation.cluster_scores(X, [0, 1, 1] * 2, seed=0),
    lambda X, Y, rng: quantise(Y, fit_codebook(X, rng.choice(list(BITS)))),
    lambda X, Y, rng: (
        make_reducer(rng.choice(("truncate", "pca", "svd", "grp")), 2).fit(X).transform(Y)
    ),
)


def name(rng, folder):
    """Of a network, a set or an output, as the argument of a command can hold it."""
    said, place = text(rng).replace("\0", "").encode(errors="replace").decode(), rng.random()
    if place < 0.2 and said != "repro-tiny":
        load_backbone(said)
    elif place < 0.6:
        data.load(
            said,
            source=rng.choice((None, "microworld", "local")),
            split=rng.choice((None, text(rng))),
            limit=9,
        )
    else:
        writable_file(folder / said)


@functools.cache
def encoder():
    return SentenceEncoder.load("encoder")


def texts(rng, folder):
    given = [text(rng) for _ in range(rng.randint(1, 3))]
    X = encoder().encode(given)
    if X.shape != (len(given), 8) or not np.isfinite(X).all():
        raise ValueError(f"{given} gave {X}")


def lies(rng, begin, end):
    """Offsets, shape and type of a tensor of 6 × 4 numbers, one of which may not be what lies
    there.
    """
    size = end - begin
    offsets = rng.choice(
        (
            [begin, end],
            [begin, end],
            [end, begin],
            [begin - 4, end],
            [begin, end + 4],
            [begin, end - 1],
            [-size, 0],
            [begin + 0.5, end],
            [0, 2**63],
            [0, 0],
            [begin],
            [str(begin), end],
            None,
            [begin, end, end],
        )
    )
    shape = rng.choice(
        ([6, 4], [6, 4], [4, 6], [24], [6, 5], [0, 4], [-6, -4], [6.0, 4], [2**62, 4], "64", None)
    )
    return (
        offsets,
        shape,
        rng.choice(("F32", "F32", "F32", "F64", "F16", "BF16", "I32", "Q9", 32, None)),
    )


def lying_header(rng, folder):
    """A safetensors file whose header may lie: what we read, the library of the format reads as
    well, and alike.
    """
    X = np.arange(48, dtype=np.float32).reshape(2, 6, 4)
    header = {}
    for number, name in enumerate("ab"):
        told = zip(
            ("data_offsets", "shape", "dtype"),
            lies(rng, 96 * number, 96 * (number + 1)),
            strict=True,
        )
        truth = {"data_offsets": [96 * number, 96 * (number + 1)], "shape": [6, 4], "dtype": "F32"}
        header[name] = (
            truth
            if rng.random() < 0.5
            else {key: value for key, value in told if value is not None}
        )
    if rng.random() < 0.1:
        header[rng.choice(("__metadata__", "c"))] = rng.choice(
            ({}, [], {"a": 1}, json.loads("[" * 90 + "]" * 90))
        )
    written = json.dumps(header).encode()
    length = len(written) + rng.choice((0, 0, 0, 0, 1, -1, 8, 2**40, 2**63 - len(written)))
    content = (
        length.to_bytes(8, "little") + written + X.tobytes()[: rng.choice((192, 192, 192, 100))]
    )
    path = folder / "lying.safetensors"
    path.write_bytes(content)
    source = open_vectors(path, "a")
    read = np.concatenate([np.asarray(block) for block in source.blocks(64)])
    try:
        reference = load(content)["a"]
    except Exception as error:
        raise ValueError(f"{written} was read, which the library refuses: {error}") from None
    np.testing.assert_array_equal(read, reference)


CASES = {
    "headers that lie": (lying_header, 20_000),
    "command lines": (command_line, 3_000),
    "parameters and settings": (setting, 40_000),
    "files of vectors": (functools.partial(file_of, vectors, read_vectors), 20_000),
    "tables": (functools.partial(file_of, tables, data.load), 20_000),
    "arrays": (lambda rng, folder: rng.choice(ARRAYS)(array(rng), array(rng), rng), 15_000),
    "names": (name, 5_000),
    "texts": (texts, 2_000),
}
KINDS = {kind: (functools.partial(trials, case), total) for kind, (case, total) in CASES.items()}
