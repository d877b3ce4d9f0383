"""Whether a network is whole: its bytes as they were written, and its files of one model.

Bytes are compared with the manifest that we wrote, or with the names in the hub's cache; the
weights with the blocks and sizes that the config speaks of.
"""

import hashlib
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import Tensor, nn

from repro import paths
from repro.manifests import MANIFEST, WAY_OUT, is_sealed, sha256, unchanged
from repro.models.notes import read_json
from repro.models.sources import ADAPTER_WEIGHTS, READ
from repro.types import InputError

log = logging.getLogger(__name__)
SAVED = ("*.json", "model*.safetensors", ADAPTER_WEIGHTS, "pooler.safetensors")
"""What is read of an encoder that we saved: its tokenizer is `tokenizer.json` alone."""
WRITTEN = ("*config.json", "encoder.json", "tokenizer.json", "*.safetensors", "model*.index.json")
"""What saving one writes; an older manifest may list what else was in the folder."""
SAVED_KIND = "encoder"
"""What the manifest of one calls it."""


def check_intact(folder: Path) -> None:
    """Compare the files with `manifest.json`, if we wrote one, and with the names of the hub's
    blobs they link to.
    """
    manifest = read_json(folder, MANIFEST, {})
    way_out = f"save or copy the encoder anew, or delete its {MANIFEST} if the change is meant"
    if not unchanged(manifest):
        raise InputError(f"{folder / MANIFEST} has changed since it was written: {way_out}")
    if manifest and not is_sealed(manifest):
        log.warning("%s is none that we wrote: no file is checked by it", folder / MANIFEST)
    files = manifest.get("files")
    # Else the manifest is none of ours
    for name, written in files.items() if isinstance(files, dict) else ():
        path = paths.inside(folder, name)
        if (
            isinstance(written, str)
            and len(written) == 64
            and not (path.is_file() and sha256(path) == written)
        ):
            found = "has changed since it was written" if path.is_file() else "is missing"
            raise InputError(f"{path} {found}: {way_out}")
    if is_sealed(manifest) and isinstance(files, dict):
        listed = {MANIFEST, *files}
        saved = (folder / "encoder.json").is_file()
        for path in _matching(folder, SAVED if saved else READ):
            if path.relative_to(folder).as_posix() not in listed:
                way_out = f"move it away, or delete {MANIFEST} if it is meant"
                raise InputError(f"{path} was added to what was written: {way_out}")
    for path in filter(Path.is_symlink, _matching(folder, READ)):
        blob = path.resolve()
        if blob.parent.name == "blobs" and blob.is_file() and not _is_named_by_content(blob):
            raise InputError(
                f"{path} in the hub's cache has changed since it was downloaded: delete {blob} and "
                "download it again"
            )


def refuse_foreign(folder: Path, written: Path) -> None:
    """Refuse to move what was `written` of an encoder to where a file lies that would be read with
    it or overwritten, is another, and that none was saved as, by the manifest of the folder.

    Raises:
        InputError: for the first such file.
    """
    manifest = read_json(folder, MANIFEST, {})
    is_ours = is_sealed(manifest) and manifest.get("kind") == SAVED_KIND
    files = manifest.get("files") if is_ours else None
    ours = {MANIFEST, *files} if isinstance(files, dict) else set()
    for path in _matching(folder, SAVED):
        new = written / path.name
        # A save that was stopped left files without a manifest: the same one may go on
        is_same = path.is_file() and new.is_file() and sha256(path) == sha256(new)
        if path.name not in ours and not is_same:
            raise InputError(
                f"{path} was written by no `save` of an encoder, or by one that was stopped, and "
                f"would be read with this one or overwritten: {WAY_OUT}"
            )


def _matching(folder: Path, patterns: Iterable[str]) -> list[Path]:
    """What is in a folder by one or more of some patterns, in the order of its names."""
    return sorted({path for pattern in patterns for path in folder.glob(pattern)})


def _is_named_by_content(blob: Path) -> bool:
    """Whether a blob's name is the digest of its bytes, as the hub has it: sha256 of large files,
    git's of small.
    """
    if len(blob.name) == 64:
        return sha256(blob) == blob.name
    content = blob.read_bytes()
    return (
        len(blob.name) != 40
        or hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest() == blob.name
    )


def read_weights(file: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file of our own reading: a head, a dense layer, adapters.

    Raises:
        InputError: for one of whole numbers, such as of a quantised layer, which would be misread.
        OSError: for a file that cannot be read, or SafetensorError.
    """
    weights = load_file(file)
    for name, weight in weights.items():
        if not weight.is_floating_point():
            kind = str(weight.dtype).removeprefix("torch.")
            raise InputError(f"{file}: {name} is {kind}: expected float32, or half precision")
    return weights


def check_complete(name: str, model: nn.Module, found: Mapping[str, Any]) -> None:
    """Refuse a network of which some weights would stay random, or some blocks unread, by what
    transformers says of its loading.

    Other weights that a network has no place for, such as a head's, are nobody's fault.
    """
    if lacking := sorted(key for key in found["missing_keys"] if "pooler." not in key):
        raise InputError(
            f"the weights of {name!r} lack {', '.join(lacking[:3])}{' …' if lacking[3:] else ''}"
        )
    for key, there, expected in sorted(found["mismatched_keys"]):
        sizes = f"{key} is {tuple(there)}, expected {tuple(expected)}"
        raise InputError(f"the weights of {name!r} do not fit its config.json: {sizes}")
    for blocks, number, key in _unread_blocks(model, found["unexpected_keys"]):
        raise InputError(
            f"the weights of {name!r} do not fit its config.json: they have {key}, but the config "
            f"says {number} of {blocks}; correct it (to read fewer layers, give a layer instead)"
        )


def _unread_blocks(model: nn.Module, unexpected: Iterable[str]) -> Iterator[tuple[str, int, str]]:
    """Weights of blocks behind the last that a network has: its list of blocks, their number, and
    the weight's name.
    """
    # The network itself goes by this name in one that has a head, here or in the file
    prefix = f"{getattr(model, 'base_model_prefix', '')}."
    counts: dict[str, int] = {}
    for name, module in model.named_modules():
        if isinstance(module, nn.ModuleList) and len(module):
            counts[name.removeprefix(prefix)] = len(module)
    for key in sorted(unexpected):
        for blocks, count in counts.items():
            number = re.match(rf"{re.escape(blocks)}\.(\d+)\.", key.removeprefix(prefix))
            if number and int(number[1]) >= count:
                yield blocks, count, key
