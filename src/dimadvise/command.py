"""The commands `dimadvise advise` and `dimadvise apply`: how few bytes do these vectors need, and
then make it so.
"""

import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from threadpoolctl import threadpool_limits

from repro.seeding import cpu_count
from repro.terminal import say
from repro.types import DataSource, InputError

if TYPE_CHECKING:
    from dimadvise.deploy import Deployment
    from dimadvise.inputs import Case

WRITTEN = ("report.json", "report.html", "reducer.safetensors", "reducer.json", "codes.safetensors")
"""All that an advice leaves in its folder, if it has an answer."""
# What may be asked for, and how much of it by default
TARGETS = {"recall": 0.95, "retain": 0.99, "bytes": 0.0}
DEPTH, DEEPEST = 4, 50  # re-ranking that is measured unless told otherwise, and at most
Vectors = Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="[VECTORS]")]


def advise(
    embeddings: Vectors = None,
    encoder: str | None = None,
    texts: str | None = None,
    queries: Path | None = None,
    pairs: Path | None = None,
    labels: Path | None = None,
    qrels: Path | None = None,
    recall: float | None = None,
    retain: float | None = None,
    bytes: int | None = None,
    depth: int = 0,
    similarity: Literal["cosine", "ip", "l2"] | None = None,
    methods: tuple[Literal["truncate", "pca", "pca-rotated", "random", "svd", "opq"], ...] = (),
    levels: tuple[Literal["float32", "float16", "int8", "int4", "binary", "pq"], ...] = (),
    dims: tuple[int, ...] = (),
    sample: int = 100_000,
    layers: tuple[int, ...] = (),
    prompt: str | None = None,
    split: str | None = None,
    source: DataSource | None = None,
    output: Path = Path("advice"),
    seed: int = 0,
    column: str = "",
    columns: tuple[str, ...] = (),
    queries_column: str = "",
) -> int:
    """The fewest bytes a vector that keep what your embeddings are used for, with a report and the
    fitted map.

    Measured is which of the full-size neighbours are still found, on vectors that no fit has seen.

    With graded pairs, labels or relevant documents, also the share of their score that is kept,
    with a lower bound.

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
        bytes: that a vector may take, at most.
        depth: find so many times as many candidates as are wanted, and re-rank them by the full
            vectors, which are then kept too; by default no re-ranking.
        similarity: of your store: cosine, ip (inner product) or l2; by default cosine, for labels
            l2.
        methods: ways to fewer numbers that are tried; by default all.
        levels: bits of a number that are tried; by default all but float32, product codes (pq) if
            faiss is installed.
        dims: sizes that are tried; by default two or three to each halving.
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
    from dimadvise.files import memory_explained
    from dimadvise.honesty import refuse_packed_bits
    from dimadvise.inputs import from_matrix
    from dimadvise.measure import FEWEST
    from dimadvise.vectors import open_vectors
    from repro.data import column_names
    from repro.paths import writable_folder

    started = time.perf_counter()
    _refuse_foreign(writable_folder(output))
    if sample < FEWEST:
        raise InputError(f"--sample is {sample}: expected {FEWEST} or more vectors")
    if depth and not 2 <= depth <= DEEPEST:
        raise InputError(f"--depth is {depth}: expected 2 to {DEEPEST}, or 0 for no re-ranking")
    target = _target(recall=recall, retain=retain, bytes=bytes)
    if (embeddings is None) == (encoder is None):
        raise InputError("give either a file of vectors, or --encoder NAME with --texts FILE")
    origin: dict[str, Any] = {}
    named, asked = column_names(columns), None
    if embeddings is not None:
        _refuse("--encoder", texts=texts, layers=layers, split=split, source=source, prompt=prompt)
        if queries is None:
            _refuse("--queries", **{"queries-column": queries_column})
        asked = None if queries is None else open_vectors(queries, queries_column or column)
        judged = asked if qrels is not None else None
        given: dict[str, Any] = {"pairs": pairs, "labels": labels, "qrels": qrels, "columns": named}
        vectors = open_vectors(embeddings, column)
        refuse_packed_bits(vectors)
        case = from_matrix(vectors, queries=judged, **given)
    else:
        if texts is None:
            raise InputError(
                "--encoder needs --texts: a dataset name or a file with one text per line"
            )
        of_file: dict[str, Any] = {
            "pairs": pairs,
            "labels": labels,
            "queries": queries,
            "qrels": qrels,
        }
        _refuse("a file of vectors", **of_file, column=column, **{"queries-column": queries_column})
        assert encoder is not None
        case, origin = _encoded(
            encoder,
            texts,
            prompt,
            source,
            layers=layers,
            split=split,
            columns=named,
        )
    wanted: dict[str, Any] = {
        "methods": methods,
        "levels": levels,
        "dims": dims,
        "rows": sample,
        "seed": seed,
    }
    fewer = "or search fewer rows by --sample"
    with threadpool_limits(cpu_count()), memory_explained(f"advise on {case.source}", fewer):
        _advise(case, asked, target, depth, similarity, wanted, origin, output, started)
    return 0


def apply(
    vectors: tyro.conf.Positional[Path],
    advice: Path = Path("advice"),
    output: Path = Path("vectors"),
    level: Literal["", "float32", "float16", "int8", "int4", "binary"] = "",
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


def _target(**given: float | None) -> tuple[str, float] | None:
    """What is asked for, and how much of it; None where that is left open."""
    asked = {name: value for name, value in given.items() if value is not None}
    if len(asked) > 1:
        raise InputError(
            f"{' and '.join(f'--{name}' for name in asked)} are given: expected one "
            "target at a time"
        )
    for name, value in asked.items():
        if name == "bytes" and value < 1:
            raise InputError(f"bytes is {value}: expected 1 or more a vector, such as 96")
        if name != "bytes" and not 0 < value <= 1:
            raise InputError(
                f"{name} is {value}: expected a share above 0, at most 1, such as {TARGETS[name]}"
            )
    return next(iter(asked.items()), None)


def _refuse(owner: str, **options: Any) -> None:
    for name, value in options.items():
        if value:
            raise InputError(f"--{name} belongs to {owner}, which is not given")


def _refuse_foreign(output: Path) -> None:
    """Before hours of work: refuse to write over files of these names that no earlier advice
    wrote.
    """
    from dimadvise.deploy import check_ours
    from dimadvise.files import read_json

    there = [name for name in WRITTEN if (output / name).exists()]
    if not there:
        return
    ours = False
    with suppress(OSError, InputError):
        report = read_json((output / WRITTEN[0]).read_bytes(), WRITTEN[0])
        if isinstance(report, dict) and {"answer", "options", "target"} <= set(report):
            ours = True
    if ours:
        check_ours(output)
        return
    raise InputError(
        f"{output / there[0]} was written by no advice: give another --output, "
        "nothing is overwritten"
    )


def _encoded(
    encoder: str,
    texts: str,
    prompt: str | None,
    source: Any,
    **given: Any,
) -> tuple["Case", dict[str, Any]]:
    """The case of an encoder's embeddings of texts, and what an export of it has to know."""
    from dimadvise.inputs import from_encoder
    from repro.data import default_source
    from repro.models import SentenceEncoder
    from rivals import system_named

    system = system_named(encoder, source=source or default_source())
    if system is not None:
        if prompt is not None:
            raise InputError(f"prompt is {prompt!r}: {encoder} is made whole; leave it out")
        return from_encoder(system.make(), texts, name=system.line, source=source, **given), {}
    network = SentenceEncoder.load(encoder, prompt=prompt)
    place = str(Path(encoder).resolve()) if Path(encoder).is_dir() else encoder
    origin = {"encoder": place, "pooling": network.pooling, "prompt": network.prompt}
    return from_encoder(network, texts, source=source, **given), origin


