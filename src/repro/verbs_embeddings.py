"""The verbs of `repro` that read texts with an encoder: `encode` keeps its embeddings, `evaluate`
judges them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from repro.settings import Pooling
from repro.stamps import first_stamps, stamps_of, unchanged
from repro.terminal import say
from repro.types import DataSource, InputError, check_dim
from repro.verb_outputs import refuse_others, replacing_own
from repro.writing import writable_file, writable_folder

BLOCK, CHARACTERS = 2**15, 2**25
"""Texts that `encode` holds at once, and their characters, whichever is reached first."""
quiet_default = tyro.conf.arg(help_behavior_hint="")


@dataclass(frozen=True)
class Reading:
    """How token states become embeddings."""

    pooling: Annotated[Pooling | None, quiet_default] = None
    """Token states to sentence state; by default the encoder's own."""
    bidirectional: Annotated[tyro.conf.FlagConversionOff[bool | None], quiet_default] = None
    """Let the tokens of a decoder see those after them; by default as the encoder was trained."""
    final_norm: Annotated[Literal["last", "all", "none"] | None, quiet_default] = None
    """Which states pass a decoder's final norm; by default as the encoder was trained, else the
    last.
    """
    prompt: Annotated[str | None, quiet_default] = None
    """Put before every text: a name among the encoder's prompts, or the text itself; by default the
    encoder's own.
    """
    device: Annotated[str | None, quiet_default] = None
    """Where it computes, such as cpu, cuda:0 or mps; by default CUDA if there is such, else cpu."""


ReadingOptions = Annotated[Reading, tyro.conf.arg(name="")]


@dataclass(frozen=True)
class Encoding:
    """Which texts an encoder reads, and what of its output is kept.

    Args:
        encoder: name, folder or hub id; or a baseline such as glove, sif or sbert.
        texts: file with one text per line, a table with a column text (TSV, CSV, JSON lines,
            parquet), `-` for a pipe, a folder that `datasets` saved to disk, or a dataset name.
        output: the `.npy` file.
        readout: pooler output z or encoder state h.
        layer: read this layer (0 is the embedding output) and run no further; by default the last.
        dim: keep the first so many columns; by default all.
        reading: how token states become embeddings.
        normalize: divide every row by its length, after cutting to `dim`.
        columns: of a table whose columns go by other names: NAME=COLUMN, such as text=Body.
    """

    encoder: str
    texts: Path
    output: Path
    readout: Literal["pooler", "encoder"] = "pooler"
    layer: int | None = None
    dim: int | None = None
    reading: ReadingOptions = Reading()
    normalize: bool = False
    columns: tuple[str, ...] = ()


def encode(options: Encoding) -> int:
    """A float32 `.npy` matrix of embeddings, one row for each line of a text file, which may be
    larger than memory.

    A file is read twice, to check and count its lines and then block by block; equal texts of a
    block are encoded once.

    The prompt and truncate_dim of a published folder hold. Half precision is computed in float32.
    """
    import numpy as np

    from repro import data
    from repro.terminal import progress_bar
    from repro.types import unit_rows

    texts, dim = options.texts, options.dim
    writable_file(options.output, texts)
    refuse_others(options.output, ".npy")
    files = _files_read(texts, data.default_source())
    before = [first_stamps(path) for path in files]
    lines = data.stream(str(texts), data.column_names(options.columns))
    if not (count := sum(1 for _ in lines())):
        raise InputError(f"{texts} is empty: expected at least one text")
    network, line = encoder_named(options.encoder, options.reading, data.default_source())
    read = {"readout": options.readout, "layer": options.layer}
    if line:
        read["readout"] = "encoder"  # As the tables read a baseline, whatever it was trained with
    else:
        pooled = options.readout == "pooler" and options.layer in (None, network.n_layers)
        full = network.dim if pooled else network.hidden_dim
        check_dim(full if dim is None else dim, limit=full)  # Before hours of work
    whole, done = count <= BLOCK, 0
    bar = progress_bar(total=count, desc="encoding", show=not whole)
    with bar, replacing_own(options.output) as partial, partial.open("wb") as file:
        for block in in_blocks(lines()):
            try:
                X = network.encode(block, **read, progress=whole)
            except InputError as error:
                since = f" (texts are numbered from text {done} of {texts} on)" if done else ""
                raise InputError(f"{error}{since}") from error
            X = X if dim is None else X[:, : check_dim(dim, limit=X.shape[1])]
            if not file.tell():
                header = {"descr": "<f4", "fortran_order": False, "shape": (count, X.shape[1])}
                np.lib.format.write_array_header_1_0(file, header)
            file.write(np.ascontiguousarray(unit_rows(X) if options.normalize else X, "<f4").data)
            bar.update(len(block))
            done += len(block)
        if done != count or [stamps_of(path) for path in files] != before:
            changed = f"has changed while it was read, from {count:,} texts to {done:,}"
            raise InputError(f"{texts} {changed}: give it again")
    said = line or f"{network.texts_truncated} texts were cut"
    say(f"{count} x {X.shape[1]} float32 -> {options.output}; {said}")
    return 0


def _files_read(name: Path | str, source: str, text: str = "senteval") -> list[Path]:
    """The files from which a dataset of this name is read, or a folder of them; none of one that
    lies nowhere here.
    """
    from repro import data
    from repro.data.local import local_path

    if str(name) not in data.DATASETS:
        return [Path(name).expanduser()]
    spec = data.get_spec(str(name))
    if source != "local":
        return []
    path = local_path(spec, text)
    return [path.parent] if spec.kind == "retrieval" else [path]


