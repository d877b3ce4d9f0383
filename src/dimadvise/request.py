"""What is advised on, and what is checked: the options of `dimadvise advise` and `check`, and of
the functions of these names.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from repro.terminal import Menu
from repro.types import DataSource, InputError

# What may be asked for, and how much of it by default
TARGETS = {"recall": 0.95, "retain": 0.99, "bytes": 0.0}
DEEPEST = 50  # Times as many candidates as are wanted, at most
Method = Annotated[str, Menu("dimadvise.ways", "WAYS")]
Level = Annotated[str, Menu("dimadvise.coding", "MENU")]
Similarity = Annotated[str, Menu("dimadvise.coding", "SIMILARITIES")]
Vectors = Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="[VECTORS]")]


@dataclass(frozen=True)
class Request:
    """What is advised on, what is asked for, and what is tried.

    Args:
        embeddings: one vector per text: .npy, .npz, .safetensors, .parquet, .fvecs, .bvecs, .fbin,
            .u8bin, .i8bin, .ibin, .jsonl, .jsonl.gz, or a folder of such files; without it give
            --encoder and --texts.
        encoder: with --texts: name, folder or hub id of an encoder, or a baseline such as glove.
        texts: with --encoder: dataset name (`repro data list`) or a file of your own (`-` for a
            pipe); its scores, labels or qrels are used.
        queries: vectors of queries as they will be asked, where the others are the documents; by
            default some of these stand in for them.
        pairs: table with columns row1, row2, score; rows count from 0.
        labels: text file with one label per row, or a table with a column label.
        qrels: with --queries: table with columns query, document, relevance; rows count from 0.
        recall: share of the ten nearest full-size neighbours to be found; by default 0.95 without
            labels.
        retain: share of the labels' score to keep; by default 0.99 with labels; without, it is a
            prediction.
        bytes: that a vector may take, at most: what finds most in these, or with labels keeps most
            of their score.
        depth: candidates for each row wanted, put in order by the full vectors, which are then kept
            too: 4 re-scores 40 for ten; by default none, and what re-scoring would save is told.
        rows_total: vectors that your store will hold, to which recall is projected; by default as
            many as there are here.
        store: where the vectors lie: only what it holds is tried, compared as it compares, and the
            answer ends in what to paste into it.
        similarity: of your store: cosine, ip (inner product) or l2; by default cosine, for labels
            l2. Pairs and relevant documents are judged by cosines alone.
        methods: ways to fewer numbers that are tried; by default all.
        levels: bits of a number that are tried; by default all but float32 that suit the method,
            product codes (pq) if faiss is installed.
        dims: sizes that are tried; by default two to four to each halving, more near the answer.
        sample: most vectors that are searched to measure recall.
        layers: with --encoder: also consider stopping at these layers; by default the last alone.
        prompt: with --encoder: put before every text: a name among the encoder's prompts, or the
            text itself; by default the encoder's own, if it has one.
        split: of the dataset; by default its test split, or what it has.
        source: where the dataset comes from; by default local files if REPRO_DATA is set, else the
            microworld.
        output: folder for the report and the map.
        fail_if_kept: end with 3 where vectors are best kept as they are.
        seed: of samples, folds and random projections.
        column: field of the file that holds the vectors; by default the only one.
        columns: of a table whose columns go by other names: NAME=COLUMN, such as score=Rating.
            Tables are TSV, CSV, JSON lines or parquet.
        queries_column: field of the file of --queries that holds its vectors; by default as
            --column.
    """

    embeddings: Vectors = None
    encoder: str | None = None
    texts: str | None = None
    queries: Path | None = None
    pairs: Path | None = None
    labels: Path | None = None
    qrels: Path | None = None
    recall: float | None = None
    retain: float | None = None
    bytes: int | None = None
    depth: int = 0
    rows_total: int = 0
    store: Annotated[str, Menu("dimadvise.stores", "STORES")] | None = None
    similarity: Similarity | None = None
    methods: tuple[Method, ...] = ()
    levels: tuple[Level, ...] = ()
    dims: tuple[int, ...] = ()
    sample: int = 100_000
    layers: tuple[int, ...] = ()
    prompt: str | None = None
    split: str | None = None
    source: DataSource | None = None
    output: Path = Path("advice")
    fail_if_kept: bool = False
    seed: int = 0
    column: str = ""
    columns: tuple[str, ...] = ()
    queries_column: str = ""

    @property
    def target(self) -> tuple[str, float] | None:
        """What is asked for, and how much of it; None where that is left open."""
        amounts = {name: getattr(self, name) for name in TARGETS}
        targets = {name: value for name, value in amounts.items() if value is not None}
        if len(targets) > 1:
            raise InputError(
                f"{' and '.join(f'--{name}' for name in targets)} are given: expected one target "
                "at a time"
            )
        for name, value in targets.items():
            if name == "bytes" and value < 1:
                raise InputError(f"bytes is {value}: expected 1 or more a vector, such as 96")
            if name != "bytes" and not 0 < value <= 1:
                raise InputError(
                    f"{name} is {value}: expected a share above 0, at most 1, such as "
                    f"{TARGETS[name]}"
                )
        return next(iter(targets.items()), None)

    def check(self) -> None:
        """Refuse, before any work, what cannot be."""
        from dimadvise.queries import FEWEST

        if self.sample < FEWEST:
            raise InputError(f"--sample is {self.sample}: expected {FEWEST} or more vectors")
        if self.depth and not 2 <= self.depth <= DEEPEST:
            raise InputError(
                f"--depth is {self.depth}: expected 2 to {DEEPEST}, or 0 for no re-scoring"
            )
        if self.rows_total < 0:
            raise InputError(f"--rows-total is {self.rows_total}: expected a number of vectors")
        _ = self.target


ANYTHING = Request()
WHOLE = ("bytes", "depth", "rows_total", "sample", "seed")
TABLES = ("pairs", "qrels")
SHARES = ("recall", "retain")
SEVERAL = {"dims": int, "layers": int, "methods": str, "levels": str, "columns": str}


def refuse_itself(output: Path, source: Path | None) -> None:
    """Refuse to write to the folder that is read."""
    if source is not None and source.is_dir() and output.is_dir() and output.samefile(source):
        raise InputError(f"the output {output} is the input: expected another folder")


def as_option(name: str, value: Any) -> Any:
    """A value given from Python for a field of `Request`, as a command line would give it.

    Raises:
        InputError: for a value of another kind.
    """
    if name in WHOLE and (value is not None or name not in TARGETS):
        return as_whole(name, value)
    if name in SHARES and value is not None:
        if isinstance(value, bool) or not isinstance(value, int | float | np.floating):
            raise InputError(f"{name} is {value!r}: expected a share, such as {TARGETS[name]}")
        return float(value)
    if name in TABLES and not isinstance(value, str | Path | None):
        kind = type(value).__name__
        raise InputError(f"{name} is a {kind}: expected the path of a table, so write it to one")
    if name in SEVERAL:
        kind = "whole numbers" if SEVERAL[name] is int else "names"
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise InputError(f"{name} is {value!r}: expected several {kind}, in a list")
        return tuple(as_whole(name, item) if SEVERAL[name] is int else str(item) for item in value)
    return value


def as_whole(name: str, value: Any) -> int:
    """A whole number that a machine can count with."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"{name} is {value!r}: expected a whole number")
    if abs(int(value)) >= 2**63:
        bits = int(value).bit_length()
        raise InputError(f"{name} has {bits} bits: expected a number below 2**63")
    return int(value)


@dataclass(frozen=True)
class Recheck:
    """What an advice is measured on again.

    Args:
        vectors: file or folder of vectors, as wide as those that were advised on.
        advice: folder that `dimadvise advise` wrote.
        queries: vectors of queries as they are asked; by default some of the rows.
        pairs: table with columns row1, row2, score; rows count from 0.
        labels: text file with one label per row, or a table with a column label.
        qrels: with --queries: table with columns query, document, relevance; rows count from 0.
        sample: most vectors that are searched.
        seed: of samples.
        column: field of the file that holds the vectors; by default the only one.
        columns: of a table whose columns go by other names: NAME=COLUMN, such as score=Rating.
            Tables are TSV, CSV, JSON lines or parquet.
        queries_column: field of the file of --queries that holds its vectors; by default as
            --column.
    """

    vectors: tyro.conf.Positional[Path]
    advice: Path = Path("advice")
    queries: Path | None = None
    pairs: Path | None = None
    labels: Path | None = None
    qrels: Path | None = None
    sample: int = 100_000
    seed: int = 0
    column: str = ""
    columns: tuple[str, ...] = ()
    queries_column: str = ""
