"""Optional dependencies: an absent package becomes an object that explains itself when touched."""

import importlib
from typing import Any, NoReturn

from repro.types import InputError


def installing(extra: str) -> str:
    """The command that installs an extra; by its name alone pip would fetch another project called `repro`."""
    return f"`pip install -e '.[{extra}]'` in the checkout"


class NotInstalled:
    """Stands in for a package that is missing; any use of it says which extra brings it."""

    def __init__(self, package: str, extra: str) -> None:
        self._message = f"{package} is not installed: {installing(extra)} brings it"

    def __getattr__(self, name: str) -> NoReturn:
        """Explain the absence."""
        raise InputError(self._message)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Explain the absence."""
        raise InputError(self._message)


def optional(package: str, extra: str) -> Any:
    """Import `package`, or return a stand-in that names the extra to install when it is first used."""
    try:
        return importlib.import_module(package)
    except ImportError:
        return NotInstalled(package, extra)
