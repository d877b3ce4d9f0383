"""What encoders learn from: named by a fingerprint of its content, drawn once."""

from functools import lru_cache
from pathlib import Path

from repro import data, paths
from repro.data.sampling import Triples, like_or_unlike, triples
from repro.digests import digest
from repro.objectives import SCALING, TrainConfig
from repro.store import Store, sha256
from repro.types import InputError


def fingerprint(name: str, source: str) -> str:
    """What identifies a dataset's content: its file's checksum, its hub revision, or the generator's code."""
    if source == "microworld":
        folder = paths.PACKAGE.parent / "microworld"
        files = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        return digest({path.relative_to(folder).as_posix(): _checksum(path) for path in files})
    if source == "hub":
        from repro.data.hub import hub_source, hub_version  # brings pyarrow

        hub = hub_source(data.get_spec(name))
        return digest([name, *([mirror.id, hub_version(mirror)] for mirror in (hub, *hub.elsewhere.values()))])
    return digest([_checksum(path) for path in local_files(name)])


def _checksum(path: Path) -> str:
    state = path.stat()
    return _checksum_as_of(path.resolve(), state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=256)
def _checksum_as_of(path: Path, modified: int, size: int) -> str:
    # a kernel may outlive an edit of the file it read, so the name alone would not do
    return sha256(path)


def local_files(name: str) -> list[Path]:
    """The local files that a name, or a path of the user's own, is read from."""
    if name not in data.DATASETS:
        return [Path(name).expanduser()]
    folder = paths.data_folder()
    if folder is None:
        raise InputError(f"{name} from local files: set REPRO_DATA to the folder that holds them")
    spec = data.get_spec(name)
    present = sorted(folder / file for file in {spec.file, spec.raw_file} if file and (folder / file).is_file())
    if not present:
        raise InputError(f"{name} has no local file {spec.file} below {folder}")
    return present


def training_sentences(config: TrainConfig, store: Store) -> tuple[str, ...]:
    """The training sample of a configuration: drawn once, then read from the store."""

    def draw() -> tuple[str, ...]:
        corpus = data.load(config.corpus, source=config.source, limit=config.sentences)
        if not isinstance(corpus, data.Corpus):
            raise InputError(f"{config.corpus!r} is not a corpus of plain sentences")
        return corpus.texts

    wanted = {"corpus": config.corpus, "sentences": config.sentences, "source": config.source}
    content = fingerprint(config.corpus, config.source)
    return tuple(store.remember("sentences", {**wanted, "content": content}, draw, code="repro.data.sampling"))


def training_pairs(config: TrainConfig) -> data.LabelledPairs:
    """The training pairs of a configuration of the `nli` objective."""
    return _labelled_pairs(config, limit=config.sentences)


def training_examples(config: TrainConfig) -> data.LabelledPairs | Triples:
    """The training pairs or triples of AnglE's objectives: `config.sentences` of them, neutral pairs left out."""
    make = triples if config.examples == "triples" else like_or_unlike
    return make(_labelled_pairs(config), config.sentences)


def training_material(config: TrainConfig, store: Store) -> tuple[str, ...] | data.LabelledPairs | Triples:
    """What the objective of a configuration learns from."""
    if config.objective in SCALING:
        return training_examples(config)
    return training_pairs(config) if config.objective == "nli" else training_sentences(config, store)


def _labelled_pairs(config: TrainConfig, limit: int | None = None) -> data.LabelledPairs:
    pairs = data.load(config.corpus, split="train", source=config.source, limit=limit)
    if not isinstance(pairs, data.LabelledPairs):
        raise InputError(
            f"{config.corpus!r} is not a set of labelled pairs: the {config.objective} objective needs one, such as "
            "'nli'"
        )
    return pairs
