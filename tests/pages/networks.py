"""Tiny random networks of the families that readers bring, as folders in Hugging Face layout."""

import json
from collections.abc import Sequence
from pathlib import Path

import torch
import transformers
from tokenizers import ByteLevelBPETokenizer, Tokenizer
from tokenizers.processors import TemplateProcessing

from repro.training.wordpieces import train_wordpiece

SIZES = {"vocab_size": 600, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
SIZES |= {"num_key_value_heads": 1, "intermediate_size": 48, "max_position_embeddings": 66}
FAMILIES = {
    "bert": ("Bert", ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"), "BertTokenizer"),
    "roberta": ("Roberta", ("<s>", "<pad>", "</s>", "<unk>", "<mask>"), "RobertaTokenizer"),
    "mpnet": ("MPNet", ("<s>", "<pad>", "</s>", "<unk>", "<mask>"), "PreTrainedTokenizerFast"),
    "xlm-r": ("XLMRoberta", ("<s>", "<pad>", "</s>", "<unk>", "<mask>"), "PreTrainedTokenizerFast"),
    "llama": ("Llama", ("<unk>", "<pad>", "<s>", "</s>"), "PreTrainedTokenizerFast"),
    "qwen": ("Qwen2", ("<unk>", "<pad>", "<s>", "</s>"), "PreTrainedTokenizerFast"),
}
"""Classes of transformers, special tokens in the order of their ids, and the tokenizer's class."""


def make(folder: Path, texts: Sequence[str]) -> dict[str, str]:
    """Write one network of each family below `folder`; its path by family."""
    return {name: _make(folder / f"tiny-{name}", texts, *FAMILIES[name]) for name in FAMILIES}


def _make(
    folder: Path,
    texts: Sequence[str],
    family: str,
    special: tuple[str, ...],
    kind: str,
) -> str:
    folder.mkdir(parents=True)
    tokenizer = (
        train_wordpiece(texts, SIZES["vocab_size"])
        if family == "Bert"
        else _byte_pairs(texts, special, family)
    )
    ids = {
        name: tokenizer.token_to_id(token)
        for name, token in _named(special).items()
        if name != "mask"
    }
    special_ids = {f"{name}_token_id": ids.get(name) for name in ("pad", "bos", "eos")}
    config = getattr(transformers, f"{family}Config")(**SIZES, **special_ids)
    torch.manual_seed(0)
    causal = family in ("Llama", "Qwen2")
    getattr(transformers, f"{family}{'ForCausalLM' if causal else 'Model'}")(
        config
    ).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    said = {f"{name}_token": token for name, token in _named(special).items()}
    note = {"tokenizer_class": kind, "model_max_length": 64, **said}
    (folder / "tokenizer_config.json").write_text(json.dumps(note), encoding="utf-8")
    return str(folder)


def _named(special: tuple[str, ...]) -> dict[str, str]:
    """Special tokens by what they are for."""
    words = {token.strip("[]<>").lower(): token for token in special}
    return {{"s": "bos", "/s": "eos"}.get(word, word): token for word, token in words.items()}


def _byte_pairs(texts: Sequence[str], special: tuple[str, ...], family: str) -> Tokenizer:
    made = ByteLevelBPETokenizer()
    made.train_from_iterator(
        texts,
        SIZES["vocab_size"],
        special_tokens=list(special),
        show_progress=False,
    )
    tokenizer: Tokenizer = made._tokenizer
    start, end = "<s>", "</s>"
    single = f"{start} $A" if family in ("Llama", "Qwen2") else f"{start} $A {end}"
    ids = [(token, tokenizer.token_to_id(token)) for token in (start, end)]
    tokenizer.post_processor = TemplateProcessing(
        single=single,
        pair=f"{single} {start}:1 $B:1",
        special_tokens=ids,
    )
    return tokenizer
