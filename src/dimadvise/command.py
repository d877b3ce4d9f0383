"""The commands `dimadvise advise` and `dimadvise apply`: how few bytes do these vectors need, and
then make it so.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from threadpoolctl import threadpool_limits

from repro.seeding import cpu_count
from repro.terminal import Menu, say
from repro.types import DataSource, InputError

if TYPE_CHECKING:
    from dimadvise.advice import Advice
    from dimadvise.deploy import Deployment
    from dimadvise.inputs import Case
    from dimadvise.measure import Survey

WRITTEN = ("report.json", "report.html", "reducer.safetensors", "reducer.json", "codes.safetensors")
"""All that an advice leaves in its folder, if it has an answer."""
# What may be asked for, and how much of it by default
TARGETS = {"recall": 0.95, "retain": 0.99, "bytes": 0.0}
FEWER_BITS = ("int8", "int4", "binary")  # judged by labels unless told otherwise
DEPTH, DEEPEST = 4, 50  # re-ranking that is measured unless told otherwise, and at most
Method = Annotated[str, Menu("dimadvise.ways", "WAYS")]
Level = Annotated[str, Menu("dimadvise.deploy", "MENU")]
Similarity = Annotated[str, Menu("dimadvise.deploy", "SIMILARITIES")]
Vectors = Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="[VECTORS]")]


@dataclass(frozen=True)
class Request:
    """What is advised on, what is asked for, and what is tried.

    Args:
        embeddings: one vector per text: .npy, .npz, .safetensors, .parquet, .fvecs, .bvecs, .fbin,
            .u8bin, .i8bin, .ibin, .jsonl, .jsonl.gz, or a folder of such files; by default
            --encoder and --texts are given.
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
        depth: find so many times as many candidates as are wanted, and re-rank them by the full
            vectors, which are then kept too; by default no re-ranking.
        store: that the vectors lie in: what it holds is tried, compared as it compares, and the
            answer ends in what to paste into it.
        similarity: of your store: cosine, ip (inner product) or l2; by default cosine, for labels
            l2.
        methods: ways to fewer numbers that are tried; by default all.
        levels: bits of a number that are tried; by default all but float32 that suit the method,
            product codes (pq) if faiss is installed.
        dims: sizes that are tried; by default two or three to each halving, more near the answer.
        sample: most vectors that are searched to measure recall.
        layers: with --encoder: also consider stopping at these layers; by default the last alone.
        prompt: with --encoder: put before every text: a name among the encoder's prompts, or the
            text itself; by default the encoder's own, if it has one.
        split: of the dataset; by default its test split, or what it has.
        source: where the dataset comes from; by default local files if REPRO_DATA is set, else the
            microworld.
        output: folder for the report and the map.
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
    seed: int = 0
    column: str = ""
    columns: tuple[str, ...] = ()
    queries_column: str = ""

    @property
    def target(self) -> tuple[str, float] | None:
        """What is asked for, and how much of it; None where that is left open."""
        named = {name: getattr(self, name) for name in TARGETS}
        given = {name: value for name, value in named.items() if value is not None}
        if len(given) > 1:
            raise InputError(
                f"{' and '.join(f'--{name}' for name in given)} are given: expected one "
                "target at a time"
            )
        for name, value in given.items():
            if name == "bytes" and value < 1:
                raise InputError(f"bytes is {value}: expected 1 or more a vector, such as 96")
            if name != "bytes" and not 0 < value <= 1:
                usual = f"expected a share above 0, at most 1, such as {TARGETS[name]}"
                raise InputError(f"{name} is {value}: {usual}")
        return next(iter(given.items()), None)


def advise(request: Request) -> int:
    """The fewest bytes a vector that keep what your embeddings are used for, with a report and the
    fitted map.

    Measured is which of the full-size neighbours are still found, on vectors that no fit has seen.

    With graded pairs, labels or relevant documents, also the share of their score that is kept,
    with a lower bound.
    """
    from dimadvise.files import memory_explained
    from dimadvise.measure import FEWEST
    from repro.paths import writable_folder

    started = time.perf_counter()
    _refuse_foreign(writable_folder(request.output))
    if request.sample < FEWEST:
        raise InputError(f"--sample is {request.sample}: expected {FEWEST} or more vectors")
    if request.depth and not 2 <= request.depth <= DEEPEST:
        raise InputError(
            f"--depth is {request.depth}: expected 2 to {DEEPEST}, or 0 for no re-ranking"
        )
    target = request.target
    if (request.embeddings is None) == (request.encoder is None):
        raise InputError("give either a file of vectors, or --encoder NAME with --texts FILE")
    given = request.embeddings if isinstance(request.embeddings, Path) else None
    if given and given.is_dir() and request.output.is_dir() and given.samefile(request.output):
        raise InputError(f"the output {given} is the input: expected another folder")
    case, asked, origin = _opened(request)
    fewer = "or search fewer rows by --sample"
    with threadpool_limits(cpu_count()), memory_explained(f"advise on {case.source}", fewer):
        _advise(request, case, asked, target, origin, started)
    return 0


