from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def killed() -> Callable[..., Callable[..., Any]]:
    """A function that works as before until its nth call, which is where the run is stopped."""

    def stop(function: Callable[..., Any], *, at: int) -> Callable[..., Any]:
        calls = 0

        def dies(*arguments: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == at:
                raise KeyboardInterrupt
            return function(*arguments)

        return dies

    return stop
