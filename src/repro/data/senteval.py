"""SentEval's own text of its sets, tokenised as SimCSE's authors publish it: `senteval.tar` in the
repository that wiki's sentences come from, fetched once and kept as the hub's snapshots are.

The archive holds SentEval's files: lines of one class each, tables of tabs, pairs beside their
scores. They become rows by our columns, which `repro.data.hub` then reads as those of any mirror.
Nothing is unpacked to disk, and only files that are named here are read.
"""

import logging
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from repro.data.hub import hub_source, hub_version, not_fetched, reached_hub
from repro.data.menu import DATASETS
from repro.manifests import sha256
from repro.paths import home, hub_folder
from repro.store import Store
from repro.types import InputError
from repro.writing import replacing

log = logging.getLogger(__name__)
ARCHIVE = "senteval.tar"
LARGEST = 2**27  # Bytes of a file in it; the largest has some 10 MB
Row: TypeAlias = dict[str, Any]
Read: TypeAlias = Callable[[str], bytes]
"""The content of a file of the archive, by its path there."""


def lines(content: bytes, encoding: str = "utf-8") -> list[str]:
    """The lines of a file; SentEval ends them with a line feed alone."""
    return content.decode(encoding).replace("\r\n", "\n").removesuffix("\n").split("\n")


def words(text: str) -> str:
    """A text as SentEval hands it on: words with one space between."""
    return " ".join(text.split())


def graded(read: Read, *parts: str) -> Iterator[Row]:
    """Pairs of STS 2012 to 2016, each part beside its scores, which are empty where nobody
    judged.
    """
    for part in parts:
        folder, _, name = part.partition("/")
        place = f"STS/{folder}-en-test"
        pairs = lines(read(f"{place}/STS.input.{name}.txt"))
        golds = lines(read(f"{place}/STS.gs.{name}.txt"))
        if len(pairs) != len(golds):
            raise InputError(f"{ARCHIVE}: {part} has {len(pairs)} pairs and {len(golds)} scores")
        for pair, gold in zip(pairs, golds, strict=True):
            if gold.strip():
                first, second = map(words, pair.split("\t")[:2])
                yield {"sentence1": first, "sentence2": second, "score": float(gold)}


def table(
    read: Read,
    file: str,
    columns: Mapping[str, int],
    *,
    header: bool = False,
) -> Iterator[Row]:
    """Rows of a table of tabs, by the places of our columns in it."""
    for line in lines(read(file))[int(header) :]:
        cells = line.strip().split("\t")
        row: Row = {name: words(cells[place]) for name, place in columns.items()}
        if "score" in row:
            row["score"] = float(row["score"])
        yield row


def by_class(read: Read, files: Mapping[str, str]) -> Iterator[Row]:
    """Lines of one file a class; blank ones, of which SentEval counts a few, are left out."""
    for label, file in files.items():
        for line in lines(read(file), "latin-1"):
            if line.strip():
                yield {"text": words(line), "label": label}


def questions(read: Read, file: str) -> Iterator[Row]:
    """TREC's lines: coarse class, colon, fine class, question."""
    for line in lines(read(file), "latin-1"):
        label, _, rest = line.strip().partition(":")
        yield {"text": words(rest.partition(" ")[2]), "label": label}


Reader: TypeAlias = Callable[[Read], Iterator[Row]]
_SICK = {"train": "train", "dev": "trial", "test": "test_annotated"}
_PAIR = {"sentence1": 1, "sentence2": 2}


def _sick(**column: int) -> dict[str, Reader]:
    return {
        split: partial(table, file=f"SICK/SICK_{part}.txt", columns=_PAIR | column, header=True)
        for split, part in _SICK.items()
    }


def _years(name: str) -> dict[str, Reader]:
    parts = [f"{name.upper()}/{part}" for part in DATASETS[name].subset_sizes]
    return {"test": lambda read: graded(read, *parts)}


