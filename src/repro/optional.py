"""Optional dependencies: an absent package becomes an object that explains itself when touched."""

import importlib
from typing import Any, NoReturn

from repro.types import InputError


class NotInstalled:
    """Stands in for a package that is missing; any use of it says which extra brings it."""

    def __init__(self, package: str, extra: str) -> None:
        self._message = f"{package} is not installed: pip install 'repro[{extra}]' brings it"

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
