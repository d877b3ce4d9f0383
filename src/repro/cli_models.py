"""The verbs of `repro` that work on networks: train, encode, evaluate, pretrain."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import tyro

from repro.cli_scaling import ScalingOptions, refuse_unread, trainings
from repro.terminal import say


def train(
    backbone: str = "repro-tiny",
    dims: tuple[int, ...] = (),
    output: Path | None = None,
    objective: Literal["simcse", "nli", "angle", "matryoshka", "ese"] = "simcse",
    difference: Literal["abs", "signed"] | None = None,
    layers: int | None = None,
    sentences: int | None = None,
    learning_rate: float | None = None,
    batch_size: int | None = None,
    dropout: float | None = None,
    epochs: float | None = None,
    pooling: Literal["cls", "mean", "last", "avg_first_last"] | None = None,
    activation: Literal["tanh", "identity"] | None = None,
    scaling: Annotated[ScalingOptions, tyro.conf.arg(name="")] = ScalingOptions(),  # noqa: B008 - frozen
    source: Literal["local", "hub", "microworld"] | None = None,
    profile: Literal["embedded", "gpu", "paper"] = "embedded",
    seed: int = 0,
    workers: int | None = None,
) -> int:
    """Encoders of your own, trained end to end; a stopped run goes on when the same command is given again.

    Args:
        backbone: shipped name, local folder or hub id.
        dims: simcse, nli: pooler sizes, one encoder each, by default 128; ese: compressed sizes, one encoder each, by
            default 128; matryoshka: the prefixes that its one encoder trains, by default 8 to 768.
        output: folder for the encoders (one subfolder per dim where there is one encoder per dim); by default they are
            in the store alone.
        objective: contrastive on plain sentences; or on entailment pairs a softmax classifier (nli), AnglE (angle),
            AnglE on prefixes (matryoshka), or on prefixes of all layers (ese).
        difference: nli: third feature of the classifier, |u - v| (by default) or u - v.
        layers: blocks kept of the backbone; by default all.
        sentences: how many training sentences, pairs or triples; by default as many as the profile says.
        learning_rate: peak learning rate; by default the profile's, as for all up to activation.
        batch_size: sentences per step.
        dropout: of every layer.
        epochs: passes over the sentences.
        pooling: from token states to sentence state.
        activation: simcse, nli: of the pooler.
        scaling: options of ESE's comparison.
        source: where the sentences come from; by default local files if REPRO_DATA is set, else the microworld.
        profile: defaults for everything not given.
        seed: of weights, dropout and data order.
        workers: processes side by side; by default one per core.
    """
    from repro.config import PROFILES, SCALING
    from repro.config import profile as make_profile
    from repro.data import default_source
    from repro.runs.pool import train_all
    from repro.store import Store
    from repro.training.end_to_end import title
    from repro.writing import copy_folder, writable_folder

    if output is not None:
        writable_folder(output)
    refuse_unread(objective, scaling, {"difference": difference, "activation": activation, "dims": dims})
    wanted = source or PROFILES[profile].source or default_source()
    base = make_profile(
        profile,
        source=wanted,
        backbone=backbone,
        objective=objective,
        difference=difference,
        layers=layers,
        sentences=sentences,
        learning_rate=learning_rate,
        batch_size=batch_size,
        dropout=dropout,
        epochs=epochs,
        pooling=pooling,
        activation=activation,
        seed=seed,
        **scaling.settings(),
    ).train
    configs = trainings(base, dims)
    readout = "encoder" if objective in SCALING else base.checkpoint_by
    for folder, cell in zip(configs, train_all(list(configs.values()), Store(), workers=workers), strict=True):
        best = max((score for _, score in cell.history.checks), default=float("nan"))
        state = "found in the store" if cell.hit else f"trained in {cell.seconds:.0f} s"
        say(
            f"{title(cell.config)}: {state}; dev Spearman {100 * cell.dev_before:.2f} (encoder, untrained) -> "
            f"{100 * best:.2f} ({readout}); {cell.folder}"
        )
        if output is not None:
            copy_folder(cell.folder, output / folder)
    return 0


def encode(
    encoder: str,
    texts: Path,
    output: Path,
    readout: Literal["pooler", "encoder"] = "pooler",
    layer: int | None = None,
    dim: int | None = None,
    pooling: Literal["cls", "mean", "last", "avg_first_last"] | None = None,
    bidirectional: tyro.conf.FlagConversionOff[bool | None] = None,
    final_norm: Literal["last", "all", "none"] | None = None,
    normalize: bool = False,
    columns: tuple[str, ...] = (),
    prompt: str | None = None,
) -> int:
    """A float32 `.npy` matrix of embeddings, one row for each line of a text file.

    Args:
        encoder: name, folder or hub id; or a baseline such as glove, sif or sbert.
        texts: file with one text per line, a table (TSV, CSV, JSON lines, parquet), `-` for a pipe, or a dataset name.
        output: the `.npy` file.
        readout: pooler output z or encoder state h.
        layer: read this layer (0 is the embedding output) and run no further; by default the last.
        dim: keep the first so many columns; by default all.
        pooling: token states to sentence state; by default the encoder's own.
        bidirectional: let the tokens of a decoder see those after them; by default as the encoder was trained.
        final_norm: which states pass a decoder's final norm; by default as the encoder was trained, else the last.
        normalize: divide every row by its length, after cutting to `dim`.
        columns: of a table whose columns go by other names: NAME=COLUMN, such as text=Body.
        prompt: put before every text: a name among the encoder's prompts, or the text itself; by default the encoder's
            own, if it has one.
    """
    import numpy as np

    from repro import data
    from repro.models import SentenceEncoder
    from repro.types import InputError, check_dim
    from repro.writing import replacing, writable_file
    from rivals import system_named

    writable_file(output)
    corpus = data.load(str(texts), columns=data.column_names(columns))
    system = system_named(encoder, source=data.default_source())
    if system is None:
        network = SentenceEncoder.load(
            encoder, pooling=pooling, bidirectional=bidirectional, final_norm=final_norm, prompt=prompt
        )
        full = network.dim if readout == "pooler" and layer in (None, network.n_layers) else network.hidden_dim
        if dim is not None:
            check_dim(dim, limit=full)
        X = network.encode(data.texts_of(corpus), readout=readout, layer=layer, progress=True)
        said = f"; {network.texts_truncated} texts were cut"
    else:
        of_networks = {"pooling": pooling, "bidirectional": bidirectional, "final_norm": final_norm, "prompt": prompt}
        for name, value in of_networks.items():
            if value is not None:
                raise InputError(f"{name} is {value}: {encoder} is made whole; leave it out")
        X = system.encoder().encode(data.texts_of(corpus), readout=readout, layer=layer, progress=True)
        said = f"; {system.line}"
    if dim is not None:
        X = X[:, : check_dim(dim, limit=X.shape[1])]
    if normalize:
        X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    with replacing(output) as partial, partial.open("wb") as file:
        np.save(file, X, allow_pickle=False)
    say(f"{X.shape[0]} x {X.shape[1]} float32 -> {output}{said}")
    return 0


def evaluate(
    encoder: str,
    data: str,
    task: Literal["sts", "classification"] = "sts",
    dims: Annotated[tuple[int, ...], tyro.conf.arg(aliases=["--dim"])] = (),
    layers: Annotated[tuple[int, ...], tyro.conf.arg(aliases=["--layer"])] = (),
    readout: Literal["pooler", "encoder"] = "pooler",
    pooling: Literal["cls", "mean", "last", "avg_first_last"] | None = None,
    bidirectional: tyro.conf.FlagConversionOff[bool | None] = None,
    final_norm: Literal["last", "all", "none"] | None = None,
    prompt: str | None = None,
    split: str | None = None,
    text: Literal["senteval", "raw"] = "senteval",
    aggregate: Literal["all", "mean", "wmean"] = "all",
    protocol: Literal["logreg", "senteval"] = "logreg",
    source: Literal["local", "hub", "microworld"] | None = None,
    seed: int = 0,
    rows: Path | None = None,
    mteb_json: Path | None = None,
    columns: tuple[str, ...] = (),
) -> int:
    """The score of an encoder on a dataset with its interval, at several layers and sizes from a single pass.

    Args:
        encoder: name, folder or hub id.
        data: dataset name (`repro data list`), or a table of your own (TSV, CSV, JSON lines, parquet, `-` for a pipe)
            with columns score, sentence1, sentence2 or label, text.
        task: similarity of pairs, or a linear probe.
        dims: prefix sizes; by default the full size.
        layers: read these layers (0 is the embedding output), run no further than the deepest; by default the last.
        readout: pooler output z or encoder state h.
        pooling: token states to sentence state; by default the encoder's own.
        bidirectional: let the tokens of a decoder see those after them; by default as the encoder was trained.
        final_norm: which states pass a decoder's final norm; by default as the encoder was trained, else the last.
        prompt: put before every text: a name among the encoder's prompts, or the text itself; by default the encoder's
            own, if it has one.
        split: similarity only, by default test.
        text: SentEval's tokenised text or the original (STS).
        aggregate: all pairs in one ranking, or the mean or weighted mean over subsets.
        protocol: classifier of the probe: logistic regression by L-BFGS, or SentEval's own.
        source: where the data comes from; by default local files if REPRO_DATA is set, else the microworld.
        seed: of folds and bootstrap.
        rows: also write the rows to this parquet file; by default none.
        mteb_json: also write the scores in MTEB's result schema to this file, and of several layers or sizes one file
            each (NAME-layer2-dim64.json), as MTEB averages what one file holds; by default none.
        columns: of a table whose columns go by other names: NAME=COLUMN, such as score=Rating sentence1=Left.
    """
    from repro.data import column_names
    from repro.rows import write_rows
    from repro.runs.evaluate import evaluate_encoder, mteb_result
    from repro.writing import replacing, writable_file

    for path in (rows, mteb_json):
        if path is not None:
            writable_file(path)
    frame = evaluate_encoder(
        encoder,
        data,
        task=task,
        dims=dims,
        layers=layers,
        readout=readout,
        pooling=pooling,
        bidirectional=bidirectional,
        final_norm=final_norm,
        prompt=prompt,
        split=split,
        text=text,
        aggregate=aggregate,
        protocol=protocol,
        source=source,
        seed=seed,
        columns=column_names(columns),
    )
    say(f"{encoder} on {data} ({frame['data_source'].iloc[0]}, {frame['setting'].iloc[0]}), live, x100:")
    for row in frame.itertuples():
        interval = "" if row.ci_low != row.ci_low else f"  [{100 * row.ci_low:.2f}, {100 * row.ci_high:.2f}]"
        layer = f"layer {row.layer:>3}  " if layers else ""
        say(f"  {layer}dim {row.dim:>5}  {row.metric}  {100 * row.value:.2f}{interval}")
    if rows is not None:
        write_rows(rows, frame)
    if mteb_json is not None:
        import json

        of_place = [(name, own) for name, own in frame.groupby(["layer", "dim"], dropna=False, sort=False)]
        for (layer, dim), own in of_place:
            at = f"-layer{layer}-dim{dim}" if layers else f"-dim{dim}"
            target = mteb_json.with_stem(mteb_json.stem + at) if len(of_place) > 1 else mteb_json
            with replacing(target) as partial:
                partial.write_text(json.dumps(mteb_result(own), indent=2), encoding="utf-8")
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
    """A small BERT of your own, pre-trained from scratch; a stopped run goes on when the command is given again.

    Args:
        corpus: dataset name or a text file with one sentence per line.
        output: folder for the backbone, its tokenizer and model card.
        layers: transformer blocks.
        hidden_dim: hidden size D.
        heads: attention heads; by default one per 64 dims.
        epochs: passes over the corpus.
        learning_rate: peak rate; by default 1e-3 for 2 layers, 5e-4 for more.
        batch_size: sentences per step.
        sentences: take only so many sentences; by default all.
        threads: CPU threads; by default all cores.
        source: where the corpus comes from; by default local files if REPRO_DATA is set, else the microworld.
        seed: of weights, masks and data order.
    """
    from repro.runs.pretrain import pretrain_backbone
    from repro.training.mlm import PretrainConfig

    config = PretrainConfig(
        layers=layers,
        hidden_dim=hidden_dim,
        heads=heads or max(1, hidden_dim // 64),
        epochs=epochs,
        learning_rate=learning_rate or (1e-3 if layers <= 2 else 5e-4),
        batch_size=batch_size,
        save_every=1000,
        seed=seed,
    )
    figures = pretrain_backbone(
        corpus, config, output, source=source, sentences=sentences, threads=threads, command=" ".join(sys.argv[1:])
    )
    say(f"{output}: dev loss {figures['dev_loss']:.3f} after {figures['tokens_seen'] / 1e6:.0f} M tokens")
    return 0
