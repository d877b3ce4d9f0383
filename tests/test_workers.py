import os
import re
import signal

import psutil
import pytest

NAP = """
import os, signal, sys, time
from pathlib import Path
from repro.seeding import done_in_processes

def nap(item):
    (Path(sys.argv[1]) / f"{os.getpid()}.pid").touch()
    time.sleep(600)

def main():
    try:
        list(done_in_processes(nap, [1, 2], 2))
    except KeyboardInterrupt:
        raise SystemExit(130)
"""
# A shell that runs this in the background has its children ignore interrupts
HEARD = "signal.signal(signal.SIGINT, signal.default_int_handler)"
GUARDED = NAP + f"if __name__ == '__main__':\n    {HEARD}\n    os.setpgrp()\n    main()\n"


@pytest.mark.parametrize(
    ("number", "send", "code"),
    [(signal.SIGKILL, os.kill, -signal.SIGKILL), (signal.SIGINT, os.killpg, 130)],
    ids=["killed", "interrupted, all at once as by a terminal"],
)
def test_workers_end_with_their_parent_and_in_silence(number, send, code, python, tmp_path, wait_for):
    process = python(GUARDED, tmp_path)
    wait_for(lambda: len(list(tmp_path.glob("*.pid"))) == 2)
    workers = [psutil.Process(int(path.stem)) for path in tmp_path.glob("*.pid")]
    send(process.pid, number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == code
    assert "Traceback" not in errors
    wait_for(lambda: not any(worker.is_running() for worker in workers))


def test_a_script_without_a_main_guard_is_told_so(python, tmp_path):
    _, errors = python(NAP + "main()\n", tmp_path).communicate(timeout=60)
    assert re.search(r"InputError: a worker process died.*below `if __name__ == \"__main__\":`", errors)