def _advise(
    case: "Case",
    asked: Any,
    target: tuple[str, float] | None,
    depth: int,
    similarity: str | None,
    wanted: dict[str, Any],
    origin: dict[str, Any],
    output: Path,
    started: float,
) -> None:
    """Judge by labels, measure recall, choose, and write."""
    from dimadvise import advice, deploy, report
    from dimadvise.evidence import Search
    from dimadvise.measure import choose, survey
    from dimadvise.transform import NESTED
    from dimadvise.vectors import in_memory
    from repro.rows import hardware

    evidence = case.evidence
    classifier = evidence is not None and evidence.metric == "accuracy"
    similarity = similarity or ("l2" if classifier else "cosine")
    what, amount = target or (
        ("recall", TARGETS["recall"]) if evidence is None else ("retain", TARGETS["retain"])
    )
    nested = [name for name in wanted["methods"] if name in NESTED] or advice.METHODS
    retain, more = (
        amount if what == "retain" else TARGETS["retain"],
        {name: wanted[name] for name in ("dims", "seed")},
    )
    # Cosines see no lengths, a classifier does
    unit = similarity == "cosine" if evidence is None else not classifier
    labelled = advice.advise(
        case.versions,
        evidence=evidence,
        retain=retain,
        methods=nested,
        unit=unit,
        **more,
    )
    last = list(case.versions)[-1]
    layer = labelled.answer.layer if what == "retain" and labelled.answer is not None else last
    documents, kind = case.versions[layer], case.versions[layer].kind
    if isinstance(evidence, Search):
        asked = in_memory(documents.take(evidence.queries), "the queries")
        documents = in_memory(documents.take(evidence.documents), case.source)
    full = report.number_bytes(kind) * documents.shape[1]
    # With labels: the numbers of the file
    level = "float16" if unit and report.number_bytes(kind) == 2 else "float32"
    wanted["also"] = (
        [(labelled.answer.method, labelled.answer.dim, level)] if labelled.answer else []
    )
    wanted["unit"] = unit
    found = survey(documents, asked, similarity=similarity, depth=depth or DEPTH, **wanted)
    options, deployment, row = found.options, None, None
    if what == "retain":
        made = (
            deploy.Deployment(labelled.transform, similarity, level) if labelled.transform else None
        )
        if made is not None and (made.bytes < full or layer != last):
            deployment = made
            row = int(
                options.index[(options["way"] == len(found.ways) - 1) & (options["rerank"] == 0)][0]
            )
            options.loc[row, ["dim", "bytes"]] = made.transform.dim, made.bytes
    else:
        row = choose(options, what, amount, depth, full)
        if row is not None:
            deployment = replace(found.ways[options.loc[row, "way"]], rerank=depth)
    options["answer"] = options.index == row
    short = []
    if what == "recall" and (least := float(options.loc[0, "low@10"])) < amount:
        short = [
            f"{found.queries:,} queries can prove a recall of {least:.3f} at most: "
            "give more, or ask for less."
        ]

    seconds = time.perf_counter() - started
    n, D = documents.shape
    told = report.Findings(
        source=case.source + (f", layer {layer}" if len(case.versions) > 1 else ""),
        rows=n,
        full_dim=D,
        kind=kind,
        similarity=similarity,
        target=(what, amount),
        options=options,
        notes=tuple(dict.fromkeys([*found.notes, *labelled.notes, *short])),
        measured=(*found.measured, f"Seed {wanted['seed']}; {hardware()}; {seconds:.0f} s."),
        shares=labelled.shares_of(layer),
        metric=labelled.metric,
        predicted=labelled.predicted if what == "retain" else (),
    )
    report.write(output / WRITTEN[1], told, usage(output, deployment) if deployment else "")
    deploy.remove(output)  # An earlier advice may have had an answer where this one has none.
    say(report.headline(told))
    for line in report.explanation(told):
        say(f"  {line}")
    if deployment is not None and row is not None:
        chosen = options.loc[row]
        promised = {
            "recall@10": [float(chosen[name]) for name in ("recall@10", "low@10", "high@10")]
        }
        note = {"layer": layer, "source": case.source, **origin} | (
            {"compared_by": "classifier"} if classifier else {}
        )
        note["fitted_on"] = labelled.rows if what == "retain" else found.fitted
        note["promised"] = {**promised, "corpus": found.corpus, "queries": found.queries}
        written = deploy.write(output, deployment, **note)
        say(f"the map: {', '.join(str(path) for path in written)}")
        if origin:
            say(
                f"encoder and map as one: repro export --reducer {quote(str(output))} "
                "--output NEW_FOLDER"
            )
    say(f"report: {output / WRITTEN[1]} ({seconds:.0f} s)")


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
