"""The verb of `repro` on a network to be handed on: `export` writes a folder that
sentence-transformers loads, with a reducer behind the network if one is given.
"""

from collections.abc import Mapping
from functools import partial
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
    from repro.models.exported import export_folder, refuse_full

    refuse_full(output)
    map_, note = (None, {}) if reducer is None else (read_linear(reducer), read_note(reducer))
    name = note.get("encoder") if encoder is None else encoder
    if name is None:
        folder = "the folder that `repro advise --encoder` wrote"
        raise InputError(f"give --encoder, or with --reducer {folder}")
    if final_norm is not None and "encoder" in note:
        fitted_on = "the reducer was fitted on the encoder as it is"
        raise InputError(f"--final-norm {final_norm}: {fitted_on}; leave it out")
    network = _loaded(name, note, reducer, pooling=pooling, final_norm=final_norm)
    normalize |= note.get("compared_by") == "cosine"
    if "encoder" in note:
        layer = fitted_layer(network, note, layer)
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


def _loaded(
    name: str,
    note: Mapping[str, Any],
    reducer: Path | None,
    **seen: Any,
) -> "SentenceEncoder":
    """An encoder, which is the one that a reducer was fitted on, if there is one."""
    from repro.models import SentenceEncoder
    from repro.runs.encoders import as_it_is

    load = partial(SentenceEncoder.load, name, prompt=note.get("prompt"), **seen)
    if reducer is None:
        return load()
    load_unchanged = as_it_is(name, load)
    check_fitted_on(name, note, reducer)
    return load_unchanged()


def check_fitted_on(name: str, note: Mapping[str, Any], reducer: Path) -> None:
    """Refuse an encoder that gives other embeddings than a reducer was fitted on, by its note; warn
    where the note does not tell.
    """
    from dimadvise.inputs import encoder_digest

    fitted_on = note.get("encoder_digest")
    if fitted_on is None:
        on = f"fitted on {note['encoder']}" if "encoder" in note else "fitted on vectors alone"
        unknown = "no digest of the encoder in its note"
        checked = f"whether that is {name} cannot be checked"
        complain(f"warning: the reducer in {reducer} was {on}, with {unknown}: {checked}")
        return
    found = encoder_digest(name)
    if found != fitted_on:
        fitted = f"the reducer in {reducer} was fitted on {note['encoder']} ({fitted_on})"
        way_out = "give the encoder that it was fitted on by --encoder, or advise anew on this one"
        raise InputError(f"{fitted}, and {name} is another encoder ({found}): {way_out}")


def fitted_layer(network: Any, note: Mapping[str, Any], layer: int | None) -> int | None:
    """The layer that a reducer was fitted on, by its note; another one, or another pooling, is
    refused.
    """
    if network.pooling != note.get("pooling", network.pooling):
        fitted = f"the reducer was fitted on {note['pooling']} pooling"
        raise InputError(f"--pooling {network.pooling}: {fitted}; leave --pooling out")
    number = network.backbone.layer_index(note.get("layer"))
    layer_number = number if layer is None else network.backbone.layer_index(layer)
    if layer_number != number:
        fitted = f"the reducer was fitted on layer {number} of {network.n_layers}"
        way_out = "leave --layer out, or fit a reducer on that one"
        raise InputError(f"--layer {layer_number}: {fitted}; {way_out}")
    return note.get("layer")
