"""The verb `advise`: how few dimensions do these embeddings need?"""

import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from repro.terminal import complain, say
from repro.types import InputError

if TYPE_CHECKING:
    import pandas as pd

    from repro.experiments.advise import Advice


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
    split: str | None = None,
    source: Literal["local", "hub", "microworld"] | None = None,
    output: Path = Path("advice"),
    seed: int = 0,
) -> int:
    """Say how few dimensions keep what your embeddings are used for; write a report and the fitted reducer.

    With graded pairs, labels or relevant documents the answer is measured, with a lower bound; without them it is
    predicted from the spectrum and the neighbours that stay, and how far off such predictions were is said.

    Args:
        embeddings: `.npy` matrix, one row per text; or give --encoder and --texts.
        encoder: name, folder or hub id of an encoder, or a baseline such as glove.
        texts: dataset name (`repro data list`) or a file of your own; its scores, labels or qrels are used.
        pairs: with --embeddings: TSV with columns row1, row2, score; rows count from 0.
        labels: with --embeddings: text file with one label per row.
        queries: with --embeddings, which are then the documents: `.npy` matrix of queries.
        qrels: with --queries: TSV with columns query, document, relevance; rows count from 0.
        fit_on: fit reducers on other rows than those judged: `.npy` matrix, or with --encoder a dataset or a file.
        retain: share of the full-size score to keep.
        reducers: ways to shorten that are tried.
        dims: sizes that are tried; by default about three to each halving.
        layers: with --encoder: also consider stopping at these layers.
        split: of the dataset.
        source: where the dataset comes from.
        output: folder for report.html, candidates.parquet and the reducer.
        seed: of resamples, folds and random projections.
    """
    from repro.cli_reduce import read_matrix
    from repro.experiments.advise import advise as find
    from repro.experiments.advise.inputs import from_encoder, from_matrix

    started = time.perf_counter()
    if output.exists() and not output.is_dir():
        raise InputError(f"the output {output} is a file: expected a folder, which is made if need be")
    origin: dict[str, str] = {}
    if (embeddings is None) == (encoder is None):
        raise InputError("give either --embeddings X.npy, or --encoder NAME with --texts FILE")
    if embeddings is not None:
        refused = {"texts": texts, "layers": layers, "split": split, "source": source}
        _refuse([name for name, value in refused.items() if value], "--encoder")
        asked = None if queries is None else read_matrix(queries)
        others = None if fit_on is None else read_matrix(Path(fit_on))
        case = from_matrix(
            read_matrix(embeddings), pairs=pairs, labels=labels, queries=asked, qrels=qrels, fit_on=others,
            name=str(embeddings),
        )  # fmt: skip
    else:
        if texts is None:
            raise InputError("--encoder needs --texts: a dataset name or a file with one text per line")
        given = {"pairs": pairs, "labels": labels, "queries": queries, "qrels": qrels}
        _refuse([name for name, value in given.items() if value], "--embeddings")
        from repro.data import default_source
        from repro.experiments.systems import system_named
        from repro.models import SentenceEncoder

        assert encoder is not None
        judged: dict[str, Any] = {"layers": layers, "split": split, "source": source, "fit_on": fit_on}
        system = system_named(encoder, source=source or default_source())
        if system is not None:
            case = from_encoder(system.encoder(), texts, name=system.line, **judged)
        else:
            network = SentenceEncoder.load(encoder)
            case = from_encoder(network, texts, **judged)
            named = str(Path(encoder).resolve()) if Path(encoder).is_dir() else encoder
            origin = {"encoder": named, "pooling": network.pooling}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        advice = find(
            case.versions, fit_rows=case.fit_rows, evidence=case.evidence, retain=retain, reducers=reducers,
            dims=dims or None, seed=seed,
        )  # fmt: skip
    for warning in caught:
        complain(f"warning: {warning.message}")
    _tell(advice, case.source, origin, output, time.perf_counter() - started)
    return 0


def _refuse(names: list[str], owner: str) -> None:
    if names:
        raise InputError(f"--{names[0]} belongs to {owner}, which is not given")


def _tell(advice: "Advice", source: str, origin: dict[str, str], output: Path, seconds: float) -> None:
    """Print the answer, and write the report, the rows and the reducer."""
    from repro.experiments.advise import savings
    from repro.experiments.advise.words import candidate_table, explanation, headline, report_table, saving_table
    from repro.models.export import write_linear
    from repro.reducers.linear_form import linear_form
    from repro.reporting.advice import advice_page, draw_advice
    from repro.rows import hardware
    from repro.store import replacing

    output.mkdir(parents=True, exist_ok=True)
    frame = candidate_table(advice)
    tables: dict[str, pd.DataFrame] = {}
    if advice.answer is not None:
        saved = saving_table(savings(advice.full_dim, advice.answer.dim))
        tables["What it saves: memory counted; seconds of one core for an exact search, timed here and scaled"] = saved
    tables["Every size that was tried"] = report_table(advice)
    lines = explanation(advice)
    answer = headline(advice)
    page = advice_page(
        title=f"How many dimensions does {source} need?", answer=answer, paragraphs=lines,
        figure=draw_advice(frame, retain=advice.retain, labelled=advice.metric is not None), tables=tables,
        footer=f"live; {advice.rows:,} rows; {hardware()}; {seconds:.0f} s",
    )  # fmt: skip
    with replacing(output / "report.html") as partial:
        partial.write_text(page, encoding="utf-8")
    with replacing(output / "candidates.parquet") as partial:
        frame.to_parquet(partial, index=False)
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
            **origin,
        }
        written = write_linear(output, form.matrix, form.bias, **note)
        say(saved.to_string(index=False))
        say(f"the reducer, {note['reducer']}: {', '.join(str(path) for path in written)}")
        if origin:
            say(f"encoder and reducer as one: repro export --reducer {output} --output NEW_FOLDER")
    say(f"report: {output / 'report.html'} ({seconds:.0f} s)")
