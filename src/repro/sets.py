"""Sets: what a dataset becomes once it is read, whatever its source.

Frozen, checked on construction.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from repro.types import InputError, check_embeddings, check_same_length, finite_vector

Strings: TypeAlias = NDArray[np.str_]


@dataclass(frozen=True, eq=False)
class _Set:
    """What all sets share: columns are brought into their final form and checked."""

    groups: ClassVar[tuple[tuple[str, ...], ...]]
    """Columns that belong row to row; the first group's rows are the set's."""
    name: str
    source: str

    def __post_init__(self) -> None:
        for group in self.groups:
            for name in self._given(group):
                object.__setattr__(
                    self,
                    name,
                    _CHECKS[name](getattr(self, name), f"{self.name} {name}"),
                )
            check_same_length(**self._given(group))

    def __len__(self) -> int:
        return len(getattr(self, self.groups[0][0]))

    def keep(self, rows: Sequence[int] | NDArray[np.int64], group: int = 0, **changes: Any) -> Self:
        """The set with these rows of one group alone, and with other fields changed."""
        kept: dict[str, Any] = {
            name: column[rows]
            if isinstance(column, np.ndarray)
            else tuple(column[row] for row in rows)
            for name, column in self._given(self.groups[group]).items()
        }
        return replace(self, **kept, **changes)

    def _given(self, group: tuple[str, ...]) -> dict[str, Any]:
        return {name: getattr(self, name) for name in group if getattr(self, name) is not None}


@dataclass(frozen=True, eq=False)
class ScoredPairs(_Set):
    """Pairs of texts with a gold similarity (STS)."""

    groups = (("texts1", "texts2", "scores", "subsets"),)
    split: str
    texts1: tuple[str, ...]
    texts2: tuple[str, ...]
    scores: NDArray[np.float64]
    # Which part of the set each pair comes from, (n,); one name throughout where there are no parts
    subsets: Strings


@dataclass(frozen=True, eq=False)
class LabelledTexts(_Set):
    """Single texts with a class each (sentiment, question type, topic)."""

    groups = (("texts", "labels"),)
    split: str
    texts: tuple[str, ...]
    labels: Strings


@dataclass(frozen=True, eq=False)
class LabelledPairs(_Set):
    """Pairs of texts with a class each (paraphrase or not; entailment, neutral, contradiction)."""

    groups = (("texts1", "texts2", "labels"),)
    split: str
    texts1: tuple[str, ...]
    texts2: tuple[str, ...]
    labels: Strings


@dataclass(frozen=True, eq=False)
class Retrieval(_Set):
    """Queries, documents, and which document is relevant to which query."""

    groups = (("queries", "query_ids", "answers"), ("documents", "document_ids"))
    query_ids: tuple[str, ...]
    queries: tuple[str, ...]
    document_ids: tuple[str, ...]
    documents: tuple[str, ...]
    # Query id → document id → relevance; 0 is judged and not relevant
    qrels: Mapping[str, Mapping[str, int]]
    answers: tuple[str, ...] | None = None  # The gold answer of each query, where the set has one
    split: str = "test"

    def __post_init__(self) -> None:
        super().__post_init__()
        queries, documents = set(self.query_ids), set(self.document_ids)
        for query, judged in self.qrels.items():
            if query not in queries:
                raise InputError(
                    f"{self.name} qrels judge {query!r}, which is not among the {len(queries)} "
                    "queries"
                )
            for document in judged.keys() - documents:
                raise InputError(
                    f"{self.name} qrels of {query!r} name the document {document!r}, which is not "
                    f"among the {len(documents)} documents"
                )


@dataclass(frozen=True, eq=False)
class Corpus(_Set):
    """Plain sentences to train on."""

    groups = (("texts",),)
    texts: tuple[str, ...]
    split: str = "train"


@dataclass(frozen=True, eq=False)
class WordVectors(_Set):
    """Static word embeddings: row i of `vectors` (n, dim) float32 belongs to `words[i]`, most
    frequent first.
    """

    groups = (("words", "vectors"),)
    words: tuple[str, ...]
    vectors: NDArray[np.float32]
    split: str = "all"


DataSet: TypeAlias = ScoredPairs | LabelledTexts | LabelledPairs | Retrieval | Corpus | WordVectors
Embed: TypeAlias = Callable[[Sequence[str]], NDArray[Any]]
"""Embeddings (n, dim) of texts, whoever made them: all that a task asks for."""


def texts_of(data: DataSet) -> tuple[str, ...]:
    """Every text of a set, one side after the other, repeats included, so that embeddings slice
    back.
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


def all_texts(sets: Sequence[DataSet]) -> list[str]:
    """Every text of several sets, for encoding them once."""
    return [text for part in sets for text in texts_of(part)]


def check_texts(texts: Iterable[str], what: str) -> tuple[str, ...]:
    """Texts as a tuple; a bare string, an empty collection, a non-string or a blank text is
    refused.
    """
    if isinstance(texts, str):
        raise InputError(
            f"{what} is one string, {texts[:40]!r}: expected a sequence of texts, so wrap it in a "
            "list"
        )
    texts = tuple(texts)
    if not texts:
        raise InputError(f"{what} is empty: expected at least one text")
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(
                f"{what}[{row}] is {text!r} ({type(text).__name__}): expected a string"
            )
        if not text.strip():
            raise InputError(
                f"{what}[{row}] is {text!r}: expected a text that is not blank; drop that row"
            )
    return texts


def _scores(scores: Any, what: str) -> NDArray[np.float64]:
    """Gold scores as a read-only vector (n,) of finite numbers."""
    scores = finite_vector(scores, what).copy()
    scores.setflags(write=False)
    return scores


def _labels(labels: Any, what: str) -> Strings:
    """Labels as a read-only vector (n,) of strings that are not blank, numbers spelled as
    strings.
    """
    values = [str(label) for label in labels]
    for row, label in enumerate(values):
        if not label.strip():
            raise InputError(f"{what}[{row}] is {label!r}: expected a label for every text")
    checked: Strings = np.array(values, dtype=np.str_)
    checked.setflags(write=False)
    return checked


def _ids(ids: Iterable[str], what: str) -> tuple[str, ...]:
    """Distinct names that are not blank."""
    ids = tuple(str(value) for value in ids)
    repeated = [value for value, count in Counter(ids).items() if count > 1]
    if repeated:
        raise InputError(f"{what} holds {repeated[0]!r} more than once: expected every id once")
    if any(not value.strip() for value in ids):
        raise InputError(f"{what} holds a blank id: expected a name for every row")
    return ids


def _vectors(vectors: Any, what: str) -> NDArray[np.float32]:
    """A read-only matrix (words, dim) of finite numbers."""
    vectors = np.array(check_embeddings(vectors, what), dtype=np.float32)
    vectors.setflags(write=False)
    return vectors


_CHECKS: dict[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(("texts", "texts1", "texts2", "queries", "documents", "answers"), check_texts),
    **dict.fromkeys(("labels", "subsets"), _labels),
    **dict.fromkeys(("query_ids", "document_ids", "words"), _ids),
    "scores": _scores,
    "vectors": _vectors,
}
