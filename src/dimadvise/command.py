"""The command `repro advise`: how few dimensions do these embeddings need?"""

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from repro.paths import replacing
from repro.terminal import say
from repro.types import InputError

WRITTEN = ("candidates.parquet", "report.html", "reducer.safetensors", "reducer.json")
"""all that an advice leaves in its folder, if it has an answer"""

if TYPE_CHECKING:
    from dimadvise.advice import Advice


def advise(
    embeddings: Path | None = None,
    encoder: str | None = None,
    texts: str | None = None,
    pairs: Path | None = None,
    labels: Path | None = None,
    queries: Path | None = None,
    qrels: Path | None = None,
    retain: float = 0.99,
    methods: tuple[Literal["truncate", "pca", "svd", "random"], ...] = ("truncate", "pca"),
    dims: tuple[int, ...] = (),
    layers: tuple[int, ...] = (),
    prompt: str | None = None,
    split: str | None = None,
    source: Literal["local", "hub", "microworld"] | None = None,
    output: Path = Path("advice"),
    seed: int = 0,
    columns: tuple[str, ...] = (),
) -> int:
    """The fewest dimensions that keep what your embeddings are used for, with a report and the fitted reducer.

    With graded pairs, labels or relevant documents the answer is measured, and has a lower bound.

    Without them it is a prediction, and how far off such predictions were is said.

    Args:
        embeddings: `.npy` matrix, one row per text; by default --encoder and --texts are given.
        encoder: with --texts: name, folder or hub id of an encoder, or a baseline such as glove.
        texts: with --encoder: dataset name (`repro data list`) or a file of your own (`-` for a pipe); its scores,
            labels or qrels are used.
        pairs: with --embeddings: table with columns row1, row2, score; rows count from 0.
        labels: with --embeddings: text file with one label per row, or a table with a column label.
        queries: with --embeddings, which are then the documents: `.npy` matrix of queries.
        qrels: with --queries: table with columns query, document, relevance; rows count from 0.
        retain: share of the full-size score to keep.
        methods: ways to shorten that are tried.
        dims: sizes that are tried; by default about three to each halving.
        layers: with --encoder: also consider stopping at these layers; by default the last alone.
        prompt: with --encoder: put before every text: a name among the encoder's prompts, or the text itself; by
            default the encoder's own, if it has one.
        split: of the dataset; by default its test split, or what it has.
        source: where the dataset comes from; by default local files if REPRO_DATA is set, else the microworld.
        output: folder for report.html, candidates.parquet and the reducer.
        seed: of resamples, folds and random projections.
        columns: of a table whose columns go by other names: NAME=COLUMN, such as score=Rating. Tables are TSV, CSV,
            JSON lines or parquet.
    """
    from dimadvise.advice import advise as find
    from dimadvise.inputs import from_encoder, from_matrix
    from dimadvise.vectors import open_vectors
    from repro.data import column_names, default_source

    started = time.perf_counter()
    _refuse_foreign(output)
    origin: dict[str, str] = {}
    given: dict[str, Any]
    named = column_names(columns)
    if (embeddings is None) == (encoder is None):
        raise InputError("give either --embeddings X.npy, or --encoder NAME with --texts FILE")
    if embeddings is not None:
        _refuse("--encoder", texts=texts, layers=layers, split=split, source=source, prompt=prompt)
        asked = None if queries is None else open_vectors(queries)
        given = {"pairs": pairs, "labels": labels, "qrels": qrels, "columns": named}
        case = from_matrix(open_vectors(embeddings), queries=asked, name=str(embeddings), **given)
    else:
        if texts is None:
            raise InputError("--encoder needs --texts: a dataset name or a file with one text per line")
        _refuse("--embeddings", pairs=pairs, labels=labels, queries=queries, qrels=qrels)
        from repro.models import SentenceEncoder
        from rivals import system_named

        assert encoder is not None
        given = {"layers": layers, "split": split, "source": source, "columns": named}
        system = system_named(encoder, source=source or default_source())
        if system is not None:
            if prompt is not None:
                raise InputError(f"prompt is {prompt!r}: {encoder} is made whole; leave it out")
            case = from_encoder(system.encoder(), texts, name=system.line, **given)
        else:
            network = SentenceEncoder.load(encoder, prompt=prompt)
            case = from_encoder(network, texts, **given)
            place = str(Path(encoder).resolve()) if Path(encoder).is_dir() else encoder
            origin = {"encoder": place, "pooling": network.pooling, "prompt": network.prompt}
    wanted: dict[str, Any] = {"retain": retain, "methods": methods, "dims": dims or None, "seed": seed}
    advice = find(case.versions, evidence=case.evidence, **wanted)
    _tell(advice, case.source, origin, output, time.perf_counter() - started)
    return 0


def _refuse(owner: str, **options: Any) -> None:
    for name, value in options.items():
        if value:
            raise InputError(f"--{name} belongs to {owner}, which is not given")


def _refuse_foreign(output: Path) -> None:
    """Before hours of work: refuse to write over files of these names that no earlier advice wrote."""
    import pyarrow.parquet

    if output.exists() and not output.is_dir():
        raise InputError(f"the output {output} is a file: expected a folder, which is made if need be")
    there = [name for name in WRITTEN if (output / name).exists()]
    with suppress(OSError, ValueError):
        if not there or {"method", "dim", "neighbours"} <= set(pyarrow.parquet.read_schema(output / WRITTEN[0]).names):
            return
    raise InputError(f"{output / there[0]} was written by no advice: give another --output, nothing is overwritten")


def _tell(advice: "Advice", source: str, origin: dict[str, str], output: Path, seconds: float) -> None:
    """Print the answer, and write the report, the rows and the reducer."""
    from dimadvise import report
    from repro.reducers.export import write_linear
    from repro.rows import hardware

    chosen = advice.answer
    tables: dict[str, Any] = {}
    if chosen is not None:
        saved = report.saving_table(report.savings(advice.full_dim, chosen.dim))
        tables["What it saves: memory counted; seconds of one core for an exact search, timed here and scaled"] = saved
    tables["Every size that was tried"] = report.report_table(advice)
    footer = f"live; {advice.rows:,} rows; {hardware()}; {seconds:.0f} s"
    page = report.advice_page(f"How many dimensions does {source} need?", advice, tables, footer)
    with replacing(output / WRITTEN[0]) as partial:  # first, as the sign of a folder of ours
        report.candidate_table(advice).to_parquet(partial, index=False)
    for name in WRITTEN[1:]:  # an earlier advice may have had an answer where this one has none
        (output / name).unlink(missing_ok=True)
    with replacing(output / WRITTEN[1]) as partial:
        partial.write_text(page, encoding="utf-8")
    say(report.headline(advice))
    for line in report.explanation(advice):
        say(f"  {line}")
    if chosen is not None and advice.transform is not None:
        matrix, bias = advice.transform.matrix, advice.transform.bias
        note = {"reducer": chosen.method, "layer": chosen.layer, "fitted_on": advice.rows, "source": source}
        note |= {"compared_by": "cosine" if advice.unit else "classifier", "unit_rows": advice.unit, **origin}
        if advice.unit:
            note["formula"] = "y = (x / |x|) @ matrix + bias"
        written = write_linear(output, matrix, bias, **note)
        say(saved.to_string(index=False))
        say(f"the reducer, {chosen.method}: {', '.join(str(path) for path in written)}")
        if origin:
            say(f"encoder and reducer as one: repro export --reducer {output} --output NEW_FOLDER")
    say(f"report: {output / WRITTEN[1]} ({seconds:.0f} s)")
