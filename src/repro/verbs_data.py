"""The verb of `repro` on datasets: `data` lists them, checks local files, or fetches one."""

from typing import Annotated, Literal

import tyro

from repro.terminal import say
from repro.types import InputError


def data(
    verb: tyro.conf.Positional[Literal["list", "check", "fetch"]],
    name: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="[NAME]")] = None,
) -> int:
    """The datasets there are, whether your files of them are whole, or one of them from the hub.

    Args:
        verb: list them, check local files against the official counts, or fetch one from the hub.
        name: one dataset, needed for fetch; by default check looks at all.
    """
    from repro import data as sets

    if verb == "list":
        for row in sets.describe():
            say(
                f"{row['name']:<10} {row['title']:<28} {row['rows']:>24} rows  local: "
                f"{row['local']:<4} hub: {row['hub']:<40} {row['licence']}"
            )
        return 0
    if verb == "check":
        counted = list(sets.check(name))
        for item in counted:
            expected = " or ".join(f"{count:,}" for count in item.expected)
            count = "–" if item.found is None else f"{item.found:,}"
            say(
                f"{'ok ' if item.ok else 'BAD'} {item.name:<10} {item.split:<32} {count:>9} of "
                f"{expected} {item.note}"
            )
        return 0 if all(item.ok for item in counted) else 1
    if name is None:
        raise InputError("fetch needs a dataset name: `repro data list` shows them")
    from repro.data.hub import fetch  # Brings pyarrow

    for path in fetch(name):
        say(str(path))
    return 0
