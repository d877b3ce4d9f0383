"""`python -m tests.pages`: every page of the book under a reader's own parameters, at toy size; 1 if one fails."""

import argparse
import os
import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import papermill

from repro import data
from repro.experiments import kernel, notebook
from repro.experiments.notebook import NotebookError
from repro.paths import project_root
from repro.seeding import cpu_count
from repro.types import InputError
from tests.pages import networks, variants

ROOT = project_root()
FAMILIES = ("bert", "roberta", "mpnet", "llama")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.pages", description=__doc__)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="names of pages; all by default")
    parser.add_argument("--variants", nargs="+", default=variants.VARIANTS, choices=variants.VARIANTS)
    parser.add_argument("--families", nargs="+", default=FAMILIES)
    parser.add_argument("--lanes", type=int, default=min(2, cpu_count()))
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--through", action="store_true")
    options = parser.parse_args(arguments)
    os.environ.update(OMP_NUM_THREADS="1", REPRO_THREADS="1", TOKENIZERS_PARALLELISM="false")
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as made:
        folder = options.keep or Path(made)
        os.environ["REPRO_HOME"] = str(folder / "home")
        here = folder / "networks"
        if here.is_dir():
            tiny = {name: str(here / f"tiny-{name}") for name in networks.FAMILIES}
        else:
            tiny = networks.make(here, data.load("wiki", source="microworld", limit=600).texts)
        jobs = []
        for page in options.pages or sorted(path.stem for path in (ROOT / "notebooks").glob("*.md")):
            for variant in options.variants:
                for family in options.families if variant == "backbone" else [""]:
                    jobs.append((page, variant, family))

        def work(job):
            page, variant, family = job
            source = ROOT / "notebooks" / f"{page}.md"
            chosen = [tiny[family]] if family else [tiny["roberta"], tiny["bert"], tiny["qwen"]]
            given = variants.values(notebook.parameters_of(source), variant, chosen)
            if given is None:
                return job, 0.0, "none to change"
            begun, outcome = time.monotonic(), "ok"
            target = folder / "runs" / f"{page}-{variant}-{family}.ipynb".replace(" ", "_")
            try:
                if options.through:
                    node = notebook.read(source)
                    for cell in node.cells:
                        if cell.cell_type == "code":
                            cell.metadata.setdefault("tags", []).append("raises-exception")
                    import jupytext

                    src = folder / "src" / target.name
                    src.parent.mkdir(exist_ok=True)
                    jupytext.write(node, src, fmt="ipynb")
                    done = notebook.run(src, target, given, timeout=300, forked=True, cwd=ROOT)
                    errors = [
                        (i, o)
                        for i, c in enumerate(done.cells)
                        for o in c.get("outputs", [])
                        if o.output_type == "error"
                    ]
                    import re as r

                    if errors:
                        outcome = "FAILED" + "".join(
                            f"\n   cell {i}: {o.ename}: {o.evalue[:300]}\n"
                            + "\n".join(
                                "        " + line
                                for line in r.sub(r"\x1b\[[0-9;]*m", "", "\n".join(o.traceback)).splitlines()
                                if line.startswith(("File", "---")) or "-->" in line
                            )[-900:]
                            for i, o in errors
                        )
                else:
                    notebook.run(source, target, given, timeout=300, forked=True)
            except (NotebookError, InputError) as error:
                outcome = f"FAILED {error}"
                if options.through and target.is_file():
                    import subprocess

                    outcome = (
                        "FAILED\n"
                        + subprocess.run(
                            [sys.executable, "errors.py", str(target)], capture_output=True, text=True
                        ).stdout
                    )
            except Exception as error:
                outcome = f"FAILED {type(error).__name__} {error}"
            return job, time.monotonic() - begun, outcome

        failed = 0
        with ThreadPoolExecutor(options.lanes) as pool:
            from concurrent.futures import as_completed

            for done in as_completed([pool.submit(work, job) for job in jobs]):
                (page, variant, family), seconds, outcome = done.result()
                failed += outcome.startswith("FAILED")
                print(f"{page:38} | {(variant + ' ' + family).strip():18} | {seconds:6.1f} | {outcome}", flush=True)
    print(f"{len(jobs)} runs, {failed} failed, in {time.monotonic() - started:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
