"""What a source holds, named by a fingerprint, and the samples drawn from it: to learn from, or to
be asked.
"""

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from repro import data, paths
from repro.data.local import local_path
from repro.data.sampling import Triples, like_or_unlike, take, triples
from repro.digests import digest
from repro.manifests import sha256_of_large
from repro.seeding import make_rng
from repro.sets import Retrieval
from repro.settings import TrainConfig
from repro.store import Store
from repro.types import InputError, check_dim

READERS = "repro.data.own"  # Where the code starts that reads local files, ours and a user's


def fingerprint(name: str, source: str) -> str:
    """What identifies a dataset's content: its file's checksum, its hub revision, or the
    generator's code; and the code that reads it.
    """
    if source == "microworld":
        folder = paths.PACKAGE.parent / "microworld"
        files = sorted(
            path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts
        )
        return digest(
            {path.relative_to(folder).as_posix(): sha256_of_large(path) for path in files}
        )
    if source == "hub":
        from repro.data.hub import hub_source, hub_version  # Brings pyarrow

        hub = hub_source(data.get_spec(name))
        return digest(
            [
                name,
                *([mirror.id, hub_version(mirror)] for mirror in (hub, *hub.elsewhere.values())),
            ],
            code=("repro.data.hub",),
        )
    sums = [sha256_of_large(path) for path in _local_files(name)]
    return digest(sums, code=(READERS,))


def _local_files(name: str) -> list[Path]:
    """The local files that a name, or a path of the user's own, is read from."""
    if name not in data.DATASETS:
        path = Path(os.path.expanduser(name))
        return (
            sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        )
    spec = data.get_spec(name)
    found = {local_path(spec)}
    with suppress(InputError):  # The original text may be lacking
        found.add(local_path(spec, "raw"))
    return sorted(found)


def training_sentences(config: TrainConfig, store: Store) -> tuple[str, ...]:
    """The training sample of a configuration: drawn once, then read from the store."""

    def draw() -> tuple[str, ...]:
        corpus = data.load(config.corpus, source=config.source, limit=config.sentences)
        if not isinstance(corpus, data.Corpus):
            raise InputError(f"{config.corpus!r} is not a corpus of plain sentences")
        if fingerprint(config.corpus, config.source) != content:
            raise InputError(f"{config.corpus} was written to while it was read: begin again")
        return corpus.texts

    identity = {"corpus": config.corpus, "sentences": config.sentences, "source": config.source}
    content = fingerprint(config.corpus, config.source)
    return tuple(
        store.remember(
            "sentences",
            {**identity, "content": content},
            draw,
            code="repro.data.samples",
        )
    )


def training_pairs(config: TrainConfig, store: Store | None = None) -> data.LabelledPairs:
    """As many labelled pairs as a configuration says; a store has no part in it."""
    return _pairs(config, config.sentences)


def training_examples(
    config: TrainConfig, store: Store | None = None
) -> data.LabelledPairs | Triples:
    """The training pairs or triples of AnglE's objectives: `config.sentences` of them, neutral
    pairs left out.
    """
    make = triples if config.examples == "triples" else like_or_unlike
    return make(_pairs(config, None), config.sentences)


def _pairs(config: TrainConfig, limit: int | None) -> data.LabelledPairs:
    pairs = data.load(config.corpus, split="train", source=config.source, limit=limit)
    if not isinstance(pairs, data.LabelledPairs):
        needed = f"the {config.objective} objective needs one, such as 'nli'"
        raise InputError(f"{config.corpus!r} is not a set of labelled pairs: {needed}")
    return pairs


def load_questions(
    source: str,
    *,
    questions: int | None = None,
    paragraphs: int | None = None,
    seed: int = 0,
) -> Retrieval:
    """HotpotQA's questions, so many drawn at random, and paragraphs likewise, with all that support
    an answer.
    """
    whole = data.load("hotpotqa", source=source)
    assert isinstance(whole, Retrieval)
    if whole.answers is None:
        raise InputError(f"hotpotqa from {source} has no answers: they are what is looked for")
    asked = take(whole, questions, seed=seed)
    assert isinstance(asked, Retrieval)
    gold = gold_paragraphs(asked)
    supporting = np.isin(whole.document_ids, list(gold))
    order = make_rng(seed, "paragraphs", whole.name).permutation(len(whole.documents))
    others = order[~supporting[order]]
    if paragraphs is not None:
        others = others[: max(check_dim(paragraphs, what="paragraphs") - len(gold), 0)]
    kept = np.sort(np.r_[others, np.flatnonzero(supporting)])
    searched = whole.keep(kept, group=1, qrels={})
    here = set(searched.document_ids)
    qrels = {
        query: {d: r for d, r in judged.items() if d in here}
        for query, judged in asked.qrels.items()
    }
    return replace(
        asked,
        document_ids=searched.document_ids,
        documents=searched.documents,
        qrels=qrels,
    )


def gold_paragraphs(asked: Retrieval) -> set[str]:
    """Ids of the paragraphs that support an answer."""
    return {
        document
        for judged in asked.qrels.values()
        for document, relevance in judged.items()
        if relevance > 0
    }
