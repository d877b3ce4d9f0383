"""The hub source: mirrors on the Hugging Face hub, fetched once and kept in the store as parquet.

The only importer of `datasets`. Fetching and mapping are apart: `load_hub` talks to the network at
most once per hub split, `to_set` turns rows into our sets and knows nothing of where they came
from. REPRO_HUB may name a folder of copied repositories, `owner/name` below it, which then stands
for the hub.
"""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from repro.data.menu import FIELDS, DatasetSpec, HubSource, get_spec, set_of
from repro.digests import digest
from repro.paths import home, hub_folder
from repro.reading import is_out_of_memory
from repro.sets import DataSet, Retrieval
from repro.store import Store
from repro.types import InputError, optional
from repro.writing import replacing

Rows = list[dict[str, Any]]


def load_hub(spec: DatasetSpec, split: str) -> DataSet:
    """One split from the hub, or from the snapshot that an earlier call left in the store."""
    known = hub_splits(spec)
    if split not in (*known, "all"):
        source = hub_source(spec)
        has = f"it has {', '.join(known)}{'; ' if source.note else ''}{source.note}"
        raise InputError(f"{spec.name} on the hub ({source.id}) has no split {split!r}: {has}")
    rows = {}
    for one in known if split == "all" else (split,):
        rows[one] = [
            row for path in _snapshots(spec, one) for row in pq.read_table(path).to_pylist()
        ]
    return to_set(spec, split, rows)


def hub_splits(spec: DatasetSpec) -> tuple[str, ...]:
    """The splits that the hub has, in the dataset's own order."""
    source = hub_source(spec)
    return tuple(
        split for split in spec.splits if split in source.splits or split in source.elsewhere
    )


def fetch(name: str) -> list[Path]:
    """Download a dataset into the store, once; afterwards source='hub' works offline.

    Errors are those of `load`.
    """
    spec = get_spec(name)
    return [path for split in hub_splits(spec) for path in _snapshots(spec, split)]


def hub_source(spec: DatasetSpec, split: str = "") -> HubSource:
    """Where the dataset, or one split of it, lies on the hub."""
    if spec.hub is None:
        raise InputError(
            f"{spec.name} has no hub mirror ({spec.note}): set REPRO_DATA to a folder with "
            f"{spec.file}, or use source='microworld'"
        )
    return spec.hub.elsewhere.get(split, spec.hub)


def hub_version(source: HubSource) -> str:
    """What identifies a mirror's content: its pinned commit (`main` where none is), or the files of
    its copy.
    """
    copy = _copy(source)
    if copy is None:
        return source.revision or "main"
    files = sorted(path for path in copy.rglob("*") if path.is_file())
    states = [
        (path.relative_to(copy).as_posix(), path.stat().st_size, path.stat().st_mtime_ns)
        for path in files
    ]
    return f"copy-{digest(states)}"


def to_set(spec: DatasetSpec, split: str, rows: Mapping[str, Rows]) -> DataSet:
    """The set of the dataset's kind from rows by split as the hub gives them, one dict per row."""
    if spec.kind == "retrieval":
        return _retrieval(spec, split, [row for part in rows.values() for row in part])
    columns: dict[str, list[Any]] = {field: [] for field in FIELDS[spec.kind]}
    for one, part in rows.items():
        for row in _mapped(spec, one, part):
            for field, values in columns.items():
                values.append(row[field])
    return set_of(spec.kind, spec.name, "hub", split, columns)


def _snapshots(spec: DatasetSpec, split: str) -> list[Path]:
    """The parquet files of one of our splits in the store, downloaded if they are not there yet."""
    source = hub_source(spec, split)
    paths = []
    for part in source.splits[split]:
        paths.append(
            home() / "data" / spec.name / f"{hub_version(source).replace('/', '-')}-{part}.parquet"
        )
        if paths[-1].is_file():
            continue
        if (source.data_files or "").endswith(".tar"):
            from repro.data.senteval import keep  # Which keeps files where this module looks

            keep()
            continue
        Store().claim()
        table = _download(spec, source, part)
        with replacing(paths[-1]) as partial:  # A broken download is never taken for a snapshot
            pq.write_table(table, partial)
    return paths


def _copy(source: HubSource) -> Path | None:
    folder = hub_folder()
    copy = None if folder is None else folder / source.id
    if copy is not None and not copy.is_dir():
        raise InputError(
            f"REPRO_HUB={folder} holds no copy of {source.id}: put the repository there, or unset "
            "it"
        )
    return copy


