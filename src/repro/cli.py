"""The command `repro`: every verb is a function here, its help is the docstring, its options the arguments.

A user's mistake ends with exit code 2 and one message; heavy libraries load only in the verb that needs them.
"""

import logging
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from repro.types import InputError

Pairs = Annotated[
    tyro.conf.UseAppendAction[list[tuple[str, str]]],
    tyro.conf.arg(aliases=["-p"], metavar="NAME VALUE", help="a notebook parameter; may be given several times"),
]


def book(
    only: tuple[str, ...] = (),
    force: bool = False,
    profile: Literal["embedded", "gpu", "paper"] = "embedded",
    timeout: float | None = None,
) -> int:
    """Execute the notebooks that changed and render the book; prints where it is.

    Args:
        only: names of pages to execute; the others stay as they are.
        force: execute all pages, changed or not.
        profile: size of the experiments.
        timeout: seconds one cell may take.
    """
    from repro.experiments.book import build
    from repro.paths import project_root

    built = build(project_root(), profile=profile, only=only or None, force=force, timeout=timeout, report=_say)
    for line in built.complaints:
        _complain(line)
    for page in built.failures:
        _complain(f"{page.name} failed: {page.error}")
    _say(f"{'the book is' if built.ok else 'the book, with faults, is'} at {built.index} ({built.seconds:.0f} s)")
    return 0 if built.ok else 1


def run(
    notebook: tyro.conf.Positional[Path],
    p: Pairs,
    output: Path | None = None,
    record: bool = False,
    timeout: float | None = None,
) -> int:
    """Execute one notebook with other parameters; a wrong name or type is refused with the valid ones.

    Args:
        notebook: path of a notebook, or its bare name.
        p: a notebook parameter.
        output: where the executed notebook goes; by default below `runs/`.
        record: append its rows to `results/`.
        timeout: seconds one cell may take.
    """
    from repro.experiments import notebook as notebooks
    from repro.experiments.notebook import NotebookError

    source = notebooks.locate(notebook)
    given: dict[str, Any] = dict(p)
    if record:
        given["record"] = "True"
    values = notebooks.validate(source, given)
    target = output or notebooks.default_output(source, values)
    try:
        notebooks.run(source, target, values, timeout=timeout, progress=True)
    except NotebookError as error:
        _complain(f"{error} (the notebook up to that cell is at {target})")
        return 1
    _say(f"executed: {target}")
    return 0


def notebooks() -> int:
    """Write `notebooks/*.ipynb`, unexecuted, for plain papermill and Jupyter."""
    from repro.experiments.notebook import to_ipynb
    from repro.paths import project_root

    folder = project_root() / "notebooks"
    for source in sorted(folder.glob("*.md")):
        _say(str(to_ipynb(source, folder)))
    return 0


def train(
    backbone: str = "repro-tiny",
    dims: tuple[int, ...] = (128,),
    output: Path | None = None,
    objective: Literal["simcse"] = "simcse",
    sentences: int | None = None,
    learning_rate: float | None = None,
    batch_size: int | None = None,
    dropout: float | None = None,
    epochs: float | None = None,
    pooling: Literal["cls", "mean", "last", "avg_first_last"] | None = None,
    activation: Literal["tanh", "identity"] | None = None,
    source: Literal["local", "hub", "microworld"] | None = None,
    profile: Literal["embedded", "gpu", "paper"] = "embedded",
    seed: int = 0,
    workers: int | None = None,
) -> int:
    """Train encoders end to end, one per dim; a killed run resumes when the same command is given again.

    Args:
        backbone: shipped name, local folder or hub id.
        dims: pooler sizes; may exceed the hidden size.
        output: folder for the encoders (one subfolder per dim); they are in the store in any case.
        objective: the training loss.
        sentences: how many training sentences; None takes the profile's number, as for all below.
        learning_rate: peak learning rate.
        batch_size: sentences per step.
        dropout: of every layer.
        epochs: passes over the sentences.
        pooling: token states to sentence state.
        activation: of the pooler.
        source: where the sentences come from; by default local files if REPRO_DATA is set, else the microworld.
        profile: defaults for everything not given.
        seed: of weights, dropout and data order.
        workers: processes side by side; by default one per core.
    """
    import shutil

    from repro.config import PROFILES
    from repro.config import profile as make_profile
    from repro.data import default_source
    from repro.experiments.grid import train_all
    from repro.store import Store

    wanted = source or PROFILES[profile].source or default_source()
    base = make_profile(
        profile, source=wanted, backbone=backbone, sentences=sentences, learning_rate=learning_rate,
        batch_size=batch_size, dropout=dropout, epochs=epochs, pooling=pooling, activation=activation, seed=seed,
    ).train  # fmt: skip
    for cell in train_all([replace(base, dim=dim) for dim in dims], Store(), workers=workers):
        best = max((score for _, score in cell.history.checks), default=float("nan"))
        state = "found in the store" if cell.hit else f"trained in {cell.seconds:.0f} s"
        _say(
            f"dim {cell.config.dim}: {state}; dev Spearman {100 * cell.dev_before:.2f} (encoder, untrained) -> "
            f"{100 * best:.2f} ({cell.config.checkpoint_by}); {cell.folder}"
        )
        if output is not None:
            shutil.copytree(cell.folder, output / f"dim{cell.config.dim}", dirs_exist_ok=True)
    return 0


