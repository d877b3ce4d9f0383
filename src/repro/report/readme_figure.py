"""Draw the README's figure again, after recording: `python -m repro.report.readme_figure`."""

from pathlib import Path

from repro import paths
from repro.report.figures import draw_readme_figure
from repro.store import replacing


def write_readme_figure(path: Path | None = None) -> Path:
    """Write the figure where the README shows it, or to another path; returns the path."""
    path = path or paths.project_root() / "book" / "_static" / "readme_figure.svg"
    with replacing(path) as partial:
        partial.write_text(draw_readme_figure().svg(), encoding="utf-8")
    return path


if __name__ == "__main__":
    write_readme_figure()
