"""What the README tells a reader to type exists and is accepted; `.ci/run` types all of it."""

import re
import shlex
from pathlib import Path

import pytest

from repro.book import notebook

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(?:bash|console)\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
COMMANDS = [shlex.split(line.removeprefix("$ ")) for block in BLOCKS for line in block.splitlines() if line.strip()]
RUNS = [words for words in COMMANDS if words[:2] == [".venv/bin/repro", "run"]]


def test_make_verbs_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    verbs = [words[1] for words in COMMANDS if words[0] == "make"]
    assert {"book", "test", "notebooks"} <= set(verbs)
    assert all(re.search(rf"^{verb}:", makefile, flags=re.MULTILINE) for verb in verbs)


@pytest.mark.parametrize("words", RUNS, ids=" ".join)
def test_notebooks_accept_the_parameters_shown(words):
    given = {words[at + 1]: words[at + 2] for at, word in enumerate(words) if word == "-p"}
    assert notebook.validate(notebook.parameters_of(notebook.locate(words[2])), given).keys() == given.keys()


def test_what_is_exported_was_advised_before():
    verbs = [words[1] for words in COMMANDS if words[0].endswith("repro")]
    option = {
        words[1]: dict(zip(words[2::2], words[3::2], strict=True))
        for words in reversed(COMMANDS)
        if words[0].endswith("repro") and words[1] in ("advise", "export")
    }
    assert verbs.index("advise") < verbs.index("export")
    assert option["export"]["--reducer"] == option["advise"]["--output"]
    assert option["advise"]["--encoder"] == "all-MiniLM-L6-v2", "a network that knows nothing has no size to spare"
