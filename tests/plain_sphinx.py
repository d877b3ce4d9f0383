"""The way out of Jupyter Book 1: `python tests/plain_sphinx.py` renders the executed pages of the
last build by Sphinx alone, with sphinx-external-toc and sphinx-book-theme, warnings as errors.

Contents, settings and extensions are those that `repro book` carries into `_build/book/`; nothing
of Jupyter Book is loaded. The result lies in `_build/plain/`.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from pprint import pformat
from typing import Any

import yaml

from repro.paths import project_root
from repro.terminal import say

EXTENSIONS = (
    "myst_nb",
    "sphinx_togglebutton",
    "sphinx_copybutton",
    "sphinx_external_toc",
    "sphinx_design",
    "sphinx_book_theme",
    "sphinxcontrib.bibtex",
)


def settings(said: dict[str, Any], tree: Path) -> dict[str, Any]:
    """Sphinx's settings from those of `_config.yml`."""
    sphinx = said["sphinx"]
    return {
        "project": said["title"],
        "html_title": said["title"],
        "author": said["author"],
        "copyright": said["copyright"],
        "extensions": [*EXTENSIONS, *sphinx["local_extensions"]],
        "html_theme": "sphinx_book_theme",
        "external_toc_path": str(tree / "_toc.yml"),
        "external_toc_exclude_missing": True,
        "bibtex_bibfiles": [str(tree / name) for name in said["bibtex_bibfiles"]],
        "nb_execution_mode": "off",
        "myst_enable_extensions": said["parse"]["myst_enable_extensions"],
        **sphinx["config"],
        "html_static_path": [str(tree / name) for name in sphinx["config"]["html_static_path"]],
    }


def main() -> int:
    """Render; Sphinx's exit status."""
    made = project_root() / "_build"
    tree = made / "book"
    if not (tree / "_config.yml").is_file():
        say("no executed pages in _build/book: run `repro book` first")
        return 2
    said = yaml.safe_load((tree / "_config.yml").read_text(encoding="utf-8"))
    folders = sorted({str(tree / name) for name in said["sphinx"]["local_extensions"].values()})
    lines = ["import sys", f"sys.path[:0] = {folders!r}"]
    lines += [f"{name} = {pformat(value)}" for name, value in settings(said, tree).items()]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "conf.py").write_text("\n".join(lines), encoding="utf-8")
        command = [sys.executable, "-m", "sphinx", "-n", "-W", "--keep-going", "-q", "-b", "html"]
        done = subprocess.run([*command, "-c", folder, str(tree), str(made / "plain")], check=False)
    return done.returncode


if __name__ == "__main__":
    raise SystemExit(main())
