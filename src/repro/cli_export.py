"""The verb `export`: an encoder as a folder that sentence-transformers loads."""

from pathlib import Path
from typing import Literal

from repro.terminal import say
from repro.types import InputError


def export(
    encoder: str,
    output: Path,
    layer: int | None = None,
    dim: int | None = None,
    reducer: Path | None = None,
    pooling: Literal["cls", "mean", "last"] | None = None,
    normalize: bool = False,
) -> int:
    """Write an encoder for `SentenceTransformer(OUTPUT)`: with its pooler, cut to a layer, or followed by a reducer.

    Args:
        encoder: name, folder or hub id, such as a folder that `repro train --output` wrote.
        output: a new folder.
        layer: leave out the blocks above this one; the pooler, which reads the last, is left out too.
        dim: keep the first so many numbers.
        reducer: folder of a linear reducer that `repro advise` wrote, fitted on this encoder's embeddings.
        pooling: token states to sentence state; by default the encoder's own.
        normalize: end with rows of length 1.
    """
    from repro.models import SentenceEncoder
    from repro.models.export import read_linear
    from repro.models.st_export import export_folder

    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise InputError(f"{output} is there already: give a new folder, nothing is overwritten")
    map_ = None if reducer is None else read_linear(reducer)
    network = SentenceEncoder.load(encoder, pooling=pooling)
    export_folder(network, output, layer=layer, dim=dim, reducer=map_, normalize=normalize)
    megabytes = sum(path.stat().st_size for path in output.rglob("*") if path.is_file()) / 1e6
    say(f"{output}: {network.n_layers} layers, {megabytes:.1f} MB; SentenceTransformer({str(output)!r}) loads it")
    return 0
