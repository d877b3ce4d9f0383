"""How the book meets its readers: `python tests/browser.py` opens all built pages in Chromium, wide
and narrow.

Every page is loaded into a frame as wide as a screen and as a phone, and asked how long it is,
where its first figure stands, what is cut off, and what the console said; then axe looks for what
bars readers, with all folds open. Exits 1 where a page is broken: it scrolls sideways, the console
holds an error, a link leads nowhere, something is cut off, its first figure is not on the first
screen, a figure's letters have less than nine pixels on a phone, axe finds something serious or
critical, a sentence gives an interval that no table shows, or the explorer says in some
state what its table does not.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any

import axe_core_python
import pandas as pd

import explorer
from repro.paths import project_root
from repro.seeding import cpu_count
from repro.terminal import say

SIZES = {"wide": (1280, 900), "narrow": (390, 844)}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
AXE = Path(axe_core_python.__file__).with_name("axe.min.js")
ASK = Path(__file__).with_suffix(".js")
NUMBER = r"([−-]?\d+(?:\.\d+)?)"
SAID = re.compile(rf"\((?:[^()]*?(?:interval |alone |; |, ))?{NUMBER} to {NUMBER}\b[^()]*\)")
SHOWN = re.compile(rf"\[{NUMBER}, {NUMBER}\]")


def browser() -> str | None:
    """The path of a Chromium, where one is installed."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def measured(html: Path, pages: list[Path]) -> pd.DataFrame:
    """A line per page and size: length in screens, place of the first figure, what is cut off,
    errors, links.
    """
    jobs = [[page.as_uri(), size, *SIZES[size]] for page in pages for size in SIZES]
    given = f"const JOBS = {json.dumps(jobs)}, AXE = {json.dumps(AXE.as_uri())};"
    script = f"<script>{given}\n{ASK.read_text(encoding='utf-8')}</script>"
    found = pd.DataFrame(answer_of(script))
    return found.assign(page=found["page"].str.removeprefix(html.as_uri() + "/")).astype(
        {"figure": float}
    )


def answer_of(body: str) -> Any:
    """What the scripts of a page leave in its element `found`, as JSON, when all of them have
    run.
    """
    with tempfile.TemporaryDirectory() as folder:
        asking = Path(folder) / "ask.html"
        asking.write_text(f"<!doctype html><meta charset=utf-8><body>{body}", encoding="utf-8")
        options = (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--allow-file-access-from-files",
            "--dump-dom",
        )
        patience = (
            "--virtual-time-budget=100000000",
            f"--user-data-dir={folder}/profile",
            "--window-size=1400,1000",
        )
        command = [str(browser()), *options, *patience, asking.as_uri()]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    answer = re.search(r'<pre id="found">(.*?)</pre>', said, re.DOTALL)
    if answer is None:
        raise SystemExit("the browser gave no answer")
    return json.loads(unescape(answer[1]))


def broken(found: pd.DataFrame) -> list[str]:
    """What no page may have, a line each."""
    faults = []
    for row in found.itertuples():
        where = f"{row.page} ({row.size})"
        faults += [f"{where}: scrolls sideways by {row.sideways} px"] * (row.sideways > 0)
        faults += [f"{where}: the console said {said}" for said in row.errors]
        faults += [f"{where}: figures without a caption: {row.bare}"] * (row.bare > 0)
        faults += [f"{where}: the first figure is screens away"] * (row.figure > 1)
        faults += [f"{where}: cut off: tables {row.tables}, code {row.code}"] * (
            row.tables + row.code > 0
        )
        faults += [f"{where}: {said}" for said in (*row.serious, *row.small)]
        faults += [f"{where}: {name} changes nothing" for name in row.silent]
        faults += [f"{where}: no anchor #{name}" for name in row.lost]
        paths = (Path(link.partition("#")[0].removeprefix("file://")) for link in row.links)
        faults += [f"{where}: no file {path}" for path in paths if not path.exists()]
    return faults


def unshown(pages: list[Path], elsewhere: list[Path]) -> list[str]:
    """Sentences with an interval, (0.2 to 1.1), that no table has: [0.21, 1.06] or, turned round,
    [−1.06, −0.21].
    """
    texts = {page: words_of(page) for page in [*pages, *elsewhere]}
    shown = {
        page: [ends_of(found) for found in SHOWN.finditer(text)] for page, text in texts.items()
    }
    faults = []
    for page in pages:
        known = [
            pair for of in {page, *elsewhere} for c, d in shown[of] for pair in ((c, d), (-d, -c))
        ]
        for found in SAID.finditer(texts[page]):
            a, b = ends_of(found)
            near_a, near_b = (0.51 * 10.0 ** -len(end.partition(".")[2]) for end in found.groups())
            if a < b and not any(abs(a - c) < near_a and abs(b - d) < near_b for c, d in known):
                sentence = texts[page][max(0, found.start() - 60) : found.end()]
                faults.append(f"{page.name}: no table has the interval of {sentence!r}")
    return faults


def misled() -> list[str]:
    """What the explorer says that its table does not: a made one in every state, that of the book
    at every row.
    """
    made = explorer.walk(explorer.made_ways(), explorer.KEEP, explorer.MILLIONS, thorough=True)
    walks = [made, explorer.walk(explorer.recorded_ways(), (0.95, 0.98, 0.99))]
    return [fault for walk in walks for fault in walk.faults(answer_of(walk.body()))]


def words_of(page: Path) -> str:
    """What a page says, on one line."""
    html = re.sub(r"(?s)<(script|style).*?</\1>|<[^>]*>", " ", page.read_text(encoding="utf-8"))
    return " ".join(unescape(html).split())


def ends_of(interval: re.Match[str]) -> tuple[float, float]:
    """The two numbers."""
    low, high = (float(end.replace("−", "-")) for end in interval.groups())
    return low, high


def main(names: list[str]) -> int:
    """Print what was measured of all pages, or of those named; 1 if one is broken."""
    html = project_root() / "_build" / "html"
    places = ("sheet*.html", "book/*.html", "notebooks/*.html")
    pages = sorted([html / "index.html", *(page for place in places for page in html.glob(place))])
    if not (
        pages := [page for page in pages if page.is_file() and (not names or page.stem in names)]
    ):
        raise SystemExit(f"no such page in {html}: `make book` builds them")
    with ThreadPoolExecutor(lanes := min(len(pages), cpu_count())) as pool:
        found = pd.concat(
            pool.map(partial(measured, html), [pages[lane::lanes] for lane in range(lanes)])
        )
    found = found.sort_values(["page", "size"], ascending=[True, False])
    say(
        found.drop(columns=["errors", "lost", "links", "silent", "serious", "small"])
        .round(1)
        .to_string(index=False)
    )
    middle = found.groupby("size")[["screens", "figure", "tables", "code"]].median()
    say(f"medians:\n{middle.round(1).to_string()}")
    findings = html / "book" / "findings.html"
    notebooks, prose = (
        [page for page in pages if (page.parent.name == "notebooks") == own]
        for own in (True, False)
    )
    faults = [
        *broken(found),
        *unshown(notebooks, [findings]),
        *unshown(prose, sorted(html.glob("*/*.html"))),
    ]
    if not names or "explorer" in names:
        faults += misled()
    say("\n".join(faults))
    return int(bool(faults))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
