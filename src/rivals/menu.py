"""The menu, `systems.tsv`: every system by name; and the one function that loads it.

The column `loader` says how, in the words of `rivals.loaders`: `flow published mean` is a flow fitted to the states,
averaged, of published weights.
"""

from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path

from repro.store import Store
from repro.types import one_of
from rivals.loaders import LOADERS, Loader, after, wk
from rivals.material import vectors_name
from rivals.system import Loaded, System, SystemConfig


def _loader(how: str) -> Loader:
    name, _, rest = how.partition(" ")
    if name == "wk":
        return partial(wk, of=_loader(rest))
    if name in ("flow", "whitening"):
        return partial(after, of=_loader(rest), fit=name)
    return partial(LOADERS[name], pooling=rest) if rest else LOADERS[name]


SYSTEMS: dict[str, System] = {}
"""by name: this book's in the paper's order, then the paper's own, which need weights from the hub"""
_HOW: dict[str, Loader] = {}
for _row in (files("rivals") / "systems.tsv").read_text(encoding="utf-8").splitlines()[1:]:
    _name, _printed, _line, _hub, _how = ("" if cell == "-" else cell for cell in _row.split("\t"))
    SYSTEMS[_name], _HOW[_name] = System(_name, _printed, _line, _hub), _loader(_how)


def load_system(name: str, config: SystemConfig, store: Store, *, progress: bool = True) -> Loaded:
    """Load a system, training or fitting it first where the store does not hold it yet.

    Args:
        name: one of `SYSTEMS`.
        config: what it is made from.
        store: where trained and fitted systems are kept.
        progress: show progress bars.

    Raises:
        Missing: if its weights or vectors are not at hand.
        InputError: for an unknown name or unsuitable data.
    """
    system = SYSTEMS[one_of(name, list(SYSTEMS), "system")]
    loaded = _HOW[name](system, config, store, progress)
    count = "" if loaded.n_train is None else f"{loaded.n_train:,}"
    line = system.line.format(backbone=loaded.backbone, n=count, vectors=vectors_name(config))
    return replace(loaded, system=replace(system, line=line))


def system_named(name: str, *, source: str, seed: int = 0) -> Loaded | None:
    """The system that a command line names in place of a network; None where it names a folder or no system.

    Raises:
        Missing: if its weights or vectors are not at hand.
        InputError: for unsuitable data.
    """
    if name not in SYSTEMS or Path(name).is_dir():
        return None
    return load_system(name, SystemConfig(source=source, seed=seed), Store())
