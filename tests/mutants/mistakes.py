"""The list of mistakes: what each means, where it is made, which tests should notice; and does it fit the package?"""

import ast
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).with_name("mutations.toml")


class ListError(Exception):
    """The list of mistakes does not fit the package any more."""


@dataclass(frozen=True)
class Mutant:
    """One mistake: what it means, the text of a line before and after, and the tests that should notice."""

    area: str
    file: str
    means: str
    before: str
    after: str
    tests: str

    def of(self, source: str) -> str:
        """The file with the mistake in it."""
        found = source.count(self.before)
        if found != 1 or self.before == self.after:
            what = f"{found} times: expected once" if found != 1 else "with nothing changed after it"
            raise ListError(f"{self.file}, {self.means!r}: the list has the text\n    {self.before}\n{what}")
        changed = source.replace(self.before, self.after)
        try:
            ast.parse(changed)
        except SyntaxError as error:
            raise ListError(f"{self.file}, {self.means!r}: no Python after the change ({error})") from None
        return changed


def read_list(text: str) -> list[Mutant]:
    """The mistakes, in the order of the list."""
    return [
        Mutant(part["area"], file, means, before, after, own[0] if own else part["tests"])
        for file, part in tomllib.loads(text).items()
        for means, before, after, *own in part["mutants"]
    ]


def check(mutants: list[Mutant], src: Path) -> None:
    """Refuse a list of which a line has gone, or that says one thing twice."""
    complaints = []
    for mutant in mutants:
        path = src / mutant.file
        try:
            for file in (path, *(src.parent / word.split("::")[0] for word in mutant.tests.split() if "/" in word)):
                if not file.exists():
                    raise ListError(f"{mutant.file}, {mutant.means!r}: there is no {file}")
            mutant.of(path.read_text(encoding="utf-8"))
        except ListError as error:
            complaints.append(str(error))
    twice = [key for key, n in Counter((m.file, m.before, m.after) for m in mutants).items() if n > 1]
    complaints += [f"{file}: listed twice\n    {before}" for file, before, _ in twice]
    if complaints:
        raise ListError("\n".join([*complaints, f"mend tests/mutants/{LIST.name}: name each mistake where it now is"]))
