"""The book: execute the pages that changed, two at a time, keep the others, render all of them.

Every page lands in `_build/book/` under the path it has in the checkout: notebooks executed, prose
as it is. Jupyter Book renders that tree with execution off, so one `_toc.yml` serves this builder
and a plain `jupyter-book build .`.
"""

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from filelock import Timeout

from repro.book import contents_file, execution, notebook, site
from repro.book.ledger import Ledger
from repro.book.parameters import parameters_of
from repro.digests import digest
from repro.loaded import read_all
from repro.locks import locked
from repro.seeding import cpu_count, environment
from repro.terminal import say
from repro.types import InputError, above_zero

LOCK = "book.lock"
LAST = "book/scorecard"  # Reads what the others computed, hence runs after them
# Set in the metadata of a notebook that measures time: nothing else runs beside it
ALONE = "runs_alone"
# Cause to execute a page again: what it left for the scorecard is lost or damaged
VERDICTS = "its verdicts"
SKIPPED = "REPRO_SKIPPED"  # Tells extensions, line by line, the pages that are not up to date
PROFILE = "the profile"  # Cause for the pages that have such a parameter


@dataclass(frozen=True)
class Page:
    """What became of one page."""

    name: str
    status: Literal["executed", "unchanged", "copied", "skipped", "failed"]
    seconds: float = 0.0
    error: str = ""

    def __str__(self) -> str:
        """One line of progress."""
        took = f" in {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.name}: {self.status}{took}" + (f" - {self.error}" if self.error else "")


@dataclass(frozen=True)
class Book:
    """What became of the book."""

    index: Path
    pages: tuple[Page, ...]
    complaints: tuple[str, ...]  # Of the rendering
    seconds: float

    @property
    def failures(self) -> list[Page]:
        """The pages that did not execute."""
        return [page for page in self.pages if page.status == "failed"]

    @property
    def ok(self) -> bool:
        """Whether every page executed and rendered without complaint."""
        return not self.failures and not self.complaints


@dataclass(frozen=True)
class _Build:
    """What all pages of one build share."""

    root: Path
    ledger: Ledger
    profile: str
    force: bool
    timeout: float | None

    @property
    def tree(self) -> Path:
        return self.root / "_build" / "book"

    def verdicts(self, name: str) -> Path:
        """The file that a page leaves for the scorecard, if it judges a claim."""
        return self.root / "_build" / "verdicts" / f"{name.rsplit('/', 1)[-1]}.parquet"

    def digest_of_verdicts(self, names: Iterable[str]) -> str:
        """Digest of what pages left for the scorecard."""
        return site.contents(map(self.verdicts, names), self.root / "_build" / "verdicts")


