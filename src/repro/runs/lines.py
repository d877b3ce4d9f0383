"""What is judged and on what: encoders with a name, their embeddings under a reducer, lines of tables, and tasks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from repro import data
from repro.config import Profile, reads_forwards
from repro.data.sampling import take
from repro.digests import module_of
from repro.models import SentenceEncoder
from repro.models.pretrained import MINILM
from repro.reducers import REDUCERS, make_reducer
from repro.runs.cell import hidden_dim_of, train_all
from repro.runs.embeddings import TextTable, as_published, encode_tasks, states_identity
from repro.sets import DataSet, ScoredPairs
from repro.store import Store
from repro.terminal import complain
from repro.types import Array, Encoder, InputError

TRAINED = "trained"  # the profile's backbone after unsupervised SimCSE at full size, as Wang et al.'s pages train it
AT_HAND = (MINILM, TRAINED)
PAPER = (
    "sentence-transformers/all-mpnet-base-v2",
    "sentence-transformers/stsb-bert-base",
    "sentence-transformers/msmarco-roberta-base-v2",
    "sentence-transformers/paraphrase-xlm-r-multilingual-v1",
    "sentence-transformers/stsb-bert-large",
    "princeton-nlp/sup-simcse-roberta-large",
)
"""Zhang et al.'s six, in the order of their Section 4; SimCSE's [CLS] state is read without the layer that its package
adds"""
SLOW = ("kpca", "autoencoder")  # reducers whose output is kept in the store
POOLING = {MINILM: "mean"}  # where the published pooling is not recorded beside the weights


@dataclass(frozen=True)
class Named:
    """An encoder with a name, not loaded until something has to be encoded."""

    name: str  # what rows and figures call it
    make: Callable[[], Encoder]
    identity: str  # digest of everything that decides its output, length of rows aside
    backbone: str = ""  # network it stands on; empty where that is its name, or where it has none
    n_train: int | None = None  # texts or pairs that this book trained or fitted it on; None where it came as it is

    @property
    def note(self) -> str:
        """What a reader should know of scores on STS-B; empty for most."""
        return "fine-tuned on STS-B's training pairs" if self.name.startswith("stsb-") else ""

    def embed(self, parts: Mapping[str, Mapping[str, DataSet]], store: Store, *, progress: bool = True) -> TextTable:
        """Embeddings of all texts of some tasks, as its authors publish them; an entry of the store for each task."""
        table = encode_tasks(self.make, self.identity, parts, store, progress=progress)
        return as_published(self.backbone or self.name, table)


def choose_encoders(names: Sequence[str] | None, profile: Profile) -> tuple[str, ...]:
    """The names given, or the profile's: the paper's six on the hub, else those at hand."""
    if names is None:
        return PAPER if profile.name == "paper" else AT_HAND
    if not names or len(set(names)) != len(names):
        raise InputError(
            f"encoders is {list(names)}: expected one or more different names, such as {', '.join(AT_HAND)}, a folder "
            "or a hub id"
        )
    return tuple(names)


def load_encoders(names: Sequence[str], profile: Profile, store: Store) -> Iterator[Named]:
    """Each encoder by its name: `trained`, which is trained first if need be, a shipped one, a folder or a hub id."""
    for name in names:
        if name == TRAINED:
            config = replace(profile.train, dim=hidden_dim_of(profile.train))
            (cell,) = train_all([config], store)
            yield Named(f"{config.backbone} + SimCSE", partial(getattr, cell, "encoder"), cell.key)
            continue
        pooling = POOLING.get(name) or ("last" if reads_forwards(name) else None)
        load = partial(SentenceEncoder.load, name, pooling=pooling)
        yield Named(name.rstrip("/").split("/")[-1], load, states_identity(name, pooling))


def reduced(
    name: str, fit: Array, X: Array, dims: Sequence[int], store: Store, *, seed: int = 0, **params: Any
) -> Iterator[tuple[int, Array]]:
    """X (n, D) under a reducer fitted on rows (m, D), at every dim within reach: pairs of dim and Y (n, dim) float32.

    It is fitted once at the largest dim, of which the others are prefixes; the autoencoder at each. Dims beyond
    min(m − 1, D) are left out, and those beyond a reach that shows once it is fitted, of which the terminal is told: a
    matrix of path distances, or of a kernel, has fewer positive eigenvalues than rows.
    """

    def output(dim: int) -> Array:
        def work() -> Array:
            return make_reducer(name, dim, seed=seed, **params).fit(fit).transform(X)

        if name not in SLOW:
            return work()
        settings = {"reducer": name, "dim": dim, "seed": seed, "params": params, "fit": fit, "X": X}
        return np.asarray(store.remember("reduced", settings, work, code=module_of(REDUCERS[name])))

    sizes = sorted(d for d in dims if d <= min(len(fit) - 1, fit.shape[1]))
    if name == "autoencoder":
        yield from ((d, output(d)) for d in sizes)
        return
    while sizes:
        try:
            Y = output(sizes[-1])
        except InputError as error:
            complain(f"left out: {name} at {sizes.pop()} dims: {error}")
            continue
        reducer = make_reducer(name, sizes[-1], seed=seed, **params)
        yield from ((d, reducer.prefix(Y, d)) for d in sizes)
        return


def dims_of(hidden_dim: int, dims: Sequence[float]) -> list[int]:
    """Sizes below the full one, ascending; numbers below 1 are shares of it."""
    wanted = [round(d * hidden_dim) if d < 1 else int(d) for d in dims]
    found = sorted({d for d in wanted if 1 <= d < hidden_dim})
    if not found:
        raise InputError(
            f"dims are {list(dims)}: expected sizes from 1 to {hidden_dim - 1}, or shares below 1 of {hidden_dim}"
        )
    return found


@dataclass(frozen=True)
class Line:
    """One line of a table: the embeddings of all texts by one method at one size."""

    method: str
    dim: int | None  # None where it differs between the tasks
    tables: TextTable | Mapping[str, TextTable]  # of all tasks; or by task, where something is fitted for each
    setting: str = ""  # what a reducer was fitted on; empty where nothing was
    readout: str = "encoder"
    backbone: str | None = None  # where lines differ in it
    n_train: int | None = None  # where lines differ in it

    @property
    def columns(self) -> dict[str, Any]:
        """Columns of its rows."""
        named = {"method": self.method, "dim": self.dim, "readout": self.readout, "setting": self.setting}
        own = {"backbone": self.backbone, "n_train": self.n_train}
        return named | {name: value for name, value in own.items() if value is not None}

    @property
    def table(self) -> TextTable:
        """The embeddings of all tasks' texts."""
        if not isinstance(self.tables, TextTable):
            raise InputError(f"{self.method} has embeddings by task: {', '.join(self.tables)}")
        return self.tables

    def on(self, task: str) -> TextTable:
        """The embeddings of a task's texts."""
        return self.tables if isinstance(self.tables, TextTable) else self.tables[task]


