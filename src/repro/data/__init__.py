"""Data: graded pairs, labelled texts and pairs, retrieval, corpora and word vectors, from one of
three sources.

`load("stsb")` reads local files if REPRO_DATA names a folder of them and the microworld otherwise;
which of the two it was is the `source` of the set. No source ever stands in for another unasked.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from repro.data.local import check, describe, load_local
from repro.data.menu import DATASETS, get_spec
from repro.data.own import file_splits, load_file, stream_file
from repro.data.sampling import take
from repro.data.table import NOTHING, column_names
from repro.paths import data_folder
from repro.sets import (
    Corpus,
    DataSet,
    LabelledPairs,
    LabelledTexts,
    Retrieval,
    ScoredPairs,
    WordVectors,
    texts_of,
)
from repro.types import DataSource, InputError, one_of

SOURCES: tuple[str, ...] = get_args(DataSource)


def default_source() -> DataSource:
    """`local` if REPRO_DATA names a folder, else `microworld`."""
    return "local" if data_folder() is not None else "microworld"


def load(
    name_or_path: str | Path,
    *,
    split: str | None = None,
    source: str | None = None,
    text: str = "senteval",
    seed: int = 0,
    limit: int | None = None,
    columns: Mapping[str, str] = NOTHING,
) -> DataSet:
    """Read one split of a dataset, or a file of the user's own.

    Args:
        name_or_path: A name of `DATASETS`, the path of a table (TSV, CSV, JSON lines, parquet) or
            of a text file with one text on each line, gzipped or not, or `-` for either on standard
            input; or a folder that `save_to_disk` of the package `datasets` wrote.
        split: Its name; `all` joins every split. None means test where there is one, else the whole
            set.
        source: `local`, `hub` or `microworld`; None means `default_source()`. A path is always
            local.
        text: For the STS sets from local files, `senteval` (tokenised, lower-cased) or `raw`.
        seed: Of the microworld's sentences and of the draw that `limit` makes.
        limit: Keep so many rows, drawn at random and in their old order (see `take`); for the
            microworld's wiki, generate so many.
        columns: Of a user's table: our column → its own, for names that are not understood by
            themselves.

    Raises:
        InputError: for an unknown name, split, source or text form, and whenever the source cannot
            deliver; the message says how to get the data.
    """
    for option, value in (("source", source), ("split", split)):
        if value == "":  # As from a shell's variable that is not set
            raise InputError(f"{option} is empty: name one, or leave it out")
    if _is_path(name_or_path):
        if source not in (None, "local"):
            raise InputError(
                f"{name_or_path} is a file, which is read locally: leave out source={source!r}"
            )
        return take(load_file(name_or_path, split, columns), limit, seed=seed)
    if columns:
        raise InputError(
            f"columns name those of a table of your own: {name_or_path} is a dataset, so leave "
            "them out"
        )
    spec = get_spec(str(name_or_path))
    source = one_of(source or default_source(), SOURCES, "source")
    split = split or spec.default_split
    if source == "hub":
        from repro.data.hub import load_hub  # Needs the extra `train`

        return take(load_hub(spec, split), limit, seed=seed)
    one_of(split, tuple(dict.fromkeys((*spec.splits, "all"))), f"split of {spec.name}")
    if source == "local":
        return take(load_local(spec, split, text=text), limit, seed=seed)
    from microworld import make_set

    return take(make_set(spec.name, split, seed=seed, size=limit), limit, seed=seed)


def stream(
    name_or_path: str | Path,
    columns: Mapping[str, str] = NOTHING,
) -> Callable[[], Iterator[str]]:
    """What reads every text of a set or file from the first to the last, as often as it is called;
    errors of `load`.

    A file of lines, or a table with texts and neither pairs, labels nor splits, is never held
    whole.
    """
    if _is_path(name_or_path) and stream_file(name_or_path, columns) is not None:
        return lambda: stream_file(name_or_path, columns) or iter(())
    texts = texts_of(load(name_or_path, columns=columns))
    return lambda: iter(texts)


def load_splits(
    name_or_path: str | Path,
    *,
    source: str | None = None,
    **options: Any,
) -> dict[str, DataSet]:
    """Read every split of a dataset or file, with the options and errors of `load`: split → set, in
    order.
    """
    if _is_path(name_or_path):
        splits = file_splits(name_or_path, options.get("columns", NOTHING))
    elif source == "hub":
        from repro.data.hub import hub_splits

        splits = hub_splits(get_spec(str(name_or_path)))
    else:
        splits = get_spec(str(name_or_path)).splits
    return {split: load(name_or_path, split=split, source=source, **options) for split in splits}


def _is_path(name_or_path: str | Path) -> bool:
    """A name has neither folder nor ending and is no folder here; anything else is meant as a
    file.
    """
    if isinstance(name_or_path, Path) or name_or_path == "-":
        return True
    if name_or_path in DATASETS:
        return False
    return any(sign in name_or_path for sign in "/\\.") or Path(name_or_path).is_dir()
