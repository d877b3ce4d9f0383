"""The verbs of `repro` on embeddings: `encode` texts, `evaluate` or `export` an encoder, `reduce` a
matrix.
"""

import ast
import contextlib
import inspect
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from repro.paths import (
    is_out_of_memory,
    read_matrix,
    refuse_other_form,
    replacing,
    writable_file,
    writable_folder,
    write_matrix,
)
from repro.settings import Pooling
from repro.terminal import Menu, complain, say
from repro.types import Array, DataSource, InputError, check_dim

Parameters = Annotated[tyro.conf.UseAppendAction[list[str]], tyro.conf.arg(metavar="KEY=VALUE")]
OPTIONS = {"name": "--method", "n_components": "--dim", "seed": "--seed"}  # of every reducer
BLOCK, CHARACTERS = 2**15, 2**25
"""Texts that `encode` holds at once, and their characters, whichever is reached first."""
FEWEST, DOCUMENTS, QUERIES = 20, 5000, 500
"""Rows from which neighbours tell whether columns were trained to be cut, and the most that are
searched and asked.
"""
WORDS = {"true": True, "false": False, "none": None}
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


def encode(asked: Encoding) -> int:
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

    texts, dim = asked.texts, asked.dim
    writable_file(asked.output, texts)
    _refuse_others(asked.output, ".npy", _is_embeddings)
    lines = data.stream(str(texts), data.column_names(asked.columns))
    before = _stamp(texts)
    if not (count := sum(1 for _ in lines())):
        raise InputError(f"{texts} is empty: expected at least one text")
    network, line = encoder_named(asked.encoder, asked.reading, data.default_source())
    read = {"readout": asked.readout, "layer": asked.layer}
    if line:
        read["readout"] = "encoder"  # as the tables read a baseline, whatever it was trained with
    else:
        pooled = asked.readout == "pooler" and asked.layer in (None, network.n_layers)
        full = network.dim if pooled else network.hidden_dim
        check_dim(full if dim is None else dim, limit=full)  # before hours of work
    whole, done = count <= BLOCK, 0
    bar = progress_bar(total=count, desc="encoding", show=not whole)
    with bar, replacing(asked.output) as partial, partial.open("wb") as file:
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
            file.write(np.ascontiguousarray(unit_rows(X) if asked.normalize else X, "<f4").data)
            bar.update(len(block))
            done += len(block)
        if done != count or _stamp(texts) != before:
            changed = f"has changed while it was read, from {count:,} texts to {done:,}"
            raise InputError(f"{texts} {changed}: give it again")
    said = line or f"{network.texts_truncated} texts were cut"
    say(f"{count} x {X.shape[1]} float32 -> {asked.output}; {said}")
    return 0


def _stamp(texts: Path) -> tuple[int, int]:
    """Bytes and time of writing of a file; nothing of what is none, such as a dataset's name."""
    if not texts.is_file():
        return 0, 0
    about = texts.stat()
    return about.st_size, about.st_mtime_ns


def encoder_named(name: str, reading: Reading, source: str) -> tuple[Any, str]:
    """A network, read as is asked for; or a baseline, made whole from a source, and its line."""
    from repro.models import SentenceEncoder
    from rivals import system_named

    system = system_named(name, source=source)
    if system is None:
        return SentenceEncoder.load(name, **asdict(reading)), ""
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


