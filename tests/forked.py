"""What a process does that was forked from one with the heavy libraries: see the fixture `forked`."""

import os
import traceback
from collections.abc import Mapping
from multiprocessing.connection import Connection


def run(code: str, tells: Connection, given: Mapping[str, object], environment: Mapping[str, str]) -> None:
    """Run a script that finds what it is given by name, and send what it calls `answer`, or what went wrong."""
    os.environ.clear()
    os.environ.update(environment)
    names = {**given, "answer": None}
    try:
        exec(code, names)
    except BaseException as error:
        error.add_note(traceback.format_exc())
        tells.send(error)
        raise
    tells.send(names["answer"])
