import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from repro.paths import data_folder


@pytest.fixture
def real_data() -> Path:
    folder = data_folder()
    if folder is None:
        pytest.skip("REPRO_DATA is not set")
    return folder


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REPRO_DATA", raising=False)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a file of the given lines; gzipped if its name says so."""

    def _write(name: str, *lines: str, encoding: str = "utf-8") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = "".join(f"{line}\n" for line in lines).encode(encoding)
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return _write
