"""From what a user has to what the advisor reads: embeddings by layer, and the evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dimadvise.columns import naming
from dimadvise.evidence import Classes, Evidence, Pairs, Search
from dimadvise.files import Layer
from dimadvise.honesty import refuse_packed_bits
from dimadvise.queries import check_same_width
from dimadvise.request import TARGETS, Request
from dimadvise.tables import classed, graded, judged
from dimadvise.vectors import Shards, Vectors, in_memory, open_vectors, refuse_unread_column
from repro import data
from repro.data import column_names
from repro.data.table import NOTHING, Table
from repro.types import Array, InputError

if TYPE_CHECKING:
    from repro.models.layerless import Encoder


@dataclass(frozen=True)
class Case:
    """What is asked for, and all that was opened for it."""

    request: Request
    versions: Mapping[Layer, Vectors]
    evidence: Evidence | None
    source: str  # Where it comes from, in words
    asked: Vectors | None = None  # Queries by which recall is measured, if rows do not ask
    origin: Mapping[str, Any] = field(default_factory=dict)
    """What an export of the encoder has to know."""

    @property
    def last_layer(self) -> Layer:
        """Of those that are considered."""
        return list(self.versions)[-1]

    @property
    def classifies(self) -> bool:
        """Whether a classifier judges, which sees lengths."""
        return self.evidence is not None and self.evidence.sees_lengths

    @property
    def similarity(self) -> str:
        """Of vectors with queries, or of the rows of a pair."""
        return self.request.similarity or ("l2" if self.classifies else "cosine")

    @property
    def unit(self) -> bool:
        """Whether rows are divided by their lengths, which cosines do not see."""
        return self.similarity == "cosine" if self.evidence is None else not self.classifies

    @property
    def target(self) -> tuple[str, float]:
        """What is asked for, and how much of it."""
        usual = "recall" if self.evidence is None else "retain"
        return self.request.target or (usual, TARGETS[usual])

    def searched(self, layer: Layer) -> tuple[Vectors, Vectors | None]:
        """Documents of a layer, and the queries that are asked if rows do not ask."""
        vectors = self.versions[layer]
        if not isinstance(self.evidence, Search):
            return vectors, self.asked
        queries = in_memory(vectors.take(self.evidence.queries), "the queries")
        return in_memory(vectors.take(self.evidence.documents), self.source), queries


def case_of(request: Request, vectors: Any, queries: Any = None, labels: Any = None) -> Case:
    """What a request is about, opened: vectors and queries are arrays, or files or folders of them,
    and labels are a file or one for each row; without vectors an encoder embeds texts.

    Raises:
        InputError: for options that belong to what is not given, and vectors of packed bits.
    """
    if (vectors is None) == (request.encoder is None):
        raise InputError("give either a file of vectors, or --encoder NAME with --texts FILE")
    columns = column_names(request.columns)
    if vectors is None:
        of_file = ("pairs", "labels", "qrels", "queries", "column", "queries_column")
        if request.texts is None:
            raise InputError(
                "--encoder needs --texts: a dataset name or a file with one text per line"
            )
        _refuse("a file of vectors", request, of_file)
        return _encoded(request, columns)
    _refuse("--encoder", request, ("texts", "layers", "split", "source", "prompt"))
    if not isinstance(queries, str | Path):
        owner = "--queries" if queries is None else "a file of queries"
        _refuse(owner, request, ("queries_column",))
    query_vectors = None
    if queries is not None:
        query_vectors = _opened(queries, request.queries_column or request.column, "queries")
    files = [Path(source) for source in (vectors, queries) if isinstance(source, str | Path)]
    if files:
        refuse_unread_column(request.column, *files)
    else:
        _refuse("a file of vectors", request, ("column",))
    X = _opened(vectors, request.column, "vectors")
    refuse_packed_bits(X)
    evidence = _evidence(request, X, query_vectors, labels, columns)
    if isinstance(evidence, Search) and query_vectors is not None:
        all_rows = Shards([X, query_vectors], X.name)
        all_rows.kind = X.kind  # Documents alone are stored.
        X = all_rows
    return Case(request, {None: X}, evidence, X.name, query_vectors)


def _evidence(
    request: Request,
    X: Vectors,
    queries: Vectors | None,
    labels: Any,
    columns: Mapping[str, str],
) -> Evidence | None:
    """What tables say of rows X (n, D), counted from 0, which are the documents where there are
    `queries` (m, D).

    `columns` are names in the tables that are not understood by themselves: our column → theirs.
    """
    tables = {"pairs": request.pairs, "labels": labels, "qrels": request.qrels}
    kinds = [kind for kind, table in tables.items() if table is not None]
    if len(kinds) > 1:
        raise InputError(
            f"{' and '.join(kinds)} are given: expected one kind of evidence at a time"
        )
    if queries is not None:
        check_same_width(X, queries)
    if request.pairs is not None:
        table = Table(Path(request.pairs), columns, ("row1", "row2", "score"))
        return graded(table, X.shape[0])
    if labels is not None:
        return classed(labels, columns, X)
    if request.qrels is None:
        return None
    if queries is None:
        raise InputError("--qrels needs --queries: give both, or queries alone")
    table = Table(Path(request.qrels), columns, ("query", "document", "relevance"))
    return judged(table, queries.shape[0], X.shape[0])


def _opened(source: Any, column: str, name: str) -> Vectors:
    if isinstance(source, str | Path):
        return open_vectors(Path(source), column)
    columns = [str(heading) for heading in getattr(source, "columns", ())]  # Of a data frame
    if ids := naming(columns):
        raise InputError(
            f"column {ids!r} of {name} names rows, and is no number of them: leave it out, "
            f"{name}.drop(columns={ids!r})"
        )
    return in_memory(source, name)


def _refuse(owner: str, request: Request, names: Sequence[str]) -> None:
    for name in names:
        if getattr(request, name):
            option = name.replace("_", "-")
            raise InputError(f"--{option} belongs to {owner}, which is not given")


def _encoded(request: Request, columns: Mapping[str, str]) -> Case:
    """The case of an encoder's embeddings of texts."""
    # Bring torch, which embeddings of a user's own do not need
    from repro.models import SentenceEncoder
    from repro.models.sources import MINILM, SHIPPED, is_hub_id, locate
    from repro.runs.encoders import as_it_is
    from rivals import system_named

    name, prompt = str(request.encoder), request.prompt
    system = system_named(name, source=request.source or data.default_source())
    if system is not None:
        if prompt is not None:
            raise InputError(f"prompt is {prompt!r}: {name} is made whole; leave it out")
        return from_encoder(system.make(), request, columns, system.line)
    network = as_it_is(name, partial(SentenceEncoder.load, name, prompt=prompt))()
    # A folder may have the name of a network as well, which goes before it
    is_published = name in (*SHIPPED, MINILM) or is_hub_id(name)
    origin = {
        "encoder": name if is_published else str(locate(name).resolve()),
        "encoder_digest": encoder_digest(name),
        "pooling": network.pooling,
        "prompt": network.prompt,
    }
    return replace(from_encoder(network, request, columns), origin=origin)