def encoder_named(name: str, reading: Reading, source: str) -> tuple[Any, str]:
    """A network, read as is asked for; or a baseline, made whole from a source, and its line."""
    from repro.models import SentenceEncoder
    from repro.runs.encoders import as_it_is
    from rivals import system_named

    system = system_named(name, source=source)
    if system is None:
        return as_it_is(name, partial(SentenceEncoder.load, name, **asdict(reading)))(), ""
    for option, value in asdict(reading).items():
        if value is not None:
            raise InputError(f"{option} is {value}: {name} is made whole; leave it out")
    return system.make(), system.line


def in_blocks(texts: Iterable[str]) -> Iterator[list[str]]:
    """Texts in lists of at most `BLOCK`, or of a few more characters than `CHARACTERS`."""
    block, size = list[str](), 0
    for text in texts:
        block.append(text)
        size += len(text)
        if len(block) == BLOCK or size >= CHARACTERS:
            yield block
            block, size = [], 0
    if block:
        yield block


@dataclass(frozen=True)
class Evaluation:
    """Which encoder is judged, on what and how.

    Args:
        encoder: name, folder or hub id; or a baseline such as glove, sif or sbert.
        data: dataset name (`repro data list`), or a table of your own (TSV, CSV, JSON lines,
            parquet, `-` for a pipe, a folder that `datasets` saved to disk) with columns score,
            sentence1, sentence2 or label, text; or a folder in BEIR's form.
        task: similarity of pairs, a linear probe, or whether queries find their documents.
        dims: prefix sizes; by default the full size.
        layers: read these layers (0 is the embedding output), run no further than the deepest; by
            default the last.
        readout: pooler output z or encoder state h.
        reading: how token states become embeddings.
        split: of similarity and retrieval, by default test.
        text: SentEval's tokenised text or the original (STS).
        aggregate: all pairs in one ranking, or the mean or weighted mean over subsets.
        protocol: classifier of the probe: logistic regression by L-BFGS, or SentEval's own.
        source: where the data comes from; by default local files if REPRO_DATA is set, else the
            microworld.
        seed: of folds and bootstrap.
        rows: also write the rows to this parquet file; by default none.
        mteb: also write the scores to this folder as MTEB's result cache has them, an experiment a
            size and layer; by default not.
        columns: of a table whose columns go by other names: NAME=COLUMN, such as score=Rating
            sentence1=Left.
    """

    encoder: str
    data: str
    task: Literal["sts", "classification", "retrieval"] = "sts"
    dims: Annotated[tuple[int, ...], tyro.conf.arg(aliases=["--dim"])] = ()
    layers: Annotated[tuple[int, ...], tyro.conf.arg(aliases=["--layer"])] = ()
    readout: Literal["pooler", "encoder"] = "pooler"
    reading: ReadingOptions = Reading()
    split: str | None = None
    text: Literal["senteval", "raw"] = "senteval"
    aggregate: Literal["all", "mean", "wmean"] = "all"
    protocol: Literal["logreg", "senteval"] = "logreg"
    source: DataSource | None = None
    seed: int = 0
    rows: Path | None = None
    mteb: Path | None = None
    columns: tuple[str, ...] = ()


def evaluate(options: Evaluation) -> int:
    """The score of an encoder on a dataset with its interval, at several layers and sizes from a
    single pass.
    """
    from repro.data import column_names, default_source
    from repro.runs.evaluate import encoder_rows, load_task, refuse_written, write_mteb

    if options.rows is not None:
        writable_file(options.rows, options.data)
        refuse_others(options.rows, ".parquet")
    if options.mteb is not None:
        writable_folder(options.mteb)
    source = options.source or default_source()
    columns = column_names(options.columns)
    how_loaded = {"split": options.split, "text": options.text, "source": options.source}
    with unchanged(*_files_read(options.data, source, options.text)):
        judged = load_task(options.data, options.task, columns=columns, **how_loaded)
    network, line = encoder_named(options.encoder, options.reading, source)
    # As the tables read a baseline, whatever it was trained with
    how: dict[str, Any] = {"readout": "encoder" if line else options.readout, "line": line}
    for name in ("dims", "layers", "aggregate", "protocol", "seed"):
        how[name] = getattr(options, name)
    if options.mteb is not None:
        how["check"] = partial(refuse_written, folder=options.mteb)
    frame = encoder_rows(network, options.encoder, judged, **how).assign(text=options.text)
    say(
        f"{options.encoder} on {options.data} ({frame['data_source'].iloc[0]}, "
        f"{frame['setting'].iloc[0]}), live, x100:"
    )
    for row in frame.itertuples():
        interval = (
            ""
            if row.ci_low != row.ci_low
            else f"  [{100 * row.ci_low:.2f}, {100 * row.ci_high:.2f}]"
        )
        layer = f"layer {row.layer:>3}  " if options.layers else ""
        say(f"  {layer}dim {row.dim:>5}  {row.metric}  {100 * row.value:.2f}{interval}")
    if options.rows is not None:
        with replacing_own(options.rows) as file:
            frame.to_parquet(file, compression="zstd", index=False)
    if options.mteb is not None:
        split = getattr(judged.judged, "split", "test")
        written = write_mteb(frame, options.mteb, split)
        say(f"{len(written)} MTEB results -> {options.mteb}")
    return 0