def evaluate(asked: Evaluation) -> int:
    """The score of an encoder on a dataset with its interval, at several layers and sizes from a
    single pass.
    """
    from repro.data import column_names, default_source
    from repro.runs.evaluate import encoder_rows, load_task, refuse_written, write_mteb

    if asked.rows is not None:
        writable_file(asked.rows, asked.data)
        _refuse_others(asked.rows, ".parquet", _is_rows)
    if asked.mteb is not None:
        writable_folder(asked.mteb)
    judged = load_task(
        asked.data,
        asked.task,
        split=asked.split,
        text=asked.text,
        source=asked.source,
        columns=column_names(asked.columns),
    )
    network, line = encoder_named(asked.encoder, asked.reading, asked.source or default_source())
    # As the tables read a baseline, whatever it was trained with
    how: dict[str, Any] = {"readout": "encoder" if line else asked.readout, "line": line}
    for name in ("dims", "layers", "aggregate", "protocol", "seed"):
        how[name] = getattr(asked, name)
    if asked.mteb is not None:
        how["check"] = partial(refuse_written, folder=asked.mteb)
    frame = encoder_rows(network, asked.encoder, judged, **how).assign(text=asked.text)
    say(
        f"{asked.encoder} on {asked.data} ({frame['data_source'].iloc[0]}, "
        f"{frame['setting'].iloc[0]}), live, x100:"
    )
    for row in frame.itertuples():
        interval = (
            ""
            if row.ci_low != row.ci_low
            else f"  [{100 * row.ci_low:.2f}, {100 * row.ci_high:.2f}]"
        )
        layer = f"layer {row.layer:>3}  " if asked.layers else ""
        say(f"  {layer}dim {row.dim:>5}  {row.metric}  {100 * row.value:.2f}{interval}")
    if asked.rows is not None:
        with replacing(asked.rows) as file:
            frame.to_parquet(file, compression="zstd", index=False)
    if asked.mteb is not None:
        split = getattr(judged.judged, "split", "test")
        written = write_mteb(frame, asked.mteb, split)
        say(f"{len(written)} MTEB results -> {asked.mteb}")
    return 0


def reduce(
    method: Annotated[str, Menu("repro.reducers", "REDUCERS")],
    dim: int,
    input: Path,
    output: Path,
    param: Parameters,
    fit_on: tuple[Path, ...] = (),
    seed: int = 0,
) -> int:
    """A float32 `.npy` matrix with fewer columns, from a `.npy` matrix of embeddings.

    Args:
        method: the reducer.
        dim: columns of the output.
        input: `.npy` matrix of embeddings, one row per text.
        output: the `.npy` file.
        param: a parameter of the method, such as n_neighbors=30; several times if needed.
        fit_on: `.npy` matrices to fit on, stacked; by default the input itself (transductive).
        seed: of methods that draw at random.
    """
    import numpy as np

    from repro.reducers import Truncate, make_reducer

    writable_file(output, input, *fit_on)
    _refuse_others(output, ".npy", _is_embeddings)
    reducer = make_reducer(method, dim, seed=seed, **parameters(method, param))
    X = read_matrix(input)
    fitted = [read_matrix(path) for path in fit_on]
    for path, matrix in zip(fit_on, fitted, strict=True):
        if matrix.shape[1] != X.shape[1]:
            raise InputError(
                f"{path} has {matrix.shape[1]} columns, {input} has {X.shape[1]}: expected the same"
            )
    rows = np.concatenate(fitted) if fitted else X
    clock = [time.perf_counter()]
    with options_in_errors():
        if fitted:
            reducer.fit(rows)
            clock.append(time.perf_counter())
        Y = reducer.transform(X) if fitted else reducer.fit_transform(X)
    clock.append(time.perf_counter())
    said = ", reduced ".join(f"in {end - start:.2f} s" for start, end in pairwise(clock))
    write_matrix(output, Y)
    said += variance_kept(method, reducer)
    source = ", ".join(map(str, fit_on)) or "the input itself"
    say(
        f"{method} of {len(X):,} rows, {X.shape[1]} -> {Y.shape[1]} dims, fitted "
        f"on {len(rows):,} rows ({source}) "
        f"{said} -> {output}"
    )
    if isinstance(reducer, Truncate) and dim < X.shape[1] and len(X) >= FEWEST:
        say(how_cutting_does(X))
    return 0


@contextlib.contextmanager
def options_in_errors() -> Iterator[None]:
    """Let errors of a reducer, which has a name by scikit-learn's contract, name the option."""
    try:
        yield
    except InputError as error:
        said = re.sub(r"\bn_components\b", OPTIONS["n_components"], str(error))
        raise InputError(said) from error


