"""The advisor on files of the size that people have: `python -m bench.advisor [unlabelled] [pairs]
[--quick]`.

Each case runs in a process of its own, so that the peak memory is its own, over a file of made
vectors that is written before: clusters, and a spectrum that falls as that of text embeddings does.
Printed are seconds and peak memory beside what they may be; exit 1 where one is more.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from bench.timing import peak_mb

CASES = {  # Rows, dims, most seconds, most MB
    "unlabelled": (1_000_000, 768, 180, 2_000),
    "pairs": (200_000, 384, 90, 2_000),
}
PAIRS = 5_000


def made_vectors(rows: int, dim: int, seed: int = 0, *, clusters: int = 500):
    """Blocks of rows (b, dim) float32: a cluster's centre and what is a row's own, variances
    falling as 1 / i.
    """
    rng = np.random.default_rng(seed)
    scale = (np.arange(1, dim + 1) ** -0.5).astype(np.float32)
    turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0].astype(np.float32)
    centres = rng.standard_normal((clusters, dim), np.float32) * scale
    mean = rng.standard_normal(dim).astype(np.float32) * 0.1
    for start in range(0, rows, 20_000):
        count = min(20_000, rows - start)
        own = rng.standard_normal((count, dim), np.float32) * scale
        X = (centres[rng.integers(clusters, size=count)] + own) @ turn + mean
        yield X / np.linalg.norm(X, axis=1, keepdims=True)


def write_case(folder: Path, rows: int, dim: int, *, pairs: bool) -> list[str]:
    """The file of vectors, and of pairs graded by their cosines and noise; arguments of the
    command.
    """
    path = folder / "X.npy"
    X = np.lib.format.open_memmap(path, "w+", np.float32, (rows, dim))
    start = 0
    for block in made_vectors(rows, dim):
        X[start : start + len(block)] = block
        start += len(block)
    X.flush()
    if not pairs:
        return [str(path)]
    rng = np.random.default_rng(1)
    first, second = rng.integers(rows, size=(2, PAIRS))
    grades = np.einsum("ij,ij->i", X[first], X[second]) + 0.05 * rng.standard_normal(PAIRS)
    lines = "".join(f"{a}\t{b}\t{g:.4f}\n" for a, b, g in zip(first, second, grades, strict=True))
    (folder / "pairs.tsv").write_text("row1\trow2\tscore\n" + lines)
    return [str(path), "--pairs", str(folder / "pairs.tsv")]


def run(arguments: list[str]) -> None:
    """One advice in this process, then its peak memory."""
    from repro.cli import dimadvise

    sys.argv[1:] = ["advise", *arguments]
    try:
        dimadvise()
    finally:
        print(f"processor {time.process_time():.0f} s, peak {peak_mb():.0f} MB", flush=True)


def main() -> int:
    """Write the files, advise on each, and compare."""
    quick = "--quick" in sys.argv
    over = 0
    threads = str(len(os.sched_getaffinity(0)))
    for name in [each for each in CASES if each in sys.argv] or list(CASES):
        rows, dim, seconds, memory = CASES[name]
        rows //= 100 if quick else 1
        with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as place:
            arguments = write_case(Path(place), rows, dim, pairs=name == "pairs")
            command = [
                sys.executable,
                "-m",
                "bench.advisor",
                "--run",
                *arguments,
                "--output",
                str(Path(place) / "out"),
            ]
            wanted = {"OMP_NUM_THREADS": threads, "REPRO_THREADS": threads}
            started = os.times().elapsed
            done = subprocess.run(
                command,
                env={**os.environ, **wanted},
                capture_output=True,
                text=True,
            )
            took = os.times().elapsed - started
        print(done.stdout, done.stderr)
        peak = float(done.stdout.rsplit("peak ", 1)[1].split()[0])
        print(
            f"{name}: {rows:,} × {dim}: {took:.0f} s (at most {seconds}), peak {peak:.0f} MB (at "
            f"most {memory})"
        )
        over += done.returncode != 0 or took > seconds or peak > memory
    return int(over > 0)


if __name__ == "__main__":
    if "--run" in sys.argv:
        run(sys.argv[sys.argv.index("--run") + 1 :])
    else:
        raise SystemExit(main())
