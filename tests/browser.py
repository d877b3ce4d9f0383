"""How the book meets its readers: `python tests/browser.py` opens all built pages in Chromium, wide and narrow.

Every page is loaded into a frame as wide as a screen and as a phone, and asked how long it is, where its first figure
stands, what is cut off, and what the console said; then axe looks for what bars readers, with all folds open. Exits 1
where a page is broken: it scrolls sideways, the console holds an error, a link leads nowhere, something is cut off, a
notebook's first figure is not on the first screen, or axe finds something serious or critical.
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

import axe_core_python
import pandas as pd

from repro.paths import project_root
from repro.seeding import cpu_count
from repro.terminal import say

SIZES = {"wide": (1280, 900), "narrow": (390, 844)}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
AXE = Path(axe_core_python.__file__).with_name("axe.min.js")
ASK = """
const jobs = JOBS, found = [], wait = ms => new Promise(done => setTimeout(done, ms));
const cut = e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0;
async function barriers(inner, doc) {
  const script = Object.assign(doc.createElement("script"), {src: AXE}), serious = [];
  doc.head.append(script);
  await new Promise(done => { script.onload = done; });
  doc.querySelectorAll("details").forEach(fold => { fold.open = true; });
  const ground = e => e && [inner.getComputedStyle(e).backgroundColor, inner.getComputedStyle(e).opacity]
    + ground(e.parentElement);
  const look = e => { const s = inner.getComputedStyle(e);
    return e.tagName + e.getAttribute("class") + [s.color, s.fill, s.fontSize, s.fontWeight] + ground(e); };
  async function run(theme, where, options) {
    const said = await inner.axe.run(where, {...options, resultTypes: ["violations"]});
    for (const {id, impact, nodes} of said.violations) if (["serious", "critical"].includes(impact))
      serious.push(`${theme}: ${id} at ${nodes.map(node => node.target).join(", ")}`);
  }
  await run("light", doc, {rules: {"color-contrast": {enabled: false}}});
  for (const theme of ["light", "dark"]) { // of texts that look alike one is enough
    doc.documentElement.dataset.theme = theme;
    await wait(600);
    const texts = [...doc.body.querySelectorAll("*")].filter(e => e.checkVisibility()
      && [...e.childNodes].some(child => child.nodeType === 3 && child.data.trim()));
    const include = [...new Map(texts.map(e => [look(e), e])).values()];
    await run(theme, {include}, {runOnly: ["color-contrast"]});
  }
  return serious;
}
async function ask([page, size, width, height]) {
  const frame = document.createElement("iframe"), errors = [];
  Object.assign(frame.style, {width: width + "px", height: height + "px", border: 0});
  frame.src = page;
  document.body.append(frame);
  await new Promise(done => { frame.onload = done; setTimeout(done, 20000); });
  const inner = frame.contentWindow, doc = frame.contentDocument;
  inner.addEventListener("error", event => errors.push(event.message));
  inner.console.error = (...said) => errors.push(said.join(" "));
  await wait(600);
  const open = e => !e.closest("details:not([open])");
  const body = doc.querySelector("article, main") || doc.body;
  const figures = [...body.querySelectorAll("img, svg[role=img], .output svg, figure, .vega-embed, canvas")]
    .filter(e => e.getBoundingClientRect().height > 80);
  const top = Math.min(...figures.map(e => e.getBoundingClientRect().top + inner.scrollY));
  const lost = [...doc.querySelectorAll("a[href^='#']")].map(a => a.getAttribute("href").slice(1))
    .filter(id => id && !doc.getElementById(decodeURIComponent(id)));
  const silent = [...body.querySelectorAll(".explorer select")].filter(select => { // a choice must change what is said
    const said = doc.querySelector(".explorer-said"), before = said.textContent;
    if (select.options.length < 2) return false;
    select.selectedIndex = 1;
    select.dispatchEvent(new inner.Event("input"));
    return said.textContent === before;
  }).map(select => select.name);
  const links = [...body.querySelectorAll("a[href]")].map(a => a.href).filter(to => to.startsWith("file:"));
  found.push({page, size, errors, lost: [...new Set(lost)], links: [...new Set(links)], silent,
    bare: figures.filter(e => e.matches(".cell_output img") && !e.closest("figure:has(figcaption)")).length,
    screens: doc.documentElement.scrollHeight / height, figure: figures.length ? top / height : null,
    sideways: doc.documentElement.scrollWidth - doc.documentElement.clientWidth,
    tables: [...body.querySelectorAll("table")].filter(t => open(t) && cut(t.parentElement)).length,
    code: [...body.querySelectorAll("pre")].filter(e => open(e) && cut(e)).length,
    serious: size === "wide" && body !== doc.body ? await barriers(inner, doc) : []}); // index.html only leads on
  frame.remove();
}
(async () => {
  for (const job of jobs) await ask(job);
  const out = document.createElement("pre");
  out.id = "found"; out.textContent = JSON.stringify(found);
  document.body.append(out);
})();
"""


def browser() -> str | None:
    """The path of a Chromium, where one is installed."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def measured(html: Path, pages: list[Path]) -> pd.DataFrame:
    """A line per page and size: length in screens, place of the first figure, what is cut off, errors, links."""
    jobs = [[page.as_uri(), size, *SIZES[size]] for page in pages for size in SIZES]
    with tempfile.TemporaryDirectory() as folder:
        asking = Path(folder) / "ask.html"
        script = ASK.replace("JOBS", json.dumps(jobs)).replace("AXE", json.dumps(AXE.as_uri()))
        asking.write_text(f"<!doctype html><meta charset=utf-8><body><script>{script}</script>", encoding="utf-8")
        options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--dump-dom")
        patience = ("--virtual-time-budget=100000000", f"--user-data-dir={folder}/profile", "--window-size=1400,1000")
        said = subprocess.run(
            [str(browser()), *options, *patience, asking.as_uri()], capture_output=True, text=True, check=True
        ).stdout
    answer = re.search(r'<pre id="found">(.*?)</pre>', said, re.DOTALL)
    if answer is None:
        raise SystemExit("the browser gave no answer")
    found = pd.DataFrame(json.loads(unescape(answer[1])))
    return found.assign(page=found["page"].str.removeprefix(html.as_uri() + "/"))