@dataclass(frozen=True)
class Task(Mapping[str, DataSet]):
    """What lines are judged on: the splits of one dataset, by name."""

    name: str
    splits: Mapping[str, DataSet]

    def __getitem__(self, split: str) -> DataSet:
        return self.splits[split]

    def __iter__(self) -> Iterator[str]:
        return iter(self.splits)

    def __len__(self) -> int:
        return len(self.splits)

    @property
    def judged(self) -> DataSet:
        """The test split, or the whole set where there is none."""
        return self.splits["test"] if "test" in self.splits else next(iter(self.splits.values()))

    @property
    def pairs(self) -> ScoredPairs:
        """What is judged, as scored pairs."""
        if not isinstance(self.judged, ScoredPairs):
            raise InputError(f"{self.name!r} is not a set of scored pairs")
        return self.judged


def load_tasks(names: Sequence[str], source: str, *, probe_rows: int | None = None) -> dict[str, Task]:
    """Datasets as tasks, by name: dev and test of scored pairs, all splits of the others.

    `probe_rows` are kept of every split that is not of scored pairs, drawn at random; None keeps all.
    """
    tasks = {}
    for name in names:
        splits = data.load_splits(name, source=source, text="senteval")
        if isinstance(next(iter(splits.values())), ScoredPairs):
            kept = {split: part for split, part in splits.items() if split in ("dev", "test")}
        else:
            kept = {split: take(part, probe_rows) for split, part in splits.items()}
        tasks[name] = Task(name, kept)
    return tasks


def sets_of(tasks: Mapping[str, Mapping[str, DataSet]]) -> list[DataSet]:
    """All sets of some tasks."""
    return [part for splits in tasks.values() for part in splits.values()]
