"""Published networks and their tokenizers, loaded.

Only safetensors weights are read and no remote code is run, and a network has to be whole.
"""

import logging
import os
from collections.abc import Iterator
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
from transformers import AutoConfig, AutoModel, AutoModelForTextEncoding, AutoTokenizer

from repro import reading
from repro.models.attention import causal_parts
from repro.models.device import chosen_device
from repro.models.notes import LENGTHS, read_json
from repro.models.sources import ADAPTER_WEIGHTS, locate, notes_of
from repro.models.whole import check_complete, check_intact
from repro.types import InputError

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

log = logging.getLogger(__name__)
CAREFUL: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}


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
    if read_json(folder, "sentence_bert_config.json", {}, LENGTHS).get("do_lower_case"):
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
    published = read_json(folder, "sentence_bert_config.json", {}, LENGTHS).get("max_seq_length")
    # What an encoder was published with goes before its tokenizer's own limit
    known = (configured, longest if published is None else None, *positions(model))
    # XLNet, which has no limit, says -1
    limit = min([most for most in known if most and 0 < most < 1_000_000] or [512])
    limit = int(limit if published is None else min(limit, published))
    if limit < 3:
        raise InputError(
            f"{name!r} reads {limit} tokens of a text: expected 3 at least "
            "(max_position_embeddings in config.json, max_seq_length in sentence_bert_config.json)"
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