def broken(found: pd.DataFrame) -> list[str]:
    """What no page may have, a line each."""
    faults = []
    for row in found.itertuples():
        where = f"{row.page} ({row.size})"
        faults += [f"{where}: scrolls sideways by {row.sideways} px"] * (row.sideways > 0)
        faults += [f"{where}: the console said {said}" for said in row.errors]
        faults += [f"{where}: figures without a caption: {row.bare}"] * (row.bare > 0)
        faults += [f"{where}: the first figure is screens away"] * ("notebooks/" in row.page and row.figure > 1)
        faults += [f"{where}: cut off: tables {row.tables}, code {row.code}"] * (row.tables + row.code > 0)
        faults += [f"{where}: {said}" for said in row.serious]
        faults += [f"{where}: {name} changes nothing" for name in row.silent]
        faults += [f"{where}: no anchor #{name}" for name in row.lost]
        paths = (Path(link.partition("#")[0].removeprefix("file://")) for link in row.links)
        faults += [f"{where}: no file {path}" for path in paths if not path.exists()]
    return faults


def main(names: list[str]) -> int:
    """Print what was measured of all pages, or of those named; 1 if one is broken."""
    html = project_root() / "_build" / "html"
    pages = sorted([html / "index.html", *html.glob("book/*.html"), *html.glob("notebooks/*.html")])
    pages = [page for page in pages if not names or page.stem in names]
    with ThreadPoolExecutor(lanes := cpu_count()) as pool:
        found = pd.concat(pool.map(partial(measured, html), [pages[lane::lanes] for lane in range(lanes)]))
    found = found.sort_values(["page", "size"], ascending=[True, False])
    say(found.drop(columns=["errors", "lost", "links", "silent", "serious"]).round(1).to_string(index=False))
    middle = found.groupby("size")[["screens", "figure", "tables", "code"]].median()
    say(f"medians:\n{middle.round(1).to_string()}")
    faults = broken(found)
    say("\n".join(faults))
    return int(bool(faults))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
