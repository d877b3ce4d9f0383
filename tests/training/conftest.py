from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture(scope="session")
def bytes_of() -> Callable[[Any], bytes]:
    """The weights of a module."""
    return lambda module: b"".join(value.detach().numpy().tobytes() for value in module.state_dict().values())
