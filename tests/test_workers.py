import re


def test_a_script_without_a_main_guard_is_told_so(python):
    said = python(
        "from repro.seeding import done_in_processes\nlist(done_in_processes(abs, [1, 2], 2))"
    ).stderr
    assert re.search(
        r"InputError: a worker process died.*below `if __name__ == \"__main__\":`",
        said,
    )