def _download(spec: DatasetSpec, source: HubSource, part: str) -> pa.Table:
    files = source.data_files and {part: source.data_files.format(part=part)}
    copy = _copy(source)
    try:
        datasets = optional("datasets", "train")
        if copy is None:
            reached_hub()
        datasets.disable_progress_bars()  # Of its conversions; a download shows its own
        # What is kept is the snapshot
        with TemporaryDirectory(ignore_cleanup_errors=True) as cache:
            where: dict[str, Any] = {
                "revision": source.revision,
                "data_files": files,
                "cache_dir": cache,
            }
            loaded = datasets.load_dataset(
                str(copy or source.id),
                source.config,
                split=part,
                **where,
            )
            return loaded.with_format("arrow")[:]
    except InputError:
        raise
    # The hub's clients raise a dozen unrelated types when there is no network
    except Exception as error:
        what = f"{spec.name} ({source.id}, split {part})"
        raise not_fetched(what, spec, home() / "data" / spec.name, error) from error


def reached_hub() -> Any:
    """The hub's client, after one sign of life unless it is told to be offline: left alone, it
    retries for half a minute and logs each try twice.
    """
    hub = optional("huggingface_hub", "train")
    constants = optional("huggingface_hub.constants", "train")  # Which the client does not import
    if not constants.HF_HUB_OFFLINE:
        hub.get_session().head(constants.ENDPOINT, timeout=10)
    return hub


def not_fetched(what: str, spec: DatasetSpec, kept: Path, error: Exception) -> Exception:
    """What to raise where something could not be fetched: the error itself if memory is short, else
    one that says how to do without a network.
    """
    if is_out_of_memory(error):
        return error
    reason = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    return InputError(
        f"could not fetch {what} from the hub: {reason}. Without a network, set REPRO_DATA to a "
        f"folder that holds {spec.file} and use source='local', or run `repro data fetch "
        f"{spec.name}` on a machine that has one and copy {kept} over"
    )


def _mapped(spec: DatasetSpec, split: str, rows: Rows) -> Rows:
    """The rows of one split by our names, with our labels; a row of several captions becomes one
    for each.
    """
    source = hub_source(spec, split)
    where = f"{spec.name} from {source.id}"
    names = {
        field: source.columns.get(field, field) for field in FIELDS[spec.kind] if field != "image"
    }
    if lacking := [column for column in names.values() if rows and column not in rows[0]]:
        raise InputError(
            f"{where}: no column {lacking[0]!r} among {', '.join(rows[0])}; the mirror changed"
        )
    found = [{field: row[column] for field, column in names.items()} for row in rows]
    if spec.kind == "captions":
        images = [(f"{split}-{number:05d}", row["caption"]) for number, row in enumerate(found)]
        return [
            {"image": image, "caption": text}
            for image, group in images
            for text in group
            if text.strip()
        ]
    if source.drop_blank:
        texts = set(names) - {"label", "score"}
        found = [row for row in found if all(row[field].strip() for field in texts)]
    for row in found if "label" in names else ():
        label = str(row["label"])
        if label == "-1":
            raise InputError(f"{where}: label -1 marks hidden labels; use a split that has them")
        if source.labels and label not in source.labels:
            raise InputError(
                f"{where}: label {label!r}, expected one of {', '.join(source.labels)}"
            )
        row["label"] = source.labels.get(label, label)
    return found


def _retrieval(spec: DatasetSpec, split: str, rows: Rows) -> DataSet:
    """HotpotQA's distractor form: every question brings ten paragraphs, of which its supporting
    facts name two.
    """
    documents: dict[tuple[str, str], str] = {}
    qrels: dict[str, dict[str, int]] = {}
    for row in rows:
        gold, judged = set(row["supporting_facts"]["title"]), qrels.setdefault(row["id"], {})
        for title, sentences in zip(
            row["context"]["title"],
            row["context"]["sentences"],
            strict=True,
        ):
            text = " ".join(sentence.strip() for sentence in sentences).strip()
            if text:
                document = documents.setdefault((title, text), f"d{len(documents):06d}")
                judged[document] = int(title in gold)
    ids, queries, answers = (
        tuple(row[column] for row in rows) for column in ("id", "question", "answer")
    )
    texts = tuple(f"{title} {text}" for title, text in documents)
    return Retrieval(
        spec.name,
        "hub",
        ids,
        queries,
        tuple(documents.values()),
        texts,
        qrels,
        answers,
        split,
    )
