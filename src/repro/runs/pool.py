"""Many cells at once: a local pool of processes, one thread each, that share the store.

Small networks train faster as two processes of one thread than as one process of two: operations of
microseconds do not pay for waking a second core. The bytes are the same either way.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from repro.objectives import TrainConfig
from repro.runs.cell import TrainedCell, cell_key, default_workers, train_cell
from repro.store import Store
from repro.terminal import progress_bar
from repro.training.end_to_end import title
from repro.workers import done_in_processes


def train_all(
    configs: Sequence[TrainConfig], store: Store, *, workers: int | None = None, progress: bool = True
) -> list[TrainedCell]:
    """Train every configuration that the store does not hold yet; return all, in order.

    Finished cells stay if the run is killed; the next call goes on from there.

    Raises:
        InputError: if a worker dies, as all do that a script without `if __name__ == "__main__":` starts.
    """
    missing = [c for c in dict.fromkeys(configs) if not store.folder("encoders", cell_key(c)).exists()]
    count = min(workers or default_workers(), len(missing))
    if count > 1:
        # what takes longest starts first: ESE, which trains every layer, and wide poolers
        queue = sorted(missing, key=lambda c: (c.objective != "ese", -c.dim))
        with progress_bar(total=len(queue), desc="training cells", show=progress) as bar:
            for config in done_in_processes(partial(_train, home=store.home), queue, count):
                bar.set_postfix_str(f"{title(config)}, seed {config.seed}")
                bar.update()
    trained_here = set(missing)
    cells = [train_cell(config, store, progress=progress) for config in configs]
    return [TrainedCell(c.config, c.key, c.folder, c.hit and c.config not in trained_here, c.seconds) for c in cells]


def _train(config: TrainConfig, home: Path) -> str:
    return train_cell(config, Store(home), progress=False).key
