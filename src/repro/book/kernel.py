"""Kernels for notebooks: this interpreter with its environment, whatever kernels are registered on
the machine.

A book forks its kernels from one process that has imported the heavy libraries, once, and done
nothing else: no thread, no product, no random number. A page behaves as if it had a fresh
interpreter, six seconds sooner.
"""

import asyncio
import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from multiprocessing import forkserver
from types import SimpleNamespace
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner

from repro.loaded import read_loaded
from repro.seeding import end_with_parent, environment

IMPORTED = (
    "ipykernel.kernelapp",
    "ipykernel.debugger",
    "repro.models.encoder",
    "repro.runs.sweep",
    "repro.reducers",
    "repro.papers.recorded",
    "repro.report.page",
    "repro.report.curves",
    "repro.report.interactive",
    "microworld",
    "pyarrow.dataset",
    "sklearn.linear_model",
    "transformers.models.bert.modeling_bert",
    "matplotlib.backends.backend_svg",
    __name__,
)
"""What forked kernels have imported, this module last; the first network that is loaded asks for a
thousand modules.
"""
INLINE = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
"""How a kernel shows figures; matplotlib reads it once, as it is imported."""
QUIET = {"PYTHONWARNINGS": "ignore:IProgress not found"}
"""Progress is shown in the terminal, so tqdm need not ask for a widget."""
# Tells the process that kernels are forked from what it is
IN_SERVER = {"REPRO_FORKS_KERNELS": "1"}
SETTINGS = {"TOKENIZERS_PARALLELISM": "false", "PYDEVD_DISABLE_FILE_VALIDATION": "1", **QUIET}
"""Forked workers and frozen modules both print warnings into pages unless told not to."""
LAUNCH = (
    "import os, sys; del sys.path[0]; from repro.seeding import end_with_parent as ends; "
    "ends(int(os.environ['JPY_PARENT_PID'])); from ipykernel import kernelapp; "
    "kernelapp.launch_new_instance()"
)
"""Ipykernel's own watch over its parent misses one that dies while the kernel starts."""


class OwnKernel(AsyncKernelManager):
    """Starts `sys.executable`, over an encrypted connection: else every start warns that other
    users could listen.
    """

    transport_encryption = "auto"
    kernel_spec = KernelSpec(
        argv=[sys.executable, "-c", LAUNCH, "-f", "{connection_file}"],
        display_name="Python 3",
        language="python",
        metadata={"supported_encryption": ["curve"]},
        env=SETTINGS,
    )


class ForkedKernel(OwnKernel):
    """Forks a process that has the heavy libraries; Linux only, where forking them is sound."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.provisioner = _Forks(kernel_spec=self.kernel_spec, parent=self)


def manager(*, forked: bool) -> type[OwnKernel]:
    """The kernel manager for papermill: forked kernels where that is sound."""
    return ForkedKernel if forked and sys.platform == "linux" else OwnKernel


class _Forks(LocalProvisioner):
    """Launches a kernel from the fork server instead of by a command."""

    async def launch_kernel(self, cmd: list[str], **options: Any) -> KernelConnectionInfo:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(IMPORTED))
        given = dict(options.get("env") or os.environ)
        added = {
            name: value
            for name, value in (SETTINGS | INLINE | IN_SERVER).items()
            if name not in os.environ
        }
        with environment(added):  # Which the fork server keeps
            await asyncio.to_thread(forkserver.ensure_running)
        # Cmd is that of the specification: python -c LAUNCH -f FILE
        process = context.Process(target=_serve, args=(cmd[3:], given, options.get("cwd")))
        await asyncio.to_thread(process.start)
        assert process.pid is not None
        self.pid = self.pgid = process.pid
        # The names of Popen that a provisioner uses
        self.process = SimpleNamespace(  # type: ignore[assignment]
            poll=lambda: process.exitcode,
            wait=process.join,
            send_signal=partial(os.kill, process.pid),
            terminate=process.terminate,
            kill=process.kill,
            **dict.fromkeys(("stdin", "stdout", "stderr")),
        )
        return self.connection_info


def _serve(arguments: Sequence[str], given: Mapping[str, str], folder: str | None) -> None:
    """What a forked process does: become a kernel of its own session, in its own folder and
    environment.
    """
    os.setsid()  # The leader of a group, which the manager signals as a whole
    end_with_parent()  # The server lives on as long as a kernel does, so it would not tell
    os.environ.clear()
    os.environ.update(given)
    if folder:
        os.chdir(folder)
    from ipykernel import kernelapp

    kernelapp.launch_new_instance(argv=[*arguments, f"--IPKernelApp.parent_handle={os.getppid()}"])


if IN_SERVER.items() <= os.environ.items():  # No page then reads what the code it stands on does
    read_loaded()
