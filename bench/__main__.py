"""`python -m bench`: the table of all benchmarks, or of those named."""

import argparse
import os
import sys

import torch
from threadpoolctl import threadpool_limits

from bench import NAMES, BenchRow, benchmark
from bench.timing import peak_mb, reset_peak
from repro.provenance import hardware, versions
from repro.results import record
from repro.rows import make_rows

HEADS = ("work", "peer", "goal", "ratio", "ours s", "peer s", "equal", "threads", "peak MB")
WIDTHS = (46, 36, 4, 7, 6, 6, 62, 7, 7)


def main(arguments: list[str] | None = None) -> int:
    """Run, print, record; 1 if two results that should be equal are not."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"of {', '.join(NAMES)}; all by default",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small sizes: the whole suite within a minute",
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help="write the rows to results/bench.parquet",
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=torch.get_num_threads(),
        help="of both sides",
    )
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}: there are {', '.join(NAMES)}")
    torch.set_num_threads(options.threads)
    print(f"{hardware()}; load {os.getloadavg()[0]:.1f}; {versions()}\n")
    print(_line(HEADS))
    rows, wrong = [], []
    for name in options.names or NAMES:
        reset_peak()
        with threadpool_limits(options.threads):
            result = benchmark(name)(options.quick)
        for row in result if isinstance(result, list) else [result]:
            threads = row.threads or options.threads
            print(_line(_cells(row, threads)), flush=True)
            if row.note:
                print(f"    {row.note}")
            if not row.equal:
                wrong.append(row.work if isinstance(result, list) else name)
            rows += _rows(row, threads, peak_mb())
    print(f"\nratio = median peer / median ours; load now {os.getloadavg()[0]:.1f}")
    if wrong:
        print(f"NOT EQUAL: {', '.join(wrong)}: no timing of these means anything", file=sys.stderr)
        return 1
    if options.record:
        frame = make_rows(rows, experiment="bench", profile="quick" if options.quick else "full")
        print("recorded in", *(path.name for path in record(frame)))
    return 0


def _cells(row: BenchRow, threads: int) -> tuple[str, ...]:
    goal = "–" if row.goal is None else f"{row.goal:g}×"
    equal = ("yes: " if row.equal else "NO: ") + row.checked
    times = f"{row.ratio:.2f}×", f"{row.ours_s:.3f}", f"{row.peer_s:.3f}"
    return row.work, row.peer, goal, *times, equal, str(threads), f"{peak_mb():.0f}"


def _line(cells: tuple[str, ...]) -> str:
    return " | ".join(f"{cell:{width}}" for cell, width in zip(cells, WIDTHS, strict=True)).rstrip()


def _rows(row: BenchRow, threads: int, peak: float) -> list[dict]:
    shared = {
        "method": row.work,
        "setting": f"{row.peer}; threads {threads}",
        "peak_mb": round(peak, 1),
        **row.columns,
    }
    ratio = {"metric": "ratio", "value": row.ratio, "seconds": row.ours_s, **shared}
    told = row.shares if row.goal is None else {"goal": row.goal, **row.shares}
    return [ratio, *({"metric": name, "value": value, **shared} for name, value in told.items())]


if __name__ == "__main__":
    sys.exit(main())
