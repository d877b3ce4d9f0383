"""Kernels forked from a process that has imported the heavy libraries behave as fresh interpreters."""

import os
import signal
import sys

import psutil
import pytest

from repro.book import notebook

CELL = """```{code-cell} ipython3
%s
```
"""
RUN = """
import sys
from pathlib import Path
from repro.book import kernel, notebook

if __name__ == "__main__":
    kernel.IMPORTED = ("ipykernel.kernelapp",)
    notebook.run(Path(sys.argv[1]), Path(sys.argv[2]), forked=True)
"""


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux only")


def write(path, *cells):
    path.write_text("# Title\n\n" + "\n".join(CELL % cell for cell in cells), encoding="utf-8")
    return path


def printed(node):
    return "".join(output.text for cell in node.cells for output in cell.get("outputs", []) if "text" in output)


def test_two_forked_notebooks_share_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("SEEN_BY_KERNEL", "first")
    source = write(
        tmp_path / "n.md",
        "import os, sys\nprint('torch' in sys.modules, 'left_behind' in os.environ, os.environ['SEEN_BY_KERNEL'])",
        "os.environ['left_behind'] = '1'\nprint(os.getcwd(), os.getsid(0) == os.getpid())",
    )
    first = notebook.run(source, tmp_path / "a.ipynb", forked=True)
    monkeypatch.setenv("SEEN_BY_KERNEL", "second")
    second = notebook.run(source, tmp_path / "b.ipynb", forked=True)
    assert printed(first) == f"True False first\n{tmp_path} True\n"
    assert printed(second) == f"True False second\n{tmp_path} True\n"


def napping(tmp_path):
    """A page that notes the process of its kernel and sleeps."""
    code = f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    return write(tmp_path / "n.md", code), tmp_path / "pid"


def test_a_forked_kernel_can_be_stopped(tmp_path):
    source, note = napping(tmp_path)
    with pytest.raises(notebook.NotebookError, match="longer than 3 s"):
        notebook.run(source, tmp_path / "n.ipynb", timeout=3, forked=True)
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


def test_a_forked_kernel_ends_with_the_run_that_started_it(python, tmp_path, wait_for):
    source, note = napping(tmp_path)
    running = python(RUN, source, tmp_path / "n.ipynb")
    wait_for(lambda: note.is_file() and note.read_text() != "")
    own = psutil.Process(int(note.read_text()))
    running.send_signal(signal.SIGKILL)
    running.wait(timeout=30)
    wait_for(lambda: not own.is_running())
