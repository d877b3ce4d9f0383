"""The command `repro advise`: how few dimensions do these embeddings need?"""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from repro.terminal import say
from repro.types import InputError

WRITTEN = ("candidates.parquet", "report.html", "reducer.safetensors", "reducer.json")
"""all that an advice leaves in its folder, if it has an answer"""

if TYPE_CHECKING:
    import pandas as pd

    from dimadvise import Advice


def advise(
    embeddings: Path | None = None,
    encoder: str | None = None,
    texts: str | None = None,
    pairs: Path | None = None,
    labels: Path | None = None,
    queries: Path | None = None,
    qrels: Path | None = None,
    fit_on: str | None = None,
    retain: float = 0.99,
    reducers: tuple[Literal["truncate", "pca", "svd", "grp"], ...] = ("truncate", "pca"),
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

    With graded pairs, labels or relevant documents the answer is measured, and with --fit-on it has a lower bound.

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
        fit_on: fit reducers on other rows than those judged: `.npy` matrix, or with --encoder a dataset or a file; by
            default on those judged, which leaves the answer without a bound.
        retain: share of the full-size score to keep.
        reducers: ways to shorten that are tried.
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
    from dimadvise import advise as find
    from dimadvise.inputs import from_encoder, from_matrix
    from repro.data import column_names
    from repro.paths import read_matrix

    started = time.perf_counter()
    _refuse_foreign(output)
    origin: dict[str, str] = {}
    if (embeddings is None) == (encoder is None):
        raise InputError("give either --embeddings X.npy, or --encoder NAME with --texts FILE")
    if embeddings is not None:
        refused = {"texts": texts, "layers": layers, "split": split, "source": source, "prompt": prompt}
        _refuse([name for name, value in refused.items() if value], "--encoder")
        asked = None if queries is None else read_matrix(queries)
        others = None if fit_on is None else read_matrix(Path(fit_on))
        case = from_matrix(
            read_matrix(embeddings),
            pairs=pairs,
            labels=labels,
            queries=asked,
            qrels=qrels,
            fit_on=others,
            name=str(embeddings),
            columns=column_names(columns),
        )
    else:
        if texts is None:
            raise InputError("--encoder needs --texts: a dataset name or a file with one text per line")
        given = {"pairs": pairs, "labels": labels, "queries": queries, "qrels": qrels}
        _refuse([name for name, value in given.items() if value], "--embeddings")
        from repro.data import default_source
        from repro.models import SentenceEncoder
        from rivals import system_named

        assert encoder is not None
        judged: dict[str, Any] = {"layers": layers, "split": split, "source": source, "fit_on": fit_on}
        judged["columns"] = column_names(columns)
        system = system_named(encoder, source=source or default_source())
        if system is not None:
            if prompt is not None:
                raise InputError(f"prompt is {prompt!r}: {encoder} is made whole; leave it out")
            case = from_encoder(system.encoder(), texts, name=system.line, **judged)
        else:
            network = SentenceEncoder.load(encoder, prompt=prompt)
            case = from_encoder(network, texts, **judged)
            named = str(Path(encoder).resolve()) if Path(encoder).is_dir() else encoder
            origin = {"encoder": named, "pooling": network.pooling, "prompt": network.prompt}
    advice = find(
        case.versions,
        fit_rows=case.fit_rows,
        evidence=case.evidence,
        retain=retain,
        reducers=reducers,
        dims=dims or None,
        seed=seed,
    )
    _tell(advice, case.source, origin, output, time.perf_counter() - started)
    return 0


def _refuse(names: list[str], owner: str) -> None:
    if names:
        raise InputError(f"--{names[0]} belongs to {owner}, which is not given")


def _refuse_foreign(output: Path) -> None:
    """Before hours of work: refuse to write over files of these names that no earlier advice wrote."""
    import pyarrow.parquet

    if output.exists() and not output.is_dir():
        raise InputError(f"the output {output} is a file: expected a folder, which is made if need be")
    there = [name for name in WRITTEN if (output / name).exists()]
    if not there:
        return
    try:
        ours = {"reducer", "dim", "neighbours"} <= set(pyarrow.parquet.read_schema(output / WRITTEN[0]).names)
    except (OSError, ValueError):
        ours = False
    if not ours:
        raise InputError(f"{output / there[0]} was written by no advice: give another --output, nothing is overwritten")


def _tell(advice: "Advice", source: str, origin: dict[str, str], output: Path, seconds: float) -> None:
    """Print the answer, and write the report, the rows and the reducer."""
    from dimadvise import savings
    from dimadvise.report import advice_page, draw_advice
    from dimadvise.words import candidate_table, explanation, headline, report_table, saving_table
    from repro.paths import replacing
    from repro.reducers.export import linear_form, write_linear
    from repro.rows import hardware

    frame = candidate_table(advice)
    tables: dict[str, pd.DataFrame] = {}
    if advice.answer is not None:
        saved = saving_table(savings(advice.full_dim, advice.answer.dim))
        tables["What it saves: memory counted; seconds of one core for an exact search, timed here and scaled"] = saved
    tables["Every size that was tried"] = report_table(advice)
    lines = explanation(advice)
    answer = headline(advice)
    page = advice_page(
        title=f"How many dimensions does {source} need?",
        answer=answer,
        paragraphs=lines,
        figure=draw_advice(frame, retain=advice.retain, labelled=advice.metric is not None),
        tables=tables,
        footer=f"live; {advice.rows:,} rows; {hardware()}; {seconds:.0f} s",
    )
    with replacing(output / WRITTEN[0]) as partial:  # first, as the sign of a folder of ours
        frame.to_parquet(partial, index=False)
    for name in WRITTEN[1:]:  # an earlier advice may have had an answer where this one has none
        (output / name).unlink(missing_ok=True)
    with replacing(output / WRITTEN[1]) as partial:
        partial.write_text(page, encoding="utf-8")
    say(answer)
    for line in lines:
        say(f"  {line}")
    if advice.answer is not None and advice.reducer is not None:
        form = linear_form(advice.reducer, advice.answer.dim)
        note = {
            "reducer": advice.answer.reducer,
            "layer": advice.answer.layer,
            "fitted_on": advice.rows,
            "source": source,
            "compared_by": "cosine" if advice.unit else "classifier",
            "unit_rows": advice.unit,
            **origin,
        }
        if advice.unit:
            note["formula"] = "y = (x / |x|) @ matrix + bias"
        written = write_linear(output, form.matrix, form.bias, **note)
        say(saved.to_string(index=False))
        say(f"the reducer, {note['reducer']}: {', '.join(str(path) for path in written)}")
        if origin:
            say(f"encoder and reducer as one: repro export --reducer {output} --output NEW_FOLDER")
    say(f"report: {output / WRITTEN[1]} ({seconds:.0f} s)")