def apply(
    vectors: tyro.conf.Positional[Path],
    advice: Path = Path("advice"),
    output: Path = Path("vectors"),
    level: str = "",
    rows_per_shard: int = 250_000,
    column: str = "",
) -> int:
    """Put vectors through an advice, as many as there are; stopped, the same command goes on where
    it was.

    Given again after the vectors have changed, it makes again what was made from other rows, and
    goes on where they have grown. Where a column or array names the rows, their ids are written
    too.

    Args:
        vectors: file or folder of vectors, as wide as those that were advised on.
        advice: folder that `dimadvise advise` wrote.
        output: folder for the shards, one .npy file each, and beside it one .ids.parquet.
        level: what is written: codes as advised, or numbers; by default as advised.
        rows_per_shard: rows of each file.
        column: field of the file that holds the vectors; by default the only one.
    """
    from dimadvise.apply import apply as put_through
    from dimadvise.files import memory_explained

    with threadpool_limits(cpu_count()), memory_explained(f"put {vectors} through {advice}"):
        put_through(
            vectors,
            advice,
            output,
            level=level,
            rows_per_shard=rows_per_shard,
            column=column,
        )
    return 0


def _opened(request: Request) -> tuple["Case", Any, Mapping[str, Any]]:
    """The case of a request, vectors of queries that are asked, and what an export has to know."""
    from dimadvise.honesty import refuse_packed_bits
    from dimadvise.inputs import from_matrix
    from dimadvise.vectors import open_vectors
    from repro.data import column_names

    named = column_names(request.columns)
    of_file = {name: getattr(request, name) for name in ("pairs", "labels", "qrels")}
    of_encoder = ("texts", "layers", "split", "source", "prompt")
    if request.embeddings is None:
        if request.texts is None:
            raise InputError(
                "--encoder needs --texts: a dataset name or a file with one text per line"
            )
        of_file |= {"queries": request.queries, "column": request.column}
        _refuse("a file of vectors", of_file | {"queries-column": request.queries_column})
        case, origin = _encoded(request, named)
        return case, None, origin
    _refuse("--encoder", {name: getattr(request, name) for name in of_encoder})
    asked = None
    if request.queries is None:
        _refuse("--queries", {"queries-column": request.queries_column})
    else:
        asked = open_vectors(request.queries, request.queries_column or request.column)
    vectors = open_vectors(request.embeddings, request.column)
    refuse_packed_bits(vectors)
    judged = asked if request.qrels is not None else None
    return from_matrix(vectors, queries=judged, columns=named, **of_file), asked, {}


