import re

NAP = """
from repro.seeding import done_in_processes
list(done_in_processes(abs, [1, 2], 2))
"""


def test_a_script_without_a_main_guard_is_told_so(python):
    said = python(NAP).stderr
    assert re.search(r"InputError: a worker process died.*below `if __name__ == \"__main__\":`", said)
