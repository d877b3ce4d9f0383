"""The verb `export`: an encoder as a folder that sentence-transformers loads."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from repro.terminal import complain, say
from repro.types import InputError

if TYPE_CHECKING:
    from repro.models import SentenceEncoder


def export(
    output: Path,
    encoder: str | None = None,
    layer: int | None = None,
    dim: int | None = None,
    reducer: Path | None = None,
    pooling: Literal["cls", "mean", "last"] | None = None,
    normalize: bool = False,
) -> int:
    """A folder that `SentenceTransformer` loads: an encoder as it is, cut to a layer, or followed by a reducer.

    Args:
        output: a new folder.
        encoder: name, folder or hub id, such as a folder that `repro train --output` wrote; by default the one that
            --reducer was fitted on.
        layer: leave out the blocks above this one; the pooler, which reads the last, is left out too. By default the
            layer that --reducer was fitted on, else the last.
        dim: keep the first so many numbers; by default all.
        reducer: folder of a reducer that `repro advise` wrote, fitted on this encoder's embeddings; by default none.
        pooling: token states to sentence state; by default the encoder's own.
        normalize: end with rows of length 1, as after a --reducer that was judged by cosines in any case.
    """
    from repro.models import SentenceEncoder
    from repro.models.st_export import export_folder
    from repro.reducers.export import read_linear, read_note

    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise InputError(f"{output} is there already: give a new folder, nothing is overwritten")
    map_, note = (None, {}) if reducer is None else (read_linear(reducer), read_note(reducer))
    name = note.get("encoder") if encoder is None else encoder
    if name is None:
        raise InputError("give --encoder, or with --reducer the folder that `repro advise --encoder` wrote")
    network = SentenceEncoder.load(name, pooling=pooling, prompt=note.get("prompt"))
    normalize |= note.get("compared_by") == "cosine"
    if "encoder" in note:
        layer = _layer_fitted_on(network, layer, note)
        if Path(name).name != Path(note["encoder"]).name:
            complain(f"warning: the reducer was fitted on {note['encoder']}, and is put behind {name}")
    unit = bool(note.get("unit_rows"))
    export_folder(network, output, layer=layer, dim=dim, reducer=map_, unit_rows=unit, normalize=normalize)
    megabytes = sum(path.stat().st_size for path in output.rglob("*") if path.is_file()) / 1e6
    say(f"{output}: {network.n_layers} layers, {megabytes:.1f} MB; SentenceTransformer({str(output)!r}) loads it")
    return 0


def _layer_fitted_on(network: "SentenceEncoder", layer: int | None, note: dict[str, Any]) -> int | None:
    """The layer that a reducer was fitted on, after checking that no other layer or pooling is asked for."""
    if network.pooling != note.get("pooling", network.pooling):
        raise InputError(
            f"--pooling {network.pooling}: the reducer was fitted on {note['pooling']} pooling; leave --pooling out"
        )
    noted: int | None = note.get("layer")
    fitted, asked = (network.backbone.layer_index(at) for at in (noted, noted if layer is None else layer))
    if asked != fitted:
        raise InputError(
            f"--layer {asked}: the reducer was fitted on layer {fitted} of {network.n_layers}; leave --layer out, or "
            "fit a reducer on that one"
        )
    return noted
