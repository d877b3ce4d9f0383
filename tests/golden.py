"""Did a rearrangement change a number? What a build printed, drew, judged and trained, kept and compared.

    python tests/golden.py FOLDER   # after `make book`: its outputs, as text
    diff -r OLD NEW

It reads only what a build leaves (`_build/`, the store), so it outlives every change of the code that made it. Seconds,
megabytes, commits and dates are left out: they differ from build to build.
"""

import hashlib
import json
import re
import sys
from pathlib import Path

import nbformat
import pandas as pd

from repro import paths

VOLATILE = (
    (re.compile(r"\d[\d,.]*( ± [\d.]+)? ?(s|ms|µs|MB|seconds|minutes)\b"), "TIME"),
    (re.compile(r"(commit|hardware|created)(: <b>|\W+)[^·;<\n]*"), r"\1"),
    (re.compile(r"/\S*/(\.repro|_build)/\S*"), "PATH"),
    (re.compile(r"\b[0-9a-f]{16,}\b"), "DIGEST"),
    (re.compile(r"(\d+) found in the store, (\d+) trained now"), "TRAINED"),
)
TIMED = ("ese_figure6_efficiency", "zhang_table1_timing", "wang_ablations")
"""pages whose figures draw seconds: their pictures are not compared"""


def keep(folder: Path) -> None:
    """One text file a page, the verdicts, and the checksums of trained encoders."""
    root = paths.project_root()
    folder.mkdir(parents=True, exist_ok=True)
    for page in sorted((root / "_build" / "book").glob("**/*.ipynb")):
        pictures = page.stem not in TIMED
        lines = [line for cell in nbformat.read(page, 4).cells for line in outputs(cell, pictures)]
        (folder / f"{page.stem}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    judged = [pd.read_parquet(p).assign(page=p.stem) for p in sorted((root / "_build" / "verdicts").glob("*.parquet"))]
    verdicts = pd.concat(judged, ignore_index=True)
    verdicts = verdicts[~verdicts["what"].str.contains("second|time", na=False)]
    (folder / "verdicts.txt").write_text(verdicts.to_csv(index=False, float_format="%.9g"), encoding="utf-8")
    (folder / "encoders.txt").write_text("\n".join(encoders()) + "\n", encoding="utf-8")


def outputs(cell: nbformat.NotebookNode, pictures: bool) -> list[str]:
    """What a cell showed, without what changes from build to build."""
    found = []
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        text = output.get("text") or data.get("text/markdown") or data.get("text/plain") or ""
        if pictures and "image/svg+xml" in data:
            text = f"drawing {hashlib.sha256(''.join(data['image/svg+xml']).encode()).hexdigest()[:12]}"
        text = "".join(text)
        for pattern, word in VOLATILE:
            text = pattern.sub(word, text)
        found += text.splitlines()
    return found


def encoders() -> list[str]:
    """A line per trained encoder of the store: its configuration's digest and the checksums of its weights."""
    lines = []
    for manifest in paths.home().glob("encoders/*/manifest.json"):
        note = json.loads(manifest.read_text(encoding="utf-8"))
        name = hashlib.sha256(json.dumps(note["config"], sort_keys=True).encode()).hexdigest()[:12]
        weights = [digest[:12] for file, digest in sorted(note["files"].items()) if file.endswith(".safetensors")]
        c = note["config"]
        lines.append(f"{c['objective']} {c['backbone']} dim {c['dim']} seed {c['seed']} {name}: {' '.join(weights)}")
    return sorted(set(lines))


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