SETS: dict[str, dict[str, Reader]] = {
    **{name: _years(name) for name in ("sts12", "sts13", "sts14", "sts15", "sts16")},
    "stsb": {
        split: partial(
            table,
            file=f"STS/STSBenchmark/sts-{split}.csv",
            columns={"sentence1": 5, "sentence2": 6, "score": 4},
        )
        for split in ("train", "dev", "test")
    },
    "sickr": _sick(score=3),
    "sicke": _sick(label=4),
    "mr": {
        "all": partial(
            by_class,
            files={"positive": "MR/rt-polarity.pos", "negative": "MR/rt-polarity.neg"},
        )
    },
    "cr": {
        "all": partial(by_class, files={"positive": "CR/custrev.pos", "negative": "CR/custrev.neg"})
    },
    "subj": {
        "all": partial(
            by_class,
            files={"objective": "SUBJ/subj.objective", "subjective": "SUBJ/subj.subjective"},
        )
    },
    "mpqa": {
        "all": partial(by_class, files={"positive": "MPQA/mpqa.pos", "negative": "MPQA/mpqa.neg"})
    },
    "sst2": {
        split: partial(table, file=f"SST/binary/sentiment-{split}", columns={"text": 0, "label": 1})
        for split in ("train", "dev", "test")
    },
    "trec": {
        "train": partial(questions, file="TREC/train_5500.label"),
        "test": partial(questions, file="TREC/TREC_10.label"),
    },
    "mrpc": {
        split: partial(
            table,
            file=f"MRPC/msr_paraphrase_{split}.txt",
            columns={"sentence1": 3, "sentence2": 4, "label": 0},
            header=True,
        )
        for split in ("train", "test")
    },
}
"""The sets of the archive: by split, what reads its rows."""


def keep(names: Iterable[str] = tuple(SETS)) -> list[Path]:
    """The sets as snapshots of the hub, read from the archive where the store lacks one.

    Raises:
        InputError: if the archive cannot be fetched, or is not the published one.
    """
    source = hub_source(DATASETS["stsb"])
    version = hub_version(source).replace("/", "-")
    files: dict[Path, tuple[str, str]] = {}
    for name in names:
        for split in SETS[name]:
            # Where `repro.data.hub` looks for it
            files[home() / "data" / name / f"{version}-{split}.parquet"] = (name, split)
    missing = [path for path in files if not path.is_file()]
    if missing:
        Store().claim()
        contents = _contents(_archive())
        for path in missing:
            name, split = files[path]
            try:
                rows = list(SETS[name][split](contents.__getitem__))
            except (IndexError, ValueError) as error:
                raise InputError(f"{ARCHIVE}: {name}, split {split}: {error}") from error
            _tell_size(name, split, len(rows))
            with replacing(path) as partial_file:
                pq.write_table(pa.Table.from_pylist(rows), partial_file)
    return list(files)


def _tell_size(name: str, split: str, count: int) -> None:
    """Say where a split has another number of rows than is published; a copy is not compared."""
    spec = DATASETS[name]
    expected = spec.local_sizes.get(split, spec.sizes[split])
    if hub_folder() is None and count != expected:
        log.warning("%s, split %s, has %d rows, expected %d", name, split, count, expected)


def _archive() -> Path:
    """The archive: of the copy that REPRO_HUB names, or of the pinned commit, its bytes compared
    with the digest that its name in the hub's cache is.
    """
    spec = DATASETS["stsb"]
    source = hub_source(spec)
    folder = hub_folder()
    if folder is not None:
        path = folder / source.id / ARCHIVE
        if not path.is_file():
            raise InputError(f"REPRO_HUB={folder} holds no {source.id}/{ARCHIVE}: put it there")
        return path
    try:
        hub = reached_hub()
        where = {"repo_type": "dataset", "revision": source.revision}
        path = Path(hub.hf_hub_download(source.id, ARCHIVE, **where))
    except InputError:
        raise
    except Exception as error:  # Of a client that raises a dozen unrelated types
        what = (
            f"{ARCHIVE} of {source.id}, SentEval's text of STS, SICK and the classification sets,"
        )
        raise not_fetched(what, spec, home() / "data", error) from error
    published = path.resolve().name
    if len(published) == 64 and sha256(path) != published:
        raise InputError(
            f"{path} is not the published file, whose sha256 is {published}: delete it"
        )
    return path


@cache
def _needed() -> frozenset[str]:
    """The files of the archive that the sets are read from."""
    asked: set[str] = set()

    def note(file: str) -> bytes:
        asked.add(file)
        return b""

    for splits in SETS.values():
        for reader in splits.values():
            try:
                for _ in reader(note):
                    pass
            except (IndexError, ValueError):  # Of a row that is not there
                continue
    return frozenset(asked)


def _contents(path: Path) -> dict[str, bytes]:
    """The needed files of an archive by their paths, whatever folder they stand in."""
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                place = next((n for n in _needed() if name == n or name.endswith(f"/{n}")), None)
                file = archive.extractfile(member) if place and member.isfile() else None
                if place is None or file is None:
                    continue
                if member.size > LARGEST:
                    raise InputError(f"{path}: {name} has {member.size} bytes: not SentEval's")
                found[place] = file.read()
    except (tarfile.TarError, EOFError) as error:
        raise InputError(
            f"{path} is no archive that can be read ({error}): fetch it again"
        ) from error
    if lacking := sorted(_needed() - found.keys()):
        raise InputError(f"{path} has no {lacking[0]}: is it SentEval's data as SimCSE has it?")
    return found