def encoder_digest(name: str) -> str:
    """Digest of the files that decide an encoder's output, wherever they lie: a copy has the
    same.
    """
    from repro.models.sources import identity, locate

    return identity(str(locate(name).resolve()))


def from_encoder(
    encoder: "Encoder",
    request: Request,
    columns: Mapping[str, str] = NOTHING,
    name: str = "",
) -> Case:
    """An encoder's embeddings of the `texts` of a request; graded pairs, labelled texts and queries
    bring their evidence along.

    Of an encoder with `layers` to consider stopping at, the last is always among them.
    """
    # Brings torch, which embeddings of a user's own do not need
    from repro.models import SentenceEncoder

    texts, layers = str(request.texts), request.layers
    loaded = data.load(texts, split=request.split, source=request.source, columns=columns)
    sides, evidence = judged_texts(loaded)
    versions: dict[Layer, Array] = {}
    if isinstance(encoder, SentenceEncoder):
        layer_numbers = [
            *sorted({encoder.backbone.layer_index(n) for n in layers} - {encoder.n_layers}),
            encoder.n_layers,
        ]
        states = encoder.encode_layers(sides, layer_numbers, progress=True)
        keys = layer_numbers if len(layer_numbers) > 1 else [None]
        versions = dict(zip(keys, states, strict=True))
        if encoder.pooler is not None:
            versions[list(versions)[-1]] = encoder.pooler.project(states[-1])
        name = name or encoder.backbone.name
    else:
        name = name or type(encoder).__name__
        if layers:
            raise InputError(
                f"layers {', '.join(map(str, layers))}: {name} has no layers to choose from"
            )
        versions[None] = encoder.encode(sides, progress=True)
    embeddings = {
        layer: in_memory(X, f"{name} layer {layer}" if layer else name)
        for layer, X in versions.items()
    }
    return Case(request, embeddings, evidence, f"{name} on {loaded.name} ({loaded.source})")


def judged_texts(loaded: data.DataSet) -> tuple[list[str], Evidence | None]:
    """The texts of a dataset in the order that its evidence counts rows, and the evidence."""
    if isinstance(loaded, data.Retrieval):
        place = {name: i for i, name in enumerate(loaded.document_ids)}
        judged = [loaded.qrels.get(name, {}) for name in loaded.query_ids]
        qrels = {
            row: {place[d]: float(v) for d, v in of_query.items()}
            for row, of_query in enumerate(judged)
        }
        sides, documents = [*loaded.documents, *loaded.queries], len(loaded.documents)
        return sides, Search(np.arange(documents, len(sides)), np.arange(documents), qrels)
    sides = list(data.texts_of(loaded))
    evidence: Evidence | None = None
    if isinstance(loaded, data.ScoredPairs):
        half = len(loaded)
        evidence = Pairs(np.arange(half), np.arange(half, 2 * half), loaded.scores)
    elif isinstance(loaded, data.LabelledTexts):
        evidence = Classes(np.arange(len(sides)), np.array([str(label) for label in loaded.labels]))
    return sides, evidence
