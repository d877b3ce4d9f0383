from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def killed() -> Callable[..., Callable[..., Any]]:
    """A function that works as before until its nth call, which is where the run is stopped."""

    def stop(function: Callable[..., Any], *, at: int) -> Callable[..., Any]:
        calls = iter(range(1, at))

        def dies(*arguments: Any) -> Any:
            if next(calls, None) is None:
                raise KeyboardInterrupt
            return function(*arguments)

        return dies

    return stop


@pytest.fixture(scope="session")
def bytes_of() -> Callable[[Any], bytes]:
    """The weights of a module."""
    return lambda module: b"".join(value.numpy().tobytes() for value in module.state_dict().values())
