"""The package as a wheel, outside the checkout: its commands run there, and so does the page
`as_a_library`.

What it needs is taken from the environment that runs this. Takes a minute: CI runs it, pytest does
not.
"""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

from repro.book import notebook
from repro.paths import project_root

PAGE = "as_a_library"
VERBS = (
    "repro --version",
    "repro encode --encoder repro-tiny --texts texts.txt --output X.npy",
    "repro reduce --method pca --dim 2 --input X.npy --output Y.npy",
    "dimadvise advise X.npy --dims 64 16 --levels float32 --output advice",
)


def main() -> None:
    """Build, install and run; a command that fails ends it."""
    root = project_root()
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pip = [sys.executable, "-m", "pip", "--quiet"]
        built = ["--no-deps", "--no-build-isolation", "--wheel-dir", name]
        # Of a copy: setuptools leaves a folder `build` behind
        shutil.copytree(root / "src", folder / "source" / "src")
        for file in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(root / file, folder / "source")
        subprocess.run([*pip, "wheel", str(folder / "source"), *built], check=True)
        (wheel,) = folder.glob("*.whl")
        venv.create(folder / "venv", symlinks=os.name != "nt")
        paths = sysconfig.get_paths(vars={"base": str(folder / "venv")}, scheme="venv")
        python = str(Path(paths["scripts"], "python"))
        subprocess.run(
            [*pip, "--python", python, "install", "--no-deps", str(wheel)], check=True, env=kept
        )
        # It brings packages and not their own .pth files, so that the checkout stays out
        Path(paths["purelib"], "needed.pth").write_text(sysconfig.get_paths()["purelib"])
        away = folder / "away"
        away.mkdir()
        texts = [
            f"the {size} dog sees {count} horses" for size in ("old", "new") for count in range(99)
        ]
        (away / "texts.txt").write_text("\n".join(texts))
        cells = notebook.read(root / "notebooks" / f"{PAGE}.md").cells
        code = [cell.source for cell in cells if cell.cell_type == "code"]
        (away / "page.py").write_text("\n".join(code), encoding="utf-8")
        there = {"cwd": away, "env": {**kept, "REPRO_HOME": str(folder / "store")}, "check": True}
        for line in VERBS:
            verb, *words = shlex.split(line)
            subprocess.run([str(Path(paths["scripts"], verb)), *words], **there)
        subprocess.run([python, "page.py"], **there)


if __name__ == "__main__":
    main()