def build(
    root: Path,
    *,
    profile: str = "embedded",
    only: Collection[str] | None = None,
    force: bool = False,
    timeout: float | None = None,
) -> Book:
    """Bring `_build/html/` of a checkout up to date; a failing page is shown with its error and
    tried again next time.

    The profile is passed to every notebook that declares a parameter of that name; `only` names the
    pages to execute, bare or with folder; `timeout` is in seconds of a single cell.
    """
    if timeout is not None:
        above_zero(timeout, "timeout")
    root, started = root.resolve(), time.monotonic()
    pages = contents_file.pages_of(root)
    chosen = contents_file.choose(pages, only)
    build_folder = root / "_build"
    (build_folder / "book").mkdir(parents=True, exist_ok=True)
    lanes = 2 if profile == "embedded" and cpu_count() > 1 else 1
    done: dict[str, Page] = {}
    # Encoders come out the same to the byte whatever it is
    share = str(max(1, cpu_count() // lanes))
    # For the book, verdicts count
    variables = {"REPRO_BOOK": "1", "REPRO_THREADS": share, "OMP_NUM_THREADS": share}
    with one_at_a_time(build_folder), environment(variables):
        run = _Build(root, Ledger(build_folder), profile, force, timeout)
        carried = site.prepare(root, run.tree, run.ledger)
        causes = site.surroundings(root)
        read_all()  # Kernels run code as it is now, even where it is edited while others work

        def update(name: str) -> None:
            done[name] = page = _update(run, name, pages[name], causes, name in chosen)
            say(f"[{len(done)}/{len(pages)}] {page} ({time.monotonic() - started:.0f} s so far)")

        alone = [name for name in pages if notebook.read(pages[name]).metadata.get(ALONE)]
        _side_by_side([name for name in pages if name not in (LAST, *alone)], update, lanes)
        for name in alone:
            update(name)
        run.ledger.keep_only(build_folder / "verdicts", map(run.verdicts, pages))
        if LAST in pages:
            judging_pages = [path.stem for path in (build_folder / "verdicts").glob("*")]
            causes["a verdict of another page"] = run.digest_of_verdicts(judging_pages)
            update(LAST)
        gone = site.prune(run.tree, pages, carried, run.ledger)
        skipped = [name for name, page in done.items() if page.status == "skipped"]
        with environment({SKIPPED: "\n".join(skipped)}):
            complaints = _render(run, fresh=gone)
    order = tuple(done[name] for name in pages)
    return Book(
        build_folder / "html" / "index.html", order, tuple(complaints), time.monotonic() - started
    )


def _side_by_side(names: Sequence[str], update: Callable[[str], None], lanes: int) -> None:
    """Work on the names from the front and, in a second lane, from the back: neighbours train the
    same encoders.
    """
    queue = deque(names)

    def work(take: Callable[[], str]) -> None:
        while True:
            try:
                name = take()
            except IndexError:
                return
            update(name)

    with ThreadPoolExecutor(lanes) as pool:
        running = [pool.submit(work, take) for take in (queue.popleft, queue.pop)[:lanes]]
        try:
            wait(running, return_when=FIRST_EXCEPTION)
        finally:
            queue.clear()  # After an error or Ctrl-C no lane starts another page
    for lane in running:
        lane.result()


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Let one build work below a folder at a time; a second one says that it waits."""
    with ExitStack() as locks:
        try:
            locks.enter_context(locked(folder / LOCK, timeout=0))
        except Timeout:
            say("another build is at work here: waiting for it")
            locks.enter_context(locked(folder / LOCK))
        yield


def _update(run: _Build, name: str, source: Path, causes: Mapping[str, str], chosen: bool) -> Page:
    """Copy or execute one page, if it must be."""
    text = source.read_bytes()
    node = notebook.read(source)
    plain, target = (run.tree / f"{name}{suffix}" for suffix in (source.suffix, ".ipynb"))
    if not any(cell.cell_type == "code" and cell.source.strip() for cell in node.cells):
        if target != plain:
            run.ledger.remove(target)
        with run.ledger.changed() as ledger:
            ledger.pages.pop(name, None)
        return Page(name, "copied" if run.ledger.write(plain, text) else "unchanged")
    now = {"its text": digest(text.hex()), **site.code_of(node), **causes}
    with suppress(InputError):  # Which its execution will raise as well
        if "profile" in parameters_of(node):
            now[PROFILE] = run.profile
    now[VERDICTS] = run.digest_of_verdicts([name])
    reasons = site.differences(run.ledger.pages.get(name) if target.is_file() else None, now)
    if target.is_file() and not notebook.ours(target):
        reasons = [*reasons, "its executed copy changed"]
    if chosen and (reasons or run.force):
        say(f"{name}: executing because: {', '.join(reasons) or 'forced'}")
        page = _execute(run, name, source, target, now)
    else:
        page = Page(name, "skipped" if reasons else "unchanged")
    # Never executed so far: a page must exist to be rendered, if only without numbers
    if not target.is_file():
        run.ledger.write(plain, text)
    return page


def _execute(run: _Build, name: str, source: Path, target: Path, now: Mapping[str, str]) -> Page:
    started = time.monotonic()
    with run.ledger.changed() as ledger:
        ledger.pages.pop(name, None)
    run.ledger.give_way([target, run.verdicts(name)])
    try:
        declared = parameters_of(source)
        # A value equal to the default is not injected: the page would show a second cell of
        # parameters for nothing.
        differs = "profile" in declared and declared["profile"].default != run.profile
        values = {"profile": run.profile} if differs else {}
        how: dict[str, Any] = {"timeout": run.timeout, "forked": True, "failed": target}
        execution.run(source, target, values, **how)
    except (execution.NotebookError, InputError) as error:
        return Page(name, "failed", seconds=time.monotonic() - started, error=str(error))
    run.ledger.note([run.verdicts(name)])
    with run.ledger.changed() as ledger:
        ledger.pages[name] = {**now, VERDICTS: run.digest_of_verdicts([name])}
    return Page(name, "executed", seconds=time.monotonic() - started)


def _render(run: _Build, *, fresh: bool) -> list[str]:
    """Render, unless the tree is what was last rendered; from nothing if so asked, or if the last
    time did not end.
    """
    stamp = site.stamps(run.tree)
    rendered = run.ledger.rendered
    if rendered == stamp and run.ledger.holds(run.root / "_build" / "html"):
        say("rendering: nothing changed")
        return []
    started = time.monotonic()
    with run.ledger.changed() as ledger:
        ledger.rendered = ""  # Until it has ended: what a kill leaves half written is made afresh
    complaints = site.render(run.tree, run.ledger, fresh=fresh or not rendered)
    with run.ledger.changed() as ledger:
        ledger.rendered = "" if complaints else stamp
    say(
        f"rendering: {'with complaints' if complaints else 'done'} in "
        f"{time.monotonic() - started:.1f} s"
    )
    return complaints