def variance_kept(method: str, reducer: Any) -> str:
    """How much variance a fitted reducer keeps; empty where that means nothing."""
    shares = getattr(reducer, "explained_variance_ratio_", None)
    if shares is None:
        return ""
    kept = float(shares.sum())
    if kept < 0:  # of an autoencoder that was trained on few rows or briefly
        return ", none of their variance kept: their mean is nearer to them than what is rebuilt"
    of_kernel = "of the variance in the kernel's feature space"
    return f", {100 * kept:.2f} % {of_kernel if method == 'kpca' else 'of their variance'} kept"


def how_cutting_does(X: Array) -> str:
    """Whether the rows of X (n, D) look trained to be cut, by the neighbours that the first columns
    find in a sample.

    The share of variance that is kept does not tell: it is high wherever the first columns happen
    to vary most.
    """
    import numpy as np

    from dimadvise.honesty import Sample, nested_or_not
    from repro.seeding import make_rng

    order = make_rng(0, "rows to cut").permutation(len(X))
    documents = X[order[:DOCUMENTS]].astype(np.float32)
    queries = documents[:QUERIES]
    return nested_or_not(Sample(documents, queries, np.arange(len(queries))), "cosine")


def parameters(method: str, pairs: list[str]) -> dict[str, Any]:
    """Read KEY=VALUE pairs as parameters of the reducer, each of its default's kind; the reducer
    shows its progress.
    """
    from repro.reducers import REDUCERS

    signature = inspect.signature(REDUCERS[method]).parameters
    values: dict[str, Any] = {"progress": True} if "progress" in signature else {}
    for pair in pairs:
        key, sign, text = pair.partition("=")
        if not sign:
            raise InputError(f"--param {pair!r}: expected KEY=VALUE, such as n_neighbors=30")
        if key in OPTIONS:
            raise InputError(f"--param {pair}: expected the option {OPTIONS[key]} in its place")
        if sum(other.startswith(f"{key}=") for other in pairs) > 1:
            raise InputError(f"--param {key} is given twice: expected one value")
        value = WORDS.get(text.lower(), text)
        with contextlib.suppress(ValueError, SyntaxError):  # a word stands for itself
            value = ast.literal_eval(text)
        values[key] = _like(key, value, signature[key].default) if key in signature else value
    return values


def _like(key: str, value: Any, default: Any) -> Any:
    """The value if it is of the default's kind; whole numbers pass for others, and one number for a
    tuple.
    """
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(default, tuple) and isinstance(value, int):
        return (value,)
    if default is not None and type(value) is not type(default):
        raise InputError(
            f"{key} is {value!r}: expected {type(default).__name__}, such as {default!r}"
        )
    return value