def encode(
    encoder: str,
    texts: Path,
    output: Path,
    readout: Literal["pooler", "encoder"] = "pooler",
    layer: int | None = None,
    dim: int | None = None,
    pooling: Literal["cls", "mean", "last", "avg_first_last"] | None = None,
    normalize: bool = False,
) -> int:
    """Embed the lines of a text file and write a float32 `.npy` matrix.

    Args:
        encoder: name, folder or hub id.
        texts: file with one text per line (or any dataset name).
        output: the `.npy` file.
        readout: pooler output z or encoder state h.
        layer: read this layer (0 is the embedding output) and run no further.
        dim: keep the first so many columns.
        pooling: token states to sentence state; by default the encoder's own.
        normalize: divide every row by its length, after cutting to `dim`.
    """
    import numpy as np

    from repro import data
    from repro.models import SentenceEncoder
    from repro.store import replacing
    from repro.types import check_dim

    corpus = data.load(str(texts))
    network = SentenceEncoder.load(encoder, pooling=pooling)
    full = network.dim if readout == "pooler" and layer in (None, network.n_layers) else network.hidden_dim
    if dim is not None:
        check_dim(dim, limit=full)
    X = network.encode(data.texts_of(corpus), readout=readout, layer=layer, progress=True)
    if dim is not None:
        X = X[:, :dim]
    if normalize:
        X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    with replacing(output) as partial, partial.open("wb") as file:
        np.save(file, X, allow_pickle=False)
    _say(f"{X.shape[0]} x {X.shape[1]} float32 -> {output}; {network.texts_truncated} texts were cut")
    return 0


def evaluate(
    encoder: str,
    data: str,
    task: Literal["sts", "classification"] = "sts",
    dims: tuple[int, ...] = (),
    layer: int | None = None,
    readout: Literal["pooler", "encoder"] = "pooler",
    pooling: Literal["cls", "mean", "last", "avg_first_last"] | None = None,
    split: str | None = None,
    text: Literal["senteval", "raw"] = "senteval",
    aggregate: Literal["all", "mean", "wmean"] = "all",
    source: Literal["local", "hub", "microworld"] | None = None,
    seed: int = 0,
    rows: Path | None = None,
    mteb_json: Path | None = None,
) -> int:
    """Score an encoder on a dataset, at one or several prefix sizes from a single pass.

    Args:
        encoder: name, folder or hub id.
        data: dataset name (`repro data list`) or a TSV file of your own in the same layout.
        task: similarity of pairs, or a linear probe.
        dims: prefix sizes; by default the full size.
        layer: read this layer and run no further.
        readout: pooler output z or encoder state h.
        pooling: token states to sentence state; by default the encoder's own.
        split: similarity only, by default test.
        text: SentEval's tokenised text or the original (STS).
        aggregate: all pairs in one ranking, or the mean or weighted mean over subsets.
        source: where the data comes from; by default local files if REPRO_DATA is set, else the microworld.
        seed: of folds and bootstrap.
        rows: also write the rows to this parquet file.
        mteb_json: also write the scores in MTEB's result schema to this file.
    """
    from repro.experiments.evaluate import evaluate_encoder, mteb_result
    from repro.rows import write_rows
    from repro.store import replacing

    frame = evaluate_encoder(
        encoder, data, task=task, dims=dims, layer=layer, readout=readout, pooling=pooling, split=split, text=text,
        aggregate=aggregate, source=source, seed=seed,
    )  # fmt: skip
    _say(f"{encoder} on {data} ({frame['data_source'].iloc[0]}, {frame['setting'].iloc[0]}), live, x100:")
    for row in frame.itertuples():
        interval = "" if row.ci_low != row.ci_low else f"  [{100 * row.ci_low:.2f}, {100 * row.ci_high:.2f}]"
        _say(f"  dim {row.dim:>5}  {row.metric}  {100 * row.value:.2f}{interval}")
    if rows is not None:
        write_rows(rows, frame)
    if mteb_json is not None:
        import json

        with replacing(mteb_json) as partial:
            partial.write_text(json.dumps(mteb_result(frame), indent=2), encoding="utf-8")
    return 0


