from dataclasses import replace
from pathlib import Path

import pytest

from repro.config import TrainConfig


@pytest.fixture(scope="session", autouse=True)
def one_process():
    """Trainings of a second do not pay for a pool, whose workers would each import torch first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_THREADS", "1")
        yield


@pytest.fixture(scope="session")
def cell_config(tiny) -> TrainConfig:
    """A training of a second: 6 steps on the microworld."""
    return TrainConfig(
        backbone=tiny,
        dim=8,
        batch_size=16,
        sentences=96,
        learning_rate=1e-3,
        check_every=2,
        save_every=2,
        source="microworld",
    )


@pytest.fixture(scope="session")
def sweep_config(cell_config) -> TrainConfig:
    return replace(cell_config, sentences=64, check_every=2)


@pytest.fixture
def weights_of():
    """Bytes of everything a trained encoder needs, by file name."""

    def read(folder: Path) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted(folder.glob("*.safetensors"))}

    return read


@pytest.fixture(scope="session")
def untrained_lines(tiny) -> list:
    """Lines of ESE's comparison without any training: one network under three poolings stands for three methods."""
    from repro.methods import ESE, MRL, RAW
    from repro.papers.ese import raw_line

    base = TrainConfig(backbone=tiny, source="microworld")
    poolings = {RAW: "cls", MRL: "mean", ESE: "last"}
    return [replace(raw_line(replace(base, pooling=p)), method=m, backbone="tiny") for m, p in poolings.items()]