def export(
    output: Path,
    encoder: str | None = None,
    layer: int | None = None,
    dim: int | None = None,
    reducer: Path | None = None,
    pooling: Literal["cls", "mean", "last"] | None = None,
    final_norm: Literal["last", "all", "none"] | None = None,
    normalize: bool = False,
) -> int:
    """A folder that `SentenceTransformer` loads: an encoder as it is, cut to a layer, or followed
    by a reducer.

    Args:
        output: a new folder.
        encoder: name, hub id or folder, such as `repro train --output` wrote; by default that of
            --reducer.
        layer: leave out the blocks above this one, and the pooler; by default the layer of
            --reducer, else the last.
        dim: keep the first so many numbers; by default all.
        reducer: folder of a reducer that `repro advise` wrote, fitted on this encoder's embeddings;
            by default none.
        pooling: token states to sentence state; by default the encoder's own.
        final_norm: which states pass a decoder's final norm; by default as the encoder was trained,
            else the last. What is cut to a layer passes it always: of a decoder, --layer needs all.
        normalize: end with rows of length 1, as after a --reducer that was judged by cosines in any
            case.
    """
    from dimadvise.deploy import read_linear, read_note
    from repro.models import SentenceEncoder
    from repro.models.folders import export_folder, refuse_full

    refuse_full(output)
    map_, note = (None, {}) if reducer is None else (read_linear(reducer), read_note(reducer))
    name = note.get("encoder") if encoder is None else encoder
    if name is None:
        folder = "the folder that `repro advise --encoder` wrote"
        raise InputError(f"give --encoder, or with --reducer {folder}")
    if final_norm is not None and "encoder" in note:
        fitted_on = "the reducer was fitted on the encoder as it is"
        raise InputError(f"--final-norm {final_norm}: {fitted_on}; leave it out")
    seen: dict[str, Any] = {"pooling": pooling, "final_norm": final_norm}
    network = SentenceEncoder.load(name, prompt=note.get("prompt"), **seen)
    normalize |= note.get("compared_by") == "cosine"
    if "encoder" in note:
        layer = fitted_layer(network, note, layer)
        if Path(name).name != Path(note["encoder"]).name:
            fitted = f"the reducer was fitted on {note['encoder']}"
            complain(f"warning: {fitted}, and is put behind {name}")
    ending: dict[str, Any] = {
        "reducer": map_,
        "unit_rows": bool(note.get("unit_rows")),
        "normalize": normalize,
    }
    export_folder(network, output, layer=layer, dim=dim, **ending)
    megabytes = sum(path.stat().st_size for path in output.rglob("*") if path.is_file()) / 1e6
    layers = f"{network.n_layers} layers, {megabytes:.1f} MB"
    say(f"{output}: {layers}; SentenceTransformer({str(output)!r}) loads it")
    return 0


def fitted_layer(network: Any, note: Mapping[str, Any], layer: int | None) -> int | None:
    """The layer that a reducer was fitted on, by its note; another one, or another pooling, is
    refused.
    """
    if network.pooling != note.get("pooling", network.pooling):
        fitted = f"the reducer was fitted on {note['pooling']} pooling"
        raise InputError(f"--pooling {network.pooling}: {fitted}; leave --pooling out")
    number = network.backbone.layer_index(note.get("layer"))
    asked = number if layer is None else network.backbone.layer_index(layer)
    if asked != number:
        fitted = f"the reducer was fitted on layer {number} of {network.n_layers}"
        way_out = "leave --layer out, or fit a reducer on that one"
        raise InputError(f"--layer {asked}: {fitted}; {way_out}")
    return note.get("layer")


def _refuse_others(path: Path, form: str, is_ours: Callable[[Path], bool]) -> None:
    """Refuse to write over a file unless it is empty, or holds what such a verb writes; and a name
    that promises another form.
    """
    refuse_other_form(path, form)
    if path.is_file() and path.stat().st_size and not is_ours(path):
        raise InputError(f"{path} is there and holds something else: give another name, or move it")


def _is_embeddings(path: Path) -> bool:
    """Whether a file holds a float32 matrix as `.npy`."""
    import numpy as np

    try:
        X = np.lib.format.open_memmap(path, mode="r")
    except Exception as error:  # of a header, which is parsed as Python
        if is_out_of_memory(error):
            raise
        return False
    return bool(X.ndim == 2 and X.dtype == np.float32)


def _is_rows(path: Path) -> bool:
    """Whether a file holds rows of `evaluate` alone: recorded ones tell of other experiments."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from repro.rows import COLUMNS, SCHEMA
    from repro.runs.evaluate import EXPERIMENT

    try:
        names = pq.read_schema(path).names
        if not set(SCHEMA) <= set(names) <= set(COLUMNS):
            return False
        experiments = pq.read_table(path, columns=["experiment"])["experiment"].unique()
    except (pa.ArrowException, OSError) as error:
        if is_out_of_memory(error):
            raise
        return False
    return bool(experiments.to_pylist() == [EXPERIMENT])
