"""Whether a network is whole: its bytes as they were written, and files that belong together.

Checksums are compared before anything is read: those of a manifest that we wrote, and those that the hub's cache has.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from repro import paths
from repro.store import MANIFEST, sha256
from repro.types import InputError

READ = ("*.json", "*.txt", "*.model", "*.safetensors", "*/config.json", "*/model.safetensors")
"""files of a published model that are read, or may be"""


def check_intact(folder: Path) -> None:
    """Compare the files with `manifest.json`, if we wrote one, and with the names of the hub's blobs they link to.

    Raises:
        InputError: for the first file with other bytes than are recorded.
    """
    for name, expected in _recorded(folder / MANIFEST):
        path = paths.inside(folder, name)
        if path.is_file() and sha256(path) != expected:
            raise InputError(
                f"{path} has changed since it was written: copy the folder anew, or delete its {MANIFEST} if the "
                "change is meant"
            )
    for path in sorted(path for pattern in READ for path in folder.glob(pattern) if path.is_symlink()):
        blob = path.resolve()
        if blob.parent.name == "blobs" and blob.is_file() and not _is_named_by_content(blob):
            raise InputError(
                f"{path} in the hub's cache has changed since it was downloaded: delete {blob} and download it again"
            )


def _recorded(manifest: Path) -> Iterator[tuple[str, str]]:
    """Names and checksums; none in a file of that name that others wrote."""
    try:
        notes = json.loads(manifest.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return
    except ValueError as error:
        raise InputError(f"{manifest} is not valid JSON ({error}): copy the folder anew") from error
    files = notes.get("files") if isinstance(notes, dict) else None
    for name, digest in files.items() if isinstance(files, dict) else ():
        if isinstance(digest, str) and len(digest) == 64:
            yield name, digest


def _is_named_by_content(blob: Path) -> bool:
    """Whether a blob's name is the digest of its bytes, as the hub has it: sha256 of large files, git's of small."""
    if len(blob.name) == 64:
        return sha256(blob) == blob.name
    if len(blob.name) == 40:
        content = blob.read_bytes()
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest() == blob.name
    return True


def check_complete(name: str, found: Mapping[str, Any]) -> None:
    """Refuse a network of which some weights would stay random, as transformers leaves what a file does not hold.

    Args:
        name: of the network.
        found: what transformers says of the loading.
    """
    if lacking := sorted(key for key in found["missing_keys"] if "pooler." not in key):
        raise InputError(f"the weights of {name!r} lack {', '.join(lacking[:3])}{' …' if lacking[3:] else ''}")
    if unlike := sorted(found["mismatched_keys"]):
        key, there, expected = unlike[0]
        raise InputError(
            f"the weights of {name!r} do not fit its config.json: {key} is {tuple(there)}, expected {tuple(expected)}"
        )


def check_tokens(name: str, ids: Sequence[Sequence[int]], model: Any) -> None:
    """Refuse tokens that the network has no row for."""
    rows, highest = token_rows(model), max((max(row, default=0) for row in ids), default=0)
    if highest >= rows:
        raise InputError(
            f"the tokenizer of {name!r} gives token {highest}, its network has {rows}: they do not belong together"
        )


def check_vocabulary(name: str, known: int, model: Any) -> None:
    """Refuse a tokenizer that knows less than a tenth of the tokens that the network has rows for."""
    if 10 * known < token_rows(model):
        raise InputError(
            f"the tokenizer of {name!r} knows {known} tokens, its network {token_rows(model)}: they do not belong "
            "together"
        )


def token_rows(model: Any) -> int:
    """How many tokens a network knows."""
    return int(model.get_input_embeddings().weight.shape[0])


def most_tokens(name: str, config: Any, tokenizer: int | None, own: int | None) -> int:
    """The most tokens of a text that are read: the least of what the parts allow.

    Args:
        name: of the network.
        config: of the network, as transformers reads it.
        tokenizer: its own limit; a very large one is none.
        own: the published encoder's.

    Raises:
        InputError: if that leaves no room for a word between two special tokens.
    """
    limits = [getattr(config, "max_position_embeddings", None), tokenizer]
    limit = min([n for n in limits if n and n < 1_000_000] or [512])
    if getattr(config, "model_type", "") in ("roberta", "xlm-roberta"):
        limit = min(limit, int(config.max_position_embeddings) - 2)  # positions start after the padding index
    limit = int(min(limit, own or limit))
    if limit < 3:
        raise InputError(
            f"{name!r} reads {limit} tokens of a text: expected 3 at least (max_position_embeddings in config.json, "
            "max_seq_length in sentence_bert_config.json)"
        )
    return limit