def _refuse(owner: str, options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if value:
            raise InputError(f"--{name} belongs to {owner}, which is not given")


def _refuse_foreign(output: Path) -> None:
    """Before hours of work: refuse to write over files of these names that no earlier advice wrote,
    or that were changed since.
    """
    from dimadvise.deploy import check_ours, read_sealed
    from repro.store import sha256

    there = [name for name in WRITTEN if (output / name).exists()]
    if not there:
        return
    pages: list[str] = []
    with suppress(OSError, InputError, KeyError, TypeError):
        pages = list(read_sealed(output / WRITTEN[0])["page"])
    if not pages:
        raise InputError(
            f"{output / there[0]} was written by no advice, or has changed since: move it away or "
            "give another --output, nothing is overwritten"
        )
    page = output / WRITTEN[1]
    if page.exists() and sha256(page) not in pages:
        raise InputError(
            f"{page} has changed since it was written: move it away or give another --output, "
            "nothing is overwritten"
        )
    check_ours(output)


def _encoded(
    request: Request,
    columns: Mapping[str, str],
) -> tuple["Case", Mapping[str, Any]]:
    """The case of an encoder's embeddings of texts, and what an export of it has to know."""
    from dimadvise.inputs import from_encoder
    from repro.data import default_source
    from repro.models import SentenceEncoder
    from rivals import system_named

    encoder, prompt, source = str(request.encoder), request.prompt, request.source
    given: dict[str, Any] = {
        "layers": request.layers,
        "split": request.split,
        "source": source,
        "columns": columns,
    }
    system = system_named(encoder, source=source or default_source())
    if system is not None:
        if prompt is not None:
            raise InputError(f"prompt is {prompt!r}: {encoder} is made whole; leave it out")
        return from_encoder(system.make(), str(request.texts), name=system.line, **given), {}
    network = SentenceEncoder.load(encoder, prompt=prompt)
    place = str(Path(encoder).resolve()) if Path(encoder).is_dir() else encoder
    origin = {"encoder": place, "pooling": network.pooling, "prompt": network.prompt}
    return from_encoder(network, str(request.texts), **given), origin


def _advise(
    request: Request,
    case: "Case",
    asked: Any,
    target: tuple[str, float] | None,
    origin: Mapping[str, Any],
    started: float,
) -> None:
    """Judge by labels, measure recall, choose, and write."""
    from dimadvise import deploy, report
    from dimadvise.evidence import Search
    from dimadvise.measure import choose, survey
    from dimadvise.stores import check_store, paste
    from dimadvise.vectors import in_memory
    from repro.rows import hardware

    evidence, output = case.evidence, request.output
    classifier = evidence is not None and evidence.metric == "accuracy"
    similarity = request.similarity or ("l2" if classifier else "cosine")
    usual = "recall" if evidence is None else "retain"
    what, amount = target or (usual, TARGETS[usual])
    # Cosines see no lengths, a classifier does
    unit = similarity == "cosine" if evidence is None else not classifier
    if request.store:
        check_store(request.store, similarity, request.levels)
    labelled = None
    if evidence is not None or what == "retain":
        labelled = _judged(request, case, similarity, unit, (what, amount))
    judges = labelled is not None and (what == "retain" or (what == "bytes" and evidence))
    chosen = labelled.answer if labelled is not None and judges else None
    last = list(case.versions)[-1]
    layer = last if chosen is None else chosen.layer
    documents, kind = case.versions[layer], case.versions[layer].kind
    if isinstance(evidence, Search):
        asked = in_memory(documents.take(evidence.queries), "the queries")
        documents = in_memory(documents.take(evidence.documents), case.source)
    full = report.number_bytes(kind) * documents.shape[1]
    found = survey(
        documents,
        asked,
        similarity=similarity,
        methods=request.methods,
        levels=request.levels,
        dims=request.dims,
        depth=request.depth or DEPTH,
        rows=request.sample,
        also=[] if chosen is None else [(chosen.method, chosen.dim, chosen.level)],
        unit=unit,
        aim=None if judges else (what, amount, request.depth),
        store=request.store or "",
        seed=request.seed,
    )
    options, deployment, row = found.options, None, None
    if not judges:
        row = choose(options, what, amount, request.depth, full)
        if row is not None:
            deployment = replace(found.ways[options.loc[row, "way"]], rerank=request.depth)
    elif chosen is not None and labelled is not None and (chosen.bytes < full or layer != last):
        deployment = labelled.deployment
        is_chosen = (options["way"] == len(found.ways) - 1) & (options["rerank"] == 0)
        row = int(options.index[is_chosen][0])
        options.loc[row, ["dim", "bytes"]] = chosen.dim, chosen.bytes
    options["answer"] = options.index == row
    notes = [*found.notes, *(labelled.notes if labelled is not None else ())]
    if what == "recall" and (least := float(options.loc[0, "low@10"])) < amount:
        notes.append(
            f"{found.queries:,} queries can prove a recall of {least:.3f} at most: "
            "give more, or ask for less."
        )

    seconds = time.perf_counter() - started
    told = report.Findings(
        source=case.source + (f", layer {layer}" if len(case.versions) > 1 else ""),
        rows=documents.shape[0],
        full_dim=documents.shape[1],
        kind=kind,
        similarity=similarity,
        target=(what, amount),
        options=options,
        notes=tuple(dict.fromkeys(notes)),
        measured=(*found.measured, f"Seed {request.seed}; {hardware()}; {seconds:.0f} s."),
        shares=None if labelled is None else labelled.shares_of(layer),
        metric=None if labelled is None else labelled.metric,
        predicted=labelled.predicted if labelled is not None and what == "retain" else (),
    )
    pasted, how = "", ""
    if deployment is not None:
        pasted = paste(request.store, deployment) if request.store else ""
        how = usage(output, deployment) + pasted
    report.write(output / WRITTEN[1], told, how)
    replaced = (output / deploy.NOTE).exists()
    deploy.remove(output)  # An earlier advice may have had an answer where this one has none.
    say(report.headline(told))
    for line in report.explanation(told):
        say(f"  {line}")
    if deployment is not None:
        note = {"layer": layer, "source": case.source, **origin}
        if classifier:
            note["compared_by"] = "classifier"
        note["fitted_on"] = labelled.rows if labelled is not None and judges else found.fitted
        _write_map(request, deployment, found, row, note)
    if replaced:
        say(f"replaced: the map of an earlier advice in {output}; shards made by it have a copy")
    say(f"report: {output / WRITTEN[1]} ({seconds:.0f} s)")
    if pasted:
        say(f"{request.store}, with what `dimadvise apply` writes:\n{pasted}")


def _judged(
    request: Request,
    case: "Case",
    similarity: str,
    unit: bool,
    target: tuple[str, float],
) -> "Advice":
    """What labels say of every map, size and level; without labels, what is expected of maps."""
    from dimadvise import advice
    from dimadvise.deploy import PRODUCT
    from dimadvise.report import number_bytes
    from dimadvise.stores import holds, levels_of
    from dimadvise.transform import NESTED
    from dimadvise.ways import default_sizes

    what, amount = target
    kind = case.versions[list(case.versions)[-1]].kind
    plain = ["float16" if unit and number_bytes(kind) == 2 else "float32"]
    levels = [level for level in request.levels if level != PRODUCT] or [*plain, *FEWER_BITS]
    dims = request.dims
    if request.store:
        held = levels_of(request.store)
        levels = [level for level in levels if level in held] or held
        sizes = dims or default_sizes(next(iter(case.versions.values())).shape[1])
        dims = tuple(d for d in sizes if all(holds(request.store, d, level) for level in levels))
    return advice.advise(
        case.versions,
        evidence=case.evidence,
        retain=amount if what == "retain" else TARGETS["retain"],
        methods=[name for name in request.methods if name in NESTED] or advice.METHODS,
        levels=plain if case.evidence is None else levels,
        dims=dims,
        unit=unit,
        similarity=similarity,
        budget=amount if what == "bytes" else None,
        seed=request.seed,
    )


def _write_map(
    request: Request,
    deployment: "Deployment",
    found: "Survey",
    row: int | None,
    note: Mapping[str, Any],
) -> None:
    """Write the map with what is promised of it, and tell where."""
    from dimadvise import deploy

    chosen = found.options.loc[row]
    recall = [float(chosen[f"{end}@10"]) for end in ("recall", "low", "high")]
    promised = {"recall@10": recall, "corpus": found.corpus, "queries": found.queries}
    written = deploy.write(request.output, deployment, **note, promised=promised)
    say(f"the map: {', '.join(str(path) for path in written)}")
    if "encoder" in note:
        where = quote(str(request.output))
        say(f"encoder and map as one: repro export --reducer {where} --output NEW_FOLDER")


def usage(folder: Path, deployment: "Deployment") -> str:
    """Code that puts the files in a folder to use, to be copied."""
    from dimadvise.deploy import faiss_factory

    where, width = str(folder), len(deployment.transform.matrix)
    metric = "L2" if deployment.similarity == "l2" else "INNER_PRODUCT"
    words = faiss_factory(deployment)
    anew = ""
    if words:
        anew = f"""
# the same kind of index, trained anew by faiss on your vectors
faiss.index_factory({width}, {words!r}, faiss.METRIC_{metric})
"""
    return f"""from dimadvise.deploy import SavedReducer, faiss_index, read

# an index of faiss: takes vectors of full size, shortens and codes them by itself
index = faiss_index({where!r})
index.add(X)  # float32, (n, {width})
scores, rows = index.search(Q, 10)

# numbers or codes for any other store
advice = read({where!r})
advice.vectors(X)  # (n, {deployment.transform.dim}) float32
advice.codes(X)  # {deployment.bytes} bytes a row

# a step of a pipeline of scikit-learn
make_pipeline(SavedReducer({where!r}), LogisticRegression())
{anew}
# a file of any size, in shards; goes on where it was stopped
$ dimadvise apply vectors.npy --advice {quote(where)} --output shards
"""