def pretrain(
    corpus: str = "wiki",
    output: Path = Path("runs/repro-tiny"),
    layers: int = 2,
    hidden_dim: int = 128,
    heads: int | None = None,
    epochs: float = 1.25,
    learning_rate: float | None = None,
    batch_size: int = 256,
    sentences: int | None = None,
    threads: int | None = None,
    source: Literal["local", "hub", "microworld"] | None = None,
    seed: int = 0,
) -> int:
    """Pre-train a small BERT from scratch by masked language modelling; resumes after a kill.

    Args:
        corpus: dataset name or a text file with one sentence per line.
        output: folder for the backbone, its tokenizer and model card.
        layers: transformer blocks.
        hidden_dim: hidden size D.
        heads: attention heads; by default one per 64 dims.
        epochs: passes over the corpus.
        learning_rate: peak rate; by default 1e-3 for 2 layers, 5e-4 for more.
        batch_size: sentences per step.
        sentences: take only so many sentences.
        threads: CPU threads; by default all cores.
        source: where the corpus comes from.
        seed: of weights, masks and data order.
    """
    from repro.experiments.pretrain import pretrain_backbone
    from repro.training.mlm import PretrainConfig

    config = PretrainConfig(
        layers=layers, hidden_dim=hidden_dim, heads=heads or max(1, hidden_dim // 64), epochs=epochs,
        learning_rate=learning_rate or (1e-3 if layers <= 2 else 5e-4), batch_size=batch_size, save_every=1000,
        seed=seed,
    )  # fmt: skip
    figures = pretrain_backbone(
        corpus, config, output, source=source, sentences=sentences, threads=threads, command=" ".join(sys.argv[1:])
    )
    _say(f"{output}: dev loss {figures['dev_loss']:.3f} after {figures['tokens_seen'] / 1e6:.0f} M tokens")
    return 0


def data(
    verb: tyro.conf.Positional[Literal["list", "check", "fetch"]], name: tyro.conf.Positional[str | None] = None
) -> int:
    """Datasets: list them, check the local files against the official counts, or fetch one from the hub.

    Args:
        verb: what to do.
        name: one dataset; needed for fetch.
    """
    from repro import data as sets

    if verb == "list":
        for row in sets.describe():
            _say(
                f"{row['name']:<10} {row['title']:<28} {row['rows']:>24} rows  "
                f"local: {row['local']:<4} hub: {row['hub']:<40} {row['licence']}"
            )
        return 0
    if verb == "check":
        found = sets.check(name)
        for item in found:
            expected = " or ".join(f"{count:,}" for count in item.expected)
            count = "–" if item.found is None else f"{item.found:,}"
            _say(f"{'ok ' if item.ok else 'BAD'} {item.name:<10} {item.split:<32} {count:>9} of {expected} {item.note}")
        return 0 if all(item.ok for item in found) else 1
    if name is None:
        raise InputError("fetch needs a dataset name: `repro data list` shows them")
    for path in sets.fetch(name):
        _say(str(path))
    return 0


def compare(experiment: tyro.conf.Positional[str | None] = None) -> int:
    """Paper, recorded and live numbers side by side, with verdicts.

    Args:
        experiment: such as wang_table1; by default the scorecard of all claims.
    """
    from repro.reporting.console import experiment_lines, scorecard_lines

    for line in scorecard_lines() if experiment is None else experiment_lines(experiment):
        _say(line)
    return 0


def doctor(repair: bool = False) -> int:
    """Report on the installation and the store; with --repair, move damaged artefacts aside and drop leftovers.

    Args:
        repair: mend what is found.
    """
    from repro.experiments.doctor import examine

    faults = 0
    for line, bad in examine(repair=repair):
        _say(("BAD " if bad else "ok  ") + line)
        faults += bad
    return 0 if repair or not faults else 1


VERBS = {
    f.__name__: f for f in (book, run, notebooks, train, encode, evaluate, pretrain, data, compare, doctor)
}  # fmt: skip


def main(arguments: list[str] | None = None) -> None:
    """Run one verb; exit 0 when it did its work, 1 when something failed, 2 on a user's mistake."""
    logging.basicConfig(format="%(levelname)s: %(message)s", level=os.environ.get("REPRO_LOG", "WARNING").upper())
    try:
        code = tyro.extras.subcommand_cli_from_dict(
            VERBS, prog="repro", description=__doc__, args=arguments, sort_subcommands=False
        )
    except (InputError, TypeError, FileNotFoundError, PermissionError, IsADirectoryError) as error:
        if isinstance(error, TypeError) and not str(error).startswith("texts"):
            raise
        _complain(f"error: {error}")
        code = 2
    except KeyboardInterrupt:
        _complain("stopped; what was finished is kept, the same command goes on from there")
        code = 130
    sys.stdout.flush()
    raise SystemExit(code)


def _say(line: str) -> None:
    print(line, flush=True)


def _complain(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
