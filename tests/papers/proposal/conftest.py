"""What the pages show as code is what is tested."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from repro.paths import project_root


@pytest.fixture
def shown_on() -> Callable[[str, str], Callable[..., Any]]:
    """A function as a page shows it, by the page's name and its own."""

    def read(page: str, name: str) -> Callable[..., Any]:
        text = (project_root() / "notebooks" / f"{page}.md").read_text(encoding="utf-8")
        (source,) = re.findall(rf"^def {name}\(.*?(?=^\S)", text, flags=re.S | re.M)
        space: dict[str, Any] = {"np": np, "brentq": brentq}
        exec(source, space)
        return space[name]

    return read
