"""`python -m tests.pages`: every page of the book under a reader's own parameters, at toy size; 1
if one fails.

The page's own parameters say what can be changed: dimensions, networks, datasets, lists, the
profile. Kernels are forked from a process that has imported the libraries, and share one store that
goes when the check ends.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import papermill
from tests.hub_copy import make_hub
from tests.pages import networks, variants

from repro import data
from repro.book import execution, kernel, notebook
from repro.book.parameters import parameters_of
from repro.paths import project_root
from repro.seeding import cpu_count
from repro.terminal import say

PAGES = sorted((project_root() / "notebooks").glob("*.md"))
FAMILIES = tuple(networks.FAMILIES)


@dataclass(frozen=True)
class Run:
    """One page under one variant."""

    page: Path
    variant: str
    values: Mapping[str, Any] | None
    """Parameters; None where the page has none of that kind."""

    def outcome(self, folder: Path) -> tuple[Self, float, str]:
        """Seconds, and `ok` or the end of what went wrong. One variant goes through plain
        papermill, as readers may.
        """
        target = folder / f"{self.page.stem}-{self.variant}.ipynb".replace(" ", "-")
        options = {
            "execution_timeout": 600,
            "kernel_manager_class": kernel.manager(forked=True),
            "progress_bar": False,
        }
        begun, said = time.monotonic(), "ok"
        try:
            if self.values is None:
                said = "nothing of the kind to change"
            elif self.variant == variants.ONE_DIM:
                source = notebook.to_ipynb(self.page, folder / "plain")
                papermill.execute_notebook(source, target, dict(self.values), cwd=folder, **options)
            else:
                execution.run(self.page, target, self.values, timeout=600, forked=True)
        except Exception as error:
            said = f"FAILED {type(error).__name__}: {str(error).strip()[-600:]}"
        return self, time.monotonic() - begun, said


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print a line each; 1 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.pages", description=__doc__)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="names of pages; all by default")
    parser.add_argument(
        "--variants",
        nargs="+",
        default=variants.VARIANTS,
        choices=variants.VARIANTS,
    )
    parser.add_argument(
        "--backbone",
        help=f"folder of the variant `backbone`; by default of {', '.join(FAMILIES)}",
    )
    parser.add_argument("--sample", type=int, help="run only so many, drawn by --turn")
    parser.add_argument(
        "--turn",
        default="",
        help="any text, such as a commit; the same text draws the same sample",
    )
    options = parser.parse_args(arguments)
    # Before each lane is told to use one thread
    started, lanes = time.monotonic(), min(2, cpu_count())
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        os.environ.update(OMP_NUM_THREADS="1", REPRO_THREADS="1", TOKENIZERS_PARALLELISM="false")
        os.environ.update(REPRO_HOME=f"{folder}/home", REPRO_HUB=str(make_hub(folder / "hub")))
        runs = list(_runs(folder, options.pages, options.variants, options.backbone))
        if options.sample:
            runs = [run for run in runs if run.values]
            runs = random.Random(options.turn).sample(runs, min(options.sample, len(runs)))

        failed = 0
        with ThreadPoolExecutor(lanes) as pool:
            for run, seconds, outcome in pool.map(lambda run: run.outcome(folder), runs):
                failed += outcome.startswith("FAILED")
                say(f"{run.page.stem:36} | {run.variant:11} | {seconds:5.0f} s | {outcome}")
    say(f"{len(runs)} runs, {failed} failed, in {time.monotonic() - started:.0f} s")
    return 1 if failed else 0


def _runs(
    folder: Path,
    names: Sequence[str],
    kinds: Sequence[str],
    backbone: str | None,
) -> Iterator[Run]:
    made = networks.make(
        folder / "networks",
        data.load("wiki", source="microworld", limit=600).texts,
    )
    for place, page in enumerate(PAGES):
        if names and page.stem not in names:
            continue
        declared = parameters_of(page)
        for turn, kind in enumerate(variants.VARIANTS):
            if kind not in kinds:
                continue
            own, *others = (made[FAMILIES[(place + turn + n) % len(FAMILIES)]] for n in range(3))
            given = [backbone or own, *others]
            if kind == variants.PAIRS:
                for number, values in enumerate(variants.paired(declared, given)):
                    yield Run(page, f"{kind} {number}", values)
            else:
                given = given if kind in variants.PROFILES else given[:1]
                yield Run(page, kind, variants.values(declared, kind, given))


if __name__ == "__main__":
    sys.exit(main())
