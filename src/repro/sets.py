"""Sets: what a dataset becomes once it is read, whatever its source. Frozen, checked on construction."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from repro.checks import Strings, check_ids, check_labels, check_scores, check_texts
from repro.types import InputError, check_same_length


def texts_of(data: "DataSet") -> tuple[str, ...]:
    """Every text of a set, one side after the other, repeats included, so that embeddings slice back.

    Pairs give `texts1 + texts2`, retrieval gives `queries + documents`, word vectors give their words.
    """
    match data:
        case ScoredPairs() | LabelledPairs():
            return data.texts1 + data.texts2
        case Retrieval():
            return data.queries + data.documents
        case WordVectors():
            return data.words
        case _:
            return data.texts


@dataclass(frozen=True, eq=False)
class ScoredPairs:
    """Pairs of texts with a gold similarity (STS)."""

    name: str
    source: str
    split: str
    texts1: tuple[str, ...]
    texts2: tuple[str, ...]
    scores: NDArray[np.float64]
    subsets: Strings
    """Which part of the set each pair comes from, (n,); one name throughout where there are no parts."""
    text_form: str = "raw"
    """`senteval` (tokenised, lower-cased) or `raw` (as written)."""

    def __post_init__(self) -> None:
        _assign(self, texts1=check_texts(self.texts1, f"{self.name} texts1"))
        _assign(self, texts2=check_texts(self.texts2, f"{self.name} texts2"))
        _assign(self, scores=check_scores(self.scores, f"{self.name} scores"))
        _assign(self, subsets=check_labels(self.subsets, f"{self.name} subsets"))
        check_same_length(texts1=self.texts1, texts2=self.texts2, scores=self.scores, subsets=self.subsets)

    def __len__(self) -> int:
        return len(self.texts1)


@dataclass(frozen=True, eq=False)
class LabelledTexts:
    """Single texts with a class each (sentiment, question type, topic)."""

    name: str
    source: str
    split: str
    texts: tuple[str, ...]
    labels: Strings

    def __post_init__(self) -> None:
        _assign(self, texts=check_texts(self.texts, f"{self.name} texts"))
        _assign(self, labels=check_labels(self.labels, f"{self.name} labels"))
        check_same_length(texts=self.texts, labels=self.labels)

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True, eq=False)
class LabelledPairs:
    """Pairs of texts with a class each (paraphrase or not; entailment, neutral, contradiction)."""

    name: str
    source: str
    split: str
    texts1: tuple[str, ...]
    texts2: tuple[str, ...]
    labels: Strings

    def __post_init__(self) -> None:
        _assign(self, texts1=check_texts(self.texts1, f"{self.name} texts1"))
        _assign(self, texts2=check_texts(self.texts2, f"{self.name} texts2"))
        _assign(self, labels=check_labels(self.labels, f"{self.name} labels"))
        check_same_length(texts1=self.texts1, texts2=self.texts2, labels=self.labels)

    def __len__(self) -> int:
        return len(self.texts1)


@dataclass(frozen=True, eq=False)
class Retrieval:
    """Queries, documents, and which document is relevant to which query."""

    name: str
    source: str
    query_ids: tuple[str, ...]
    queries: tuple[str, ...]
    document_ids: tuple[str, ...]
    documents: tuple[str, ...]
    qrels: Mapping[str, Mapping[str, int]]
    """query id → document id → relevance; 0 is judged and not relevant."""
    answers: tuple[str, ...] | None = None
    """The gold answer of each query, where the set has one."""
    split: str = "test"

    def __post_init__(self) -> None:
        for side, ids in (("queries", "query_ids"), ("documents", "document_ids")):
            _assign(self, **{side: check_texts(getattr(self, side), f"{self.name} {side}")})
            _assign(self, **{ids: check_ids(getattr(self, ids), f"{self.name} {ids}")})
            check_same_length(**{side: getattr(self, side), ids: getattr(self, ids)})
        if self.answers is not None:
            _assign(self, answers=check_texts(self.answers, f"{self.name} answers"))
            check_same_length(queries=self.queries, answers=self.answers)
        _check_qrels(self)

    def __len__(self) -> int:
        return len(self.queries)


@dataclass(frozen=True, eq=False)
class Corpus:
    """Plain sentences to train on."""

    name: str
    source: str
    texts: tuple[str, ...]
    split: str = "train"

    def __post_init__(self) -> None:
        _assign(self, texts=check_texts(self.texts, f"{self.name} texts"))

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Static word embeddings: row i of `vectors` (n, dim) float32 belongs to `words[i]`, most frequent first."""

    name: str
    source: str
    words: tuple[str, ...]
    vectors: NDArray[np.float32]
    split: str = "all"
    rows: Mapping[str, int] = field(init=False, repr=False)
    """word → its row."""

    def __post_init__(self) -> None:
        _assign(self, words=check_ids(self.words, f"{self.name} words"))
        vectors = np.array(self.vectors, dtype=np.float32)
        if vectors.ndim != 2 or not np.isfinite(vectors).all():
            raise InputError(f"{self.name} vectors have shape {vectors.shape}: expected a finite matrix (words, dim)")
        vectors.setflags(write=False)
        _assign(self, vectors=vectors, rows={word: row for row, word in enumerate(self.words)})
        check_same_length(words=self.words, vectors=self.vectors)

    def __len__(self) -> int:
        return len(self.words)


DataSet: TypeAlias = ScoredPairs | LabelledTexts | LabelledPairs | Retrieval | Corpus | WordVectors


def _check_qrels(data: Retrieval) -> None:
    """Every judged query and document must exist."""
    queries, documents = set(data.query_ids), set(data.document_ids)
    for query, judged in data.qrels.items():
        if query not in queries:
            raise InputError(f"{data.name} qrels judge {query!r}, which is not among the {len(queries)} queries")
        for document in judged:
            if document not in documents:
                raise InputError(
                    f"{data.name} qrels of {query!r} name the document {document!r}, "
                    f"which is not among the {len(documents)} documents"
                )


def _assign(data: object, **values: Any) -> None:
    """Set fields of a frozen dataclass while it is being built."""
    for name, value in values.items():
        object.__setattr__(data, name, value)
